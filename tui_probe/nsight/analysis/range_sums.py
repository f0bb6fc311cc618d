"""Ranges summed by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.nsight.analysis.projection import members, range_columns
from tui_probe.nsight.importers.nsys_model import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tui_probe.nsight.analysis.projection import RangeColumns
    from tui_probe.nsight.importers.nsys_model import HostRanges, Kernels, ProjectedRange

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
    yield from zip((columns.names[code] for code in codes.tolist()), *(own.tolist() for own in sums), strict=True)


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
