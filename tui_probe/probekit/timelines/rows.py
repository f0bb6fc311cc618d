"""Rows of a timeline: SMs, slots or warps, their order and selection, and how long they are busy in a window of time.

:class:`BusyRows` answers the second question for any window in the time of two searches per edge, so that a drawing
takes as long for a million intervals as for a hundred.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from tui_probe.records.distribution import distribution
from tui_probe.records.timeline import order_by

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.records.timeline import Intervals, Timeline

RowLevel = Literal["SM", "slot", "warp"]
RowOrder = Literal["number", "finish", "start"]
LEVELS: Final[tuple[RowLevel, ...]] = ("SM", "slot", "warp")
ORDERS: Final[tuple[RowOrder, ...]] = ("number", "finish", "start")
ORDER_WORDS: Final = {"number": "by number", "finish": "by finish", "start": "by start"}
ALL_OF_THEM: Final = -1
"""Slot or warp of a row that has all slots of an SM, or all warps of a slot."""
MEDIAN_TOLERANCE: Final = 0.1
"""Part of the median by which a duration may differ and still counts as about the median."""
GRADES: Final = 4
"""Durations shorter than the median, about as long, longer, and flagged."""
OUTLIER_GRADE: Final = 3


@dataclass(frozen=True, slots=True)
class RowSelection:
    """Selected rows: ``sm`` None selects all, ``together`` is the number of rows that share a line."""

    level: RowLevel = "SM"
    order: RowOrder = "number"
    sm: int | None = None
    together: int = 1


@dataclass(frozen=True, slots=True)
class TimelineRows:
    """Rows from top to bottom. ``sm``, ``slot`` and ``warp`` (i4) say what each is; ``ALL_OF_THEM`` is all of them.

    ``intervals`` are sorted by row, then start; those of row r are ``offsets[r]`` to ``offsets[r + 1]``. ``capacity``
    (i4) is how many of them a *line* can hold at the same time, ``busy`` their cycles by line and length. ``marked``
    (bool) tells the rows that hold an interval which stands out.
    """

    choice: RowSelection
    sm: NDArray[np.int32]
    slot: NDArray[np.int32]
    warp: NDArray[np.int32]
    intervals: Intervals
    offsets: NDArray[np.int64]
    capacity: NDArray[np.int32]
    busy: BusyByLength
    marked: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.sm)

    @property
    def lines(self) -> int:
        """Lines that show all rows."""
        return len(self.capacity)

    def of_line(self, line: int) -> range:
        """The rows of a line."""
        return range(line * self.choice.together, min((line + 1) * self.choice.together, len(self)))

    def empty(self, row: int) -> bool:
        return bool(self.offsets[row] == self.offsets[row + 1])

    def bounds(self, line: int) -> tuple[int, int]:
        """Return the range of the intervals of a line."""
        rows = self.of_line(line)
        return int(self.offsets[rows.start]), int(self.offsets[rows.stop])

    def label(self, line: int) -> str:
        """``SM 3``, ``SM 3.1``, ``SM 3.1 w0``, or the first and last of several rows."""
        rows = self.of_line(line)
        first = self._name(rows.start)
        if len(rows) == 1:
            return first
        if self.choice.order != "number":
            return f"{first} +{len(rows) - 1}"
        return f"{first}–{self._name(rows.stop - 1).removeprefix('SM ')}"

    def _name(self, row: int) -> str:
        name = f"SM {self.sm[row]}"
        if self.slot[row] != ALL_OF_THEM:
            name += f".{self.slot[row]}"
        return name if self.warp[row] == ALL_OF_THEM else f"{name} w{self.warp[row]}"

    def at(self, line: int, time: float, sm: int | None = None) -> int | None:
        """The interval of a line that runs at a time, the latest to start; else the next one; else its last.

        Of those of one SM only, if that is given.
        """
        numbers = np.arange(*self.bounds(line))
        if sm is not None:
            numbers = numbers[self.intervals.sm[numbers] == sm]
        if not len(numbers):
            return None
        start, end = self.intervals.start[numbers], self.intervals.end[numbers]
        running = np.flatnonzero((start <= time) & (end > time))
        if len(running):
            return int(numbers[running[start[running].argmax()]])
        later = np.flatnonzero(start > time)
        return int(numbers[later[start[later].argmin()] if len(later) else end.argmax()])

    def place(self, line: int) -> tuple[int, int, int]:
        """SM, slot and warp of the first row of a line."""
        row = self.of_line(line).start
        return int(self.sm[row]), int(self.slot[row]), int(self.warp[row])

    def line_of(self, index: int) -> int:
        """The line of an interval."""
        return (int(np.searchsorted(self.offsets, index, side="right")) - 1) // self.choice.together

    def line_at(self, sm: int, slot: int, warp: int) -> int:
        """The line of a row, else of the first row of that slot, else of that SM, else the first line."""
        of_sm = self.sm == sm
        of_slot = of_sm & (self.slot == slot)
        for matching in (of_slot & (self.warp == warp), of_slot, of_sm):
            if matching.any():
                return int(matching.argmax()) // self.choice.together
        return 0

    def find(self, block: int, warp: int | None = None, line: int | None = None) -> int | None:
        """The interval of a block, in a line if one is given; of its warps that one, else the one that takes longest.

        None where it is not among the rows.
        """
        first, last = (0, len(self.intervals)) if line is None else self.bounds(line)
        indices = first + np.flatnonzero(self.intervals.block[first:last] == block)
        if not len(indices):
            return None
        of_warp = indices[self.intervals.warp[indices] == warp]
        return int(of_warp[0]) if len(of_warp) else int(indices[self.intervals.duration[indices].argmax()])

    def place_of(self, index: int) -> tuple[int, int, int]:
        """SM, slot and warp of an interval."""
        intervals = self.intervals
        return int(intervals.sm[index]), int(intervals.slot[index]), int(intervals.warp[index])

    def longest(self) -> int | None:
        """The longest interval, of those alike the first by SM, slot and start; None if all are alike."""
        intervals, lengths = self.intervals, self.intervals.duration
        if not len(lengths) or lengths.max() == lengths.min():
            return None
        most = np.flatnonzero(lengths == lengths.max())
        return int(
            most[np.lexsort((intervals.start[most], intervals.warp[most], intervals.slot[most], intervals.sm[most]))[0]]
        )

    def time_of(self, index: int) -> float:
        """A time at which an interval is what its line shows, if there is one; else when it starts."""
        start, end, line = int(self.intervals.start[index]), int(self.intervals.end[index]), self.line_of(index)
        times = (float(end - 1), (start + end) / 2, float(start))
        return next((time for time in times if self.at(line, time) == index), float(start))

    def next_start(self, line: int, time: float) -> int | None:
        """The first start of an interval of a line after a time, in cycles."""
        first, last = self.bounds(line)
        later = self.intervals.start[first:last]
        later = later[later > time]
        return int(later.min()) if len(later) else None

    def previous_start(self, line: int, time: float) -> int | None:
        """The last start of an interval of a line before a time, in cycles."""
        first, last = self.bounds(line)
        earlier = self.intervals.start[first:last]
        earlier = earlier[earlier < time]
        return int(earlier.max()) if len(earlier) else None


def _first_and_last(
    place: NDArray[np.int64], intervals: Intervals, count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first start and the last end at each place; the largest number and -1 without intervals."""
    last, first = (np.full(count, value, dtype=np.int64) for value in (-1, np.iinfo(np.int64).max))
    np.maximum.at(last, place, intervals.end)
    np.minimum.at(first, place, intervals.start)
    return first, last


def timeline_rows(timeline: Timeline, choice: RowSelection, lengths: LengthGrades) -> TimelineRows:
    """The rows that are wanted. Intervals beyond the fence of ``lengths`` stand out."""
    places = _places(timeline, choice)
    intervals = timeline.warps if choice.level == "warp" else timeline.blocks
    if choice.sm is not None:
        intervals = intervals.take(intervals.sm == choice.sm)
    place = _place_of(timeline, choice, intervals)
    count = len(places[0])
    if choice.level == "SM":
        by_place = order_by(place, intervals.start)
        intervals, place = intervals.take(by_place), place[by_place]
    order = _order(choice.order, *_first_and_last(place, intervals, count))
    row = np.empty(count, dtype=np.int64)
    row[order] = np.arange(count)
    row_of = row[place]
    if choice.order != "number":
        by_row = np.argsort(row_of, kind="stable")
        intervals, row_of = intervals.take(by_row), row_of[by_row]
    lines = -(-count // choice.together)
    sm, slot, warp = (values[order] for values in places)
    at_once = _slots(timeline)[np.searchsorted(timeline.sms, sm)] if choice.level == "SM" else np.ones(count, np.int32)
    return TimelineRows(
        choice=choice,
        sm=sm,
        slot=slot,
        warp=warp,
        intervals=intervals,
        offsets=np.searchsorted(row_of, np.arange(count + 1)).astype(np.int64),
        capacity=np.add.reduceat(at_once, np.arange(lines) * choice.together).astype(np.int32),
        busy=BusyByLength(intervals.start, intervals.end, row_of // choice.together, lines, lengths),
        marked=np.bincount(row_of[intervals.duration > lengths.fence], minlength=count).astype(np.bool_),
    )


def _places(timeline: Timeline, choice: RowSelection) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """SM, slot and warp of every row, by number. An SM that ran nothing has one row."""
    sm_slots = slice(None) if choice.sm is None else np.flatnonzero(timeline.sms == choice.sm)
    sms, slots = timeline.sms[sm_slots], np.maximum(timeline.slots[sm_slots], 1)
    if choice.level == "SM":
        return sms, np.full(len(sms), ALL_OF_THEM, np.int32), np.full(len(sms), ALL_OF_THEM, np.int32)
    sm, slot = np.repeat(sms, slots), _counted(slots)
    if choice.level == "slot":
        return sm, slot, np.full(len(sm), ALL_OF_THEM, np.int32)
    warps = timeline.warps_per_block
    return np.repeat(sm, warps), np.repeat(slot, warps), np.tile(np.arange(warps, dtype=np.int32), len(sm))


def _slots(timeline: Timeline) -> NDArray[np.int32]:
    """Slots of each SM; one that ran nothing had as many as any."""
    return np.where(timeline.slots > 0, timeline.slots, timeline.slots.max())


def _counted(counts: NDArray[np.int32]) -> NDArray[np.int32]:
    """0, 1, … for each count, one after another."""
    ends = np.cumsum(counts)
    return (np.arange(ends[-1]) - np.repeat(ends - counts, counts)).astype(np.int32)


def _place_of(timeline: Timeline, choice: RowSelection, intervals: Intervals) -> NDArray[np.int64]:
    """Return the row number of each interval."""
    if choice.sm is not None:
        before = np.zeros(len(intervals), dtype=np.int64)
    elif choice.level == "SM":
        return np.searchsorted(timeline.sms, intervals.sm).astype(np.int64)
    else:
        slots = np.maximum(timeline.slots, 1).astype(np.int64)
        before = (np.cumsum(slots) - slots)[np.searchsorted(timeline.sms, intervals.sm)]
    if choice.level == "SM":
        return before
    slot = before + intervals.slot
    return slot if choice.level == "slot" else slot * timeline.warps_per_block + intervals.warp


def _order(order: RowOrder, first: NDArray[np.int64], last: NDArray[np.int64]) -> NDArray[np.intp]:
    """The numbers of rows from top to bottom; empty rows last."""
    if order == "finish":
        return np.argsort(-last, kind="stable")
    if order == "start":
        return np.argsort(first, kind="stable")
    return np.arange(len(first))


class BusyRows:
    """Intervals in rows 0 to ``rows`` - 1, prepared for questions about any window of time.

    For the intervals of a row, the cycles that lie before a time t are::

        covered(t) = sum over starts before t of (t - start) - sum over ends before t of (t - end)
                   = t × (starts before t - ends before t) - (sum of those starts - sum of those ends)

    so that two searches in sorted arrays and two looks at cumulative sums give them, exactly, in integers. Intervals
    may overlap: then cycles count once for each. Rows lie one after another in one array, each in its own range of
    keys.

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
        """The grade of each of some durations, 0 to ``GRADES`` - 1 (u1), same shape."""
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
        parts = [grades == grade for grade in range(GRADES)]
        self._parts = [BusyRows(start[part], end[part], row[part], rows) for part in parts]

    def covered(self, first: int, count: int, edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """Cycles of intervals of each grade between neighbouring edges, shape (grades, count, len(edges) - 1)."""
        return np.stack([part.covered(first, count, edges) for part in self._parts])

    def touching(self, first: int, count: int, begin: int, end: int) -> NDArray[np.int64]:
        """Intervals of each row that have a cycle in the window, or begin in it (i8)."""
        counts: NDArray[np.int64] = sum(
            (part.touching(first, count, begin, end) for part in self._parts), np.zeros(count, dtype=np.int64)
        )
        return counts
