"""Block scheduling: the probe, its metrics and its findings."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.probekit.finding import SHARE, Finding, Gain, derived, timed
from tui_probe.probekit.metric import Metric, show_nonzero
from tui_probe.probekit.probe import Probe, Question, analysis_of_result
from tui_probe.probekit.probe_results import cycles_text
from tui_probe.probekit.timelines.launch import idle_sms_findings, launch_timeline, tail_finding, timeline_waits
from tui_probe.records.block_times import SLOT_TIME_LABELS
from tui_probe.records.distribution import distribution

from .analysis import analyse, of_launch, timeline_of
from .view import BLOCKS, REPORT, schedule_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.records.timeline import Timeline

    from .analysis import BlockSchedule

_EXCLUDED_COUNTS: Final = (
    ("warps_missing", "warps without a record"),
    ("blocks_missing", "blocks without a record"),
    ("blocks_astray", "blocks that moved to another SM"),
)
_FLAGGED_SHARE: Final = 0.05
"""The part of a launch from which on what scheduling costs stands out."""
_SCHEDULING_ADVICE: Final = "launch fewer blocks with more work each, e.g. let each block loop over several tiles"
_IDEAL_PARTS: Final = {"scheduling": 0.0, "tail": 0.0}
"""Parts of the time of slots without any loss."""
_FLAGGED_RATIO: Final = 1.25
"""Times the median from which on the slowest block is worth a look."""


def _cycles(name: str) -> Metric:
    read = attrgetter(name)
    standalone = f"{SLOT_TIME_LABELS[name]} cycles"
    return Metric(
        f"{name}_cycles",
        SLOT_TIME_LABELS[name],
        "cycles",
        "lower",
        "mean",
        read=read,
        standalone_title=standalone,
    )


METRICS: Final = (
    *map(_cycles, SLOT_TIME_LABELS),
    Metric(
        "span_cycles",
        "span",
        "cycles",
        better="lower",
        over_launches="mean",
        quantity="launch cycles",
        read=attrgetter("span"),
    ),
    *(Metric(key, text, is_shown=show_nonzero) for key, text in _EXCLUDED_COUNTS),
)


def findings(probe_result: ProbeResult, schedule: BlockSchedule) -> Iterator[Finding]:
    """All of it, in this order."""
    timeline = timeline_of(probe_result.result, device_sms=probe_result.sms, has_shared_clock=probe_result.simulated)
    yield _slots(probe_result, schedule)
    yield from tail_finding(timeline, "stragglers")
    yield from _slowest_block(probe_result, timeline)
    yield from idle_sms_findings(timeline)
    yield from _waves(probe_result, timeline)


def _slots(probe_result: ProbeResult, schedule: BlockSchedule) -> Finding:
    span = schedule.span or 1.0
    parts = {name: getattr(schedule, name) / span for name in SLOT_TIME_LABELS}
    cycles = f"{cycles_text(schedule.span, probe_result.clock_khz)} per SM"
    one_wave = schedule.is_one_wave
    text = f"{_one_wave_text(schedule)}; {cycles}" if one_wave else f"{_slot_shares_text(parts)} of {cycles}"
    much = parts["scheduling"] > _FLAGGED_SHARE
    values = {
        **{name: timed(part, SHARE, _IDEAL_PARTS.get(name)) for name, part in parts.items()},
        "cycles": timed(schedule.span),
    }
    lost = schedule.scheduling + schedule.tail
    gain = Gain(lost, span, "cycles") if lost > 0 else None
    return Finding("slots", "block slots", text, "blocks", stands_out=much, values=values, gain=gain,
                   advice=_SCHEDULING_ADVICE)  # fmt: skip


def _slot_shares_text(parts: dict[str, float]) -> str:
    running, gaps, up, down = units.percents([parts[name] for name in SLOT_TIME_LABELS])
    return f"running {running}, gaps {gaps}, ramp-up {up}, ramp-down {down}"


def _one_wave_text(schedule: BlockSchedule) -> str:
    """No slot waited for a second block, so that shares of its time would say nothing."""
    sms = units.counted(len(schedule.sm), "SM")
    return f"one wave: {units.counted(schedule.blocks, 'block')} on {sms}, none waited for a slot"


def _slowest_block(probe_result: ProbeResult, timeline: Timeline) -> Iterator[Finding]:
    blocks, lengths = timeline.blocks, distribution(timeline.blocks.duration)
    if lengths is None or not lengths.median:
        return
    worst = int(blocks.duration.argmax())
    times = float(blocks.duration[worst]) / lengths.median
    name = launch_timeline(probe_result, timeline).block_label
    text = f"all take {cycles_text(lengths.median, probe_result.clock_khz)}"
    if lengths.maximum > lengths.minimum:
        text = f"{name(int(blocks.block[worst]))} on SM {blocks.sm[worst]}, {times:.2f}× the median of "
        text += cycles_text(lengths.median, probe_result.clock_khz)
    cycles = timed(int(blocks.duration[worst]), ideal=lengths.median)
    values = {"block": derived(int(blocks.block[worst])), "cycles": cycles, "median": timed(lengths.median)}
    label = "slowest block" if lengths.maximum > lengths.minimum else "blocks"
    extra = (lengths.maximum - lengths.median) / timeline.span
    late = lengths.maximum > max(lengths.fence, _FLAGGED_RATIO * lengths.median) and extra > _FLAGGED_SHARE
    asks = "stragglers" if late else ""
    block = int(blocks.block[worst]) if lengths.maximum > lengths.minimum else None
    yield Finding("slowest_block", label, text, "timeline", None, late, asks, values, block=block)


def _waves(probe_result: ProbeResult, timeline: Timeline) -> Iterator[Finding]:
    """Yield the number of waves of the grid; the last wave is seldom full."""
    probed = probe_result.kernel.blocks_per_sm_probed
    at_once = probe_result.kernel.blocks_per_sm or probed
    if not at_once or not probe_result.sms:
        return
    waves = timeline.grid_blocks / (at_once * probe_result.sms)
    blocks = units.counted(timeline.grid_blocks, "block")
    text = f"{waves:.2f}: {blocks} on {probe_result.sms} SMs, at most {at_once} blocks per SM"
    text += f" ({probed} with the probe)" if probed and probed != at_once else ""
    yield Finding("waves", "waves", text, values={"waves": derived(waves, "waves")})


PROBES: Final = (
    Probe(
        name="block_sched",
        analyse=analysis_of_result(analyse),
        metrics=METRICS,
        question=Question("schedule", "how much SM time do gaps and the tail cost?", 0),
        findings=findings,
        timeline=of_launch,
        waits=lambda probe_result, progress: timeline_waits(of_launch(probe_result, progress)),
        views=(BLOCKS,),
        pages=(REPORT,),
        launch_line=schedule_line,
        line_caption="cycles per block slot, mean over SMs: time with a running block, and time between blocks (gaps)",
    ),
)
