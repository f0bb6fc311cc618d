"""Content of the trace directories of a run."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tui_probe.errors import LaunchError
from tui_probe.launcher.run_traces import TRACE_NAME, RunNotes, TraceWatch, stamp_of
from tui_probe.launcher.spool import Spool

from .test_signals import kill_engine, wait_for_next_engine

if TYPE_CHECKING:
    from .conftest import Runner

Script = Callable[[str], list[str]]


@pytest.fixture
def launching(tool: Runner) -> Runner:
    tool.environment["FAKE_LAUNCHES"] = "*"
    return tool


def announced(stderr: bytes) -> list[str]:
    """The trace directories that were announced, as the seeds read them."""
    lines = stderr.decode().splitlines()
    assert all(line.startswith("[info] trace in ") for line in lines), lines
    return [line.strip().split(" ")[-1] for line in lines]


def record_of(trace: Path) -> dict[str, object]:
    record = json.loads((trace / "run.json").read_text())
    assert isinstance(record, dict)
    return record


def test_a_trace_holds_the_output_and_the_record(launching: Runner, script: Script) -> None:
    command = script("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    result = launching.run(command, "--tracedir", "t/u", "-k", "a:b", "--max-trace-bytes", "2M")
    first, *remaining = result.stderr.decode().splitlines()
    trace = launching.folder / first.split()[-1]
    assert remaining == ["err"]
    assert '"block_sched": np.dtype(' in (trace / "read.py").read_text()
    assert (trace / "stdout.log").read_text() == "out\n"
    assert (trace / "stderr.log").read_text() == "err\n"
    record = record_of(trace)
    assert record["version"] == 1
    assert record["command"] == command
    assert record["cwd"] == str(launching.folder)
    assert (record["exit_status"], record["signal"]) == (3, None)
    assert record["probe"] == "block_sched"
    assert record["processes"] == [trace.name]
    assert record["driver"] == {
        "path": launching.environment["TUI_PROBE_NATIVE"] + "/sim/libcuda.so.1",
        "simulated": True,
    }
    options = record["options"]
    assert isinstance(options, dict)
    assert (options["kernels"], options["max_trace_bytes"], options["benchmark"]) == ("a:b", 2 << 20, False)
    assert datetime.fromisoformat(str(record["started"])) <= datetime.fromisoformat(str(record["ended"]))
    assert list((launching.folder / "t/u").iterdir()) == [trace]


def test_a_running_trace_can_be_read(launching: Runner, script: Script) -> None:
    command = script("import os, sys; print('early', flush=True); sys.stdin.readline(); os.kill(os.getpid(), 9)")
    with launching.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        trace = launching.folder / process.stderr.readline().decode().split()[-1]
        process.stdout.readline()
        while not (trace / "run.json").exists():
            os.sched_yield()
        assert record_of(trace)["ended"] is None
        assert (trace / "stdout.log").read_text() == "early\n"
        process.stdin.close()
        process.wait()
        assert record_of(trace)["signal"] == signal.SIGKILL
        assert record_of(trace)["exit_status"] is None


def test_every_process_is_announced_and_has_the_output(launching: Runner) -> None:
    result = launching.run(["sh", "-c", f"{sys.executable} -c 'print(1)'; {sys.executable} -c 'print(2)'; exit 0"])
    traces = [launching.folder / name for name in announced(result.stderr)]
    assert len(traces) == 3
    for trace in traces:
        assert (trace / "stdout.log").read_text() == "1\n2\n"
        assert record_of(trace)["processes"] == [trace.name for trace in traces]


def test_command_whose_children_launch_kernels(tool: Runner) -> None:
    tool.environment["FAKE_LAUNCHES"] = "python"
    result = tool.run(["sh", "-c", f"{sys.executable} -c 'print(1)'; exit 0"])
    (line,) = result.stderr.decode().splitlines()
    assert line.startswith("[info] trace in trace/")
    assert (tool.folder / line.split()[-1]).is_dir()


def test_trace_line_precedes_output_after_first_launch(launching: Runner, script: Script) -> None:
    result = launching.run(script("import sys; sys.stderr.write('mine\\n')"))
    first, second = result.stderr.decode().splitlines()
    assert (launching.folder / first.split()[-1]).is_dir()
    assert second == "mine"


def test_nothing_is_left_of_a_run_without_kernels(tool: Runner) -> None:
    tool.run(["true"])
    assert not (tool.folder / "trace").exists()
    (tool.folder / "trace").mkdir()
    tool.run(["true"])
    assert list((tool.folder / "trace").iterdir()) == []


def test_a_trace_root_that_cannot_be_made(tool: Runner) -> None:
    (tool.folder / "trace").write_text("a file")
    result = tool.run(["true"])
    assert result.returncode == 1
    assert b"choose another place with --tracedir" in result.stderr


def test_a_target_that_moves_its_traces_away(launching: Runner) -> None:
    result = launching.run(["sh", "-c", "sleep 0.3; mv trace elsewhere; cd /; sleep 0.3; echo done; exit 4"])
    assert (result.returncode, result.stdout) == (4, b"done\n")


def test_the_engines_death_does_not_stop_the_target(launching: Runner, script: Script) -> None:
    command = script("import sys; print('ready', flush=True); sys.stdin.readline(); print('whole'); sys.exit(5)")
    with launching.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        killed = kill_engine(process.pid)
        wait_for_next_engine(process.pid, killed)
        process.stdin.close()
        assert process.stdout.read() == b"whole\n"
        assert process.wait() == 5
        (line,) = process.stderr.read().decode().splitlines()
    record = record_of(launching.folder / line.split()[-1])
    assert record["engine_failure"] is None
    (message,) = record["messages"]
    assert message.startswith("the probe engine ended with signal 9 (no message) and was restarted")


def test_engine_start_failure_is_reported_before_target_runs(tool: Runner, script: Script) -> None:
    (tool.folder / "broken.toml").write_text("this is = = no probe")
    result = tool.run(script("print('ran')"), "-p", "broken.toml")
    assert result.returncode in (1, 2)
    assert result.stdout == b""
    assert b"broken.toml" in result.stderr


def test_stamps_are_english_and_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    assert stamp_of(1745507979) == "Apr24_151939"
    assert TRACE_NAME.fullmatch("Apr24_231539_1860576")


def test_trace_watch_finds_noted_directories_only(tmp_path: Path) -> None:
    """Another run may make directories in the same root while this one has it, and may have ended since."""
    notes = tmp_path / "notes"
    watch = TraceWatch(tmp_path, RunNotes(notes))
    assert watch.poll() == []
    for name in ("Nov21_025649_7", "Nov21_025649_8", "Nov21_025649_9"):
        (tmp_path / name).mkdir()
    watch.expect("Nov21_025649_9")
    notes.write_text("8 trace Nov21_025649_8\n9 trace Nov21_025649_9\n8 trace ../../etc\nx\n\xff \xff\n7 tra")
    assert [path.name for path in watch.poll()] == ["Nov21_025649_9", "Nov21_025649_8"]
    with notes.open("a") as file:
        file.write("ce Nov21_025649_7.2\n7 trace Nov21_025649_7.2\n")
    assert [path.name for path in watch.poll()] == ["Nov21_025649_7.2"]
    assert watch.poll() == []


def test_run_notes_count_processes_without_trace(tmp_path: Path) -> None:
    notes = RunNotes(tmp_path / "notes")
    notes.path.write_text("7 no-trace Permission denied\n8 no-trace Permission denied\n")
    assert notes.new_traces() == []
    assert notes.failures == {"Permission denied": [7, 8]}


def test_run_notes_follow_each_word_of_the_hook(tmp_path: Path) -> None:
    sources = (Path(__file__).parents[2] / "hook" / "src").rglob("*.c")
    note_words = {word for path in sources for word in re.findall(r'\brun_note\("([\w-]+)"', path.read_text())}
    assert len(note_words) == 6
    for word in note_words:
        notes = RunNotes(tmp_path / word)
        notes.path.write_text(f"7 {word} 1 2\n")
        assert notes.new_traces() or notes.failures or notes.unanswered or notes.stuck or notes.interrupted


def test_spool_refuses_root_with_too_long_name(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="File name too long; choose another place with --tracedir"):
        Spool(tmp_path / ("a" * 300))


def test_logs_are_copied_where_links_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("no hard links here")

    monkeypatch.setattr(os, "link", refuse)
    spool = Spool(tmp_path / "root")
    trace = tmp_path / "root" / "trace"
    trace.mkdir()
    spool.stdout.write_text("out")
    spool.stderr.write_text("err")
    spool.link_into(trace)
    assert list(trace.iterdir()) == []
    spool.copy_into(trace)
    spool.remove()
    assert (trace / "stdout.log").read_text() == "out"
    assert (trace / "stderr.log").read_text() == "err"
    assert list((tmp_path / "root").iterdir()) == [trace]
