"""Gaps between the kernels of a stream, and why they are there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from tui_probe.analysis.coverage import time_covered
from tui_probe.importers.nsys_model import UNKNOWN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.importers.nsys_model import Copies, Kernels

Why = Literal["copy", "host", "other"]
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

    device: int
    stream: int
    start: int
    length: int
    before: int
    after: int
    late: int | None
    why: Why | None


def gaps(kernels: Kernels, copies: Copies) -> list[Gap]:
    """Every gap of every stream, the longest first."""
    found: list[Gap] = []
    for device, stream in sorted(set(zip(kernels.device.tolist(), kernels.stream.tolist(), strict=True))):
        own = np.flatnonzero((kernels.device == device) & (kernels.stream == stream))
        ends = np.maximum.accumulate(kernels.end[own])
        there = np.flatnonzero(kernels.start[own][1:] > ends[:-1])
        starts, stops = ends[:-1][there], kernels.start[own][1:][there]
        copied = _copied(copies, (copies.device == device) & (copies.stream == stream), starts, stops)
        for i, start, stop, copy in zip(there.tolist(), starts.tolist(), stops.tolist(), copied.tolist(), strict=True):
            launched = int(kernels.launch_start[own[i + 1]])
            late = None if launched == UNKNOWN else launched - start
            why = _why(stop - start, copy, late)
            found.append(Gap(device, stream, start, stop - start, int(own[i]), int(own[i + 1]), late, why))
    return sorted(found, key=lambda gap: (-gap.length, gap.start))


def _copied(
    copies: Copies, own: NDArray[np.bool_], starts: NDArray[np.int64], stops: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Time of copies between each start and stop; those of one stream do not overlap."""
    begin, end = copies.start[own], np.sort(copies.end[own])
    return time_covered(begin, end, stops) - time_covered(begin, end, starts)


def _why(length: int, copied: int, late: int | None) -> Why | None:
    """What took most of a gap."""
    if 2 * copied >= length:
        return "copy"
    return None if late is None else "host" if late > 0 else "other"
