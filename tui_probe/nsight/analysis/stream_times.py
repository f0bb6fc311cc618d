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


def time_covered(starts: NDArray[np.int64], ends: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, per time, the length of all intervals before it; where intervals overlap both count.

    ``starts`` and ``ends`` are each ascending, so an interval's end need not be where its start does.
    """
    return _since(starts, times) - _since(ends, times)


def _since(events: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, per time t, the sum of t − e over the events e before it."""
    sums = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(events)))
    counts = np.searchsorted(events, times, side="right")
    return np.asarray(counts * times - sums[counts])


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
    cause: GapCause | None


@dataclass(frozen=True, slots=True)
class Gaps:
    """Gaps as columns, one entry per gap; ``launched`` is when the call that launched ``after`` began, -1 not known.

    ``cause`` is a position in ``GAP_CAUSES``.
    """

    queue: NDArray[Any]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    before: NDArray[Any]
    after: NDArray[Any]
    launched: NDArray[np.int64]
    cause: NDArray[Any]

    def __len__(self) -> int:
        return len(self.start)

    @property
    def _columns(self) -> tuple[NDArray[Any], ...]:
        return self.queue, self.start, self.length, self.before, self.after, self.launched, self.cause

    def __iter__(self) -> Iterator[Gap]:
        for queue, start, length, before, after, launched, cause in zip(
            *(column.tolist() for column in self._columns), strict=True
        ):
            late = None if launched == UNKNOWN else launched - start
            yield Gap(queue, start, length, before, after, late, GAP_CAUSES[cause])

    def chosen(self, positions: NDArray[Any] | slice) -> Gaps:
        """Return the gaps at these positions, in their order."""
        return Gaps(*(column[positions] for column in self._columns))


def gaps(kernels: Kernels, copies: Copies) -> Gaps:
    """Return the gaps of all streams, the longest first."""
    streams = [_stream_gaps(kernels, copies, positions, queue) for queue, positions in by_stream(kernels.queue)]
    if not streams:
        return Gaps(*[np.empty(0, dtype=np.int64)] * len(fields(Gaps)))
    unsorted = Gaps(*map(np.concatenate, zip(*streams, strict=True)))
    return unsorted.chosen(np.lexsort((unsorted.queue, unsorted.start, -unsorted.length)))


def by_stream(queues: NDArray[Any]) -> Iterator[tuple[int, NDArray[np.int32]]]:
    """Yield each stream's number with the positions of its entries, in their order."""
    order = np.argsort(queues, kind="stable").astype(np.int32)
    streams, first = np.unique(queues[order], return_index=True)
    if len(streams):
        yield from zip(streams.tolist(), np.split(order, first[1:]), strict=True)


def _stream_gaps(
    kernels: Kernels, copies: Copies, positions: NDArray[np.int32], queue: int
) -> tuple[NDArray[Any], ...]:
    """Return the columns of ``Gaps`` for the kernels of one stream, at these positions in the order of start."""
    starts = kernels.start[positions]
    ends = np.maximum.accumulate(kernels.end[positions])  # kernels of one stream may overlap
    followed = np.flatnonzero(starts[1:] > ends[:-1])
    begin, stop = ends[followed], starts[followed + 1]
    before, after = positions[followed].astype(np.int32), positions[followed + 1].astype(np.int32)
    launched = kernels.launch_start[after]
    copied = _copy_time(copies, copies.queue == queue, begin, stop)
    cause = np.select(
        [2 * copied >= stop - begin, launched == UNKNOWN, launched > begin],
        [GAP_CAUSES.index("copy"), GAP_CAUSES.index(None), GAP_CAUSES.index("host")],
        GAP_CAUSES.index("other"),
    ).astype(np.int8)
    return np.full(len(followed), queue, np.int32), begin, stop - begin, before, after, launched, cause


def _copy_time(
    copies: Copies, of_stream: NDArray[np.bool_], begins: NDArray[np.int64], stops: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the time of a stream's copies between each begin and stop; copies of one stream do not overlap."""
    copy_starts, copy_ends = copies.start[of_stream], np.sort(copies.end[of_stream])
    return time_covered(copy_starts, copy_ends, stops) - time_covered(copy_starts, copy_ends, begins)
