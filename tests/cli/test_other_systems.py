"""Commands that only read, on systems without the modules and calls of Linux."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import HANG
from tests.recorded import DATA, H200
from tui_probe.trace.plain_file import open_flags, read_at, read_into

from .conftest import ROOT

DEMO, BYTES = H200 / "demo", H200 / "demo_bytes"
COMMANDS = (
    f"report {DEMO}",
    f"show timeline {DEMO}:softmax",
    f"compare {DEMO} {BYTES}",
    f"open {BYTES}",
    f"import ncu {DATA / 'ncu' / 'vec_metrics.csv'}",
    "eval scheduling",
    "help install",
)


def test_reading_commands_need_nothing_that_windows_lacks(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.cli.without_posix", *COMMANDS]
    variables = os.environ | {"PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        command, cwd=tmp_path, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG
    )
    assert result.stdout.splitlines() == [f"0 {command.split()[0]}" for command in COMMANDS], result.stderr


def test_read_at_leaves_the_position(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    with (tmp_path / "file").open("rb", buffering=0) as file:
        buffer = bytearray(4)
        assert read_at(file.fileno(), 3, 2) == b"234"
        assert read_into(file.fileno(), memoryview(buffer), 8) == 2
        assert bytes(buffer[:2]) == b"89"
        assert read_at(file.fileno(), 3, 10) == b""
        assert file.tell() == 0


def test_open_flags_keep_bytes_where_the_system_would_change_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "O_BINARY", 0x8000, raising=False)
    monkeypatch.delattr(os, "O_NOFOLLOW")
    assert open_flags("O_WRONLY", "O_NOFOLLOW") == os.O_WRONLY | 0x8000
