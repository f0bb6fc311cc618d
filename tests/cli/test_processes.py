"""A run of many processes is summarised in a few lines: which commands there were, and one report of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.ui.synthetic import TraceWriter
from tui_probe.cli.profiling import report_outcome
from tui_probe.cli.text_report import (
    HURRIED_BYTES,
    TraceAnnouncer,
    group_lines,
    report_after_run,
    traces_to_report,
    write_report,
)
from tui_probe.launcher.run_traces import Outcome

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def many(root: Path, counts: dict[str, int]) -> list[Path]:
    """Traces of that many processes of each command; the later ones launched more."""
    traces = []
    for command, count in counts.items():
        for _ in range(count):
            pid = 1000 + len(traces)
            writer = TraceWriter(root / f"Nov20_101010_{pid}", pid, command)
            kernel = writer.kernel("zero_fill")
            for _ in range(1 + len(traces)):
                writer.launch(kernel)
            writer.exit()
            traces.append(writer.directory)
    return traces


def test_few_processes_are_listed_singly(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    traces = many(tmp_path, {"./a": 3})
    assert list(group_lines(traces, 100)) == []
    assert traces_to_report(traces) == traces
    write_report(traces, ascii_only=False)
    assert capfd.readouterr().out.count("trace     ") == 3


def test_many_processes_are_listed_by_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    traces = many(tmp_path, {"./setup": 1, "python worker.py": 120, "./tool --deep": 28})
    write_report(traces, ascii_only=False)
    out = capfd.readouterr().out
    head = out.split("\n\n")[0].splitlines()
    assert head[0] == "149 processes launched kernels; 3 reports follow, each for the longest process of a command"
    assert head[1:4] == ["    120 × python worker.py", "     28 × ./tool --deep", "      1 × ./setup"]
    assert str(tmp_path) in head[4]
    assert out.count("trace     ") == 3
    assert f"trace{traces[120]}command" in "".join(out.split())  # the last worker, which launched most
    assert max(len(line) for line in out.splitlines() if str(tmp_path) not in line) <= 100


def test_more_commands_than_are_listed_are_counted(tmp_path: Path) -> None:
    traces = many(tmp_path, {f"./program_{i}": 1 + (i == 0) for i in range(12)})
    lines = list(group_lines(traces, 100))
    assert len(lines) == 1 + 8 + 1 + 1
    assert lines[-2] == "      4 of 4 other commands"


def test_scripts_get_a_line_per_trace(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    tell = TraceAnnouncer()
    traces = [tmp_path / f"t{place}" for place in range(20)]
    for trace in traces:
        tell(trace)
    assert [line.split(" ")[-1] for line in capfd.readouterr().err.splitlines()] == list(map(str, traces))


def test_on_a_terminal_traces_are_announced_until_there_are_many(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.isatty", lambda _: True)
    tell = TraceAnnouncer()
    for place in range(149):
        tell(tmp_path / f"t{place}")
    lines = capfd.readouterr().err.splitlines()
    assert lines[0] == f"[info] trace in {tmp_path}/t0"  # scripts take the last word of the first line
    assert len(lines) == 9
    assert lines[8] == f"[info] traces of more processes are in {tmp_path}"


def test_children_of_a_command_without_kernels_are_counted(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    traces = [tmp_path / f"t{place}" for place in range(149)]
    report_outcome(Outcome(first_trace=tmp_path / "own", traces=traces))
    assert capfd.readouterr().err == ""  # a script takes each line for a trace
    monkeypatch.setattr("tui_probe.cli.text_report.stderr_is_terminal", lambda: True)
    report_outcome(Outcome(first_trace=tmp_path / "own", traces=traces))
    (said,) = capfd.readouterr().err.splitlines()
    assert said.endswith(f"child processes did; 149 traces, e.g. {traces[-1]}")


def test_a_long_log_is_not_read_in_a_hurry(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    writer = TraceWriter(tmp_path / "trace")
    writer.raw(b"x" * HURRIED_BYTES + b"\n")
    writer.event(
        "[exit] launches 20000 probed 64 dropped 12 reason the program ended before the result was written code no-time"
    )
    report_after_run(Outcome(traces=[writer.directory]), ascii_only=False, seconds=0.3)
    out, messages = capfd.readouterr()
    assert messages == ""
    assert out == (
        "20 000 launches (64 probed), 12 results dropped; for the report, which takes longer:"
        f" tui-probe report {writer.directory}\n"
    )
    with (writer.directory / "event.log").open("ab") as log:
        log.write(b"y" * 5000)
    report_after_run(Outcome(traces=[writer.directory]), ascii_only=False, seconds=0.3)
    assert "event.log is truncated" in capfd.readouterr().out
