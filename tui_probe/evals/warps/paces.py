"""Speed of blocks over their progress, from the times at which their warps came around the main loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.analysis.warp_pace import unwrapped

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.analysis.warp_pace import WarpProgress

_STEPS: Final = 32
"""Parts of the way in which speeds are told: of single iterations they would be noise."""


@dataclass(frozen=True, slots=True)
class Speeds:
    """``speed`` (f8, shape (blocks, parts)) is iterations per thousand cycles, the mean over the warps of a block;
    NaN where a warp ended sooner. ``progress`` (f8, shape (parts,)) are per cent of the iterations that were recorded,
    the middle of each part. ``block`` (i8) are the numbers of the blocks among those measured."""

    block: NDArray[np.int64]
    progress: NDArray[np.float64]
    speed: NDArray[np.float64]
    cut: int
    """Warps that came around more often than was recorded."""


def speeds(found: WarpProgress) -> Speeds | None:
    """The speeds of a launch; None where it has no loop with two iterations."""
    loop = found.main_loop
    if loop is None:
        return None
    at = found.pace["line"] == loop.line
    at &= np.arange(found.pace.shape[2]) < found.kept[..., np.newaxis]
    count = at.sum(axis=2)
    most = int(count.max(initial=0))
    if most < 2:
        return None
    since = unwrapped(found.pace["clock"], found.warps["start"].astype(np.uint32)).astype(np.float64)
    times = _arrivals(since, at, most)
    parts = np.unique(np.linspace(0, most - 1, min(_STEPS, most - 1) + 1).round().astype(np.int64))
    steps = np.diff(times[..., parts], axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(steps > 0, 1e3 * np.diff(parts) / steps, np.nan)
    ran = count.max(axis=1) >= 2
    known = ~np.isnan(each[ran])
    total = np.where(known, each[ran], 0.0).sum(axis=1)
    mean = np.divide(total, known.sum(axis=1), out=np.full(total.shape, np.nan), where=known.any(axis=1))
    middle = (parts[1:] + parts[:-1]) / 2 / (most - 1) * 100
    cut = int((found.reached > found.kept).sum())
    return Speeds(np.flatnonzero(ran), middle, mean, cut)


def _arrivals(since: NDArray[np.float64], at: NDArray[np.bool_], most: int) -> NDArray[np.float64]:
    """Cycles from a warp's start to its k-th arrival: shape (blocks, warps, most), NaN after its last."""
    order = np.argsort(~at, axis=-1, kind="stable")[..., :most]
    sorted_times = np.take_along_axis(since, order, axis=-1)
    return np.where(np.take_along_axis(at, order, axis=-1), sorted_times, np.nan)
