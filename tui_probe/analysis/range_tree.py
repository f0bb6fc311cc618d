"""NVTX ranges of a trace as a tree, each with the launches that are in it and in none of its inner ranges.

Ranges of one name within the same outer range can be taken together: a loop of steps is then one node.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tui_probe.trace.model import Trace
    from tui_probe.trace.ranges import Range, Run


class Launched(NamedTuple):
    """Launches of one kernel in a range, and how many of them were probed."""

    kernel: int
    launches: int
    probed: int


@dataclass(slots=True)
class RangeNode:
    """One range, or several of one name (``times``) within the same outer one.

    ``launches`` and ``probed`` count those of inner ranges too, ``own`` not. ``seconds`` is host time between the
    calls, None if one of them never ended; ``kernel_seconds`` the time of all launches, launches × median of the kernel
    as it was timed, None if one was not. ``start_s`` is since the start of the process.
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
    own: Sequence[Launched]
    inner: list[RangeNode] = field(default_factory=list)

    def walk(self) -> Iterator[RangeNode]:
        """This one, then what is inside it, depth first."""
        yield self
        for node in self.inner:
            yield from node.walk()


def range_tree(trace: Trace, *, together: bool = False) -> list[RangeNode]:
    """The outermost ranges in the order of their start; ``together``: those of one name as one."""
    ranges = list(trace.ranges)
    known: set[int | None] = set()  # the outer one began before, so its id comes first
    inner: dict[int | None, list[Range]] = {}
    for each in ranges:
        inner.setdefault(each.parent if each.parent in known else None, []).append(each)
        known.add(each.id)
    return _Tree(trace, inner, together=together).nodes([None], 0)


def without(runs: Sequence[Run], others: Sequence[Run]) -> list[Run]:
    """Launches of the first that are not among the second; both are pairs of first and last."""
    left: list[Run] = []
    taken = sorted(others)
    for first, last in sorted(runs):
        for start, end in taken:
            if end < first or start > last:
                continue
            if start > first:
                left.append((first, start - 1))
            first = end + 1
        if first <= last:
            left.append((first, last))
    return left


class _Tree:
    """Builds nodes; the launches are at hand sorted by number."""

    def __init__(self, trace: Trace, inner: dict[int | None, list[Range]], *, together: bool) -> None:
        columns = [trace.launches.column(name) for name in ("number", "kernel", "probed")]
        least = min(map(len, columns))  # the log may be read on meanwhile
        order = np.argsort(columns[0][:least], kind="stable")
        self._numbers: NDArray[np.int64]
        self._numbers, self._kernel, self._probed = (column[order] for column in columns)
        self._trace, self._inner, self._together = trace, inner, together

    def nodes(self, outer: Sequence[int | None], depth: int) -> list[RangeNode]:
        """What is directly inside the ranges of these ids."""
        inside = [each for key in outer for each in self._inner.get(key, ())]
        groups: dict[object, list[Range]] = {}
        for each in inside:
            groups.setdefault((each.text, each.domain) if self._together else each.id, []).append(each)
        return [self._node(group, depth) for group in groups.values()]

    def _node(self, group: Sequence[Range], depth: int) -> RangeNode:
        first = group[0]
        ids = [each.id for each in group]
        runs = [run for each in group for run in each.runs]
        covered = [run for key in ids for each in self._inner.get(key, ()) for run in each.runs]
        everything, epoch = self._launched(runs), self._trace.state.epoch_ns
        host = [None if each.end_ns is None else each.end_ns - each.start_ns for each in group]
        return RangeNode(
            text=first.text,
            domain=first.domain,
            thread=first.thread,
            depth=depth,
            times=len(group),
            launches=sum(each.launches for each in group),
            probed=sum(each.probed for each in everything),
            seconds=None if None in host else sum(each for each in host if each is not None) / 1e9,
            kernel_seconds=self._time(everything),
            start_s=None if epoch is None else (first.start_ns - epoch) / 1e9,
            own=self._launched(without(runs, covered)),
            inner=self.nodes(ids, depth + 1),
        )

    def _launched(self, runs: Sequence[Run]) -> list[Launched]:
        """The kernels of these launches, the most launched first."""
        parts = [slice(*np.searchsorted(self._numbers, (first, last + 1))) for first, last in runs]
        if not parts:
            return []
        kernels = np.concatenate([self._kernel[part] for part in parts])
        probed = np.concatenate([self._probed[part] for part in parts])
        indices, places, counts = np.unique(kernels, return_inverse=True, return_counts=True)
        of_probed = np.bincount(places.reshape(-1), weights=probed, minlength=len(indices))
        found = zip(indices.tolist(), counts.tolist(), of_probed.astype(np.int64).tolist(), strict=True)
        return sorted((Launched(*each) for each in found), key=lambda each: -each.launches)

    def _time(self, launched: Sequence[Launched]) -> float | None:
        times = []
        for each in launched:
            kernel = self._trace.kernels.get(each.kernel)
            time = None if kernel is None else kernel.time_ms
            if time is None:
                return None
            times.append(time * each.launches / 1e3)
        return sum(times) if times else None
