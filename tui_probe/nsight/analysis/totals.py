"""Totals of an imported timeline: launches by kernel, and NVTX ranges by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tui_probe.nsight.analysis.projection import launched_pairs, range_columns
from tui_probe.nsight.importers.nsys_model import UNKNOWN
from tui_probe.records.distribution import p99_position

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tui_probe.nsight.analysis.projection import RangeColumns
    from tui_probe.nsight.importers.nsys_model import HostRanges, Kernels, ProjectedRange

_PAIRS_PER_CHUNK: Final = 1 << 16
"""Pairs of name and kernel that are counted together: an export of hours has many millions."""


@dataclass(frozen=True, slots=True)
class KernelTotal:
    """All launches of a kernel, in ns. ``code`` is that of its name; ``share`` is of the time of all, from 0 to 1.

    ``p99`` is the duration that 99 of 100 launches do not exceed, by the nearest rank.
    """

    code: int
    launches: int
    total: int
    mean: float
    median: float
    p99: int
    maximum: int
    share: float


def kernel_totals(codes: NDArray[np.int64], durations: NDArray[np.int64]) -> list[KernelTotal]:
    """Return the total of each code, the one that took most first. Both arrays have shape (launches,)."""
    if not len(codes):
        return []
    order = np.lexsort((durations, codes))
    distinct_codes, first_rows = np.unique(codes[order], return_index=True)
    time_of_all = max(int(durations.sum()), 1)
    totals = [
        _kernel_total(code, ascending, time_of_all)
        for code, ascending in zip(distinct_codes.tolist(), np.split(durations[order], first_rows[1:]), strict=True)
    ]
    return sorted(totals, key=lambda total: (-total.total, total.code))


def _kernel_total(code: int, durations: NDArray[np.int64], time_of_all: int) -> KernelTotal:
    """Return the total of one kernel, whose durations are ascending."""
    launches, total = len(durations), int(durations.sum())
    return KernelTotal(
        code,
        launches,
        total,
        mean=total / launches,
        median=float(np.median(durations)),
        p99=int(durations[p99_position(launches)]),
        maximum=int(durations[-1]),
        share=total / time_of_all,
    )


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
    launched_by_name = _outermost_work(projected) if ranges is None else _work_by_name(kernels, ranges)
    sums = [
        _range_sum(calls, launched_by_name[calls.name], total_time)
        for calls in (_calls_by_name(columns) if len(columns) else ())
    ]
    return sorted(sums, key=lambda range_sum: (-(range_sum.total or 0), range_sum.name))


class _LaunchedWork(NamedTuple):
    """Kernels and graph executions in all ranges of a name, each counted once; ``time`` is that of both, in ns."""

    time: int
    kernels: int
    graphs: int


class _NamedCalls(NamedTuple):
    """Calls of the ranges of a name; ``time`` is the sum over calls, ``p99`` of one call, in ns."""

    name: str
    calls: int
    time: int
    p99: int
    is_known: bool
    """False if the time of any call is not known."""


def _range_sum(calls: _NamedCalls, work: _LaunchedWork, total_time: int) -> RangeSum:
    """Return the sum of a name; ``total_time`` is that of all kernels in ns."""
    total, kernels, graphs = work
    if not calls.is_known:
        return RangeSum(calls.name, calls.calls, None, None, None, None, kernels, graphs)
    share = total / total_time if total_time else None
    return RangeSum(calls.name, calls.calls, total, calls.time / calls.calls, calls.p99, share, kernels, graphs)


def _calls_by_name(columns: RangeColumns) -> Iterator[_NamedCalls]:
    """Yield the calls of each name."""
    is_known = np.ones(len(columns.names), dtype=np.bool_)
    is_known[columns.name[columns.busy == UNKNOWN]] = False
    codes, times = _sorted_calls(columns)
    first_calls = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
    calls = np.diff(np.append(first_calls, len(codes)))
    sums = (
        calls,
        np.add.reduceat(times, first_calls),
        times[first_calls + p99_position(calls)],
        is_known[codes[first_calls]],
    )
    names = (columns.names[code] for code in codes[first_calls].tolist())
    yield from map(_NamedCalls, names, *(column.tolist() for column in sums))


def _sorted_calls(columns: RangeColumns) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return name and time of each call, sorted by them: a call may have launched on several streams."""
    count = int(columns.call.max()) + 1
    names = np.full(count, UNKNOWN, dtype=np.int32)
    names[columns.call] = columns.name
    times = np.zeros(count, dtype=np.int64)
    np.add.at(times, columns.call, columns.busy)
    order = np.lexsort((times, names))[np.count_nonzero(names == UNKNOWN) :]  # UNKNOWN is -1, so first
    return names[order], times[order]


def _outermost_work(rows: Sequence[ProjectedRange]) -> dict[str, _LaunchedWork]:
    """Return by name what ranges launched that are in no other range of the name; rows are by start."""
    sums: dict[str, _LaunchedWork] = {}
    outer_ranges: dict[tuple[str, int | None, int | None], ProjectedRange] = {}
    for row in rows:
        key = row.name, row.queue, row.thread
        outer_range = outer_ranges.get(key)
        if outer_range is not None and outer_range.level < row.level and row.end <= outer_range.end:
            continue
        outer_ranges[key] = row
        time, kernels, graphs = sums.get(row.name, (0, 0, 0))
        sums[row.name] = _LaunchedWork(time + (row.busy or 0), kernels + row.kernels, graphs + row.graphs)
    return sums


def _work_by_name(kernels: Kernels, ranges: HostRanges) -> dict[str, _LaunchedWork]:
    """Return by name what its ranges launched, where several of them are around a kernel once."""
    times, launches, graphs = (np.zeros(len(ranges.names), dtype=np.int64) for _ in range(3))
    for pairs in _distinct_pairs(kernels, ranges):
        names, positions = np.divmod(pairs, len(kernels))
        np.add.at(times, names, kernels.end[positions] - kernels.start[positions])
        np.add.at(launches, names, 1)
        np.add.at(graphs, names, kernels.graph[positions] != UNKNOWN)
    return {
        ranges.names[code]: _LaunchedWork(int(times[code]), int(launches[code] - graphs[code]), int(graphs[code]))
        for code in np.flatnonzero(launches).tolist()
    }


def _distinct_pairs(kernels: Kernels, ranges: HostRanges) -> Iterator[NDArray[np.int64]]:
    """Yield chunks of the distinct pairs of a name and a kernel in a range of that name.

    A pair is one number, name × number of kernels + position of the kernel, so that pairs sort and compare fast.
    """
    parts = [np.empty(0, dtype=np.int64)]
    for range_rows, positions in launched_pairs(kernels, ranges, np.arange(len(ranges), dtype=np.int32)):
        parts.append(np.unique(ranges.name[range_rows].astype(np.int64) * len(kernels) + positions))
    pairs = np.concatenate(parts)
    parts.clear()  # as large as the pairs
    pairs.sort()
    for begin in range(0, len(pairs), _PAIRS_PER_CHUNK):
        chunk = pairs[begin : begin + _PAIRS_PER_CHUNK]
        is_first = np.append(not begin or chunk[0] != pairs[begin - 1], chunk[1:] != chunk[:-1])
        yield chunk[is_first]
