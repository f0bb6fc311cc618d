"""Launches a kernel that makes steps: ``steps.py PTX GRID BLOCK LAUNCH…``, a launch ``STEPS,…/BEGIN,…`` of its threads.

Between launches it waits until the result of the last one is saved, if there is a trace.
"""

from __future__ import annotations

import os
import sys
import time
from ctypes import c_uint64
from pathlib import Path

import numpy as np

from tui_probe.simgpu.examples.demo import Case, Gpu

LIMIT = 60  # seconds; reaching it means that something hangs


def saved() -> int:
    """Result files of this process."""
    return len(list(Path(os.environ["TUI_PROBE_TRACE_ROOT"]).glob(f"*_{os.getpid()}/result/*.bin")))


def main() -> None:
    path, grid, block = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    gpu = Gpu()
    kernel = gpu.function(path, "kernel")
    for number, launch in enumerate(sys.argv[4:], 1):
        steps, begin = (np.resize(np.array(part.split(","), np.uint32), grid * block) for part in launch.split("/"))
        out = np.zeros_like(steps)
        arguments: list[c_uint64] = [gpu.upload(array) for array in (out, steps, begin)]
        gpu.launch(kernel, Case(out, [steps, begin], [], steps, (grid, 1, 1), (block, 1, 1)), arguments)
        gpu.download(arguments[0], out)
        assert (out == steps).all()
        until = time.monotonic() + LIMIT
        while "TUI_PROBE_TRACE_ROOT" in os.environ and saved() < number:
            assert time.monotonic() < until
            time.sleep(0.01)
    sys.stdout.write("done\n")


main()
