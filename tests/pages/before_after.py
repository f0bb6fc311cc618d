"""Two traces of a program before and after it was changed, in which every difference is known:

matmul    half as long (before 1 ms), 32 -> 40 registers, spills gone: faster
softmax   the second of three in the one trace, the first in the other; 5 % slower
copy      the same in all values
twice     two kernels of one name that are distinguished by their grid, and come in the other order
shapes    one kernel launched with two grids: the smaller one has a third more cycles, the larger one half of them
gone      only before;  added     only after
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.trace.make import TraceWriter, block_sched_result

MATMUL, SOFTMAX, COPY, RESIZED = "_Z6matmulPKfS0_Pfi", "softmax_kernel", "copy_kernel", "resized_kernel"


def _waves(cycles: int, blocks: int) -> bytes:
    """Blocks one after another on two SMs, all of the same length."""
    order = np.arange(blocks)
    return block_sched_result(10_000 + (order // 2) * (cycles + 50), np.full(blocks, cycles), order % 2)


def write_pair(root: Path, *, simulated: bool = False) -> tuple[Path, Path]:
    """Write the folders ``before`` and ``after``; what differs is reported above."""
    for name, after in (("before", False), ("after", True)):
        writer = TraceWriter(root / name)
        writer.start(device="Simulated GPU" if simulated else "NVIDIA H200", command="./train", sms=2)
        first, second = (SOFTMAX, MATMUL) if after else (MATMUL, SOFTMAX)
        index = {first: 0, second: 1, COPY: 2, RESIZED: 3}
        registers, spills = ((40, 44), (0, 0)) if after else ((32, 36), (16, 16))
        for kernel in (first, second, COPY, RESIZED):
            if kernel == MATMUL:
                writer.kernel(index[kernel], kernel, registers=registers, spills=spills)
            else:
                writer.kernel(index[kernel], kernel)
        grids = ((8, 1, 1), (4, 1, 1)) if after else ((4, 1, 1), (8, 1, 1))
        for number, grid in enumerate(grids, 4):
            writer.kernel(number, "_Z5twicePf", registers=(20 if grid[0] == 4 else 24, 26))
            writer.save(number, writer.launch(number, grid), _waves(500, grid[0]))
        writer.kernel(6, "_Z5addedPf" if after else "_Z4gonePf", "skipped", reason="no PTX in image")
        writer.pass_through(6, "no PTX in image")
        timed = {MATMUL: 0.5 if after else 1.0, SOFTMAX: 0.21 if after else 0.2, COPY: 0.1}
        for kernel, milliseconds in timed.items():
            for _ in range(3):
                launch = writer.launch(index[kernel], (16, 1, 1))
                writer.save(index[kernel], launch, _waves(round(2000 * milliseconds), 16))
                writer.benchmark(index[kernel], launch, original=milliseconds, probed=milliseconds * 1.05)
        for blocks, cycles in ((8, 400 if after else 300), (64, 500 if after else 1000)):
            launch = writer.launch(index[RESIZED], (blocks, 1, 1))
            writer.save(index[RESIZED], launch, _waves(cycles, blocks))
        writer.exit()
        writer.run_json(driver={"path": "/usr/lib/libcuda.so.1", "simulated": simulated})
    return root / "before", root / "after"
