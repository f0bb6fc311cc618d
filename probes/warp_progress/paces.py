"""How far each warp had come at each moment: its arrivals at the head of the main loop, as lines over time.

A warp's line begins at (start, 0), passes (time of arrival k, k) and stays at its last number until its end. Between
two arrivals it is straight. A kernel without a loop has lines from (start, 0) to (end, 1), which tells no more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.analysis.timeline import Intervals
    from tui_probe.analysis.warp_pace import WarpProgress


@dataclass(frozen=True, slots=True)
class Paces:
    """The lines of ``warps``. Points are sorted by warp, then time; those of warp i are ``offsets[i]`` and on.

    ``time`` (i8) is cycles on the axis of the timeline, ``count`` (i8) arrivals until then. ``line`` is that of the
    loop's head in pruned.ptx, None if there is no loop. ``cut`` warps arrived more often than their records had room:
    their lines stay where the records end.
    """

    warps: Intervals
    line: int | None
    time: NDArray[np.int64]
    count: NDArray[np.int64]
    offsets: NDArray[np.int64]
    cut: int

    @property
    def arrivals(self) -> NDArray[np.int64]:
        """Arrivals of each warp that were recorded (i8)."""
        return self.count[self.offsets[1:] - 1]

    def at(self, times: NDArray[Any]) -> NDArray[np.float64]:
        """Where each line is at ascending times: shape (warps, times), NaN before its start and after its end."""
        span = int(self.time.max()) + 2
        warp = np.arange(len(self.warps), dtype=np.int64)[:, np.newaxis]
        owner = np.repeat(np.arange(len(self.warps), dtype=np.int64), np.diff(self.offsets))
        asked = np.floor(np.clip(times, 0, span - 1)).astype(np.int64)
        after = np.searchsorted(owner * span + self.time, warp * span + asked, side="right")
        after = np.clip(after, self.offsets[:-1, np.newaxis] + 1, self.offsets[1:, np.newaxis] - 1)
        before = after - 1
        length = np.maximum(self.time[after] - self.time[before], 1)
        part = np.clip((times - self.time[before]) / length, 0, 1)
        found = self.count[before] + part * (self.count[after] - self.count[before])
        alive = (times >= self.warps.start[:, np.newaxis]) & (times <= self.warps.end[:, np.newaxis])
        return np.where(alive, found, np.nan)


def paces(progress: WarpProgress, warps: Intervals) -> Paces:
    """The lines of these warps, which are some of the launch's; their times are on the timeline's axis."""
    loop = progress.main_loop
    first, step = (0, 1) if progress.sample is None else (progress.sample.blocks.start, progress.sample.blocks.step)
    where = (warps.block - first) // step, warps.warp
    reached = progress.reached[where].astype(np.int64)
    room = progress.pace.shape[2]
    if loop is None:
        ends = np.stack([warps.start, warps.end], axis=1)
        count = np.tile(np.array([0, 1], dtype=np.int64), len(warps))
        return Paces(warps, None, ends.ravel(), count, np.arange(len(warps) + 1, dtype=np.int64) * 2, 0)
    records = progress.pace[where]
    kept = np.arange(room) < progress.kept[where][:, np.newaxis]
    kept &= records["line"] == loop.line
    since = (records["clock"] - progress.warps["start"][where].astype(np.uint32)[:, np.newaxis]).astype(np.int64)
    which, _ = np.nonzero(kept)
    everyone = np.arange(len(warps), dtype=np.int64)
    owner = np.concatenate([everyone, which, everyone])
    time = np.concatenate([warps.start, warps.start[which] + since[kept], warps.end])
    place = np.repeat(np.array([0, 1, 2]), [len(warps), len(which), len(warps)])
    order = np.lexsort((time, place, owner))
    owner, time, place = owner[order], time[order], place[order]
    offsets = np.searchsorted(owner, np.arange(len(warps) + 1)).astype(np.int64)
    arrived = np.cumsum(place == 1)
    count = arrived - arrived[offsets[:-1]][owner]
    return Paces(warps, loop.line, time, count, offsets, int((reached > room).sum()))
