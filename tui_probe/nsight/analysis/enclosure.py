"""Intervals within others, found without comparing each with each: a capture has a million of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

    from tui_probe.nsight.importers.nsys_model import ProjectedRange


def enclosed(
    start: NDArray[np.int64], end: NDArray[np.int64], outer_start: NDArray[np.int64], outer_end: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """For each interval whether one of the outer ones begins no later and ends no earlier."""
    if not len(outer_start):
        return np.zeros(len(start), dtype=np.bool_)
    order = np.argsort(outer_start, kind="stable")
    latest = np.maximum.accumulate(outer_end[order])
    before = np.searchsorted(outer_start[order], start, side="right")
    return np.asarray((before > 0) & (latest[before - 1] >= end))


def ranges_within(rows: Sequence[ProjectedRange], outer: Sequence[ProjectedRange]) -> list[ProjectedRange]:
    """The rows that are one of the outer ranges, or in one: on the same thread as the host saw them, else as their
    stream did. Of two ranges of the same times that with the lower level is the outer one."""
    start, end = _nested(rows, outer)
    is_within = np.zeros(len(rows), dtype=np.bool_)
    around = _by_place(outer)
    for place, own in _by_place(rows).items():
        others = np.array(around.get(place, []), dtype=np.int64) + len(rows)
        is_within[own] = enclosed(start[own], end[own], start[others], end[others])
    return [row for row, inside in zip(rows, is_within.tolist(), strict=True) if inside]


def _nested(*parts: Sequence[ProjectedRange]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Starts and ends as numbers in the same order, none of which are equal for ranges of different levels."""
    rows = [row for part in parts for row in part]
    times = np.array([_interval(row) for row in rows], dtype=np.int64).reshape(-1, 2)
    levels = np.array([row.level for row in rows], dtype=np.int64)
    _, places = np.unique(times, return_inverse=True)
    places = places.reshape(-1, 2) * (2 * int(levels.max(initial=0)) + 1)
    return places[:, 0] + levels, places[:, 1] - levels


def _interval(row: ProjectedRange) -> tuple[int, int]:
    if row.host_start is None or row.host_end is None:
        return row.start, row.end
    return row.host_start, row.host_end


def _by_place(rows: Sequence[ProjectedRange]) -> dict[Hashable, list[int]]:
    """The positions of the rows of each thread, or of each stream where the host's times are not known."""
    found: dict[Hashable, list[int]] = {}
    for number, row in enumerate(rows):
        on_host = row.host_start is not None and row.host_end is not None
        found.setdefault((on_host, row.thread if on_host else row.stream), []).append(number)
    return found
