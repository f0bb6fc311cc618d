"""``run --watchdog``: five planted deadlocks in processes of one run, which are ended, with their last places; and a
launch that runs when its process ends or is interrupted.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.conftest import ROOT, Tool
from tests.patience import HANG

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PROGRAM = ROOT / "tests" / "gpu" / "programs" / "deadlocks.py"
INTERRUPTED = PROGRAM.with_name("interrupted.py")
RANKS = PROGRAM.with_name("ranks.py")
LONG_SECONDS = 10
"""Seconds from which a launch of a run without a watchdog “does not end”; before, it is “not complete”."""
KINDS = ("mbarrier", "token", "grid", "lock", "count", "leak")
CAUSES = {
    "mbarrier": "mbarrier-count", "token": "mbarrier-count", "grid": "grid-does-not-fit",
    "lock": "lock-held-by-own-warp", "count": "value-not-reached", "leak": "lock-not-free",
}  # fmt: skip
LINES = {"mbarrier": 15, "token": 15, "grid": 27, "lock": 33, "count": 43, "leak": 52}
VALUES = {"count": 4, "leak": 1}
"""Values that the warps of the first place read."""


@pytest.fixture(scope="module")
def stuck(tmp_path_factory: pytest.TempPathFactory, natives: Path) -> dict[str, dict[str, Any]]:
    """The JSON of the page ``stuck`` for each kind, of one run of three processes."""
    tool = Tool(tmp_path_factory.mktemp("watchdog"), natives)
    script = "".join(f"{sys.executable} {PROGRAM} {kind} & " for kind in KINDS) + "wait"
    done = tool("run", "--sim", "--no-check", "--no-report", "--watchdog", "400ms", "--", "sh", "-c", script)
    traces = sorted((tool.folder / "trace").iterdir())
    assert len(traces) == len(KINDS), done.stderr
    for trace in traces:
        log = (trace / "event.log").read_text()
        assert "[exec] probe-mem 0 (bytes)" in log, "a watched launch has no records of its own"
        assert log.rindex("[exec] save result/") < log.index("[stuck] ") < log.index("[exit] signal 15")
    chosen = ("-k", "|".join(KINDS), "--format", "json")
    shown = [tool("show", "stuck", str(trace), *chosen).stdout for trace in traces]
    documents = [json.loads(text) for text in shown]
    return {str(document["kernel"]["name"]): document["data"] for document in documents}


@pytest.mark.parametrize("kind", KINDS)
def test_planted_deadlock_has_its_cause_and_line(stuck: dict[str, dict[str, Any]], kind: str) -> None:
    record = stuck[kind]
    assert record["cause"]["key"] == CAUSES[kind]
    assert record["places"][0]["line"] == LINES[kind]
    if kind in VALUES:
        assert {warp["value"] for warp in record["warps"] if warp["address"]} == {VALUES[kind]}


def test_holder_in_a_block_that_has_ended_is_named(stuck: dict[str, dict[str, Any]]) -> None:
    assert "(value 1) is wanted by 2 warps at atom.acquire.gpu.global.cas.b32" in stuck["leak"]["cause"]["words"]
    assert "which block 0 warp 0 took at PTX:" in stuck["leak"]["cause"]["words"]
    assert stuck["leak"]["blocks_not_started"] == 0


def test_wait_with_a_state_has_phase_and_expected_count(stuck: dict[str, dict[str, Any]]) -> None:
    assert {place["phase"] for place in stuck["token"]["places"][:1]} == {0}
    assert ", phase 0: it expects 129 arrivals (mbarrier.init PTX:" in stuck["token"]["cause"]["words"]


@pytest.mark.parametrize("check", [(), ("--no-check",)])
def test_deadlock_that_the_simulated_gpu_ends_has_places_and_counts(tool: Tool, check: Sequence[str]) -> None:
    done = tool(
        "run", "--sim", *check, "--no-report", "--watchdog", LIMIT, "--", sys.executable, str(PROGRAM), "mbarrier"
    )
    assert done.returncode not in (0, 143), done.stderr
    (trace,) = (tool.folder / "trace").glob("*_*_*")
    log = (trace / "event.log").read_text()
    assert " left-out 0 deadlock reason -\n" in log
    data = stuck_launch(trace)
    assert data["interrupted"] is False
    assert data["cause"]["key"] == "mbarrier-count"
    assert "it expects 129 arrivals (mbarrier.init PTX:" in data["cause"]["words"]
    assert "block 0 made 96 arrivals (warps 0-2); warp 3 is at bar.sync" in data["cause"]["words"]
    assert data["cause"]["advice"].startswith("let warp 3 arrive in each phase, or initialize the mbarrier with 96")


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory, natives: Path) -> Tool:
    """A run of three ranks: two of them wait for the third."""
    tool = Tool(tmp_path_factory.mktemp("ranks"), natives)
    script = "".join(f"RANK={rank} WORLD_SIZE=3 {sys.executable} {RANKS} & " for rank in range(3)) + "wait"
    options = ("--sim", "--no-check", "--no-report", "--watchdog", "400ms", "--name", "ranks")
    tool("run", *options, "--", "sh", "-c", script)
    return tool


def test_ranks_of_a_run_are_one_page(ranks: Tool) -> None:
    document = json.loads(ranks("show", "stuck", "ranks", "--format", "json").stdout)
    assert document["cause"]["key"] == "rank-missing"
    assert document["cause"]["missing"] == [2]
    rows = document["stuck"]
    assert [(row["rank"], row["stuck"], row["kernel"], row["launch"]) for row in rows] == [
        (0, True, "all_reduce", 2), (1, True, "all_reduce", 2), (2, False, None, None),
    ]  # fmt: skip
    assert [row["launches"] for row in rows] == [{"all_reduce": 1, "step": 2}] * 2 + [{"step": 2}]
    assert rows[0]["waits_for"].startswith("flag 0x")
    assert rows[2]["place"] == "not stuck: ended with status 3, last launch 1 of step"


def test_report_of_a_waiting_rank_names_the_missing_rank(ranks: Tool) -> None:
    traces = (ranks.folder / "trace").glob("*_*_*")
    waiting = next(own for own in traces if "[stuck]" in (own / "event.log").read_text())
    missing = (
        "does not end: rank 2 has not arrived: ranks 0-1 wait in all_reduce (launch 1 of this kernel in each process);"
        " 0x"
    )
    text = " ".join(ranks("report", str(waiting)).stdout.replace("all_reduce  does", "all_reduce does").split())
    assert f"! #1 all_reduce {missing}" in text
    assert "fix: check whether these ranks took another branch" in text
    report = json.loads(ranks("report", str(waiting), "--format", "json").stdout)
    finding = report["findings"][0]
    assert finding["claim"].startswith(missing)
    evidence = {own["metric"]: own["value"] for own in finding["evidence"]}
    assert (evidence["ranks_cause"], evidence["missing_ranks"]) == ("rank-missing", "2")


def test_rank_that_has_not_arrived_is_named(ranks: Tool) -> None:
    text = " ".join(ranks("show", "stuck", "--width", "160").stdout.split())
    assert (
        "most likely: rank 2 has not arrived: ranks 0-1 wait in all_reduce (launch 1 of this kernel in each process)"
        in text
    )
    assert text.count("ld.acquire.sys.global.u32") == 2
    own_page = ranks("show", "stuck", "-k", "all_reduce").stdout
    assert "launch 2 of #1 all_reduce: 2 warps on the GPU" in own_page


ONE_LAUNCH = r"""
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
PTX = b".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry empty() { ret; }\n"
context, module, kernel = (ctypes.c_void_p() for _ in range(3))
cuda.cuInit(0)
cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
cuda.cuModuleLoadData(ctypes.byref(module), PTX)
cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"empty")
cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None)
"""


def test_rank_is_known_without_the_number_of_ranks(natives: Path, tmp_path: Path) -> None:
    tool = Tool(tmp_path, natives)
    (tmp_path / "program.py").write_text(ONE_LAUNCH)
    launchers = ("RANK=1", "RANK=0 WORLD_SIZE=x", "RANK=3 PMI_RANK=0 PMI_SIZE=2")
    script = "\n".join(f"{variables} {sys.executable} program.py" for variables in launchers)
    result = tool("run", "--sim", "--no-report", "-p", "block_sched", "--", "sh", "-c", script)
    assert result.returncode == 0, result.stderr
    logs = [path.read_text() for path in tmp_path.glob("trace/*/event.log")]
    ranks = [line for log in logs for line in log.splitlines() if line.startswith("[init] rank ")]
    assert sorted(ranks) == ["[init] rank 0 of 2", "[init] rank 1 of 0"]


OWN_ENDS = {"alarm": 142, "abort": 134, "fault": 139, "_exit": 3, "exit": 3, "exec": 0}
"""Ways in which a process ends by itself while its launch runs, with the status of the run."""
SIGNALLED = {
    "SIGTERM": (["wait", "SIGTERM"], 143), "SIGHUP": (["wait", "SIGHUP"], 129),
    "SIGINT twice": (["wait", "SIGINT", "SIGINT"], 143),
    "third of a program with handlers": (["handle", "SIGTERM", "SIGINT", "SIGTERM"], 137),
}  # fmt: skip
"""Ways to interrupt a run: what the program does, the signals, and the status of the run."""
NOTICE = "launch 0 is still running; interrupt again to end the process"
UNWATCHED = "its warps were not watched: the kernel has no waits, and a counter ends each loop"
LIMIT = "600s"
"""Far beyond the time that these runs take: no launch is reported for its time."""


def interrupted(
    options: Sequence[str],
    environment: Mapping[str, str],
    how: str,
    *signals: str,
    kernel: str = "spin",
    limit: str = LIMIT,
    reported_in: Path | None = None,
) -> tuple[int, str]:
    """Run the program, and send the run the signals: all but the first once it has said that the launch still runs.

    With ``reported_in``, the directory of the trace, the first one is sent once the launch is reported. Returns the
    status of the run, and its messages.
    """
    watchdog = ["--watchdog", limit] if limit else []
    command = [sys.executable, "-m", "tui_probe", "run", "--no-ui", *watchdog, *options, "--"]
    process = subprocess.Popen(
        [*command, sys.executable, str(INTERRUPTED), how, kernel], env=environment, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    lines = [process.stdout.readline()]
    if reported_in is not None:
        wait_until(lambda: any("[stuck] " in log.read_text() for log in reported_in.glob("*/event.log")))
    for place, name in enumerate(signals):
        process.send_signal(getattr(signal, name))
        while not place and len(signals) > 1 and NOTICE not in lines[-1]:
            lines.append(process.stderr.readline())
            assert lines[-1], lines
    output, messages = process.communicate(timeout=HANG)
    return process.returncode, "".join([*lines, output, messages])


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + HANG
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def stuck_launch(trace: Path) -> dict[str, Any]:
    """The JSON of the page ``stuck`` of the program's trace."""
    command = [sys.executable, "-m", "tui_probe", "show", "stuck", str(trace), "--format", "json"]
    data: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)[
        "data"
    ]
    return data


def check_interrupted_launch(trace: Path) -> None:
    """Check that the trace has the places of the launch that ran, in its log before the process's end."""
    log = (trace / "event.log").read_text()
    assert log.index("[exec] save result/") < log.index("[stuck] launch 0 kernel 0 ")
    data = stuck_launch(trace)
    assert data["interrupted"] is True
    assert data["places"][0]["line"] == 9
    assert {warp["block"] for warp in data["warps"]} == {1}
    assert data["cause"]["key"] == "flag-not-set"


@pytest.mark.parametrize("how", OWN_ENDS)
def test_process_that_ends_during_a_launch_leaves_its_places(tool: Tool, how: str) -> None:
    options = ("--sim", "--no-check", "--no-report", "--tracedir", str(tool.folder))
    status, messages = interrupted(options, tool.environment, how)
    assert status == OWN_ENDS[how], messages
    (trace,) = tool.folder.glob("*_*_*")
    check_interrupted_launch(trace)


@pytest.mark.parametrize("name", SIGNALLED)
def test_run_that_is_interrupted_during_a_launch_leaves_its_places(tool: Tool, name: str) -> None:
    (how, *signals), expected = SIGNALLED[name]
    status, messages = interrupted(
        ("--sim", "--no-check", "--tracedir", str(tool.folder)), tool.environment, how, *signals
    )
    assert status == expected, messages
    (trace,) = tool.folder.glob("*_*_*")
    check_interrupted_launch(trace)
    assert "#0 spin  interrupted after " in messages
    assert "stuck warps 2, at places 1  simulated" in messages  # both blocks are known: block 0 has ended
    assert "measured in" not in messages


def test_launch_that_is_not_watched_is_ended_at_the_limit(tool: Tool) -> None:
    options = ("--sim", "--no-check", "--tracedir", str(tool.folder))
    status, messages = interrupted(options, tool.environment, "wait", kernel="count", limit="400ms")
    assert status == 143, messages
    text = " ".join(messages.split())
    assert f"launch 0 ran longer than 0.4 s, and {UNWATCHED}; the process was ended" in text
    assert "cannot hang" not in text


def test_launch_that_is_not_watched_ends_at_the_second_interrupt(tool: Tool) -> None:
    options = ("--sim", "--no-check", "--no-report", "--tracedir", str(tool.folder))
    status, messages = interrupted(options, tool.environment, "wait", "SIGINT", "SIGINT", kernel="count")
    assert status == 143, messages


def check_unfinished_launch(trace: Path, messages: str) -> None:
    """Check that a run without a watchdog names the launch that did not end, and the next run."""
    log = (trace / "event.log").read_text()
    line = next(line for line in log.splitlines() if line.startswith("[stuck] "))
    assert line.startswith("[stuck] launch 0 kernel 0 seconds ")
    assert line.endswith(" warps 0 left-out 0 reason the run had no watchdog code not-watched")
    assert log.index("[stuck] ") < log.index("[exit] launches 1 ")
    text = " ".join(messages.split())
    seconds = float(line.split(" seconds ")[1].split()[0])
    verdict = "does not end" if seconds >= LONG_SECONDS else "not complete"
    assert f"! #0 spin {verdict}: launch 0 had run for " in text
    assert "to see where the warps of the launch are, run again: tui-probe run --again " in text
    assert "launch 0 was still running at the second interrupt; the process was ended; to see where" in text


def test_run_without_a_watchdog_names_the_launch_that_runs(tool: Tool) -> None:
    options = ("--sim", "--no-check", "--tracedir", str(tool.folder))
    environment = {**tool.environment, "TUI_PROBE_LONG_LAUNCH": "500"}  # of 10 s, in which a core would be busy
    status, messages = interrupted(options, environment, "wait", "SIGINT", "SIGINT", limit="", reported_in=tool.folder)
    assert status == 143, messages
    (trace,) = tool.folder.glob("*_*_*")
    check_unfinished_launch(trace, messages)


@pytest.mark.parametrize(
    ("signals", "limit"), [((), "400ms"), (("SIGINT", "SIGINT"), LIMIT), (("SIGINT", "SIGINT"), "")]
)
def test_fault_before_a_launch_was_ended_is_reported_once(tool: Tool, signals: Sequence[str], limit: str) -> None:
    options = ("--sim", "--tracedir", str(tool.folder))
    environment = {**tool.environment, "TUI_PROBE_LONG_LAUNCH": "500", "TUI_PROBE_SIM_CHECK": "1"}
    status, messages = interrupted(
        options, environment, "wait", *signals, kernel="stray", limit=limit,
        reported_in=None if limit else tool.folder,
    )  # fmt: skip
    assert status == 143, messages
    (trace,) = tool.folder.glob("*_*_*")
    (line,) = (text for text in (trace / "event.log").read_text().splitlines() if text.startswith("[sanitizer] "))
    fault = json.loads(line.removeprefix("[sanitizer] "))
    assert (fault["launch"], fault["kernel"], fault["kind"]) == (0, "stray", "out_of_bounds")
    assert "directly after an allocation of 4096 bytes" in " ".join(messages.split())
