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
    probed: int
    seconds: float | None


@dataclass(slots=True)
class RangeNode:
    """One range, or several of one name (``times``) within the same outer one.

    ``launches``, ``probed`` and ``everything`` count those of inner ranges too, ``own`` does not. ``seconds`` is host
    time between the calls, None if one of them never ended; ``kernel_seconds`` the time of all launches, launches ×
    median of the kernel as it was timed, None if one was not. ``start_s`` is since the start of the process.
    """

    text: str
    domain: str | None
    thread: int | None
    depth: int
    times: int
    launches: int
    probed: int
    seconds: float | None
    kernel_seconds: float | None
    start_s: float | None
    everything: Sequence[KernelLaunches]
    own: Sequence[KernelLaunches]
    inner: list[RangeNode] = field(default_factory=list)
    p99: float | None = None
    range: Range | None = None
    """The range itself, None for several."""

    @property
    def mean(self) -> float | None:
        """Time of the launches of one range."""
        return None if self.kernel_seconds is None else self.kernel_seconds / self.times

    def walk(self) -> Iterator[RangeNode]:
        """Yield this node, then those inside it, depth first."""
        yield self
        for node in self.inner:
            yield from node.walk()


def range_tree(trace: Trace, *, together: bool = False) -> list[RangeNode]:
    """The outermost ranges in the order of their start; ``together``: those of one name as one."""
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
    return _Tree(trace, inner, together=together).nodes([None], 0)


def without_kernels(runs: Iterable[LaunchRun], others: Iterable[LaunchRun]) -> list[LaunchRun]:
    """Launches of the first that are not among the second; both are pairs of first and last."""
    left: list[LaunchRun] = []
    taken = sorted(others)
    place = 0
    for first, last in merged_by_name(runs):
        while place < len(taken) and taken[place][0] <= last:
            start, end = taken[place]
            if start > first:
                left.append((first, start - 1))
            first = max(first, end + 1)
            if end > last:
                break  # it may cover some of the next run, too
            place += 1
        if first <= last:
            left.append((first, last))
    return left


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
    ran = ~trace.launches.captured_mask()
    least = min(len(ran), *map(len, columns))  # the log may be read on meanwhile
    columns, least = [column[:least][ran[:least]] for column in columns], int(ran[:least].sum())
    runs = [run for nvtx_range in trace.ranges for run in nvtx_range.runs]
    numbers, kernels = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    if runs:
        numbers, kernels = trace.unprobed.launches_between(
            min(first for first, _ in runs), max(last for _, last in runs)
        )
    numbers = np.concatenate((columns[0][:least], numbers))
    order = np.argsort(numbers, kind="stable")
    kernels = np.concatenate((columns[1][:least].astype(np.int64), kernels))
    probed = np.zeros(len(numbers), dtype=np.bool_)
    probed[:least] = columns[2][:least] > 0
    return numbers[order], kernels[order], probed[order]


class _Tree:
    """Builds nodes. Launches are in lists, by number: short parts of lists are counted faster."""

    def __init__(self, trace: Trace, inner: dict[int | None, list[Range]], *, together: bool) -> None:
        numbers, kernels, probed = numbered_launches(trace)
        self._numbers: list[int] = numbers.tolist()
        self._codes: list[int] = (2 * kernels + probed).tolist()
        self._times: dict[int, float | None] = {}
        self._trace, self._inner, self._together = trace, inner, together

    def nodes(self, outer: Sequence[int | None], depth: int) -> list[RangeNode]:
        """Return the nodes directly inside the ranges of these ids."""
        inside = [child for key in outer for child in self._inner.get(key, ())]
        groups: dict[object, list[Range]] = {}
        for nvtx_range in inside:
            groups.setdefault((nvtx_range.text, nvtx_range.domain) if self._together else nvtx_range.id, []).append(
                nvtx_range
            )
        return [self._node(group, depth) for group in groups.values()]

    def _node(self, group: Sequence[Range], depth: int) -> RangeNode:
        first = group[0]
        ids = [nvtx_range.id for nvtx_range in group]
        runs = list(chain.from_iterable(nvtx_range.runs for nvtx_range in group))
        covered = [run for key in ids for child in self._inner.get(key, ()) for run in child.runs]
        everything, epoch = self._launched(runs), self._trace.state.epoch_ns
        host = [None if nvtx_range.end_ns is None else nvtx_range.end_ns - nvtx_range.start_ns for nvtx_range in group]
        return RangeNode(
            text=first.text,
            domain=first.domain,
            thread=first.thread,
            depth=depth,
            times=len(group),
            launches=sum(nvtx_range.launches for nvtx_range in group),
            probed=sum(launched.probed for launched in everything),
            seconds=None if None in host else sum(time for time in host if time is not None) / 1e9,
            kernel_seconds=_total(everything),
            start_s=None if epoch is None else (first.start_ns - epoch) / 1e9,
            everything=everything,
            own=self._launched(without_kernels(runs, covered)) if covered else everything,
            inner=self.nodes(ids, depth + 1),
            p99=self._p99(group),
            range=first if len(group) == 1 else None,
        )

    def _p99(self, group: Sequence[Range]) -> float | None:
        """Return the p99 time of the ranges of a name, each with the time of its launches; None if one is not known."""
        if len(group) == 1:
            return None
        times = [_total(self._launched(nvtx_range.runs)) for nvtx_range in group]
        known = sorted(time for time in times if time is not None)
        return known[p99_position(len(known))] if known and len(known) == len(times) else None

    def _launched(self, runs: Iterable[LaunchRun]) -> list[KernelLaunches]:
        """The kernels of these launches, the most launched first."""
        codes: Counter[int] = Counter()
        for first, last in runs:
            codes.update(self._codes[bisect_left(self._numbers, first) : bisect_right(self._numbers, last)])
        kernels = dict.fromkeys(code >> 1 for code in codes)
        totals = [self._counted(kernel, codes[2 * kernel], codes[2 * kernel + 1]) for kernel in kernels]
        return sorted(totals, key=lambda total: (-total.launches, total.kernel))

    def _counted(self, kernel: int, passed: int, probed: int) -> KernelLaunches:
        if kernel not in self._times:
            known = self._trace.kernels.get(kernel)
            self._times[kernel] = None if known is None else known.time_ms
        time = self._times[kernel]
        return KernelLaunches(kernel, passed + probed, probed, None if time is None else time * (passed + probed) / 1e3)


def _total(launched: Sequence[KernelLaunches]) -> float | None:
    """The time of all launches, None if one is not known."""
    times = [launches.seconds for launches in launched]
    return None if None in times or not times else sum(time for time in times if time is not None)
