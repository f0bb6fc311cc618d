"""Opening imported files: nothing is written next to them, and a small file costs little."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from tests.attack.test_memory import bounded
from tests.importers.export import call, kernel, tables, write_export
from tests.importers.files import real
from tui_probe.errors import ImportFileError
from tui_probe.input_limits import LINE_OF_CSV, SQLITE_VALUE
from tui_probe.nsight.importers.ncu import read_ncu
from tui_probe.nsight.importers.nsys import read_nsys
from tui_probe.nsight.importers.sqlite_tables import open_tables


def export(path: Path) -> Path:
    return write_export(path, tables([kernel(100, 150, 1)], [call(10, 12, 1)], []))


def in_wal_mode(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = wal")
    return connection


@pytest.mark.parametrize("name", ["a.sqlite", "why? 100% #1 &mode=rwc.sqlite", "\udcff.sqlite"], ids=ascii)
def test_open_tables_leaves_no_file(tmp_path: Path, name: str) -> None:
    path = export(tmp_path / "made.sqlite")
    in_wal_mode(path).close()
    path = path.rename(tmp_path / name)
    before = path.read_bytes(), path.stat().st_mtime_ns
    assert len(read_nsys([path]).kernels) == 1
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_open_tables_refuses_unfinished_log(tmp_path: Path) -> None:
    path = export(tmp_path / "run.sqlite")
    writer = in_wal_mode(path)
    writer.execute("INSERT INTO StringIds VALUES (9, 'late')")
    writer.commit()
    link = tmp_path / "link.sqlite"
    link.symlink_to(path)
    for named in (path, link):
        with pytest.raises(ImportFileError, match=r"run\.sqlite-wal has further changes\. Wait until the exp"):
            read_nsys([named])
    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert len(read_nsys([path]).kernels) == 1
    writer.close()


def test_open_tables_refuses_journal_in_use(tmp_path: Path) -> None:
    path = export(tmp_path / "run.sqlite")
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA journal_mode = persist")
    writer.execute("PRAGMA cache_size = 1")
    writer.execute("BEGIN")
    writer.execute("CREATE TABLE big (x)")
    writer.executemany("INSERT INTO big VALUES (?)", [("x" * 100,)] * 1000)
    writer.execute("UPDATE StringIds SET value = 'x' || value")
    with pytest.raises(ImportFileError, match=r"run\.sqlite-journal has further changes"):
        read_nsys([path])
    writer.execute("ROLLBACK")
    writer.close()
    assert (tmp_path / "run.sqlite-journal").exists()
    assert len(read_nsys([path]).kernels) == 1


def test_open_tables_reports_change_while_reading(tmp_path: Path) -> None:
    path = export(tmp_path / "run.sqlite")
    with pytest.raises(ImportFileError, match="changed while it was being read"), open_tables(path):
        os.truncate(path, path.stat().st_size + 4096)


def test_long_value_of_sqlite_is_refused(tmp_path: Path) -> None:
    path = export(tmp_path / "x.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE StringIds SET value = hex(zeroblob(?))", (SQLITE_VALUE.maximum,))
    connection.close()
    with pytest.raises(ImportFileError, match="too big"):
        read_nsys([path])


def test_pages_of_sqlite_in_circle_are_refused(tmp_path: Path) -> None:
    """An interior page whose children are all the same leaf has many more rows than the file has bytes."""
    path = tmp_path / "x.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA page_size = 4096")
        connection.execute("CREATE TABLE StringIds (id, value)")
        connection.executemany("INSERT INTO StringIds VALUES (?, NULL)", [(i,) for i in range(100_000)])
    root = connection.execute("SELECT rootpage FROM sqlite_master").fetchone()[0]
    connection.close()
    data = bytearray(path.read_bytes())
    start = (root - 1) * 4096
    cells = int.from_bytes(data[start + 3 : start + 5], "big")
    places = [start + int.from_bytes(data[start + 12 + 2 * i :][:2], "big") for i in range(cells)]
    for place in places:  # all children become the first one; so do those of a copy of the root
        data[place : place + 4] = data[places[0] : places[0] + 4]
    copy = bytes(data[start : start + 4096])
    data += copy
    for place in places:
        data[place : place + 4] = (len(data) // 4096).to_bytes(4, "big")
    data[28:32] = (len(data) // 4096).to_bytes(4, "big")
    path.write_bytes(data)
    with open_tables(path) as found, pytest.raises(ImportFileError, match="more rows than fit into the file"):
        found.rows("StringIds", {"id": ..., "value": None})


@pytest.mark.parametrize("read", [read_ncu, read_nsys])
@pytest.mark.parametrize("heading", ["", "ncu/vec_metrics.csv"], ids=["empty", "table"])
def test_sparse_file_costs_little(tmp_path: Path, read: object, heading: str) -> None:
    path = tmp_path / "sparse.csv"
    path.write_bytes(real(tmp_path, heading).read_bytes() if heading else b"")
    os.truncate(path, 1 << 29)
    with bounded(150, 60), pytest.raises(ImportFileError, match=r"line \d+ has more than 16 MiB"):
        read([path])  # type: ignore[operator]


def test_line_within_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    row = real(tmp_path, "ncu/vec_metrics.csv").read_text()
    path.write_text("x" * (LINE_OF_CSV.maximum - 1) + "\n" + row)
    assert len(read_ncu([path])) == len(read_ncu([real(tmp_path, "ncu/vec_metrics.csv")]))


@pytest.mark.parametrize("read", [read_ncu, read_nsys])
def test_pipe_is_refused(tmp_path: Path, read: object) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(ImportFileError, match="not a regular file"):
        read([tmp_path / "pipe.csv"])  # type: ignore[operator]
