"""Answer of an evaluation: tables, arrays, drawings and published values, and its text."""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic

import numpy as np

from tui_probe.draw.csv_table import as_csv
from tui_probe.draw.printable import printable
from tui_probe.draw.spans import hang_line, wrap
from tui_probe.draw.table import Column, Row, as_record, in_data
from tui_probe.draw.table import table as table_lines
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.draw.view import Document
from tui_probe.probekit.page_kinds import LazyPage, PageSet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Drawing, View

_PUBLISHED_FILE: Final = Path(__file__).with_name("published.toml")
_DRAWING_ROWS: Final = 18
_MAX_DRAWING_CELLS: Final = 120
_LABEL_CELLS: Final = 10


@dataclass(frozen=True, slots=True)
class PublishedValue:
    """A published value: ``what`` was measured, on which ``hardware``, and in which ``source``."""

    key: str
    what: str
    value: float
    unit: str
    hardware: str
    source: str


@dataclass(frozen=True, slots=True)
class ComparedValue:
    """A published value and ours, in the same unit; None is not measured."""

    published: PublishedValue
    ours: float | None

    def record(self) -> dict[str, Any]:
        """Return the JSON record."""
        return {**asdict(self.published), "ours": self.ours}


@cache
def published_values(evaluation: str) -> dict[str, PublishedValue]:
    """Return the values of an evaluation by key, in the order of ``published.toml``; {} if nothing was published."""
    with _PUBLISHED_FILE.open("rb") as file:
        records = tomllib.load(file).get(evaluation, [])
    return {record["key"]: PublishedValue(**record) for record in records}


def compare_published(evaluation: str, **ours: float | None) -> tuple[ComparedValue, ...]:
    """Return all published values of an evaluation next to ours, given by key. Raises KeyError for an unknown key."""
    published = published_values(evaluation)
    unknown = ours.keys() - published.keys()
    if unknown:
        raise KeyError(f"{evaluation}: published.toml has no {', '.join(sorted(unknown))}")
    return tuple(ComparedValue(value, ours.get(key)) for key, value in published.items())


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return NOT_MEASURED
    text = f"{value:,.0f}".replace(",", " ") if abs(value) >= 1000 else f"{value:.4g}"
    return f"{text} {unit}".rstrip()


COMPARED_COLUMNS: Final[tuple[Column[ComparedValue], ...]] = (
    Column("what", None, "figure", lambda r: r.published.what, right=False, narrow=24),
    Column("ours", None, "ours", lambda r: _number(r.ours, r.published.unit)),
    Column("value", None, "published", lambda r: _number(r.published.value, r.published.unit)),
    Column("hardware", None, "published for", lambda r: r.published.hardware, right=False, rank=1, narrow=8),
    Column("source", None, "source", lambda r: r.published.source, right=False, rank=2, narrow=12),
)


@dataclass(frozen=True, slots=True)
class Table(Generic[Row]):
    """Rows and their columns. ``table["key"]`` is one column as an array, ``records()`` are plain rows."""

    title: str
    columns: Sequence[Column[Row]]
    rows: Sequence[Row]
    in_text: bool = True
    """True if the text has this table; one with a row per SM is long, so only data has it."""

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: str) -> NDArray[Any]:
        """Shape (rows,): int64, float64 with NaN for what was not measured, or object for texts; else KeyError."""
        column = next((column for column in in_data(self.columns) if column.key == key), None)
        if column is None or column.value is None:
            raise KeyError(f"{key}: not a column; use one of {', '.join(self.keys())}")
        return _array([column.value(row) for row in self.rows])

    def keys(self) -> list[str]:
        """The keys of the columns that have data."""
        return [column.key for column in in_data(self.columns)]

    def records(self) -> list[dict[str, Any]]:
        """The rows as plain data; None is not measured."""
        return [as_record(self.columns, row) for row in self.rows]

    def csv(self) -> Iterator[str]:
        """Lines of CSV."""
        return as_csv(self.columns, self.rows)

    def lines(self, cells: int) -> Iterator[str]:
        """Lines of text."""
        return table_lines(self.columns, self.rows, cells)


def _array(values: list[Any]) -> NDArray[Any]:
    if any(isinstance(value, str | tuple | list) for value in values) or not values:
        return np.array(values, object)
    if all(isinstance(value, int) for value in values):
        return np.array(values, np.int64)
    return np.array([np.nan if value is None else value for value in values], np.float64)


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of an evaluation. ``tables`` and ``drawings`` have names; the first table is the main one.

    ``said`` are its findings, a sentence or a line each; ``compared`` are values next to published ones. ``arrays`` are
    larger data for scripts, by name; the evaluation's module documents their shapes. The fields after them (name,
    question, sources, reading) are filled in when the evaluation is opened.
    """

    said: Sequence[str] = ()
    tables: Mapping[str, Table[Any]] = field(default_factory=dict)
    drawings: Mapping[str, Drawing] = field(default_factory=dict)
    compared: Sequence[ComparedValue] = ()
    notes: Sequence[str] = ()
    """Notes on missing or uncertain input."""
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    name: str = ""
    question: str = ""
    sources: Sequence[str] = ()
    """Inputs with their hardware."""
    reading: Sequence[str] = ()
    hardware: str = ""
    """Origin of our values in ``compared``, if no trace names it."""

    def to_dict(self) -> dict[str, Any]:
        """The document of ``tui-probe eval NAME --json``, of plain types."""
        return {
            "schema": "tui-probe.eval",
            "version": 1,
            "evaluation": self.name,
            "question": self.question,
            "sources": list(self.sources),
            "hardware": self.hardware,
            "said": list(self.said),
            "tables": {name: table.records() for name, table in self.tables.items()},
            "published": [value.record() for value in self.compared],
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        return f"<Answer of {self.name}: tables {', '.join(self.tables)}; drawings {', '.join(self.drawings)}>"


class AnswerDocument(Document):
    """The whole answer. ``drawn`` says whether its drawings are among the lines."""

    def __init__(self, answer: Answer, *, drawn: bool = True, ascii_only: bool = False) -> None:
        self.answer, self.drawn, self.ascii_only = answer, drawn, ascii_only
        self.title = f"{answer.name}: {answer.question}"

    def lines(self, width: int) -> Sequence[Line]:
        return [
            *self._head_lines(width),
            *self._table_lines(width),
            *self._drawing_lines(width),
            *self._closing_lines(width),
        ]

    def _head_lines(self, width: int) -> Iterator[Line]:
        for part in wrap(self.title, width):
            yield ((part, "title"),)
        for place, source in enumerate(self.answer.sources):
            label = "traces" if not place else ""
            for line, part in enumerate(wrap(printable(source), max(width - _LABEL_CELLS, _LABEL_CELLS))):
                yield ((f"{label if not line else '':<{_LABEL_CELLS}}{part}", "dim"),)
        for sentence in ("", *self.answer.said):
            yield from (((part, ""),) for part in hang_line(printable(sentence), width))

    def _table_lines(self, width: int) -> Iterator[Line]:
        for entry in self.answer.tables.values():
            if entry.in_text:
                yield ()
                yield ((entry.title, "head"),)
                yield from (((line, "dim" if line.startswith("─") else ""),) for line in entry.lines(width))
        if self.answer.compared:
            yield ()
            is_measured = any(value.ours is not None for value in self.answer.compared)
            ours = printable(self.answer.hardware) if is_measured else "not measured"
            origin = f" (ours: {ours})" if ours else ""
            yield ((f"comparison with published values{origin}", "head"),)
            yield from (((line, ""),) for line in table_lines(COMPARED_COLUMNS, self.answer.compared, width))

    def _drawing_lines(self, width: int) -> Iterator[Line]:
        cells = min(width, _MAX_DRAWING_CELLS)
        for name, drawing in self.answer.drawings.items() if self.drawn else ():
            yield ()
            yield ((f"figure {name}", "head"),)
            work = drawing.prepare(cells, _DRAWING_ROWS)
            if work is not None:
                work()
            yield from without_blank_end(drawing.draw(cells, _DRAWING_ROWS, ascii_only=self.ascii_only))

    def _closing_lines(self, width: int) -> Iterator[Line]:
        if self.answer.notes:
            yield ()
        for note in self.answer.notes:
            yield from (((part, "dim"),) for part in hang_line(f"note: {printable(note)}", width))
        for paragraph in self.answer.reading:
            yield ()
            yield from (((part, ""),) for part in wrap(paragraph, width))

    def record(self) -> Mapping[str, Any]:
        return self.answer.to_dict()

    def cells(self) -> Iterator[Sequence[object]]:
        """The main table."""
        for main in list(self.answer.tables.values())[:1]:
            yield main.keys()
            yield from (list(record.values()) for record in main.records())


def without_blank_end(lines: Sequence[Line]) -> list[Line]:
    """Remove empty lines at the end."""
    end = len(lines)
    while end and not any(text.strip() for text, _ in lines[end - 1]):
        end -= 1
    return list(lines[:end])


def answer_pages(answer: Answer) -> PageSet:
    """The answer and its drawings, a page each, for the screen."""

    def page(name: str) -> LazyPage:
        view: View = answer.drawings[name]
        return LazyPage(name, f"Figure {name}", lambda: view, answer.reading)

    answer_page = LazyPage("answer", "Answer", lambda: AnswerDocument(answer, drawn=False), answer.reading)
    return PageSet(f"{answer.name}: {answer.question}", [answer_page, *map(page, answer.drawings)])
