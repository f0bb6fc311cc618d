"""Findings and open questions: rows of the report, and lines of the summary."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tui_probe.draw.printable import printable
from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import Line, Span, clip, command_lines, hang_line, pad, plain, width, wrap
from tui_probe.draw.table import Column
from tui_probe.draw.table_content import RemadeRows, TableContent
from tui_probe.draw.view import no_progress, with_progress
from tui_probe.pages.unprobed_kernels import missing_probes
from tui_probe.pages.views import kind_of, kinds
from tui_probe.probe_files.catalogue import built_in_sets
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.probe_view import answered_questions, has_code, option_of
from tui_probe.probekit.registry import all_probes, probe_named
from tui_probe.verdicts.finding_summary import ranked_losses, ranked_results
from tui_probe.verdicts.findings import NO_PROBE, findings_by_probe
from tui_probe.verdicts.kernel_findings import findings_of_result
from tui_probe.verdicts.limiter import has_limiter_counts, kernel_limiter
from tui_probe.verdicts.limiter_text import limiter_texts
from tui_probe.verdicts.probe_coverage import kernel_advice, missing_reason, unmeasured_probes, unmeasured_texts
from tui_probe.verdicts.run_outcome import program_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tui_probe.draw.view import Progress
    from tui_probe.probekit.finding import Finding
    from tui_probe.trace.model import KernelFacts, Trace
    from tui_probe.verdicts.findings import ResultFindings
    from tui_probe.verdicts.kernel_findings import KernelFinding
    from tui_probe.verdicts.limiter_text import KernelLimiter

LABEL_WIDTH: Final = 16
LOSSES_TITLE: Final = "Where to look first"
"""Title of the ranked losses in the report and in the summary."""
_SIMULATED: Final = " (simulated: cycles come from a model)"
_MAX_QUESTIONS: Final = 5
_OPTION_WIDTH: Final = 27
QUESTION_WIDTH: Final = 46
"""Cells of a question, in the summary and in the list of questions on a terminal of 80 columns."""
_FINDING_FIELDS: Final = ("key", "words", "page", "ptx_line", "stands_out")


@dataclass(frozen=True, slots=True)
class Question:
    """``option`` of ``tui-probe run`` answers it. ``key`` is what findings call it by, "" if none does.

    ``code_pattern`` is a regular expression that occurs in the PTX of the kernels to which the question applies.
    """

    text: str
    option: str
    key: str = ""
    code_pattern: str = ""
    search_words: str = ""
    """More words by which people look for it."""
    of_program: bool = False
    """True if it is asked of all kernels together."""
    needs_gpu: bool = False
    """True if the simulated GPU cannot answer it."""

    @property
    def probe(self) -> str:
        """The probe or set of probes, "" where it is another option."""
        return self.option.removeprefix("-p ") if self.option.startswith("-p ") else ""

    @property
    def probes(self) -> tuple[str, ...]:
        """The probes of the option: of a set, all in it."""
        probe_set = built_in_sets().get(self.probe)
        choices = (self.probe,) if probe_set is None else probe_set.choices
        return tuple(choice.partition(":")[0] for choice in choices if choice)

    @property
    def pages(self) -> tuple[str, ...]:
        """The titles of the views that open with results of the probe."""
        return tuple(kind.title for kind in kinds() if set(self.probes).intersection(kind.probes))

    def record(self) -> dict[str, Any]:
        """Return the JSON record."""
        return {"question": self.text, "option": self.option, "pages": list(self.pages)}


COST_QUESTION: Final = Question("what is the overhead of the probe?", "--benchmark", needs_gpu=True)


@cache
def all_questions() -> tuple[Question, ...]:
    """All, the one asked most first. Each is a line of the summary while nothing in the trace answers it."""
    questions = [(probe.question, option_of(probe)) for probe in all_probes() if probe.question is not None]
    return (
        *(
            Question(
                question.text,
                option,
                question.key,
                question.code_pattern,
                question.search_words,
                question.of_program,
                question.needs_gpu,
            )
            for question, option in questions
        ),
        COST_QUESTION,
    )


def open_questions(
    kernel: KernelFacts, results: Sequence[ResultFindings], *, of_program: bool = False
) -> list[Question]:
    """Return the questions that mean something for a probed kernel and that none of its results answers; with
    ``of_program`` also those about all kernels together.

    First come the one that the limiter leads to and those that the findings lead to.
    """
    if kernel.status != "probed":
        return []
    limiter = kernel_limiter(kernel) if results else None
    raised_keys = [limiter.next_question] if limiter and limiter.next_question else []
    raised_keys += [finding.next_question for result in results for finding in result.findings if finding.next_question]
    answered_keys = answered_questions(kernel)
    questions = [
        question
        for question in all_questions()
        if _is_open(question, kernel, answered_keys)
        and ((of_program and question.of_program) or has_code(kernel, question.code_pattern) is not False)
    ]
    return sorted(
        questions,
        key=lambda question: raised_keys.index(question.key) if question.key in raised_keys else len(raised_keys),
    )


def _is_open(question: Question, kernel: KernelFacts, answered_keys: set[str]) -> bool:
    if question.needs_gpu and kernel.trace.state.simulated:
        return False
    return not kernel.times.impacts if question is COST_QUESTION else question.key not in answered_keys


def kernel_finding_lines(
    results: Sequence[ResultFindings], cells: int, keys: Mapping[str, str] | None = None, launch: int | None = None
) -> list[Line]:
    """Flagged losses in the order of the report, if there are several results; then the findings of each."""
    losses = [loss for loss in ranked_losses(results) if loss.stands_out] if len(results) > 1 else []
    lines: list[Line] = [((f" {LOSSES_TITLE}", "head"),)] if losses else []
    for loss in losses:
        lines += _finding_lines(loss, cells, keys or {})
    for result in results:
        other_findings = tuple(
            finding for finding in result.findings if finding not in losses and result.of_blocks(finding) not in losses
        )
        if other_findings or result.problem:
            lines += findings_lines(replace(result, findings=other_findings), cells, keys, launch)
    return lines


def findings_lines(
    result: ResultFindings, cells: int, keys: Mapping[str, str] | None = None, selected_launch: int | None = None
) -> list[Line]:
    """Return a heading, then one line per finding with the page that shows it, of at most ``cells`` cells.

    ``!`` marks what stands out. ``keys`` are pressed for pages on a screen, by view. ``selected_launch`` is the number
    of the launch that was chosen: of a probe without a result of it the nearest launch is shown.
    """
    noun = "launches" if len(result.launches) > 1 else "launch"
    launch_text = f" in {noun} {', '.join(map(str, result.launches))}" if result.launches else ""
    is_nearest = selected_launch is not None and bool(result.launches) and selected_launch not in result.launches
    preposition = ", the nearest with" if is_nearest else " by"
    probe = f"{preposition} -p {printable(result.probe)}" if result.probe else ""
    if result.probe == NO_PROBE:
        probe = " without a probe"
    head = f" found{launch_text}{probe}"
    fits = width(head) + width(_SIMULATED) <= cells
    simulated = _SIMULATED if fits and _counts_cycles(result.probe) else " (simulated)"
    lines: list[Line] = [((clip(head, cells), "dim"), (simulated if result.simulated else "", "simulated"))]
    if result.problem is not None:
        lines += [((" " + pad("problem" if i == 0 else "", LABEL_WIDTH), "dim"), (part, "bad"))
                  for i, part in enumerate(wrap(printable(result.problem), cells - LABEL_WIDTH - 2))]  # fmt: skip
    for finding in result.findings:
        lines += _finding_lines(finding, cells, keys or {})
    return lines


def limiter_lines(lines: Sequence[str], cells: int) -> Iterator[Line]:
    """Limiter of a kernel in lines, with its name before the first."""
    for place, text in enumerate(lines):
        for number, part in enumerate(wrap(text, max(20, cells - LABEL_WIDTH - 2))):
            is_first = not place and not number
            yield (
                (" " + pad("limited by" if is_first else "", LABEL_WIDTH), "dim"),
                (printable(part), "" if place else "title"),
            )


def _counts_cycles(name: str) -> bool:
    probe = probe_named(name)
    return probe is None or any(metric.is_time for metric in probe.metrics)


def _finding_lines(finding: Finding, cells: int, keys: Mapping[str, str]) -> Iterator[Line]:
    mark, role = ("!", "warn") if finding.stands_out else (" ", "")
    link = f"→ {page_label(finding.page, keys)}" if finding.page else ""
    room = max(20, cells - LABEL_WIDTH - 2)
    gain = f"; {finding.gain.words}" if finding.gain else ""
    parts = wrap(printable(finding.words + gain), room)
    # The link goes behind the words, with them on one line where both fit.
    if link and width(parts[-1]) + 2 + width(link) > room:
        parts.append("")
    for place, part in enumerate(parts):
        label = pad("" if place else finding.label, LABEL_WIDTH - 1) + " "
        indent = " " if place else ""
        spans: list[Span] = [("" if place else mark, "warn"), (indent + label, "dim"), (part, role)]
        if link and place == len(parts) - 1:
            spans.append((("  " if part else "") + link, "accent"))
        yield tuple(spans)
    if finding.stands_out and finding.advice:
        for part in wrap(f"fix: {finding.advice}", room):
            yield (" " * (LABEL_WIDTH + 1), ""), (part, "note")


def page_label(page: str, keys: Mapping[str, str]) -> str:
    """Return ``8 Lines``, or ``Lines`` where it has no number."""
    title = kind_of(page).title
    return f"{keys[page]} {title}" if page in keys else title


def question_lines(questions: Sequence[Question], command: str, cells: int, or_key: str = "") -> list[Line]:
    """Command or key to run again, and one line per question: the option, what it answers, and the pages it
    opens, given room.

    The first few are asked in full, of the others there is the option only.
    """
    if not questions:
        return []
    heading = f" further questions: {or_key}" if or_key else " further questions:"
    lines: list[Line] = [((line, "head"),) for line in command_lines(heading, command, cells)]
    for question in questions[:_MAX_QUESTIONS]:
        spans: list[Span] = [("  " + pad(question.option, _OPTION_WIDTH), "key")]
        pages = _opened_pages_text(question.pages, cells - _OPTION_WIDTH - QUESTION_WIDTH - 3)
        text = clip(question.text, cells - _OPTION_WIDTH - 2)
        lines.append((*spans, (pad(text, QUESTION_WIDTH), ""), (f" {pages}", "dim")) if pages else (*spans, (text, "")))
    other_options = [question.option for question in questions[_MAX_QUESTIONS:]]
    if other_options:
        lines += [(("  " + part, "dim"),) for part in _option_lines(other_options, cells - 2)]
    return lines


def _opened_pages_text(pages: Sequence[str], cells: int) -> str:
    """Return ``opens Timeline, Blocks``, or as many as fit and an ellipsis; "" for none."""
    for count in range(len(pages), 0, -1):
        text = f"opens {', '.join(pages[:count])}{', …' if count < len(pages) else ''}"
        if width(text) <= cells:
            return text
    return ""


def rerun_command(trace: Trace) -> str:
    """Return ``tui-probe run OPTION -- COMMAND``, which runs the target of a trace again."""
    simulated = " --sim" if trace.state.simulated else ""
    return f"tui-probe run{simulated} OPTION -- {program_command(trace)}"


def _option_lines(options: Sequence[str], cells: int) -> Iterator[str]:
    """Yield ``also -p NAME, --benchmark``, broken between options."""
    line = "also"
    for place, option in enumerate(options):
        word = option + ("," if place + 1 < len(options) else "")
        if width(line) + 1 + width(word) > cells:
            yield line
            line = "    "
        line += f" {word}"
    yield line


class FindingRow(NamedTuple):
    """One finding of a kernel's newest result; none where it has no result, or one with a problem."""

    kernel: KernelFacts
    result: ResultFindings | None
    finding: Finding | None
    limiter: KernelLimiter | None = None

    @property
    def located(self) -> KernelFinding | None:
        """The finding with its kernel, launch and probe."""
        if self.result is None or self.finding is None:
            return None
        return findings_of_result(self.kernel, self.result, self.kernel.time_share, [self.finding])[0]


def finding_rows(trace: Trace, progress: Progress = no_progress) -> Iterator[FindingRow]:
    """Yield the findings of all kernels; a kernel without any has only its row."""
    for kernel in with_progress(trace.kernels, progress):
        limiter = kernel_limiter(kernel)
        for result in findings_by_probe(ViewSource(trace, kernel)) or (None,):
            for finding in result.findings if result and result.findings else (None,):
                yield FindingRow(kernel, result, finding, limiter)


def summary_content(trace: Trace, progress: Progress = no_progress) -> TableContent[FindingRow]:
    """Return the page of all findings."""
    return TableContent(
        "summary",
        "Summary",
        FINDING_COLUMNS,
        RemadeRows(partial(finding_rows, trace, progress)),
        report=partial(summary_lines, trace, progress=progress),
        slow_extra=partial(summary_head, trace, progress),
    )


def summary_lines(trace: Trace, cells: int, progress: Progress = no_progress) -> Iterator[str]:
    """Yield the page as text: each kernel with what was found in its newest result, or why it was not probed."""
    for kernel in with_progress(trace.kernels, progress):
        yield f"#{kernel.index} {shorten(printable(kernel.demangled), cells - 16)}: {kernel.status}"
        findings = ranked_results(findings_by_probe(ViewSource(trace, kernel)))
        if has_limiter_counts(kernel) and (limit := kernel_limiter(kernel)) is not None:
            yield from (f"  {plain(line)}".rstrip() for line in limiter_lines(limiter_texts(limit), cells - 2))
        yield from (f"  {plain(line)}".rstrip() for line in kernel_finding_lines(findings, cells - 2))
        if any(result.probe != NO_PROBE for result in findings):
            yield from (part for text in _unprobed_texts(kernel) for part in hang_line(f"   {text}", cells))
        elif kernel.status == "probed":
            reason = None if kernel.launches_probed else missing_reason(kernel)
            yield from hang_line(f"   no result was saved{f': {printable(reason.text)}' if reason else ''}", cells)
        else:
            for words in filter(None, (kernel.reason, kernel_advice(kernel.status, kernel.probe_reason))):
                yield from hang_line(f"   {printable(words)}", cells)
        yield ""
    questions = trace_questions(trace)
    yield from (plain(line).rstrip() for line in question_lines(questions, rerun_command(trace), cells))


def _unprobed_texts(kernel: KernelFacts) -> Iterator[str]:
    """Yield the probes of the run that a kernel does not have, or that have no result of it, and why."""
    for names, status in missing_probes(kernel):
        yield f"not probed with {names}: {printable(status.reason or status.status)}"
    yield from unmeasured_texts(unmeasured_probes(kernel))


def trace_questions(trace: Trace, progress: Progress = no_progress) -> list[Question]:
    """Return the questions that no probed kernel's results answer, those that findings lead to first."""
    kernels = with_progress(trace.kernels, progress)
    questions_by_kernel = [open_questions(kernel, findings_by_probe(ViewSource(trace, kernel))) for kernel in kernels]
    best_ranks: dict[Question, int] = {}
    for questions in questions_by_kernel:
        for rank, question in enumerate(questions):
            best_ranks[question] = min(rank, best_ranks.get(question, rank))
    return sorted(filter(best_ranks.__contains__, all_questions()), key=best_ranks.__getitem__)


def summary_head(trace: Trace, progress: Progress = no_progress) -> dict[str, Any]:
    """Return the fields of the page's data that are about the whole trace."""
    return {"open_questions": [question.record() for question in trace_questions(trace, progress)]}


def _finding_field(name: str) -> Any:
    return lambda row: None if row.finding is None else row.finding.record()[name]


FINDING_COLUMNS: Final[Sequence[Column[FindingRow]]] = (
    Column("kernel", lambda r: r.kernel.index, "#", lambda r: str(r.kernel.index)),
    Column("name", lambda r: r.kernel.name),
    Column(
        "demangled",
        lambda r: r.kernel.demangled,
        "kernel",
        lambda r: r.kernel.demangled,
        right=False,
        narrow=16,
        shorten=shorten,
    ),
    Column("status", lambda r: r.kernel.status, "status", lambda r: r.kernel.status, right=False, rank=3),
    Column("reason", lambda r: r.kernel.reason),
    Column("probe", lambda r: r.result.probe if r.result and r.result.probe != NO_PROBE else None),
    Column("launch", lambda r: r.result.launch if r.result else None),
    Column("simulated", lambda r: r.kernel.trace.state.simulated),
    Column("problem", lambda r: r.result.problem if r.result else None),
    *(Column(name, _finding_field(name)) for name in _FINDING_FIELDS),
    Column("finding", None, "finding", lambda r: r.finding.record()["words"] if r.finding else "–", right=False),
    Column("values", lambda r: r.finding.numbers if r.finding else None, nested=True),
    Column("reason_code", lambda r: r.kernel.reason_code),
    Column("limiter", lambda r: r.limiter.limit if r.limiter else None),
    Column("limiter_text", lambda r: r.limiter.words if r.limiter else None),
    Column("file", lambda r: r.located.location["file"] if r.located else None),
    Column("line", lambda r: r.located.location["line"] if r.located else None),
    Column("data", lambda r: r.located.record() if r.located else None, nested=True),
)
"""JSON and CSV have one row per finding; ``values`` are its numbers by name, ``data`` the whole, in JSON only."""
