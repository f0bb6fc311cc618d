"""NVTX ranges as a tree, each with the launches in it and in none of its inner ranges.

Ranges of one name within the same outer range can be taken together: a loop of steps is then one node.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tui_probe.records.distribution import p99_position

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from tui_probe.trace.model import Trace
    from tui_probe.trace.run import LaunchRun, Range

_MAX_DEPTH: Final = 100
"""Depth of the tree; ranges nested deeper, in a log that is not as it should be, are at this depth."""


class KernelLaunches(NamedTuple):
    """Launches of one kernel in a range, how many of them were probed, and launches × its median time, if known."""

    kernel: int
    launches: int
    probed_count: int
    seconds: float | None


@dataclass(slots=True)
class RangeNode:
    """One range, or several of one name (``range_count``) within the same outer one.

    ``launches``, ``probed_count`` and ``all_launches`` count those of inner ranges too, ``direct_launches`` does not.
    ``seconds`` is host time between the calls, None if one of them never ended; ``kernel_seconds`` the time of all
    launches, launches × median of the kernel as it was timed, None if one was not. ``start_s`` is since the start of
    the process.
    """

    text: str
    domain: str | None
    thread: int | None
    depth: int
    range_count: int
    launches: int
    probed_count: int
    seconds: float | None
    kernel_seconds: float | None
    start_s: float | None
    all_launches: Sequence[KernelLaunches]
    direct_launches: Sequence[KernelLaunches]
    inner: list[RangeNode] = field(default_factory=list)
    p99_seconds: float | None = None
    range: Range | None = None
    """The range itself, None for several."""

    @property
    def mean_seconds(self) -> float | None:
        """Time of the launches of one range."""
        return None if self.kernel_seconds is None else self.kernel_seconds / self.range_count

    def walk(self) -> Iterator[RangeNode]:
        """Yield this node, then those inside it, depth first."""
        yield self
        for node in self.inner:
            yield from node.walk()


def range_tree(trace: Trace, *, merge_runs: bool = False) -> list[RangeNode]:
    """Return the outermost ranges in the order of their start; ``merged_by_name``: those of one name as one."""
    ranges = list(trace.ranges)
    outer: dict[int | None, int | None] = {}
    depths: dict[int | None, int] = {None: 0}
    inner: dict[int | None, list[Range]] = {}
    for nvtx_range in ranges:
        # The outer range began before, so its id came before.
        parent = nvtx_range.parent if nvtx_range.parent in outer else None
        if depths[parent] == _MAX_DEPTH:
            parent = outer[parent]
        outer[nvtx_range.id], depths[nvtx_range.id] = parent, depths[parent] + 1
        inner.setdefault(parent, []).append(nvtx_range)
    return _Tree(trace, inner, merged_by_name=merge_runs).nodes([None], 0)


def runs_without(runs: Iterable[LaunchRun], excluded_runs: Iterable[LaunchRun]) -> list[LaunchRun]:
    """Launches of the first that are not among the second; both are pairs of first and last."""
    remaining: list[LaunchRun] = []
    excluded = sorted(excluded_runs)
    index = 0
    for first, last in merged_by_name(runs):
        while index < len(excluded) and excluded[index][0] <= last:
            start, end = excluded[index]
            if start > first:
                remaining.append((first, start - 1))
            first = max(first, end + 1)
            if end > last:
                break  # it may cover some of the next run, too
            index += 1
        if first <= last:
            remaining.append((first, last))
    return remaining


def merged_by_name(runs: Iterable[LaunchRun]) -> Iterator[LaunchRun]:
    """Merge runs that overlap or touch; ascending."""
    begin: int | None = None
    end = 0
    for first, last in sorted(runs):
        if begin is not None and first <= end + 1:
            end = max(end, last)
            continue
        if begin is not None:
            yield begin, end
        begin, end = first, last
    if begin is not None:
        yield begin, end


def numbered_launches(trace: Trace) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Number, kernel (-1: unknown) and whether it was probed, of all launches in ranges, ascending.

    They are those with lines of their own, whether in a range or not, and the packed ones between the first launch of a
    range and the last. Launches that the log lost have no number; those that were captured into a graph are left out.
    """
    columns = [trace.launches.column(name) for name in ("number", "kernel", "probed")]
    is_launch = ~trace.launches.captured_mask()
    row_count = min(len(is_launch), *map(len, columns))  # the log may be read on meanwhile
    columns, row_count = (
        [column[:row_count][is_launch[:row_count]] for column in columns],
        int(is_launch[:row_count].sum()),
    )
    runs = [run for nvtx_range in trace.ranges for run in nvtx_range.runs]
    numbers, kernels = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    if runs:
        numbers, kernels = trace.unprobed.launches_between(
            min(first for first, _ in runs), max(last for _, last in runs)
        )
    numbers = np.concatenate((columns[0][:row_count], numbers))
    order = np.argsort(numbers, kind="stable")
    kernels = np.concatenate((columns[1][:row_count].astype(np.int64), kernels))
    is_probed = np.zeros(len(numbers), dtype=np.bool_)
    is_probed[:row_count] = columns[2][:row_count] > 0
    return numbers[order], kernels[order], is_probed[order]


class _Tree:
    """Builds nodes. Launches are in lists, by number: short parts of lists are counted faster."""

    def __init__(self, trace: Trace, inner: dict[int | None, list[Range]], *, merged_by_name: bool) -> None:
        numbers, kernels, is_probed = numbered_launches(trace)
        self._numbers: list[int] = numbers.tolist()
        self._codes: list[int] = (2 * kernels + is_probed).tolist()
        self._times: dict[int, float | None] = {}
        self._trace, self._inner, self._merges_names = trace, inner, merged_by_name

    def nodes(self, outer: Sequence[int | None], depth: int) -> list[RangeNode]:
        """Return the nodes directly inside the ranges of these ids."""
        children = [child for key in outer for child in self._inner.get(key, ())]
        groups: dict[object, list[Range]] = {}
        for nvtx_range in children:
            groups.setdefault((nvtx_range.text, nvtx_range.domain) if self._merges_names else nvtx_range.id, []).append(
                nvtx_range
            )
        return [self._node(group, depth) for group in groups.values()]

    def _node(self, group: Sequence[Range], depth: int) -> RangeNode:
        first = group[0]
        ids = [nvtx_range.id for nvtx_range in group]
        runs = list(chain.from_iterable(nvtx_range.runs for nvtx_range in group))
        inner_runs = [run for key in ids for child in self._inner.get(key, ()) for run in child.runs]
        all_launches, epoch = self._launches_by_kernel(runs), self._trace.state.epoch_ns
        host_ns = [
            None if nvtx_range.end_ns is None else nvtx_range.end_ns - nvtx_range.start_ns for nvtx_range in group
        ]
        return RangeNode(
            text=first.text,
            domain=first.domain,
            thread=first.thread,
            depth=depth,
            range_count=len(group),
            launches=sum(nvtx_range.launches for nvtx_range in group),
            probed_count=sum(launches.probed_count for launches in all_launches),
            seconds=None if None in host_ns else sum(time for time in host_ns if time is not None) / 1e9,
            kernel_seconds=_total_seconds(all_launches),
            start_s=None if epoch is None else (first.start_ns - epoch) / 1e9,
            all_launches=all_launches,
            direct_launches=self._launches_by_kernel(runs_without(runs, inner_runs)) if inner_runs else all_launches,
            inner=self.nodes(ids, depth + 1),
            p99_seconds=self._p99(group),
            range=first if len(group) == 1 else None,
        )

    def _p99(self, group: Sequence[Range]) -> float | None:
        """Return the p99 time of the ranges of a name, each with the time of its launches; None if one is not known."""
        if len(group) == 1:
            return None
        times = [_total_seconds(self._launches_by_kernel(nvtx_range.runs)) for nvtx_range in group]
        known_times = sorted(time for time in times if time is not None)
        return known_times[p99_position(len(known_times))] if known_times and len(known_times) == len(times) else None

    def _launches_by_kernel(self, runs: Iterable[LaunchRun]) -> list[KernelLaunches]:
        """Return the kernels of these launches, the most launched first."""
        codes: Counter[int] = Counter()
        for first, last in runs:
            codes.update(self._codes[bisect_left(self._numbers, first) : bisect_right(self._numbers, last)])
        kernels = dict.fromkeys(code >> 1 for code in codes)
        totals = [self._kernel_launches(kernel, codes[2 * kernel], codes[2 * kernel + 1]) for kernel in kernels]
        return sorted(totals, key=lambda total: (-total.launches, total.kernel))

    def _kernel_launches(self, kernel: int, unprobed: int, probed: int) -> KernelLaunches:
        if kernel not in self._times:
            kernel_facts = self._trace.kernels.get(kernel)
            self._times[kernel] = None if kernel_facts is None else kernel_facts.time_ms
        time = self._times[kernel]
        return KernelLaunches(
            kernel, unprobed + probed, probed, None if time is None else time * (unprobed + probed) / 1e3
        )


def _total_seconds(kernel_launches: Sequence[KernelLaunches]) -> float | None:
    """Return the time of all launches, None if one is not known."""
    times = [launches.seconds for launches in kernel_launches]
    return None if None in times or not times else sum(time for time in times if time is not None)
