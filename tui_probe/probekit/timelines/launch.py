"""Timeline of a launch, and the facts of the launch that its page shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from tui_probe.draw import units
from tui_probe.probekit.record_counts import sampled_blocks_text

if TYPE_CHECKING:
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.probekit.timelines.rows import RowSelection
    from tui_probe.records.timeline import Timeline
    from tui_probe.trace.launch_shape import Dim3


@dataclass(frozen=True, slots=True)
class LaunchTimeline:
    """A timeline and its launch. ``clock_khz`` turns cycles into time; None where that would be no time."""

    timeline: Timeline
    which: str
    """``launch 7 of #2``."""
    name: str
    """Demangled name of the kernel."""
    simulated: bool
    clock_khz: int | None
    clock_words: str = "the device's highest clock"
    """Origin of ``clock_khz``."""
    grid: Dim3 | None = None

    def block_words(self, block: int) -> str:
        """``block 37``, with its place in a grid of several dimensions: ``block 37 (5,4)``."""
        if self.grid is None or self.grid[1] * self.grid[2] == 1:
            return f"block {block}"
        x, y, z = self.grid
        place = [block % x, block // x % y, block // (x * y)][: 2 if z == 1 else 3]
        return f"block {block} ({','.join(map(str, place))})"

    def rows(self, choice: RowSelection) -> int:
        """Return the number of rows of a selection."""
        here = self.timeline.slots if choice.sm is None else self.timeline.slots[self.timeline.sms == choice.sm]
        slots = int(here.clip(1).sum())
        return {"SM": len(here), "slot": slots, "warp": slots * self.timeline.warps_per_block}[choice.level]

    def left_out(self) -> list[str]:
        """Notes on what the picture lacks."""
        timeline = self.timeline
        counts = (
            (timeline.blocks_missing, "block", "without a record"),
            (timeline.warps_missing, "warp", "without a record"),
            (timeline.blocks_astray, "block", "that changed SM"),
        )
        sample = timeline.sample
        parts = [] if sample is None else [sampled_blocks_text(sample)]
        return parts + [f"{units.counted(count, noun)} {why} excluded" for count, noun, why in counts if count]

    def record(self) -> dict[str, Any]:
        """Return the JSON record; shares and cycles as :mod:`tui_probe.records.timeline` defines them."""
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


@runtime_checkable
class LaunchTimelineView(Protocol):
    """A view of a launch over time, of its blocks or its warps."""

    launch: LaunchTimeline

    @property
    def of_warps(self) -> bool:
        """True if it shows warps now."""


def launch_timeline(of: ProbeResult, timeline: Timeline) -> LaunchTimeline:
    """The timeline of a result; cycles are time at the device's highest clock."""
    return LaunchTimeline(timeline, of.which, of.name, of.simulated, of.clock_khz, grid=of.result.header.grid)
