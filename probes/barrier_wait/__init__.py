"""Barrier waits: the cycles that warps spend at barriers, for each warp or each barrier.

    waited          sum over warps and barriers of (clock after - clock before)          SM clock cycles
    barriers        barriers that warps came through, each counted once per warp
    cycles per barrier = waited / barriers
    most of a warp  the largest ``waited`` of one warp

A warp that is last at every barrier waits little: what the others wait tells how uneven the work is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.probekit.finding import Finding, counted, timed
from tui_probe.probekit.lines import LineMeasure, LineRows, LineSpec, longest_waits, ranked_rows
from tui_probe.probekit.metric import Metric, metrics_by_line, show_known
from tui_probe.probekit.probe import Probe, Question, analysis_of_result, analysis_of_sites
from tui_probe.probekit.probe_results import cycles_text
from tui_probe.probekit.record_counts import DETAIL_ADVICE, sampled_blocks_text
from tui_probe.records.counter_sums import (
    CountsByLine,
    counts_by_line,
    line_sums,
    ratio,
    site_dtype,
    sum_records,
    sums_dtype,
    warp_records,
)
from tui_probe.records.distribution import Waits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tui_probe.draw.view import Progress
    from tui_probe.probekit.lines import LineValue
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.records.counter_sums import LineSums
    from tui_probe.trace.results import Result


_PROBE: Final = "barrier_wait"
RECORD: Final = np.dtype([("waited", "<u8"), ("barriers", "<u4"), ("threads", "<u4")])
"""Record of ``barrier_wait`` per warp."""
REDUCED: Final = sums_dtype(RECORD, "longest")
"""Record of a reduced launch: sums, and the longest wait of one warp."""
SITE: Final = site_dtype("waited", "barriers")
"""Record of ``barrier_wait_by_line`` per barrier."""
METRICS: Final = (
    Metric("barriers", "barriers"),
    Metric("cycles_per_barrier", "cycles per barrier", better="lower", over_launches="mean", clocked=True),
    Metric("waited", "waited", "cycles", better="lower", standalone_title="waited at barriers", of_work=True),
    Metric(
        "longest",
        "max per warp",
        "cycles",
        better="lower",
        over_launches="largest",
        is_shown=show_known,
        standalone_title="waited at barriers, max per warp",
        of_work=True,
    ),
)
BY_LINE: Final = metrics_by_line(METRICS, "most cycles")
_LABELS: Final = ("one warp", "one barrier")


@dataclass(frozen=True, slots=True)
class BarrierWaits:
    """Cycles and barriers of one launch.

    ``longest`` is the most that one warp waited in all; None if it was counted by barrier and not by warp.
    """

    waited: int
    barriers: int
    longest: int | None
    threads_missing: int

    @property
    def cycles_per_barrier(self) -> float | None:
        """Mean wait."""
        return ratio(self.waited, self.barriers)


def analyse(result: Result) -> BarrierWaits:
    """The waits of one launch; TraceError if map 0 holds no records of ``barrier_wait``."""
    sums = sum_records(result, RECORD, _PROBE, REDUCED)
    reduced = result.reduced(0, REDUCED)
    by_warp = warp_records(result, RECORD, _PROBE)["waited"] if reduced is None else reduced.records["longest"]
    longest_wait = int(by_warp.max())
    return BarrierWaits(**sums.totals, longest=longest_wait, threads_missing=sums.threads_missing)


def analyse_lines(result: Result, sites: Sequence[int], folder: Path | None = None) -> CountsByLine[BarrierWaits]:
    """Counts by line of ``barrier_wait_by_line``; see :func:`counter_sums.line_sums`. Raises TraceError."""
    lines = line_sums(result, SITE, "barrier_wait_by_line", sites, folder)
    return counts_by_line(lines, SITE, _barrier_waits, lambda line: line.sums["waited"] or None)


def of_line(line: LineSums) -> BarrierWaits:
    """The waits at one barrier."""
    return _barrier_waits(line.sums)


def _barrier_waits(sums: dict[str, int]) -> BarrierWaits:
    return BarrierWaits(**sums, longest=None, threads_missing=0)


def findings(probe_result: ProbeResult, analysis: BarrierWaits) -> Iterator[Finding]:
    """All barriers together."""
    yield _all_barriers_finding(probe_result, analysis, "latency", "barriers" if analysis.barriers else "")


def findings_by_line(probe_result: ProbeResult, analysis: CountsByLine[BarrierWaits]) -> Iterator[Finding]:
    """The barrier that costs most, then all."""
    if analysis.worst is not None:
        line = analysis.worst[0]
        mean = of_line(line).cycles_per_barrier
        values = {"cycles_per_barrier": timed(mean)}
        yield longest_waits("worst_barrier", "worst barrier", line, analysis.analysis.waited, mean, values)
    yield _all_barriers_finding(probe_result, analysis.analysis, "", "")


def _all_barriers_finding(probe_result: ProbeResult, analysis: BarrierWaits, page: str, question: str) -> Finding:
    text = "no barrier was executed"
    if analysis.barriers:
        mean = cycles_text(analysis.cycles_per_barrier or 0, probe_result.clock_khz)
        text = f"{units.count(analysis.barriers)} warp arrivals, average wait {mean}"
    values = {
        "waited": timed(analysis.waited),
        "barriers": counted(analysis.barriers),
        "longest": timed(analysis.longest),
    }
    return Finding("barriers", "barriers", text, page, next_question=question, values=values)


def _line_rows(probe_result: ProbeResult, analysis: CountsByLine[BarrierWaits]) -> LineRows:
    del probe_result
    rows = ranked_rows(analysis.lines, lambda line: of_line(line).waited, _line_values)
    return LineRows(rows, ["cycles from arrival at a barrier to its release, summed over all warps"])


def _line_values(line: LineSums) -> dict[str, LineValue]:
    waits = of_line(line)
    return {
        "cycles": waits.waited,
        "waits": waits.barriers,
        "cycles per wait": waits.cycles_per_barrier,
    }


LINES: Final = LineSpec(
    (
        LineMeasure("share"),
        LineMeasure("cycles", "sum"),
        LineMeasure("waits", "sum", better="neither"),
        LineMeasure("cycles per wait", "ratio", ("cycles", "waits")),
    ),
    "cycles",
    _line_rows,
)


def waits(probe_result: ProbeResult, progress: Progress) -> Waits:
    """Cycles that each warp waited in all, and on average at a barrier; not known of a launch whose sums were kept."""
    progress(0.0)
    if probe_result.result.group(0) is not None:
        return _waits_of_sums(probe_result)
    records = warp_records(probe_result.result, RECORD, probe_result.probe)
    warps = records[records["threads"] > 0]
    waited, barriers = warps["waited"].astype(np.int64), warps["barriers"].astype(np.int64)
    has_barriers = barriers > 0
    values = dict(zip(_LABELS, (waited, waited[has_barriers] // barriers[has_barriers]), strict=True))
    text = f"{units.counted(len(warps), 'warp')}, {units.counted(int(barriers.sum()), 'barrier')}"
    missing_threads = probe_result.result.threads - int(warps["threads"].sum(dtype=np.int64))
    return Waits(probe_result.launch_label, values, text + _excluded_text(probe_result, missing_threads))


def _waits_of_sums(probe_result: ProbeResult) -> Waits:
    waits = analyse(probe_result.result)
    text = units.counted(waits.barriers, "barrier") + _excluded_text(probe_result, waits.threads_missing)
    return Waits(probe_result.launch_label, {}, f"{text}; for each warp's waits, {DETAIL_ADVICE}", _LABELS)


def _excluded_text(probe_result: ProbeResult, threads_missing: int) -> str:
    text = f", excluding {units.counted(threads_missing, 'thread')} that did not exit" if threads_missing else ""
    return text + (f"; {sampled_blocks_text(probe_result.result.sample)}" if probe_result.result.sample else "")


PROBES: Final = (
    Probe(
        name="barrier_wait",
        analyse=analysis_of_result(analyse),
        metrics=METRICS,
        findings=findings,
        waits=waits,
    ),
    Probe(
        name="barrier_wait_by_line",
        analyse=analysis_of_sites(analyse_lines),
        metrics=BY_LINE,
        question=Question("barriers", "at which barriers do warps wait, and how long?", 40, r"\b(bar|barrier)\."),
        findings=findings_by_line,
        lines=LINES,
    ),
)
