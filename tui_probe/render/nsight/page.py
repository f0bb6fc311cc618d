"""A page about imported files: what it is of, a table, what was found, and how to read it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from tui_probe.render.formats import as_csv, as_json, as_markdown, as_record
from tui_probe.render.hanging import hanging
from tui_probe.render.spans import to_ascii, wrap
from tui_probe.render.table import in_data, safe, table
from tui_probe.render.views.view import Document

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tui_probe.render.choices import Format
    from tui_probe.render.spans import Line
    from tui_probe.render.table import Column

Row = TypeVar("Row")
_LABEL: Final = 10
_LEAST: Final = 20


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a page: ``head`` (label, words), ``found`` before the table, ``notes`` below it, and ``about``,
    how to read it, a paragraph each.
    """

    head: Sequence[tuple[str, str]] = ()
    found: Sequence[str] = ()
    notes: Sequence[str] = ()
    about: Sequence[str] = ()


@dataclass
class TablePage(Document, Generic[Row]):
    """A table with words. ``name`` is the key of the records in JSON; ``extra`` are more fields of its head."""

    name: str
    title: str
    columns: Sequence[Column[Row]]
    rows: Sequence[Row]
    words: Words = field(default_factory=Words)
    extra: Mapping[str, Any] = field(default_factory=dict)
    explained: bool = False
    """Whether ``lines`` ends with how to read the page."""

    def lines(self, width: int) -> Sequence[Line]:
        return [((text, _role(text)),) for text in self.text(width, explained=self.explained)]

    def text(self, width: int, *, explained: bool = False) -> Iterator[str]:
        """The page for people, in lines of at most ``width`` cells."""
        for label, words in self.words.head:
            parts = wrap(safe(words), max(_LEAST, width - _LABEL))
            yield from (f"{label if i == 0 else '':<{_LABEL}}{part}" for i, part in enumerate(parts))
        yield ""
        if self.words.found:
            for line in self.words.found:
                yield from hanging(safe(line), width)
            yield ""
        if self.rows:
            yield from table(self.columns, self.rows, width)
        else:
            yield "nothing to show"
        if self.words.notes:
            yield ""
            for note in self.words.notes:
                yield from hanging(f"note: {safe(note)}", width)
        if explained:
            for paragraph in self.words.about:
                yield ""
                yield from wrap(paragraph, width)

    def head(self) -> dict[str, Any]:
        """The head as data."""
        return {"page": self.name, "notes": list(self.words.notes), **self.extra}

    def record(self) -> Mapping[str, Any]:
        return {**self.head(), self.name: [as_record(self.columns, row) for row in self.rows]}

    def cells(self) -> Iterator[Sequence[object]]:
        columns = [column for column in in_data(self.columns) if not column.nested]
        yield [column.key for column in columns]
        for row in self.rows:
            yield [column.value(row) for column in columns if column.value is not None]


def _role(text: str) -> str:
    return "dim" if text.startswith(("note: ", "─")) else ""


def page_lines(
    page: TablePage[Any], form: Format, *, width: int = 100, ascii_only: bool = False, explained: bool = False
) -> Iterator[str]:
    """A page in any format. Only text is cut to ``width`` cells, turned into ASCII, and explained."""
    if form == "json":
        return as_json(page.head(), page.name, (as_record(page.columns, row) for row in page.rows))
    if form == "csv":
        return as_csv(page.columns, page.rows)
    lines = _markdown(page) if form == "md" else page.text(width, explained=explained)
    return map(to_ascii, lines) if ascii_only else lines


def _markdown(page: TablePage[Any]) -> Iterator[str]:
    yield f"**{page.title}**"
    yield ""
    for line in page.words.found:
        yield f"{safe(line)}  "
    if page.words.found:
        yield ""
    yield from as_markdown(page.columns, page.rows)
    if page.words.notes:
        yield ""
        yield from (f"- {safe(note)}" for note in page.words.notes)
