"""Findings and open questions as lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.draw.shell import command_lines
from tui_probe.draw.spans import Line, Span, clip, pad, width, wrap
from tui_probe.draw.table import safe
from tui_probe.pages.target import target_of
from tui_probe.pages.views import kind_of
from tui_probe.probekit.registry import probe_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tui_probe.pages.findings.found import Found
    from tui_probe.pages.findings.questions import Question
    from tui_probe.probekit.finding import Finding
    from tui_probe.trace.model import Trace

LABEL: Final = 16
_SIMULATED: Final = " (simulated: cycles are those of a model)"
_MOST_QUESTIONS: Final = 5
_OPTION: Final = 27
_QUESTION: Final = 46


def found_lines(found: Found, cells: int, keys: Mapping[str, str] | None = None) -> list[Line]:
    """A heading, then one line per finding with the page that shows it, of at most ``cells`` cells.

    ``!`` marks what stands out. ``keys`` are pressed for pages on a screen, by view.
    """
    launch = "" if found.launch is None else f" in launch {found.launch}"
    probe = f" by -p {safe(found.probe)}" if found.probe else ""
    head = f" found{launch}{probe}"
    fits = width(head) + width(_SIMULATED) <= cells
    simulated = _SIMULATED if fits and _counts_cycles(found.probe) else " (simulated)"
    lines: list[Line] = [((clip(head, cells), "head"), (simulated if found.simulated else "", "simulated"))]
    if found.problem is not None:
        lines += [((" " + pad("problem" if i == 0 else "", LABEL), "dim"), (part, "bad"))
                  for i, part in enumerate(wrap(safe(found.problem), cells - LABEL - 2))]  # fmt: skip
    for finding in found.findings:
        lines += _finding(finding, cells, keys or {})
    return lines


def limit_lines(said: Sequence[str], cells: int) -> Iterator[Line]:
    """What limits a kernel, with its name before the first line."""
    for place, words in enumerate(said):
        for number, part in enumerate(wrap(words, max(20, cells - LABEL - 2))):
            first = not place and not number
            yield ((" " + pad("limited by" if first else "", LABEL), "dim"), (safe(part), "title" if first else ""))


def _counts_cycles(name: str) -> bool:
    probe = probe_named(name)
    return probe is None or any(metric.is_time for metric in probe.metrics)


def _finding(finding: Finding, cells: int, keys: Mapping[str, str]) -> Iterator[Line]:
    mark, role = ("!", "warn") if finding.stands_out else (" ", "")
    link = f"→ {page_words(finding.page, keys)}" if finding.page else ""
    room = max(20, cells - LABEL - 2)
    gain = f"; {finding.gain.words}" if finding.gain else ""
    parts = wrap(safe(finding.words + gain), room)
    # The link goes behind the words, with them on one line where both fit.
    if link and width(parts[-1]) + 2 + width(link) > room:
        parts.append("")
    for place, part in enumerate(parts):
        label = pad("" if place else finding.label, LABEL)
        spans: list[Span] = [("" if place else mark, "warn"), (" " * (place > 0) + label, "dim"), (part, role)]
        if link and place == len(parts) - 1:
            spans.append((("  " if part else "") + link, "accent"))
        yield tuple(spans)


def page_words(page: str, keys: Mapping[str, str]) -> str:
    """``8 Lines``, or ``Lines`` where it has no number."""
    title = kind_of(page).title
    return f"{keys[page]} {title}" if page in keys else title


def question_lines(questions: Sequence[Question], command: str, cells: int, or_key: str = "") -> list[Line]:
    """How to run again, or which key does, and one line per question: the option, what it answers, and the pages it
    opens, given room.

    The first few are asked in full, of the others there is the option alone.
    """
    if not questions:
        return []
    before = f" to ask more: {or_key}" if or_key else " to ask more:"
    lines: list[Line] = [((line, "head"),) for line in command_lines(before, command, cells)]
    for each in questions[:_MOST_QUESTIONS]:
        spans: list[Span] = [("  " + pad(each.option, _OPTION), "key")]
        pages = _opened(each.pages, cells - _OPTION - _QUESTION - 3)
        words = clip(each.words, cells - _OPTION - 2)
        lines.append((*spans, (pad(words, _QUESTION), ""), (f" {pages}", "dim")) if pages else (*spans, (words, "")))
    rest = [each.option for each in questions[_MOST_QUESTIONS:]]
    if rest:
        lines += [(("  " + part, "dim"),) for part in _joined(rest, cells - 2)]
    return lines


def _opened(pages: Sequence[str], cells: int) -> str:
    """``opens Timeline, Blocks``, or as many as fit and an ellipsis; "" for none."""
    for count in range(len(pages), 0, -1):
        words = f"opens {', '.join(pages[:count])}{', …' if count < len(pages) else ''}"
        if width(words) <= cells:
            return words
    return ""


def command_of(trace: Trace) -> str:
    """``tui-probe run OPTION -- COMMAND``, which runs the target of a trace again."""
    simulated = " --sim" if trace.state.simulated else ""
    return f"tui-probe run{simulated} OPTION -- {target_of(trace)}"


def _joined(options: Sequence[str], cells: int) -> Iterator[str]:
    """``also -p NAME, --benchmark``, broken between options."""
    line = "also"
    for place, option in enumerate(options):
        word = option + ("," if place + 1 < len(options) else "")
        if width(line) + 1 + width(word) > cells:
            yield line
            line = "    "
        line += f" {word}"
    yield line
