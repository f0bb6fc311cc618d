"""NVTX ranges of the host, projected on streams, and the ranges within others.

A kernel belongs to a range if the call that launched it lies within the range, on the same thread. On each stream the
projected range runs from the start of its first kernel to the end of its last, so what the host did meanwhile is not in
it; a range that launched nothing has no projection. An execution of a CUDA graph counts as a kernel does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, overload

import numpy as np

from tui_probe.nsight.importers.nsys_model import UNKNOWN, ProjectedRange, compact

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping

    from numpy.typing import NDArray

    from tui_probe.nsight.importers.nsys_model import Column, HostRanges, Kernels, NsysReport

    Pairs: TypeAlias = tuple[NDArray[Any], NDArray[np.int32]]
    """Ranges and kernels in them, by position: one entry per pair."""

_PAIRS_PER_CHUNK: Final = 1 << 16
"""Pairs of ranges and kernels that are made at a time."""
_ROWS_PER_CHUNK: Final = 4096
"""Rows that are objects at the same time, where all are iterated over: a file may have millions."""
_TIME_COLUMNS: Final = ("start", "end")
"""Columns from which a time before them may be subtracted: they have 64 bits."""
_COLUMNS: Final = ("row", "queue", "start", "end", "kernels", "level", "busy", "graphs")


def are_enclosed(
    start: NDArray[np.int64], end: NDArray[np.int64], outer_start: NDArray[np.int64], outer_end: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return, per interval, whether one of the outer ones begins no later and ends no earlier."""
    if not len(outer_start):
        return np.zeros(len(start), dtype=np.bool_)
    order = np.argsort(outer_start, kind="stable")
    latest_ends = np.maximum.accumulate(outer_end[order])
    outer_counts = np.searchsorted(outer_start[order], start, side="right")
    return np.asarray((outer_counts > 0) & (latest_ends[outer_counts - 1] >= end))


def ranges_within(rows: Sequence[ProjectedRange], outer: Sequence[ProjectedRange]) -> list[ProjectedRange]:
    """The rows that are one of the outer ranges, or in one: on the same thread as the host saw them, else as their
    stream did. Of two ranges of the same times that with the lower level is the outer one.
    """
    start, end = _nesting_order(rows, outer)
    is_within = np.zeros(len(rows), dtype=np.bool_)
    outer_positions = _rows_by_source(outer)
    for key, inner in _rows_by_source(rows).items():
        outer_rows = np.array(outer_positions.get(key, []), dtype=np.int64) + len(rows)
        is_within[inner] = are_enclosed(start[inner], end[inner], start[outer_rows], end[outer_rows])
    return [row for row, is_inside in zip(rows, is_within.tolist(), strict=True) if is_inside]


def _nesting_order(*parts: Sequence[ProjectedRange]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Starts and ends as numbers in the same order; numbers of ranges of different levels differ."""
    rows = [row for part in parts for row in part]
    times = np.array([_host_interval(row) for row in rows], dtype=np.int64).reshape(-1, 2)
    levels = np.array([row.level for row in rows], dtype=np.int64)
    _, ranks = np.unique(times, return_inverse=True)
    ranks = ranks.reshape(-1, 2) * (2 * int(levels.max(initial=0)) + 1)
    return ranks[:, 0] + levels, ranks[:, 1] - levels


def _host_interval(row: ProjectedRange) -> tuple[int, int]:
    if row.host_start is None or row.host_end is None:
        return row.start, row.end
    return row.host_start, row.host_end


def _rows_by_source(rows: Sequence[ProjectedRange]) -> dict[Hashable, list[int]]:
    """The positions of the rows of each thread, or of each stream where the host's times are not known."""
    positions: dict[Hashable, list[int]] = {}
    for number, row in enumerate(rows):
        on_host = row.host_start is not None and row.host_end is not None
        positions.setdefault((on_host, row.thread if on_host else row.stream), []).append(number)
    return positions


class ProjectedRows(Sequence[ProjectedRange]):
    """Projected ranges as columns. There may be millions: each is made when it is asked for."""

    def __init__(self, kernels: Kernels, ranges: HostRanges, columns: Mapping[str, NDArray[Any]]) -> None:
        self._kernels, self._ranges, self._columns = kernels, ranges, columns

    def __len__(self) -> int:
        return len(self._columns["row"])

    @overload
    def __getitem__(self, place: int) -> ProjectedRange: ...
    @overload
    def __getitem__(self, place: slice) -> list[ProjectedRange]: ...
    def __getitem__(self, place: int | slice) -> ProjectedRange | list[ProjectedRange]:
        if isinstance(place, slice):
            return [*self._make_rows(np.arange(len(self))[place])]
        return next(self._make_rows(np.array([range(len(self))[place]])))

    def __iter__(self) -> Iterator[ProjectedRange]:
        for begin in range(0, len(self), _ROWS_PER_CHUNK):
            yield from self._make_rows(np.arange(begin, min(begin + _ROWS_PER_CHUNK, len(self))))

    @property
    def host_ranges(self) -> int:
        """Number of different ranges of the host: one on two streams is two here."""
        return len(np.unique(self._columns["row"]))

    @property
    def columns(self) -> RangeColumns:
        """Return the ranges as columns, without an object per row."""
        rows, names = self._columns["row"], ("queue", "start", "end", "level", "busy", "kernels", "graphs")
        columns = {name: self._columns[name] for name in names}
        return RangeColumns(self._ranges.names, self._ranges.name[rows], call=rows, **columns)

    def _make_rows(self, positions: NDArray[np.int64]) -> Iterator[ProjectedRange]:
        columns = {name: column[positions] for name, column in self._columns.items()}
        ranges, rows = self._ranges, columns["row"]
        host = (ranges.name[rows], ranges.start[rows], ranges.end[rows], ranges.thread[rows])
        values = (column.tolist() for column in (*columns.values(), *host))
        for row, queue, start, end, kernels, level, busy, graphs, name, host_start, host_end, thread in zip(
            *values, strict=True
        ):
            stream = self._kernels.streams[queue]
            yield ProjectedRange(
                ranges.names[name],
                stream,
                queue,
                start,
                end,
                kernels,
                level,
                busy,
                host_start,
                host_end,
                thread,
                graphs,
                row,
            )


@dataclass(frozen=True, slots=True)
class RangeColumns:
    """Projected ranges as columns, in their order; ``name`` is a position in ``names``, and -1 is not known.

    ``call`` is the same number for the projections of one range of the host.
    """

    names: Sequence[str]
    name: Column
    queue: Column
    start: Column
    end: Column
    level: Column
    busy: Column
    kernels: Column
    graphs: Column
    call: Column

    def __len__(self) -> int:
        return len(self.start)


def range_columns(rows: Sequence[ProjectedRange]) -> RangeColumns:
    """The columns of rows as the file has them, or by the rule."""
    if isinstance(rows, ProjectedRows):
        return rows.columns
    names: dict[str, int] = {}
    entries = [
        (
            names.setdefault(row.name, len(names)), UNKNOWN if row.queue is None else row.queue, row.start, row.end,
            row.level, UNKNOWN if row.busy is None else row.busy, row.kernels, row.graphs,
            position if row.row is None else row.row,
        )
        for position, row in enumerate(rows)
    ]  # fmt: skip
    return RangeColumns([*names], *np.array(entries, dtype=np.int64).reshape(-1, 9).T)


def project(
    kernels: Kernels, ranges: HostRanges, progress: Callable[[float], object] = lambda _: None
) -> ProjectedRows:
    """The ranges on every stream, by start, the outer first. ``level`` counts the projected ranges around one.

    ``progress`` is called with the share of the ranges that is done.
    """
    parts: dict[str, list[NDArray[Any]]] = {name: [np.empty(0, dtype=np.int16)] for name in _COLUMNS}
    levels = _LevelCounter(ranges)
    for rows, kernel_positions in launched_pairs(kernels, ranges, np.arange(len(ranges), dtype=np.int32)):
        progress(int(rows[-1]) / len(ranges))
        for name, column in zip(_COLUMNS, _projected_columns(kernels, rows, kernel_positions, levels), strict=True):
            parts[name].append(column if name in _TIME_COLUMNS else compact(column))
    columns: dict[str, NDArray[Any]] = {name: np.concatenate(parts.pop(name)) for name in _COLUMNS}
    order = np.lexsort((np.negative(columns["end"]), columns["level"], columns["start"]))
    for name in _COLUMNS:
        sorted_column = columns.pop(name)[order]
        columns[name] = sorted_column if name in _TIME_COLUMNS else compact(sorted_column)
    return ProjectedRows(kernels, ranges, columns)


class ProjectedCounts(NamedTuple):
    """Numbers of projected ranges, and of ranges of the host with a projection."""

    ranges: int
    host_ranges: int


def count_projected(
    kernels: Kernels, ranges: HostRanges, progress: Callable[[float], object] = lambda _: None
) -> ProjectedCounts:
    """Count the ranges of ``project`` without making its columns, which take as much memory as the file."""
    projected = host_ranges = 0
    for rows, kernel_positions in launched_pairs(kernels, ranges, np.arange(len(ranges), dtype=np.int32)):
        progress(int(rows[-1]) / len(ranges))
        projected += len(np.unique(rows.astype(np.int64) * len(kernels.streams) + kernels.queue[kernel_positions]))
        host_ranges += len(np.unique(rows))
    return ProjectedCounts(projected, host_ranges)


def launched_pairs(kernels: Kernels, ranges: HostRanges, selected: NDArray[Any]) -> Iterator[Pairs]:
    """The ``selected`` ranges, thread by thread and otherwise in this order, each with all kernels that it launched."""
    launchers = dict(_positions_by_thread(kernels.thread))
    for thread, indices in _positions_by_thread(ranges.thread[selected]):
        thread_kernels = launchers.get(thread)
        if thread_kernels is None or thread == UNKNOWN:
            continue
        launch_starts = kernels.launch_start[thread_kernels]
        if (launch_starts[1:] < launch_starts[:-1]).any():
            order = np.argsort(launch_starts, kind="stable")
            thread_kernels, launch_starts = thread_kernels[order], launch_starts[order]
        rows = selected[indices]
        for begin in range(0, len(rows), _PAIRS_PER_CHUNK):
            yield from _pairs_of_thread(
                kernels, ranges, rows[begin : begin + _PAIRS_PER_CHUNK], thread_kernels, launch_starts
            )


def _positions_by_thread(threads: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int32]]]:
    """The positions of each thread's entries, in their order."""
    if not len(threads):
        return
    if (threads == threads[0]).all():
        yield int(threads[0]), np.arange(len(threads), dtype=np.int32)
        return
    order = np.argsort(threads, kind="stable").astype(np.int32)
    numbers, first_positions = np.unique(threads[order], return_index=True)
    yield from zip(numbers.tolist(), np.split(order, first_positions[1:]), strict=True)


def _pairs_of_thread(
    kernels: Kernels,
    ranges: HostRanges,
    rows: NDArray[Any],
    thread_kernels: NDArray[np.int32],
    launch_starts: NDArray[np.int64],
) -> Iterator[Pairs]:
    """The pairs of ranges and kernels of one thread, both by position; kernels are ordered by their launches'
    ``launch_starts`` times.
    """
    first_kernels = np.searchsorted(launch_starts, ranges.start[rows], side="left")
    counts = np.maximum(np.searchsorted(launch_starts, ranges.end[rows], side="right") - first_kernels, 0)
    pair_offsets = np.concatenate(([0], np.cumsum(counts)))
    begin = 0
    while begin < len(rows):
        end = max(
            int(np.searchsorted(pair_offsets, pair_offsets[begin] + _PAIRS_PER_CHUNK, side="right")) - 1, begin + 1
        )
        range_counts = counts[begin:end]
        indices = np.arange(pair_offsets[end] - pair_offsets[begin]) + np.repeat(
            first_kernels[begin:end] + pair_offsets[begin] - pair_offsets[begin:end], range_counts
        )
        pair_ranges, pair_kernels = np.repeat(rows[begin:end], range_counts), thread_kernels[indices]
        fits = kernels.launch_end[pair_kernels] <= ranges.end[pair_ranges]
        if fits.any():
            yield pair_ranges[fits], pair_kernels[fits]
        begin = end


class _LevelCounter:
    """Counts the ranges with kernels around each; ranges are asked for in their order."""

    def __init__(self, ranges: HostRanges) -> None:
        self._ranges = ranges
        self._thread = UNKNOWN
        self._outer_ends: list[int] = []
        """The ends of the ranges around the next one, the outermost first."""

    def levels_of(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """The level of each range."""
        columns = (self._ranges.thread, self._ranges.start, self._ranges.end)
        times = zip(*(column[rows].tolist() for column in columns), strict=True)
        return np.fromiter((self._level(*time) for time in times), np.int32, len(rows))

    def _level(self, thread: int, start: int, end: int) -> int:
        outer_ends = self._outer_ends if thread == self._thread else []
        self._outer_ends = [outer_end for outer_end in outer_ends if outer_end >= end and outer_end > start]
        self._thread = thread
        self._outer_ends.append(end)
        return len(self._outer_ends) - 1


def _projected_columns(
    kernels: Kernels, rows: NDArray[Any], kernel_positions: NDArray[np.int32], levels: _LevelCounter
) -> tuple[NDArray[Any], ...]:
    """The columns of each range on each stream on which it launched kernels, from all its pairs."""
    queues = kernels.queue[kernel_positions].astype(np.int64)
    order = np.lexsort((queues, rows))
    rows, kernel_positions, queues = rows[order], kernel_positions[order], queues[order]
    is_new_row = np.append(True, np.diff(rows) != 0)
    first_pairs = np.flatnonzero(is_new_row | np.append(True, np.diff(queues) != 0))
    start, end = kernels.start[kernel_positions], kernels.end[kernel_positions]
    graphs = np.add.reduceat(kernels.is_graph[kernel_positions].astype(np.int64), first_pairs)
    level = levels.levels_of(rows[is_new_row])[np.cumsum(is_new_row)[first_pairs] - 1]
    return (
        rows[first_pairs],
        queues[first_pairs],
        np.minimum.reduceat(start, first_pairs),
        np.maximum.reduceat(end, first_pairs),
        np.diff(np.append(first_pairs, len(rows))) - graphs,
        level,
        np.add.reduceat(end - start, first_pairs),
        graphs,
    )


def kernels_within(kernels: Kernels, ranges: HostRanges, is_selected: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which kernels belong to one of the ``is_selected`` ranges, or to a range inside one."""
    is_within = np.zeros(len(kernels), dtype=np.bool_)
    for _, kernel_positions in launched_pairs(kernels, ranges, np.flatnonzero(is_selected)):
        is_within[kernel_positions] = True
    return is_within


def innermost_ranges(kernels: Kernels, ranges: HostRanges) -> NDArray[np.int64]:
    """Return, per kernel, the shortest range that it belongs to, -1 if it is in none; of equal ones the last."""
    innermost = np.full(len(kernels), UNKNOWN, dtype=np.int64)
    longest_first = np.argsort(ranges.start - ranges.end, kind="stable")
    for rows, kernel_positions in launched_pairs(kernels, ranges, longest_first):
        innermost[kernel_positions] = rows  # a shorter range is written over a longer one
    return innermost


def are_named(ranges: HostRanges, name: str) -> NDArray[np.bool_]:
    """Return which ranges have a name."""
    has_name = np.array([range_name == name for range_name in ranges.names], dtype=np.bool_)
    return has_name[ranges.name] if len(ranges) else np.empty(0, dtype=np.bool_)


@dataclass
class Projection:
    """Ranges of a report projected onto its streams. Computed on first use, and shared by all parts of a profile."""

    report: NsysReport
    progress: Callable[[float], object]
    _rows: Sequence[ProjectedRange] | None = None

    @property
    def rows(self) -> Sequence[ProjectedRange]:
        """Ranges on streams, as the file has them or by the rule."""
        if self._rows is None:
            report = self.report
            ranges = report.ranges
            self._rows = report.projected if ranges is None else project(report.kernels, ranges, self.progress)
        return self._rows

    @cached_property
    def counts(self) -> ProjectedCounts:
        """Numbers of ranges in ``rows``, and of the host; none are projected only for this."""
        report = self.report
        if report.ranges is None or self._rows is not None:
            rows = self.rows
            return ProjectedCounts(len(rows), rows.host_ranges if isinstance(rows, ProjectedRows) else 0)
        return count_projected(report.kernels, report.ranges, self.progress)

    @cached_property
    def innermost(self) -> NDArray[np.int64]:
        """Position of the innermost range that launched each kernel; -1 for none."""
        report = self.report
        if report.ranges is None:
            return np.full(len(report.kernels), UNKNOWN, dtype=np.int64)
        return innermost_ranges(report.kernels, report.ranges)
