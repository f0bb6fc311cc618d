"""Times of streams: the time that intervals cover, and gaps between kernels with their cause.

All times are nanoseconds of the timeline.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from tui_probe.nsight.importers.nsys_model import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tui_probe.nsight.importers.nsys_model import Copies, Kernels

GapCause = Literal["copy", "host", "other"]
GAP_CAUSES: Final[tuple[GapCause | None, ...]] = (None, "copy", "host", "other")
GAP_CAUSE_TEXTS: Final[dict[GapCause, str]] = {
    "copy": "mostly a copy",
    "host": "launched late by the host",
    "other": "launched early enough, but waited",
}


def covered_time(
    interval_starts: NDArray[np.int64], interval_ends: NDArray[np.int64], times: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return, per time, the length of all intervals before it; where intervals overlap both count.

    ``interval_starts`` and ``interval_ends`` are each ascending, so an interval's end need not be where its start does.
    """
    return _elapsed_since(interval_starts, times) - _elapsed_since(interval_ends, times)


def _elapsed_since(events: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, per time t, the sum of t − e over the events e before it."""
    sums = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(events)))
    counts = np.searchsorted(events, times, side="right")
    return np.asarray(counts * times - sums[counts])


@dataclass(frozen=True, slots=True)
class Gap:
    """Nothing of the kernels ran on a stream for ``length`` ns from ``start``.

    ``previous_kernel`` and ``next_kernel`` are kernels by position. ``delay`` is how long after the end of
    ``previous_kernel`` the call that launched ``next_kernel`` began, negative if it was in time, None where the call is
    not known.
    """

    queue: int
    start: int
    length: int
    previous_kernel: int
    next_kernel: int
    delay: int | None
    cause: GapCause | None


@dataclass(frozen=True, slots=True)
class Gaps:
    """Gaps as columns, one entry per gap; ``launch_start`` is when the call that launched ``next_kernel`` began, -1 not
    known.

    ``cause`` is a position in ``GAP_CAUSES``.
    """

    queue: NDArray[Any]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    previous_kernel: NDArray[Any]
    next_kernel: NDArray[Any]
    launch_start: NDArray[np.int64]
    cause: NDArray[Any]

    def __len__(self) -> int:
        return len(self.start)

    @property
    def _columns(self) -> tuple[NDArray[Any], ...]:
        return (
            self.queue,
            self.start,
            self.length,
            self.previous_kernel,
            self.next_kernel,
            self.launch_start,
            self.cause,
        )

    def __iter__(self) -> Iterator[Gap]:
        for queue, start, length, previous_kernel, next_kernel, launch_start, cause in zip(
            *(column.tolist() for column in self._columns), strict=True
        ):
            delay = None if launch_start == UNKNOWN else launch_start - start
            yield Gap(queue, start, length, previous_kernel, next_kernel, delay, GAP_CAUSES[cause])

    def select(self, positions: NDArray[Any] | slice) -> Gaps:
        """Return the gaps at these positions, in their order."""
        return Gaps(*(column[positions] for column in self._columns))


def gaps(kernels: Kernels, copies: Copies) -> Gaps:
    """Return the gaps of all streams, the longest first."""
    streams = [
        _stream_gaps(kernels, copies, positions, queue) for queue, positions in positions_by_stream(kernels.queue)
    ]
    if not streams:
        return Gaps(*[np.empty(0, dtype=np.int64)] * len(fields(Gaps)))
    unsorted = Gaps(*map(np.concatenate, zip(*streams, strict=True)))
    return unsorted.select(np.lexsort((unsorted.queue, unsorted.start, -unsorted.length)))


def positions_by_stream(queues: NDArray[Any]) -> Iterator[tuple[int, NDArray[np.int32]]]:
    """Yield each stream's number with the positions of its entries, in their order."""
    order = np.argsort(queues, kind="stable").astype(np.int32)
    streams, first_positions = np.unique(queues[order], return_index=True)
    if len(streams):
        yield from zip(streams.tolist(), np.split(order, first_positions[1:]), strict=True)


def _stream_gaps(
    kernels: Kernels, copies: Copies, positions: NDArray[np.int32], queue: int
) -> tuple[NDArray[Any], ...]:
    """Return the columns of ``Gaps`` for the kernels of one stream, at these positions in the order of start."""
    starts = kernels.start[positions]
    ends = np.maximum.accumulate(kernels.end[positions])  # kernels of one stream may overlap
    gap_indices = np.flatnonzero(starts[1:] > ends[:-1])
    gap_starts, gap_ends = ends[gap_indices], starts[gap_indices + 1]
    previous_kernels, next_kernels = (
        positions[gap_indices].astype(np.int32),
        positions[gap_indices + 1].astype(np.int32),
    )
    launch_starts = kernels.launch_start[next_kernels]
    copy_times = _copy_time(copies, copies.queue == queue, gap_starts, gap_ends)
    cause = np.select(
        [2 * copy_times >= gap_ends - gap_starts, launch_starts == UNKNOWN, launch_starts > gap_starts],
        [GAP_CAUSES.index("copy"), GAP_CAUSES.index(None), GAP_CAUSES.index("host")],
        GAP_CAUSES.index("other"),
    ).astype(np.int8)
    return (
        np.full(len(gap_indices), queue, np.int32),
        gap_starts,
        gap_ends - gap_starts,
        previous_kernels,
        next_kernels,
        launch_starts,
        cause,
    )


def _copy_time(
    copies: Copies, is_of_stream: NDArray[np.bool_], gap_starts: NDArray[np.int64], gap_ends: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the time of a stream's copies between each begin and stop; copies of one stream do not overlap."""
    copy_starts, copy_ends = copies.start[is_of_stream], np.sort(copies.end[is_of_stream])
    return covered_time(copy_starts, copy_ends, gap_ends) - covered_time(copy_starts, copy_ends, gap_starts)
