"""Findings of a kernel with place, severity and next command, as report, data, API and comparison show them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeVar

from tui_probe.draw import units
from tui_probe.draw.printable import printable, shell_word
from tui_probe.draw.shorten import shorten
from tui_probe.probekit.finding import SHARE, Finding, derived, modelled
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.registry import all_probes, probe_named
from tui_probe.probekit.shown_results import unjoined_sources
from tui_probe.probekit.timelines.launch import IDLE_SMS_KEY
from tui_probe.trace.kernel_files import Offset
from tui_probe.trace.sites import source_lines
from tui_probe.verdicts.findings import (
    MAX_UNASKED_BYTES,
    NO_PROBE,
    ResultFindings,
    best_findings,
    launch_findings,
    result_bytes,
    unprobed_findings,
)
from tui_probe.verdicts.limiter import kernel_limiter
from tui_probe.verdicts.probe_coverage import kernel_advice, unmeasured_probes
from tui_probe.verdicts.run_outcome import probing_command
from tui_probe.verdicts.static_findings import GRID_KEY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from tui_probe.probekit.finding import FindingOrder
    from tui_probe.trace.model import KernelFacts, Trace
    from tui_probe.trace.source_lines import SourceLine, SourceLines
    from tui_probe.verdicts.limiter_text import KernelLimiter

Severity = Literal["error", "high", "medium", "low", "info"]
Confidence = Literal["high", "medium", "low"]
LIMITER_KEY: Final = "limiter"
UNPROBED_KEY: Final = "unprobed"
UNMEASURED_KEY: Final = "unmeasured"
_NAME_CELLS: Final = 120
_HIGH_SHARE: Final = 0.3
"""The part of the whole from which on a flagged loss is of high severity."""
_TOO_LARGE: Final = "result-too-large"
_NOT_COUNTED: Final = "not-counted"


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A number that was not measured, the code of the reason, and the command that measures it, "" for none."""

    what: str
    code: str
    command: str = ""

    def record(self) -> dict[str, Any]:
        """Return the JSON record."""
        return {"what": self.what, "code": self.code, "command": self.command or None}


@dataclass(frozen=True, slots=True)
class KernelFinding:
    """A finding with the kernel, launch and probe that it is of.

    ``probe`` is "" for findings without a probe, ``launch`` None where the log names none. ``share`` is that of the
    kernel in the run, from 0 to 1, None if it is not known.
    """

    kernel: KernelFacts
    finding: Finding
    probe: str = ""
    launch: int | None = None
    sampled: bool = False
    share: float | None = None
    not_measured: tuple[Unmeasured, ...] = ()

    @property
    def id(self) -> str:
        """``4.gmem_sectors_by_line.worst_access.store.cu:7``: the same in another run of the program."""
        parts = [str(self.kernel.index), self.probe or "launches", self.finding.key, self.position]
        return ".".join(filter(None, parts))

    @property
    def claim(self) -> str:
        """The finding as a sentence."""
        return printable(f"{self.finding.label}: {self.finding.words}")

    @property
    def severity(self) -> Severity:
        """``error`` for wrong results, ``high`` and ``medium`` for flagged losses, ``low`` for others."""
        finding = self.finding
        if not finding.stands_out:
            return "low" if finding.gain else "info"
        if finding.wrong_result:
            return "error"
        return "high" if finding.gain and finding.gain.share >= _HIGH_SHARE else "medium"

    @property
    def confidence(self) -> Confidence:
        """``high`` for counts of all blocks, ``medium`` for clocks and samples of blocks, ``low`` for models."""
        origins = {record["provenance"] for record in self.evidence}
        if origins & {"simulated", "modelled"}:
            return "low"
        return "medium" if self.sampled or not origins or origins & {"timed", "imported"} else "high"

    @property
    def is_simulated(self) -> bool:
        """True if a number of it follows from the clock of the simulated GPU."""
        return any(record["provenance"] == "simulated" for record in self.evidence)

    @property
    def evidence(self) -> list[dict[str, Any]]:
        """JSON records of its numbers."""
        simulated = self.kernel.trace.state.simulated
        return [value.record(metric, simulated=simulated) for metric, value in self.finding.evidence.items()]

    @property
    def source(self) -> SourceLine | None:
        """Line of source; None if it has none, or it is unknown."""
        line, folder = self.finding.line, self.kernel.folder
        return None if line is None or folder is None else _source_lines(folder).program_line(line)

    @property
    def location(self) -> dict[str, Any]:
        """Line of source, line of ``pruned.ptx`` and offset in the SASS."""
        line, source = self.finding.line, self.source
        is_offset = isinstance(line, Offset)
        return {
            "file": None if source is None else source.file,
            "line": None if source is None else source.line,
            "ptx": None if is_offset else line,
            "sass": int(line) if is_offset and line is not None else None,
        }

    @property
    def position(self) -> str:
        """``store.cu:7``, ``PTX:32``; "" for a finding of the whole kernel."""
        source = self.source
        if source is not None:
            return printable(f"{PurePath(source.file).name}:{source.line}")
        line = self.finding.line
        return "" if line is None else f"{line:#06x}" if isinstance(line, Offset) else f"PTX:{line}"

    @property
    def next(self) -> tuple[str, ...]:
        """The commands that tell more: the page that shows it, and the run that explains it."""
        trace, commands = self.kernel.trace, []
        if self.finding.page:
            launch = "" if self.launch is None else f"@{self.launch}"
            address = shell_word(f"{trace.directory}:{self.kernel.index}{launch}")
            commands.append(f"tui-probe show {self.finding.page} {address}")
        probe = next(
            (probe.name for probe in all_probes() if probe.question and probe.question.key == self._next_question), ""
        )
        return (*commands, *([probing_command(trace, probe)] if probe else []))

    @property
    def _next_question(self) -> str | None:
        return self.finding.next_question or None

    @property
    def order(self) -> FindingOrder:
        """Sort key in the run: see ``Finding.order_at``."""
        return self.finding.order_at(self.share)

    def record(self) -> dict[str, Any]:
        """Return the JSON record, as ``tui-probe schema finding`` describes it."""
        finding = self.finding
        gain = finding.gain
        return {
            "id": self.id,
            "kernel": {"index": self.kernel.index, "name": shorten(printable(self.kernel.demangled), _NAME_CELLS)},
            "launch": self.launch,
            "claim": self.claim,
            "severity": self.severity,
            "evidence": self.evidence,
            "location": self.location,
            "gain_at_most": gain and {"value": gain.amount, "unit": gain.unit, "of": gain.total},
            "confidence": self.confidence,
            "next": list(self.next),
            "not_measured": [missing.record() for missing in self.not_measured],
            "key": finding.key,
            "probe": self.probe or None,
            "advice": finding.advice or None,
        }


@lru_cache(maxsize=32)
def _source_lines(folder: Path) -> SourceLines:
    return source_lines(folder)


def findings_of_result(
    kernel: KernelFacts,
    result: ResultFindings,
    share: float | None = None,
    findings: Iterable[Finding] | None = None,
) -> list[KernelFinding]:
    """Return the ``findings`` of one result; by default all of them."""
    probe = "" if result.probe == NO_PROBE else result.probe
    sampled = result.is_sampled
    return [
        KernelFinding(kernel, finding, probe, result.launch, sampled, share, _absent_values(finding) if probe else ())
        for finding in (result.findings if findings is None else findings)
    ]


def _absent_values(finding: Finding) -> tuple[Unmeasured, ...]:
    """Return the numbers of a finding that were not measured."""
    return tuple(Unmeasured(name, _NOT_COUNTED) for name, value in finding.evidence.items() if value.value is None)


def kernel_findings(
    trace: Trace, kernel: KernelFacts, share: float | None = None, *, most_bytes: int = MAX_UNASKED_BYTES
) -> list[KernelFinding]:
    """Return all findings of a kernel, the most valuable first: of its probes' newest results, of its launches, its
    limiter, and what was not measured.

    A result of more than ``most_bytes`` is not read; a finding says so.
    """
    findings: list[KernelFinding] = []
    for source in unjoined_sources(ViewSource(trace, kernel)):
        if result_bytes(source) > most_bytes:
            findings.append(_unread_finding(source, share))
        elif (result := launch_findings(source)) is not None:
            findings += findings_of_result(kernel, result, share)
            findings += [_problem_finding(kernel, result, share)] if result.problem else []
    for result in unprobed_findings(kernel):
        findings += findings_of_result(kernel, result, share)
    findings += [replace(finding, share=share) for finding in _verdict_findings(kernel)]
    return sorted(findings, key=lambda finding: finding.order)


def key_findings(trace: Trace, kernel: KernelFacts, share: float | None = None) -> tuple[KernelFinding, ...]:
    """Return the flagged findings of each probe in its newest result, else its first. Large results are not read."""
    results = (
        launch_findings(source)
        for source in unjoined_sources(ViewSource(trace, kernel))
        if result_bytes(source) <= MAX_UNASKED_BYTES
    )
    readable = (result for result in results if result is not None)
    return tuple(
        finding
        for result in (*readable, *unprobed_findings(kernel))
        for finding in findings_of_result(kernel, result, share, best_findings(result))
    )


class ProbeFinding(Protocol):
    """A finding with its probe, and its place among others."""

    @property
    def finding(self) -> Finding: ...
    @property
    def probe(self) -> str: ...
    @property
    def order(self) -> FindingOrder: ...


Loss = TypeVar("Loss", bound=ProbeFinding)


def losses_of(findings: Sequence[Loss]) -> list[Loss]:
    """Return the findings of a kernel that are flagged or about a line, each loss once, the largest first.

    One about a line stands for those about the kernel as a whole.
    """
    notable = [finding for finding in findings if finding.finding.stands_out or finding.finding.line]
    located_probes = {finding.probe for finding in notable if finding.finding.line}
    probes = filter(None, map(probe_named, located_probes))
    answered_questions = {probe.question.key for probe in probes if probe.question is not None}
    has_grid_finding = any(finding.finding.key == GRID_KEY for finding in notable)
    losses = [
        finding
        for finding in notable
        if not (has_grid_finding and finding.finding.key == IDLE_SMS_KEY)
        and (
            finding.finding.line
            or (finding.probe not in located_probes and finding.finding.next_question not in answered_questions)
        )
    ]
    return sorted(losses, key=lambda loss: loss.order)


def _unread_finding(source: ViewSource, share: float | None) -> KernelFinding:
    size = units.size(result_bytes(source))
    probe = source.kernel.probe or ""
    command = f"tui-probe show summary {shell_word(f'{source.trace.directory}:{source.kernel.index}')}"
    finding = Finding(UNMEASURED_KEY, "not read", f"the result has {size}")
    unmeasured = Unmeasured("findings", _TOO_LARGE, command)
    return KernelFinding(source.kernel.kernel, finding, probe, share=share, not_measured=(unmeasured,))


def _problem_finding(kernel: KernelFacts, result: ResultFindings, share: float | None) -> KernelFinding:
    finding = Finding(UNMEASURED_KEY, "problem", printable(result.problem or ""))
    unmeasured = Unmeasured("findings", "result-unreadable" if result.unread else "probe-unknown")
    return KernelFinding(kernel, finding, result.probe, result.launch, share=share, not_measured=(unmeasured,))


def _verdict_findings(kernel: KernelFacts) -> Iterator[KernelFinding]:
    """Yield the limiter, the probes without a result, and the reason why the kernel was not probed."""
    limiter = kernel_limiter(kernel)
    if limiter is not None:
        yield _limiter_finding(kernel, limiter)
    unmeasured = unmeasured_probes(kernel)
    if unmeasured:
        text = "; ".join(f"{missing.probe}: {missing.reason}" for missing in unmeasured)
        absent = tuple(
            Unmeasured(f"-p {missing.probe}", missing.code, probing_command(kernel.trace, missing.probe))
            for missing in unmeasured
        )
        yield KernelFinding(kernel, Finding(UNMEASURED_KEY, "not measured", text), not_measured=absent)
    if kernel.status not in ("probed", "pending"):
        reason = kernel.reason or kernel.status
        advice = kernel_advice(kernel.status, kernel.probe_reason)
        finding = Finding(UNPROBED_KEY, "not probed", reason, advice=advice)
        absent = (Unmeasured("kernel", kernel.reason_code or kernel.status),)
        yield KernelFinding(kernel, finding, not_measured=absent)


def _limiter_finding(kernel: KernelFacts, limiter: KernelLimiter) -> KernelFinding:
    shares = {share.name: share.share for share in limiter.verdict.shares}
    values = {name: derived(share, SHARE) for name, share in shares.items()} or {
        f"relative {unit.name}": modelled(unit.share, SHARE) for unit in limiter.relative
    }
    unknown = ", ".join(limiter.verdict.unknown)
    absent = (Unmeasured(unknown, _NOT_COUNTED, limiter.command),) if unknown else ()
    finding = Finding(LIMITER_KEY, "limited by", limiter.words, values=values, next_question=limiter.next_question)
    return KernelFinding(kernel, finding, not_measured=absent)
