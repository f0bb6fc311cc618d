"""Watching a run that someone else started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.patience import HANG
from tests.trace.test_follow import WAITING, waiting_process
from tests.ui.conftest import on_stage
from tests.ui.synthetic import TraceWriter, example
from tests.ui.terminal import Terminal
from tests.ui.test_pty import CTRL_C, CTRL_Q, assert_restored
from tui_probe.ui.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WATCH = [sys.executable, "-m", "tui_probe", "watch"]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], TraceWriter]]:
    """A process that waits, and the trace that it seems to write, next to one that ended long ago."""
    example(tmp_path / "traces" / "Nov20_101010_1")
    with waiting_process() as process:
        trace = TraceWriter(tmp_path / "traces" / "Nov21_101010_2", process.pid, " ".join(WAITING))
        trace.kernel("first_of_the_run")
        yield process, trace


def end(process: subprocess.Popen[bytes], trace: TraceWriter) -> None:
    assert process.stdin is not None
    process.stdin.write(b"\n")
    process.stdin.flush()
    process.wait()
    trace.exit()
    record = {"version": 1, "ended": "2023-11-14T22:13:23+00:00", "exit_status": 0, "command": WAITING}
    (trace.directory / "run.json").write_text(json.dumps(record))


async def test_watch_follows_reports_end_and_touches_nothing(
    running: tuple[subprocess.Popen[bytes], TraceWriter],
) -> None:
    process, trace = running
    async with on_stage(Session(traces=(trace.directory,), watching=True)) as stage:
        assert "watching" in stage.text
        assert "● running" in stage.text
        assert "Ctrl-C" not in stage.text
        await stage.press("ctrl+c")
        assert "watch cannot end the run" in stage.text
        assert process.poll() is None
        trace.kernel("came_later")
        await stage.refresh()
        assert "came_later" in stage.text
        end(process, trace)
        await stage.refresh()
        assert "the run has ended" in stage.text
        assert "✔ exit 0" in stage.text


@pytest.mark.parametrize("watching", [True, False])
async def test_other_processes_of_the_run_are_shown_as_they_come(
    running: tuple[subprocess.Popen[bytes], TraceWriter], watching: bool
) -> None:
    _, trace = running
    async with on_stage(Session(traces=(trace.directory,), watching=watching)) as stage:
        for name in ("Nov21_101011_3", "Nov21_101011_4"):
            example(trace.directory.parent / name)
        names = ["Nov21_101011_3", trace.directory.name, "Nov21_101011_4", "../elsewhere", "missing"]
        (trace.directory / "run.json").write_text(json.dumps({"version": 1, "processes": names}))
        await stage.refresh()
        await stage.refresh()
        assert "process 1 of 3" in stage.text
        await stage.press("right_parenthesis", "right_parenthesis")
        assert "zero_fill" in stage.text


async def test_one_that_ended_before_says_so(trace: TraceWriter) -> None:
    trace.exit()
    async with on_stage(Session(traces=(trace.directory,), watching=True)) as stage:
        assert "has already ended" in stage.text
        await stage.press("ctrl+c")
        assert "no program is running here" in stage.text


def test_on_a_terminal(running: tuple[subprocess.Popen[bytes], TraceWriter]) -> None:
    process, trace = running
    with Terminal([*WATCH, str(trace.directory.parent)], (100, 30)) as terminal:
        terminal.wait("first_of_the_run")
        terminal.type(CTRL_C)
        terminal.wait("watch cannot end the run")
        terminal.resize(80, 24)
        terminal.wait("9 Log")
        trace.kernel("came_later")
        terminal.wait("came_later")
        end(process, trace)
        terminal.wait("✔ exit 0")
        terminal.type(CTRL_Q)
        assert terminal.wait_for_end() == 0
        assert_restored(terminal)


def watch(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*WATCH, *words], cwd=folder, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG,
    )  # fmt: skip


def test_without_a_terminal_it_reports(running: tuple[subprocess.Popen[bytes], TraceWriter]) -> None:
    _, trace = running
    done = watch(trace.directory.parent.parent, "traces")
    assert done.returncode == 0
    assert "first_of_the_run" in done.stdout
    assert done.stderr == "[info] still running: traces/Nov21_101010_2\n"


def test_watch_without_active_run_names_newest(tmp_path: Path) -> None:
    example(tmp_path / "trace" / "Nov20_101010_1")
    done = watch(tmp_path)
    assert done.returncode == 4
    assert done.stderr.endswith("no active run in trace; the newest ended run: tui-probe open trace/Nov20_101010_1\n")


async def test_a_process_with_a_long_log_keeps_none_waiting(
    trace: TraceWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was never read is begun with only while there is time; what continues is read each time."""
    monkeypatch.setattr("tui_probe.ui.live.feed.MAX_POLL_SECONDS", 0)
    others = [example(tmp_path / f"Nov21_101011_{number}").directory for number in (1, 2)]
    async with on_stage(Session(traces=(trace.directory, *others))) as stage:
        for read in ([True, False, False], [True, True, False]):
            assert [process.trace is not None for process in stage.app.feed.latest.processes] == read
            trace.kernel(f"late_{len(trace.kernels)}")
            await stage.refresh()
            assert f"late_{len(trace.kernels) - 1}" in stage.text


def test_watch_waits_for_first_kernel(tmp_path: Path) -> None:
    example(tmp_path / "trace" / "Nov20_101010_1")
    with waiting_process() as process:
        (tmp_path / "trace" / f".run-{process.pid}").mkdir()
        done = watch(tmp_path)
        assert done.returncode == 4
        assert "no kernel launched yet" in done.stderr
        with Terminal([*WATCH, "trace"], (100, 30), folder=tmp_path) as terminal:  # a long path would break the line
            terminal.wait("waiting for its first kernel launch")
            trace = TraceWriter(tmp_path / "trace" / "Nov21_101010_2", process.pid, " ".join(WAITING))
            trace.kernel("first_of_the_run")
            terminal.wait("first_of_the_run")
            terminal.type(CTRL_C)
            terminal.wait(f"kill -INT {process.pid}")
            terminal.type(CTRL_Q)
            assert terminal.wait_for_end() == 0
