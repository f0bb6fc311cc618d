"""Timeline of a launch: the facts on its page, its findings and the distributions of its waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

import numpy as np

from tui_probe.draw import units
from tui_probe.probekit.finding import SHARE, Finding, Gain, counted, percent, timed
from tui_probe.probekit.record_counts import sampled_blocks_text
from tui_probe.records.distribution import Waits
from tui_probe.trace.launch_shape import index_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.probekit.timelines.rows import RowSelection
    from tui_probe.records.timeline import Intervals, Timeline
    from tui_probe.trace.launch_shape import Dim3

_TAIL_ADVICE: Final = "balance the work of blocks, or launch more and shorter blocks, so that all SMs end together"
IDLE_SMS_KEY: Final = "idle_sms"
_NOTABLE_SHARE: Final = 0.05
"""Minimum share of SM time lost in the tail that is flagged."""


@dataclass(frozen=True, slots=True)
class LaunchTimeline:
    """A timeline and its launch. ``clock_khz`` converts cycles to time; None if cycles are not time."""

    timeline: Timeline
    launch_label: str
    """``launch 7 of #2``."""
    kernel_name: str
    """Demangled name of the kernel."""
    simulated: bool
    clock_khz: int | None
    clock_origin: str = "the device's highest clock"
    """Origin of ``clock_khz``."""
    grid: Dim3 | None = None

    def block_label(self, block: int) -> str:
        """Return ``block 37``, with its position in a grid of several dimensions: ``block 37 (5,4)``."""
        if self.grid is None or self.grid[1] * self.grid[2] == 1:
            return f"block {block}"
        x, y, z = index_in(block, self.grid)
        return f"block {block} ({x},{y})" if self.grid[2] == 1 else f"block {block} ({x},{y},{z})"

    def row_count(self, choice: RowSelection) -> int:
        """Return the number of rows of a selection."""
        slots_per_sm = self.timeline.slots if choice.sm is None else self.timeline.slots[self.timeline.sms == choice.sm]
        slots = int(slots_per_sm.clip(1).sum())
        return {"SM": len(slots_per_sm), "slot": slots, "warp": slots * self.timeline.warps_per_block}[choice.level]

    def exclusion_notes(self) -> list[str]:
        """Return notes on blocks and warps that the drawing excludes."""
        timeline = self.timeline
        counts = (
            (timeline.blocks_missing, "block", "without a record"),
            (timeline.warps_missing, "warp", "without a record"),
            (timeline.blocks_astray, "block", "that changed SM"),
        )
        sample = timeline.sample
        parts = [] if sample is None else [sampled_blocks_text(sample)]
        return parts + [f"{units.counted(count, noun)} {problem} excluded" for count, noun, problem in counts if count]

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
    def shows_warps(self) -> bool:
        """True if it currently shows warps."""


def launch_timeline(result: ProbeResult, timeline: Timeline) -> LaunchTimeline:
    """Return the timeline of a result; cycles are converted at the device's highest clock."""
    return LaunchTimeline(
        timeline,
        result.launch_label,
        result.kernel_name,
        result.simulated,
        result.clock_khz,
        grid=result.result.header.grid,
    )


def tail_finding(timeline: Timeline, next_question: str) -> Iterator[Finding]:
    """Yield the finding of the tail, where SMs run out of blocks. ``next_question`` is the question about its cause."""
    tail, span = timeline.tail(), timeline.span
    if tail is None or not tail.cycles or not span:
        return
    text = f"SMs go idle in the last {percent(tail.cycles, span)} of the launch"
    busy_sms = len(timeline.sms) - len(timeline.idle_sms)
    loss = f"{percent(tail.lost_share, 1)} of SM time lost"
    if timeline.idle_sms:
        loss = f"the {units.counted(busy_sms, 'SM')} with blocks lose {percent(tail.lost_share, 1)} of their time"
    text += f" (SM {tail.last_sm} ends last); {loss}"
    is_notable = tail.lost_share > _NOTABLE_SHARE
    values = {
        "lost_share": timed(tail.lost_share, SHARE, 0),
        "tail_share": timed(tail.cycles / span, SHARE, 0),
        "tail_start": timed(tail.start),
    }
    yield Finding(
        "tail", "tail", text, "timeline",
        stands_out=is_notable, next_question=next_question if is_notable else "",
        values=values, block=tail.last_block, sm=tail.last_sm, time=tail.start,
        gain=Gain(tail.lost_share * span, span, "cycles"), advice=_TAIL_ADVICE if is_notable else "",
    )  # fmt: skip


def idle_sms_findings(timeline: Timeline) -> Iterator[Finding]:
    """Yield the finding of SMs without a block; a sample of blocks has none."""
    idle_sms = timeline.idle_sms
    if idle_sms and timeline.sample is None:
        text = f"{len(idle_sms)} of {units.counted(len(timeline.sms), 'SM')} ran no block"
        values = {"idle_sms": counted(len(idle_sms), "SMs", 0), "sms": counted(len(timeline.sms), "SMs")}
        yield Finding(IDLE_SMS_KEY, "idle SMs", text, "timeline", stands_out=True, values=values, sm=idle_sms[0])


def slot_gaps(blocks: Intervals) -> NDArray[np.int64]:
    """Return the cycles (i8) between each block and the previous block of its slot."""
    follows = (np.diff(blocks.sm) == 0) & (np.diff(blocks.slot) == 0)
    gaps: NDArray[np.int64] = (blocks.start[1:] - blocks.end[:-1])[follows]
    return gaps


def timeline_waits(launch: LaunchTimeline) -> Waits:
    """Return the distributions of block durations, and of gaps if all blocks were measured."""
    blocks = launch.timeline.blocks
    text = f"{units.counted(len(blocks), 'block')}"
    if (sample := launch.timeline.sample) is not None:
        return Waits(launch.launch_label, {"one block": blocks.duration}, f"{text}; {sampled_blocks_text(sample)}")
    text += "; a gap is the time between two blocks in a slot"
    return Waits(launch.launch_label, {"one block": blocks.duration, "one gap": slot_gaps(blocks)}, text)
