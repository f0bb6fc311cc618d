"""Gaps between the kernels of a stream, and why they are there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from tui_probe.nsight.analysis.coverage import time_covered
from tui_probe.nsight.importers.nsys_model import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tui_probe.nsight.importers.nsys_model import Copies, Kernels

Why = Literal["copy", "host", "other"]
WHYS: Final[tuple[Why | None, ...]] = (None, "copy", "host", "other")
WHY_WORDS: Final[dict[Why, str]] = {
    "copy": "a copy took most of it",
    "host": "launched late by the host",
    "other": "launched in time, waited",
}


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
    why: Why | None


@dataclass(frozen=True, slots=True)
class Gaps:
    """Gaps as columns, one entry per gap; ``launched`` is when the call that launched ``after`` began, -1 not known.

    ``why`` is a position in ``WHYS``.
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
            yield Gap(queue, start, length, before, after, late, WHYS[why])

    def chosen(self, places: NDArray[Any] | slice) -> Gaps:
        """Some of them."""
        return Gaps(*(column[places] for column in self._columns))


def gaps(kernels: Kernels, copies: Copies) -> Gaps:
    """Every gap of every stream, the longest first."""
    parts = [_of_stream(kernels, copies, own, queue) for queue, own in by_stream(kernels.queue)]
    none = np.empty(0, dtype=np.int64)
    found = Gaps(*(map(np.concatenate, zip(*parts, strict=True)) if parts else [none] * 7))
    return found.chosen(np.lexsort((found.queue, found.start, -found.length)))


def by_stream(queues: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """The positions of each stream's entries, in their order."""
    order = np.argsort(queues, kind="stable")
    numbers, first = np.unique(queues[order], return_index=True)
    if len(numbers):
        yield from zip(numbers.tolist(), np.split(order, first[1:]), strict=True)


def _of_stream(kernels: Kernels, copies: Copies, own: NDArray[np.int64], queue: int) -> tuple[NDArray[Any], ...]:
    """The columns of the gaps between the kernels ``own`` of one stream."""
    ends = np.maximum.accumulate(kernels.end[own])
    there = np.flatnonzero(kernels.start[own][1:] > ends[:-1])
    start, stop, after = ends[:-1][there], kernels.start[own][1:][there], own[there + 1]
    launched = kernels.launch_start[after]
    copied = _copied(copies, copies.queue == queue, start, stop)
    before = own[there].astype(np.int32)
    why = np.select(
        [2 * copied >= stop - start, launched == UNKNOWN, launched > start],
        [WHYS.index("copy"), WHYS.index(None), WHYS.index("host")],
        WHYS.index("other"),
    ).astype(np.int8)
    return np.full(len(there), queue, np.int32), start, stop - start, before, after.astype(np.int32), launched, why


def _copied(
    copies: Copies, own: NDArray[np.bool_], starts: NDArray[np.int64], stops: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Time of copies between each start and stop; those of one stream do not overlap."""
    begin, end = copies.start[own], np.sort(copies.end[own])
    return time_covered(begin, end, stops) - time_covered(begin, end, starts)
