"""CSV made column by column has the lines that ``csv`` writes row by row."""

from __future__ import annotations

import csv
import io
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from tui_probe.draw.csv_table import as_csv, csv_lines
from tui_probe.draw.table import Column

CELLS = [
    st.integers(-(2**70), 2**70),
    st.none() | st.integers(-1, 1),
    st.none() | st.booleans(),
    st.none() | st.text('a,"=- %\n;\x1b', max_size=4),
    st.none() | st.floats(),
    st.none() | st.tuples(st.integers(0, 9), st.integers(0, 9)),
    st.none() | st.lists(st.integers(0, 9), max_size=2),
    st.none() | st.integers(0, 1) | st.floats(0, 1) | st.booleans() | st.text(max_size=1),
]
COLUMNS = [Column(f"c{place}", lambda row, place=place: row[place]) for place in range(len(CELLS))]


def row_of(value: float) -> tuple[Any, ...]:
    """Return a row with one number."""
    return (0, None, None, None, value, None, None, None)


@given(st.lists(st.tuples(*CELLS), max_size=6))
@example([row_of(0.0), row_of(-0.0)])
def test_columns_are_written_as_rows_are(rows: list[tuple[Any, ...]]) -> None:
    headings = [column.key for column in COLUMNS]
    assert [*as_csv(COLUMNS, rows)] == [*csv_lines([headings, *rows])]


def test_lines_are_read_back_by_csv() -> None:
    lines = [*as_csv(COLUMNS[:4], [(1, None, True, 'a "b", 50 %'), (2, 3, None, "=1+1")])]
    assert [*csv.reader(io.StringIO("\n".join(lines)))][1:] == [
        ["1", "", "true", 'a "b", 50 %'],
        ["2", "3", "", "'=1+1"],
    ]
