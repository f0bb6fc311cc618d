"""Launches ``planted`` twice: 40 blocks of 64 threads of which block 21 is a straggler, and three blocks of it."""

from __future__ import annotations

from ctypes import c_uint
from pathlib import Path

import numpy as np

from tui_probe.simgpu.examples.demo import Case, Gpu

BLOCKS, FEW, THREADS, STRAGGLER = 40, 3, 64, 21


def main() -> None:
    gpu = Gpu()
    kernel = gpu.function(Path(__file__).with_name("planted.ptx"), "planted")
    values = np.ones(64 * THREADS + BLOCKS * THREADS, np.float32)
    out = np.zeros(8 * BLOCKS * THREADS, np.float32)
    for blocks in (BLOCKS, FEW):
        arguments = [gpu.upload(values), gpu.upload(out)]
        case = Case(out, [values], [], out, (blocks, 1, 1), (THREADS, 1, 1))
        gpu.launch(kernel, case, [*arguments, c_uint(STRAGGLER)])
        gpu.download(arguments[1], out)
        sums = out[::8][: blocks * THREADS].reshape(blocks, THREADS)
        assert (sums[np.arange(blocks) != STRAGGLER] == 3).all()
        assert blocks == FEW or (sums[STRAGGLER] == 60).all()


main()
