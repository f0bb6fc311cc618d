"""Two kernels, two launches or two traces against each other: what it comes to, and every figure of both."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.formats import as_markdown, as_record
from tui_probe.draw.shorten import cut_middle, names_apart, shorten
from tui_probe.draw.spans import pad, wrap
from tui_probe.draw.spans import width as cells_of
from tui_probe.draw.table import Column, cell, fitted_cell, in_data, in_tables, layout, safe
from tui_probe.draw.view import Document
from tui_probe.errors import ChoiceError
from tui_probe.pages.changes import FIGURE_COLUMNS, Change, Pair, changes
from tui_probe.pages.comparison_leads import lead_of_change, lead_of_kernel, lead_of_pair
from tui_probe.pages.head import ending_of
from tui_probe.pages.matching import matched, matches
from tui_probe.pages.unmeasured import measured_on_both, unmeasured, unmeasured_words
from tui_probe.pages.verdict import of_pair, of_traces
from tui_probe.probekit.kind import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from typing import TypeVar

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.pages.comparison_leads import Lead
    from tui_probe.pages.figures import Figure
    from tui_probe.pages.matching import Match
    from tui_probe.trace.model import Kernel, Trace
    from tui_probe.trace.shapes import Dim3

    Row = TypeVar("Row")

_GAP: Final = 2
_NARROWEST: Final = 12
"""Cells that a name has at least."""
_TIED: Final = "\u00a0"
_ROLES: Final = {"better": "good", "worse": "warn", "mixed": "warn"}
_NO_KERNEL: Final = "to compare kernels of other names, name one on both sides: TRACE:KERNEL"


@dataclass(frozen=True, slots=True)
class Side:
    """What is compared; ``about`` is what has to be the same on both sides for a fair comparison."""

    trace: str
    about: dict[str, str]
    kernel: str = ""
    """With its index; "" where a whole trace is compared."""
    launch: str = ""
    simulated: bool = False
    ending: str = ""
    """How its program ended, in words."""
    source: Source | None = field(default=None, repr=False, compare=False)
    """Its kernel or launch; None where a whole trace is compared."""
    failed: bool = False
    """Whether it ended with a status other than 0, by a signal, or nobody knows how: broken off."""

    @property
    def name(self) -> str:
        """All of it in words."""
        return self.kernel + self._rest(self.trace)

    def shown(self, cells: int) -> str:
        """Its name in so many cells: what tells kernels and traces apart stays."""
        index, _, name = self.kernel.partition(" ")
        room = max(cells // 2, cells - cells_of(self._rest(self.trace))) - cells_of(index) - 1
        kernel = f"{index} {shorten(name, max(room, 1))}" if name else ""
        left = cells - cells_of(kernel) - cells_of(self._rest(""))
        return cut_middle(kernel + self._rest(cut_middle(self.trace, max(left, 8))), cells)

    def _rest(self, trace: str) -> str:
        of = f"{self.launch} of {trace}" if self.kernel else trace
        return f"{of}, simulated" if self.simulated else of


def _lead(pair: Pair, text: Callable[[Change], str]) -> str:
    return "" if pair.lead is None else text(pair.lead)


OVERVIEW_COLUMNS: Final[tuple[Column[Pair], ...]] = (
    Column("kernel", None, "kernel", lambda p: p.kernel, False, narrow=14, shorten=shorten),
    Column("grid", None, "grid", lambda p: p.launched[0], rank=2),
    Column("block", None, "block", lambda p: p.launched[1], rank=3),
    Column("figure", None, "figure", lambda p: _lead(p, lambda c: c.before.label), False, narrow=12),
    Column("before", None, "A", lambda p: _lead(p, lambda c: c.before.text), rank=1),
    Column("after", None, "B", lambda p: _lead(p, lambda c: c.after.text), rank=1),
    Column("change", None, "change", lambda p: _lead(p, lambda c: c.change_text), rank=4),
    Column("share", None, "", lambda p: _lead(p, lambda c: c.share_text)),
    Column("verdict", None, "", lambda p: p.verdict, False),
)
"""One line per kernel: the figure that it is judged by."""


class Comparison(Document):
    """What was compared, pair by pair, and what only one side has; the largest change comes first."""

    def __init__(
        self, sides: tuple[Side, Side], pairs: list[Pair], alone: dict[str, list[Source]], *, traces: bool
    ) -> None:
        self.title = "A and B"
        self.sides = sides
        self.pairs = sorted(pairs, key=lambda pair: pair.place)
        self.alone = alone
        """Kernels that only one of two traces has, by its letter."""
        self.traces = traces
        self.unmeasured = unmeasured_words(unmeasured(pairs), [each for each in alone if alone[each]], traces=traces)
        """That nothing was measured, and on which side; "" where something was."""
        self._chosen = False
        """Whether figures were asked for by name: those are judged, measured or not."""
        self._worst: tuple[int, str] | None = None
        self._leads: dict[int, Lead] = {}
        """Of the lines that were made last, by their numbers."""

    @property
    def rows(self) -> list[Change]:
        """Every figure of every kernel."""
        return [change for pair in self.pairs for change in pair.changes]

    def keep(self, keys: Collection[str]) -> None:
        """Compare these figures alone. ChoiceError for one that there is not."""
        known = list(dict.fromkeys(change.before.key for change in self.rows))
        unknown = [key for key in keys if key not in known]
        if unknown:
            raise ChoiceError(f"no figure is {', '.join(unknown)}; there are {', '.join(known) or 'none'}")
        self._chosen = True
        pairs = [
            replace(pair, changes=[change for change in pair.changes if change.before.key in keys])
            for pair in self.pairs
        ]
        self.pairs = sorted(pairs, key=lambda pair: pair.place)

    def worse(self, limit: float) -> list[Change]:
        """The figures of the program that are worse by more than ``limit``, a share; from 0 anything is more."""
        found = (change for change in self.rows if change.verdict == "worse" and not change.before.of_probe)
        return [change for change in found if change.share is None or abs(change.share) > limit]

    @property
    def warning(self) -> str:
        """That one program failed where the other did not, with both endings; "" else."""
        return _warning(self.sides)

    @property
    def not_judged(self) -> str:
        """Why what changed says nothing of better or worse: a program that failed, nothing measured, simulated times,
        different kernels; "" where it does.
        """
        if self.warning:
            return self.warning.partition(";")[0]
        if not self._chosen and not any(map(measured_on_both, self.rows)):
            return self.unmeasured or "no figure was measured on both sides"
        if any(pair.different for pair in self.pairs):
            return "they are different kernels"
        timed = any(change.before.is_time and change.change for change in self.rows)
        if timed and any(side.simulated for side in self.sides):
            return "times of a simulated GPU are those of a model; --figures KEY,... judges counts alone"
        return ""

    @property
    def worst_change(self) -> Change | None:
        """The figure of the program that got worse by most; None where none did."""
        return max((each for each in self.worse(0) if each.counts), key=lambda each: each.size, default=None)

    @property
    def _to_see_first(self) -> tuple[Change, str] | None:
        """What got worse by most; where nothing did the largest change, by which the first kernel is judged."""
        if self.worst_change is not None:
            return self.worst_change, f"worst: {self.worst_change.told}"
        largest = next((pair.lead for pair in self.pairs if pair.lead is not None and pair.lead.change), None)
        return None if largest is None else (largest, f"the largest change: {largest.told}")

    def worst(self) -> tuple[int, str] | None:
        return self._worst

    @property
    def verdict(self) -> str:
        """What it comes to, in a sentence."""
        if self.traces or len(self.pairs) > 1:
            kernels = len({pair.index for pair in self.pairs})
            alone = len(self.alone["A"]), len(self.alone["B"])
            return of_traces(self.pairs, kernels, *alone, unmeasured=self.unmeasured)
        return of_pair(self.pairs[0], self.unmeasured)

    @property
    def notes(self) -> list[str]:
        """What is not the same on both sides and should be for a fair comparison."""
        problems = self._problems
        if self.sides[0] == self.sides[1]:
            return ["A and B are the same", *problems]
        before, after = (side.about for side in self.sides)
        model = ["cycles of a simulated GPU are no time: no verdict on speed, fewer are not called better"]
        return [
            *(model if any(side.simulated for side in self.sides) else []),
            *self._resized,
            *problems,
            *(
                f"the {name} differs: {before[name]}, and {after[name]}"
                for name in before
                if before[name] != after.get(name, before[name])
            ),
        ]

    @property
    def _problems(self) -> list[str]:
        """How many results tell nothing, and why one of them does not."""
        found = list(dict.fromkeys(safe(problem) for pair in self.pairs for problem in pair.problems))
        return [f"{units.counted(len(found), 'problem')} with results: {found[0]}"] if found else []

    @property
    def _resized(self) -> list[str]:
        """How many kernels do another amount of work, perhaps; of one the verdict says it."""
        sizes = ("blocks", "threads")
        other = sum(any(each.before.key in sizes and each.change for each in pair.changes) for pair in self.pairs)
        if not other or len(self.pairs) < 2:
            return []
        return [
            f"{other} of {len(self.pairs)} have different grids or blocks: totals grow with the work, shares do not"
        ]

    def lines(self, width: int) -> Sequence[Line]:
        """What it comes to, what is compared, one table per kernel, what cannot be compared."""
        lines: list[Line] = [((f" {words}", "warn"),) for words in wrap(self.warning, width - 2) if words]
        lines += [((f" {words}", "title"),) for words in _wrapped(self.verdict, width - 2)]
        lines.append(())
        self._leads.clear()
        for letter, side in zip("AB", self.sides, strict=True):
            if side.source is not None:
                self._leads[len(lines)] = lead_of_kernel(letter, side.source)
            lines.append(((f" {letter}  ", "head"), (side.shown(width - 5), "")))
        lines += [((f" {words}", "warn"),) for note in self.notes for words in wrap(note, width - 2)]
        cut = names_apart(pair.kernel for pair in self.pairs)
        if len(self.pairs) > 1 and any(pair.lead is not None for pair in self.pairs):  # else it is empty
            self._lead(len(lines) + 2, map(lead_of_pair, self.pairs))
            lines += [(), *_table(_with_names(cut), self.pairs, width, lambda pair: pair.verdict)]
        first, self._worst = self._to_see_first, None
        for pair in self.pairs:
            rows = (row for row, change in enumerate(_differing(pair)) if first and change is first[0])
            if first and (row := next(rows, None)) is not None:
                self._worst = len(lines) + _above_rows(pair) + row, first[1]
            self._lead(len(lines) + _above_rows(pair), (lead_of_change(pair, each) for each in _differing(pair)))
            lines += _details(pair, width, cut)
        for letter, kernels in self.alone.items():
            if kernels:
                self._lead(len(lines) + 2, (lead_of_kernel(letter, each) for each in kernels))
                lines += [(), ((f" only in {letter}", "head"),)]
                lines += [_alone(each.kernel, width) for each in kernels]
        if self.traces and any(self.alone.values()):
            lines += [(), *(((f" {words}", "dim"),) for words in wrap(_NO_KERNEL, width - 2))]
        return lines

    def _lead(self, first: int, leads: Iterable[Lead | None]) -> None:
        """The lines from ``first`` on lead there."""
        self._leads |= {number: lead for number, lead in enumerate(leads, first) if lead is not None}

    def lead(self, number: int) -> Lead | None:
        """Where a line leads; None for nowhere."""
        return self._leads.get(number)

    def leads_to(self) -> str:
        return "its page" if self._leads else ""

    def nowhere(self, number: int, width: int) -> str:
        del number, width
        return "this line is of no figure: Enter on a row of a table leads to its page" if self._leads else ""

    def gutter(self, width: int) -> int:
        """The whole line."""
        return width if self._leads else 0

    def begins(self, width: int) -> int:
        """At the first row of a table."""
        del width
        return next((number for number in self._leads if number > len(self.sides) + 2), 0)

    def record(self) -> dict[str, Any]:
        """What it comes to, both sides, the kernels and every figure."""
        before, after = self.sides
        return {
            "before": before.name,
            "after": after.name,
            "endings": {"before": before.ending, "after": after.ending},
            "warning": self.warning or None,
            "verdict": self.verdict,
            "notes": self.notes,
            "kernels": [pair.record() for pair in self.pairs],
            "only_before": [each.kernel.demangled for each in self.alone["A"]],
            "only_after": [each.kernel.demangled for each in self.alone["B"]],
            "figures": [as_record(FIGURE_COLUMNS, row) for row in self.rows],
        }

    def cells(self) -> Iterator[Sequence[object]]:
        """One row per figure; each with the warning, since a row may be read without the others."""
        data = [column for column in in_data(FIGURE_COLUMNS) if column.value is not None]
        yield [*(column.key for column in data), "warning"]
        for row in self.rows:
            yield [*(column.value(row) for column in data if column.value is not None), self.warning or None]

    def markdown(self) -> Iterator[str]:
        """What it comes to, and one table per kernel."""
        if self.warning:
            yield f"**{self.warning}**"
            yield ""
        yield f"**{self.verdict}**"
        yield ""
        for letter, side in zip("AB", self.sides, strict=True):
            yield f"{letter}: `{side.name}`  "
        for note in self.notes:
            yield f"{note}  "
        for pair in self.pairs:
            yield ""
            if pair.name:
                yield f"**`{pair.name}`**"
                yield ""
            yield from as_markdown(FIGURE_COLUMNS, pair.changes)
        for letter, kernels in self.alone.items():
            yield ""
            for each in kernels:
                yield f"- only in {letter}: `{each.kernel.demangled}`"


def _differing(pair: Pair) -> list[Change]:
    """The rows of the table of a pair."""
    return [each for each in pair.changes if each.change]


def _above_rows(pair: Pair) -> int:
    """The lines above those rows: a blank one, the name if there is one, headings."""
    return 3 if pair.name else 2


def _with_names(cut: Callable[[str, int], str]) -> Sequence[Column[Pair]]:
    """The columns of the table of kernels, with names shortened so."""
    return [replace(each, shorten=cut) if each.key == "kernel" else each for each in OVERVIEW_COLUMNS]


def _heading(pair: Pair, cells: int, cut: Callable[[str, int], str]) -> str:
    """Index, name, grid and block in so many cells: only the name is shortened."""
    index, shape = f"#{pair.index} ", ", grid {}, block {}".format(*pair.launched)
    room = cells - cells_of(index) - cells_of(shape)
    return cut_middle(index + cut(pair.kernel, max(room, _NARROWEST)) + shape, cells)


def _details(pair: Pair, width: int, cut: Callable[[str, int], str]) -> Iterator[Line]:
    """The figures that changed, in a table; those that did not, or that one side alone has, in sentences."""
    differ = _differing(pair)
    same = [each.before for each in pair.changes if each.change == 0]
    alone = [each for each in pair.changes if each.change is None]
    before = [each.before for each in alone if each.before.value is not None]
    after = [each.after for each in alone if each.after.value is not None]
    if pair.name and not (differ or before or after):
        return
    yield ()
    if pair.name:
        yield ((f" {_heading(pair, width - 2, cut)}", "title"),)
    spread = any(each.before.spread is not None or each.after.spread is not None for each in differ)
    shown = [column for column in FIGURE_COLUMNS if spread or column.key != "spread"]
    yield from _table(shown, differ, width, lambda change: change.verdict) if differ else ()
    for head, figures in (("same", same), ("A alone", before), ("B alone", after)):
        yield from _listed(head, figures, width)


def _listed(head: str, figures: Sequence[Figure], width: int) -> Iterator[Line]:
    """Figures and their values one after another."""
    words = f"{_TIED}· ".join(f"{each.label} {each.text}".replace(" ", _TIED) for each in figures)
    for number, line in enumerate(_wrapped(words, width - len(head) - 4) if figures else ()):
        yield ((" " * (len(head) + 2) if number else f" {head} ", "head"), (f" {line}", "dim"))


def _wrapped(text: str, cells: int) -> list[str]:
    """Lines, broken neither within a number nor before its unit."""
    tied = re.sub(r"(?<=\d) (?=[\d%])", _TIED, text)
    return [line.replace(_TIED, " ") for line in wrap(tied, cells)]


def _table(
    columns: Sequence[Column[Row]], rows: Sequence[Row], cells: int, judge: Callable[[Row], str]
) -> Iterator[Line]:
    shown = in_tables(columns)
    natural = [max(cells_of(column.title), *(cells_of(cell(column, row)) for row in rows)) for column in shown]
    fitted = layout(shown, natural, cells - 1)
    gap = " " * _GAP
    yield ((" " + gap.join(pad(column.title, size, right=column.right) for column, size in fitted), "head"),)
    for row in rows:
        role = _ROLES.get(judge(row), "")
        roles = {"figure": "dim", "change": role or "dim", "share": role or "dim", "verdict": role}
        spans = [(" ", "")]
        for column, size in fitted:
            spans += [(fitted_cell(column, row, size), roles.get(column.key, "")), (gap, "")]
        yield tuple(spans)


def compare_sources(one: Source, other: Source, progress: Progress) -> Comparison:
    """Two kernels, or two launches."""
    found = matches(one, other)
    pairs = [
        _pair(match, _part(progress, place, len(found)), alone=len(found) == 1) for place, match in enumerate(found)
    ]
    return Comparison((_side(one), _side(other)), pairs, {"A": [], "B": []}, traces=False)


def compare_traces(one: Trace, other: Trace, progress: Progress) -> Comparison:
    """The kernels that both have, by name and then by grid and block, whatever their order."""
    kernels, before, after = matched(one, other)
    found = [match for whole in kernels for match in matches(whole.one, whole.other)]
    pairs = [_pair(match, _part(progress, place, len(found))) for place, match in enumerate(found)]
    alone = {"A": [Source(one, each) for each in before], "B": [Source(other, each) for each in after]}
    return Comparison((_trace_side(one), _trace_side(other)), pairs, alone, traces=True)


def _pair(match: Match, progress: Progress, *, alone: bool = False) -> Pair:
    kernel = match.one.kernel
    name = "" if alone else f"#{kernel.index} {kernel.demangled}{_shape_words(match.grid, match.block)}"
    named = "" if alone else kernel.demangled
    problems: dict[str, None] = {}
    found = changes(match, progress, problems, named)
    return Pair(
        name,
        kernel.index,
        kernel.demangled,
        match.grid,
        match.block,
        found,
        match.launched_words,
        tuple(problems),
        match.different,
        (match.one, match.other),
    )


def _shape_words(grid: Dim3 | None, block: Dim3 | None) -> str:
    return "" if grid is None or block is None else f", grid {units.extent(grid)}, block {units.extent(block)}"


def _alone(kernel: Kernel, cells: int) -> Line:
    shape = _shape_words(kernel.grid, kernel.block)
    return ((f"   {shorten(kernel.demangled, max(cells - 4 - cells_of(shape), _NARROWEST))}", ""), (shape, "dim"))


def warning_of(one: Trace, other: Trace) -> str:
    """``Comparison.warning`` of two traces, without their figures."""
    return _warning((_trace_side(one), _trace_side(other)))


def _warning(sides: tuple[Side, Side]) -> str:
    """What a program that failed did not do any more looks like less of it."""
    before, after = sides
    if before.ending == after.ending or not (before.failed or after.failed):
        return ""
    failed = [f"{letter}'s program" for letter, side in zip("AB", sides, strict=True) if side.failed]
    return f"{' and '.join(failed)} failed: A {before.ending}, B {after.ending}; what follows may be of less work"


def _side(source: Source) -> Side:
    launch = "" if source.launch is None else f", launch {source.launch.number}"
    kernel = f"#{source.kernel.index} {source.kernel.demangled}"
    return replace(_trace_side(source.trace), kernel=kernel, launch=launch, source=source)


def _trace_side(trace: Trace) -> Side:
    state = trace.state
    failed = bool(state.exit_status) or state.signal is not None or trace.broke_off
    return Side(str(trace.directory), _about(trace), simulated=state.simulated, ending=ending_of(trace), failed=failed)


def _about(trace: Trace) -> dict[str, str]:
    device, run = trace.state.device, trace.run_info
    about = {} if device is None else {"device": device.name}
    return about if run is None or run.probe is None else {**about, "probe": run.probe}


def _part(progress: Progress, place: int, count: int) -> Progress:
    return lambda share: progress((place + share) / count)
