"""Tables of an sqlite file that another program wrote: columns may be missing, rows may be damaged.

SQLite opens the file read-only and immutable: it takes no lock and makes no file. So changes that are still in a file
next to it are missing, and a file that changes meanwhile is misread; both are errors here.
"""

from __future__ import annotations

import os
import shlex
import sqlite3
from array import array
from contextlib import closing, contextmanager, suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tui_probe.errors import ImportFileError
from tui_probe.input_limits import BYTES_PER_ROW, SQLITE_VALUE
from tui_probe.trace.plain_file import open_plain, read_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray


_ROWS_PER_CHUNK: Final = 10_000
"""Rows that are read at a time."""
_INT32: Final = np.iinfo(np.int32)
_JOURNAL_MARK: Final = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
"""Start of a journal that is in use; SQLite clears it after the change."""
_MAX_TEXT_RATIO: Final = 4
"""Times the size of a file that the texts of one table may have: UTF-16 in the file grows to UTF-8, columns repeat."""


class Cell(NamedTuple):
    """A required column: it or one of ``alternatives``, which also replace its NULL cells; then
    ``null`` does.
    """

    null: object
    alternatives: tuple[str, ...] = ()


class Tables:
    """The tables of one file. Every error of sqlite becomes an ImportFileError that names the file."""

    def __init__(
        self, path: Path, connection: sqlite3.Connection, size: int, progress: Callable[[float], object]
    ) -> None:
        self.path = path
        self._size = size
        self._text_bytes = 0
        """Bytes of text in the rows of the table that is being read."""
        self._progress = progress
        self._rows_read = self._rows_expected = 0
        """Rows: those that were read, and those of all tables that will be."""
        self._connection = connection
        connection.text_factory = self._decode_text
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        self.names = {str(name) for (name,) in tables}

    def columns_of(self, table: str) -> set[str]:
        """The names of a table's columns; none if there is no such table."""
        if table not in self.names:
            return set()
        return {str(row[1]) for row in self._connection.execute(f'PRAGMA table_info("{table}")')}

    def expect(self, tables: Iterable[str]) -> None:
        """Add the rows of tables that will be read to the total of the progress."""
        for table in self.names & {*tables}:
            with suppress(sqlite3.Error, TypeError):  # a table without row numbers
                (last_row,) = self._connection.execute(f'SELECT max(rowid) FROM "{table}"').fetchone()
                self._rows_expected += last_row or 0

    def rows(self, table: str, defaults: Mapping[str, object], condition: str = "") -> list[tuple[Any, ...]]:
        """All rows of a table at the same time, as ``chunks`` yields them."""
        return [*chain.from_iterable(self.chunks(table, defaults, condition))]

    def chunks(
        self, table: str, defaults: Mapping[str, object], condition: str = ""
    ) -> Iterator[list[tuple[Any, ...]]]:
        """The rows of a table, some at a time: the columns ``defaults``, by name, with what stands for a missing one.

        ``...`` and a ``Cell`` mark a column that has to be there; without it ImportFileError names it. No table, no
        rows. Their order is any; ``condition`` is a condition of SQL.
        """
        present = self.columns_of(table)
        if not present:
            return
        values, parameters = [], []
        for column, default in defaults.items():
            cell = default if isinstance(default, Cell) else Cell(default)
            names = [f'"{name}"' for name in (column, *cell.alternatives) if name in present]
            if not names and (default is ... or cell is default):
                raise ImportFileError(f"{self.path}: table {table} has no column {column}; export it with a newer nsys")
            values.append(names[0] if default is ... else f"coalesce({', '.join(names or ['NULL'])}, ?)")
            parameters += [] if default is ... else [cell.null]
        where_clause = f" WHERE {condition}" if condition else ""
        cursor = self._connection.execute(f'SELECT {", ".join(values)} FROM "{table}"{where_clause}', parameters)
        count = self._text_bytes = 0
        while rows := cursor.fetchmany(_ROWS_PER_CHUNK):
            count += len(rows)
            if count > self._size // BYTES_PER_ROW:
                raise ImportFileError(self._damage_text(table))
            self._rows_read += len(rows)
            self._progress(min(1.0, self._rows_read / max(self._rows_expected, 1)))
            yield rows

    def integers(self, table: str, defaults: Mapping[str, object], condition: str = "") -> dict[str, NDArray[Any]]:
        """Columns of integers by name: of 32 bits where all fit, which is most of a long table."""
        parts: list[list[NDArray[Any]]] = [[] for _ in defaults]
        for numbers in self.numbers(table, defaults, condition):
            for part, column in zip(parts, numbers.T, strict=True):
                part.append(narrow_column(column))
        return {name: _concatenate(parts[i]) for i, name in enumerate(defaults)}

    def numbers(self, table: str, defaults: Mapping[str, object], condition: str = "") -> Iterator[NDArray[np.int64]]:
        """The rows of a table of integers, some at a time: (rows, wanted)."""
        for rows in self.chunks(table, defaults, condition):
            try:
                numbers = array("q", chain.from_iterable(rows))
            except (TypeError, ValueError, OverflowError) as error:
                raise ImportFileError(self.not_integer_text(table, error)) from error
            yield np.frombuffer(numbers, dtype=np.int64).reshape(len(rows), len(defaults))

    def _decode_text(self, raw: bytes) -> str:
        self._text_bytes += len(raw)
        if self._text_bytes > _MAX_TEXT_RATIO * self._size:
            raise sqlite3.DataError("its strings are longer than the file")
        return raw.decode("utf-8", "replace")

    def _damage_text(self, table: str) -> str:
        return (
            f"{self.path}: table {table} has more rows than fit into the file, so the file is damaged; export it again"
        )

    def not_integer_text(self, table: str, error: Exception) -> str:
        """Return the error text for a table with a cell that should be a whole number and is not."""
        return (
            f"{self.path}: table {table} has a value that is not an integer ({error}), so the file is damaged or was"
            " changed; export the report again with nsys export --type sqlite REPORT"
        )


@contextmanager
def open_tables(path: Path, progress: Callable[[float], object] = lambda _: None) -> Iterator[Tables]:
    """Open the tables of a file, for as long as the block lasts. The file has to stay as it is meanwhile."""
    status = _refuse_unfinished(path)
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    except (sqlite3.Error, ValueError) as error:
        raise ImportFileError(f"{path}: {error}; pass a readable sqlite file") from error
    try:
        with closing(connection):
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, SQLITE_VALUE.maximum)
            yield Tables(path, connection, status.st_size, progress)
    except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
        # Where sqlite's own complaint quotes bytes of the file, Python raises UnicodeDecodeError instead of it.
        _refuse_changed(path, status)
        raise ImportFileError(
            f"{path}: not a readable sqlite export ({error}); make an export with nsys export --type sqlite REPORT"
        ) from error
    _refuse_changed(path, status)


def _refuse_unfinished(path: Path) -> os.stat_result:
    """Raise ImportFileError if changes are missing in the file: they are in a log or a journal next to it."""
    try:
        with open_plain(path) as file:
            status = os.fstat(file.fileno())
        real = path.resolve()
        log, journal = (real.with_name(real.name + suffix) for suffix in ("-wal", "-journal"))
        if log.exists() and log.stat().st_size:
            change = log
        elif journal.exists() and read_plain(journal, len(_JOURNAL_MARK)) == _JOURNAL_MARK:
            change = journal
        else:
            return status
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ImportFileError(f"{path}: {reason}; pass a readable sqlite file") from error
    complete = f"sqlite3 {shlex.quote(str(path))} 'PRAGMA wal_checkpoint(TRUNCATE)'"
    raise ImportFileError(
        f"{path}: incomplete, because {change.name} has further changes. Wait until the export has ended. If no"
        f" program is writing the file, export the report again, or complete the file with {complete}"
    )


def _refuse_changed(path: Path, status: os.stat_result) -> None:
    try:
        new_status = path.stat()
    except OSError as error:
        raise ImportFileError(f"{path} was removed while it was being read ({error.strerror})") from error
    if (new_status.st_ino, new_status.st_size, new_status.st_mtime_ns) != (
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
    ):
        raise ImportFileError(f"{path}: changed while it was being read; import it again after the export has ended")


def narrow_column(column: NDArray[np.int64]) -> NDArray[Any]:
    """Return the numbers in 32 bits, if they fit."""
    if not len(column):
        return column
    fits = _INT32.min <= column.min() and column.max() <= _INT32.max
    return column.astype(np.int32) if fits else column.copy()


def _concatenate(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """The parts as one column; the list is emptied, since both of a long table take much memory."""
    column = np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
    parts.clear()
    return column
