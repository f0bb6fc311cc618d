"""``tui-probe gate``: counts against a baseline on the simulated GPU, times of made-up runs, and the reports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.patience import HANG
from tui_probe.cli.gate import ClockWatch
from tui_probe.cli.main import main
from tui_probe.errors import UsageError
from tui_probe.integrations.baselines import find_baseline, read_baseline
from tui_probe.pages.gate_report import clock_lines, gate_lines, gate_markdown
from tui_probe.trace.follow import open_trace
from tui_probe.verdicts.gate import Clocks, Judgement, judge_counts, judge_times, time_interval, time_verdict

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAM = str(Path(__file__).with_name("faulty.py"))


def test_gate_fails_for_a_line_that_became_strided(tmp_path: Path, natives: Path) -> None:
    """Record, change, judge, in a git repository; with all reports."""
    environment = os.environ | {"TUI_PROBE_NATIVE": str(natives), "PYTHONPATH": str(Path(PROGRAM).parents[2])}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    for arguments in ("init -q", "-c user.name=a -c user.email=a@b commit -q --allow-empty -m one"):
        assert run("git", *arguments.split()).returncode == 0
    commit = run("git", "rev-parse", "HEAD").stdout.strip()
    gate = [sys.executable, "-m", "tui_probe", "gate", "fill", "--sim"]
    recorded = run(*gate, "--record", "--", sys.executable, PROGRAM, "1")
    assert recorded.stdout == f".tui-probe/fill/{commit}.json\n", recorded.stderr
    reports = ["--markdown", "gate.md", "--junit", "gate.xml", "--sarif", "gate.sarif"]
    judged = run(*gate, *reports, "--format", "json", "--", sys.executable, PROGRAM, "32")
    assert judged.returncode == 1, judged.stderr
    document = json.loads(judged.stdout)
    assert document["baseline_commit"] == commit
    verdicts = {row["metric"]: (row["verdict"], row["before"], row["after"]) for row in document["verdicts"]}
    assert verdicts["store_sectors"] == ("worse", "128", "1 024")
    assert verdicts["instructions"][0] == "same"
    assert "| worse | fill | store sectors | 128 | 1 024 | fill.cu:4" in (tmp_path / "gate.md").read_text()
    suite = ElementTree.parse(tmp_path / "gate.xml").getroot()
    failed = [case.get("name") for case in suite.iter("testcase") if case.find("failure") is not None]
    assert "store_sectors" in failed
    assert len(failed) == int(suite.get("failures", ""))
    (result, *_) = json.loads((tmp_path / "gate.sarif").read_text())["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "fill.cu"}, "region": {"startLine": 4},
    }  # fmt: skip


NO_KERNEL = [
    (["sh", "-c", "echo why >&2; exit 3"], 2, "why\ntui-probe: error: sh -c 'echo why >&2; exit 3' ended with"),
    (["true"], 4, "tui-probe: error: true launched no kernel (exit status 0)"),
    (
        ["sh", "-c", f"{sys.executable} {PROGRAM} 1; {sys.executable} {PROGRAM} 1"], 4,
        "tui-probe: error: 2 processes of ",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("command", "status", "message"), NO_KERNEL)
def test_program_that_cannot_be_judged_is_named_with_the_reason(
    tmp_path: Path, natives: Path, command: list[str], status: int, message: str
) -> None:
    environment = os.environ | {"TUI_PROBE_NATIVE": str(natives), "PYTHONPATH": str(Path(PROGRAM).parents[2])}
    gate = [sys.executable, "-m", "tui_probe", "gate", "fill", "--record", "--sim", "--", *command]
    done = subprocess.run(gate, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (status, ""), done.stderr
    assert message in done.stderr
    assert "[info]" not in done.stderr


def test_program_that_a_shell_starts_is_judged(tmp_path: Path, natives: Path) -> None:
    """The shell itself has no trace."""
    environment = os.environ | {"TUI_PROBE_NATIVE": str(natives), "PYTHONPATH": str(Path(PROGRAM).parents[2])}
    script = f"{sys.executable} {PROGRAM} 1; exit $?"
    gate = [sys.executable, "-m", "tui_probe", "gate", "fill", "--record", "--sim", "--", "sh", "-c", script]
    done = subprocess.run(gate, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ".tui-probe/fill/none.json\n"), done.stderr


LOG = """[init] pid 1
[kernel] 0 {status} registers 8 local 0 shared 0 blocks 16 name fill reason {reason}
[exec] backup 8 1 1 block 128 1 1 shared 0 kernel 0 launch 0 time 1 reason {reason}
[exit] launches 1 probed 0 dropped 0 reason -
"""


def judged_log(folder: Path, status: str, reason: str, *metrics: str) -> list[Judgement]:
    """Verdicts on a kernel of which the baseline has two counts of a probe, and the run none."""
    (folder / "event.log").write_text(LOG.format(status=status, reason=reason))
    return list(
        judge_counts([{"fill": {"launches": 1, "sectors": 4, "store_sectors": 4}}], open_trace(folder), metrics)
    )


def test_kernel_that_lost_its_counts_is_not_the_same(tmp_path: Path) -> None:
    *launched, counts = judged_log(tmp_path, "skipped", "no PTX in image code no-ptx")
    assert (counts.metric, counts.baseline, counts.verdict) == ("counts", "measured", "cannot tell")
    assert counts.reason == "no PTX in image"
    assert {judged.metric for judged in launched if judged.verdict == "same"} == {"launches"}


def test_kernel_that_the_user_excludes_is_not_judged(tmp_path: Path) -> None:
    assert judged_log(tmp_path, "filtered", "not selected by --kernel code not-chosen") == []


def test_unknown_metric_is_refused_with_the_likely_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no kernel has a metric sector: did you mean sectors\?"):
        judged_log(tmp_path, "skipped", "no PTX in image code no-ptx", "sector")


def blocks(ratio: float, noise: float, count: int, seed: int) -> list[tuple[float, float]]:
    """Means of two runs each, around 1 ms, of which the second program takes ``ratio`` times as long."""
    means = 1e-3 * np.random.default_rng(seed).normal(1, noise, (count, 2, 2)).mean(axis=2)
    return [(float(before), float(after * ratio)) for before, after in means]


def test_interval_finds_a_slowdown_and_raises_no_false_alarm() -> None:
    alarms = slowdowns_seen = 0
    for seed in range(200):
        same, slower = (time_interval(blocks(ratio, 0.005, 8, seed)) for ratio in (1, 1.03))
        assert same is not None
        assert slower is not None
        alarms += time_verdict(same, 0.01) in ("worse", "better")
        slowdowns_seen += time_verdict(slower, 0.01) == "worse"
    assert alarms <= 2
    assert slowdowns_seen >= 190


@pytest.mark.parametrize(
    ("ratio", "noise", "verdict"),
    [(1, 0, "same"), (1.05, 0, "worse"), (0.9, 0, "better"), (1, 0.05, "cannot tell"), (1.005, 0.0005, "same")],
)
def test_verdict_on_times_states_its_interval(ratio: float, noise: float, verdict: str) -> None:
    (judged,) = judge_times({"gemm": blocks(ratio, noise, 8, 1)}, 0.01)
    assert judged.verdict == verdict
    assert judged.baseline.endswith("µs")
    assert " to " in judged.reason


def test_one_disturbed_run_decides_nothing() -> None:
    disturbed = [*blocks(1, 0.001, 7, 1), (1e-6, 1.5e-6)]
    interval = time_interval(disturbed)
    assert interval is not None
    assert time_verdict(interval, 0.01) == "same"


def test_too_few_blocks_give_no_verdict() -> None:
    (judged,) = judge_times({"gemm": blocks(2, 0, 3, 1)}, 0.01)
    assert (judged.verdict, judged.baseline) == ("cannot tell", "–")


class FakeNvml:
    """A GPU with the clock and the reasons of each sample in turn; the last one stays."""

    NVMLError = RuntimeError
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    def __init__(self, samples: list[tuple[int, int]]) -> None:
        self.samples, self.taken = samples, threading.Event()

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        if len(self.samples) == 1:
            self.taken.set()
        return 1

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def answer(*_: object) -> Any:
            if name == "nvmlDeviceGetClockInfo":
                return self.samples[0][0]
            if name == "nvmlDeviceGetCurrentClocksEventReasons":
                return (self.samples.pop(0) if len(self.samples) > 1 else self.samples[0])[1]
            if name == "nvmlDeviceGetHandleByIndex":
                return 0
            raise RuntimeError("Not Supported")

        return answer


def watched(nvml: FakeNvml) -> ClockWatch:
    """Clocks of a program that runs until one sample of the GPU is left."""
    watch = ClockWatch(lambda: (nvml, ""), interval=0.001)
    with watch.watch("now"):
        assert nvml.taken.wait(HANG)
    return watch


def test_clocks_of_busy_samples_are_stated_with_what_limits_them() -> None:
    idle, power_cap = 0x1, 0x4
    clocks = watched(FakeNvml([(345, idle), (1980, 0), (1755, power_cap), (345, idle)])).clocks("now")
    assert clocks == Clocks(2, 1755, 1867.5, 1980, {"SW power cap": 0.5})
    assert clocks.text == "1755 to 1980 MHz, median 1868, SW power cap in 50% of samples"
    other = Clocks(2, 1700, 1700, 1700, {})
    (_, line, _, warning) = clock_lines({"now": clocks, "baseline": other}, 0.01)
    assert line == f"SM clock, now: {clocks.text}"
    assert warning.startswith("The clocks differ by 9.9%: lock them with nvidia-smi")
    assert clock_lines({"now": "NVML is missing"}, 0.01)[1] == "SM clock, now: NVML is missing"


def test_clocks_of_an_idle_gpu_are_unknown() -> None:
    assert watched(FakeNvml([(345, 1), (345, 1)])).clocks("now") is None
    assert ClockWatch(lambda: (None, "no driver")).missing_reason == "no driver"


def test_reports_name_what_is_worse_first_and_leave_out_the_same() -> None:
    same = Judgement("a", "sectors", "sectors", "1", "1", "same")
    worse = Judgement("b\x1b[31m|", "spills", "spilled bytes", "0", "8", "worse", place="b.cu:3")
    lines = gate_lines([same, worse])
    assert lines[0] == "1 worse, 1 same"
    assert len(lines) == 5
    assert "\x1b" not in gate_markdown([same, worse], "n")
    assert gate_lines([]) == ["nothing was compared"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"schema": "tui-probe baseline", "version": 2}', '{"schema": 1, "runs": 3}',
             '{"schema": "tui-probe baseline", "version": 1, "command": [], "tools": {}, "runs": [{"k": {"m": "x"}}]}']
)  # fmt: skip
def test_file_that_is_no_baseline_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"x\.json is not a baseline"):
        read_baseline(path)


def test_names_stay_in_the_directory(tmp_path: Path) -> None:
    assert find_baseline(tmp_path, "none-yet") is None
    for name in ("../x", "a/b", "", ".hidden", "x" * 65):
        with pytest.raises(UsageError, match="is not a valid baseline name"):
            find_baseline(tmp_path, name)


def test_action_passes_its_inputs_and_keeps_the_status(tmp_path: Path) -> None:
    script = Path(PROGRAM).parents[2] / ".github" / "actions" / "gate" / "gate.sh"
    stand_in = tmp_path / "tui-probe"
    stand_in.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > arguments\necho "### gate" > "$6"\nexit 1\n')
    stand_in.chmod(0o755)
    inputs = {"BASELINE": "train", "COMMAND": "python 'my train.py'", "OPTIONS": "--sim -k=gemm"}
    own = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    (tmp_path / "summary").write_text("before\n")
    done = subprocess.run([script], cwd=tmp_path, env=os.environ | inputs | own, check=False)
    assert done.returncode == 1
    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert arguments[:4] == ["gate", "train", "--sim", "-k=gemm"]
    assert arguments[-4:] == ["--", "bash", "-c", "python 'my train.py'"]
    assert (tmp_path / "summary").read_text() == "before\n### gate\n"


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ("--repeats", "3", "'3' is not a number of at least 4, such as 8"),
        ("--repeats", "none", "'none' is not a number of at least 4, such as 8"),
        ("--within", "x", "'x' is not a percentage below 100%, such as 1%"),
        ("--within", "nan", "'nan' is not a percentage below 100%, such as 1%"),
        ("--within", "100%", "'100%' is not a percentage below 100%, such as 1%"),
    ],
)
def test_options_out_of_range_are_refused(
    option: str, value: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["gate", "base", option, value, "--", "true"])
    assert problem in capsys.readouterr().err
