"""Files of a kernel: written and read whole, and process.log in pieces."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tui_probe.engine.kernel_texts import ProcessLog
from tui_probe.engine.whole_files import read_file, write_file


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 5000])
def test_written_files_are_read(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"something longer that was there before " * 3)
    write_file(path, data)
    assert read_file(path) == path.read_bytes() == data


def test_a_disk_that_takes_and_gives_few_bytes_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, read = os.write, os.read
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:7]))
    monkeypatch.setattr(os, "read", lambda descriptor, size: read(descriptor, min(size, 5)))
    write_file(tmp_path / "file", b"written in five pieces, read in seven")
    assert read_file(tmp_path / "file") == b"written in five pieces, read in seven"


def test_errors_name_the_file(tmp_path: Path) -> None:
    missing = tmp_path / "no" / "file"
    for call in (lambda: read_file(missing), lambda: write_file(missing, b"")):
        with pytest.raises(FileNotFoundError) as raised:
            call()
        assert Path(raised.value.filename) == missing


def test_a_log_takes_the_place_of_an_old_one_and_goes_on_after_its_block(tmp_path: Path) -> None:
    path = tmp_path / "process.log"
    path.write_text("of an earlier run\n")
    with ProcessLog(path) as log:
        log.write("first\n\n")
        assert path.read_text() == "first\n"
        log.write("no \udcff text")
    log.write("later")
    assert path.read_text() == "first\nno ? text\nlater\n"


def test_a_log_is_not_open_after_its_block(tmp_path: Path) -> None:
    before = descriptors()
    with ProcessLog(tmp_path / "process.log") as log:
        log.write("first")
        assert len(descriptors()) == len(before) + 1
    log.write("later")
    assert descriptors() == before


def descriptors() -> set[str]:
    """The open descriptors of this process, including the one of the folder that lists them."""
    return {path.name for path in Path("/proc/self/fd").iterdir()}
