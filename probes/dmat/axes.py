"""The axes of the picture: bands of memory with gaps left out, their shares of the height, and the visible window.

What is known of the memory decides: tensors that the program named, parameters of the kernel that point into an
allocation, allocations of the log, and where there is nothing of these, the addresses themselves, split where there is
a large gap. An allocation may be a framework's pool with many tensors in it, so it is split at the parameters that
point into it, and at gaps in use that are larger than what is used next to them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tui_probe.trace.device_memory import LaunchMemory
    from tui_probe.trace.tensors import Tensor

_GAP: Final = 2 << 20
"""Bytes that no one touched between two ranges that are not known to belong together."""
_SMALL_GAP: Final = 64 << 10
"""Minimum gap within an allocation."""
_MAX_BANDS: Final = 16
MIN_ROW_BYTES: Final = 4
"""Bytes of a row at the closest: a word."""
_MIN_SHARE: Final = 0.5
"""The share of the smallest band, of what each would have if all were alike."""


@dataclass(frozen=True, slots=True)
class Band:
    """Bytes ``start`` to before ``end``, which are in use; offsets in it are counted from ``origin``."""

    name: str
    start: int
    end: int
    origin: int
    tensor: Tensor | None = None
    unnamed: bool = False
    """True for memory outside of what is known; its name is a number."""

    @property
    def size(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class _NamedRange:
    """Something that begins at an address: ``name`` is "" for the mere beginning of an allocation."""

    start: int
    end: int
    name: str
    tensor: Tensor | None = None


def bands_of(
    runs: NDArray[np.uint64], memory: LaunchMemory, tensors: Sequence[Tensor] = (), most: int = _MAX_BANDS
) -> list[Band]:
    """Bands by ascending address that hold all ``runs`` (u8, shape (runs, 2), ascending and apart), at most ``most``.

    Where there would be more, the nearest become one.
    """
    places = _named_ranges(memory, tensors)
    pieces = [piece for low, high in runs.tolist() for piece in _cut(low, high, places)]
    bands: list[Band] = []
    for place, low, high in pieces:
        if bands and _goes_on(bands[-1], place, low):
            bands[-1] = replace(bands[-1], end=high)
        elif place is None:
            bands.append(Band("", low, high, low))
        else:
            bands.append(Band(place.name, low, high, place.start, place.tensor))
    split = [part for band in bands for part in _split_at_gaps(band, runs)]
    return _named(_coarsened_runs(split, most))


def _named_ranges(memory: LaunchMemory, tensors: Sequence[Tensor]) -> list[_NamedRange]:
    """Tensors, parameters and allocations by ascending address; of those at one address the best known."""
    ranges: dict[int, _NamedRange] = {}
    for number, allocation in enumerate(memory.allocations):
        ranges[allocation.start] = _NamedRange(allocation.start, allocation.end, f"allocation {number}")
    pointers: dict[int, list[str]] = {}
    for name, value in memory.pointers():
        # Without a log of allocations a number counts as an address if it is as large as those of devices are.
        if memory.allocation_at(value) is not None or (not memory.allocations and 1 << 32 <= value < 1 << 57):
            pointers.setdefault(value, []).append(name)
    for value, names in pointers.items():
        inside = memory.allocation_at(value)
        end = value + (1 << 40) if inside is None else inside.end
        ranges[value] = _NamedRange(value, end, f"param {', '.join(names)}")
    starts = sorted(ranges)
    for tensor in tensors:
        for start in starts[bisect_right(starts, tensor.start) : bisect_left(starts, tensor.end)]:
            ranges.pop(start, None)  # a pointer to a part of it
        ranges[tensor.start] = _NamedRange(tensor.start, tensor.end, tensor.name, tensor)
    return [ranges[start] for start in sorted(ranges)]


def _cut(low: int, high: int, places: list[_NamedRange]) -> Iterator[tuple[_NamedRange | None, int, int]]:
    """The bytes from ``low`` to before ``high`` in pieces that belong to one place each, or to none."""
    at = low
    number = bisect_right(places, low, key=lambda place_range: place_range.start) - 1
    while at < high:
        place = places[number] if number >= 0 and at < places[number].end else None
        following = places[number + 1].start if number + 1 < len(places) else high
        end = min(high, following if place is None else min(following, place.end))
        yield place, at, end
        at = end
        number += at == following


def _goes_on(band: Band, place: _NamedRange | None, low: int) -> bool:
    """Return True if bytes from ``low`` on, in ``place``, belong to the band before them."""
    if place is None:
        return band.name == "" and low - band.end < _GAP
    return band.origin == place.start and band.tensor is place.tensor


def _split_at_gaps(band: Band, runs: NDArray[np.uint64]) -> list[Band]:
    """A band in parts, where the gaps between them are larger than the parts next to them."""
    if band.tensor is not None:
        return [band]
    inside = [
        (max(low, band.start), min(high, band.end))
        for low, high in runs.tolist()
        if low < band.end and high > band.start
    ]
    parts: list[tuple[int, int]] = []
    for low, high in inside:
        if parts and low - parts[-1][1] < max(_SMALL_GAP, parts[-1][1] - parts[-1][0]):
            parts[-1] = parts[-1][0], high
        else:
            parts.append((low, high))
    if len(parts) > _MAX_BANDS // 2:
        return [band]
    return [replace(band, start=low, end=high) for low, high in parts]


def _coarsened_runs(bands: list[Band], most: int) -> list[Band]:
    bands = list(bands)
    while len(bands) > most:
        gaps = [after.start - before.end for before, after in pairwise(bands)]
        place = gaps.index(min(gaps))
        lower, upper = bands[place : place + 2]
        bands[place : place + 2] = [replace(lower, name=lower.name or upper.name, end=upper.end, tensor=None)]
    return bands


def _named(bands: list[Band]) -> list[Band]:
    """Names for bands without one, and a part's distance from its origin where several have one name."""
    names = [band.name for band in bands]
    named, ranges = [], 0
    for band in bands:
        if not band.name:
            named.append(replace(band, name=f"range {ranges}", unnamed=True))
            ranges += 1
        elif names.count(band.name) > 1 and band.start > band.origin and band.tensor is None:
            named.append(replace(band, name=f"{band.name} +{band.start - band.origin:#x}"))
        else:
            named.append(band)
    return named


@dataclass(frozen=True, slots=True)
class Strip:
    """A band, or the part of it that is visible, in rows ``top`` to before ``top + rows``."""

    band: int
    top: int
    rows: int
    low: int
    high: int

    def address(self, row: int) -> int:
        """The first byte of a row, counted from the first of all strips."""
        return self.low + (row - self.top) * (self.high - self.low) // self.rows


class AddressAxis:
    """The vertical axis: bands of memory one below the other, each with a share of the height, gaps left out.

    A place on the axis is a number from 0 to 1. A band's share grows with its size, but even the smallest can be seen.
    """

    def __init__(self, bands: Sequence[Band]) -> None:
        self.bands = tuple(bands)
        total = sum(band.size for band in bands) or 1
        shares = [max(band.size / total, _MIN_SHARE / len(bands)) for band in bands]
        self._edges = [0.0]
        for share in shares:
            self._edges.append(self._edges[-1] + share / sum(shares))

    def band_of(self, address: int) -> int | None:
        """The number of the band that an address is in."""
        place = bisect_right(self.bands, address, key=lambda band: band.start) - 1
        return place if place >= 0 and address < self.bands[place].end else None

    def place(self, address: int) -> float:
        """Return the position of an address on the axis; one between bands is at the start of the next."""
        number = min(bisect_right(self.bands, address, key=lambda band: band.end), len(self.bands) - 1)
        band, low, high = self.bands[number], *self._edges[number : number + 2]
        return low + min(max((address - band.start) / band.size, 0.0), 1.0) * (high - low)

    def address(self, place: float) -> int:
        """The address at a place of the axis."""
        number = min(max(bisect_right(self._edges, place) - 1, 0), len(self.bands) - 1)
        band, low, high = self.bands[number], *self._edges[number : number + 2]
        share = min(max((place - low) / (high - low), 0.0), 1.0)
        return min(band.start + int(share * band.size), band.end - 1)

    def strips(self, low: float, high: float, rows: int) -> list[Strip]:
        """Return the visible part from ``low`` to ``high`` in at most ``rows`` rows, one between bands if they fit."""
        cuts = []
        for number, band in enumerate(self.bands):
            begin, end = self._edges[number : number + 2]
            if begin < high and end > low:
                start = band.start + round(max(low - begin, 0.0) / (end - begin) * band.size)
                start = min(start, band.end - 1)  # the last byte of a band of few
                stop = band.start + round(min((high - begin) / (end - begin), 1.0) * band.size)
                cuts.append((number, start, max(stop, start + 1), min(end, high) - max(begin, low)))
        cuts = cuts[:rows]
        between = 1 if rows >= 3 * len(cuts) else 0
        heights = _shared(rows - between * (len(cuts) - 1), [cut[3] for cut in cuts]) if cuts else []
        strips, top = [], 0
        for (number, start, stop, _), height in zip(cuts, heights, strict=True):
            height = max(min(height, -(-(stop - start) // MIN_ROW_BYTES)), 1)
            strips.append(Strip(number, top, height, start, stop))
            top += height + between
        return strips


def _shared(rows: int, weights: list[float]) -> list[int]:
    """``rows`` shared by weight, at least one each."""
    total = sum(weights) or 1.0
    exact = [weight / total * rows for weight in weights]
    counts = [max(int(share), 1) for share in exact]
    while sum(counts) > rows:
        counts[counts.index(max(counts))] -= 1
    by_remainder = sorted(range(len(counts)), key=lambda i: counts[i] - exact[i])
    for i in (by_remainder * (rows // len(by_remainder) + 1))[: rows - sum(counts)]:
        counts[i] += 1
    return counts


def row_edges(strips: Sequence[Strip], dots: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The bytes of each row of dots, ``dots`` to a row: lows and highs, u8, ascending.

    Edges within a strip are rounded to a power of two bytes, at most an eighth of a row of dots: quick to find.
    """
    lows, highs = [], []
    for strip in strips:
        count = strip.rows * dots
        step = (strip.high - strip.low) // count // 8
        grain = 1 << max(step.bit_length() - 1, 0)
        inner = strip.low + np.arange(1, count, dtype=np.int64) * (strip.high - strip.low) // count
        edges = np.concatenate(([strip.low], inner // grain * grain, [strip.high])).clip(strip.low, strip.high)
        lows.append(edges[:-1])
        highs.append(edges[1:])
    if not lows:
        return np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.uint64)
    return np.concatenate(lows).astype(np.uint64), np.concatenate(highs).astype(np.uint64)


@dataclass(frozen=True, slots=True)
class Window:
    """Cycles ``start`` to before ``end``, and the memory from ``low`` to ``high`` on an ``AddressAxis``."""

    start: float
    end: float
    low: float = 0.0
    high: float = 1.0

    @property
    def cycles(self) -> float:
        return self.end - self.start

    def zoomed(self, factor: float, time: float) -> Window:
        """``factor`` times as many cycles, ``time`` staying where it is."""
        return replace(self, start=time - (time - self.start) * factor, end=time + (self.end - time) * factor)

    def zoomed_rows(self, factor: float, place: float) -> Window:
        """``factor`` times as much memory, ``place`` staying where it is."""
        return replace(self, low=place - (place - self.low) * factor, high=place + (self.high - place) * factor)

    def moved(self, cycles: float, memory: float) -> Window:
        """Return the window with the same extent elsewhere."""
        return Window(self.start + cycles, self.end + cycles, self.low + memory, self.high + memory)

    def inside(self, end: float) -> Window:
        """Moved, and where it is too large cut, to lie from cycle 0 to ``end`` and within the axis."""
        start, stop = _fit_range(self.start, self.end, end)
        low, high = _fit_range(self.low, self.high, 1.0)
        return Window(start, stop, low, high)


def _fit_range(low: float, high: float, end: float) -> tuple[float, float]:
    if high - low >= end:
        return 0.0, end
    if low < 0:
        return 0.0, high - low
    if high > end:
        return end - (high - low), end
    return low, high
