"""The timeline of a launch from its result, and what is known of the launch besides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tui_probe.analysis import warp_progress
from tui_probe.analysis.timeline import from_block_sched, from_warp_progress
from tui_probe.draw import units
from tui_probe.errors import TraceError
from tui_probe.probekit import probe_results
from tui_probe.probekit.kept import sampled_words

if TYPE_CHECKING:
    from tui_probe.analysis.timeline import Timeline
    from tui_probe.analysis.warp_progress import WarpProgress
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.kind import Source
    from tui_probe.probekit.timelines.rows import Choice
    from tui_probe.trace.event_types import Dim3

PROBES: Final = ("block_sched", "warp_progress")


@dataclass(frozen=True, slots=True)
class LaunchTimeline:
    """A timeline and its launch. ``clock_khz`` turns cycles into time; None where that would be no time."""

    timeline: Timeline
    which: str
    """``launch 7 of #2``."""
    name: str
    """Of the kernel, as a person reads it."""
    simulated: bool
    clock_khz: int | None
    clock_words: str = "the device's highest clock"
    """Where ``clock_khz`` comes from."""
    progress: WarpProgress | None = None
    """What else ``warp_progress`` recorded."""
    grid: Dim3 | None = None

    def block_words(self, block: int) -> str:
        """``block 37``, with its place in a grid of several dimensions: ``block 37 (5,4)``."""
        if self.grid is None or self.grid[1] * self.grid[2] == 1:
            return f"block {block}"
        x, y, z = self.grid
        place = [block % x, block // x % y, block // (x * y)][: 2 if z == 1 else 3]
        return f"block {block} ({','.join(map(str, place))})"

    def recorded(self) -> WarpProgress:
        """``progress`` of a launch that has it. Raises TraceError otherwise."""
        if self.progress is None:
            raise TraceError(f"{self.which}: its probe recorded no progress of warps")
        return self.progress

    def rows(self, choice: Choice) -> int:
        """How many rows a choice has."""
        here = self.timeline.slots if choice.sm is None else self.timeline.slots[self.timeline.sms == choice.sm]
        slots = int(here.clip(1).sum())
        return {"SM": len(here), "slot": slots, "warp": slots * self.timeline.warps_a_block}[choice.level]

    def left_out(self) -> list[str]:
        """What the picture lacks, in words."""
        timeline = self.timeline
        counts = (
            (timeline.blocks_missing, "block", "without a record"),
            (timeline.warps_missing, "warp", "without a record"),
            (timeline.blocks_astray, "block", "that changed SM"),
        )
        sample = timeline.sample
        words = [] if sample is None else [sampled_words(sample)]
        return words + [f"{units.counted(count, noun)} {why} left out" for count, noun, why in counts if count]

    def record(self) -> dict[str, Any]:
        """As data; shares and cycles as :mod:`tui_probe.analysis.timeline` defines them."""
        timeline = self.timeline
        return {
            "simulated": self.simulated,
            "clock_khz": self.clock_khz,
            "span": timeline.span,
            "sms": len(timeline.sms),
            "idle_sms": None if timeline.sample is not None else timeline.idle_sms,
            "grid_blocks": timeline.grid_blocks,
            "blocks_measured": timeline.grid_blocks if timeline.sample is None else len(timeline.sample.blocks),
            "warps_missing": timeline.warps_missing,
            "blocks_missing": timeline.blocks_missing,
            "blocks_astray": timeline.blocks_astray,
            "clocks": {
                "basis": timeline.clocks.basis,
                "domains": timeline.clocks.domains,
                "error": timeline.clocks.error,
            },
        }


def missing(source: Source) -> str | None:
    """Why there is no timeline, None if there is one."""
    return probe_results.missing(source, *PROBES)


def read_timeline(source: Source, progress: Progress) -> LaunchTimeline:
    """Read the result of the launch. Raises TraceError naming the file."""
    progress(0.0)
    found = probe_results.read(source)
    about = found.which, found.name, found.simulated
    grid = found.result.header.grid
    if found.probe != "warp_progress":
        timeline = from_block_sched(found.result, device_sms=found.sms, one_clock=found.simulated)
        return LaunchTimeline(timeline, *about, found.clock_khz, grid=grid)
    warps = warp_progress.analyse(found.result, found.clock_khz)
    timeline = from_warp_progress(warps, device_sms=found.sms, one_clock=found.simulated)
    aligned = warps.alignment
    if aligned is None or aligned.rate_error is None or found.simulated:
        return LaunchTimeline(timeline, *about, found.clock_khz, progress=warps, grid=grid)
    return LaunchTimeline(timeline, *about, round(1e6 / aligned.ns_per_cycle), "as measured", warps, grid)
