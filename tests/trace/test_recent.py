"""Traces in brief, and which were looked at lately."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.trace.test_follow import WAITING, waiting_process
from tests.ui.synthetic import TraceWriter, example
from tui_probe.trace.recent import (
    HEAD_BYTES,
    RecentTraces,
    find_previous_run,
    recent_traces,
    running_traces,
    summarize_trace,
)
from tui_probe.trace.user_state import opened_traces, remember_opened


def test_a_trace_in_brief(tmp_path: Path) -> None:
    trace = example(tmp_path / "one")
    known = summarize_trace(trace.directory)
    assert known is not None
    assert (known.command, known.device, known.kernels, known.all_read) == (
        "./vector_add --size 1048576", "NVIDIA H100 80GB HBM3", 6, True,
    )  # fmt: skip
    assert (known.is_running, known.status, known.probe) == (False, None, None)
    record = {"version": 1, "ended": "2023-11-14T22:13:23+00:00", "exit_status": 3, "probe": "dmat"}
    (trace.directory / "run.json").write_text(json.dumps(record))
    known = summarize_trace(trace.directory)
    assert known is not None
    assert (known.status, known.probe) == (3, "dmat")


@pytest.mark.parametrize(("last", "status"), [("status 7", 7), ("signal 15", -15)])
def test_a_process_that_is_not_the_command_ends_on_its_own(tmp_path: Path, last: str, status: int) -> None:
    """The record tells how the command ended; the end of the log, however long, how this process did."""
    trace = example(tmp_path / "child")
    record = {"version": 1, "pid": 1, "ended": "2023-11-14T22:13:23+00:00", "exit_status": 0}
    (trace.directory / "run.json").write_text(json.dumps(record))
    known = summarize_trace(trace.directory)
    assert known is not None
    assert known.status is None
    trace.raw(b"[mem] cuMemFree_v2 0 dptr 7fc573e00000\n" * (HEAD_BYTES // 30))
    trace.event(f"[exit] {last}")
    trace.exit()
    known = summarize_trace(trace.directory)
    assert known is not None
    assert (known.status, known.all_read) == (status, False)


def test_only_the_beginning_of_a_long_log_is_read(tmp_path: Path) -> None:
    trace = example(tmp_path / "one")
    with (trace.directory / "event.log").open("ab") as log:
        log.truncate(HEAD_BYTES + 1000)
    known = summarize_trace(trace.directory)
    assert known is not None
    assert (known.kernels, known.all_read) == (6, False)


def test_any_bytes_are_read(tmp_path: Path) -> None:
    (tmp_path / "event.log").write_bytes(b"[init] cmd 3 \xff\xfe\n[init] pid x\n\0\0[kernel] 1")
    known = summarize_trace(tmp_path)
    assert known is not None
    assert (known.command, known.kernels) == ("\\xff\\xfe", 0)
    assert summarize_trace(tmp_path / "none") is None


def test_a_run_that_goes_on_is_found(tmp_path: Path) -> None:
    example(tmp_path / "ended")
    with waiting_process() as process:
        TraceWriter(tmp_path / "running", pid=process.pid, command=" ".join(WAITING))
        assert running_traces(tmp_path) == [tmp_path / "running"]
    assert running_traces(tmp_path) == []


def test_the_newest_traces_come_first_and_each_once(tmp_path: Path) -> None:
    for number, name in enumerate(("old", "new", "middle")):
        log = example(tmp_path / "traces" / name).directory / "event.log"
        os.utime(log, (1000 + number * 7 % 10, 1000 + number * 7 % 10))
    elsewhere = example(tmp_path / "elsewhere").directory
    remember_opened(elsewhere)
    remember_opened(tmp_path / "traces" / "old")
    remember_opened(tmp_path / "gone")
    briefs = recent_traces([tmp_path / "traces", tmp_path / "no such folder"], limit=3)
    assert [known.directory.name for known in briefs] == ["elsewhere", "new", "middle"]


def test_a_trace_is_read_again_where_it_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        example(tmp_path / name)
    read: list[str] = []
    monkeypatch.setattr(
        "tui_probe.trace.recent.summarize_trace", lambda path: read.append(path.name) or summarize_trace(path)
    )
    recent = RecentTraces([tmp_path], 10)
    assert {known.directory.name for known in recent()} == {"one", "two"}
    assert len(recent()) == 2
    assert sorted(read) == ["one", "two"]
    (tmp_path / "one" / "run.json").write_text(json.dumps({"version": 1, "exit_status": 3, "ended": "2023"}))
    assert 3 in [known.status for known in recent()]
    assert sorted(read) == ["one", "one", "two"]


def test_opened_traces_are_remembered_newest_first(tmp_path: Path) -> None:
    for number in range(60):
        remember_opened(tmp_path / str(number))
    remember_opened(tmp_path / "30")
    known = opened_traces()
    assert known[:3] == [tmp_path / "30", tmp_path / "59", tmp_path / "58"]
    assert len(known) == len(set(known)) == 50


def test_nothing_is_remembered_where_nothing_can_be_written(tmp_path: Path) -> None:
    state = Path(os.environ["XDG_STATE_HOME"])
    state.write_text("a file instead of the folder")
    remember_opened(tmp_path)
    assert opened_traces() == []


def test_the_run_before_is_of_the_same_command_with_the_same_probe(tmp_path: Path) -> None:
    traces = [example(tmp_path / name).directory for name in ("first", "other", "third")]
    for trace, probe, when in zip(traces, ("dmat", "block_sched", "dmat"), (100, 200, 300), strict=True):
        record = {"version": 1, "ended": "2023-11-14T22:13:23+00:00", "exit_status": 0, "probe": probe}
        (trace / "run.json").write_text(json.dumps(record))
        os.utime(trace / "event.log", (when, when))
    assert [find_previous_run(trace) for trace in traces] == [None, None, traces[0]]
    assert find_previous_run(tmp_path / "none") is None
    record = {"version": 1, "ended": "2023-11-14T22:13:23+00:00", "probe": "dmat", "processes": ["first", "third"]}
    (traces[2] / "run.json").write_text(json.dumps(record))
    assert find_previous_run(traces[2]) is None, "of the same run"
