"""Warp progress: when each warp of a launch ran, and its pace through the loops of the kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.shorten import view_heading
from tui_probe.probekit.finding import SHARE, Finding, counted, place, timed
from tui_probe.probekit.lines import LineMeasure, LineRow, LineRows, LineSpec
from tui_probe.probekit.metric import Metric, show_known
from tui_probe.probekit.probe import Probe, Question, Stamps
from tui_probe.probekit.probe_results import cycles_text
from tui_probe.probekit.probe_view import probe_view
from tui_probe.probekit.timelines.launch import idle_sms_findings, tail_finding, timeline_waits
from tui_probe.records.distribution import distribution
from tui_probe.records.probed_sites import probed_sites
from tui_probe.records.warp_pace import launch_times

from .warp_timeline import analyse, of_launch, timeline_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.draw.view import Progress, View
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.records.warp_pace import WarpProgress


def _warp_count(analysis: WarpProgress) -> int:
    return int(analysis.has_record.sum())


def _duration(analysis: WarpProgress) -> float | None:
    return float(analysis.end[analysis.has_record].max()) if analysis.alignment and analysis.has_times else None


def _alignment_error(analysis: WarpProgress) -> float | None:
    return analysis.alignment.error_ns if analysis.alignment and analysis.has_times else None


def _median_cycles(analysis: WarpProgress) -> float | None:
    lived = analysis.warps["elapsed"][analysis.has_record]
    return float(np.median(lived)) if len(lived) else None


def _longest_cycles(analysis: WarpProgress) -> int | None:
    lived = analysis.warps["elapsed"][analysis.has_record]
    return int(lived.max()) if len(lived) else None


def _stragglers(analysis: WarpProgress) -> int:
    return len(analysis.stragglers())


def _tail_time(analysis: WarpProgress) -> float | None:
    return analysis.half_done_ns() if analysis.has_times else None


def _loop_line(analysis: WarpProgress) -> int | None:
    return analysis.main_loop.line if analysis.main_loop else None


def _iteration_cycles(analysis: WarpProgress) -> float | None:
    return analysis.main_loop.cycles_per_iteration if analysis.main_loop else None


def _arrivals(analysis: WarpProgress) -> int:
    return int(np.maximum(analysis.arrival_counts, 0).sum())


def _arrivals_kept(analysis: WarpProgress) -> int:
    return int(analysis.recorded_arrivals.sum())


def _is_timed(analysis: WarpProgress, value: Any) -> bool:
    del value
    return analysis.has_times


def _has_loop(analysis: WarpProgress, value: Any) -> bool:
    del value
    return analysis.main_loop is not None


def _is_incomplete(analysis: WarpProgress, value: Any) -> bool:
    del value
    return _arrivals_kept(analysis) < _arrivals(analysis)


METRICS: Final = (
    Metric("warps", "warps", read=_warp_count, page="progress"),
    Metric(
        "duration", "first start to last end", "ns", better="lower", over_launches="mean", read=_duration,
        is_shown=_is_timed,
    ),
    Metric("alignment_error", "±", "ns", over_launches="largest", read=_alignment_error, is_shown=_is_timed),
    Metric("median_cycles", "median warp", "cycles", better="lower", over_launches="mean", read=_median_cycles),
    Metric("longest_cycles", "longest", "cycles", better="lower", over_launches="largest", read=_longest_cycles),
    Metric("stragglers", "stragglers", better="lower", read=_stragglers, page="progress"),
    Metric(
        "tail", "time with at most half of the SMs busy", "ns", better="lower", over_launches="mean", read=_tail_time,
        is_shown=_is_timed, standalone_title="time with at most half of the SMs busy",
    ),
    Metric("main_loop", "main loop at line", place=True, over_launches="none", read=_loop_line, is_shown=show_known),
    Metric(
        "cycles_per_iteration", "per iteration", "cycles", better="lower", over_launches="mean", read=_iteration_cycles,
        is_shown=_has_loop,
    ),
    Metric("arrivals", "arrivals at loops", read=_arrivals, is_shown=_is_incomplete),
    Metric("arrivals_kept", "kept", read=_arrivals_kept, is_shown=_is_incomplete),
)  # fmt: skip


def findings(probe_result: ProbeResult, analysis: WarpProgress) -> Iterator[Finding]:
    """All of it, in this order."""
    yield from _slowest_warp(probe_result, analysis)
    yield from _main_loop(probe_result, analysis)
    timeline = timeline_of(analysis, device_sms=probe_result.sms, has_shared_clock=probe_result.simulated)
    yield from tail_finding(timeline, "schedule")
    yield from idle_sms_findings(timeline)


def _slowest_warp(probe_result: ProbeResult, analysis: WarpProgress) -> Iterator[Finding]:
    lengths = distribution(analysis.warps["elapsed"][analysis.has_record].astype(np.int64))
    if lengths is None or not lengths.median:
        return
    stragglers = analysis.stragglers()
    spread = "" if lengths.spread is None else f", spread {lengths.spread:.0%} (p1–p99)"
    text = f"{units.count(lengths.count)}, median {cycles_text(lengths.median, probe_result.clock_khz)}{spread}"
    values = {
        "warps": counted(lengths.count),
        "median": timed(lengths.median),
        "spread": timed(lengths.spread, SHARE),
        "stragglers": timed(len(stragglers), "", 0),
    }
    yield Finding("warps", "warps", text, "progress", values=values)
    if len(stragglers):
        block, warp = (int(number) for number in stragglers[0])
        times = float(analysis.warps["elapsed"][block, warp]) / lengths.median
        block = probe_result.result.blocks[block]
        text = f"{units.counted(len(stragglers), 'warp')}; "
        text += f"the slowest, block {block} warp {warp}, takes {times:.2f}× the median"
        values = {"block": counted(block), "warp": counted(warp), "times_median": timed(times, "", 1)}
        question = "hot code"
        yield Finding(
            "stragglers", "stragglers", text, "progress", None, True, question, values, block=block, warp=warp
        )


def _main_loop(probe_result: ProbeResult, analysis: WarpProgress) -> Iterator[Finding]:
    loop = analysis.main_loop
    if loop is None or loop.cycles_per_iteration is None:
        return
    sites = probed_sites(probe_result.kernel.folder)
    text = f"{place(loop.line, sites.following(loop.line))}, {units.counted(loop.iterations, 'iteration')} of "
    text += cycles_text(loop.cycles_per_iteration, probe_result.clock_khz)
    values = {
        "iterations": counted(loop.iterations),
        "cycles_per_iteration": timed(loop.cycles_per_iteration),
    }
    yield Finding("main_loop", "main loop", text, "lines", loop.line, values=values)


def _line_rows(probe_result: ProbeResult, analysis: WarpProgress) -> LineRows:
    sites = probed_sites(probe_result.kernel.folder)
    rows = [
        LineRow(
            timed.line,
            sites.following(timed.line),
            {
                "iterations": timed.iterations,
                "cycles per iteration": timed.cycles_per_iteration,
                "cycles": timed.cycles,
                "warps": timed.warps,
            },
        )
        for timed in sorted(analysis.loops, key=lambda loop: -loop.cycles)
    ]
    return LineRows(rows, ["each loop is listed at the line of its first instruction"])


LINES: Final = LineSpec(
    (
        LineMeasure("iterations", "sum", better="neither"),
        LineMeasure("cycles per iteration", "ratio", ("cycles", "iterations")),
        LineMeasure("cycles", "sum"),
        LineMeasure("warps", better="neither"),
    ),
    "cycles",
    _line_rows,
)


def _open_view(source: ViewSource, progress: Progress) -> View:
    from .view import open_view  # brings the drawing, which reports do not need

    return open_view(source, progress, view_heading(PROGRESS.title, PROGRESS.description))


PROGRESS: Final = probe_view(
    "progress",
    "Warp progress",
    "progress of each warp in the main loop; stragglers",
    _open_view,
    explanation=(
        "One line per warp: time runs to the right, and iterations of the main loop run upwards. Parallel lines are"
        " warps of equal speed. A flat section is a wait. A slow warp has a lower line, or a line that ends later."
        " Press ! to go to the slowest warp.",
    ),
    order=50,
    short_title="Warps",
    is_drawing=True,
)


PROBES: Final = (
    Probe(
        name="warp_progress",
        analyse=analyse,
        metrics=METRICS,
        question=Question("stragglers", "which warps are slow, and in which loop?", 20),
        answers=("schedule",),
        findings=findings,
        lines=LINES,
        timeline=of_launch,
        stamps=lambda probe_result: Stamps(*launch_times(probe_result.result, probe_result.clock_khz)),
        waits=lambda probe_result, progress: timeline_waits(of_launch(probe_result, progress)),
        views=(PROGRESS,),
    ),
)
