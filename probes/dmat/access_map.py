"""Everything that a picture of a launch's accesses is made from, read once.

A small result is counted anew for each picture. Of a large one, all accesses are counted on one fine grid first, from
which pictures of much of it are made; its memory in use is found from a sample of threads, and where that turns out to
miss some accesses, from all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.errors import TraceError

from .accesses import SECTOR
from .address_space import Band, bands_of
from .density import Grid, Pyramid, raster
from .survey import NEVER, merged_runs, survey

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tui_probe.trace.allocations import LaunchMemory
    from tui_probe.trace.tensors import Tensor

    from .accesses import Accesses, Part, Selection
    from .survey import Survey

SMALL: Final = 4 << 20
"""Records that are counted anew for each picture."""
_SAMPLE: Final = 64
_FIRST: Final = 0.15
"""The part of the time that the sample takes."""
_COLUMNS, _ROWS = 1024, 512
_LATER: Final = 1.05
"""How much later than the sample's the last access may be."""
_LARGEST_TABLE: Final = 1 << 21
_MARGIN: Final = 64 << 10
_LATEST: Final = 1 << 48
"""Cycles: more than a day."""
_HIGHEST: Final = 1 << 57
"""Where the addresses of GPUs end."""


@dataclass(frozen=True, slots=True)
class AccessMap:
    """The accesses of one launch, the memory that they touch, and of a large result its ``pyramid``."""

    accesses: Accesses
    survey: Survey
    bands: tuple[Band, ...]
    pyramid: Pyramid | None = None

    @property
    def end(self) -> int:
        """One past the last cycle, at least 1."""
        return max(self.survey.end, 1)

    def parts(self, selection: Selection, start: int, end: int) -> list[Part]:
        """The parts that may have accesses of a selection from cycle ``start`` to before ``end``."""
        parts = self.accesses.parts(selection)
        if len(parts) != len(self.survey.part_times) or selection.block is not None:
            return parts
        first, last = self.survey.part_times.T
        return [parts[place] for place in np.flatnonzero((first < end) & (last >= start))]


def read_map(
    accesses: Accesses, memory: LaunchMemory, tensors: Sequence[Tensor], progress: Callable[[float], None]
) -> AccessMap:
    """Look over all accesses. ``progress`` hears the share done, and may raise to stop it.

    TraceError if there are clocks or addresses that cannot be.
    """
    small = accesses.records.size <= SMALL
    if small:
        accesses, seen = survey(accesses, progress)
        _believable(accesses, seen)
        return AccessMap(accesses, seen, tuple(bands_of(seen.runs, memory, tensors)))
    accesses, seen, pyramid = _from_sample(accesses, memory, tensors, progress)
    if int(pyramid.counts.sum()) != seen.kept:
        accesses, seen = survey(accesses, progress)
        _believable(accesses, seen)
        ranges = [(band.start, band.end) for band in bands_of(seen.runs, memory, tensors)]
        seen, pyramid = _pyramid(accesses, seen, ranges, seen.end, progress)
    used = pyramid.counts.any(axis=1)
    runs = merged_runs(np.stack((pyramid.grid.low[used], pyramid.grid.high[used]), axis=1))
    return AccessMap(accesses, seen, tuple(bands_of(runs, memory, tensors)), pyramid)


def _from_sample(
    accesses: Accesses, memory: LaunchMemory, tensors: Sequence[Tensor], progress: Callable[[float], None]
) -> tuple[Accesses, Survey, Pyramid]:
    """A pyramid around what a sample of threads touched; it may lack some accesses."""
    accesses, seen = survey(accesses, lambda share: progress(share * _FIRST), _SAMPLE)
    _believable(accesses, seen)
    ranges = _widened(bands_of(seen.runs, memory, tensors))
    later = int(seen.end * _LATER)
    return accesses, *_pyramid(accesses, seen, ranges, later, lambda share: progress(_FIRST + share * (1 - _FIRST)))


def _believable(accesses: Accesses, seen: Survey) -> None:
    """TraceError if there are clocks or addresses that no GPU has: the file is damaged."""
    path = accesses.result.path
    if seen.end > _LATEST:
        raise TraceError(f"{path}: accesses {seen.end} cycles after the first warp began: the file is damaged")
    if len(seen.runs) and int(seen.runs[-1, 1]) > _HIGHEST:
        raise TraceError(f"{path}: accesses at address {int(seen.runs[-1, 0]):#x}: the file is damaged")


def _pyramid(
    accesses: Accesses, seen: Survey, ranges: list[tuple[int, int]], end: int, progress: Callable[[float], None]
) -> tuple[Survey, Pyramid]:
    """All accesses in some ranges and before some cycle, and with them when each part's really were."""
    width = 1 << max((max(end, 1) - 1).bit_length() - (_COLUMNS.bit_length() - 1), 0)
    grid = Grid(0, width * _COLUMNS, _COLUMNS, *_rows(ranges))
    parts = accesses.parts()
    extents = np.tile(np.array(NEVER, dtype=np.int64), (len(parts), 1))
    counts = raster(parts, grid, progress, extents=extents)
    found = replace(seen, end=int(extents[:, 1].max(initial=-1)) + 1, part_times=extents)
    return found, Pyramid(grid, counts)


def _widened(bands: list[Band]) -> list[tuple[int, int]]:
    """Ranges around bands that were found from a sample, as far as half the way to the next."""
    found = []
    for place, band in enumerate(bands):
        margin = max(_MARGIN, band.size // 16)
        before = band.start - bands[place - 1].end if place else 2 * margin
        after = bands[place + 1].start - band.end if place + 1 < len(bands) else 2 * margin
        found.append((max(band.start - min(margin, before // 2), 0), band.end + min(margin, after // 2)))
    return found


def _rows(ranges: list[tuple[int, int]]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Rows of a power of two bytes, the same for all of a range, as many of each range: lows and highs, u8."""
    if not ranges:
        return np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.uint64)
    least = max((ranges[-1][1] - ranges[0][0]) // _LARGEST_TABLE, SECTOR)
    most = _ROWS // len(ranges)
    lows, highs = [], []
    at = 0
    for start, end in ranges:
        step = 1 << (max(-(-(end - start) // most), least) - 1).bit_length()
        begin = max(start // step * step, at)
        at = -(-end // step) * step
        edges = np.arange(begin // step * step, at + 1, step, dtype=np.uint64)
        lows.append(np.maximum(edges[:-1], np.uint64(begin)))
        highs.append(edges[1:])
    return np.concatenate(lows), np.concatenate(highs)
