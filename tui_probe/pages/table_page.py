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
_MAX_MEASURED_ROWS: Final = 20_000
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
    range_part: PagePart | None = None
    """Range that a kernel is limited to."""

    def record(self) -> dict[str, Any]:
        """Return the JSON record; a range by its name, and by time and stream if it is identified by these."""
        if self.kind == "range":
            times = {"start_ns": self.start, "end_ns": self.end, "stream": self.stream} if self.end else {}
            return {"range": self.name, **times}
        return {self.kind: self.name, **(self.range_part.record() if self.range_part else {})}

    def label(self, cells: int) -> str:
        """Return ``kernel add in range Loop``, each name in at most that many cells."""
        return f"{self.kind} {shorten(self.name, cells)}" + (
            f" in {self.range_part.label(cells)}" if self.range_part else ""
        )


@dataclass
class TablePage(TableContent[Row], Document):
    """A table on the screen: rows lead to kernels or pages, and can be sorted and left out."""

    rows: Sequence[Row]
    shows_explanation: bool = False
    """True if ``lines`` ends with how to read the page."""
    kernel_of_row: Callable[[Row], tuple[Path, int] | None] | None = None
    """The kernel of a trace, by directory and index, that a row leads to; None where no row leads anywhere."""
    part_of_row: Callable[[Row], tuple[str, PagePart]] | None = None
    """The page that a row leads to, ``leads``, and the part of it that is shown there."""
    part_page: str = "kernels"
    names_of_row: Callable[[Row], Sequence[str]] | None = None
    """Names in a row, in full, where its columns show others."""
    is_in_part: Callable[[Row, PagePart], bool] | None = None
    """Tells whether a row is in a part; None if no page leads here, or if ``page_of_part`` makes the page anew."""
    page_of_part: Callable[[PagePart | None], TablePage[Row]] | None = None
    """Makes the same page limited to a kernel or range, rows and counts; None if no page leads here."""
    part: PagePart | None = None
    has_fixed_order: bool = False
    """True if the order of the rows has a meaning, so that they are not sorted otherwise."""
    natural_widths: list[int] | None = field(default=None, repr=False)
    first_row_line: int = field(default=0, repr=False)
    """The number of the first row among the lines that were made last."""

    def __post_init__(self) -> None:
        self._all_rows = self.rows
        self._order = ColumnOrder()
        self._visible_keys: list[str] = []
        self._cells = 0

    def gutter(self, width: int) -> int:
        """Return the whole line."""
        return width if self._all_rows else 0

    def begins(self, width: int) -> int:
        """Return the line of the first row."""
        del width
        return self.first_row_line if self.rows else 0

    def headings(self) -> Sequence[tuple[range, range]]:
        """Return the titles and the rule below them."""
        if not self.rows:
            return ()
        rows = range(self.first_row_line, self.first_row_line + len(self.rows))
        return ((range(self.first_row_line - 2, self.first_row_line), rows),)

    def row_count(self) -> int | None:
        """Return 0: the text about the rows counts them."""
        return 0 if self._all_rows else None

    def line_facts(self, number: int, width: int) -> list[str]:
        """Number of the row."""
        del width
        row = number - self.first_row_line
        return [f"row {units.count(row + 1)} of {units.count(len(self.rows))}"] if 0 <= row < len(self.rows) else []

    def full_names(self, number: int) -> Sequence[str]:
        """Names in a row, or its texts that may be cut."""
        row = number - self.first_row_line
        if not 0 <= row < len(self.rows):
            return ()
        if self.names_of_row is not None:
            return self.names_of_row(self.rows[row])
        cut_columns = (column for column in in_tables(self.columns) if column.narrow is not None)
        return [text for column in cut_columns if (text := cell(column, self.rows[row]).strip())]

    def target_view(self) -> str:
        if self.kernel_of_row is not None:
            return "kernel"
        return "" if self.part_of_row is None else self.part_page

    def part_at(self, number: int) -> tuple[str, PagePart] | None:
        """Return the page that a line of ``lines`` leads to, and its part; None for none."""
        row = number - self.first_row_line
        if self.part_of_row is None or not 0 <= row < len(self.rows):
            return None
        page, part = self.part_of_row(self.rows[row])
        is_in_range = self.part is not None and self.part.kind == "range" and part.kind == "kernel"
        return page, replace(part, range_part=self.part) if is_in_range else part

    def select_part(self, part: PagePart | None) -> bool:
        """Show the rows of one kernel or range, or all of them with None. Return whether that changed anything."""
        if self.part_of_row is not None and part is not None and part.kind == "kernel":
            part = part.range_part  # here a kernel is chosen: all are left
        if (self.is_in_part is None and self.page_of_part is None) or part == self.part:
            return False
        self.part = part
        if self.page_of_part is not None:
            page = self.page_of_part(part)
            self._all_rows, self.texts, self.extra = page.rows, page.texts, page.extra
        self._sort_rows()
        return True

    def commands(self) -> Mapping[str, str]:
        if self.has_fixed_order or len(self._all_rows) < 2:
            return {}
        order_text = f"by {self._title(self._order.key)}" if self._order.key else "original order"
        return {
            "order": f"sort by the next column ({order_text})",
            "order_back": "sort by the previous column",
            "reverse": "reverse the order",
        }

    def press(self, command: str) -> str | None:
        keys = self._sortable_keys()
        if command in ("order", "order_back"):
            cycle = ["", *keys]  # as it was, then by each column
            position = cycle.index(self._order.key) if self._order.key in keys else 0
            self._order = ColumnOrder(cycle[(position + (1 if command == "order" else -1)) % len(cycle)])
        elif command == "reverse":
            self._order = self._order.choose(self._order.key or keys[0])
        self._sort_rows()
        return f"sorted {self._order_text()}"

    def sortable(self) -> Mapping[str, str]:
        return (
            {}
            if self.has_fixed_order or len(self._all_rows) < 2
            else {key: self._title(key) for key in self._sortable_keys()}
        )

    @property
    def sorted_column(self) -> str:
        return self._order.key

    def sort_by(self, key: str) -> None:
        """Sort the largest value first; the same column again reverses the rows."""
        self._order = self._order.choose(key)
        self._sort_rows()

    def choices(self) -> Mapping[str, Any]:
        return {"order": self._order}

    def choose(self, choices: Mapping[str, Any]) -> None:
        if choices["order"].key in self.sortable():
            self._order = choices["order"]
            self._sort_rows()

    def _sortable_keys(self) -> list[str]:
        """Return the columns that are seen at this width, or all before there is one."""
        visible_keys = self._visible_keys or [column.key for column in in_tables(self.columns)]
        return [
            column.key
            for column in self.columns
            if column.key in visible_keys and column.value is not None and column.title
        ]

    def _order_text(self) -> str:
        return self._order.text(self._title(self._order.key) if self._order.key else "")

    def _title(self, key: str) -> str:
        return next(column.title for column in self.columns if column.key == key)

    def _sort_rows(self) -> None:
        """Show the rows of the part in order; unmeasured values come last."""
        is_in_part, part = self.is_in_part, self.part
        rows = (
            list(self._all_rows)
            if is_in_part is None or part is None
            else [row for row in self._all_rows if is_in_part(row, part)]
        )
        value = next((column.value for column in self.columns if column.key == self._order.key), None)
        self.rows = rows if value is None else self._order.sort_rows(rows, value)

    def status(self) -> list[str]:
        """Return the filter, and the order where it is not that of the page."""
        filter_text = [] if self.part is None else [f"only {self.part.label(_NAME_WIDTH)}"]
        return filter_text + ([self._order_text()] if self._order.key else [])

    def pinned_parts(self) -> int:
        """The filter is shown, anything else is left out."""
        return int(self.part is not None)

    def lines(self, width: int) -> Sequence[Line]:
        width -= len(_MARGIN)
        self._cells = width
        lines_below = [*self._lines_below(width), *(self._explanation_lines(width) if self.shows_explanation else ())]
        if not self.rows:
            return [_line(text) for text in (*self._lines_above(width), self.texts.no_rows, *lines_below)]
        arrows = {self._order.key: self._order.arrow(self._order.key)}
        lines_above = [*self._lines_above(width)]
        lines = PageLines(lines_above, self.columns, self.rows, lines_below, self._measured_widths(), width, arrows)
        self.first_row_line, self._visible_keys = lines.first_row_line, lines.visible_keys
        return lines

    def row(self, number: int) -> Row | None:
        """Return the row that a line of ``lines`` shows; None for none."""
        place = number - self.first_row_line
        return self.rows[place] if 0 <= place < len(self.rows) else None

    def kernel_target(self, number: int) -> tuple[Path, int] | None:
        """Return the kernel of a trace that a line of ``lines`` leads to; None for none."""
        row = self.row(number)
        return None if self.kernel_of_row is None or row is None else self.kernel_of_row(row)

    def unbroken(self, lines: Sequence[str]) -> list[str]:
        """Notes and findings in one line each, as they are copied."""
        texts = [*self.texts.findings, *self.texts.evidence, *(f"note: {note}" for note in self.texts.notes)]
        copied = [*lines]
        for text in map(printable, texts):
            parts = [_MARGIN + part for part in hang_line(text, self._cells)]
            if len(parts) > 1 and parts[0] in copied:
                position = copied.index(parts[0])
                pairs = zip(parts, copied[position:], strict=False)
                equal_lines = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
                copied[position : position + equal_lines] = [_MARGIN + text]
        return copied

    def _measured_widths(self) -> list[int]:
        """Return the width that each column would like to have, by its first rows."""
        if self.natural_widths is None:
            table_columns = in_tables(self.columns)
            self.natural_widths = natural_widths(table_columns, itertools.islice(self.rows, _MAX_MEASURED_ROWS))
        return self.natural_widths

    def explanation(self) -> Sequence[str]:
        return self.texts.about

    def prepare(self) -> TablePage[Row]:
        """Measure the rows, which may take a while; ``lines`` is fast then."""
        self._measured_widths()
        return self

    @property
    def shown_findings(self) -> Sequence[str]:
        """Findings; none if some rows are left out: findings are about all of them."""
        return self.texts.findings if self.part is None or self.page_of_part is not None else ()

    def head(self) -> dict[str, Any]:
        """Return the head as data."""
        part_record = {} if self.part is None else {"only": self.part.record()}
        return {**super().head(), **part_record}


class PageLines(Sequence["Line"], Generic[Row]):
    """The lines of a page; those of its rows are made when they are asked for."""

    def __init__(
        self,
        lines_above: Sequence[str],
        columns: Sequence[Column[Row]],
        rows: Sequence[Row],
        lines_below: Sequence[str],
        natural_widths: Sequence[int],
        cells: int,
        arrows: Mapping[str, str] = _NO_ARROWS,
    ) -> None:
        self._layout = layout(in_tables(columns), natural_widths, cells)
        titles = "".join(
            heading(column.title, size, arrows.get(column.key, ""), right=column.right) for column, size in self._layout
        )
        rule = _GAP.join("─" * size for _, size in self._layout)
        self._lines_above = [*lines_above, clip(titles.rstrip(), cells), clip(rule, cells)]
        self._rows, self._lines_below, self._cells = rows, lines_below, cells
        self.first_row_line = len(self._lines_above)
        self.visible_keys = [column.key for column, _ in self._layout]

    def __len__(self) -> int:
        return len(self._lines_above) + len(self._rows) + len(self._lines_below)

    @overload
    def __getitem__(self, number: int) -> Line: ...
    @overload
    def __getitem__(self, number: slice) -> list[Line]: ...
    def __getitem__(self, number: int | slice) -> Line | list[Line]:
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        number = range(len(self))[number]
        row = number - len(self._lines_above)
        if row < 0:
            return _line(self._lines_above[number])
        if row >= len(self._rows):
            return _line(self._lines_below[row - len(self._rows)])
        texts = (fitted_cell(column, self._rows[row], size) for column, size in self._layout)
        return ((_MARGIN + clip(_GAP.join(texts).rstrip(), self._cells), ""),)


def _line(text: str) -> Line:
    return ((_MARGIN + text, "dim" if text.startswith(("note: ", "─")) else ""),)


def page_lines(
    page: TableContent[Any],
    format_name: Format,
    *,
    width: int = 100,
    ascii_only: bool = False,
    explained: bool = False,
    whole_commands: bool = False,
) -> Iterator[str]:
    """Return a page in any format. Only text is cut to ``width`` cells, turned into ASCII, and explained; with
    ``whole_commands`` a line that suggests a command is not cut.
    """
    if format_name == "json":
        return as_json(page.head(), page.name, page.records())
    if format_name == "csv":
        return page.csv()
    text = page.text(width, explained=explained, whole_commands=whole_commands)
    lines = page.markdown() if format_name == "md" else text
    return map(to_ascii, lines) if ascii_only else lines
