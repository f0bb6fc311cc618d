"""Launches that do not end: their findings, and the answer to the question where a kernel is stuck."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.trace.make import TraceWriter
from tui_probe.pages.run_report import run_report
from tui_probe.trace.follow import open_trace
from tui_probe.verdicts import unended_launches
from tui_probe.verdicts.simulator_findings import faulty_kernels
from tui_probe.verdicts.static_findings import static_findings
from tui_probe.verdicts.unended_launches import StuckAnswer, stuck_answer

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.trace.model import Trace

NOT_WATCHED = "the run had no watchdog code not-watched"


def stuck_line(launch: int, kernel: int, seconds: float, reason: str = NOT_WATCHED) -> str:
    return f"[stuck] launch {launch} kernel {kernel} seconds {seconds:.1f} warps 0 left-out 0 reason {reason}"


def trace_with(directory: Path, *lines: str, watchdog: float | None = None) -> Trace:
    """Return a trace of two kernels with these lines in its log."""
    writer = TraceWriter(directory / "trace")
    writer.start()
    for index, name in enumerate(("first", "second")):
        writer.kernel(index, name)
    writer.launch(0)
    writer.lines(*lines)
    (writer.directory / "run.json").write_text(json.dumps({"options": {"watchdog": watchdog}}))
    return open_trace(writer.directory)


@pytest.mark.parametrize(("seconds", "label"), [(3.4, "not complete"), (12.3, "does not end")])
def test_launch_that_is_not_long_is_only_incomplete(tmp_path: Path, seconds: float, label: str) -> None:
    """A process may be ended during a launch of a few seconds, which would end."""
    trace = trace_with(tmp_path, stuck_line(4, 0, seconds))
    (finding,) = (finding for finding in static_findings(trace.kernels[0]) if finding.key == "unfinished")
    assert finding.label == label
    assert finding.words.startswith(f"launch 4 had run for {seconds} s ")
    assert "--watchdog 10s" in finding.advice
    assert faulty_kernels(trace) == {"first"}


def test_launch_that_did_not_end_is_seen(tmp_path: Path) -> None:
    text = run_report(trace_with(tmp_path, *(stuck_line(number, 0, 2.3) for number in (0, 1, 1))), width=120)
    assert "1 launch (1 probed), 1 more launch had not ended, " in text


def test_stuck_answer_without_watchdog_is_run_with_one(tmp_path: Path) -> None:
    trace = trace_with(tmp_path, stuck_line(4, 0, 12.3), stuck_line(7, 1, 12.3))
    assert stuck_answer(trace, is_running=False) == StuckAnswer(rerun_option="--watchdog 10s")
    while_running = stuck_answer(trace, is_running=True)
    assert while_running.message.startswith("launch 7 of second has run for over 12 s. End the program")
    assert while_running == StuckAnswer(while_running.message)


def test_stuck_answer_without_unended_launch_has_limit(tmp_path: Path) -> None:
    assert stuck_answer(trace_with(tmp_path, watchdog=2.5), is_running=True) == StuckAnswer(
        "no launch has run longer than 2.5 s"
    )


def test_stuck_answer_is_about_last_unended_launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unended_launches, "watchdog_page", lambda: "warps")
    unwatched = trace_with(tmp_path / "a", stuck_line(4, 0, 3, reason="-"), stuck_line(7, 1, 3), watchdog=2)
    assert stuck_answer(unwatched, is_running=True) == StuckAnswer("launch 7 does not end: the run had no watchdog", 1)
    watched = trace_with(tmp_path / "b", stuck_line(4, 0, 3), stuck_line(7, 1, 3, reason="-"), watchdog=2)
    assert stuck_answer(watched, is_running=True) == StuckAnswer(kernel=1, page="warps")
