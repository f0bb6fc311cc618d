"""The answer of an evaluation: named tables and arrays, words, and drawings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from tui_probe.draw.formats import as_csv, as_record
from tui_probe.draw.table import Row, in_data
from tui_probe.draw.table import table as table_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tui_probe.draw.table import Column
    from tui_probe.draw.view import Drawing
    from tui_probe.evals.published import Compared


@dataclass(frozen=True, slots=True)
class Table(Generic[Row]):
    """Rows and their columns. ``table["key"]`` is one column as an array, ``records()`` are plain rows."""

    title: str
    columns: Sequence[Column[Row]]
    rows: Sequence[Row]
    in_text: bool = True
    """Whether the answer's text has it, and not the data alone: one with a row per SM is long."""

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: str) -> NDArray[Any]:
        """Shape (rows,): int64, float64 with NaN for what was not measured, or object for texts; else KeyError."""
        column = next((column for column in in_data(self.columns) if column.key == key), None)
        if column is None or column.value is None:
            raise KeyError(f"{key}: the columns are {', '.join(self.keys())}")
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
    """What an evaluation found. ``tables`` and ``drawings`` have names; the first table is the main one.

    ``said`` are its findings, a sentence or a line each; ``compared`` figures beside published ones. ``arrays`` are
    larger data for scripts, by name; their shapes are told by the evaluation's module. What follows is filled in by
    ``opening``: the evaluation's name and question, what was looked at, and how to read it.
    """

    said: Sequence[str] = ()
    tables: Mapping[str, Table[Any]] = field(default_factory=dict)
    drawings: Mapping[str, Drawing] = field(default_factory=dict)
    compared: Sequence[Compared] = ()
    notes: Sequence[str] = ()
    """What is missing or doubtful."""
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    name: str = ""
    question: str = ""
    sources: Sequence[str] = ()
    """What was looked at, with the hardware."""
    reading: Sequence[str] = ()
    hardware: str = ""
    """What ours of ``compared`` are of; the evaluation says it where no trace does."""

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
            "published": [each.record() for each in self.compared],
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        return f"<Answer of {self.name}: tables {', '.join(self.tables)}; drawings {', '.join(self.drawings)}>"
