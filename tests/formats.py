"""The formats of one page: CSV holds the values of the JSON document, and Markdown the cells of the table."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from typing import Any

from tests.sizes import headings

LONG = 16
"""Characters of a cell from which on a table may shorten it."""


def check_formats(shown: Callable[[str], str], key: str, *, has_table: bool = True) -> None:
    """Check that a page, which ``shown`` returns in each format, has the same rows in all of them.

    ``key`` names the rows in the JSON document. The table must be wide enough for all columns. Without ``has_table``
    the page's text is not a table of the columns.
    """
    rows = json.loads(shown("json"))[key]
    check_csv(shown("csv"), rows)
    titles, lines = markdown_table(shown("md"))
    assert len(lines) == len(rows)
    if has_table and rows:
        check_table(shown("table"), titles, lines)


def check_table(text: str, titles: list[str], rows: list[list[str]]) -> None:
    """Check that a table has these rows, and no column with another title; names may be shortened there."""
    (heading, *_) = [line for line in headings(text).splitlines() if "  " in line]
    assert {*re.split(r"\s{2,}", heading.strip())} <= {*titles}
    printed = iter(text.splitlines())
    for row in rows:
        assert any(holds(line, row) for line in printed), f"the table has no row of {row} at its place"


def check_csv(text: str, rows: list[dict[str, Any]]) -> None:
    """Check that CSV has the values of these rows of a document, without the tables in them."""
    headings, *lines = csv.reader(io.StringIO(text))
    assert lines == [[csv_cell(row[name]) for name in headings] for row in rows]
    assert all(value is None or is_nested(value) for row in rows for name, value in row.items() if name not in headings)


def is_nested(value: Any) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(item, dict | list | str) for item in value)
    )


def csv_cell(value: Any) -> str:
    if isinstance(value, list):
        return "x".join(map(csv_cell, value)) if any(item is not None for item in value) else ""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def markdown_table(text: str) -> tuple[list[str], list[list[str]]]:
    """Return the titles, and the measured cells of each row."""
    lines = [line[1:-1].split(" |") for line in text.splitlines() if line.startswith("| ")]
    titles, _, *rows = [[re.sub(r"\\(.)", r"\1", cell).strip() for cell in line] for line in lines]
    return titles, [[cell for cell in row if cell not in ("", "–")] for row in rows]


def holds(line: str, cells: list[str]) -> bool:
    """Return whether a line has these cells in their order; a long name may be shortened there."""
    place = 0
    for cell in cells:
        match = re.compile(rf"(?<!\S){re.escape(cell)}(?!\S)").search(line, place)
        if match:
            place = match.end()
        elif len(cell) < LONG:
            return False
    return True
