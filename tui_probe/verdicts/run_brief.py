"""Brief of a run within a number of characters: verdict per kernel by share of time, worst lines, what to measure next.

    brief = run_brief(open_trace(directory))
    brief.text(4000)      # for people and language models
    brief.document(4000)  # JSON of the same objects, by ``tui-probe schema brief``

Kernel names, commands and source names are data of the trace: they are shortened, and safe to show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.char_budget import fit_document, fit_lines
from tui_probe.draw.printable import printable, shell_word
from tui_probe.draw.shorten import cut_middle, shorten
from tui_probe.draw.spans import to_ascii
from tui_probe.probekit.measured import probe_measuring_all
from tui_probe.probekit.registry import all_probes
from tui_probe.verdicts.code_places import failure_lines
from tui_probe.verdicts.findings import finding_text
from tui_probe.verdicts.kernel_findings import LIMITER_KEY, UNPROBED_KEY, KernelFinding, losses_of
from tui_probe.verdicts.limiter import LIMITER_QUANTITIES
from tui_probe.verdicts.limiter_text import NO_TIMES
from tui_probe.verdicts.probe_coverage import probe_coverage, unprobed_reason
from tui_probe.verdicts.run_findings import many_ranked_kernels, notable_findings, ranked_kernels
from tui_probe.verdicts.run_outcome import exit_text, measuring_command, probing_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.trace.model import Kernel, Trace

SCHEMA: Final = "tui-probe.brief"
SCHEMA_VERSION: Final = 1
MAX_CHARS: Final = 4000
"""Characters of a brief, if no number is given."""
_MAX_KERNELS: Final = 8
_MAX_RANKED_KERNELS: Final = 100
"""Kernels above which shares are estimated without reading results."""
_MAX_FINDINGS: Final = 3
"""Findings of a kernel."""
_MAX_COMMANDS: Final = 4
LINES_PAGE: Final = "lines"
CODE_PAGE: Final = "ptx"
"""Page of a finding about a line that names no page."""
_NAME_CELLS: Final = 60
_TEXT_CELLS: Final = 240
_MAX_COMMAND: Final = 500
"""Characters of a command up to which it is suggested: one that is cut cannot be run."""


@dataclass(frozen=True, slots=True)
class KernelBrief:
    """A kernel with its share of the run, None if unknown, its verdict in words, and its largest losses."""

    kernel: Kernel
    share: float | None
    verdict: str
    losses: Sequence[KernelFinding]

    def lines(self, advice: set[str]) -> Iterator[str]:
        """Yield the text lines, without ``advice`` that was given before; new advice is added to it."""
        share = units.NOT_MEASURED if self.share is None else f"{self.share:.0%}"
        name = shorten(printable(self.kernel.demangled), _NAME_CELLS)
        launches = units.counted(self.kernel.launches, "launch")
        verdict = self.verdict.removeprefix(f"{NO_TIMES}; ")  # the head of the brief says so
        yield _shortened(f"{share:>4}  #{self.kernel.index} {name}, {launches}: {verdict}")
        for loss in self.losses:
            mark = "!" if loss.finding.stands_out else "-"
            yield _shortened(
                f"    {mark} {loss.finding.label}: {finding_text(self.kernel, loss.finding)}{_gain_text(loss)}"
            )
            if loss.finding.stands_out and loss.finding.advice and loss.finding.advice not in advice:
                advice.add(loss.finding.advice)
                yield _shortened(f"      fix: {loss.finding.advice}")

    def record(self) -> dict[str, Any]:
        """Return the JSON record; its findings are in a list of the document."""
        return {
            "index": self.kernel.index,
            "name": shorten(printable(self.kernel.demangled), _NAME_CELLS),
            "share": self.share,
            "launches": self.kernel.launches,
            "verdict": self.verdict,
        }


@dataclass(frozen=True, slots=True)
class NextCommand:
    """A command to run next, and the question that it answers."""

    question: str
    command: str

    def record(self) -> dict[str, Any]:
        """Return the JSON record."""
        return {"question": self.question, "command": self.command}


@dataclass(frozen=True, slots=True)
class RunBrief:
    """The kernels with the largest shares, ``omitted`` that are left out, and what to run next."""

    trace: Trace
    share_of: str
    kernels: Sequence[KernelBrief]
    omitted: int
    others_share: float | None
    coverage: str
    next_commands: Sequence[NextCommand]
    failures: Sequence[str] = ()
    """A line per kernel that failed."""

    @property
    def report_command(self) -> str:
        """The command that shows all of the report."""
        return f"tui-probe report {shell_word(self.trace.directory)}"

    def text(self, max_chars: int = MAX_CHARS, *, ascii_only: bool = False) -> str:
        """Return the brief as lines of at most ``max_chars`` characters together."""
        encode = to_ascii if ascii_only else str
        lines, last_lines = [*map(encode, self._head())], [*map(encode, self._next_lines())]
        room = max_chars - sum(len(line) + 1 for line in [*lines, *last_lines])
        advice: set[str] = set()
        kernels = [encode(line) for brief in self.kernels for line in brief.lines(advice)]
        if kernels:
            kernels = ["", *fit_lines(kernels, max(room - 1, 0), self.report_command)]
        return "".join(
            f"{line}\n" for line in fit_lines([*lines, *kernels, *last_lines], max_chars, self.report_command)
        )

    def record(self) -> dict[str, Any]:
        """Return the brief as data, without a limit."""
        state = self.trace.state
        findings = sorted((loss for brief in self.kernels for loss in brief.losses), key=lambda loss: loss.order)
        return {
            "schema": SCHEMA,
            "version": SCHEMA_VERSION,
            "trace": printable(str(self.trace.directory)),
            "command": printable(state.command),
            "outcome": exit_text(self.trace),
            "device": None if state.device is None else state.device.name,
            "simulated": state.simulated,
            "failures": list(self.failures),
            "covered": self.coverage or None,
            "share_of": self.share_of or None,
            "kernels": [brief.record() for brief in self.kernels],
            "kernels_omitted": self.omitted,
            "next": [command.record() for command in self.next_commands],
            "findings": [finding.record() for finding in findings],
        }

    def document(self, max_chars: int = MAX_CHARS) -> str:
        """Return the brief as JSON of at most ``max_chars`` characters."""
        command = f"{self.report_command} --page summary --format json"
        return fit_document(self.record(), max_chars, command, kept_fields=("kernels", "next"))

    def _head(self) -> Iterator[str]:
        state = self.trace.state
        yield _shortened(f"{printable(state.command) or 'unknown command'}: {exit_text(self.trace)}", _TEXT_CELLS // 2)
        kernels = f"{units.counted(state.kernels, 'kernel')}, {units.counted(state.launches, 'launch')}"
        device = "" if state.device is None else f"{printable(state.device.name)}; "
        yield _shortened(f"{device}{kernels}, {units.count(state.launches_probed)} probed")
        if state.simulated:
            yield "simulated GPU: counts are exact, clocks and cycles come from a model"
        yield from (_shortened(failure) for failure in self.failures)
        if self.coverage:
            yield _shortened(f"probed: {self.coverage}")
        basis = f"; shares are of {self.share_of}" if self.share_of else ""
        yield f"{units.counted(len(self.kernels), 'kernel')}{self._others_text()}{basis}"

    def _others_text(self) -> str:
        if not self.omitted:
            return ""
        share = "" if self.others_share is None else f" with {self.others_share:.0%} of {self.share_of}"
        return f" of {units.count(len(self.kernels) + self.omitted)}; the others{share}: {self.report_command}"

    def _next_lines(self) -> list[str]:
        lines = [line for command in self.next_commands for line in (f"  {command.question}", f"    {command.command}")]
        return ["", "next:", *lines] if lines else []


def _shortened(text: str, cells: int = _TEXT_CELLS) -> str:
    return cut_middle(text, cells)[:cells]


def _gain_text(loss: KernelFinding) -> str:
    gain = loss.finding.gain
    return f"; {gain.words}" if gain else ""


def run_brief(trace: Trace) -> RunBrief:
    """Return the brief of a trace. Reads the newest results of a few kernels."""
    has_many = len(trace.kernels) > _MAX_RANKED_KERNELS
    ranked = many_ranked_kernels(trace) if has_many else ranked_kernels(trace)
    ranked_indices = {kernel.index for kernel, _ in ranked.kernels}
    unranked = [(kernel, None) for kernel in trace.kernels if kernel.index not in ranked_indices]
    pairs = [*ranked.kernels, *unranked]
    briefs, findings = [], []
    for kernel, share in pairs[:_MAX_KERNELS]:
        notable = notable_findings(trace, kernel, share)
        findings += notable
        briefs.append(KernelBrief(kernel, share, _verdict(kernel, notable), losses_of(notable)[:_MAX_FINDINGS]))
    shares = [share for _, share in pairs[_MAX_KERNELS:] if share is not None]
    return RunBrief(
        trace,
        ranked.share_of,
        briefs,
        len(pairs) - len(briefs),
        sum(shares) if shares else None,
        _coverage_text(trace, has_many=has_many),
        list(_next_commands(trace, findings))[:_MAX_COMMANDS],
        list(failure_lines(trace.kernels)),
    )


def _coverage_text(trace: Trace, *, has_many: bool) -> str:
    """Return the probed share in words, with the reasons unless there are too many kernels to ask each."""
    if has_many:
        probed_count = sum(kernel.launches_probed > 0 for kernel in trace.kernels)
        return f"{units.count(probed_count)} of {units.counted(len(trace.kernels), 'kernel')}"
    coverage = probe_coverage(trace)
    return "" if coverage is None else coverage.sentence


def _verdict(kernel: Kernel, findings: Sequence[KernelFinding]) -> str:
    """Return the limiter in words, else why it is not known."""
    by_key = {finding.finding.key: finding.finding.words for finding in findings}
    if LIMITER_KEY in by_key:
        return by_key[LIMITER_KEY]
    if UNPROBED_KEY in by_key:
        return f"not probed: {printable(by_key[UNPROBED_KEY])}"
    return "limiter not measured" if kernel.result_rows else f"no result: {unprobed_reason(kernel)}"


def _next_commands(trace: Trace, findings: Sequence[KernelFinding]) -> Iterator[NextCommand]:
    """Yield commands, those that the largest losses lead to first, each once."""
    commands = {command.command: command for command in _all_commands(trace, findings)}
    yield from (command for command in commands.values() if len(command.command) <= _MAX_COMMAND)


def _all_commands(trace: Trace, findings: Sequence[KernelFinding]) -> Iterator[NextCommand]:
    ranked = sorted(findings, key=lambda finding: finding.order)
    located = [loss for loss in ranked if loss.finding.line is not None]
    worst = next((loss for loss in located if loss.finding.page == LINES_PAGE), next(iter(located), None))
    if worst is not None:
        address = shell_word(f"{trace.directory}:{worst.kernel.index}")
        page = worst.finding.page or CODE_PAGE
        yield NextCommand("all lines of the kernel with the largest loss", f"tui-probe show {page} {address}")
    questions = {probe.question.key: (probe.question.text, probe.name) for probe in all_probes() if probe.question}
    for finding in ranked:
        is_leading = finding.finding.stands_out or finding.finding.key == LIMITER_KEY
        if is_leading and finding.finding.next_question in questions:
            question, probe = questions[finding.finding.next_question]
            yield NextCommand(question, probing_command(trace, probe))
    if command := measuring_command(trace):
        yield NextCommand("results of every probe of the run", command)
    for unmeasured in (unmeasured for finding in findings for unmeasured in finding.not_measured):
        if unmeasured.command:
            yield NextCommand(f"not measured: {unmeasured.what}", unmeasured.command)
    limiter = probe_measuring_all(LIMITER_QUANTITIES)
    if limiter and not any(finding.finding.key == LIMITER_KEY for finding in findings):
        yield NextCommand("what limits each kernel", probing_command(trace, limiter))
