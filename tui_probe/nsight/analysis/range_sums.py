"""Ranges summed by name: how often each ran, and the time of the kernels in all of its calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tui_probe.nsight.analysis.projection import members

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

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


def range_sums(kernels: Kernels, ranges: HostRanges | None, projected: Iterable[ProjectedRange]) -> list[RangeSum]:
    """Every name of the projected ranges, that with most time first."""
    whole = int(kernels.duration.sum())
    by_name: dict[str, list[ProjectedRange]] = {}
    for each in projected:
        by_name.setdefault(each.name, []).append(each)
    once = {} if ranges is None else _counted_once(kernels, ranges)
    found = [_sum(name, own, once.get(name), whole) for name, own in by_name.items()]
    return sorted(found, key=lambda each: (-(each.total or 0), each.name))


def _sum(name: str, own: Sequence[ProjectedRange], once: tuple[int, int, int] | None, whole: int) -> RangeSum:
    calls: dict[int, int] = {}
    for place, each in enumerate(own):
        call = place if each.row is None else each.row  # a call may have launched on several streams
        calls[call] = calls.get(call, 0) + (each.busy or 0)
    if once is None:
        total, count, graphs = sum(calls.values()), sum(each.kernels for each in own), sum(each.graphs for each in own)
    else:
        total, count, graphs = once
    if any(each.busy is None for each in own):
        return RangeSum(name, len(calls), None, None, None, count, graphs)
    times = sorted(calls.values())
    p99 = times[-(-99 * len(times) // 100) - 1]
    return RangeSum(name, len(calls), total, p99, total / whole if whole else None, count, graphs)


def _counted_once(kernels: Kernels, ranges: HostRanges) -> dict[str, tuple[int, int, int]]:
    """For each name the time of the kernels in its ranges, how many these are, and graph executions among them."""
    pairs = [np.empty(0, dtype=np.int64)]
    for rows, inside in members(kernels, ranges, np.arange(len(ranges))):
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


def of_name(ranges: HostRanges, name: str) -> NDArray[np.bool_]:
    """Which ranges have a name."""
    named = np.array([each == name for each in ranges.names], dtype=np.bool_)
    return named[ranges.name] if len(ranges) else np.empty(0, dtype=np.bool_)
