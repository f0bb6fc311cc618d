"""Waits for asynchronous work: the cycles that warps spend where they wait for copies, mbarriers or wgmma.

    waited          sum over warps of (clock after - clock before)                       SM clock cycles
    waits           how often warps came through, each counted once per warp
    cycles per wait = waited / waits

What is waited for is identified by the instruction: phases of an ``mbarrier``, groups of ``cp.async``, of
``cp.async.bulk``, of ``wgmma``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.probekit.finding import Finding, counted, timed
from tui_probe.probekit.lines import LineMeasure, LineRows, LineSpec, longest_waits, ranked_rows
from tui_probe.probekit.metric import Metric, metrics_by_line, show_known
from tui_probe.probekit.probe import Probe, Question, analysis_of_sites
from tui_probe.probekit.probe_results import cycles_text
from tui_probe.probekit.result_tables import count_kind
from tui_probe.records.counter_sums import CountsByLine, line_sums, line_totals, ratio, site_dtype, worst_line
from tui_probe.records.probed_sites import probed_sites

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tui_probe.probekit.lines import LineValue
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.records.counter_sums import LineSums
    from tui_probe.trace.results import Result


SITE: Final = site_dtype("waited", "waits")
"""Record of ``async_wait`` per site."""
KINDS: Final = {"mbarrier": "mbarrier", "cp.async.bulk": "bulk", "cp.async": "cp_async", "wgmma": "wgmma"}
"""Kinds of waits by the start of the opcode; the first match counts."""
_TITLES: Final = {
    "mbarrier": "at mbarriers",
    "bulk": "for bulk copies",
    "cp_async": "for cp.async",
    "wgmma": "for wgmma",
}
WAITS: Final = count_kind(
    "waits",
    "Waits",
    "cycles that warps waited for copies, mbarriers and wgmma",
    (
        "Cycles from the start to the end of each wait, summed over warps. The probe counts waits at mbarriers, for"
        " cp.async groups, for bulk copy groups and for wgmma. Low values mean that data arrives before warps need it."
        " Even if the data has arrived, a wait takes a few tens of cycles.",
    ),
    order=60,
)


@dataclass(frozen=True, slots=True)
class AsyncWaits:
    """Cycles and waits of one launch or place. ``by_kind`` has the cycles of each kind that the kernel waits for."""

    waited: int
    waits: int
    by_kind: dict[str, int]
    threads_missing: int = 0

    @property
    def cycles_per_wait(self) -> float | None:
        """Mean wait."""
        return ratio(self.waited, self.waits)


def kind_of(opcode: str | None) -> str | None:
    """Return the kind of wait of an instruction, one of ``KINDS``; None for an unknown opcode."""
    return next((kind for begin, kind in KINDS.items() if f"{opcode}.".startswith(f"{begin}.")), None)


def analyse(result: Result, sites: Sequence[int], folder: Path | None = None) -> CountsByLine[AsyncWaits]:
    """The waits of a launch by line; see :func:`counter_sums.line_sums`. Raises TraceError."""
    lines = line_sums(result, SITE, "async_wait", sites, folder)
    by_kind: dict[str, int] = {}
    for line in lines:
        if (kind := kind_of(line.opcode)) is not None:
            by_kind[kind] = by_kind.get(kind, 0) + line.sums["waited"]
    totals = AsyncWaits(**line_totals(lines, SITE), by_kind=by_kind)
    return CountsByLine(totals, lines, worst_line(lines, lambda line: line.sums["waited"] or None))


def of_line(line: LineSums) -> AsyncWaits:
    """The waits at one place."""
    kind = kind_of(line.opcode)
    return AsyncWaits(**line.sums, by_kind={kind: line.sums["waited"]} if kind else {})


def _kind_cycles(kind: str) -> Callable[[AsyncWaits], int | None]:
    return lambda analysis: analysis.by_kind.get(kind)


_LAUNCH_METRICS: Final = (
    Metric("waits", "waits"),
    Metric("cycles_per_wait", "cycles per wait", better="lower", over_launches="mean", clocked=True),
    Metric("waited", "waited", "cycles", better="lower", standalone_title="waited for copies", of_work=True),
    *(
        Metric(
            f"waited_{kind}",
            _TITLES[kind],
            "cycles",
            better="lower",
            standalone_title=f"waited {_TITLES[kind]}",
            read=_kind_cycles(kind),
            is_shown=show_known,
            of_work=True,
        )
        for kind in KINDS.values()
    ),
)
METRICS: Final = metrics_by_line(_LAUNCH_METRICS, "most cycles")


def findings(probe_result: ProbeResult, analysis: CountsByLine[AsyncWaits]) -> Iterator[Finding]:
    """The place that costs most, then all."""
    if analysis.worst is not None:
        line = analysis.worst[0]
        mean, barrier = of_line(line).cycles_per_wait, _barriers(probe_result).get(line.line, "")
        values = {"cycles_per_wait": timed(mean)}
        wait_finding = longest_waits("worst_wait", "longest waits", line, analysis.analysis.waited, mean, values)
        barrier_values = {**wait_finding.values, "barrier": barrier}
        yield (
            replace(wait_finding, words=f"{wait_finding.words} (mbarrier {barrier})", values=barrier_values)
            if barrier
            else wait_finding
        )
    yield _all_waits_finding(probe_result, analysis.analysis)


def _all_waits_finding(probe_result: ProbeResult, analysis: AsyncWaits) -> Finding:
    text = "no warp waited for asynchronous work"
    if analysis.waits:
        mean = cycles_text(analysis.cycles_per_wait or 0, probe_result.clock_khz)
        text = f"{units.counted(analysis.waits, 'warp wait')}, average {mean}"
    values = {"waited": timed(analysis.waited), "waits": counted(analysis.waits)}
    return Finding("async_waits", "waits", text, "", values=values)


def _line_rows(probe_result: ProbeResult, analysis: CountsByLine[AsyncWaits]) -> LineRows:
    barriers = _barriers(probe_result)
    rows = ranked_rows(
        analysis.lines, lambda line: of_line(line).waited, lambda line: _line_values(line, barriers.get(line.line, ""))
    )
    return LineRows(rows, ["cycles from the start to the end of each wait, summed over all warps"])


def _barriers(probe_result: ProbeResult) -> dict[int, str]:
    """Return the names of the mbarriers at which warps wait, by line."""
    waits = probed_sites(probe_result.kernel.folder).instructions()
    return {instruction.line: instruction.barrier for instruction in waits if instruction.barrier}


def _line_values(line: LineSums, barrier: str) -> dict[str, LineValue]:
    waits = of_line(line)
    return {
        "cycles": waits.waited,
        "waits": waits.waits,
        "cycles per wait": waits.cycles_per_wait,
        "for": " ".join(filter(None, (kind_of(line.opcode), barrier))) or None,
    }


LINES: Final = LineSpec(
    (
        LineMeasure("share"),
        LineMeasure("cycles", "sum"),
        LineMeasure("waits", "sum", better="neither"),
        LineMeasure("cycles per wait", "ratio", ("cycles", "waits")),
        LineMeasure("for", "first", better="neither"),
    ),
    "cycles",
    _line_rows,
)


def notes(analysis: CountsByLine[AsyncWaits]) -> list[str]:
    """The newest launch in words."""
    if not analysis.analysis.waits:
        return ["newest launch: no warp waited for asynchronous work"]
    mean = f"{analysis.analysis.cycles_per_wait or 0:.0f}"
    return [f"newest launch: {units.counted(analysis.analysis.waits, 'warp wait')}, average {mean} cycles"]


PROBES: Final = (
    Probe(
        name="async_wait",
        analyse=analysis_of_sites(analyse),
        metrics=METRICS,
        question=Question(
            "asynchronous work",
            "where do warps wait for copies or wgmma?",
            45,
            r"\bmbarrier\.(try|test)_wait|\bcp\.async\.[a-z.]*wait_|\bwgmma\.wait_group",
        ),
        findings=findings,
        lines=LINES,
        views=(WAITS,),
        notes=notes,
    ),
)
