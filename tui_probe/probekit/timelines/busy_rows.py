"""Busy fraction of timeline rows per stretch of time, by how long blocks take against their median.

For the intervals of a row, the cycles that lie before a time t are::

    covered(t) = sum over starts before t of (t - start) - sum over ends before t of (t - end)
               = t × (starts before t - ends before t) - (sum of those starts - sum of those ends)

so that two searches in sorted arrays and two looks at cumulative sums give them, exactly, in integers. Intervals may
overlap: then cycles count once for each. Rows lie one after another in one array, each in its own range of keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.records.distribution import distribution

if TYPE_CHECKING:
    from numpy.typing import NDArray

MEDIAN_TOLERANCE: Final = 0.1
"""Part of the median by which a duration may differ and still counts as about the median."""
ROLES: Final = ("soft", "hue0", "hue1", "bad")
STROKES: Final = "─━══"
"""Strokes of durations that are shorter than the median, about as long, longer, and flagged; these have a ``!``,
too.
"""
OUTLIER_GRADE: Final = 3


class BusyRows:
    """Intervals in rows 0 to ``rows`` - 1, prepared for questions about any window of time.

    ``start`` and ``end`` (i8, 0 <= start <= end) are cycles, ``row`` (integers) the row of each. 32 bytes an interval.
    """

    def __init__(self, start: NDArray[np.int64], end: NDArray[np.int64], row: NDArray[Any], rows: int) -> None:
        self.rows = rows
        self.span = int(end.max(initial=0)) + 2
        base = row.astype(np.int64) * self.span
        self._starts, self._ends = np.sort(base + start), np.sort(base + end)
        offsets = np.repeat(np.arange(rows, dtype=np.int64) * self.span, np.bincount(row, minlength=rows))
        self._start_sums, self._end_sums = _sums(self._starts - offsets), _sums(self._ends - offsets)

    def covered(self, first: int, count: int, edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """Cycles of intervals between neighbouring edges, shape (count, len(edges) - 1), rows from ``first`` on.

        ``edges`` (i8) are ascending cycles of any sign.
        """
        begun, ended = self._before(first, count, edges)
        clipped = np.clip(edges, 0, self.span - 1)
        total = clipped * (begun - ended) - (self._start_sums[begun] - self._end_sums[ended])
        covered: NDArray[np.int64] = np.diff(total, axis=1)
        return covered

    def events(self, first: int, count: int, edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """Intervals that begin between neighbouring edges (the left edge belongs to it), shape as ``covered``."""
        keys = self._keys(first, count, edges)
        begun: NDArray[np.int64] = np.diff(np.searchsorted(self._starts, keys), axis=1)
        return begun

    def touching(self, first: int, count: int, begin: int, end: int) -> NDArray[np.int64]:
        """Intervals of each row that have a cycle in the window, or begin in it (i8)."""
        begun = np.searchsorted(self._starts, self._keys(first, count, np.array([end])))
        ended = np.searchsorted(self._ends, self._keys(first, count, np.array([begin])), side="right")
        between: NDArray[np.int64] = (begun - ended)[:, 0]
        return between

    def _before(self, first: int, count: int, edges: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Count the starts and ends of this and all earlier rows before each edge."""
        keys = self._keys(first, count, edges)
        return np.searchsorted(self._starts, keys), np.searchsorted(self._ends, keys)

    def _keys(self, first: int, count: int, edges: NDArray[np.int64]) -> NDArray[np.int64]:
        rows = np.arange(first, first + count, dtype=np.int64)[:, np.newaxis]
        keys: NDArray[np.int64] = rows * self.span + np.clip(edges, 0, self.span - 1)
        return keys


def _sums(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sums of the first 0, 1, 2 … values."""
    sums = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, out=sums[1:])
    return sums


@dataclass(frozen=True, slots=True)
class LengthGrades:
    """The ``median`` in cycles, and the ``fence`` beyond which one stands out."""

    median: float
    fence: float

    def grades(self, cycles: NDArray[Any]) -> NDArray[np.uint8]:
        """A place in ``ROLES`` for each of some durations, same shape."""
        grades: NDArray[np.uint8] = np.digitize(
            cycles, (self.median * (1 - MEDIAN_TOLERANCE), self.median * (1 + MEDIAN_TOLERANCE))
        ).astype("u1")
        grades[cycles > self.fence] = OUTLIER_GRADE
        return grades


def length_grades(cycles: NDArray[Any]) -> LengthGrades:
    """Return the grades for some durations; without any, nothing is flagged."""
    spread = distribution(cycles)
    return LengthGrades(0.0, float("inf")) if spread is None else LengthGrades(spread.median, spread.fence)


class BusyByLength:
    """``BusyRows`` of the intervals of each grade: together they are as large as one of all."""

    def __init__(
        self, start: NDArray[np.int64], end: NDArray[np.int64], row: NDArray[Any], rows: int, lengths: LengthGrades
    ) -> None:
        grades = lengths.grades(end - start)
        parts = [grades == grade for grade in range(len(ROLES))]
        self._parts = [BusyRows(start[part], end[part], row[part], rows) for part in parts]

    def covered(self, first: int, count: int, edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """Cycles of intervals of each grade between neighbouring edges, shape (grades, count, len(edges) - 1)."""
        return np.stack([part.covered(first, count, edges) for part in self._parts])

    def touching(self, first: int, count: int, begin: int, end: int) -> NDArray[np.int64]:
        """Intervals of each row that have a cycle in the window, or begin in it (i8)."""
        found: NDArray[np.int64] = sum(
            (part.touching(first, count, begin, end) for part in self._parts), np.zeros(count, dtype=np.int64)
        )
        return found
