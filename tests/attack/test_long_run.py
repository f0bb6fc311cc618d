"""The long run, for a few seconds."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.attack import long_run


def test_kills_of_engine_watcher_and_screen_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_run, "MOST_GROWTH", 40 << 20)  # each is at its start all along
    run = long_run.LongRun(tmp_path, 9.0, 200, random.Random(3))
    assert run.go() == []
    assert run.kills["engine"]
    assert run.kills["watcher"]


def test_long_run_reports_problems(tmp_path: Path) -> None:
    file = tmp_path / "100.000001.bin"
    file.write_bytes(b"short")
    (problem,) = long_run.unreadable(file, 5)
    assert problem.startswith(str(file))
    run = long_run.LongRun(tmp_path, 9.0, 200, random.Random(0))
    run.memory["engine"] = [
        long_run.Memory(7, [4 << 20, 10 << 20, 11 << 20]),
        long_run.Memory(8, [8 << 20, 10 << 20, 16 << 20]),
    ]
    (problem,) = run._too_large()
    assert problem.startswith("engine 8 grew by 6.3 MB")
