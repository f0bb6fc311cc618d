"""The list of runs as text and data: by command, with the findings of each run and its changes."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.conftest import ROOT, Command
from tui_probe.cli.main import main
from tui_probe.pages.trace_list import ListedRun
from tui_probe.trace.recent import TraceSummary
from tui_probe.trace.user_state import read_state, write_state
from tui_probe.verdicts import run_verdict
from tui_probe.verdicts.run_verdict import RunVerdict, VerdictCache

if TYPE_CHECKING:
    from collections.abc import Callable

    At = Callable[[str, int], Path]

DEMO = ROOT / "tests" / "data" / "h200" / "demo"
FOUND = "zero_fill: ! tail: SMs go idle in the last 39% of the launch"


@pytest.fixture
def at(tmp_path: Path) -> At:
    """A copy of a recorded trace in the folder of traces, whose log was written at a time."""

    def copied(name: str, seconds: int) -> Path:
        trace = tmp_path / "trace" / name
        shutil.copytree(DEMO, trace)
        os.utime(trace / "event.log", (seconds, seconds))
        return trace

    return copied


def test_runs_of_one_command_stand_together(command: Command, at: At, tmp_path: Path) -> None:
    at("Nov01_101010_1", 1_700_000_000)
    at("Nov02_101010_2", 1_700_000_100)
    settings = {"XDG_STATE_HOME": str(tmp_path / "state"), "TZ": "UTC"}
    text = command("list", environment=settings).stdout
    first, titles, _, newest, *remaining = text.splitlines()
    assert first.endswith("demo.py (2 runs)")
    assert titles.split() == ["when", "state", "kernels", "probe", "device", "trace"]
    assert newest.split()[:5] == ["2023-11-14", "22:15:00", "exit", "0", "7"]
    assert remaining[0].strip().startswith(FOUND[:60])
    assert text.count(FOUND[:60]) == 2
    assert sum("demo.py" in line for line in text.splitlines()) == 1
    record = json.loads(command("list", "trace", "--format", "json", environment=settings).stdout)
    ((runs),) = [command["runs"] for command in record["commands"]]
    assert [(run["when"], run["state"], run["kernels"], run["limit"]) for run in runs] == [
        (1_700_000_100, "exit 0", 7, None), (1_700_000_000, "exit 0", 7, None),
    ]  # fmt: skip
    assert all(run["verdict"].startswith(FOUND) for run in runs)


@pytest.mark.parametrize("cells", [60, 100, 400])
def test_paths_of_traces_are_never_cut(at: At, cells: int, command: Command) -> None:
    """They are there to be copied, also where there is no terminal."""
    traces = [at("Nov01_101010_1", 1_700_000_000), at(f"Nov02_101010_2{'x' * 80}", 1_700_000_100)]
    lines = command("list", "--", str(traces[0].parent), environment={"COLUMNS": str(cells)}).stdout.splitlines()
    for trace in traces:
        (line,) = (line for line in lines if line.endswith(str(trace)))
        assert ("exit 0" in line) == (cells == 400), "next to the run where there is room"


def test_only_the_folder_that_was_named(at: At, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    at("Nov01_101010_1", 1_700_000_000)
    assert main(["list", str(tmp_path / "trace")]) == 0
    assert "Nov01_101010_1" in capsys.readouterr().out
    assert main(["list", str(tmp_path / "none")]) == 4
    assert "is not a directory" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(["list", str(tmp_path / "empty")]) == 0
    assert capsys.readouterr().out.startswith("no traces yet; start with tui-probe run -- COMMAND")


def test_a_verdict_is_read_once_until_the_log_changes(at: At, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = at("Nov01_101010_1", 1_700_000_000)
    read: list[Path] = []
    real = run_verdict.open_trace
    monkeypatch.setattr(run_verdict, "open_trace", lambda directory: read.append(directory) or real(directory))
    for _ in range(2):
        verdicts = VerdictCache()
        assert verdicts.verdict_of(trace).sentence.startswith(FOUND)
        verdicts.keep()
    assert len(read) == 1
    os.utime(trace / "event.log", (1_700_000_001, 1_700_000_001))
    assert VerdictCache().verdict_of(trace).sentence.startswith(FOUND)
    assert len(read) == 2
    assert str(trace) in read_state(run_verdict.VERDICTS_FILE)
    assert not list(trace.rglob(run_verdict.VERDICTS_FILE)), "nothing is put into a trace"


@pytest.mark.parametrize("kept", ["", "[]", "{", '{"x": 1}', '{"%s": {"stamp": [1, 2], "told": 3}}', '{"%s": [[], 1]}'])
def test_damaged_verdict_cache_is_ignored(at: At, kept: str) -> None:
    trace = at("Nov01_101010_1", 1_700_000_000)
    write_state(run_verdict.VERDICTS_FILE, kept.replace("%s", str(trace)))
    assert VerdictCache().verdict_of(trace).sentence.startswith(FOUND)


@pytest.mark.parametrize("damage", ["result", "event.log"])
def test_a_run_that_cannot_be_read_found_nothing(at: At, damage: str) -> None:
    trace = at("Nov01_101010_1", 1_700_000_000)
    shutil.rmtree(trace / damage) if (trace / damage).is_dir() else (trace / damage).unlink()
    assert VerdictCache().verdict_of(trace).sentence == ""


def test_verdicts_before_interrupt_are_cached(at: At, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    newest = at("Nov02_101010_2", 1_700_000_100)
    at("Nov01_101010_1", 1_700_000_000)
    real = run_verdict.open_trace

    def interrupted(directory: Path) -> Any:
        if directory.name == "Nov01_101010_1":
            raise KeyboardInterrupt
        return real(directory)

    monkeypatch.setattr(run_verdict, "open_trace", interrupted)
    assert main(["list", str(tmp_path / "trace")]) == 130
    assert list(json.loads(read_state(run_verdict.VERDICTS_FILE))) == [str(newest)]


def run_of(verdict: RunVerdict | None, before: ListedRun | None = None, **more: Any) -> ListedRun:
    usual: dict[str, Any] = {"command": "./a", "probe": "dmat", "device": "H200", "kernels": 2, "status": 0}
    return ListedRun(TraceSummary(Path("/t"), 0.0, **usual | more), verdict, before)


@pytest.mark.parametrize(
    ("now", "more", "words"),
    [
        (RunVerdict("mm", "latency", "latency", 0.5, 2.0), {}, "mm 1.00 ms → 2.00 ms (+100.0%)"),
        (RunVerdict("mm", "latency", "latency", 0.5, 1.001), {}, "time unchanged"),
        (RunVerdict("mm", "memory 80%", "memory", 0.5, None), {}, "limiter latency → memory"),
        (RunVerdict("nn", "latency", "latency", 0.5, 2.0), {}, "most time: mm → nn"),
        (RunVerdict("nn", "! all idle"), {}, "was mm, 50% of the time: latency"),
        (RunVerdict("nn", "! all idle"), {"probe": "x"}, "probe dmat → x"),
        (RunVerdict("mm", "! all idle"), {}, "was latency"),
        (RunVerdict("mm", "! all idle"), {"probe": "x"}, "probe dmat → x"),
        (None, {"status": -9, "probe": "x"}, "exit 0 → signal 9; probe dmat → x"),
        (None, {"kernels": 3}, "kernels 2 → 3"),
        (None, {"is_running": True, "kernels": 1, "status": None}, ""),
        (RunVerdict(), {"probe": None}, ""),
    ],
)
def test_list_shows_change_against_previous_run(now: RunVerdict | None, more: dict[str, Any], words: str) -> None:
    before = run_of(RunVerdict("mm", "latency", "latency", 0.5, 1.0))
    assert run_of(now, before, **more).change == words
    assert before.change == ""
