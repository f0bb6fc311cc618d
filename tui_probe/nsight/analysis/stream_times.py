"""Times of streams: covered time, gaps between kernels with their cause, totals by kernel and by range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from tui_probe.nsight.analysis.projection import members, range_columns
from tui_probe.nsight.importers.nsys_model import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tui_probe.nsight.analysis.projection import RangeColumns
    from tui_probe.nsight.importers.nsys_model import Copies, HostRanges, Kernels, ProjectedRange

GapCause = Literal["copy", "host", "other"]
GAP_CAUSES: Final[tuple[GapCause | None, ...]] = (None, "copy", "host", "other")
GAP_CAUSE_TEXTS: Final[dict[GapCause, str]] = {
    "copy": "mostly a copy",
    "host": "launched late by the host",
    "other": "launched early enough, but waited",
}


def time_covered(starts: NDArray[np.int64], ends: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, per time, the length of all intervals before it; where intervals overlap both count.

    ``starts`` and ``ends`` are each ascending, so an interval's end need not be where its start does.
    """
    return _since(starts, times) - _since(ends, times)


def _since(events: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, per time t, the sum of t − e over the events e before it."""
    sums = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(events)))
    counts = np.searchsorted(events, times, side="right")
    return np.asarray(counts * times - sums[counts])


@dataclass(frozen=True, slots=True)
class Gap:
    """Nothing of the kernels ran on a stream for ``length`` ns from ``start``.

    ``before`` and ``after`` are kernels by position. ``late`` is how long after the end of ``before`` the call that
    launched ``after`` began, negative if it was in time, None where the call is not known.
    """

    queue: int
    start: int
    length: int
    before: int
    after: int
    late: int | None
    why: GapCause | None


@dataclass(frozen=True, slots=True)
class Gaps:
    """Gaps as columns, one entry per gap; ``launched`` is when the call that launched ``after`` began, -1 not known.

    ``why`` is a position in ``GAP_CAUSES``.
    """

    queue: NDArray[Any]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    before: NDArray[Any]
    after: NDArray[Any]
    launched: NDArray[np.int64]
    why: NDArray[Any]

    def __len__(self) -> int:
        return len(self.start)

    @property
    def _columns(self) -> tuple[NDArray[Any], ...]:
        return self.queue, self.start, self.length, self.before, self.after, self.launched, self.why

    def __iter__(self) -> Iterator[Gap]:
        for queue, start, length, before, after, launched, why in zip(
            *(column.tolist() for column in self._columns), strict=True
        ):
            late = None if launched == UNKNOWN else launched - start
            yield Gap(queue, start, length, before, after, late, GAP_CAUSES[why])

    def chosen(self, places: NDArray[Any] | slice) -> Gaps:
        """Some of them."""
        return Gaps(*(column[places] for column in self._columns))


def gaps(kernels: Kernels, copies: Copies) -> Gaps:
    """Return every gap of every stream, the longest first."""
    parts = [_stream_gaps(kernels, copies, own, queue) for queue, own in by_stream(kernels.queue)]
    none = np.empty(0, dtype=np.int64)
    every = Gaps(*(map(np.concatenate, zip(*parts, strict=True)) if parts else [none] * 7))
    return every.chosen(np.lexsort((every.queue, every.start, -every.length)))


def by_stream(queues: NDArray[Any]) -> Iterator[tuple[int, NDArray[np.int32]]]:
    """The positions of each stream's entries, in their order."""
    order = np.argsort(queues, kind="stable").astype(np.int32)
    numbers, first = np.unique(queues[order], return_index=True)
    if len(numbers):
        yield from zip(numbers.tolist(), np.split(order, first[1:]), strict=True)


def _stream_gaps(kernels: Kernels, copies: Copies, own: NDArray[np.int32], queue: int) -> tuple[NDArray[Any], ...]:
    """The columns of the gaps between the kernels ``own`` of one stream."""
    ends = np.maximum.accumulate(kernels.end[own])
    there = np.flatnonzero(kernels.start[own][1:] > ends[:-1])
    start, stop, after = ends[:-1][there], kernels.start[own][1:][there], own[there + 1]
    launched = kernels.launch_start[after]
    copied = _copy_time(copies, copies.queue == queue, start, stop)
    before = own[there].astype(np.int32)
    why = np.select(
        [2 * copied >= stop - start, launched == UNKNOWN, launched > start],
        [GAP_CAUSES.index("copy"), GAP_CAUSES.index(None), GAP_CAUSES.index("host")],
        GAP_CAUSES.index("other"),
    ).astype(np.int8)
    return np.full(len(there), queue, np.int32), start, stop - start, before, after.astype(np.int32), launched, why


def _copy_time(
    copies: Copies, own: NDArray[np.bool_], starts: NDArray[np.int64], stops: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Time of copies between each start and stop; those of one stream do not overlap."""
    begin, end = copies.start[own], np.sort(copies.end[own])
    return time_covered(begin, end, stops) - time_covered(begin, end, starts)


@dataclass(frozen=True, slots=True)
class KernelTotal:
    """All launches of a kernel, in ns. ``code`` says which; ``share`` is that of the time of all, from 0 to 1.

    ``p99`` is the duration that 99 of 100 launches do not exceed, by the nearest rank.
    """

    code: int
    launches: int
    total: int
    mean: float
    median: float
    p99: int
    most: int
    share: float


def kernel_totals(codes: NDArray[np.int64], durations: NDArray[np.int64]) -> list[KernelTotal]:
    """Return the total of each code, the one that took most first. Both arrays have shape (launches,)."""
    if not len(codes):
        return []
    order = np.lexsort((durations, codes))
    kinds, first = np.unique(codes[order], return_index=True)
    every = max(int(durations.sum()), 1)
    totals = []
    for code, own in zip(kinds.tolist(), np.split(durations[order], first[1:]), strict=True):
        total, rank = int(own.sum()), -(-99 * len(own) // 100) - 1
        mean, median = total / len(own), float(np.median(own))
        totals.append(KernelTotal(code, len(own), total, mean, median, int(own[rank]), int(own[-1]), total / every))
    return sorted(totals, key=lambda each: (-each.total, each.code))


_AT_ONCE: Final = 1 << 16
"""Pairs of names and kernels that are counted at a time."""


@dataclass(frozen=True, slots=True)
class RangeSum:
    """All ranges of a name that launched kernels. Times are those of their kernels in ns, None where these are unknown.

    Where ranges of the name are within one another, a kernel counts once in ``total``, but in ``mean`` and ``p99`` for
    each call around it. ``p99`` is the time that 99 of 100 calls do not exceed, by the nearest rank. ``share`` is that
    of the time of all kernels of the file, from 0 to 1.
    """

    name: str
    calls: int
    total: int | None
    mean: float | None
    p99: int | None
    share: float | None
    kernels: int
    graphs: int


def range_sums(kernels: Kernels, ranges: HostRanges | None, projected: Sequence[ProjectedRange]) -> list[RangeSum]:
    """Return the sums of projected ranges by name, that with most time first."""
    total_time = int(kernels.duration.sum())
    columns = range_columns(projected)
    once = _outermost(projected) if ranges is None else _counted_once(kernels, ranges)
    sums = []
    for name, calls, time, p99, is_known in _by_name(columns) if len(columns) else ():
        total, count, graphs = once[name]
        if is_known:
            share = total / total_time if total_time else None
            sums.append(RangeSum(name, calls, total, time / calls, p99, share, count, graphs))
        else:
            sums.append(RangeSum(name, calls, None, None, None, None, count, graphs))
    return sorted(sums, key=lambda each: (-(each.total or 0), each.name))


def _by_name(columns: RangeColumns) -> Iterator[tuple[str, int, int, int, bool]]:
    """Yield each name with its calls, their time and p99, and whether all times are known."""
    known = np.ones(len(columns.names), dtype=np.bool_)
    known[columns.name[columns.busy == UNKNOWN]] = False
    names, times = _calls(columns)
    first = np.flatnonzero(np.append(True, names[1:] != names[:-1]))
    number = np.diff(np.append(first, len(names)))
    p99 = times[first + -(-99 * number // 100) - 1]
    codes = names[first]
    sums = (number, np.add.reduceat(times, first), p99, known[codes])
    yield from zip((columns.names[code] for code in codes.tolist()), *(column.tolist() for column in sums), strict=True)


def _calls(columns: RangeColumns) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Name and time of each call, in this order: a call may have launched on several streams."""
    count = int(columns.call.max()) + 1
    names = np.full(count, UNKNOWN, dtype=np.int32)
    names[columns.call] = columns.name
    times = _totals(columns.call, columns.busy, count)
    order = np.lexsort((times, names))[np.count_nonzero(names == UNKNOWN) :]
    return names[order], times[order]


def _totals(codes: NDArray[Any], numbers: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Return the sum of numbers per code, shape (count,)."""
    totals = np.zeros(count, dtype=np.int64)
    np.add.at(totals, codes, numbers)
    return totals


def _outermost(rows: Sequence[ProjectedRange]) -> dict[str, tuple[int, int, int]]:
    """Return time, kernels and graph executions by name, of ranges in no other of the name; rows are by start."""
    sums: dict[str, tuple[int, int, int]] = {}
    around: dict[tuple[str, int | None, int | None], tuple[int, int]] = {}
    for row in rows:
        place = row.name, row.queue, row.thread
        level, end = around.get(place, (row.level, row.end))
        if level < row.level and row.end <= end:
            continue
        around[place] = row.level, row.end
        time, kernels, graphs = sums.get(row.name, (0, 0, 0))
        sums[row.name] = time + (row.busy or 0), kernels + row.kernels, graphs + row.graphs
    return sums


def _counted_once(kernels: Kernels, ranges: HostRanges) -> dict[str, tuple[int, int, int]]:
    """Return by name the time of the kernels in its ranges, their number, and graph executions among them."""
    parts = [np.empty(0, dtype=np.int64)]
    for rows, inside in members(kernels, ranges, np.arange(len(ranges), dtype=np.int32)):
        parts.append(np.unique(ranges.name[rows].astype(np.int64) * len(kernels) + inside))
    pairs = np.concatenate(parts)
    parts.clear()
    pairs.sort()
    times, counts, graphs = (np.zeros(len(ranges.names), dtype=np.int64) for _ in range(3))
    for begin in range(0, len(pairs), _AT_ONCE):
        some = pairs[begin : begin + _AT_ONCE]
        new = np.append(not begin or some[0] != pairs[begin - 1], some[1:] != some[:-1])
        names, own = np.divmod(some[new], len(kernels))
        np.add.at(times, names, kernels.end[own] - kernels.start[own])
        np.add.at(counts, names, 1)
        np.add.at(graphs, names, kernels.graph[own] != UNKNOWN)
    return {
        ranges.names[code]: (int(times[code]), int(counts[code] - graphs[code]), int(graphs[code]))
        for code in np.flatnonzero(counts).tolist()
    }
