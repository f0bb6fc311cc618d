"""Stalls: where warps wait in SASS, how long, and for which earlier instruction."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.printable import printable
from tui_probe.probekit.finding import SHARE, Finding, counted, percent, timed
from tui_probe.probekit.lines import LineMeasure, LineRow, LineRows, LineSpec, ShareValue
from tui_probe.probekit.metric import Metric
from tui_probe.probekit.probe import (
    LatencyCause,
    MeasuredWait,
    MeasuredWaits,
    Probe,
    ProbeGroup,
    Question,
    analysis_of_sites,
)
from tui_probe.records.counter_sums import ratio
from tui_probe.trace.source_lines import source_position

from .analysis import DELAY, GROUPS, MIN_PERCENT, LineWaits, Stalls, analyse, measured_text
from .view import STALLS_VIEW

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.probekit.probe_results import ProbeResult

_SPILL_NOTE: Final = (
    "local loads and stores: executed warp instructions that access spills or local arrays; they"
    " are counted only in basic blocks with a measured wait"
)
_NOTABLE_SHARE: Final = 0.1
"""Part of warp life from which on a wait is worth a look."""
_REMEDIES: Final = {
    **dict.fromkeys(("global", "generic"), "issue the load earlier or copy asynchronously (cp.async, TMA)"),
    "local": "avoid local memory: reduce live values (spills) or index arrays with constants",
    "async": "start the copy more iterations before its wait (a deeper pipeline)",
    "bulk": "start the copy more iterations before its wait (a deeper pipeline)",
    "mbarrier": "the producer is late: use a deeper pipeline or more producer warps",
    "barrier": "balance the work of the block's warps (does only one warp work before the barrier?), or use fewer"
    " barriers",
    "shared": "load from shared memory earlier and check for bank conflicts",
    "wgmma": "overlap wgmma with other work, e.g. ping-pong two tiles",
    "math": "special functions limit this chain of instructions: interleave independent chains",
    "shuffle": "interleave independent reductions, or use fewer reductions",
}


METRICS: Final = (
    Metric("waited", "waited", "cycles", better="lower", standalone_title="measured waits", of_work=True),
    Metric(
        "share",
        "share of warp life",
        better="lower",
        over_launches="mean",
        clocked=True,
        standalone_title="measured waits, share of warp life",
    ),
    Metric(
        "worst_share",
        "longest wait, share of warp life",
        better="lower",
        over_launches="mean",
        clocked=True,
        standalone_title="longest wait, share of warp life",
    ),
)
_QUESTION: Final = Question(
    "stalls", "where do warps wait, how long, and for what?", 15, search_words="latency scoreboard", needs_gpu=True
)


def findings(probe_result: ProbeResult, analysis: Stalls) -> Iterator[Finding]:
    """The line with the longest waits and its cause, the line with most spills, then the rest of warp life."""
    del probe_result
    worst = analysis.worst
    if worst is not None and 100 * (analysis.worst_share or 0) >= MIN_PERCENT:
        site = worst.main_site
        values = {
            "share": timed(analysis.worst_share, SHARE, 0),
            "share_uncertainty": timed(worst.share_uncertainty, SHARE),
            "cycles": timed(worst.cycles),
            "passes": counted(worst.passes),
            "sites": counted(len(worst.sites)),
            "longest": timed(max((site.longest_wait for site in worst.sites if site.longest_wait), default=None)),
            "class": site.kind or None,
            "producer_offset": site.wait.producers[0].line if site.wait and site.wait.producers else None,
        }
        yield Finding(
            "longest_wait",
            "longest wait",
            _wait_text(worst),
            "stalls",
            site.line,
            stands_out=(analysis.worst_share or 0) >= _NOTABLE_SHARE,
            values=values,
            advice=_advice(worst),
            brief=printable(f"waits {_life_text(worst)}: {worst.opcodes}"),
        )
    yield from _spill_findings(analysis)
    text = measured_text(analysis, "unmeasured waits")
    values = {"share": timed(analysis.share, SHARE), "waited": timed(analysis.waited), "life": timed(analysis.life)}
    yield Finding("stalls", "measured waits", text, "stalls", values=values)


def _spill_findings(analysis: Stalls) -> Iterator[Finding]:
    totals: Counter[str] = Counter()
    by_place: Counter[str] = Counter()
    first_lines: dict[str, int] = {}
    for row in _spill_rows(analysis):
        place = source_position(row.source) or f"{int(row.line):#06x}"
        executed = {name: value for name, value in row.values.items() if isinstance(value, int)}
        totals.update(executed)
        by_place[place] += sum(executed.values())
        first_lines.setdefault(place, row.line)
    if not totals.total():
        return
    (place, _), *_ = by_place.most_common(1)
    loads, stores = totals["local loads"], totals["local stores"]
    text = f"{units.count(loads)} local loads and {units.count(stores)} local stores of spills or local arrays"
    yield Finding(
        "spills",
        "local memory",
        f"{text}, most at {place}",
        "lines",
        first_lines[place],
        values={"loads": counted(loads), "stores": counted(stores)},
        advice=_REMEDIES["local"],
    )


def _advice(line: LineWaits) -> str:
    site = line.main_site
    if line.copies_of_this_iteration:
        return (
            "the loop starts this copy in the iteration that waits for it: start the copy at least one"
            " iteration earlier"
        )
    return _REMEDIES.get(site.wait.kind, "") if site.wait else ""


def _wait_text(line: LineWaits) -> str:
    """``attn.py:31 (FFMA) waits 41% of warp life for LDG attn.py:29 (global memory, 612 cycles each)``."""
    site = line.main_site
    place = site.place or f"{site.line:#06x}"
    cause = f" for {site.producer_in_program}" if site.producer else ""
    mean = f"{units.count(round(ratio(line.cycles, line.passes) or 0))} cycles each"
    return f"{place} ({line.opcodes}) waits {_life_text(line)} of warp life{cause} ({site.kind}, {mean})"


def _life_text(line: LineWaits) -> str:
    """Return the share of warp life; sites of several launches may have a little more than all of it."""
    return percent(line.share, 1) if line.share <= 1 else "about 100%"


def _latency_cause(analysis: Stalls) -> LatencyCause | None:
    """Return the longest wait as the cause of latency; None if it is too short to be one."""
    worst, share = analysis.worst, analysis.worst_share or 0
    return LatencyCause(share, _wait_text(worst)) if worst is not None and share >= _NOTABLE_SHARE else None


def _measured_waits(analysis: Stalls) -> MeasuredWaits:
    waits = (
        MeasuredWait(
            int(site.line),
            site.opcode or "",
            site.place,
            site.kind,
            site.producer_in_program,
            site.share,
            int(site.wait.producers[0].line) if site.wait and site.wait.producers else None,
        )
        for site in analysis.sites
        if site.share is not None
    )
    places = analysis.places()
    unmeasured = {int(offset): places.get(offset, "") for offset in analysis.unmeasured} if analysis.offsets else None
    return MeasuredWaits(tuple(waits), unmeasured)


def _line_rows(probe_result: ProbeResult, analysis: Stalls) -> LineRows:
    del probe_result
    rows = [
        LineRow(
            site.line,
            site.source,
            {
                "of warp life": None if site.share is None else ShareValue(site.share),
                "cycles": site.cycles,
                "waits for": site.kind or None,
                "producer": site.producer_in_program or None,
                "executions": site.passes,
                "cycles per wait": site.per_pass,
                "longest wait": site.longest_wait,
            },
        )
        for site in analysis.sites
    ]
    spills = list(_spill_rows(analysis))
    return LineRows(
        _join_rows([*rows, *spills]),
        [
            *([_SPILL_NOTE] if spills else []),
            f"cycles that warps wait at the instruction, summed over warps. The probe hides up to {DELAY} cycles of"
            " each wait. The values include an estimate of the hidden cycles; the estimate is at most as large as"
            " the measured cycles",
            f"measured waits: {measured_text(analysis, 'unmeasured waits')}",
        ],
    )


def _spill_rows(analysis: Stalls) -> Iterator[LineRow]:
    """Yield the loads and stores of the stack that are executed as often as a measured site."""
    for site in analysis.sites:
        for spill in site.wait.spills if site.wait else ():
            name = "local loads" if spill.work == "load" else "local stores"
            yield LineRow(spill.line, spill.source, {name: site.passes})


def _join_rows(rows: list[LineRow]) -> list[LineRow]:
    """Return one row per instruction."""
    rows_by_line: dict[int, LineRow] = {}
    for row in rows:
        previous = rows_by_line.get(row.line)
        rows_by_line[row.line] = (
            row if previous is None else replace(previous, values={**previous.values, **row.values})
        )
    return list(rows_by_line.values())


LINES: Final = LineSpec(
    (
        LineMeasure("of warp life", "sum"),
        LineMeasure("cycles", "sum"),
        LineMeasure("waits for", "first", better="neither"),
        LineMeasure("producer", "first", better="neither"),
        LineMeasure("executions", "sum", better="neither"),
        LineMeasure("cycles per wait", "ratio", ("cycles", "executions")),
        LineMeasure("longest wait"),
        LineMeasure("local loads", "sum"),
        LineMeasure("local stores", "sum"),
    ),
    "of warp life",
    _line_rows,
)


PROBES: Final = tuple(
    Probe(
        name=name,
        analyse=analysis_of_sites(analyse),
        metrics=METRICS,
        question=_QUESTION if name == GROUPS[0] else None,
        findings=findings,
        lines=LINES,
        views=(STALLS_VIEW,),
        latency_cause=_latency_cause,
        measured_waits=_measured_waits,
        group=ProbeGroup(GROUPS, Stalls.join),
    )
    for name in GROUPS
)
