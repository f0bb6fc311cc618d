"""Time to draw the boxes of bulk copies, and their bytes on disk.

    python -m tests.bench.boxes [--repeats 3]

Boxes of 128 rows of 128 bytes, as a matrix product loads them. ``places`` are the sectors that they touch; ``picture``
is the time to count them on 160 × 240 cells, and ``spans`` the time to find the memory that they use, in seconds.
``disk`` are the bytes of their records. Times are medians of all repeats.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from tui_probe.draw.view import no_progress
from tui_probe.probes.dmat.boxes import Boxes, raster_boxes
from tui_probe.probes.dmat.density import Grid
from tui_probe.records.copied_boxes import BOX

BASE, TENSOR = 0x7F00_0000_0000, 1 << 26
CYCLES, ROWS, COLUMNS = 1 << 20, 160, 240
CELLS = (12, 14, 10, 10, 12)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    print(line("copies", "places", "spans", "picture", "disk"))
    for copies in (1_000, 100_000, 1_000_000):
        boxes = made(copies)
        spans = median_seconds(boxes.spans, repeats)
        picture = median_seconds(partial(raster_boxes, boxes, grid(), no_progress), repeats)
        places, disk = f"{int(boxes.sector_counts.sum()):,}", f"{boxes.records.nbytes:,}"
        print(line(f"{copies:,}", places, f"{spans:.3f}", f"{picture:.3f}", disk))


def line(*words: str) -> str:
    return "".join(f"{word:>{width}}" for word, width in zip(words, CELLS, strict=True))


def made(copies: int) -> Boxes:
    """Boxes at random places and times."""
    generator, records = np.random.default_rng(1), np.zeros(copies, BOX)
    records["start"] = BASE + generator.integers(0, TENSOR, copies) // 128 * 128
    records["stride1"], records["row"], records["count1"], records["lanes"] = 8192, 128, 128, 1
    for name in ("count2", "count3", "count4"):
        records[name] = 1
    times = np.sort(generator.integers(0, CYCLES, copies))
    return Boxes(records, times, np.arange(copies) % 1000, copies, 8)


def grid() -> Grid:
    edges = BASE + np.arange(ROWS + 1) * (TENSOR + (1 << 20)) // ROWS // 32 * 32
    return Grid(0, CYCLES, COLUMNS, edges[:-1].astype(np.uint64), edges[1:].astype(np.uint64))


def median_seconds(work: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


if __name__ == "__main__":
    main()
