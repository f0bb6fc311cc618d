"""Content of a page that is a table: rows, their order, columns and texts, for report, data and screen."""

from __future__ import annotations

import re
from collections.abc import Sized
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from tui_probe.draw import units
from tui_probe.draw.csv_table import as_csv
from tui_probe.draw.printable import printable
from tui_probe.draw.spans import clip, hang_line, pad, paragraphs, wrap
from tui_probe.draw.table import as_markdown, as_record, in_data, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.draw.table import Column

GAP: Final = 2
"""Cells between columns."""
Row = TypeVar("Row")
NO_ROWS_TEXT: Final = "nothing to show"
_LABEL_WIDTH: Final = 10
"""Cells of the labels of a page's head."""
_MIN_TEXT_WIDTH: Final = 20
"""Cells of a text behind its label at least."""
_COMMAND: Final = re.compile(r"--metrics \S")
"""A command that would break inside the names of metrics."""


@dataclass(frozen=True, slots=True)
class ColumnOrder:
    """Column that rows are sorted by, and its direction; without a column rows keep their order."""

    key: str = ""
    is_descending: bool = True

    def choose(self, key: str, *, is_descending: bool = True) -> ColumnOrder:
        """Return the order by another column, which begins ``is_descending``; the same column again is reversed."""
        return ColumnOrder(key, not self.is_descending if key == self.key else is_descending)

    def sort_rows(self, rows: Iterable[Row], value: Callable[[Row], Any]) -> list[Row]:
        """Return the rows by their value; those without one come last."""
        if not self.key:
            return [*rows]
        pairs = [(value(row), row) for row in rows]
        unmeasured_rows = [row for row_value, row in pairs if row_value is None]
        measured_pairs = sorted(
            (pair for pair in pairs if pair[0] is not None), key=lambda pair: pair[0], reverse=self.is_descending
        )
        return [*(row for _, row in measured_pairs), *unmeasured_rows]

    def arrow(self, key: str) -> str:
        """Return the arrow behind the title of a column; "" if rows are sorted by another one."""
        return "" if not self.key or key != self.key else "↓" if self.is_descending else "↑"

    def with_arrow(self, column: Column[Row]) -> Column[Row]:
        """Return the column with its arrow in the title."""
        arrow = self.arrow(column.key)
        return replace(column, title=f"{column.title} {arrow}".lstrip()) if arrow else column

    def text(self, title: str) -> str:
        """Return ``by TITLE, descending`` for the title of its column."""
        return f"by {title}, {'descending' if self.is_descending else 'ascending'}" if self.key else "in original order"


def heading(title: str, cells: int, arrow: str = "", *, right: bool = False) -> str:
    """Return a title in its cells and the gap behind them, with an arrow next to it."""
    if right:
        return pad(title, cells, right=True) + pad(arrow, GAP)
    return pad(f"{clip(title, cells)} {arrow}", cells + GAP)


UNSORTED: Final = ColumnOrder()


@dataclass(frozen=True, slots=True)
class PageTexts:
    """The texts of a page: ``head`` (label, text), ``findings`` before the table, ``evidence`` for it and ``notes``
    below the table, and ``about``, how to read it, a paragraph each. ``no_rows`` is in place of a table without rows.
    """

    head: Sequence[tuple[str, str]] = ()
    findings: Sequence[str] = ()
    notes: Sequence[str] = ()
    about: Sequence[str] = ()
    evidence: Sequence[str] = ()
    no_rows: str = NO_ROWS_TEXT


class RemadeRows(Generic[Row]):
    """Rows that are made anew at each iteration, so that those of a large page are never held."""

    def __init__(self, make: Callable[[], Iterable[Row]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[Row]:
        return iter(self._make())


@dataclass
class TableContent(Generic[Row]):
    """Columns, rows and texts of one page. ``name`` is the key of the records in JSON; ``extra`` are more fields of
    its head.
    """

    name: str
    title: str
    columns: Sequence[Column[Row]]
    rows: Iterable[Row]
    """Rows of the table, iterated several times."""
    texts: PageTexts = field(default_factory=PageTexts)
    extra: Mapping[str, Any] = field(default_factory=dict)
    data_rows: Iterable[Row] | None = field(default=None, kw_only=True)
    """Rows that are records of the data, where the table has more: those that unfold a nested value of another row."""
    report: Callable[[int], Iterator[str]] | None = field(default=None, kw_only=True)
    """Text of the report for a width, where it is not the table with its texts."""
    text_rows: int | None = field(default=None, kw_only=True)
    """Rows of the table in text; data and the screen have all."""
    slow_extra: Callable[[], Mapping[str, Any]] | None = field(default=None, kw_only=True)
    """More fields of the head, which take time to compute: text does without."""

    @property
    def shown_findings(self) -> Sequence[str]:
        """Texts above the table, about all of its rows."""
        return self.texts.findings

    def text(self, width: int, *, explained: bool = False, whole_commands: bool = False) -> Iterator[str]:
        """The page for people, in lines of at most ``width`` cells; longer with ``whole_commands``, where a command is
        suggested.
        """
        yield from self._lines_above(width, whole_commands=whole_commands)
        yield from self._table(width)
        yield from self._lines_below(width, whole_commands=whole_commands)
        if explained:
            yield from self._explanation_lines(width)

    def _table(self, width: int) -> Iterator[str]:
        rows = self.rows if self.text_rows is None else [*islice(self.rows, self.text_rows)]
        if not any(True for _ in rows):
            yield self.texts.no_rows
            return
        yield from table(self.columns, rows, width, hide_empty=True)
        hidden_count = 0 if self.text_rows is None else _count(self.rows) - self.text_rows
        if hidden_count > 0:
            yield f"and {units.counted(hidden_count, 'more row')} (--format csv has all)"

    def _lines_above(self, cells: int, *, whole_commands: bool = False) -> Iterator[str]:
        for label, text in self.texts.head:
            parts = wrap(printable(text), max(_MIN_TEXT_WIDTH, cells - _LABEL_WIDTH))
            yield from (f"{label if i == 0 else '':<{_LABEL_WIDTH}}{part}".rstrip() for i, part in enumerate(parts))
        yield ""
        if self.shown_findings:
            for line in self.shown_findings:
                yield from _wrapped_line(printable(line), cells, whole_commands=whole_commands)
            yield ""

    def _lines_below(self, cells: int, *, whole_commands: bool = False) -> Iterator[str]:
        for lines in (self.texts.evidence, [f"note: {note}" for note in self.texts.notes]):
            if lines:
                yield ""
            for line in lines:
                yield from _wrapped_line(printable(line), cells, whole_commands=whole_commands)

    def _explanation_lines(self, cells: int) -> Iterator[str]:
        return paragraphs(self.texts.about, cells)

    def head(self) -> dict[str, Any]:
        """Return the head as data."""
        return {"page": self.name, "notes": list(self.texts.notes), **self.fields()}

    def fields(self) -> dict[str, Any]:
        """Fields of the head that only this page has."""
        return {**self.extra, **(self.slow_extra() if self.slow_extra else {})}

    def records(self) -> Iterator[dict[str, Any]]:
        """Rows as data, by the keys of the columns."""
        return (as_record(self.columns, row) for row in self._rows_of_data())

    def record(self) -> Mapping[str, Any]:
        """Return the whole page as data."""
        return {**self.head(), self.name: list(self.records())}

    def cells(self) -> Iterator[Sequence[object]]:
        """Rows for CSV, the headings first."""
        columns = [column for column in in_data(self.columns) if not column.nested]
        yield [column.key for column in columns]
        for row in self._rows_of_data():
            yield [column.value(row) for column in columns if column.value is not None]

    def csv(self) -> Iterator[str]:
        """Rows as CSV."""
        return as_csv(self.columns, self._rows_of_data())

    def markdown(self) -> Iterator[str]:
        """Yield the page as Markdown."""
        yield f"**{self.title}**"
        yield ""
        for line in self.texts.findings:
            yield f"{printable(line)}  "
        if self.texts.findings:
            yield ""
        yield from as_markdown(self.columns, self.rows)
        if self.texts.evidence:
            yield ""
            yield from (f"{printable(line)}  " for line in self.texts.evidence)
        if self.texts.notes:
            yield ""
            yield from (f"- {printable(note)}" for note in self.texts.notes)

    def _rows_of_data(self) -> Iterable[Row]:
        return self.rows if self.data_rows is None else self.data_rows


def _count(rows: Iterable[Any]) -> int:
    return len(rows) if isinstance(rows, Sized) else sum(1 for _ in rows)


def _wrapped_line(text: str, cells: int, *, whole_commands: bool) -> list[str]:
    """A text in lines of at most ``cells`` cells, or in one where it suggests a command that is to be copied whole."""
    return [text] if whole_commands and _COMMAND.search(text) else hang_line(text, cells)


def titled_table(
    title: str, columns: Sequence[Column[Row]], rows: Sequence[Row], notes: Iterable[str], cells: int
) -> list[Line]:
    """Return a title, a table with its headings unless it has no rows, and notes, behind a margin of one cell."""
    lines: list[Line] = [((f" {clip(title, cells - 1)}", "title"),)]
    if rows:
        names, rule, *texts = table(columns, rows, cells - 1)
        lines += [((f" {names}", "head"),), ((f" {rule}", "rule"),), *(((f" {text}", ""),) for text in texts)]
    return [*lines, *(((f" {part}", "dim"),) for note in notes for part in wrap(note, cells - 1))]
