"""One list of columns as JSON, CSV or Markdown; tables are in ``tui_probe.draw.table``."""

from __future__ import annotations

import csv
import itertools
import re
from collections import deque
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tui_probe.draw.printable import dump_json, printable
from tui_probe.draw.table import cell, in_data, in_tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tui_probe.draw.table import Column

Row = TypeVar("Row")
_FORMULA: Final = ("=", "+", "@", "-", "\t", "\r")
"""What a formula begins with, in one spreadsheet or another."""
_ENTITY: Final = re.compile(r"&(?=#?\w+;)")
_BACKTICKS: Final = re.compile("`+")
_NUMBER: Final = re.compile(r"[-+]?[\d.,]*\d[\d.,]*(?:[eE][-+]?\d+)?(?: ?%)?").fullmatch
SCHEMA: Final = "tui-probe.report"
SCHEMA_VERSION: Final = 2
"""Of all documents of that schema. Where 1 differs, it can be asked for: ``tui_probe.pages.schema``."""


def as_record(columns: Sequence[Column[Row]], row: Row) -> dict[str, Any]:
    """The data of a row by key; None is not measured."""
    return {column.key: column.value(row) for column in columns if column.value is not None}


def as_json(
    head: dict[str, Any], key: str, records: Iterable[dict[str, Any]], version: int = SCHEMA_VERSION
) -> Iterator[str]:
    """A document of the report schema, one line per record, in which ``key`` holds the records."""
    fields = {"schema": SCHEMA, "version": version, **head}
    yield "{"
    for name, value in fields.items():
        yield f"  {dump_json(name)}: {dump_json(value)},"
    yield f"  {dump_json(key)}: ["
    previous: str | None = None
    for record in records:
        if previous is not None:
            yield f"    {previous},"
        previous = dump_json(record)
    if previous is not None:
        yield f"    {previous}"
    yield "  ]"
    yield "}"


def as_csv(columns: Sequence[Column[Row]], rows: Iterable[Row]) -> Iterator[str]:
    """Headings and one line per row; what was not measured is empty, a grid is ``8x1x1``."""
    data = [column for column in in_data(columns) if not column.nested]
    values = [column.value for column in data if column.value is not None]
    cells = ([value(row) for value in values] for row in rows)
    return csv_lines(itertools.chain([[column.key for column in data]], cells))


def csv_lines(rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Rows as CSV; None is an empty cell."""
    lines: deque[str] = deque()
    writer = csv.writer(SimpleNamespace(write=lines.append), lineterminator="")
    for row in rows:
        writer.writerow(map(_csv_cell, row))
        yield lines.popleft()


def as_markdown(columns: Sequence[Column[Row]], rows: Iterable[Row]) -> Iterator[str]:
    """A Markdown table of the columns that tables show, none of them cut or left out."""
    shown = in_tables(columns)
    yield _markdown_line([column.title for column in shown])
    yield _markdown_line(["--:" if column.right else ":--" for column in shown])
    for row in rows:
        yield _markdown_line([_escaped(cell(column, row)) for column in shown])


def fenced(lines: Iterable[str]) -> list[str]:
    """Lines as a block of Markdown that shows them as they are; its fence is longer than any row of backticks there."""
    text = list(lines)
    longest = max((len(run) for line in text for run in _BACKTICKS.findall(line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", *text, fence]


def _csv_cell(value: object) -> str | int | None:
    """Integers and None stay: the writer knows them."""
    kind = type(value)
    if kind is int or value is None:
        return value  # type: ignore[return-value]
    if kind is str:
        return _csv_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        parts = ["" if item is None else str(_csv_cell(item)) for item in value]
        return _csv_text("x".join(parts)) if any(parts) else ""
    return _csv_text(value) if isinstance(value, str) else str(value)


@lru_cache(1024)
def _csv_text(text: str) -> str:
    """Text that a spreadsheet takes for text: what would be a formula gets an apostrophe in front; numbers stay."""
    shown = printable(text)
    return f"'{shown}" if text.startswith(_FORMULA) and not _NUMBER(shown) else shown


def _markdown_line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is; names in C++ are full of its signs."""
    return _ENTITY.sub(r"\\&", "".join("\\" + sign if sign in "\\|*_<>`[]~#" else sign for sign in text))
