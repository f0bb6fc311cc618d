"""A trace with nested NVTX ranges, written by hand."""

from __future__ import annotations

from pathlib import Path

from tests.trace.make import EPOCH_NS, TraceWriter

LINE = "[nvtx] range {} in {} thread {} start {} end {} launches {} domain {} text {}"
MS = 1_000_000


def ranges_trace(directory: Path, *, timed: bool = False) -> TraceWriter:
    """Two steps of a forward (two layers, a launch in none of them) and a backward, and one range that never ended.

    Launches 0-6 are the first step, 7-13 the second, 14 is in no range, 15 in one of another domain and all threads.
    """
    writer = TraceWriter(directory)
    writer.start(command="python train.py")
    writer.kernel(0, "_Z4gemmPKfS0_Pf")
    writer.kernel(1, "_Z4reluPf")
    writer.kernel(2, "cublas_dgrad", "skipped", reason="no PTX in image")
    number, range_id = 0, 0
    for step in range(2):
        begin, outer = EPOCH_NS + step * 40 * MS, range_id + 1
        for kernel in (0, 1, 0, 1, 1):
            launch = writer.launch(kernel)
            if timed:
                writer.benchmark(kernel, launch, original=0.5 if kernel else 2.0, probed=3.0)
        for _ in range(2):
            writer.pass_through(2, "no PTX in image")
        spans = (
            (2, 1, 1, 12, f"{number}-{number + 4}", "forward"),
            (3, 2, 1, 4, f"{number}-{number + 1}", "layer 0"),
            (4, 2, 5, 9, f"{number + 2}-{number + 3}", "layer 1"),
            (5, 1, 13, 30, f"{number + 5}-{number + 6}", "backward"),
            (1, 0, 0, 36, f"{number}-{number + 6}", "step"),
        )
        for key, parent, start, end, launches, text in spans:
            inside = 0 if parent == 0 else outer - 1 + parent
            writer.lines(
                LINE.format(outer - 1 + key, inside, 77, begin + start * MS, begin + end * MS, launches, "-", text)
            )
        number, range_id = number + 7, range_id + 5
    for _ in range(2):
        writer.launch(1)
    writer.lines(LINE.format(range_id + 1, 0, 0, EPOCH_NS + 90 * MS, "-", number + 1, "nccl", "all-reduce"))
    return writer
