"""Tables of a comparison: its two sides, changed values, and the pages that rows link to."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.shorten import cut_middle, shorten
from tui_probe.draw.spans import hang_line, pad, wrap
from tui_probe.draw.spans import width as cells_of
from tui_probe.draw.table import Column, cell, fitted_cell, in_tables, layout
from tui_probe.draw.table_content import UNSORTED, ColumnOrder, heading
from tui_probe.errors import ProbeError
from tui_probe.pages.views import kind_of, names
from tui_probe.verdicts.changes import CHANGE_COLUMNS, KernelPair, ValueChange
from tui_probe.verdicts.run_outcome import exit_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, TypeVar

    from tui_probe.draw.spans import Line
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.trace.launch_shape import Dim3
    from tui_probe.trace.model import KernelFacts, Trace
    from tui_probe.verdicts.finding_changes import FindingChange
    from tui_probe.verdicts.kernel_values import KernelValue

_SUMMARY_PAGES: Final = ("summary",)
_GAP: Final = 2
_MIN_NAME_WIDTH: Final = 12
"""Cells that a name has at least."""
_NO_BREAK_SPACE: Final = "\u00a0"
_OUTCOME_CELLS: Final = 11
_ROLES: Final = {"better": "good", "worse": "warn", "mixed": "warn"}
SORT_TITLES: Final = {
    "kernel": "kernel", "figure": "metric", "before": "A", "after": "B", "change": "change", "share": "change in %",
}  # fmt: skip
"""Titles of the columns by which both tables can be sorted, by key."""
_SORT_VALUES: Final[Mapping[str, Callable[[ValueChange], Any]]] = {
    column.key: column.value for column in CHANGE_COLUMNS if column.value is not None and column.key in SORT_TITLES
} | {"figure": lambda change: change.before.label}


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """One side of a comparison; ``conditions`` is what has to be the same on both for a fair comparison."""

    trace: str
    conditions: dict[str, str]
    kernel: str = ""
    """Kernel with its index; "" where a whole trace is compared."""
    launch: str = ""
    simulated: bool = False
    ending: str = ""
    """End of its program, in words."""
    source: ViewSource | None = field(default=None, repr=False, compare=False)
    """Kernel or launch; None where a whole trace is compared."""
    run_name: str = ""
    """Name of the run, "" without one."""
    has_failed: bool = False
    """True if it ended with a status other than 0, by a signal, or for an unknown reason: broken off."""

    @property
    def name(self) -> str:
        """All of it in words."""
        return self.kernel + self._origin_text(self._trace_name)

    @property
    def _trace_name(self) -> str:
        """The trace, with the name of its run if it has one."""
        return f"{self.run_name}, {self.trace}" if self.run_name else self.trace

    def text(self, cells: int) -> str:
        """Return its name in that many cells, with the parts that distinguish kernels and traces."""
        index, _, name = self.kernel.partition(" ")
        name_cells = max(cells // 2, cells - cells_of(self._origin_text(self._trace_name))) - cells_of(index) - 1
        kernel = f"{index} {shorten(name, max(name_cells, 1))}" if name else ""
        place_cells = cells - cells_of(kernel) - cells_of(self._origin_text(""))
        return cut_middle(kernel + self._origin_text(cut_middle(self._trace_name, max(place_cells, 8))), cells)

    def _origin_text(self, trace: str) -> str:
        origin = f"{self.launch} of {trace}" if self.kernel else trace
        return f"{origin}, simulated" if self.simulated else origin


def kernel_side(source: ViewSource) -> ComparedSide:
    """Return the side of a kernel or launch."""
    launch = "" if source.launch is None else f", launch {source.launch.number}"
    kernel = f"#{source.kernel.index} {source.kernel.demangled}"
    return replace(trace_side(source.trace), kernel=kernel, launch=launch, source=source)


def trace_side(trace: Trace) -> ComparedSide:
    """Return the side of a whole trace."""
    state = trace.state
    has_failed = bool(state.exit_status) or state.signal is not None or trace.broke_off
    return ComparedSide(
        str(trace.directory),
        _conditions(trace),
        simulated=state.simulated,
        ending=exit_text(trace),
        run_name=(trace.run_info and trace.run_info.name) or "",
        has_failed=has_failed,
    )


def _conditions(trace: Trace) -> dict[str, str]:
    device, run_info = trace.state.device, trace.run_info
    conditions = {} if device is None else {"device": device.name}
    return conditions if run_info is None or run_info.probe is None else {**conditions, "probe": run_info.probe}


def traces_warning(baseline: Trace, candidate: Trace) -> str:
    """Return the warning about two traces; "" for none."""
    return sides_warning((trace_side(baseline), trace_side(candidate)))


def sides_warning(sides: tuple[ComparedSide, ComparedSide]) -> str:
    """Return the warning that one program failed and the other did not: omitted work looks like an improvement. ""
    for none.
    """
    baseline, candidate = sides
    if baseline.ending == candidate.ending or not (baseline.has_failed or candidate.has_failed):
        return ""
    failed_programs = [f"{letter}'s program" for letter, side in zip("AB", sides, strict=True) if side.has_failed]
    endings = f"A {baseline.ending}, B {candidate.ending}"
    return f"{' and '.join(failed_programs)} failed: {endings}; the results below may cover less work"


@dataclass(frozen=True, slots=True)
class PageLink:
    """Link to the first of ``pages`` that has something to show of the kernel or launch of side ``A`` or ``B``."""

    letter: str
    source: ViewSource
    pages: Sequence[str]
    subject: str
    """Subject of the line, in a few words."""


def change_link(pair: KernelPair, change: ValueChange) -> PageLink | None:
    """Return the link of a row: to the second side, which is the result of the change."""
    return pair.sides and PageLink("B", pair.sides[1], change.baseline.pages, change.baseline.label)


def pair_link(pair: KernelPair) -> PageLink | None:
    """Return the link of a kernel's line: to what it is judged by, else to its summary."""
    if pair.lead is not None:
        return change_link(pair, pair.lead)
    return pair.sides and PageLink("B", pair.sides[1], _SUMMARY_PAGES, "kernel")


def kernel_link(letter: str, source: ViewSource) -> PageLink:
    """Return the link of a line that names a kernel of one side: to its summary."""
    return PageLink(letter, source, _SUMMARY_PAGES, "kernel")


def linked_page(link: PageLink) -> tuple[str, str]:
    """Return the page, and ""; where none of them has anything to show "", and why. Reads little."""
    reason = ""
    for name in link.pages:
        if name in names():
            missing_reason = _missing_reason(name, link.source)
            if missing_reason is None:
                return name, ""
            reason = reason or missing_reason
    return "", reason or "no page shows this value"


def _missing_reason(name: str, source: ViewSource) -> str | None:
    try:
        return kind_of(name).missing_reason(source)
    except (ProbeError, OSError) as error:
        return str(error)


if TYPE_CHECKING:
    Row = TypeVar("Row")


def _leading_text(pair: KernelPair, text: Callable[[ValueChange], str]) -> str:
    return "" if pair.lead is None or _is_judged_by_findings(pair) else text(pair.lead)


def _is_judged_by_findings(pair: KernelPair) -> bool:
    """Return whether its verdict follows from findings only."""
    return any(change.trend for change in pair.findings) and (pair.lead is None or not pair.lead.is_notable)


def _subject_text(pair: KernelPair) -> str:
    """Return the metric that a kernel is judged by, else its largest finding."""
    return pair.findings[0].label if _is_judged_by_findings(pair) else _leading_text(pair, lambda c: c.baseline.label)


OVERVIEW_COLUMNS: Final[tuple[Column[KernelPair], ...]] = (
    Column("kernel", lambda p: p.kernel, "kernel", lambda p: p.kernel, right=False, narrow=14, shorten=shorten),
    Column("grid", lambda p: p.grid, "grid", lambda p: p.shape_texts[0], rank=2),
    Column("block", lambda p: p.block, "block", lambda p: p.shape_texts[1], rank=3),
    Column("verdict", lambda p: p.verdict),
    Column(
        "figure", lambda p: None if p.lead is None else p.lead.baseline.key,
        "metric", _subject_text, right=False, narrow=12,
    ),
    Column("before", None, "A", lambda p: _leading_text(p, lambda c: c.baseline.text), rank=1),
    Column("after", None, "B", lambda p: _leading_text(p, lambda c: c.candidate.text), rank=1),
    Column("change", None, "change", lambda p: _leading_text(p, lambda c: c.change_text), rank=4),
    Column("share", None, "", lambda p: _leading_text(p, lambda c: c.share_text)),
    Column("judged", None, "", lambda p: p.verdict, right=False),
)  # fmt: skip
"""One line per kernel: the value that it is judged by. Text has the verdict last, behind what it follows from."""


def changed_values(pair: KernelPair, order: ColumnOrder = UNSORTED) -> list[ValueChange]:
    """Return the rows of the table of a pair."""
    rows = [change for change in pair.changes if change.change]
    return rows if order.key == "kernel" or not order.key else order.sort_rows(rows, _SORT_VALUES[order.key])


def sorted_pairs(pairs: Sequence[KernelPair], order: ColumnOrder) -> list[KernelPair]:
    """Return the kernels by name, or by the value that each is judged by."""
    if order.key in ("kernel", "figure"):
        return order.sort_rows(pairs, _subject_text if order.key == "figure" else lambda pair: pair.kernel)
    value = _SORT_VALUES.get(order.key)
    judged_changes = {
        id(pair): pair.lead for pair in pairs if pair.lead is not None and not _is_judged_by_findings(pair)
    }
    return order.sort_rows(
        pairs, lambda pair: value(judged_changes[id(pair)]) if value and id(pair) in judged_changes else None
    )


def heading_rows(pair: KernelPair) -> int:
    """Return the lines above those rows: a blank one, the name if there is one, headings."""
    return 3 if pair.name else 2


def overview_columns(shorten_name: Callable[[str, int], str]) -> Sequence[Column[KernelPair]]:
    """Return the columns of the table of kernels, with names shortened so."""
    return [replace(column, shorten=shorten_name) if column.key == "kernel" else column for column in OVERVIEW_COLUMNS]


def _heading(pair: KernelPair, cells: int, shorten_name: Callable[[str, int], str]) -> str:
    """Index, name, grid and block in that many cells: only the name is shortened."""
    index, shape = f"#{pair.index} ", ", grid {}, block {}".format(*pair.shape_texts)
    room = cells - cells_of(index) - cells_of(shape)
    return cut_middle(index + shorten_name(pair.kernel, max(room, _MIN_NAME_WIDTH)) + shape, cells)


def pair_lines(
    pair: KernelPair,
    names: tuple[str, str],
    width: int,
    shorten_name: Callable[[str, int], str],
    order: ColumnOrder = UNSORTED,
) -> Iterator[Line]:
    """Yield the values that changed, in a table; those that did not, or that only one of both ``names`` has, in
    sentences.
    """
    changed = changed_values(pair, order)
    equal_values = [change.baseline for change in pair.changes if change.change == 0]
    one_sided = [change for change in pair.changes if change.change is None]
    baseline_values = [change.baseline for change in one_sided if change.baseline.value is not None]
    candidate_values = [change.candidate for change in one_sided if change.candidate.value is not None]
    if pair.name and not (changed or baseline_values or candidate_values):
        return
    yield ()
    if pair.name:
        yield ((f" {_heading(pair, width - 2, shorten_name)}", "title"),)
    has_spread = any(change.baseline.spread is not None or change.candidate.spread is not None for change in changed)
    has_ideals = any(change.ideal_text for change in changed)
    hidden_keys = {key for key, has_values in (("spread", has_spread), ("ideal", has_ideals)) if not has_values}
    columns = [column for column in CHANGE_COLUMNS if column.key not in hidden_keys]
    yield from comparison_table(columns, changed, width, lambda change: change.verdict, order) if changed else ()
    for head, values in (
        ("same", equal_values),
        (f"only in {names[0]}", baseline_values),
        (f"only in {names[1]}", candidate_values),
    ):
        yield from _value_list_lines(head, values, width)


def finding_rows(
    changes: Sequence[FindingChange], pairs: Sequence[KernelPair], width: int
) -> Iterator[tuple[Line, PageLink | None]]:
    """Yield the lines of the findings, an outcome before each, with the page of B, or of A if B lacks it."""
    sides = {id(change): pair.sides for pair in pairs for change in pair.findings}
    for change in changes:
        pair_sides = sides.get(id(change))
        at_end = change.candidate is not None or change.outcome == "fixed"
        page = change.latest.finding.page or "summary"
        link = (
            PageLink("B" if at_end else "A", pair_sides[int(at_end)], (page, *_SUMMARY_PAGES), "finding")
            if pair_sides
            else None
        )
        for number, text in enumerate(hang_line(change.text, width - _OUTCOME_CELLS - 2)):
            head = "" if number else change.outcome
            role = _ROLES.get(change.trend, "dim")
            yield ((f" {pad(head, _OUTCOME_CELLS)}", role), (text, "")), link


def _value_list_lines(head: str, values: Sequence[KernelValue], width: int) -> Iterator[Line]:
    """Figures and their values one after another."""
    text = f"{_NO_BREAK_SPACE}· ".join(f"{value.label} {value.text}".replace(" ", _NO_BREAK_SPACE) for value in values)
    for number, line in enumerate(wrapped_values(text, width - len(head) - 4) if values else ()):
        yield ((" " * (len(head) + 2) if number else f" {head} ", "head"), (f" {line}", "dim"))


def wrapped_values(text: str, cells: int) -> list[str]:
    """Lines, broken neither within a number nor before its unit."""
    unbroken_text = re.sub(r"(?<=\d) (?=[\d%])", _NO_BREAK_SPACE, text)
    return [line.replace(_NO_BREAK_SPACE, " ") for line in wrap(unbroken_text, cells)]


def comparison_table(
    columns: Sequence[Column[Row]], rows: Sequence[Row], cells: int, judge: Callable[[Row], str], order: ColumnOrder
) -> Iterator[Line]:
    """Headings and rows in that many cells; ``judge`` returns the verdict that colours a row."""
    table_columns = in_tables(columns)
    natural_widths = [
        max(cells_of(column.title), *(cells_of(cell(column, row)) for row in rows)) for column in table_columns
    ]
    column_widths = layout(table_columns, natural_widths, cells - 1)
    gap = " " * _GAP
    titles = (
        heading(column.title, size, order.arrow(column.key), right=column.right) for column, size in column_widths
    )
    yield ((f" {''.join(titles)}".removesuffix(gap), "head"),)
    for row in rows:
        role = _ROLES.get(judge(row), "")
        roles = {"figure": "dim", "change": role or "dim", "share": role or "dim", "verdict": role, "judged": role}
        spans = [(" ", "")]
        for column, size in column_widths:
            spans += [(fitted_cell(column, row, size), roles.get(column.key, "")), (gap, "")]
        yield tuple(spans)


def shape_suffix(grid: Dim3 | None, block: Dim3 | None) -> str:
    """Grid and block, behind a name; "" where they are not known."""
    return "" if grid is None or block is None else f", grid {units.extent(grid)}, block {units.extent(block)}"


def unmatched_line(kernel: KernelFacts, cells: int) -> Line:
    """Return the line of a kernel that only one trace has."""
    shape = shape_suffix(kernel.grid, kernel.block)
    return ((f"   {shorten(kernel.demangled, max(cells - 4 - cells_of(shape), _MIN_NAME_WIDTH))}", ""), (shape, "dim"))
