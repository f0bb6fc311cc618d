"""A trace with one of everything, the same each time."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.trace.make import TraceWriter, block_sched_result

REDUCE = "_ZN2at6native13reduce_kernelILi512ENS0_8ReduceOpIfEEfEEvT0_T1_"


def schedule_bytes(blocks: int, sms: int, *, seed: int, missing: int = 0) -> bytes:
    """Blocks of 128 threads, 1000 cycles long and 60 apart, two slots per SM; the last ``missing`` saved nothing."""
    start, elapsed, sm = (np.zeros(blocks, dtype=np.int64) for _ in range(3))
    free = np.tile(np.arange(2) * 7, (sms, 1)) + 100_000 * (1 + np.arange(sms))[:, np.newaxis]
    for block in range(blocks - missing):
        on, slot = block % sms, int(free[block % sms].argmin())
        start[block] = free[on, slot] + 40 + (7 * block + seed) % 40
        elapsed[block] = 900 + (37 * block + 13 * seed) % 200
        sm[block] = 2 * on
        free[on, slot] = start[block] + elapsed[block]
    return block_sched_result(start, elapsed, sm)


def write_example(directory: Path, *, simulated: bool = False) -> None:
    """Probed, skipped, failed and filtered kernels; launches ran unprobed; a benchmark; results lost and damaged."""
    writer = TraceWriter(directory)
    writer.start(device="Simulated GPU" if simulated else "NVIDIA H100 80GB HBM3", command="python 'train 漢字.py'")
    writer.kernel(0, REDUCE, registers=(18, 22))
    writer.kernel(1, "_Z6matmulILi16EEvPKfS1_Pfi", registers=(38, 44), spills=(0, 8))
    writer.kernel(2, "sm90_xmma_gemm_f16", "skipped", reason="no PTX in image", registers=(168, 0))
    writer.kernel(
        3, "softmax_kernel", "failed", reason="ptxas: unknown instruction 'tcgen05.mma' at line 77 code ptxas-refused"
    )
    writer.kernel(4, "copy_kernel", "filtered", reason="left out by --filter copy")
    for i in range(7):
        launch = writer.launch(0, (24, 1, 1))
        writer.save(0, launch, schedule_bytes(24, 4, seed=i, missing=2 if i == 1 else 0))
        writer.benchmark(0, launch, original=0.02, probed=0.021 + i * 0.001)
    writer.save(1, writer.launch(1, (4, 4, 1), (16, 16, 1), shared=2048), b"not a result")
    writer.launch(1, (8, 8, 1), (16, 16, 1), shared=2048)
    writer.pass_through(1, "stream in capture", (8, 8, 1), (16, 16, 1))
    for _ in range(3):
        writer.pass_through(2, "no PTX in image", (128, 1, 1), (384, 1, 1))
    writer.pass_through(3, "the kernel failed to be probed")
    writer.pass_through(4, "left out by --filter copy")
    writer.exit("--max-trace-bytes reached", dropped=1)
    writer.run_json(
        driver={"path": "/usr/lib/libcuda.so.1", "simulated": simulated},
        started="2026-07-25T17:20:00+00:00",
        ended="2026-07-25T17:21:05+00:00",
    )
