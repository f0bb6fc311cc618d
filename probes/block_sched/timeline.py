"""When the blocks and warps of a launch ran, from the records of this probe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.analysis.timeline import timeline, timeline_of_blocks
from tui_probe.analysis.timeline_clocks import clock_domains, shared_clock
from tui_probe.errors import TraceError
from tui_probe.probekit.timelines.launch import launch_timeline
from tui_probe.trace.result_reduced import Reduced

from .analysis import RECORD, blocks_of

if TYPE_CHECKING:
    from tui_probe.analysis.timeline import Timeline
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.probekit.timelines.launch import LaunchTimeline
    from tui_probe.trace.results import Result


def timeline_of(result: Result, *, device_sms: int | None = None, one_clock: bool = False) -> Timeline:
    """The timeline of a ``block_sched`` result. Raises TraceError if the result holds nothing of that probe.

    ``device_sms`` is how many SMs the device has, None if the trace does not tell; ``one_clock`` says that all SMs
    count with one clock, as those of the simulated GPU do.
    """
    if not result.maps:
        raise TraceError(f"{result.path}: it has no map, so no records of block_sched")
    found = result.reduced(0, RECORD) or result.one_record(0, RECORD)
    clocks = shared_clock if one_clock else clock_domains
    try:
        if isinstance(found, Reduced):
            return timeline_of_blocks(blocks_of(result, found), clocks, device_sms=device_sms, sample=result.sample)
        return timeline(
            found["start"], found["elapsed"], found["sm"], clocks, device_sms=device_sms, sample=result.sample
        )
    except TraceError as error:
        raise TraceError(f"{result.path}: {error}") from error


def of_launch(of: ProbeResult, progress: Progress) -> LaunchTimeline:
    """The timeline of a launch, and what is known of it besides."""
    progress(0.0)
    return launch_timeline(of, timeline_of(of.result, device_sms=of.sms, one_clock=of.simulated))
