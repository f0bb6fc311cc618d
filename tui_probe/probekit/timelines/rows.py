"""Rows of a timeline: SMs, slots or warps, their order and selection, and their busy cycles in a window of time.

:class:`BusyRows` computes busy cycles with two searches per edge of the window, so that a drawing of a million
intervals takes as long as one of a hundred.
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
ORDER_LABELS: Final = {"number": "by number", "finish": "by finish", "start": "by start"}
ALL: Final = -1
"""Slot or warp of a row that has all slots of an SM, or all warps of a slot."""
MEDIAN_TOLERANCE: Final = 0.1
"""Part of the median by which a duration may differ and still counts as about the median."""
GRADES: Final = 4
"""Number of grades of a duration: shorter than the median, about as long, longer, and flagged."""
OUTLIER_GRADE: Final = 3


@dataclass(frozen=True, slots=True)
class RowSelection:
    """Selected rows: ``sm`` None selects all, ``rows_per_line`` is the number of rows that share a line."""

    level: RowLevel = "SM"
    order: RowOrder = "number"
    sm: int | None = None
    rows_per_line: int = 1


@dataclass(frozen=True, slots=True)
class TimelineRows:
    """Rows from top to bottom. ``sm``, ``slot`` and ``warp`` (i4) identify each; ``ALL`` stands for all of an SM or
    slot.

    ``intervals`` are sorted by row, then start; those of row r are ``offsets[r]`` to ``offsets[r + 1]``. ``capacity``
    (i4) is how many of them a *line* can hold at the same time, ``busy_cycles`` their cycles by line and length.
    ``is_flagged`` (bool) is true for rows with a flagged interval.
    """

    selection: RowSelection
    sm: NDArray[np.int32]
    slot: NDArray[np.int32]
    warp: NDArray[np.int32]
    intervals: Intervals
    offsets: NDArray[np.int64]
    capacity: NDArray[np.int32]
    busy_cycles: BusyByLength
    is_flagged: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.sm)

    @property
    def lines(self) -> int:
        """Number of lines that show all rows."""
        return len(self.capacity)

    def rows_of_line(self, line: int) -> range:
        """Return the rows of a line."""
        return range(line * self.selection.rows_per_line, min((line + 1) * self.selection.rows_per_line, len(self)))

    def is_empty(self, row: int) -> bool:
        return bool(self.offsets[row] == self.offsets[row + 1])

    def interval_bounds(self, line: int) -> tuple[int, int]:
        """Return the range of the intervals of a line."""
        rows = self.rows_of_line(line)
        return int(self.offsets[rows.start]), int(self.offsets[rows.stop])

    def label(self, line: int) -> str:
        """Return ``SM 3``, ``SM 3.1``, ``SM 3.1 w0``, or the first and last of several rows."""
        rows = self.rows_of_line(line)
        first_name = self._row_name(rows.start)
        if len(rows) == 1:
            return first_name
        if self.selection.order != "number":
            return f"{first_name} +{len(rows) - 1}"
        return f"{first_name}–{self._row_name(rows.stop - 1).removeprefix('SM ')}"

    def _row_name(self, row: int) -> str:
        name = f"SM {self.sm[row]}"
        if self.slot[row] != ALL:
            name += f".{self.slot[row]}"
        return name if self.warp[row] == ALL else f"{name} w{self.warp[row]}"

    def interval_at(self, line: int, time: float, sm: int | None = None) -> int | None:
        """Return the interval of a line that runs at a time, the last to start; else the next one; else its last.

        ``sm`` restricts the search to one SM.
        """
        numbers = np.arange(*self.interval_bounds(line))
        if sm is not None:
            numbers = numbers[self.intervals.sm[numbers] == sm]
        if not len(numbers):
            return None
        start, end = self.intervals.start[numbers], self.intervals.end[numbers]
        running_indices = np.flatnonzero((start <= time) & (end > time))
        if len(running_indices):
            return int(numbers[running_indices[start[running_indices].argmax()]])
        later_indices = np.flatnonzero(start > time)
        return int(numbers[later_indices[start[later_indices].argmin()] if len(later_indices) else end.argmax()])

    def place_of_line(self, line: int) -> tuple[int, int, int]:
        """Return SM, slot and warp of the first row of a line."""
        row = self.rows_of_line(line).start
        return int(self.sm[row]), int(self.slot[row]), int(self.warp[row])

    def line_of_interval(self, index: int) -> int:
        """Return the line of an interval."""
        return (int(np.searchsorted(self.offsets, index, side="right")) - 1) // self.selection.rows_per_line

    def line_of_place(self, sm: int, slot: int, warp: int) -> int:
        """Return the line of a row, else of the first row of its slot, else of its SM, else the first line."""
        of_sm = self.sm == sm
        of_slot = of_sm & (self.slot == slot)
        for matching in (of_slot & (self.warp == warp), of_slot, of_sm):
            if matching.any():
                return int(matching.argmax()) // self.selection.rows_per_line
        return 0

    def find_interval(self, block: int, warp: int | None = None, line: int | None = None) -> int | None:
        """Return the interval of a block and warp, in a line if one is given; without the warp the longest of the
        block.

        None if it is not among the rows.
        """
        first, last = (0, len(self.intervals)) if line is None else self.interval_bounds(line)
        indices = first + np.flatnonzero(self.intervals.block[first:last] == block)
        if not len(indices):
            return None
        of_warp = indices[self.intervals.warp[indices] == warp]
        return int(of_warp[0]) if len(of_warp) else int(indices[self.intervals.duration[indices].argmax()])

    def place_of_interval(self, index: int) -> tuple[int, int, int]:
        """Return SM, slot and warp of an interval."""
        intervals = self.intervals
        return int(intervals.sm[index]), int(intervals.slot[index]), int(intervals.warp[index])

    def longest_interval(self) -> int | None:
        """Return the longest interval, the first by SM, slot and start; None if all are equally long."""
        intervals, lengths = self.intervals, self.intervals.duration
        if not len(lengths) or lengths.max() == lengths.min():
            return None
        longest_indices = np.flatnonzero(lengths == lengths.max())
        return int(
            longest_indices[
                np.lexsort(
                    (
                        intervals.start[longest_indices],
                        intervals.warp[longest_indices],
                        intervals.slot[longest_indices],
                        intervals.sm[longest_indices],
                    )
                )[0]
            ]
        )

    def visible_time(self, index: int) -> float:
        """Return a time at which its line shows an interval, if there is one; else its start."""
        start, end, line = (
            int(self.intervals.start[index]),
            int(self.intervals.end[index]),
            self.line_of_interval(index),
        )
        times = (float(end - 1), (start + end) / 2, float(start))
        return next((time for time in times if self.interval_at(line, time) == index), float(start))

    def next_start(self, line: int, time: float) -> int | None:
        """Return the first start of an interval of a line after a time, in cycles."""
        first, last = self.interval_bounds(line)
        later_starts = self.intervals.start[first:last]
        later_starts = later_starts[later_starts > time]
        return int(later_starts.min()) if len(later_starts) else None

    def previous_start(self, line: int, time: float) -> int | None:
        """Return the last start of an interval of a line before a time, in cycles."""
        first, last = self.interval_bounds(line)
        earlier_starts = self.intervals.start[first:last]
        earlier_starts = earlier_starts[earlier_starts < time]
        return int(earlier_starts.max()) if len(earlier_starts) else None


def _time_bounds(
    place: NDArray[np.int64], intervals: Intervals, count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first start and the last end at each place; the largest number and -1 without intervals."""
    last_ends, first_starts = (np.full(count, value, dtype=np.int64) for value in (-1, np.iinfo(np.int64).max))
    np.maximum.at(last_ends, place, intervals.end)
    np.minimum.at(first_starts, place, intervals.start)
    return first_starts, last_ends


def timeline_rows(timeline: Timeline, selection: RowSelection, lengths: LengthGrades) -> TimelineRows:
    """Return the selected rows. Intervals beyond the fence of ``lengths`` are flagged."""
    places = _row_places(timeline, selection)
    intervals = timeline.warps if selection.level == "warp" else timeline.blocks
    if selection.sm is not None:
        intervals = intervals.take(intervals.sm == selection.sm)
    place_of_interval = _row_numbers(timeline, selection, intervals)
    count = len(places[0])
    if selection.level == "SM":
        by_place = order_by(place_of_interval, intervals.start)
        intervals, place_of_interval = intervals.take(by_place), place_of_interval[by_place]
    order = _row_order(selection.order, *_time_bounds(place_of_interval, intervals, count))
    row_of_place = np.empty(count, dtype=np.int64)
    row_of_place[order] = np.arange(count)
    row_of_interval = row_of_place[place_of_interval]
    if selection.order != "number":
        by_row = np.argsort(row_of_interval, kind="stable")
        intervals, row_of_interval = intervals.take(by_row), row_of_interval[by_row]
    lines = -(-count // selection.rows_per_line)
    sm, slot, warp = (values[order] for values in places)
    parallel_blocks = (
        _slots_per_sm(timeline)[np.searchsorted(timeline.sms, sm)]
        if selection.level == "SM"
        else np.ones(count, np.int32)
    )
    return TimelineRows(
        selection=selection,
        sm=sm,
        slot=slot,
        warp=warp,
        intervals=intervals,
        offsets=np.searchsorted(row_of_interval, np.arange(count + 1)).astype(np.int64),
        capacity=np.add.reduceat(parallel_blocks, np.arange(lines) * selection.rows_per_line).astype(np.int32),
        busy_cycles=BusyByLength(
            intervals.start, intervals.end, row_of_interval // selection.rows_per_line, lines, lengths
        ),
        is_flagged=np.bincount(row_of_interval[intervals.duration > lengths.fence], minlength=count).astype(np.bool_),
    )


def _row_places(
    timeline: Timeline, selection: RowSelection
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Return SM, slot and warp of each row, by number. An idle SM has one row."""
    sm_slots = slice(None) if selection.sm is None else np.flatnonzero(timeline.sms == selection.sm)
    sms, slots = timeline.sms[sm_slots], np.maximum(timeline.slots[sm_slots], 1)
    if selection.level == "SM":
        return sms, np.full(len(sms), ALL, np.int32), np.full(len(sms), ALL, np.int32)
    sm, slot = np.repeat(sms, slots), _numbers_within(slots)
    if selection.level == "slot":
        return sm, slot, np.full(len(sm), ALL, np.int32)
    warps = timeline.warps_per_block
    return np.repeat(sm, warps), np.repeat(slot, warps), np.tile(np.arange(warps, dtype=np.int32), len(sm))


def _slots_per_sm(timeline: Timeline) -> NDArray[np.int32]:
    """Return the slots of each SM; an idle SM had the maximum number."""
    return np.where(timeline.slots > 0, timeline.slots, timeline.slots.max())


def _numbers_within(counts: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return 0 to count - 1 for each count, concatenated."""
    group_ends = np.cumsum(counts)
    return (np.arange(group_ends[-1]) - np.repeat(group_ends - counts, counts)).astype(np.int32)


def _row_numbers(timeline: Timeline, selection: RowSelection, intervals: Intervals) -> NDArray[np.int64]:
    """Return the row number of each interval."""
    if selection.sm is not None:
        rows_before_sm = np.zeros(len(intervals), dtype=np.int64)
    elif selection.level == "SM":
        return np.searchsorted(timeline.sms, intervals.sm).astype(np.int64)
    else:
        slots = np.maximum(timeline.slots, 1).astype(np.int64)
        rows_before_sm = (np.cumsum(slots) - slots)[np.searchsorted(timeline.sms, intervals.sm)]
    if selection.level == "SM":
        return rows_before_sm
    slot = rows_before_sm + intervals.slot
    return slot if selection.level == "slot" else slot * timeline.warps_per_block + intervals.warp


def _row_order(order: RowOrder, first_starts: NDArray[np.int64], last_ends: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the numbers of rows from top to bottom; empty rows last."""
    if order == "finish":
        return np.argsort(-last_ends, kind="stable")
    if order == "start":
        return np.argsort(first_starts, kind="stable")
    return np.arange(len(first_starts))


class BusyRows:
    """Intervals in rows 0 to ``rows`` - 1, indexed for windows of time.

    For the intervals of a row, the cycles that lie before a time t are::

        covered(t) = sum over starts before t of (t - start) - sum over ends before t of (t - end)
                   = t × (starts before t - ends before t) - (sum of those starts - sum of those ends)

    so two searches in sorted arrays and two lookups in cumulative sums give them exactly, in integers. Cycles of
    overlapping intervals count once per interval. Rows lie one after another in one array, each in its own range of
    keys.

    ``start`` and ``end`` (i8, 0 <= start <= end) are cycles, ``row`` (integers) the row of each. 32 bytes an interval.
    """

    def __init__(self, start: NDArray[np.int64], end: NDArray[np.int64], row: NDArray[Any], rows: int) -> None:
        self.rows = rows
        self.span = int(end.max(initial=0)) + 2
        base = row.astype(np.int64) * self.span
        self._start_keys, self._end_keys = np.sort(base + start), np.sort(base + end)
        offsets = np.repeat(np.arange(rows, dtype=np.int64) * self.span, np.bincount(row, minlength=rows))
        self._start_sums, self._end_sums = (
            _prefix_sums(self._start_keys - offsets),
            _prefix_sums(self._end_keys - offsets),
        )

    def covered_cycles(self, first_row: int, count: int, edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """Cycles of intervals between neighbouring edges, shape (count, len(edges) - 1), rows from ``first_row`` on.

        ``edges`` (i8) are ascending cycles of any sign.
        """
        starts_before, ends_before = self._events_before(first_row, count, edges)
        times = np.clip(edges, 0, self.span - 1)
        total = times * (starts_before - ends_before) - (self._start_sums[starts_before] - self._end_sums[ends_before])
        covered: NDArray[np.int64] = np.diff(total, axis=1)
        return covered

    def count_starts(self, first_row: int, count: int, edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count intervals that start between neighboring edges (left edge included), shape as ``covered_cycles``."""
        keys = self._keys(first_row, count, edges)
        start_counts: NDArray[np.int64] = np.diff(np.searchsorted(self._start_keys, keys), axis=1)
        return start_counts

    def count_touching(self, first_row: int, count: int, begin: int, end: int) -> NDArray[np.int64]:
        """Count the intervals of each row that have a cycle in the window, or start in it (i8)."""
        starts_before_end = np.searchsorted(self._start_keys, self._keys(first_row, count, np.array([end])))
        ends_before_begin = np.searchsorted(
            self._end_keys, self._keys(first_row, count, np.array([begin])), side="right"
        )
        interval_counts: NDArray[np.int64] = (starts_before_end - ends_before_begin)[:, 0]
        return interval_counts

    def _events_before(
        self, first_row: int, count: int, edges: NDArray[np.int64]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Count the starts and ends of this and all earlier rows before each edge."""
        keys = self._keys(first_row, count, edges)
        return np.searchsorted(self._start_keys, keys), np.searchsorted(self._end_keys, keys)

    def _keys(self, first_row: int, count: int, edges: NDArray[np.int64]) -> NDArray[np.int64]:
        rows = np.arange(first_row, first_row + count, dtype=np.int64)[:, np.newaxis]
        keys: NDArray[np.int64] = rows * self.span + np.clip(edges, 0, self.span - 1)
        return keys


def _prefix_sums(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sums of the first 0, 1, 2 … values, shape (len(values) + 1,)."""
    sums = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, out=sums[1:])
    return sums


@dataclass(frozen=True, slots=True)
class LengthGrades:
    """The ``median`` in cycles, and the ``fence`` in cycles beyond which a duration is flagged."""

    median: float
    fence: float

    def grades(self, cycles: NDArray[Any]) -> NDArray[np.uint8]:
        """Return the grade of each duration, 0 to ``GRADES`` - 1 (u1), same shape."""
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
    """``BusyRows`` per grade; together they are as large as one for all intervals."""

    def __init__(
        self, start: NDArray[np.int64], end: NDArray[np.int64], row: NDArray[Any], rows: int, lengths: LengthGrades
    ) -> None:
        grades = lengths.grades(end - start)
        parts = [grades == grade for grade in range(GRADES)]
        self._rows_by_grade = [BusyRows(start[part], end[part], row[part], rows) for part in parts]

    def covered_cycles(self, first_row: int, count: int, edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """Cycles of intervals of each grade between neighbouring edges, shape (grades, count, len(edges) - 1)."""
        return np.stack([part.covered_cycles(first_row, count, edges) for part in self._rows_by_grade])

    def count_touching(self, first_row: int, count: int, begin: int, end: int) -> NDArray[np.int64]:
        """Count the intervals of each row that have a cycle in the window, or start in it (i8)."""
        counts: NDArray[np.int64] = sum(
            (part.count_touching(first_row, count, begin, end) for part in self._rows_by_grade),
            np.zeros(count, dtype=np.int64),
        )
        return counts
