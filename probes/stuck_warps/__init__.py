"""Stuck warps: where each warp of a launch is that does not end, what it waits for, and the most likely cause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.probekit.finding import Finding, counted, timed
from tui_probe.probekit.lines import LineMeasure, LineRow, LineRows, LineSpec
from tui_probe.probekit.metric import Metric
from tui_probe.probekit.probe import Probe

from .analysis import analyse
from .causes import likely_cause
from .ranks import RANKS, cause_among_ranks
from .view import STUCK_VIEW, launch_end

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.probekit.finding import Evidence, Number
    from tui_probe.probekit.probe_results import ProbeResult

    from .places import StuckWarps


def _warp_count(analysis: StuckWarps) -> int:
    return len(analysis.warps)


def _place_count(analysis: StuckWarps) -> int:
    return len(analysis.groups)


METRICS: Final = (
    Metric("stuck_warps", "stuck warps", better="lower", read=_warp_count, page="stuck", ideal=lambda _: 0),
    Metric("places", "at places", over_launches="largest", read=_place_count, page="stuck"),
)


def findings(probe_result: ProbeResult, analysis: StuckWarps) -> Iterator[Finding]:
    """The most likely cause, after the ranks for which others wait."""
    cause = likely_cause(analysis)
    if cause is None:
        return
    place, end = cause.warp.place, launch_end(probe_result)
    headline = f"interrupted after {end.seconds:.1f} s" if end is not None and end.is_interrupted else "does not end"
    values: dict[str, Number | Evidence] = {
        "cause": cause.key,
        "stuck_warps": counted(len(analysis.warps), ideal=0),
        "blocks_not_started": counted(analysis.blocks_not_started),
        "address": counted(place.address),
        "phase": counted(place.phase),
        "seconds": timed(None if end is None else end.seconds, "s"),
    }
    text, advice = cause.text, cause.advice
    ranks = cause_among_ranks(
        probe_result.kernel.trace, None if probe_result.launch is None else probe_result.launch.number
    )
    if ranks is not None:
        values |= {"ranks_cause": ranks.key, "missing_ranks": units.number_ranges(ranks.missing_ranks) or None}
        text, advice = f"{ranks.text}; {text}", ranks.advice
    yield Finding(
        "stuck", headline, text, "stuck", place.line or None, True, values=values,
        block=cause.warp.block, warp=cause.warp.warp, advice=advice,
        brief=f"{units.counted(len(analysis.warps), 'warp')} stuck", wrong_result=True,
    )  # fmt: skip


def _line_rows(probe_result: ProbeResult, analysis: StuckWarps) -> LineRows:
    del probe_result
    rows = [
        LineRow(group.place.line, group.place.source, {"stuck warps": len(group.warps), "kind": group.place.kind})
        for group in analysis.groups
        if group.place.line
    ]
    return LineRows(rows, ["for a launch that did not end, the last place that each warp reached"])


LINES: Final = LineSpec(
    (LineMeasure("stuck warps"), LineMeasure("kind", "first", better="neither")), "stuck warps", _line_rows
)


PROBES: Final = (
    Probe(
        name="stuck_warps",
        analyse=lambda probe_result: analyse(probe_result.result, probe_result.kernel.folder),
        metrics=METRICS,
        findings=findings,
        lines=LINES,
        views=(STUCK_VIEW,),
        pages=(RANKS,),
    ),
)
