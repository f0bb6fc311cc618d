"""Rows of a table as CSV, made column by column: a capture has a million rows."""

from __future__ import annotations

import csv
import itertools
import re
from collections import deque
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from tui_probe.draw.printable import printable
from tui_probe.draw.table import in_data

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tui_probe.draw.table import Column, Row

_ROWS_AT_ONCE: Final = 4096
"""Rows whose values are held as columns: enough to make the work per column small, few enough for memory."""
_FORMULA: Final = ("=", "+", "@", "-", "\t", "\r")
"""First characters of a formula, in one spreadsheet or another."""
_NUMBER: Final = re.compile(r"[-+]?[\d.,]*\d[\d.,]*(?:[eE][-+]?\d+)?(?: ?%)?").fullmatch


class Batch(Protocol):
    """Many rows, from which columns take their values."""

    @property
    def rows(self) -> Sequence[Any]: ...


@runtime_checkable
class BatchedRows(Protocol):
    """Rows that come in batches."""

    def batches(self) -> Iterator[Batch]: ...


def as_csv(columns: Sequence[Column[Row]], rows: Iterable[Row]) -> Iterator[str]:
    """Headings and one line per row; what was not measured is empty, a grid is ``8x1x1``."""
    data = [column for column in in_data(columns) if not column.nested]
    yield from csv_lines([[column.key for column in data]])
    for values in _values(data, rows):
        formats, cells = zip(*map(_csv_column, values), strict=True)
        line_format = ",".join(formats)
        yield from (line_format % row for row in zip(*cells, strict=True))


def _values(columns: Sequence[Column[Row]], rows: Iterable[Row]) -> Iterator[list[Sequence[Any]]]:
    """Yield the values of each column, for some rows at a time."""
    if isinstance(rows, BatchedRows):
        for batch in rows.batches():
            yield [_batch_values(column, batch) for column in columns]
        return
    remaining = iter(rows)
    while part := [*itertools.islice(remaining, _ROWS_AT_ONCE)]:
        yield [[column.value(row) for row in part] for column in columns if column.value is not None]


def _batch_values(column: Column[Row], batch: Batch) -> Sequence[Any]:
    if column.batch is not None:
        return column.batch(batch)
    assert column.value is not None
    return [*map(column.value, batch.rows)]


def _csv_column(values: Sequence[Any]) -> tuple[str, Sequence[Any]]:
    """Return the ``%`` format of a column and its cells: each different value is converted once."""
    kinds = {*map(type, values)}
    if kinds == {int}:
        return "%d", values
    if kinds <= {int, type(None)}:
        return "%s", ["" if value is None else value for value in values]
    if list in kinds or len(kinds - {type(None)}) > 1:
        return "%s", [*map(_csv_cell, values)]
    cells = {value: _csv_cell(value) for value in {*values}}
    if float in kinds and 0.0 in cells:  # 0.0 and -0.0 are one key
        return "%s", [cells[value] if value else _csv_cell(value) for value in values]
    return "%s", [*map(cells.__getitem__, values)]


def _csv_cell(value: object) -> str:
    """A cell as a line of CSV has it: one of two, since an empty cell that is the only one of its line is quoted."""
    return next(_lines([(_plain_cell(value), None)])).removesuffix(",")


def csv_lines(rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Rows as CSV; None is an empty cell."""
    return _lines([*map(_plain_cell, row)] for row in rows)


def _lines(rows: Iterable[Sequence[object]]) -> Iterator[str]:
    lines: deque[str] = deque()
    writer = csv.writer(SimpleNamespace(write=lines.append), lineterminator="")
    for row in rows:
        writer.writerow(row)
        yield lines.popleft()


def _plain_cell(value: object) -> str | int | None:
    """Integers and None stay: the writer knows them."""
    kind = type(value)
    if kind is int or value is None:
        return value  # type: ignore[return-value]
    if kind is str:
        return _text_cell(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        parts = ["" if item is None else str(_plain_cell(item)) for item in value]
        return _text_cell("x".join(parts)) if any(parts) else ""
    return _text_cell(value) if isinstance(value, str) else str(value)


@lru_cache(1024)
def _text_cell(text: str) -> str:
    """Text that a spreadsheet takes for text: what would be a formula gets an apostrophe in front; numbers stay."""
    safe_text = printable(text)
    return f"'{safe_text}" if text.startswith(_FORMULA) and not _NUMBER(safe_text) else safe_text
