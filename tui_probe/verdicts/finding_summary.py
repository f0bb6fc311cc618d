"""Findings of a kernel as one line of a table, in the order of the report, and the worst line of its code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, cast

from tui_probe.draw import units
from tui_probe.draw.printable import printable
from tui_probe.probekit.finding import NO_FINDING, Finding, opcode_class
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.trace.kernel_files import short_position
from tui_probe.trace.sites import source_lines
from tui_probe.verdicts.findings import (
    FLAG,
    MAX_UNASKED_BYTES,
    NO_PROBE,
    UNMATCHED_KEY,
    ResultFindings,
    best_findings,
    finding_text,
    findings_by_probe,
    result_bytes,
)
from tui_probe.verdicts.kernel_findings import losses_of
from tui_probe.verdicts.limiter import has_limiter_counts, kernel_limiter, limiter_summary
from tui_probe.verdicts.run_findings import mean_cycles
from tui_probe.verdicts.static_findings import runs_on_few_sms

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tui_probe.probekit.finding import FindingOrder
    from tui_probe.trace.model import Kernel, KernelFacts, Trace


@dataclass(frozen=True, slots=True)
class FindingSummary:
    """Findings of the probes of a kernel in the newest results, a line about them, and what limits the kernel."""

    words: str
    results: tuple[ResultFindings, ...] = ()
    limiter: str = ""
    """``memory (L2) 83%``; "" where no probe was to measure it, or none could."""
    worst_line: str = ""
    """``buggy.py:23 ld.global 16 sectors, ideal 4``; "" where no line stands out."""
    first: Finding | None = None
    """The first loss in the order of the report; None without one."""
    brief: str = ""
    """The first loss in few words, if it is flagged."""
    cycles: float | None = None
    """Mean cycles of a launch, where no times were measured."""
    limited: tuple[str, ...] = ()
    """The first line about the limiter in the summary."""

    @property
    def text(self) -> str:
        """The limiter and the line in one."""
        mark = FLAG if self.words.startswith(FLAG) else ""
        return mark + "; ".join(filter(None, (self.limiter, self.words.removeprefix(FLAG))))


def summarize_findings(trace: Trace, kernel: Kernel) -> FindingSummary:
    """Return the first flagged finding, else the first of each probe that has something to say.

    Reads the newest result of each probe, if it is not large; or says why there is nothing, where it cannot be read.
    """
    cycles = mean_cycles(kernel) if kernel.time_share is None else None
    for source in ViewSource(trace, kernel).by_probe():
        size = result_bytes(source)
        if size > MAX_UNASKED_BYTES:
            return FindingSummary(f"{units.size(size)} of records: open the kernel to read them", cycles=cycles)
    results = findings_by_probe(ViewSource(trace, kernel))
    losses = ranked_losses(results)
    first = losses[0] if losses else None
    brief = "" if first is None or not first.stands_out else _brief_text(kernel, first)
    text = "; ".join(filter(None, [_table_text(kernel, first, results), *_problems(results)]))
    worst_line = _worst_line_text(kernel, losses)
    limited = limiter_summary(kernel, kernel_limiter(kernel))[:1]
    return FindingSummary(
        text, tuple(ranked_results(results)), limiter_text(kernel), worst_line, first, brief, cycles, limited
    )


@dataclass(frozen=True, slots=True)
class _ProbeFinding:
    finding: Finding
    probe: str

    @property
    def order(self) -> FindingOrder:
        return self.finding.order


def ranked_losses(results: Sequence[ResultFindings]) -> list[Finding]:
    """Return the losses of a kernel that all outputs name, in their order: see ``losses_of``."""
    best = (
        _ProbeFinding(finding, "" if result.probe == NO_PROBE else result.probe)
        for result in results
        for finding in best_findings(result)
    )
    return [loss.finding for loss in losses_of(list(best))]


def ranked_results(results: Iterable[ResultFindings]) -> list[ResultFindings]:
    """Return the results by the best finding of each."""
    return sorted(results, key=lambda found: min((f.order for f in found.findings), default=NO_FINDING))


def _table_text(kernel: KernelFacts, first: Finding | None, results: Sequence[ResultFindings]) -> str:
    if first is not None and first.stands_out:
        return f"{FLAG}{first.label}: {hotspot_text(kernel, first)}"
    best = sorted(
        (finding for found in results for finding in best_findings(found)),
        key=lambda finding: finding.key == UNMATCHED_KEY,
    )
    notable = [finding for finding in best if not finding.values or any(finding.numbers.values())] or best[:1]
    return "; ".join(finding_text(kernel, finding) for finding in notable)


def _problems(results: Sequence[ResultFindings]) -> list[str]:
    return [printable(result.problem) for result in results if result.problem]


def worst_line_text(kernel: KernelFacts) -> str:
    """Return the worst line of a kernel, read from the newest results; "" where no line stands out."""
    source = ViewSource(cast("Trace", kernel.trace), kernel)
    if any(result_bytes(of_probe) > MAX_UNASKED_BYTES for of_probe in source.by_probe()):
        return ""
    return _worst_line_text(kernel, ranked_losses(findings_by_probe(source)))


def _worst_line_text(kernel: KernelFacts, ranked: Sequence[Finding]) -> str:
    worst = next((finding for finding in ranked if finding.stands_out and finding.line is not None), None)
    return "" if worst is None else _brief_text(kernel, worst)


def _brief_text(kernel: KernelFacts, worst: Finding) -> str:
    """Return a flagged finding in few words, after its place if it has one."""
    if worst.line is None:
        return f"{worst.label}: {finding_text(kernel, worst)}"
    if not worst.brief:
        return hotspot_text(kernel, worst)
    source = source_lines(kernel.folder).program_line(worst.line)
    place = short_position(worst.line) if source is None else f"{PurePath(source.file).name}:{source.line}"
    return printable(f"{place} {worst.brief}")


def hotspot_text(kernel: KernelFacts, finding: Finding) -> str:
    """Return the text of a finding about a line of code, the place first: ``buggy.py:23 ld.global, 16 sectors..``."""
    source = source_lines(kernel.folder).program_line(finding.line) if finding.line else None
    if finding.line is None or source is None:
        return finding_text(kernel, finding)
    name, position = f"{PurePath(source.file).name}:{source.line}", short_position(finding.line)
    opcode, place, remainder = finding.words.partition(f" {position} {name}")
    if not place:
        return finding_text(kernel, finding)
    return printable(f"{name} {opcode_class(opcode)}{remainder}")


def limiter_text(kernel: KernelFacts) -> str:
    """Return the limiter, where a probe was to measure it, and could, or where the grid alone tells it."""
    limit = kernel_limiter(kernel) if has_limiter_counts(kernel) else None
    if limit is None:
        return "too small" if runs_on_few_sms(kernel) else ""
    return limit.short_text if limit.limit is not None else ""
