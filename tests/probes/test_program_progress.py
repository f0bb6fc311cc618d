"""The time of each warp is distinguished by basic blocks, and adds up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tests.probes.metric_values import figures_in
from tests.probes.running import result_of
from tests.probes.test_warp_progress import HEAD, TEXT
from tui_probe.engine.kernel import Kernel
from tui_probe.probes.program_progress import ProgramProgress, analyse
from tui_probe.ptx.parser import parse

if TYPE_CHECKING:
    from pathlib import Path

LINES = Kernel.of(parse(TEXT), "kernel").pruned.splitlines()
FIRST, LAST = LINES.index("mov.u32 %r1, %tid.x;") + 1, len(LINES) - LINES[::-1].index("ret;")


def ran(tmp_path: Path, rounds: np.ndarray[Any, Any], block: int = 32) -> ProgramProgress:
    blocks = len(rounds) // block
    result = result_of(tmp_path, "program_progress", TEXT, rounds, grid=(blocks,), block=(block,))
    return analyse(result, 1_000_000)


def test_rounds_of_a_loop(tmp_path: Path) -> None:
    """Three blocks: before the loop, the loop, after it."""
    analysis = ran(tmp_path, np.repeat(np.array([1, 5, 9, 2], np.uint32), 32), block=64)
    assert {block.line: (block.visits, block.warps) for block in analysis.blocks} == {
        FIRST: (4, 4), HEAD: (17, 4), LAST: (4, 4),
    }  # fmt: skip
    progress = analysis.progress
    before = int((progress.pace["clock"][:, :, 0] - progress.warps["start"].astype(np.uint32)).sum())
    assert analysis.unknown == 0
    assert analysis.cycles == int(progress.warps["elapsed"].sum()) - before
    head = next(block for block in analysis.blocks if block.line == HEAD)
    assert analysis.blocks[0] is head
    assert head.cycles_per_visit == head.cycles / 17


def test_warp_positions(tmp_path: Path) -> None:
    analysis = ran(tmp_path, np.repeat(np.array([1, 100], np.uint32), 32), block=64)
    elapsed = analysis.progress.warps["elapsed"][0]
    assert analysis.where(-1).tolist() == [[0, 0]]
    assert analysis.where(int(elapsed[0]) + 1).tolist() == [[-1, HEAD]]
    assert analysis.where(int(elapsed[1]) + 1).tolist() == [[-1, -1]]


def test_more_blocks_than_room(tmp_path: Path) -> None:
    analysis = ran(tmp_path, np.full(32, 1000, np.uint32))
    assert analysis.progress.arrival_counts.tolist() == [[1002]]
    assert {block.line: block.visits for block in analysis.blocks} == {FIRST: 1, HEAD: 255}
    assert 0 < analysis.unknown < analysis.cycles
    late = int(analysis.progress.warps["elapsed"][0, 0]) - 1
    assert analysis.where(late).tolist() == [[-2]]
    assert {metric_value.key for metric_value in figures_in("program_progress", analysis) if metric_value.is_shown} >= {
        "blocks_kept",
        "unknown_share",
    }
