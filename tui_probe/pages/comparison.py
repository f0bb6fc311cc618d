"""Comparison of two kernels, launches or traces: verdict, changes, and all values of both."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.printable import printable
from tui_probe.draw.shorten import shorten_apart
from tui_probe.draw.spans import wrap
from tui_probe.draw.table import Column, as_markdown, as_record, table
from tui_probe.draw.table_content import UNSORTED, RemadeRows, TableContent
from tui_probe.draw.view import Document
from tui_probe.errors import ChoiceError
from tui_probe.pages.comparison_tables import (
    OVERVIEW_COLUMNS,
    SORT_TITLES,
    change_link,
    changed_values,
    comparison_table,
    finding_rows,
    heading_rows,
    kernel_link,
    kernel_side,
    overview_columns,
    pair_lines,
    pair_link,
    shape_suffix,
    sides_warning,
    sorted_pairs,
    trace_side,
    unmatched_line,
    wrapped_values,
)
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.verdicts.changes import CHANGE_COLUMNS, KernelPair, ValueChange, value_changes
from tui_probe.verdicts.comparison_verdict import (
    measured_on_both,
    pair_verdict,
    traces_verdict,
    unmeasured_sides,
    unmeasured_text,
    worst_change,
)
from tui_probe.verdicts.finding_changes import finding_changes
from tui_probe.verdicts.kernel_matching import match_shapes, match_traces
from tui_probe.verdicts.wait_changes import WAIT_COLUMNS, compare_waits, wait_records

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.pages.comparison_tables import ComparedSide, PageLink
    from tui_probe.trace.model import Trace
    from tui_probe.verdicts.finding_changes import FindingChange
    from tui_probe.verdicts.kernel_matching import KernelMatch

_WAITS_TITLE: Final = "waits by line, share of warp life"
_NO_KERNEL_TEXT: Final = "to compare kernels with different names, pass TRACE:KERNEL for A and B"


class Comparison(Document):
    """Comparison of two sides pair by pair, the largest change first, and the kernels that only one side has."""

    def __init__(
        self,
        sides: tuple[ComparedSide, ComparedSide],
        pairs: list[KernelPair],
        unmatched: dict[str, list[ViewSource]],
        *,
        compares_traces: bool,
    ) -> None:
        self.title = "A and B"
        self.sides = sides
        self.pairs = sorted(pairs, key=lambda pair: pair.sort_key)
        self.unmatched = unmatched
        """Kernels that only one of two traces has, by its letter."""
        self.of_traces = compares_traces
        self.unmeasured_note = unmeasured_text(
            unmeasured_sides(pairs),
            [letter for letter, kernels in unmatched.items() if kernels],
            traces=compares_traces,
            unread=any(pair.problems for pair in pairs),
        )
        """Say that nothing was measured, and on which side; "" where something was."""
        self._has_chosen_values = False
        """True if values were asked for by name: those are judged, measured or not."""
        self._worst: tuple[int, str] | None = None
        self.content = TableContent("figures", self.title, CHANGE_COLUMNS, RemadeRows(lambda: self.rows))
        self._order = UNSORTED
        self._links: dict[int, PageLink] = {}
        """Links of the lines that were formatted last, by line number."""

    @property
    def rows(self) -> list[ValueChange]:
        """All changes of values of all kernels."""
        return [change for pair in self.pairs for change in pair.changes]

    def keep_only(self, keys: Collection[str]) -> None:
        """Compare these values only. ChoiceError for one that there is not."""
        known_keys = list(dict.fromkeys(change.baseline.key for change in self.rows))
        unknown_keys = [key for key in keys if key not in known_keys]
        if unknown_keys:
            raise ChoiceError(f"no value is named {', '.join(unknown_keys)}; values: {', '.join(known_keys) or 'none'}")
        self._has_chosen_values = True
        pairs = [
            replace(pair, changes=[*map(_judged_change, _changes_of_keys(pair.changes, keys))], findings=())
            for pair in self.pairs
        ]
        self.pairs = sorted(pairs, key=lambda pair: pair.sort_key)

    @property
    def findings(self) -> list[FindingChange]:
        """The findings of all kernels, the largest loss first; none where values were asked for by name."""
        return sorted((change for pair in self.pairs for change in pair.findings), key=lambda change: change.order)

    @property
    def warning(self) -> str:
        """Warning that one program failed and the other did not, with both endings; "" for none."""
        return sides_warning(self.sides)

    @property
    def unjudged_reason(self) -> str:
        """Reason why the changes are not judged: a program that failed, nothing measured, simulated times, different
        kernels; "" where they are.
        """
        if self.warning:
            return self.warning.partition(";")[0]
        if not self._has_chosen_values and not any(map(measured_on_both, self.rows)):
            return self.unmeasured_note or "A and B have no measured value in common"
        if any(pair.is_of_different_kernels for pair in self.pairs):
            return "A and B are different kernels"
        has_time_changes = any(change.baseline.is_time and change.change for change in self.rows)
        if has_time_changes and any(side.simulated for side in self.sides):
            return "times of a simulated GPU come from a model; to judge only counts, use --figures KEY,..."
        return ""

    @property
    def _leading_change(self) -> tuple[ValueChange, str] | None:
        """Return the largest regression; without one the largest change, by which the first kernel is judged."""
        if (worst := worst_change(self.rows)) is not None:
            return worst, f"worst: {worst.text}"
        largest = next((pair.lead for pair in self.pairs if pair.lead is not None and pair.lead.change), None)
        return None if largest is None else (largest, f"the largest change: {largest.text}")

    def worst(self) -> tuple[int, str] | None:
        return self._worst

    @property
    def verdict(self) -> str:
        """Verdict in a sentence."""
        if self.of_traces or len(self.pairs) > 1:
            kernels = len({pair.index for pair in self.pairs})
            unmatched = len(self.unmatched["A"]), len(self.unmatched["B"])
            return traces_verdict(self.pairs, kernels, *unmatched, unmeasured=self.unmeasured_note)
        return pair_verdict(self.pairs[0], self.unmeasured_note)

    @property
    def notes(self) -> list[str]:
        """Differences between both sides that make the comparison unfair."""
        problems = self._problem_notes
        if self.sides[0] == self.sides[1]:
            return ["A and B are the same", *problems]
        conditions_a, conditions_b = (side.conditions for side in self.sides)
        model = ["a simulated GPU has no times: its cycles come from a model, so speed and cycles are not judged"]
        return [
            *(model if any(side.simulated for side in self.sides) else []),
            *self._resizing_notes,
            *problems,
            *(
                f"the {name} differs: A {conditions_a[name]}, B {conditions_b[name]}"
                for name in conditions_a
                if conditions_a[name] != conditions_b.get(name, conditions_a[name])
            ),
        ]

    @property
    def _problem_notes(self) -> list[str]:
        """Return the note on results without values, with the reason of one of them."""
        problems = list(dict.fromkeys(printable(problem) for pair in self.pairs for problem in pair.problems))
        return [f"{units.counted(len(problems), 'problem')} with results: {problems[0]}"] if problems else []

    @property
    def _resizing_notes(self) -> list[str]:
        """Return the note on kernels that may do another amount of work; for a single one it is in the verdict."""
        sizes = ("blocks", "threads")
        resized_count = sum(
            any(change.baseline.key in sizes and change.change for change in pair.changes) for pair in self.pairs
        )
        if not resized_count or len(self.pairs) < 2:
            return []
        return [
            f"{resized_count} of {len(self.pairs)} kernels differ in grid or block size: totals grow with the work,"
            " shares do not"
        ]

    def lines(self, width: int) -> Sequence[Line]:
        """Return verdict, both sides, one table per kernel, and kernels that cannot be compared."""
        self._links.clear()
        lines = self._head_lines(width)
        self._append_findings(lines, width)
        shorten_name = shorten_apart(pair.kernel for pair in self.pairs)
        pairs = sorted_pairs(self.pairs, self._order)
        if len(pairs) > 1 and any(pair.lead is not None for pair in pairs):  # else it is empty
            self._add_links(len(lines) + 2, map(pair_link, pairs))
            columns = overview_columns(shorten_name)
            lines += [(), *comparison_table(columns, pairs, width, lambda pair: pair.verdict, self._order)]
        self._append_pairs(lines, pairs, shorten_name, width)
        self._append_unmatched(lines, width)
        return lines

    def _head_lines(self, width: int) -> list[Line]:
        """Return warning, verdict, sides and notes."""
        lines: list[Line] = [((f" {text}", "warn"),) for text in wrap(self.warning, width - 2) if text]
        lines += [((f" {text}", "title"),) for text in wrapped_values(self.verdict, width - 2)]
        lines.append(())
        for letter, side in zip("AB", self.sides, strict=True):
            if side.source is not None:
                self._links[len(lines)] = kernel_link(letter, side.source)
            lines.append(((f" {letter}  ", "head"), (side.text(width - 5), "")))
        return lines + [((f" {text}", "warn"),) for note in self.notes for text in wrap(note, width - 2)]

    def _append_findings(self, lines: list[Line], width: int) -> None:
        rows = list(finding_rows(self.findings, self.pairs, width))
        if rows:
            self._add_links(len(lines) + 2, (link for _, link in rows))
            lines += [(), ((" findings", "head"),), *(line for line, _ in rows)]

    def _append_pairs(
        self, lines: list[Line], pairs: Sequence[KernelPair], shorten_name: Callable[[str, int], str], width: int
    ) -> None:
        """Add the changed values of each kernel, and its waits behind all of these."""
        change_and_text, self._worst = self._leading_change, None
        for pair in pairs:
            values = changed_values(pair, self._order)
            matching_rows = (
                row for row, change in enumerate(values) if change_and_text and change is change_and_text[0]
            )
            if change_and_text and (row := next(matching_rows, None)) is not None:
                self._worst = len(lines) + heading_rows(pair) + row, change_and_text[1]
            self._add_links(len(lines) + heading_rows(pair), (change_link(pair, value) for value in values))
            lines += pair_lines(pair, self._names, width, shorten_name, self._order)
        for pair in pairs:
            lines += wait_lines(pair, width)

    def _append_unmatched(self, lines: list[Line], width: int) -> None:
        names = dict(zip("AB", self._names, strict=True))
        for letter, kernels in self.unmatched.items():
            if kernels:
                self._add_links(len(lines) + 2, (kernel_link(letter, source) for source in kernels))
                lines += [(), ((f" only in {names[letter]}", "head"),)]
                lines += [unmatched_line(source.kernel, width) for source in kernels]
        if self.of_traces and any(self.unmatched.values()):
            lines += [(), *(((f" {text}", "dim"),) for text in wrap(_NO_KERNEL_TEXT, width - 2))]

    @property
    def _names(self) -> tuple[str, str]:
        """Both sides as headings name them: by letter and, if they differ, by the names of their runs."""
        runs = [side.run_name for side in self.sides]
        if not all(runs) or runs[0] == runs[1]:
            return "A", "B"
        return f"A ({runs[0]})", f"B ({runs[1]})"

    def _add_links(self, first_line: int, links: Iterable[PageLink | None]) -> None:
        """Link the lines from ``first_line`` on to these pages."""
        self._links |= {number: lead for number, lead in enumerate(links, first_line) if lead is not None}

    def link_at(self, number: int) -> PageLink | None:
        """Return the target of a line; None for nowhere."""
        return self._links.get(number)

    def sortable(self) -> Mapping[str, str]:
        several = len(self.pairs) > 1
        return {key: title for key, title in SORT_TITLES.items() if several or key != "kernel"}

    @property
    def sorted_column(self) -> str:
        return self._order.key

    def sort_by(self, key: str) -> None:
        """Sort the kernels, and the values of each."""
        self._order = self._order.choose(key, is_descending=key not in ("kernel", "figure"))

    def choices(self) -> Mapping[str, Any]:
        return {"order": self._order}

    def choose(self, choices: Mapping[str, Any]) -> None:
        self._order = choices["order"]

    def target_view(self) -> str:
        return "open page" if self._links else ""

    def no_target_reason(self, number: int, width: int) -> str:
        del number, width
        return "this line has no metric; press Enter on a table row to open its page" if self._links else ""

    def gutter(self, width: int) -> int:
        """Return the whole width: a cursor marks the line."""
        return width if self._links else 0

    def begins(self, width: int) -> int:
        """Return the first row of a table."""
        del width
        return next((number for number in self._links if number > len(self.sides) + 2), 0)

    def record(self) -> dict[str, Any]:
        """Return verdict, both sides, the kernels and every value, as data."""
        side_a, side_b = self.sides
        return {
            "before": side_a.name,
            "after": side_b.name,
            "endings": {"before": side_a.ending, "after": side_b.ending},
            "warning": self.warning or None,
            "verdict": self.verdict,
            "notes": self.notes,
            "kernels": [as_record(OVERVIEW_COLUMNS, pair) for pair in self.pairs],
            "only_before": [source.kernel.demangled for source in self.unmatched["A"]],
            "only_after": [source.kernel.demangled for source in self.unmatched["B"]],
            "figures": [*self.content.records()],
            "findings": [change.record() for change in self.findings],
            "waits": wait_records(change for pair in self.pairs if pair.waits for change in pair.waits.changes),
        }

    def cells(self) -> Iterator[Sequence[object]]:
        """Yield a row per value; each has the warning, since a row may be read without the others."""
        warning: Column[ValueChange] = Column("warning", lambda _: self.warning or None)
        flat_columns = [replace(column, nested=False) for column in CHANGE_COLUMNS]
        return replace(self.content, columns=[*flat_columns, warning]).cells()

    def markdown(self) -> Iterator[str]:
        """Yield the verdict, and one table per kernel."""
        if self.warning:
            yield f"**{self.warning}**"
            yield ""
        yield f"**{self.verdict}**"
        yield ""
        for letter, side in zip("AB", self.sides, strict=True):
            yield f"{letter}: `{side.name}`  "
        for note in self.notes:
            yield f"{note}  "
        if self.findings:
            yield ""
        for change in self.findings:
            yield f"- {change.outcome}: `{change.text}`"
        for pair in self.pairs:
            yield ""
            if pair.name:
                yield f"**`{pair.name}`**"
                yield ""
            yield from as_markdown(CHANGE_COLUMNS, pair.changes)
            if pair.waits and pair.waits.changes:
                yield from ("", f"{_WAITS_TITLE}:", "", *as_markdown(WAIT_COLUMNS, pair.waits.changes))
            yield from (f"- {note}" for note in (pair.waits.notes if pair.waits else ()))
        for letter, kernels in self.unmatched.items():
            yield ""
            for source in kernels:
                yield f"- only in {letter}: `{source.kernel.demangled}`"


def wait_lines(pair: KernelPair, width: int) -> Iterator[Line]:
    """Yield the table of waits by line, and what could not be compared; nothing if no side measured waits."""
    waits = pair.waits
    if waits is None or not (waits.changes or waits.notes):
        return
    yield ()
    yield ((f" {_WAITS_TITLE}{f', {pair.name}' if pair.name else ''}", "head"),)
    if waits.changes:
        names, rule, *rows = table(WAIT_COLUMNS, waits.changes, width - 2)
        yield ((f"  {names}", "head"),)
        yield ((f"  {rule}", "rule"),)
        yield from (((f"  {row}", ""),) for row in rows)
    yield from (((f"  {part}", "dim"),) for note in waits.notes for part in wrap(note, width - 2))


def _changes_of_keys(changes: Iterable[ValueChange], keys: Collection[str]) -> Iterator[ValueChange]:
    return (change for change in changes if change.baseline.key in keys)


def _judged_change(change: ValueChange) -> ValueChange:
    """Return the change of a value that was asked for by name, which is judged even if it is an amount of work."""
    baseline, candidate = (replace(side, of_work=False) for side in (change.baseline, change.candidate))
    return replace(change, baseline=baseline, candidate=candidate)


def compare_sources(baseline: ViewSource, candidate: ViewSource, progress: Progress) -> Comparison:
    """Compare two kernels, or two launches."""
    matches = match_shapes(baseline, candidate)
    pairs = [
        _kernel_pair(match, _part_of_progress(progress, index, len(matches)), only_pair=len(matches) == 1)
        for index, match in enumerate(matches)
    ]
    return Comparison((kernel_side(baseline), kernel_side(candidate)), pairs, {"A": [], "B": []}, compares_traces=False)


def compare_traces(baseline: Trace, candidate: Trace, progress: Progress) -> Comparison:
    """Compare the kernels that both traces have, by name, grid and block, in any order."""
    matched_kernels, only_baseline, only_candidate = match_traces(baseline, candidate)
    matches = [match for named in matched_kernels for match in match_shapes(named.baseline, named.candidate)]
    pairs = [
        _kernel_pair(match, _part_of_progress(progress, index, len(matches))) for index, match in enumerate(matches)
    ]
    unmatched = {
        "A": [ViewSource(baseline, kernel) for kernel in only_baseline],
        "B": [ViewSource(candidate, kernel) for kernel in only_candidate],
    }
    return Comparison((trace_side(baseline), trace_side(candidate)), pairs, unmatched, compares_traces=True)


def _kernel_pair(match: KernelMatch, progress: Progress, *, only_pair: bool = False) -> KernelPair:
    kernel = match.baseline.kernel
    title = "" if only_pair else f"#{kernel.index} {kernel.demangled}{shape_suffix(match.grid, match.block)}"
    kernel_name = "" if only_pair else kernel.demangled
    problems: dict[str, None] = {}
    waits = compare_waits(match, kernel_name)
    changes = value_changes(match, progress, problems, kernel_name)
    if waits.values:
        total = ValueChange(*waits.values, kernel_name, match.grid, match.block)
        changes = sorted([*changes, total], key=lambda change: change.sort_key)
    findings = finding_changes(match, kernel_name)
    return KernelPair(
        title,
        kernel.index,
        kernel.demangled,
        match.grid,
        match.block,
        changes,
        match.shape_texts,
        tuple(problems),
        match.names_differ,
        (match.baseline, match.candidate),
        findings,
        waits,
    )


def _part_of_progress(progress: Progress, index: int, count: int) -> Progress:
    return lambda share: progress((index + share) / count)
