"""Lanes of a timeline of streams: the kernels of a stream, and below them its ranges by level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from tui_probe.analysis.coverage import time_covered
from tui_probe.draw.shorten import shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tui_probe.importers.nsys_model import Kernels, ProjectedRange

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
    starts = [*kernels.start[found].tolist(), *(each.start for each in ranges)]
    ends = [*kernels.end[found].tolist(), *(each.end for each in ranges)]
    origin = min(starts, default=0)
    lanes: list[Lane] = []
    places = sorted(
        set(zip(kernels.device[found].tolist(), kernels.stream[found].tolist(), strict=True))
        | {(each.device, each.stream) for each in ranges if each.device is not None}
    )
    several = len({device for device, _ in places}) > 1
    for device, stream in places:
        prefix = f"GPU {device} " if several else ""
        own = np.flatnonzero(found & (kernels.device == device) & (kernels.stream == stream))
        if len(own):
            start, end = kernels.start[own] - origin, kernels.end[own] - origin
            label = f"{prefix}stream {stream}"
            lanes.append(Lane("kernels", label, start, end, kernels.names, kernels.name[own]))
        lanes += _range_lanes([each for each in ranges if (each.device, each.stream) == (device, stream)], origin)
    lanes += _range_lanes([each for each in ranges if each.device is None], origin)
    return lanes, origin, max(ends, default=1) - origin


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
