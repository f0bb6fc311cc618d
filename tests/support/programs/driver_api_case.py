"""Kernels of the driver API, without a framework: those of the demo."""

import runpy
import sys

from tui_probe.simgpu.examples import demo

sys.argv = ["demo.py"]
runpy.run_path(demo.__file__, run_name="__main__")
