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


def _cycles_metric(name: str) -> Metric:
    read_cycles = attrgetter(name)
    standalone = f"{SLOT_TIME_LABELS[name]} cycles"
    return Metric(
        f"{name}_cycles",
        SLOT_TIME_LABELS[name],
        "cycles",
        "lower",
        "mean",
        read=read_cycles,
        standalone_title=standalone,
    )


METRICS: Final = (
    *map(_cycles_metric, SLOT_TIME_LABELS),
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
    yield _slots_finding(probe_result, schedule)
    yield from tail_finding(timeline, "stragglers")
    yield from _slowest_block(probe_result, timeline)
    yield from idle_sms_findings(timeline)
    yield from _waves(probe_result, timeline)


def _slots_finding(probe_result: ProbeResult, schedule: BlockSchedule) -> Finding:
    span = schedule.span or 1.0
    parts = {name: getattr(schedule, name) / span for name in SLOT_TIME_LABELS}
    cycles = f"{cycles_text(schedule.span, probe_result.clock_khz)} per SM"
    one_wave = schedule.is_one_wave
    text = f"{_one_wave_text(schedule)}; {cycles}" if one_wave else f"{_slot_shares_text(parts)} of {cycles}"
    is_flagged = parts["scheduling"] > _FLAGGED_SHARE
    values = {
        **{name: timed(part, SHARE, _IDEAL_PARTS.get(name)) for name, part in parts.items()},
        "cycles": timed(schedule.span),
    }
    lost_cycles = schedule.scheduling + schedule.tail
    gain = Gain(lost_cycles, span, "cycles") if lost_cycles > 0 else None
    return Finding("slots", "block slots", text, "blocks", stands_out=is_flagged, values=values, gain=gain,
                   advice=_SCHEDULING_ADVICE)  # fmt: skip


def _slot_shares_text(parts: dict[str, float]) -> str:
    running_text, gap_text, ramp_text, tail_text = units.percents([parts[name] for name in SLOT_TIME_LABELS])
    return f"running {running_text}, gaps {gap_text}, ramp-up {ramp_text}, ramp-down {tail_text}"


def _one_wave_text(schedule: BlockSchedule) -> str:
    """No slot waited for a second block, so that shares of its time would say nothing."""
    sms = units.counted(len(schedule.sm), "SM")
    return f"one wave: {units.counted(schedule.blocks, 'block')} on {sms}, none waited for a slot"


def _slowest_block(probe_result: ProbeResult, timeline: Timeline) -> Iterator[Finding]:
    blocks, lengths = timeline.blocks, distribution(timeline.blocks.duration)
    if lengths is None or not lengths.median:
        return
    worst = int(blocks.duration.argmax())
    number, duration = int(blocks.block[worst]), int(blocks.duration[worst])
    median_text = cycles_text(lengths.median, probe_result.clock_khz)
    values = {
        "block": derived(number),
        "cycles": timed(duration, ideal=lengths.median),
        "median": timed(lengths.median),
    }
    if lengths.maximum <= lengths.minimum:
        yield Finding("slowest_block", "blocks", f"all take {median_text}", "timeline", values=values)
        return
    name = launch_timeline(probe_result, timeline).block_label(number)
    times = float(duration) / lengths.median
    excess_share = (lengths.maximum - lengths.median) / timeline.span
    is_outlier = lengths.maximum > max(lengths.fence, _FLAGGED_RATIO * lengths.median)
    is_straggler = is_outlier and excess_share > _FLAGGED_SHARE
    yield Finding(
        "slowest_block",
        "slowest block",
        f"{name} on SM {blocks.sm[worst]}, {times:.2f}× the median of {median_text}",
        "timeline",
        stands_out=is_straggler,
        next_question="stragglers" if is_straggler else "",
        values=values,
        block=number,
    )


def _waves(probe_result: ProbeResult, timeline: Timeline) -> Iterator[Finding]:
    """Yield the number of waves of the grid; the last wave is seldom full."""
    probed_blocks = probe_result.kernel.blocks_per_sm_probed
    resident_blocks = probe_result.kernel.blocks_per_sm or probed_blocks
    if not resident_blocks or not probe_result.sms:
        return
    waves = timeline.grid_blocks / (resident_blocks * probe_result.sms)
    blocks = units.counted(timeline.grid_blocks, "block")
    text = f"{waves:.2f}: {blocks} on {probe_result.sms} SMs, at most {resident_blocks} blocks per SM"
    text += f" ({probed_blocks} with the probe)" if probed_blocks and probed_blocks != resident_blocks else ""
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
