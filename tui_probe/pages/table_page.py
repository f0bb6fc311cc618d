"""Table page of the screen: the content of a table with a cursor, an order of its rows, and rows left out."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, overload

from tui_probe.draw import units
from tui_probe.draw.printable import printable
from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import clip, hang_line, to_ascii
from tui_probe.draw.table import as_json, cell, fitted_cell, in_tables, layout, natural_widths
from tui_probe.draw.table_content import ColumnOrder, TableContent, heading
from tui_probe.draw.view import Document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from tui_probe.draw.spans import Line
    from tui_probe.draw.table import Column
    from tui_probe.probekit.page_kinds import Format

Row = TypeVar("Row")
_NAME_WIDTH: Final = 36
"""Cells of a name in the line of status."""
_GAP: Final = "  "
_MEASURED: Final = 20_000
"""Rows by which the widths of columns are chosen on the screen."""
_NO_ARROWS: Final[Mapping[str, str]] = {}
_MARGIN: Final = " "
"""Margin before each line: the cursor's, kept by a page without rows so that all pages start in one column."""


@dataclass(frozen=True, slots=True)
class PagePart:
    """Part of the rows of a page: those of the kernel or range (``kind``) of a ``name``; a range with a time of its own
    has it in ns, and its stream.
    """

    kind: str
    name: str
    start: int = 0
    end: int = 0
    stream: int | None = None
    key: object = None
    """Distinguishes it from others of its name: of a kernel its grid and block, of a range the range itself."""
    within: PagePart | None = None
    """Range that a kernel is limited to."""

    def record(self) -> dict[str, Any]:
        """Return the JSON record; a range by its name, and by time and stream if it is identified by these."""
        if self.kind == "range":
            times = {"start_ns": self.start, "end_ns": self.end, "stream": self.stream} if self.end else {}
            return {"range": self.name, **times}
        return {self.kind: self.name, **(self.within.record() if self.within else {})}

    def label(self, cells: int) -> str:
        """``kernel add in range Loop``, each name in at most that many cells."""
        return f"{self.kind} {shorten(self.name, cells)}" + (f" in {self.within.label(cells)}" if self.within else "")


@dataclass
class TablePage(TableContent[Row], Document):
    """A table on the screen: rows lead to kernels or pages, and can be sorted and left out."""

    rows: Sequence[Row]
    explained: bool = False
    """True if ``lines`` ends with how to read the page."""
    opens: Callable[[Row], tuple[Path, int] | None] | None = None
    """The kernel of a trace, by directory and index, that a row leads to; None where no row leads anywhere."""
    narrows: Callable[[Row], tuple[str, PagePart]] | None = None
    """The page that a row leads to, ``leads``, and the part of it that is shown there."""
    leads: str = "kernels"
    names: Callable[[Row], Sequence[str]] | None = None
    """Names in a row, in full, where its columns show others."""
    is_in_part: Callable[[Row, PagePart], bool] | None = None
    """Tells whether a row is in a part; None if no page leads here, or if ``page_of_part`` makes the page anew."""
    page_of_part: Callable[[PagePart | None], TablePage[Row]] | None = None
    """Makes the same page limited to a kernel or range, rows and counts; None if no page leads here."""
    only: PagePart | None = None
    ordered: bool = False
    """True if the order of the rows has a meaning, so that they are not sorted otherwise."""
    measured: list[int] | None = field(default=None, repr=False)
    rows_from: int = field(default=0, repr=False)
    """The number of the first row among the lines that were made last."""

    def __post_init__(self) -> None:
        self._all = self.rows
        self._order = ColumnOrder()
        self._shown: list[str] = []
        self._cells = 0

    def gutter(self, width: int) -> int:
        """The whole line."""
        return width if self._all else 0

    def begins(self, width: int) -> int:
        """Return the line of the first row."""
        del width
        return self.rows_from if self.rows else 0

    def headings(self) -> Sequence[tuple[range, range]]:
        """The titles and the rule below them."""
        if not self.rows:
            return ()
        rows = range(self.rows_from, self.rows_from + len(self.rows))
        return ((range(self.rows_from - 2, self.rows_from), rows),)

    def row_count(self) -> int | None:
        """The text about the rows counts them."""
        return 0 if self._all else None

    def line_facts(self, number: int, width: int) -> list[str]:
        """Number of the row."""
        del width
        row = number - self.rows_from
        return [f"row {units.count(row + 1)} of {units.count(len(self.rows))}"] if 0 <= row < len(self.rows) else []

    def whole_names(self, number: int) -> Sequence[str]:
        """Names in a row, or its texts that may be cut."""
        row = number - self.rows_from
        if not 0 <= row < len(self.rows):
            return ()
        if self.names is not None:
            return self.names(self.rows[row])
        cut = (column for column in in_tables(self.columns) if column.narrow is not None)
        return [text for column in cut if (text := cell(column, self.rows[row]).strip())]

    def target_view(self) -> str:
        if self.opens is not None:
            return "kernel"
        return "" if self.narrows is None else self.leads

    def part_at(self, number: int) -> tuple[str, PagePart] | None:
        """Return the page that a line of ``lines`` leads to, and its part; None for none."""
        row = number - self.rows_from
        if self.narrows is None or not 0 <= row < len(self.rows):
            return None
        page, only = self.narrows(self.rows[row])
        of_range = self.only is not None and self.only.kind == "range" and only.kind == "kernel"
        return page, replace(only, within=self.only) if of_range else only

    def select_part(self, only: PagePart | None) -> bool:
        """Show the rows of one kernel or range, or all of them with None. Return whether that changed anything."""
        if self.narrows is not None and only is not None and only.kind == "kernel":
            only = only.within  # here a kernel is chosen: all are left
        if (self.is_in_part is None and self.page_of_part is None) or only == self.only:
            return False
        self.only = only
        if self.page_of_part is not None:
            page = self.page_of_part(only)
            self._all, self.texts, self.extra = page.rows, page.texts, page.extra
        self._arrange()
        return True

    def commands(self) -> Mapping[str, str]:
        if self.ordered or len(self._all) < 2:
            return {}
        by = f"by {self._title(self._order.key)}" if self._order.key else "original order"
        return {
            "order": f"sort by the next column ({by})",
            "order_back": "sort by the previous column",
            "reverse": "reverse the order",
        }

    def press(self, command: str) -> str | None:
        keys = self._sortable()
        if command in ("order", "order_back"):
            around = ["", *keys]  # as it was, then by each column
            at = around.index(self._order.key) if self._order.key in keys else 0
            self._order = ColumnOrder(around[(at + (1 if command == "order" else -1)) % len(around)])
        elif command == "reverse":
            self._order = self._order.choose(self._order.key or keys[0])
        self._arrange()
        return f"sorted {self._sorted_words()}"

    def sortable(self) -> Mapping[str, str]:
        return {} if self.ordered or len(self._all) < 2 else {key: self._title(key) for key in self._sortable()}

    @property
    def sorted_column(self) -> str:
        return self._order.key

    def sort_by(self, key: str) -> None:
        """The largest value first; the same column again reverses the rows."""
        self._order = self._order.choose(key)
        self._arrange()

    def choices(self) -> Mapping[str, Any]:
        return {"order": self._order}

    def choose(self, choices: Mapping[str, Any]) -> None:
        if choices["order"].key in self.sortable():
            self._order = choices["order"]
            self._arrange()

    def _sortable(self) -> list[str]:
        """The columns that are seen at this width, or all before there is one."""
        shown = self._shown or [column.key for column in in_tables(self.columns)]
        return [
            column.key for column in self.columns if column.key in shown and column.value is not None and column.title
        ]

    def _sorted_words(self) -> str:
        return self._order.text(self._title(self._order.key) if self._order.key else "")

    def _title(self, key: str) -> str:
        return next(column.title for column in self.columns if column.key == key)

    def _arrange(self) -> None:
        """The rows that are left, in order; what was not measured comes last."""
        is_in_part, only = self.is_in_part, self.only
        rows = (
            list(self._all)
            if is_in_part is None or only is None
            else [row for row in self._all if is_in_part(row, only)]
        )
        value = next((column.value for column in self.columns if column.key == self._order.key), None)
        self.rows = rows if value is None else self._order.arranged(rows, value)

    def status(self) -> list[str]:
        """The filter, and the order where it is not that of the page."""
        left = [] if self.only is None else [f"only {self.only.label(_NAME_WIDTH)}"]
        return left + ([self._sorted_words()] if self._order.key else [])

    def pinned_parts(self) -> int:
        """The filter is shown, anything else is left out."""
        return int(self.only is not None)

    def lines(self, width: int) -> Sequence[Line]:
        width -= len(_MARGIN)
        self._cells = width
        after = [*self._below(width), *(self._about(width) if self.explained else ())]
        if not self.rows:
            return [_line(text) for text in (*self._above(width), self.texts.no_rows, *after)]
        arrows = {self._order.key: self._order.arrow(self._order.key)}
        above = [*self._above(width)]
        lines = PageLines(above, self.columns, self.rows, after, self._natural(), width, arrows)
        self.rows_from, self._shown = lines.rows_from, lines.shown
        return lines

    def row(self, number: int) -> Row | None:
        """The row that a line of ``lines`` shows; None for none."""
        place = number - self.rows_from
        return self.rows[place] if 0 <= place < len(self.rows) else None

    def kernel_target(self, number: int) -> tuple[Path, int] | None:
        """The kernel of a trace that a line of ``lines`` leads to; None for none."""
        row = self.row(number)
        return None if self.opens is None or row is None else self.opens(row)

    def unbroken(self, lines: Sequence[str]) -> list[str]:
        """Notes and findings in one line each, as they are copied."""
        texts = [*self.texts.findings, *self.texts.evidence, *(f"note: {note}" for note in self.texts.notes)]
        copied = [*lines]
        for text in map(printable, texts):
            parts = [_MARGIN + part for part in hang_line(text, self._cells)]
            if len(parts) > 1 and parts[0] in copied:
                at = copied.index(parts[0])
                pairs = zip(parts, copied[at:], strict=False)
                equal = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
                copied[at : at + equal] = [_MARGIN + text]
        return copied

    def _natural(self) -> list[int]:
        """The width that each column would like to have, by its first rows."""
        if self.measured is None:
            shown = in_tables(self.columns)
            self.measured = natural_widths(shown, itertools.islice(self.rows, _MEASURED))
        return self.measured

    def explanation(self) -> Sequence[str]:
        return self.texts.about

    def prepare(self) -> TablePage[Row]:
        """Measure the rows, which may take a while; ``lines`` is fast then."""
        self._natural()
        return self

    @property
    def shown_findings(self) -> Sequence[str]:
        """Findings; none if some rows are left out: findings are about all of them."""
        return self.texts.findings if self.only is None or self.page_of_part is not None else ()

    def head(self) -> dict[str, Any]:
        """The head as data."""
        only = {} if self.only is None else {"only": self.only.record()}
        return {**super().head(), **only}


class PageLines(Sequence["Line"], Generic[Row]):
    """The lines of a page; those of its rows are made when they are asked for."""

    def __init__(
        self,
        above: Sequence[str],
        columns: Sequence[Column[Row]],
        rows: Sequence[Row],
        below: Sequence[str],
        natural: Sequence[int],
        cells: int,
        arrows: Mapping[str, str] = _NO_ARROWS,
    ) -> None:
        self._layout = layout(in_tables(columns), natural, cells)
        titles = "".join(
            heading(column.title, size, arrows.get(column.key, ""), right=column.right) for column, size in self._layout
        )
        rule = _GAP.join("─" * size for _, size in self._layout)
        self._above = [*above, clip(titles.rstrip(), cells), clip(rule, cells)]
        self._rows, self._below, self._cells = rows, below, cells
        self.rows_from = len(self._above)
        self.shown = [column.key for column, _ in self._layout]

    def __len__(self) -> int:
        return len(self._above) + len(self._rows) + len(self._below)

    @overload
    def __getitem__(self, number: int) -> Line: ...
    @overload
    def __getitem__(self, number: slice) -> list[Line]: ...
    def __getitem__(self, number: int | slice) -> Line | list[Line]:
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        number = range(len(self))[number]
        row = number - len(self._above)
        if row < 0:
            return _line(self._above[number])
        if row >= len(self._rows):
            return _line(self._below[row - len(self._rows)])
        texts = (fitted_cell(column, self._rows[row], size) for column, size in self._layout)
        return ((_MARGIN + clip(_GAP.join(texts).rstrip(), self._cells), ""),)


def _line(text: str) -> Line:
    return ((_MARGIN + text, "dim" if text.startswith(("note: ", "─")) else ""),)


def page_lines(
    page: TableContent[Any],
    form: Format,
    *,
    width: int = 100,
    ascii_only: bool = False,
    explained: bool = False,
    whole_commands: bool = False,
) -> Iterator[str]:
    """A page in any format. Only text is cut to ``width`` cells, turned into ASCII, and explained; with
    ``whole_commands`` a line that suggests a command is not cut.
    """
    if form == "json":
        return as_json(page.head(), page.name, page.records())
    if form == "csv":
        return page.csv()
    text = page.text(width, explained=explained, whole_commands=whole_commands)
    lines = page.markdown() if form == "md" else text
    return map(to_ascii, lines) if ascii_only else lines
