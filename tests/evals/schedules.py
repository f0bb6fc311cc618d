"""Traces of block schedules that are known: a fill as an H200 ran it, and one of two SMs, on paper."""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np

from tests.recorded import H200
from tests.trace.make import TraceWriter, block_sched_result


def write_fill(directory: Path) -> Path:
    """32 768 blocks on 132 SMs."""
    content = lzma.decompress((H200 / "zero_fill.bin.xz").read_bytes())
    return write(directory, "zero_fill", 32768, content, device="NVIDIA H200")


def write_two_slots(directory: Path) -> Path:
    """One SM of two slots, 0-100 and 110-200, 4-50 and 60-190; another of one slot, 0-50."""
    start = np.array([1000, 1004, 1060, 1110, 7], "u8")
    elapsed = np.array([100, 46, 130, 90, 50], "u4")
    return write(directory, "on_paper", 5, block_sched_result(start, elapsed, np.array([3, 3, 3, 3, 9], "u4")))


def write(directory: Path, kernel: str, blocks: int, content: bytes, *, device: str = "GPU on paper") -> Path:
    writer = TraceWriter(directory)
    writer.start(device=device, command=f"./{kernel}")
    folder = writer.kernel(0, kernel)
    (folder / "kernel.info").write_text(f"{kernel}\n2\n1\n1,16\ncallback block_sched\n")
    launch = writer.launch(0, (blocks, 1, 1), (128, 1, 1))
    writer.save(0, launch, content)
    writer.exit()
    return directory
