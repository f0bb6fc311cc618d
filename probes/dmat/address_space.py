"""The memory that a launch touched, as a few *bands*: one for each tensor or allocation, gaps left out.

What is known of the memory decides: tensors that the program named, parameters of the kernel that point into an
allocation, allocations of the log, and where there is nothing of these, the addresses themselves, split where there is
a large gap. An allocation may be a framework's pool with many tensors in it, so it is split at the parameters that
point into it, and at gaps in use that are larger than what is used beside them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from tui_probe.trace.allocations import LaunchMemory
    from tui_probe.trace.tensors import Tensor

_GAP: Final = 2 << 20
"""Bytes that nobody touched between two ranges that are not known to belong together."""
_SMALL_GAP: Final = 64 << 10
"""The same within an allocation."""
_MOST: Final = 16


@dataclass(frozen=True, slots=True)
class Band:
    """Bytes ``start`` to before ``end``, which are in use; offsets in it are counted from ``origin``."""

    name: str
    start: int
    end: int
    origin: int
    tensor: Tensor | None = None

    @property
    def size(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class _Place:
    """Something that begins at an address: ``name`` is "" for the mere beginning of an allocation."""

    start: int
    end: int
    name: str
    tensor: Tensor | None = None


def bands_of(
    runs: NDArray[np.uint64], memory: LaunchMemory, tensors: Sequence[Tensor] = (), most: int = _MOST
) -> list[Band]:
    """Bands by ascending address that hold all ``runs`` (u8, shape (runs, 2), ascending and apart), at most ``most``.

    Where there would be more, the nearest become one.
    """
    places = _places(memory, tensors)
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
    return _named(_fewer(split, most))


def _places(memory: LaunchMemory, tensors: Sequence[Tensor]) -> list[_Place]:
    """Tensors, parameters and allocations by ascending address; of those at one address the best known."""
    found: dict[int, _Place] = {}
    for number, each in enumerate(memory.allocations):
        found[each.start] = _Place(each.start, each.end, f"allocation {number}")
    pointers: dict[int, list[str]] = {}
    for name, value in memory.pointers():
        # Without a log of allocations a number counts as an address if it is as large as those of devices are.
        if memory.allocation_at(value) is not None or (not memory.allocations and 1 << 32 <= value < 1 << 57):
            pointers.setdefault(value, []).append(name)
    for value, names in pointers.items():
        inside = memory.allocation_at(value)
        end = value + (1 << 40) if inside is None else inside.end
        found[value] = _Place(value, end, f"param {', '.join(names)}")
    starts = sorted(found)
    for tensor in tensors:
        for start in starts[bisect_right(starts, tensor.start) : bisect_left(starts, tensor.end)]:
            found.pop(start, None)  # a pointer to a part of it
        found[tensor.start] = _Place(tensor.start, tensor.end, tensor.name, tensor)
    return [found[start] for start in sorted(found)]


def _cut(low: int, high: int, places: list[_Place]) -> Iterator[tuple[_Place | None, int, int]]:
    """The bytes from ``low`` to before ``high`` in pieces that belong to one place each, or to none."""
    at = low
    number = bisect_right(places, low, key=lambda each: each.start) - 1
    while at < high:
        place = places[number] if number >= 0 and at < places[number].end else None
        following = places[number + 1].start if number + 1 < len(places) else high
        end = min(high, following if place is None else min(following, place.end))
        yield place, at, end
        at = end
        number += at == following


def _goes_on(band: Band, place: _Place | None, low: int) -> bool:
    """Whether bytes from ``low`` on, in ``place``, belong to the band before them."""
    if place is None:
        return band.name == "" and low - band.end < _GAP
    return band.origin == place.start and band.tensor is place.tensor


def _split_at_gaps(band: Band, runs: NDArray[np.uint64]) -> list[Band]:
    """A band in parts, where the gaps between them are larger than the parts beside them."""
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
    if len(parts) > _MOST // 2:
        return [band]
    return [replace(band, start=low, end=high) for low, high in parts]


def _fewer(bands: list[Band], most: int) -> list[Band]:
    bands = list(bands)
    while len(bands) > most:
        gaps = [after.start - before.end for before, after in pairwise(bands)]
        place = gaps.index(min(gaps))
        one, other = bands[place : place + 2]
        bands[place : place + 2] = [replace(one, name=one.name or other.name, end=other.end, tensor=None)]
    return bands


def _named(bands: list[Band]) -> list[Band]:
    """Names for bands without one, and a part's distance from its origin where several have one name."""
    names = [band.name for band in bands]
    found, ranges = [], 0
    for band in bands:
        if not band.name:
            found.append(replace(band, name=f"range {ranges}"))
            ranges += 1
        elif names.count(band.name) > 1 and band.start > band.origin and band.tensor is None:
            found.append(replace(band, name=f"{band.name} +{band.start - band.origin:#x}"))
        else:
            found.append(band)
    return found
