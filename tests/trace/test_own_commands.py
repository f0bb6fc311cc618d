"""A command is one's own if this user has run it; what a trace says of itself does not count."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_probe.trace import user_state
from tui_probe.trace.run_info import RunInfo, rerun_command
from tui_probe.trace.user_state import is_own_command, remember_command, state_file

INFO = RunInfo(command=("python", "train.py"), cwd="/home/ada", probe="block_sched")


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def remember(info: RunInfo) -> None:
    remember_command(info.command, info.cwd or "", info.probe or "")


def test_is_own_command_after_run() -> None:
    assert not is_own_command(INFO)
    remember(INFO)
    assert is_own_command(INFO)
    for other in ({"command": ("python", "train.py", "")}, {"cwd": "/tmp"}, {"probe": "./x"}):
        assert not is_own_command(replace(INFO, **other))  # type: ignore[arg-type]
    assert not is_own_command(RunInfo())


def test_remember_command_keeps_each_once_and_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_state, "MAX_COMMANDS", 4)
    runs = [replace(INFO, cwd=f"/{number}") for number in range(20)]
    for info in runs:
        remember(info)
        remember(info)
        assert len(state_file("commands").read_text().splitlines()) <= 8
    assert all(map(is_own_command, runs[-4:]))
    assert not is_own_command(runs[0])


def test_remember_command_without_state_folder(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    remember(INFO)
    assert not is_own_command(INFO)


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12), max_size=4))
def test_command_of_is_visible_and_exact(words: list[str]) -> None:
    """A shell reads it the same way: every escape is one of bash."""
    shown = rerun_command(RunInfo(command=("x", *words), probe=""), ["-p", "a"])
    assert shown.isprintable()
    assert shown.startswith("tui-probe run -p a -- x")


def test_command_of_is_read_by_bash() -> None:
    arguments = ["a b", "it's\r\\x", "\x1b[201~", "\u202e", "caf\u00e9\n'", "\udcff", ""]
    shown = rerun_command(RunInfo(command=("x", *arguments), probe=""), [])
    script = f"tui-probe() {{ printf '%s\\0' \"$@\"; }}; {shown}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True)
    assert done.stdout.decode("utf-8", "surrogateescape").split("\0")[3:-1] == arguments
