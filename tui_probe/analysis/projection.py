"""NVTX ranges of the host, projected on the streams of the GPU.

A kernel belongs to a range if the call that launched it lies within the range, on the same thread. On each stream the
projected range runs from the start of its first kernel to the end of its last, so what the host did meanwhile is not in
it; a range that launched nothing has no projection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tui_probe.importers.nsys_model import UNKNOWN, ProjectedRange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from tui_probe.importers.nsys_model import HostRanges, Kernels


def project(
    kernels: Kernels, ranges: HostRanges, progress: Callable[[float], object] = lambda _: None
) -> list[ProjectedRange]:
    """The ranges on every stream, by start, the outer first. ``level`` counts the projected ranges around one.

    ``progress`` is told the share of the ranges that is done.
    """
    found: list[ProjectedRange] = []
    around: list[tuple[int, int]] = []  # thread and end of the ranges that enclose the next, the outermost first
    for done, (row, inside) in enumerate(_members(kernels, ranges)):
        progress(done / len(ranges))
        thread, start, end = int(ranges.thread[row]), int(ranges.start[row]), int(ranges.end[row])
        around = [each for each in around if each[0] == thread and each[1] >= end and each[1] > start]
        found += _streams(kernels, ranges, inside, row, len(around))
        around.append((thread, end))
    return sorted(found, key=lambda each: (each.start, each.level, -each.end))


def _members(kernels: Kernels, ranges: HostRanges) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Every range that launched kernels, in order, and these kernels."""
    for thread in sorted(set(ranges.thread.tolist())):
        own = np.flatnonzero(kernels.thread == thread)
        if not len(own) or thread == UNKNOWN:
            continue
        own = own[np.argsort(kernels.launch_start[own], kind="stable")]
        launched, returned = kernels.launch_start[own], kernels.launch_end[own]
        rows = np.flatnonzero(ranges.thread == thread)
        first = np.searchsorted(launched, ranges.start[rows], side="left").tolist()
        last = np.searchsorted(launched, ranges.end[rows], side="right").tolist()
        for row, low, high in zip(rows.tolist(), first, last, strict=True):
            inside = own[low:high][returned[low:high] <= ranges.end[row]]
            if len(inside):
                yield row, inside


def _streams(
    kernels: Kernels, ranges: HostRanges, inside: NDArray[np.int64], row: int, level: int
) -> Iterator[ProjectedRange]:
    """One range on each stream on which it launched kernels."""
    devices, streams = kernels.device[inside], kernels.stream[inside]
    for device, stream in sorted(set(zip(devices.tolist(), streams.tolist(), strict=True))):
        each = inside[(devices == device) & (streams == stream)]
        yield ProjectedRange(
            name=ranges.names[ranges.name[row]],
            device=device,
            stream=stream,
            start=int(kernels.start[each].min()),
            end=int(kernels.end[each].max()),
            kernels=len(each),
            level=level,
            busy=int((kernels.end[each] - kernels.start[each]).sum()),
            host_start=int(ranges.start[row]),
            host_end=int(ranges.end[row]),
        )


def within(kernels: Kernels, ranges: HostRanges, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which kernels belong to one of the ``chosen`` ranges, or to a range inside one."""
    found = np.zeros(len(kernels), dtype=np.bool_)
    for row, inside in _members(kernels, ranges):
        if chosen[row]:
            found[inside] = True
    return found


def innermost(kernels: Kernels, ranges: HostRanges) -> NDArray[np.int64]:
    """For each kernel the shortest range that it belongs to, -1 if it is in none."""
    found = np.full(len(kernels), UNKNOWN, dtype=np.int64)
    shortest = np.full(len(kernels), np.iinfo(np.int64).max, dtype=np.int64)
    for row, inside in _members(kernels, ranges):
        length = ranges.end[row] - ranges.start[row]
        nearer = inside[length <= shortest[inside]]
        found[nearer], shortest[nearer] = row, length
    return found
