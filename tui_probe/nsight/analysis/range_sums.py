"""Ranges summed by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tui_probe.nsight.analysis.projection import members, range_columns
from tui_probe.nsight.importers.nsys_model import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tui_probe.nsight.analysis.projection import RangeColumns
    from tui_probe.nsight.importers.nsys_model import HostRanges, Kernels, ProjectedRange


@dataclass(frozen=True, slots=True)
class RangeSum:
    """All ranges of a name that launched kernels. Times are those of their kernels in ns, None where these are unknown.

    A kernel counts once, also where ranges of the name are within one another. ``p99`` is the time that 99 of 100 calls
    do not exceed, by the nearest rank. ``share`` is that of the time of all kernels of the file, from 0 to 1.
    """

    name: str
    calls: int
    total: int | None
    p99: int | None
    share: float | None
    kernels: int
    graphs: int

    @property
    def mean(self) -> float | None:
        """Per call."""
        return None if self.total is None else self.total / self.calls


def range_sums(kernels: Kernels, ranges: HostRanges | None, projected: Sequence[ProjectedRange]) -> list[RangeSum]:
    """Every name of the projected ranges, that with most time first."""
    whole = int(kernels.duration.sum())
    columns = range_columns(projected)
    once = {} if ranges is None else _counted_once(kernels, ranges)
    found = []
    for name, calls, total, p99, is_known, count, graphs in _by_name(columns) if len(columns) else ():
        total, count, graphs = once.get(name, (total, count, graphs))
        if is_known:
            found.append(RangeSum(name, calls, total, p99, total / whole if whole else None, count, graphs))
        else:
            found.append(RangeSum(name, calls, None, None, None, count, graphs))
    return sorted(found, key=lambda each: (-(each.total or 0), each.name))


def _by_name(columns: RangeColumns) -> Iterator[tuple[str, int, int, int, bool, int, int]]:
    """Each name with its calls, their time and p99, whether all times are known, kernels and graph executions."""
    order = np.lexsort((columns.call, columns.name))
    names, calls, busy = columns.name[order], columns.call[order], columns.busy[order]
    first = _changes(names)
    known = np.logical_and.reduceat(busy != UNKNOWN, first)
    kernels, graphs = (
        np.add.reduceat(column[order], first, dtype=np.int64) for column in (columns.kernels, columns.graphs)
    )
    of_call = _changes(names, calls)  # a call may have launched on several streams
    names, times = names[of_call], np.add.reduceat(busy, of_call, dtype=np.int64)
    times = times[np.lexsort((times, names))]
    first = _changes(names)
    number = np.diff(np.append(first, len(names)))
    p99 = times[first + -(-99 * number // 100) - 1]
    sums = (number, np.add.reduceat(times, first), p99, known, kernels, graphs)
    texts = [columns.names[code] for code in names[first].tolist()]
    yield from zip(texts, *(column.tolist() for column in sums), strict=True)


def _changes(*columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where an entry of a column differs from the one before it; the first one does."""
    changed = np.append(True, np.zeros(len(columns[0]) - 1, dtype=np.bool_))
    for column in columns:
        changed[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(changed)


def _counted_once(kernels: Kernels, ranges: HostRanges) -> dict[str, tuple[int, int, int]]:
    """For each name the time of the kernels in its ranges, how many these are, and graph executions among them."""
    pairs = [np.empty(0, dtype=np.int64)]
    for rows, inside in members(kernels, ranges, np.arange(len(ranges), dtype=np.int32)):
        pairs.append(np.unique(ranges.name[rows].astype(np.int64) * len(kernels) + inside))
    distinct = np.unique(np.concatenate(pairs))
    if not len(distinct):
        return {}
    names, inside = np.divmod(distinct, len(kernels))
    codes, first = np.unique(names, return_index=True)
    columns = (
        np.add.reduceat(kernels.duration[inside], first),
        np.diff(np.append(first, len(inside))),
        np.add.reduceat(kernels.is_graph[inside].astype(np.int64), first),
    )
    sums = zip(codes.tolist(), *(column.tolist() for column in columns), strict=True)
    return {ranges.names[code]: (time, count - graphs, graphs) for code, time, count, graphs in sums}
