"""Shared memory bank conflicts: the wavefronts of loads and stores, by the rule of 32 banks of 4-byte words.

    wavefronts of an access    max over banks of the distinct 4-byte words that its active lanes touch in the bank
    fewest wavefronts          distinct words / 32, rounded up
    conflicts                  wavefronts - fewest wavefronts
    wavefronts per access      sum of wavefronts / accesses: 1 at best for 4 bytes per lane, 2 for 8, 4 for 16
    conflict degree            wavefronts / (wavefronts - conflicts): how many times slower than without conflicts

Fields of records and keys of metrics call wavefronts ``passes``. The same word in several lanes is not a conflict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.probekit.finding import Finding, Gain, brief_text, counted, derived, line_place, notable_lines, percent
from tui_probe.probekit.lines import LineMeasure, LineRow, LineRows, LineSpec
from tui_probe.probekit.metric import Metric, metrics_by_line, show_never
from tui_probe.probekit.probe import Probe, Question, analysis_of_result, analysis_of_sites
from tui_probe.records.counter_sums import (
    CountsByLine,
    counts_by_line,
    line_sums,
    ratio,
    site_dtype,
    sum_records,
    sums_by_source,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.records.counter_sums import LineSums
    from tui_probe.trace.results import Result


RECORD: Final = np.dtype([(name, "<u4") for name in ("accesses", "passes", "conflicts", "threads")])
"""Record of ``smem_conflicts`` per warp."""
SITE: Final = site_dtype("accesses", "passes", "conflicts")
"""Record of ``smem_conflicts_by_line`` per instruction."""
METRICS: Final = (
    Metric("accesses", "accesses", standalone_title="shared memory accesses"),
    Metric(
        "passes_per_access",
        "wavefronts per access",
        standalone_title="wavefronts per shared memory access",
        better="lower",
        over_launches="mean",
        of_work=True,
        ideal=lambda analysis: ratio(analysis.passes - analysis.conflicts, analysis.accesses),
    ),
    Metric(
        "conflicts", "bank conflicts", "wavefronts", better="lower", standalone_title="bank conflicts", of_work=True
    ),
    Metric(
        "degree",
        "conflict degree",
        better="lower",
        over_launches="mean",
        standalone_title="bank conflict degree",
        ideal=lambda _: 1,
    ),
    Metric(
        "passes",
        "wavefronts",
        better="lower",
        quantity="shared wavefronts",
        is_shown=show_never,
        standalone_title="shared memory wavefronts",
        of_work=True,
        ideal=lambda analysis: analysis.passes - analysis.conflicts,
    ),
)
BY_LINE: Final = metrics_by_line(METRICS, "highest degree")
_FLAGGED_SHARE: Final = 0.1
"""The part of all passes from which on what conflicts take stands out."""
_ADVICE: Final = "pad rows by one element, or swizzle columns, so that lanes use different banks"


@dataclass(frozen=True, slots=True)
class BankConflicts:
    """Accesses, passes and conflicts of one launch."""

    accesses: int
    passes: int
    conflicts: int
    threads_missing: int

    @property
    def passes_per_access(self) -> float | None:
        """Mean passes of an access."""
        return ratio(self.passes, self.accesses)

    @property
    def degree(self) -> float | None:
        """Passes over the fewest possible."""
        return ratio(self.passes, self.passes - self.conflicts)


def analyse(result: Result) -> BankConflicts:
    """The conflicts of one launch; TraceError if map 0 holds no records of ``smem_conflicts``."""
    sums = sum_records(result, RECORD, "smem_conflicts")
    return BankConflicts(**sums.totals, threads_missing=sums.threads_missing)


def analyse_lines(result: Result, sites: Sequence[int], folder: Path | None = None) -> CountsByLine[BankConflicts]:
    """Counts by line of ``smem_conflicts_by_line``; see :func:`counter_sums.line_sums`. Raises TraceError."""
    lines = line_sums(result, SITE, "smem_conflicts_by_line", sites, folder)
    return counts_by_line(
        lines, SITE, lambda sums: BankConflicts(**sums, threads_missing=0), lambda line: of_line(line).degree
    )


def of_line(line: LineSums) -> BankConflicts:
    """The conflicts of one line."""
    return BankConflicts(**line.sums, threads_missing=0)


def findings(probe_result: ProbeResult, analysis: BankConflicts) -> Iterator[Finding]:
    """All accesses together."""
    del probe_result
    yield _all_accesses_finding(analysis, "bank conflicts")


def findings_by_line(probe_result: ProbeResult, analysis: CountsByLine[BankConflicts]) -> Iterator[Finding]:
    """The worst lines of source, then all accesses."""
    del probe_result
    passes = analysis.analysis.passes
    lines = sums_by_source(analysis.lines, lambda line: line.sums["conflicts"])
    all_lines = _all_accesses_finding(analysis.analysis, "")
    worst = (_line_finding(line, passes) for line in lines if line.sums["conflicts"])
    yield from notable_lines(worst, has_large_loss=all_lines.stands_out)
    yield all_lines


def _line_finding(line: LineSums, passes: int) -> Finding:
    counts = of_line(line)
    text = f"{line_place(line)}, {counts.degree or 0:.1f}× the ideal wavefronts"
    text += f", {percent(counts.conflicts, passes)} of all wavefronts lost to conflicts"
    values = {"degree": derived(counts.degree, ideal=1), "conflicts": counted(counts.conflicts, "wavefronts", 0)}
    is_flagged = counts.conflicts > _FLAGGED_SHARE * passes
    gain = Gain(counts.conflicts, passes, "wavefronts")
    return Finding("worst_access", "bank conflicts", text, "lines", line.line, is_flagged, values=values, gain=gain,
                   advice=_ADVICE, brief=brief_text(line.opcode, f"{counts.degree or 0:.1f}× wavefronts"))  # fmt: skip


def _all_accesses_finding(analysis: BankConflicts, question: str) -> Finding:
    text = "no shared memory access was executed"
    if analysis.accesses:
        text = f"{units.counted(analysis.accesses, 'access')}, {analysis.passes_per_access or 0:.2f} wavefronts each, "
        text += (
            f"{percent(analysis.conflicts, analysis.passes)} from bank conflicts"
            if analysis.conflicts
            else "no bank conflicts"
        )
    is_flagged = analysis.conflicts > _FLAGGED_SHARE * analysis.passes
    values = {
        "accesses": counted(analysis.accesses),
        "passes": counted(analysis.passes, ideal=analysis.passes - analysis.conflicts),
        "conflicts": counted(analysis.conflicts, "wavefronts", 0),
    }
    question = question if analysis.conflicts else ""
    gain = Gain(analysis.conflicts, analysis.passes, "wavefronts") if analysis.conflicts else None
    return Finding(
        "shared_memory", "shared memory", text, stands_out=is_flagged, next_question=question, values=values, gain=gain
    )


def _line_rows(probe_result: ProbeResult, analysis: CountsByLine[BankConflicts]) -> LineRows:
    del probe_result
    conflicts = [(line, of_line(line)) for line in analysis.lines]
    rows = [
        LineRow(
            line.line,
            line.source,
            {
                "degree": conflict.degree,
                "conflicts": conflict.conflicts,
                "accesses": conflict.accesses,
                "passes per access": conflict.passes_per_access,
                "passes": conflict.passes,
            },
        )
        for line, conflict in sorted(conflicts, key=lambda pair: (-pair[1].conflicts, -pair[1].passes))
    ]
    text = "bank conflicts: wavefronts above the minimum; conflict degree: wavefronts divided by the minimum"
    return LineRows(rows, [text])


LINES: Final = LineSpec(
    (
        LineMeasure("degree", title="conflict degree"),
        LineMeasure("conflicts", "sum", title="bank conflicts"),
        LineMeasure("accesses", "sum", better="neither"),
        LineMeasure("passes per access", "ratio", ("passes", "accesses"), title="wavefronts per access"),
        LineMeasure("passes", "sum", title="wavefronts"),
    ),
    "conflicts",
    _line_rows,
)


PROBES: Final = (
    Probe(name="smem_conflicts", analyse=analysis_of_result(analyse), metrics=METRICS, findings=findings),
    Probe(
        name="smem_conflicts_by_line",
        analyse=analysis_of_sites(analyse_lines),
        metrics=BY_LINE,
        question=Question("bank conflicts", "which accesses have bank conflicts?", 50, r"\b(ld|st)\.[a-z.:]*shared"),
        findings=findings_by_line,
        lines=LINES,
    ),
)
