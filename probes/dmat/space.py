"""The vertical axis: bands of memory one below the other, each with a share of the height, gaps left out.

A place on the axis is a number from 0 to 1. A band's share grows with its size, but even the smallest can be seen.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from .address_space import Band

LEAST_BYTES: Final = 4
"""Bytes of a row at the closest: a word."""
_LEAST_SHARE: Final = 0.5
"""The share of the smallest band, of what each would have if all were alike."""


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


class Space:
    """Bands on an axis from 0 to 1."""

    def __init__(self, bands: Sequence[Band]) -> None:
        self.bands = tuple(bands)
        total = sum(band.size for band in bands) or 1
        shares = [max(band.size / total, _LEAST_SHARE / len(bands)) for band in bands]
        self._edges = [0.0]
        for share in shares:
            self._edges.append(self._edges[-1] + share / sum(shares))

    def band_of(self, address: int) -> int | None:
        """The number of the band that an address lies in."""
        place = bisect_right(self.bands, address, key=lambda band: band.start) - 1
        return place if place >= 0 and address < self.bands[place].end else None

    def place(self, address: int) -> float:
        """Where on the axis an address is; one between bands is where the next begins."""
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
        """What is visible from ``low`` to ``high``, in at most ``rows`` rows; one is between bands if they fit."""
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
        found, top = [], 0
        for (number, start, stop, _), height in zip(cuts, heights, strict=True):
            height = max(min(height, -(-(stop - start) // LEAST_BYTES)), 1)
            found.append(Strip(number, top, height, start, stop))
            top += height + between
        return found


def _shared(rows: int, weights: list[float]) -> list[int]:
    """``rows`` shared by weight, at least one each."""
    total = sum(weights) or 1.0
    exact = [weight / total * rows for weight in weights]
    found = [max(int(share), 1) for share in exact]
    while sum(found) > rows:
        found[found.index(max(found))] -= 1
    rest = sorted(range(len(found)), key=lambda i: found[i] - exact[i])
    for i in (rest * (rows // len(rest) + 1))[: rows - sum(found)]:
        found[i] += 1
    return found


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
