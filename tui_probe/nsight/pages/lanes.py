"""Lanes of a timeline of streams: the kernels of a stream, and below them its ranges by level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from tui_probe.draw.shorten import shorten
from tui_probe.nsight.analysis.coverage import time_covered
from tui_probe.nsight.analysis.launch_gaps import by_stream
from tui_probe.nsight.importers.nsys_model import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tui_probe.nsight.importers.nsys_model import Kernels, ProjectedRange, Stream

Kind = Literal["kernels", "ranges"]
_NAME_CELLS = 60


@dataclass(frozen=True, slots=True)
class Lane:
    """Things one after another on a stream, by start: kernels, or ranges of one level. Times are ns from the first."""

    kind: Kind
    label: str
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    names: Sequence[str]
    codes: NDArray[np.int64]
    """The name of each, as a position in ``names``."""

    def __len__(self) -> int:
        return len(self.start)

    def covered(self, edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """Time between each two edges in which something ran; what overlaps counts twice."""
        return np.diff(time_covered(self.start, np.sort(self.end), edges))

    def name(self, index: int) -> str:
        return self.names[int(self.codes[index])]

    def short_name(self, index: int) -> str:
        """A name in few cells."""
        return shorten(self.name(index), _NAME_CELLS)

    def at(self, time: float) -> int | None:
        """What runs at a time, else what started last before it; None before the first."""
        index = int(np.searchsorted(self.start, time, side="right")) - 1
        return index if index >= 0 else None

    def next_start(self, time: float) -> int | None:
        """The first start after a time."""
        index = int(np.searchsorted(self.start, time, side="right"))
        return int(self.start[index]) if index < len(self) else None

    def previous_start(self, time: float) -> int | None:
        """The last start before a time."""
        index = int(np.searchsorted(self.start, time, side="left")) - 1
        return int(self.start[index]) if index >= 0 else None


def lanes_of(
    kernels: Kernels, ranges: Sequence[ProjectedRange], found: NDArray[np.bool_]
) -> tuple[list[Lane], int, int]:
    """The lanes of the kernels that are ``found`` (one truth per kernel) and of ranges; when the first thing starts,
    and ns from there to the end of the last.
    """
    shown = np.flatnonzero(found)
    if not len(shown) and not ranges:
        return [], 0, 1
    origin = min([*kernels.start[shown[:1]].tolist(), *(each.start for each in ranges)])
    end = max([*([int(kernels.end[shown].max())] if len(shown) else []), *(each.end for each in ranges)])
    own = dict(by_stream(kernels.queue[shown]))
    of_ranges: dict[int | None, list[ProjectedRange]] = {}
    for each in ranges:
        of_ranges.setdefault(each.queue, []).append(each)
    lanes: list[Lane] = []
    queues = sorted(
        {*own, *(queue for queue in of_ranges if queue is not None)}, key=lambda queue: _place(kernels, queue)
    )
    for queue, label in zip(queues, labels([kernels.streams[queue] for queue in queues]), strict=True):
        if queue in own:
            rows = shown[own[queue]]
            times = (kernels.start[rows] - origin, kernels.end[rows] - origin)
            lanes.append(Lane("kernels", label, *times, kernels.names, kernels.name[rows]))
        lanes += _range_lanes(of_ranges.get(queue, ()), origin)
    lanes += _range_lanes(of_ranges.get(None, ()), origin)
    return lanes, origin, end - origin


def _place(kernels: Kernels, queue: int) -> tuple[int, ...]:
    """In the order of GPUs, of processes on them, and of streams."""
    stream = kernels.streams[queue]
    return stream.device, stream.process, stream.context, stream.number


def labels(streams: Sequence[Stream]) -> list[str]:
    """A name for each stream, with as much as tells it from the others: ``GPU 1 stream 7``, ``100 stream 7``."""
    devices = len({stream.device for stream in streams}) > 1
    processes = len({stream.process for stream in streams}) > 1
    short = [stream._replace(context=UNKNOWN) for stream in streams]
    return [
        (f"{stream.process} " if processes else "")
        + (f"GPU {stream.device} " if devices else "")
        + f"stream {stream.number}"
        + (f" ctx {stream.context}" if short.count(stream._replace(context=UNKNOWN)) > 1 else "")
        for stream in streams
    ]


def _range_lanes(ranges: Sequence[ProjectedRange], origin: int) -> list[Lane]:
    """One lane per level. ``ranges`` are by start."""
    lanes = []
    for level in sorted({each.level for each in ranges}):
        own = [each for each in ranges if each.level == level]
        start = np.array([each.start - origin for each in own], dtype=np.int64)
        end = np.array([each.end - origin for each in own], dtype=np.int64)
        codes = np.arange(len(own), dtype=np.int64)
        lanes.append(Lane("ranges", f"  ranges {level}", start, end, [each.name for each in own], codes))
    return lanes
