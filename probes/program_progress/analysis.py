"""Progress through the program: where the warps of a launch spent their time, and where they were at a given time.

    a step   from a warp's entering a basic block to its entering the next one; the last from there to its exit
    cycles   of a block: the sum of its steps over all warps, with whatever the warp waited for in it
    visits   how often warps entered it

A warp that entered more blocks than it kept is known up to the last one kept: the rest of its time is ``unknown``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tui_probe.analysis import warp_pace
from tui_probe.analysis.counts import ratio
from tui_probe.analysis.known_sites import sites_of

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tui_probe.analysis.warp_pace import WarpProgress
    from tui_probe.trace.results import Result
    from tui_probe.trace.source_lines import SourceLine


@dataclass(frozen=True, slots=True)
class BlockTime:
    """What one basic block took, whose first instruction is at ``line`` of pruned.ptx."""

    line: int
    source: SourceLine | None
    visits: int
    warps: int
    cycles: int

    @property
    def cycles_per_visit(self) -> float | None:
        return ratio(self.cycles, self.visits)


@dataclass(frozen=True, slots=True)
class ProgramProgress:
    """One launch. ``blocks`` by falling cycles; ``unknown`` cycles of warps that entered more blocks than they kept."""

    progress: WarpProgress
    blocks: tuple[BlockTime, ...]
    unknown: int
    threads_missing: int = 0

    @property
    def cycles(self) -> int:
        """Of all warps together."""
        return self.unknown + sum(block.cycles for block in self.blocks)

    def where(self, cycles: int) -> NDArray[np.int64]:
        """The line of the block that each warp was in, ``cycles`` after its own start: shape (blocks, warps per block).

        0 before its first block, -1 after its end, -2 where it is not known.
        """
        progress = self.progress
        since = np.where(_valid(progress), _since(progress), np.iinfo(np.int64).max)
        place = (since <= cycles).sum(axis=2) - 1
        lines = np.take_along_axis(progress.pace["line"], np.maximum(place, 0)[..., np.newaxis], axis=2)[..., 0]
        found = np.where(place < 0, 0, lines.astype(np.int64))
        found[_cut(progress) & (place == progress.kept - 1)] = -2
        found[cycles >= progress.warps["elapsed"].astype(np.int64)] = -1
        found[~progress.ran] = -2
        return found


def analyse(result: Result, clock_khz: int | None = None, folder: Path | None = None) -> ProgramProgress:
    """The blocks of one launch; TraceError if the maps are not those of this probe.

    ``folder`` is that of the kernel in the trace, for the source lines.
    """
    progress = warp_pace.analyse(result, clock_khz)
    known = sites_of(folder)
    valid, since = _valid(progress), _since(progress)
    following = np.concatenate((since[..., 1:], np.zeros_like(since[..., :1])), axis=-1)
    last = np.arange(valid.shape[2]) == progress.kept[..., np.newaxis] - 1
    ended = progress.warps["elapsed"].astype(np.int64)
    cut = _cut(progress)
    took = np.where(last, ended[..., np.newaxis], following) - since
    unknown = int(took[last & cut[..., np.newaxis]].sum())
    took[last & cut[..., np.newaxis]] = 0
    blocks = []
    for line in np.unique(progress.pace["line"][valid]).tolist():
        at = valid & (progress.pace["line"] == line)
        source = known.following(line)
        blocks.append(BlockTime(line, source, int(at.sum()), int(at.any(axis=2).sum()), int(took[at].sum())))
    blocks.sort(key=lambda block: (-block.cycles, block.line))
    return ProgramProgress(progress, tuple(blocks), unknown)


def _valid(progress: WarpProgress) -> NDArray[np.bool_]:
    valid: NDArray[Any] = np.arange(progress.pace.shape[2]) < progress.kept[..., np.newaxis]
    return valid


def _cut(progress: WarpProgress) -> NDArray[np.bool_]:
    """Warps that entered more blocks than they kept, or whose number is not known."""
    cut: NDArray[np.bool_] = (progress.reached > progress.kept) | (progress.reached < 0)
    return cut


def _since(progress: WarpProgress) -> NDArray[np.int64]:
    """Cycles from the start of each warp to each of its records."""
    return warp_pace.unwrapped(progress.pace["clock"], progress.warps["start"].astype(np.uint32))
