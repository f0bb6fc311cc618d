"""Tables of an sqlite file that another program wrote: opened for reading alone, columns that may be missing."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.errors import ImportFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray


_AT_ONCE: Final = 10_000
"""Rows between two words of how far reading is."""


class Tables:
    """The tables of one file. Every error of sqlite becomes an ImportFileError that names the file."""

    def __init__(
        self, path: Path, connection: sqlite3.Connection, progress: Callable[[float], object] = lambda _: None
    ) -> None:
        self.path = path
        self._progress = progress
        self._read = self._expected = 0
        """Rows: those that were read, and those of all tables that will be."""
        self._connection = connection
        found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        self.names = {str(name) for (name,) in found}

    def columns_of(self, table: str) -> set[str]:
        """The names of a table's columns; none if there is no such table."""
        if table not in self.names:
            return set()
        return {str(row[1]) for row in self._connection.execute(f'PRAGMA table_info("{table}")')}

    def expect(self, tables: Iterable[str]) -> None:
        """These tables will be read: how far that is, is told by their rows."""
        for table in self.names & {*tables}:
            with suppress(sqlite3.Error, TypeError):  # a table without row numbers
                (last,) = self._connection.execute(f'SELECT max(rowid) FROM "{table}"').fetchone()
                self._expected += last or 0

    def rows(self, table: str, wanted: Mapping[str, object], order: str | None = None) -> list[tuple[Any, ...]]:
        """All rows of a table: the columns ``wanted``, by name, with what stands for a missing one.

        ``...`` marks a column that has to be there; without it ImportFileError says which. No table, no rows.
        """
        there = self.columns_of(table)
        if not there:
            return []
        for column, default in wanted.items():
            if column not in there and default is ...:
                raise ImportFileError(f"{self.path}: table {table} has no column {column}: export it with a newer nsys")
        values, standing_in = [], []
        for column, default in wanted.items():
            name = f'"{column}"' if column in there else "NULL"
            values.append(name if default is ... else f"coalesce({name}, ?)")
            standing_in += [] if default is ... else [default]
        ordered = f' ORDER BY "{order}"' if order in there else ""
        cursor = self._connection.execute(f'SELECT {", ".join(values)} FROM "{table}"{ordered}', standing_in)
        rows = []
        while some := cursor.fetchmany(_AT_ONCE):
            rows += some
            self._read += len(some)
            self._progress(min(1.0, self._read / max(self._expected, 1)))
        return rows

    def integers(self, table: str, wanted: Mapping[str, object], order: str | None = None) -> dict[str, NDArray[Any]]:
        """Columns of integers (i8) by name."""
        rows = self.rows(table, wanted, order)
        try:
            values = np.array(rows, dtype=np.int64).reshape(len(rows), len(wanted))
        except (TypeError, ValueError, OverflowError) as error:
            raise ImportFileError(self.no_number(table, error)) from error
        return {name: np.ascontiguousarray(values[:, i]) for i, name in enumerate(wanted)}

    def no_number(self, table: str, error: Exception) -> str:
        """What to say of a table with a cell that should be a whole number and is none."""
        return (
            f"{self.path}: table {table} holds what is not a whole number ({error}), so the file is damaged or was"
            " changed: export the report again with nsys export --type sqlite REPORT"
        )


@contextmanager
def open_tables(path: Path, progress: Callable[[float], object] = lambda _: None) -> Iterator[Tables]:
    """The tables of a file, for as long as the block lasts."""
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    except (sqlite3.Error, ValueError) as error:
        raise ImportFileError(f"{path}: {error}: name an sqlite file that can be read") from error
    try:
        connection.text_factory = _text
        connection.execute("PRAGMA trusted_schema = OFF")
        yield Tables(path, connection, progress)
    except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
        # Where sqlite's own complaint quotes bytes of the file, Python raises UnicodeDecodeError in the place of it.
        raise ImportFileError(
            f"{path}: not an sqlite export that can be read ({error}): make one with nsys export --type sqlite REPORT"
        ) from error
    finally:
        connection.close()


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
