"""What ``tui_probe.open`` gives: traces, kernels, launches and results for scripts and notebooks.

A stable face over ``tui_probe.trace`` and the analyses of the probes; nothing here imports Textual.
"""
