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
    runs: NDArray[np.uint64], memory: LaunchMemory, tensors: Sequence[Tensor] = (), max_bands: int = _MAX_BANDS
) -> list[Band]:
    """Return the bands by ascending address that hold all ``runs`` (u8, shape (runs, 2), ascending and apart).

    If there would be more than ``max_bands``, the nearest become one.
    """
    named_ranges = _named_ranges(memory, tensors)
    pieces = [piece for start, end in runs.tolist() for piece in _split_at_ranges(start, end, named_ranges)]
    bands: list[Band] = []
    for named_range, start, end in pieces:
        if bands and _belongs_to_band(bands[-1], named_range, start):
            bands[-1] = replace(bands[-1], end=end)
        elif named_range is None:
            bands.append(Band("", start, end, start))
        else:
            bands.append(Band(named_range.name, start, end, named_range.start, named_range.tensor))
    parts = [part for band in bands for part in _split_at_gaps(band, runs)]
    return _name_bands(_merge_nearest_bands(parts, max_bands))


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
        allocation_at_pointer = memory.allocation_at(value)
        end = value + (1 << 40) if allocation_at_pointer is None else allocation_at_pointer.end
        ranges[value] = _NamedRange(value, end, f"param {', '.join(names)}")
    addresses = sorted(ranges)
    for tensor in tensors:
        for start in addresses[bisect_right(addresses, tensor.start) : bisect_left(addresses, tensor.end)]:
            ranges.pop(start, None)  # a pointer to a part of it
        ranges[tensor.start] = _NamedRange(tensor.start, tensor.end, tensor.name, tensor)
    return [ranges[start] for start in sorted(ranges)]


def _split_at_ranges(
    start: int, stop: int, named_ranges: list[_NamedRange]
) -> Iterator[tuple[_NamedRange | None, int, int]]:
    """The bytes from ``start`` to before ``stop`` in pieces that belong to one place each, or to none."""
    address = start
    number = bisect_right(named_ranges, start, key=lambda candidate: candidate.start) - 1
    while address < stop:
        named_range = named_ranges[number] if number >= 0 and address < named_ranges[number].end else None
        next_start = named_ranges[number + 1].start if number + 1 < len(named_ranges) else stop
        end = min(stop, next_start if named_range is None else min(next_start, named_range.end))
        yield named_range, address, end
        address = end
        number += address == next_start


def _belongs_to_band(band: Band, named_range: _NamedRange | None, start: int) -> bool:
    """Return True if bytes from ``start`` on, in ``named_range``, belong to the band before them."""
    if named_range is None:
        return band.name == "" and start - band.end < _GAP
    return band.origin == named_range.start and band.tensor is named_range.tensor


def _split_at_gaps(band: Band, runs: NDArray[np.uint64]) -> list[Band]:
    """A band in parts, where the gaps between them are larger than the parts next to them."""
    if band.tensor is not None:
        return [band]
    band_runs = [
        (max(start, band.start), min(end, band.end))
        for start, end in runs.tolist()
        if start < band.end and end > band.start
    ]
    parts: list[tuple[int, int]] = []
    for low, high in band_runs:
        if parts and low - parts[-1][1] < max(_SMALL_GAP, parts[-1][1] - parts[-1][0]):
            parts[-1] = parts[-1][0], high
        else:
            parts.append((low, high))
    if len(parts) > _MAX_BANDS // 2:
        return [band]
    return [replace(band, start=low, end=high) for low, high in parts]


def _merge_nearest_bands(bands: list[Band], max_bands: int) -> list[Band]:
    bands = list(bands)
    while len(bands) > max_bands:
        gaps = [next_band.start - band.end for band, next_band in pairwise(bands)]
        number = gaps.index(min(gaps))
        first_band, second_band = bands[number : number + 2]
        bands[number : number + 2] = [
            replace(first_band, name=first_band.name or second_band.name, end=second_band.end, tensor=None)
        ]
    return bands


def _name_bands(bands: list[Band]) -> list[Band]:
    """Names for bands without one, and a part's distance from its origin where several have one name."""
    names = [band.name for band in bands]
    named_bands, ranges = [], 0
    for band in bands:
        if not band.name:
            named_bands.append(replace(band, name=f"range {ranges}", unnamed=True))
            ranges += 1
        elif names.count(band.name) > 1 and band.start > band.origin and band.tensor is None:
            named_bands.append(replace(band, name=f"{band.name} +{band.start - band.origin:#x}"))
        else:
            named_bands.append(band)
    return named_bands


@dataclass(frozen=True, slots=True)
class Strip:
    """A band, or the part of it that is visible, in rows ``top`` to before ``top + rows``."""

    band: int
    top: int
    rows: int
    start: int
    end: int

    def address(self, row: int) -> int:
        """The first byte of a row, counted from the first of all strips."""
        return self.start + (row - self.top) * (self.end - self.start) // self.rows


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
        number = bisect_right(self.bands, address, key=lambda band: band.start) - 1
        return number if number >= 0 and address < self.bands[number].end else None

    def position(self, address: int) -> float:
        """Return the position of an address on the axis; one between bands is at the start of the next."""
        number = min(bisect_right(self.bands, address, key=lambda band: band.end), len(self.bands) - 1)
        band, band_top, band_bottom = self.bands[number], *self._edges[number : number + 2]
        return band_top + min(max((address - band.start) / band.size, 0.0), 1.0) * (band_bottom - band_top)

    def address(self, position: float) -> int:
        """The address at a place of the axis."""
        number = min(max(bisect_right(self._edges, position) - 1, 0), len(self.bands) - 1)
        band, band_top, band_bottom = self.bands[number], *self._edges[number : number + 2]
        share = min(max((position - band_top) / (band_bottom - band_top), 0.0), 1.0)
        return min(band.start + int(share * band.size), band.end - 1)

    def strips(self, top_edge: float, bottom_edge: float, rows: int) -> list[Strip]:
        """Return the part from ``top_edge`` to ``bottom_edge``, positions on the axis, in at most ``rows`` rows.

        There is an empty row between bands if ``rows`` are enough.
        """
        visible_parts = []
        for number, band in enumerate(self.bands):
            band_top, band_bottom = self._edges[number : number + 2]
            if band_top < bottom_edge and band_bottom > top_edge:
                start = band.start + round(max(top_edge - band_top, 0.0) / (band_bottom - band_top) * band.size)
                start = min(start, band.end - 1)  # the last byte of a band of few
                stop = band.start + round(min((bottom_edge - band_top) / (band_bottom - band_top), 1.0) * band.size)
                visible_parts.append(
                    (number, start, max(stop, start + 1), min(band_bottom, bottom_edge) - max(band_top, top_edge))
                )
        visible_parts = visible_parts[:rows]
        gap_rows = 1 if rows >= 3 * len(visible_parts) else 0
        heights = (
            _share_rows(rows - gap_rows * (len(visible_parts) - 1), [part[3] for part in visible_parts])
            if visible_parts
            else []
        )
        strips, top = [], 0
        for (number, start, stop, _), height in zip(visible_parts, heights, strict=True):
            height = max(min(height, -(-(stop - start) // MIN_ROW_BYTES)), 1)
            strips.append(Strip(number, top, height, start, stop))
            top += height + gap_rows
        return strips


def _share_rows(rows: int, weights: list[float]) -> list[int]:
    """``rows`` shared by weight, at least one each."""
    total = sum(weights) or 1.0
    fractional_rows = [weight / total * rows for weight in weights]
    counts = [max(int(share), 1) for share in fractional_rows]
    while sum(counts) > rows:
        counts[counts.index(max(counts))] -= 1
    by_remainder = sorted(range(len(counts)), key=lambda i: counts[i] - fractional_rows[i])
    for i in (by_remainder * (rows // len(by_remainder) + 1))[: rows - sum(counts)]:
        counts[i] += 1
    return counts


def row_edges(strips: Sequence[Strip], dots: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The bytes of each row of dots, ``dots`` to a row: lows and highs, u8, ascending.

    Edges within a strip are rounded to a power of two bytes, at most an eighth of a row of dots: quick to find.
    """
    row_starts, row_ends = [], []
    for strip in strips:
        count = strip.rows * dots
        step = (strip.end - strip.start) // count // 8
        grain = 1 << max(step.bit_length() - 1, 0)
        inner = strip.start + np.arange(1, count, dtype=np.int64) * (strip.end - strip.start) // count
        edges = np.concatenate(([strip.start], inner // grain * grain, [strip.end])).clip(strip.start, strip.end)
        row_starts.append(edges[:-1])
        row_ends.append(edges[1:])
    if not row_starts:
        return np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.uint64)
    return np.concatenate(row_starts).astype(np.uint64), np.concatenate(row_ends).astype(np.uint64)


@dataclass(frozen=True, slots=True)
class Window:
    """Cycles ``start`` to before ``end``, and the memory from ``top`` to ``bottom`` on an ``AddressAxis``."""

    start: float
    end: float
    top: float = 0.0
    bottom: float = 1.0

    @property
    def cycles(self) -> float:
        return self.end - self.start

    def zoomed(self, factor: float, fixed_time: float) -> Window:
        """``factor`` times as many cycles, ``fixed_time`` staying where it is."""
        return replace(
            self,
            start=fixed_time - (fixed_time - self.start) * factor,
            end=fixed_time + (self.end - fixed_time) * factor,
        )

    def zoomed_rows(self, factor: float, position: float) -> Window:
        """``factor`` times as much memory, ``position`` staying where it is."""
        return replace(
            self, top=position - (position - self.top) * factor, bottom=position + (self.bottom - position) * factor
        )

    def shifted(self, cycles: float, memory: float) -> Window:
        """Return the window with the same extent elsewhere."""
        return Window(self.start + cycles, self.end + cycles, self.top + memory, self.bottom + memory)

    def clamped(self, end: float) -> Window:
        """Moved, and where it is too large cut, to lie from cycle 0 to ``end`` and within the axis."""
        start, stop = _fit_range(self.start, self.end, end)
        top, bottom = _fit_range(self.top, self.bottom, 1.0)
        return Window(start, stop, top, bottom)


def _fit_range(start: float, stop: float, end: float) -> tuple[float, float]:
    if stop - start >= end:
        return 0.0, end
    if start < 0:
        return 0.0, stop - start
    if stop > end:
        return end - (stop - start), end
    return start, stop
