"""The page of a report that says what the probes found: one row per finding, and what to ask next of the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tui_probe.draw.hanging import hanging
from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import plain
from tui_probe.draw.table import Column, safe
from tui_probe.draw.view import each_told, no_progress
from tui_probe.pages.advice import advice
from tui_probe.pages.findings.found import find_all
from tui_probe.pages.findings.lines import command_of, found_lines, limit_lines, question_lines
from tui_probe.pages.findings.questions import Question, open_questions, questions
from tui_probe.pages.limits import limited, limited_words, tells_limit
from tui_probe.probekit.kind import Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.draw.view import Progress
    from tui_probe.pages.findings.found import Found
    from tui_probe.probekit.finding import Finding
    from tui_probe.trace.model import Kernel, Trace


class FindingRow(NamedTuple):
    """One finding of a kernel's newest result; none where it has no result, or one with a problem."""

    kernel: Kernel
    found: Found | None
    finding: Finding | None


def finding_rows(trace: Trace, progress: Progress = no_progress) -> Iterator[FindingRow]:
    """The findings of all kernels; a kernel without any has only its row."""
    for kernel in each_told(trace.kernels, progress):
        for found in find_all(Source(trace, kernel)) or (None,):
            for finding in found.findings if found and found.findings else (None,):
                yield FindingRow(kernel, found, finding)


def summary_lines(trace: Trace, cells: int, progress: Progress = no_progress) -> Iterator[str]:
    """The page as text: each kernel with what was found in its newest result, or why it was not probed."""
    for kernel in each_told(trace.kernels, progress):
        yield f"#{kernel.index} {shorten(safe(kernel.demangled), cells - 16)}: {kernel.status}"
        found = find_all(Source(trace, kernel))
        if tells_limit(kernel) and (limit := limited(kernel)) is not None:
            yield from (f"  {plain(line)}".rstrip() for line in limit_lines(limited_words(limit), cells - 2))
        for each in found:
            yield from (f"  {plain(line)}".rstrip() for line in found_lines(each, cells - 2))
        if found:
            yield from (f"   {words}" for words in _refused(kernel))
        elif kernel.status == "probed":
            yield "   no result was saved"
        else:
            for words in filter(None, (kernel.reason, advice(kernel.status, kernel.why))):
                yield from hanging(f"   {safe(words)}", cells)
        yield ""
    questions = questions_of(trace)
    yield from (plain(line).rstrip() for line in question_lines(questions, command_of(trace), cells))


def _refused(kernel: Kernel) -> Iterator[str]:
    """The probes of the run that a kernel does not have, and why."""
    for one in kernel.by_probe():
        if one.status != "probed":
            yield f"not with -p {safe(one.probe or '')}: {safe(one.reason or one.status)}"


def questions_of(trace: Trace, progress: Progress = no_progress) -> list[Question]:
    """What no probed kernel's results answer, what the findings lead to first."""
    kernels = each_told(trace.kernels, progress)
    known = [open_questions(kernel, find_all(Source(trace, kernel))) for kernel in kernels]
    best = {question: min(each.index(question) for each in known if question in each) for question in questions()
            if any(question in each for each in known)}  # fmt: skip
    return sorted(best, key=lambda question: best[question])


def summary_head(trace: Trace, progress: Progress = no_progress) -> dict[str, Any]:
    """What the data of the page says of the whole trace."""
    return {"open_questions": [question.record() for question in questions_of(trace, progress)]}


def _value(name: str) -> Any:
    return lambda row: None if row.finding is None else row.finding.record()[name]


_COLUMNS: Final = ("key", "words", "page", "ptx_line", "stands_out")

FINDING_COLUMNS: Final[Sequence[Column[FindingRow]]] = (
    Column("kernel", lambda r: r.kernel.index, "#", lambda r: str(r.kernel.index)),
    Column("name", lambda r: r.kernel.name),
    Column("demangled", lambda r: r.kernel.demangled, "kernel", lambda r: r.kernel.demangled, False, 0, 16, shorten),
    Column("status", lambda r: r.kernel.status, "status", lambda r: r.kernel.status, False, 3),
    Column("reason", lambda r: r.kernel.reason),
    Column("probe", lambda r: r.found.probe if r.found else None),
    Column("launch", lambda r: r.found.launch if r.found else None),
    Column("simulated", lambda r: r.kernel.trace.state.simulated),
    Column("problem", lambda r: r.found.problem if r.found else None),
    *(Column(name, _value(name)) for name in _COLUMNS),
    Column("finding", None, "finding", lambda r: r.finding.record()["words"] if r.finding else "–", False),
    Column("values", lambda r: dict(r.finding.values) if r.finding else None, nested=True),
    Column("reason_code", lambda r: r.kernel.reason_code),
)
"""JSON and CSV have one row per finding; ``values`` are its numbers by name, in JSON only."""
