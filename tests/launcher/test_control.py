"""The switch and the budgets of a run, from the launcher's side: page, ``ctl``, windows of time, copied output."""

from __future__ import annotations

import errno
import json
import os
import sys
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

from tui_probe.cli.main import main
from tui_probe.errors import ControlError
from tui_probe.launcher.control import BUDGETS, NO_LIMIT, ControlPage, RecordingWindow, find_page, page_of_trace
from tui_probe.launcher.options import RunOptions
from tui_probe.launcher.supervisor import OutputLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .conftest import Runner


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A folder of traces with an active run, which is this process."""
    spool = tmp_path / "traces" / f".run-{os.getpid()}"
    spool.mkdir(parents=True)
    control = ControlPage.create(spool / "control", RunOptions(("x",)).limits(), shares=True, is_on=True)
    yield spool.parent
    del control


def page(root: Path) -> ControlPage:
    return ControlPage.open(find_page(root))


def trace_of(root: Path, launcher: object) -> Path:
    trace = root / "Nov21_024500_7"
    trace.mkdir()
    (trace / "run.json").write_text(json.dumps({"launcher": launcher}))
    return trace


def test_the_switch_counts_how_often_it_was_turned_on(root: Path) -> None:
    control = page(root)
    assert [control.switch(on) for on in (True, False, False, True)] == [False, True, False, True]
    assert (control.is_on, control["turned_on"]) == (True, 1)


def test_only_this_user_may_open_it(root: Path) -> None:
    assert find_page(root).stat().st_mode & 0o777 == 0o600


def test_a_run_is_found_by_its_trace(root: Path) -> None:
    assert page_of_trace(trace_of(root, os.getpid())) == find_page(root)


@pytest.mark.parametrize("launcher", [2**22 + 1, "1", None])
def test_a_run_that_has_ended_has_no_page(root: Path, launcher: object) -> None:
    trace = trace_of(root, launcher)
    assert page_of_trace(trace) is None
    with pytest.raises(ControlError, match="the run of this trace has ended"):
        find_page(trace)


@pytest.mark.parametrize("content", [b"", bytes(4096), b"tuiprobe" + bytes(100)])
def test_invalid_control_page_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "control").write_bytes(content)
    with pytest.raises(ControlError, match="not a control page"):
        ControlPage.open(tmp_path / "control")


def test_page_cannot_be_cut_short(root: Path) -> None:
    with pytest.raises(PermissionError):
        os.truncate(find_page(root), 0)
    assert page(root).is_on


def test_page_without_a_link_still_reaches_its_processes(tmp_path: Path) -> None:
    control = ControlPage.create(tmp_path / "gone" / "control", dict.fromkeys(BUDGETS, 7), shares=True, is_on=True)
    assert control.path is not None
    assert ControlPage.open(control.path).budget("trace_bytes").limit == 7


def test_page_without_sealed_memory_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "memfd_create", Mock(side_effect=OSError(errno.ENOSYS, "")))
    control = ControlPage.create(tmp_path / "control", dict.fromkeys(BUDGETS, 7), shares=True, is_on=True)
    assert (control.path, control.budget("trace_bytes").limit) == (None, 7)


def test_ctl_says_how_it_stands(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    control = page(root)
    control["result_files.used"], control["result_files.refused"] = 64, 2
    control["trace_bytes.used"], control["launcher_bytes"] = 5000, 3000
    control["over_rate"], control["write_rate"] = 3, 10_000
    assert main(["ctl", str(root)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"recording is on  (run of process {os.getpid()})",
        "trace-bytes      8.00 kB of 1G",
        "result-files          64 of 2000, 2 launches refused",
        "log-bytes            0 B of 128M",
        "write-rate     10.0 kB/s max",
        "3 launches ran unprobed: results exceeded write-rate or half the disk rate",
    ]


def test_ctl_turns_the_switch_and_raises_budgets(root: Path) -> None:
    assert main(["ctl", str(root), "off"]) == 0
    assert not page(root).is_on
    assert main(["ctl", str(root), "on"]) == 0
    assert main(["ctl", str(root), "budget", "trace-bytes=4G", "result-files=none", "log-bytes=0"]) == 0
    control = page(root)
    assert control.is_on
    assert {name: budget.limit for name, budget in control.budgets().items()} == {
        "trace_bytes": 4 << 30, "result_files": None, "log_bytes": 0,
    }  # fmt: skip
    assert control["shares"] == 0  # what the user said counts, and all of it


def test_ctl_sets_the_rate_of_writing_from_now_on(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    control = page(root)
    control["written_until"] = 1 << 62
    assert main(["ctl", str(root), "budget", "write-rate=50M"]) == 0
    assert (control["write_rate"], control["written_until"], control["shares"]) == (50 << 20, 0, 1)
    assert "write-rate         50M/s max" in capsys.readouterr().out.splitlines()
    assert main(["ctl", str(root), "budget", "write-rate=none"]) == 0
    assert control["write_rate"] == NO_LIMIT
    assert "write-rate    no limit" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["budget"], "write budget NAME=VALUE"),
        (["budget", "files=3"], "'files=3' is not a budget"),
        (["budget", "trace-bytes=much"], "'much' is not a size"),
        (["on", "now"], "on takes no value"),
        (["stop"], "stop is not an action"),
    ],
)
def test_ctl_refuses(root: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["ctl", str(root), *words])
    assert (ended.value.code, said in capsys.readouterr().err) == (2, True)


def test_ctl_without_an_active_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ctl", str(tmp_path), "off"]) != 0
    assert "no active run in" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("after", "duration", "states"),
    [
        (0.0, None, [True, True, True]),
        (2.0, None, [False, True, True]),
        (0.0, 2.0, [True, False, False]),
        (2.0, 3.0, [False, True, False]),
    ],
)
def test_a_window_of_time(tmp_path: Path, after: float, duration: float | None, states: list[bool]) -> None:
    limits = dict.fromkeys(BUDGETS, NO_LIMIT)
    control = ControlPage.create(tmp_path / "control", limits, shares=True, is_on=after <= 0)
    window, switched = RecordingWindow(control, after, duration), []
    for elapsed in (1.0, 3.0, 6.0):
        window.tick(elapsed)
        switched.append(control.is_on)
    assert switched == states


def test_a_window_leaves_what_a_person_does_later(tmp_path: Path) -> None:
    control = ControlPage.create(tmp_path / "control", dict.fromkeys(BUDGETS, NO_LIMIT), shares=True, is_on=False)
    window = RecordingWindow(control, 1.0, None)
    window.tick(2.0)
    control.switch(False)
    window.tick(3.0)
    assert not control.is_on


def test_the_copy_of_the_output_is_limited_and_the_output_is_not(
    tool: Runner, script: Callable[[str], list[str]]
) -> None:
    target = script("import sys\nfor n in range(3000): print('x' * 99)\nsys.stderr.write('end')")
    tool.environment["FAKE_LAUNCHES"] = "*"
    result = tool.run(target, "--max-trace-bytes", "1K")
    assert result.stdout == ("x" * 99 + "\n").encode() * 3000
    (trace,) = [path for path in (tool.folder / "trace").iterdir() if path.is_dir()]
    assert (trace / "stdout.log").stat().st_size == 65536
    record = json.loads((trace / "run.json").read_text())
    assert record["messages"] == [
        "stdout.log and stderr.log end after 65536 bytes: to save more, raise --max-trace-bytes"
    ]
    assert result.stderr.count(b"\n") == 1
    budgets = record["budgets"]
    assert budgets["trace_bytes"]["used"] >= 65536


def test_the_screens_copy_of_the_output_is_limited(tmp_path: Path) -> None:
    output_log = OutputLog(tmp_path / "stdout.log", limit=1000)
    for _ in range(100):
        os.write(output_log.target_end, b"x" * 99)
    os.close(output_log.target_end)
    output_log.finish(5.0)
    assert (output_log.log.stat().st_size, output_log.is_truncated) == (1000, True)


def test_the_target_sees_the_page(tool: Runner) -> None:
    target = "import os; from pathlib import Path; print(Path(os.environ['TUI_PROBE_CONTROL']).read_bytes()[:8])"
    result = tool.run([sys.executable, "-c", target])
    assert result.stdout == b"b'tuiprobe'\n"


@pytest.mark.usefixtures("root")
def test_one_of_the_probes_is_chosen_from_another_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spool = tmp_path / "more" / f".run-{os.getpid()}"
    spool.mkdir(parents=True)
    limits = RunOptions(("x",)).limits()
    control = ControlPage.create(spool / "control", limits, shares=True, is_on=True, probes=["one", "two"])
    assert main(["ctl", str(spool.parent), "probe", "two"]) == 0
    assert "probes        one, two: only two" in capsys.readouterr().out
    assert control["only_probe"] == 2
    assert main(["ctl", str(spool.parent), "probe", "all"]) == 0
    assert "probes        one, two: alternately" in capsys.readouterr().out
    assert control["only_probe"] == 0
    assert main(["ctl", str(spool.parent), "probe", "three"]) != 0
    assert "three is not a probe of the run; its probes: one, two" in capsys.readouterr().err
