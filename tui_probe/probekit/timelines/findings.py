"""Findings of a timeline: tail, idle SMs, and waits between blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.probekit.finding import SHARE, Finding, Gain, counted, percent, timed
from tui_probe.probekit.probe import Waits
from tui_probe.probekit.record_counts import sampled_blocks_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tui_probe.probekit.timelines.launch import LaunchTimeline
    from tui_probe.records.timeline import Intervals, Timeline

_TAIL_ADVICE: Final = "balance the work of blocks, or launch more and shorter blocks, so that all SMs end together"
IDLE_SMS_KEY: Final = "idle_sms"
_NOTABLE_SHARE: Final = 0.05
"""The part of a launch from which on what a tail costs stands out."""


def tail_finding(timeline: Timeline, asks: str) -> Iterator[Finding]:
    """The end of a launch, where SMs run out of blocks. ``asks`` is the question whose answer tells why."""
    found, span = timeline.tail(), timeline.span
    if found is None or not found.cycles or not span:
        return
    text = f"SMs go idle in the last {percent(found.cycles, span)} of the launch"
    used = len(timeline.sms) - len(timeline.idle_sms)
    lost = percent(found.lost, 1)
    loss = f"the {units.counted(used, 'SM')} with blocks lose {lost} of their time" if timeline.idle_sms else ""
    text += f" (SM {found.last_sm} ends last); {loss or f'{lost} of SM time lost'}"
    much = found.lost > _NOTABLE_SHARE
    values = {
        "lost_share": timed(found.lost, SHARE, 0),
        "tail_share": timed(found.cycles / span, SHARE, 0),
        "tail_start": timed(found.start),
    }
    yield Finding(
        "tail", "tail", text, "timeline", stands_out=much, asks=asks if much else "", values=values,
        block=found.last_block, sm=found.last_sm, time=found.start, gain=Gain(found.lost * span, span, "cycles"),
        advice=_TAIL_ADVICE if much else "",
    )  # fmt: skip


def idle_sms_findings(timeline: Timeline) -> Iterator[Finding]:
    """SMs that no block came to; of a sample of blocks nothing can be said."""
    idle = timeline.idle_sms
    if idle and timeline.sample is None:
        text = f"{len(idle)} of {units.counted(len(timeline.sms), 'SM')} ran no block"
        values = {"idle_sms": counted(len(idle), "SMs", 0), "sms": counted(len(timeline.sms), "SMs")}
        yield Finding(IDLE_SMS_KEY, "idle SMs", text, "timeline", stands_out=True, values=values, sm=idle[0])


def slot_gaps(blocks: Intervals) -> NDArray[np.int64]:
    """Cycles (i8) between each block and the one before it in its slot."""
    follows = (np.diff(blocks.sm) == 0) & (np.diff(blocks.slot) == 0)
    between: NDArray[np.int64] = (blocks.start[1:] - blocks.end[:-1])[follows]
    return between


def timeline_waits(launch: LaunchTimeline) -> Waits:
    """Distributions over blocks, and over gaps where all blocks were measured."""
    blocks = launch.timeline.blocks
    text = f"{units.counted(len(blocks), 'block')}"
    if (sample := launch.timeline.sample) is not None:
        return Waits(launch.which, {"one block": blocks.duration}, f"{text}; {sampled_blocks_text(sample)}")
    text += "; a gap is the time between two blocks in a slot"
    return Waits(launch.which, {"one block": blocks.duration, "one gap": slot_gaps(blocks)}, text)
