"""The list of runs where no screen shows it, and what each run found."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import ROOT, Command
from tui_probe.pages import run_verdict
from tui_probe.pages.run_verdict import kept_verdict
from tui_probe.trace.state_folder import read_state

if TYPE_CHECKING:
    from collections.abc import Callable

DEMO = ROOT / "tests" / "data" / "h200" / "demo"
FOUND = "zero_fill: ! SMs run out of blocks for the last 39% of the launch"


@pytest.fixture
def at(tmp_path: Path) -> Callable[[str, int], Path]:
    """A copy of a recorded trace in the folder of traces, whose log was written at a time."""

    def copied(name: str, seconds: int) -> Path:
        trace = tmp_path / "trace" / name
        shutil.copytree(DEMO, trace)
        os.utime(trace / "event.log", (seconds, seconds))
        return trace

    return copied


def test_runs_of_one_command_stand_together(command: Command, at: Callable[[str, int], Path], tmp_path: Path) -> None:
    at("Nov01_101010_1", 1_700_000_000)
    at("Nov02_101010_2", 1_700_000_100)
    settings = {"XDG_STATE_HOME": str(tmp_path / "state"), "TZ": "UTC"}
    text = command("home", "--no-ui", environment=settings).stdout
    first, titles, _, newest, *rest = text.splitlines()
    assert first.endswith("demo.py")
    assert titles.split() == ["when", "state", "kernels", "probe", "device", "trace"]
    assert newest.split()[:5] == ["2023-11-14", "22:15:00", "exit", "0", "7"]
    assert rest[0].strip().startswith(FOUND[:60])
    assert text.count(FOUND[:60]) == 2
    assert sum("demo.py" in line for line in text.splitlines()) == 1
    record = json.loads(command("home", "--format", "json", environment=settings).stdout)
    ((runs),) = [each["runs"] for each in record["commands"]]
    assert [(run["when"], run["state"], run["kernels"]) for run in runs] == [
        (1_700_000_100, "exit 0", 7), (1_700_000_000, "exit 0", 7),
    ]  # fmt: skip
    assert all(run["found"].startswith(FOUND) for run in runs)


def test_without_traces_it_says_how_to_begin(command: Command, tmp_path: Path) -> None:
    result = command("home", "--no-ui", environment={"XDG_STATE_HOME": str(tmp_path / "state")})
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("no traces yet: tui-probe run -- COMMAND")


def test_a_verdict_is_read_once_until_the_log_changes(
    at: Callable[[str, int], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = at("Nov01_101010_1", 1_700_000_000)
    read: list[Path] = []
    real = run_verdict.open_trace
    monkeypatch.setattr(run_verdict, "open_trace", lambda directory: read.append(directory) or real(directory))
    assert kept_verdict(trace).startswith(FOUND)
    assert kept_verdict(trace).startswith(FOUND)
    assert len(read) == 1
    os.utime(trace / "event.log", (1_700_000_001, 1_700_000_001))
    assert kept_verdict(trace).startswith(FOUND)
    assert len(read) == 2
    assert str(trace) in read_state(run_verdict.FILE)
    assert not [path for path in trace.rglob("*") if path.name == run_verdict.FILE], "nothing is put into a trace"


@pytest.mark.parametrize("damage", ["result", "event.log"])
def test_a_run_that_cannot_be_read_found_nothing(at: Callable[[str, int], Path], damage: str) -> None:
    trace = at("Nov01_101010_1", 1_700_000_000)
    shutil.rmtree(trace / damage) if (trace / damage).is_dir() else (trace / damage).unlink()
    assert kept_verdict(trace) == ""
