"""tui-probe: a terminal profiler for GPU kernels."""

__version__ = "0.1.0"
