"""Timeline of the blocks and warps of a launch, and arrivals of each warp at the head of the main loop.

A warp's line begins at (start, 0), passes (time of arrival k, k) and stays at its last number until its end. Between
two arrivals it is straight. A kernel without a loop has lines from (start, 0) to (end, 1), which tells no more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw.canvas import ASCII_SHADES, braille, grades, shaded
from tui_probe.probekit.timelines.launch import launch_timeline
from tui_probe.records import warp_pace
from tui_probe.records.sm_clocks import clock_domains, shared_clock
from tui_probe.records.timeline import timeline

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.draw.canvas import Canvas
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.probekit.timelines.launch import LaunchTimeline
    from tui_probe.records.sm_clocks import ClockAxis
    from tui_probe.records.timeline import Intervals, Timeline
    from tui_probe.records.warp_pace import WarpProgress


DOTS: Final = (4, 2)
"""Dots of a cell: rows, columns."""
_LEVELS: Final = 8
"""Steps of the number of lines in a cell."""
_WARPS_AT_A_TIME: Final = 256
"""Warps that are put into the picture at a time."""


@dataclass(frozen=True, slots=True)
class WarpTimeline:
    """Timeline of a launch, and the paces of its warps."""

    launch: LaunchTimeline
    progress: WarpProgress


def timeline_of(progress: WarpProgress, *, device_sms: int | None = None, has_shared_clock: bool = False) -> Timeline:
    """Return the timeline of warps, on the axis from their pairs of clock and timer.

    Without pairs, as with a single start, SMs are aligned by their first starts. ``device_sms`` is the number of SMs of
    the device, None if unknown; ``has_shared_clock`` if all SMs have one clock, as on the simulated GPU. Raises
    TraceError if no warp saved a record.
    """
    warps, alignment = progress.warps, progress.alignment

    def by_timer(sms: NDArray[np.int32], first_clocks: NDArray[np.uint64]) -> ClockAxis:
        if alignment is None:
            return clock_domains(sms, first_clocks)
        times = alignment.nanoseconds(sms, first_clocks) / alignment.ns_per_cycle
        return replace(alignment.clocks(), shift=np.rint(times - times.min()).astype(np.int64))

    clocks = shared_clock if has_shared_clock else by_timer
    return timeline(
        warps["start"], warps["elapsed"], warps["sm"], clocks, device_sms=device_sms, sample=progress.sample
    )


def analyse(probe_result: ProbeResult) -> WarpProgress:
    """Analyse the warps of a launch. Raises TraceError if the maps are not a start and a pace for each warp."""
    return replace(warp_pace.analyse(probe_result.result, probe_result.clock_khz), has_times=not probe_result.simulated)


def warp_timeline(probe_result: ProbeResult, progress: Progress) -> WarpTimeline:
    """Return the timeline of a launch with the paces; with the measured clock, if there is one."""
    progress(0.0)
    warps = analyse(probe_result)
    launch = launch_timeline(
        probe_result, timeline_of(warps, device_sms=probe_result.sms, has_shared_clock=probe_result.simulated)
    )
    alignment = warps.alignment
    if alignment is not None and alignment.rate_error is not None and not probe_result.simulated:
        launch = replace(launch, clock_khz=round(1e6 / alignment.ns_per_cycle), clock_origin="as measured")
    return WarpTimeline(launch, warps)


def of_launch(probe_result: ProbeResult, progress: Progress) -> LaunchTimeline:
    """Return the timeline only."""
    return warp_timeline(probe_result, progress).launch


@dataclass(frozen=True, slots=True)
class PaceLines:
    """The lines of ``warps``. Points are sorted by warp, then time; those of warp i are ``offsets[i]`` and on.

    ``time`` (i8) is cycles on the axis of the timeline, ``count`` (i8) arrivals until then. ``line`` is that of the
    loop's head in pruned.ptx, None if there is no loop. ``cut_warps`` warps arrived more often than their records had
    room: their lines stay where the records end.
    """

    warps: Intervals
    line: int | None
    time: NDArray[np.int64]
    count: NDArray[np.int64]
    offsets: NDArray[np.int64]
    cut_warps: int

    @property
    def arrivals(self) -> NDArray[np.int64]:
        """Arrivals of each warp that were recorded (i8)."""
        return self.count[self.offsets[1:] - 1]

    def counts_at(self, times: NDArray[Any]) -> NDArray[np.float64]:
        """Positions of each line at ascending times: shape (warps, times), NaN before its start and after its end."""
        span = int(self.time.max()) + 2
        warp = np.arange(len(self.warps), dtype=np.int64)[:, np.newaxis]
        owner = np.repeat(np.arange(len(self.warps), dtype=np.int64), np.diff(self.offsets))
        cycles = np.floor(np.clip(times, 0, span - 1)).astype(np.int64)
        next_points = np.searchsorted(owner * span + self.time, warp * span + cycles, side="right")
        next_points = np.clip(next_points, self.offsets[:-1, np.newaxis] + 1, self.offsets[1:, np.newaxis] - 1)
        previous_points = next_points - 1
        length = np.maximum(self.time[next_points] - self.time[previous_points], 1)
        part = np.clip((times - self.time[previous_points]) / length, 0, 1)
        counts = self.count[previous_points] + part * (self.count[next_points] - self.count[previous_points])
        is_running = (times >= self.warps.start[:, np.newaxis]) & (times <= self.warps.end[:, np.newaxis])
        return np.where(is_running, counts, np.nan)


def pace_lines(progress: WarpProgress, warps: Intervals) -> PaceLines:
    """The lines of these warps, which are some of the launch's; their times are on the timeline's axis."""
    loop = progress.main_loop
    first_block, step = (
        (0, 1) if progress.sample is None else (progress.sample.blocks.start, progress.sample.blocks.step)
    )
    warp_index = (warps.block - first_block) // step, warps.warp
    arrival_counts = progress.arrival_counts[warp_index].astype(np.int64)
    capacity = progress.pace.shape[2]
    if loop is None:
        end_points = np.stack([warps.start, warps.end], axis=1)
        count = np.tile(np.array([0, 1], dtype=np.int64), len(warps))
        return PaceLines(warps, None, end_points.ravel(), count, np.arange(len(warps) + 1, dtype=np.int64) * 2, 0)
    records = progress.pace[warp_index]
    is_recorded = np.arange(capacity) < progress.recorded_arrivals[warp_index][:, np.newaxis]
    is_recorded &= records["line"] == loop.line
    elapsed = (records["clock"] - progress.warps["start"][warp_index].astype(np.uint32)[:, np.newaxis]).astype(np.int64)
    record_warps, _ = np.nonzero(is_recorded)
    warp_numbers = np.arange(len(warps), dtype=np.int64)
    owner = np.concatenate([warp_numbers, record_warps, warp_numbers])
    time = np.concatenate([warps.start, warps.start[record_warps] + elapsed[is_recorded], warps.end])
    point_order = np.repeat(np.array([0, 1, 2]), [len(warps), len(record_warps), len(warps)])
    order = np.lexsort((time, point_order, owner))
    owner, time, point_order = owner[order], time[order], point_order[order]
    offsets = np.searchsorted(owner, np.arange(len(warps) + 1)).astype(np.int64)
    total_arrivals = np.cumsum(point_order == 1)
    count = total_arrivals - total_arrivals[offsets[:-1]][owner]
    return PaceLines(warps, loop.line, time, count, offsets, int((arrival_counts > capacity).sum()))


@dataclass(frozen=True, slots=True)
class PacePicture:
    """Picture of one window: lines through each of ``dots``, and mask of the dots that a straggler passes; both have
    the shape (rows × 4, cells × 2).
    """

    begin: float
    width: float
    dots: NDArray[np.int64]
    has_straggler: NDArray[np.bool_]


def pace_picture(
    paces: PaceLines, is_straggler: NDArray[np.bool_], top: int, window: tuple[float, float], cells: int, rows: int
) -> PacePicture:
    """Lines in a window (begin, width in cycles) of ``cells`` × ``rows``; ``top`` arrivals are the upper edge.

    ``is_straggler``: mask of the warps that are stragglers.
    """
    begin, width = window
    shape = rows * DOTS[0], cells * DOTS[1]
    times = begin + width * (np.arange(shape[1]) + 0.5) / shape[1]
    values = paces.counts_at(times)
    lines = sum(
        (_lines_per_dot(values[a : a + _WARPS_AT_A_TIME], top, shape) for a in range(0, len(values), _WARPS_AT_A_TIME)),
        np.zeros(shape, int),
    )
    return PacePicture(begin, width, lines, _lines_per_dot(values[is_straggler], top, shape) > 0)


def _lines_per_dot(values: NDArray[np.float64], top: int, shape: tuple[int, int]) -> NDArray[np.int64]:
    """Count the lines through each dot. A line that climbs fills the dots between those of two columns."""
    is_running = ~np.isnan(values)
    height = np.where(is_running, np.rint(np.nan_to_num(values) / max(top, 1) * (shape[0] - 1)), 0).astype(np.int64)
    previous_height = np.concatenate([height[:, :1], height[:, :-1]], axis=1)
    was_running = np.concatenate([is_running[:, :1], is_running[:, :-1]], axis=1)
    bottom = np.where(was_running & (previous_height < height), previous_height + 1, height)
    line, column = np.nonzero(is_running)
    change = np.zeros((shape[0] + 1, shape[1]), dtype=np.int64)
    np.add.at(change, (bottom[line, column], column), 1)
    np.add.at(change, (height[line, column] + 1, column), -1)
    return np.cumsum(change, axis=0)[-2::-1]


def draw_picture(canvas: Canvas, x: int, y: int, picture: PacePicture, *, ascii_only: bool) -> None:
    """Dots as Braille, or in ASCII as a ramp; the more lines in a cell, the higher its level."""
    in_cell = _sum_by_cell(picture.dots)
    level = grades(in_cell, _LEVELS)
    codes: NDArray[Any] = shaded(level, ASCII_SHADES) if ascii_only else braille(picture.dots > 0)
    roles = np.array([canvas.role(""), *(canvas.role(f"ramp{i}") for i in range(_LEVELS))], dtype=np.uint16)
    cell_roles = np.where(_sum_by_cell(picture.has_straggler.astype(np.int64)) > 0, canvas.role("bad"), roles[level])
    canvas.paint(x, y, codes, cell_roles)


def _sum_by_cell(dots: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sums over the dots of each cell."""
    rows, cells = dots.shape[0] // DOTS[0], dots.shape[1] // DOTS[1]
    sums: NDArray[np.int64] = dots.reshape(rows, DOTS[0], cells, DOTS[1]).sum(axis=(1, 3))
    return sums
