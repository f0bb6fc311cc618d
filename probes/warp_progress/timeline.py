"""Timeline of the blocks and warps of a launch, from starts and paces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tui_probe.probekit.timelines.launch import launch_timeline
from tui_probe.records import warp_pace
from tui_probe.records.sm_clocks import clock_domains, shared_clock
from tui_probe.records.timeline import timeline

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.draw.view import Progress
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.probekit.timelines.launch import LaunchTimeline
    from tui_probe.records.sm_clocks import ClockAxis
    from tui_probe.records.timeline import Timeline
    from tui_probe.records.warp_pace import WarpProgress


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

    def by_timer(sms: NDArray[np.int32], first: NDArray[np.uint64]) -> ClockAxis:
        if alignment is None:
            return clock_domains(sms, first)
        times = alignment.nanoseconds(sms, first) / alignment.ns_per_cycle
        return replace(alignment.clocks(), shift=np.rint(times - times.min()).astype(np.int64))

    clocks = shared_clock if has_shared_clock else by_timer
    return timeline(
        warps["start"], warps["elapsed"], warps["sm"], clocks, device_sms=device_sms, sample=progress.sample
    )


def analyse(of: ProbeResult) -> WarpProgress:
    """Analyse the warps of a launch. Raises TraceError if the maps are not a start and a pace for each warp."""
    return replace(warp_pace.analyse(of.result, of.clock_khz), timed=not of.simulated)


def warp_timeline(of: ProbeResult, progress: Progress) -> WarpTimeline:
    """Return the timeline of a launch with the paces; with the measured clock, if there is one."""
    progress(0.0)
    warps = analyse(of)
    launch = launch_timeline(of, timeline_of(warps, device_sms=of.sms, has_shared_clock=of.simulated))
    aligned = warps.alignment
    if aligned is not None and aligned.rate_error is not None and not of.simulated:
        launch = replace(launch, clock_khz=round(1e6 / aligned.ns_per_cycle), clock_words="as measured")
    return WarpTimeline(launch, warps)


def of_launch(of: ProbeResult, progress: Progress) -> LaunchTimeline:
    """Return the timeline only."""
    return warp_timeline(of, progress).launch
