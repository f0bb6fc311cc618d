"""NVTX ranges of the host, projected on the streams of the GPU.

A kernel belongs to a range if the call that launched it lies within the range, on the same thread. On each stream the
projected range runs from the start of its first kernel to the end of its last, so what the host did meanwhile is not in
it; a range that launched nothing has no projection. An execution of a CUDA graph counts as a kernel does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from tui_probe.nsight.importers.nsys_model import UNKNOWN, ProjectedRange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from tui_probe.nsight.importers.nsys_model import HostRanges, Kernels

    Pairs: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]
    """Ranges and kernels in them, by position: one entry per pair."""

_AT_ONCE: Final = 1 << 18
"""Pairs of ranges and kernels that are made at a time."""


def project(
    kernels: Kernels, ranges: HostRanges, progress: Callable[[float], object] = lambda _: None
) -> list[ProjectedRange]:
    """The ranges on every stream, by start, the outer first. ``level`` counts the projected ranges around one.

    ``progress`` is told the share of the ranges that is done.
    """
    found: list[ProjectedRange] = []
    levels = _Levels(ranges)
    for rows, inside in members(kernels, ranges, np.arange(len(ranges))):
        progress(int(rows[-1]) / len(ranges))
        found += _projected(kernels, ranges, rows, inside, levels)
    return sorted(found, key=lambda each: (each.start, each.level, -each.end))


def members(kernels: Kernels, ranges: HostRanges, chosen: NDArray[np.int64]) -> Iterator[Pairs]:
    """The ``chosen`` ranges, thread by thread and otherwise in this order, each with all kernels that it launched."""
    by_thread = np.lexsort((kernels.launch_start, kernels.thread))
    threads = kernels.thread[by_thread]
    chosen = chosen[np.argsort(ranges.thread[chosen], kind="stable")]
    numbers, first = np.unique(ranges.thread[chosen], return_index=True)
    for thread, rows in zip(numbers.tolist(), np.split(chosen, first[1:]), strict=False):
        begin, end = np.searchsorted(threads, thread, "left"), np.searchsorted(threads, thread, "right")
        if thread != UNKNOWN and begin < end:
            yield from _of_thread(kernels, ranges, rows, by_thread[begin:end])


def _of_thread(
    kernels: Kernels, ranges: HostRanges, rows: NDArray[np.int64], own: NDArray[np.int64]
) -> Iterator[Pairs]:
    """The pairs of one thread, whose kernels are ``own``, in the order of launching."""
    launched, returned = kernels.launch_start[own], kernels.launch_end[own]
    first = np.searchsorted(launched, ranges.start[rows], side="left")
    counts = np.maximum(np.searchsorted(launched, ranges.end[rows], side="right") - first, 0)
    before = np.concatenate(([0], np.cumsum(counts)))
    begin = 0
    while begin < len(rows):
        end = max(int(np.searchsorted(before, before[begin] + _AT_ONCE, side="right")) - 1, begin + 1)
        number = counts[begin:end]
        places = np.arange(before[end] - before[begin]) + np.repeat(
            first[begin:end] + before[begin] - before[begin:end], number
        )
        pairs = np.repeat(rows[begin:end], number)
        inside = returned[places] <= ranges.end[pairs]
        if inside.any():
            yield pairs[inside], own[places[inside]]
        begin = end


class _Levels:
    """Counts the ranges with kernels around each; ranges are asked for in their order."""

    def __init__(self, ranges: HostRanges) -> None:
        self._ranges = ranges
        self._thread = UNKNOWN
        self._around: list[int] = []
        """The ends of the ranges around the next one, the outermost first."""

    def level(self, row: int) -> int:
        thread, start, end = (
            int(column[row]) for column in (self._ranges.thread, self._ranges.start, self._ranges.end)
        )
        same = self._around if thread == self._thread else []
        self._around = [each for each in same if each >= end and each > start]
        self._thread = thread
        self._around.append(end)
        return len(self._around) - 1


def _projected(
    kernels: Kernels, ranges: HostRanges, rows: NDArray[np.int64], inside: NDArray[np.int64], levels: _Levels
) -> Iterator[ProjectedRange]:
    """Each range on each stream on which it launched kernels, from all its pairs."""
    queues = kernels.queue[inside].astype(np.int64)
    order = np.lexsort((queues, rows))
    rows, inside, queues = rows[order], inside[order], queues[order]
    first = np.flatnonzero(np.append(True, (np.diff(rows) != 0) | (np.diff(queues) != 0)))
    start, end, graphs = kernels.start[inside], kernels.end[inside], kernels.is_graph[inside]
    numbers = (
        rows[first],
        queues[first],
        np.minimum.reduceat(start, first),
        np.maximum.reduceat(end, first),
        np.diff(np.append(first, len(rows))),
        np.add.reduceat(end - start, first),
        np.add.reduceat(graphs.astype(np.int64), first),
    )
    before, level = UNKNOWN, 0
    for row, queue, begin, finish, count, busy, of_graphs in zip(*(each.tolist() for each in numbers), strict=True):
        level = levels.level(row) if row != before else level
        before = row
        yield ProjectedRange(
            name=ranges.names[ranges.name[row]],
            stream=kernels.streams[queue],
            queue=queue,
            start=begin,
            end=finish,
            kernels=count - of_graphs,
            level=level,
            busy=busy,
            host_start=int(ranges.start[row]),
            host_end=int(ranges.end[row]),
            thread=int(ranges.thread[row]),
            graphs=of_graphs,
            row=row,
        )


def within(kernels: Kernels, ranges: HostRanges, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which kernels belong to one of the ``chosen`` ranges, or to a range inside one."""
    found = np.zeros(len(kernels), dtype=np.bool_)
    for _, inside in members(kernels, ranges, np.flatnonzero(chosen)):
        found[inside] = True
    return found


def innermost(kernels: Kernels, ranges: HostRanges) -> NDArray[np.int64]:
    """For each kernel the shortest range that it belongs to, -1 if it is in none; of equal ones the last."""
    found = np.full(len(kernels), UNKNOWN, dtype=np.int64)
    longest_first = np.argsort(ranges.start - ranges.end, kind="stable")
    for rows, inside in members(kernels, ranges, longest_first):
        found[inside] = rows  # a shorter range is written over a longer one
    return found
