"""How slots spent a launch, its tail, its slowest block, SMs that ran nothing, and how full it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.analysis.distribution import distribution
from tui_probe.analysis.slots import PARTS
from tui_probe.draw import units
from tui_probe.probekit.finding import Finding, Gain
from tui_probe.probekit.probe_results import cycles_words
from tui_probe.probekit.timelines.findings import idle_sms, tail
from tui_probe.probekit.timelines.launch import launch_timeline

from .timeline import timeline_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.analysis.timeline import Timeline
    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import BlockSchedule

_MUCH: Final = 0.05
"""The part of a launch from which on what scheduling costs stands out."""
_LATE: Final = 1.25
"""Times the median from which on the slowest block is worth a look."""


def findings(of: ProbeResult, schedule: BlockSchedule) -> Iterator[Finding]:
    """All of it, in this order."""
    timeline = timeline_of(of.result, device_sms=of.sms, one_clock=of.simulated)
    yield _slots(of, schedule)
    yield from tail(timeline, "stragglers")
    yield from _slowest_block(of, timeline)
    yield from idle_sms(timeline)
    yield from _waves(of, timeline)


def _slots(of: ProbeResult, schedule: BlockSchedule) -> Finding:
    span = schedule.span or 1.0
    parts = {name: getattr(schedule, name) / span for name in PARTS}
    both = parts["ramp"] + parts["tail"]
    running, scheduling, idle = units.percents((parts["running"], parts["scheduling"], both))
    words = f"running {running}, scheduling {scheduling}, filling and emptying {idle}"
    words += f" of {cycles_words(schedule.span, of.clock_khz)} per SM"
    much = parts["scheduling"] > _MUCH
    values = {**parts, "cycles": schedule.span}
    lost = schedule.scheduling + schedule.tail
    gain = Gain(lost, span, "cycles") if lost > 0 else None
    return Finding("slots", "block slots", words, "blocks", stands_out=much, values=values, gain=gain)


def _slowest_block(of: ProbeResult, timeline: Timeline) -> Iterator[Finding]:
    blocks, lengths = timeline.blocks, distribution(timeline.blocks.duration)
    if lengths is None or not lengths.median:
        return
    worst = int(blocks.duration.argmax())
    times = float(blocks.duration[worst]) / lengths.median
    name = launch_timeline(of, timeline).block_words
    words = f"all of {cycles_words(lengths.median, of.clock_khz)}"
    if lengths.most > lengths.least:
        words = f"{name(int(blocks.block[worst]))} on SM {blocks.sm[worst]}, {times:.2f}× the median of "
        words += cycles_words(lengths.median, of.clock_khz)
    values = {"block": int(blocks.block[worst]), "cycles": int(blocks.duration[worst]), "median": lengths.median}
    label = "slowest block" if lengths.most > lengths.least else "blocks"
    late = lengths.most > max(lengths.fence, _LATE * lengths.median)
    asks = "stragglers" if late else ""
    block = int(blocks.block[worst]) if lengths.most > lengths.least else None
    yield Finding("slowest_block", label, words, "timeline", None, late, asks, values, block=block)


def _waves(of: ProbeResult, timeline: Timeline) -> Iterator[Finding]:
    """How often the blocks of the grid fill the GPU: the last wave is seldom full."""
    at_once = of.kernel.blocks_per_sm_probed or of.kernel.blocks_per_sm
    if not at_once or not of.sms:
        return
    waves = timeline.grid_blocks / (at_once * of.sms)
    words = f"{waves:.2f}: {units.counted(timeline.grid_blocks, 'block')}, {at_once} at once on each of {of.sms} SMs"
    yield Finding("waves", "waves", words, values={"waves": waves})
