"""Python API behind ``tui_probe.open``: traces, kernels, launches and results for scripts and notebooks.

A stable face over ``tui_probe.trace`` and the analyses of the probes; nothing here imports Textual.
"""
