"""The whole path on the simulated GPU: hook, image, engine, probed launch, results, report."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from tests.turns import due
from tui_probe.simgpu.examples import demo
from tui_probe.trace.follow import open_trace
from tui_probe.trace.results import read_result

from ..launcher.terminal import terminal
from ..warm_start import COLD
from .conftest import PYTHON_EXAMPLE as EXAMPLE
from .conftest import RUN, Tool

KERNELS = list(demo.EXAMPLES)


def test_the_example_does_the_same_under_the_hook(tool: Tool) -> None:
    unprofiled = tool.unprofiled(*EXAMPLE)
    probed, trace = tool.run(EXAMPLE)
    assert unprofiled.stdout == "".join(f"{name} ok\n" for name in KERNELS)
    assert (probed.returncode, probed.stdout) == (unprofiled.returncode, unprofiled.stdout)
    assert probed.stderr.splitlines() == [f"[info] trace in trace/{trace.name}"]

    kernels = open_trace(trace).kernels
    assert [kernel.name for kernel in kernels] == KERNELS
    for kernel in kernels:
        assert (kernel.status, kernel.launches, kernel.launches_probed) == ("probed", 1, 1), kernel.reason
        assert {path.name for path in kernel.folder.iterdir()} >= {  # type: ignore[union-attr]
            "original.bin", "pruned.ptx", "probed.ptx", "kernel.info", "process.log",
        }  # fmt: skip
    assert len(list((trace / "result").iterdir())) == len(KERNELS)
    assert (trace / "stdout.log").read_text() == probed.stdout
    assert "[exit] launches 7 probed 7 dropped 0" in (trace / "event.log").read_text()
    record = json.loads((trace / "run.json").read_text())
    assert (record["exit_status"], record["driver"]["simulated"]) == (0, True)


def test_simulated_launches_are_timed_in_cycles_that_no_page_shows_as_times(tool: Tool) -> None:
    _, trace = tool.run(EXAMPLE)
    log = (trace / "event.log").read_text()
    cycles = re.findall(r"^\[time\] launch \d+ kernel (\d+) key \d+ probed ns (\d+) for 1 host", log, re.MULTILINE)
    assert sorted(int(kernel) for kernel, _ in cycles) == list(range(len(KERNELS)))
    assert all(int(number) > 0 for _, number in cycles)
    assert "[time] empty 0 without-kernel\n" in log
    report = tool("report", str(trace), "--format", "json")
    for kernel in json.loads(report.stdout)["kernels"]:
        assert kernel["time_share"] is kernel["time_mean_ms"] is kernel["time_samples"] is None
    untimed, other = tool.run(EXAMPLE, "--no-times")
    assert untimed.returncode == 0
    assert "[time]" not in (other / "event.log").read_text()


def test_every_warp_of_a_launch_has_its_record(tool: Tool) -> None:
    _, trace = tool.run([*EXAMPLE, "--kernel", "zero_fill", "--size", "1000"], "--detail")
    (path,) = (trace / "result").iterdir()
    result = read_result(path)
    blocks, warps = 8, 4
    (slots,) = result.maps
    records = np.asarray(slots).view([("start", "<u8"), ("elapsed", "<u4"), ("smid", "<u4")])
    assert records.size == blocks * warps
    assert (records["start"] > 0).all()
    assert (records["elapsed"] > 0).all()
    assert len(set(records["smid"].ravel().tolist())) > 1


def test_the_targets_own_failure_is_passed_on(tool: Tool) -> None:
    unprofiled = tool.unprofiled(*EXAMPLE, "--kernel", "nonsense")
    probed, _ = tool.run([*EXAMPLE, "--kernel", "nonsense"])
    assert probed.returncode == unprofiled.returncode == 2
    first, _, errors = probed.stderr.partition("\n")  # before it says anything no one knows that it launches nothing
    assert first.startswith("[info] trace in ")
    assert errors == unprofiled.stderr
    assert not (tool.folder / "trace").exists()
    reported = tool("run", "-p", "block_sched", "--sim", "--", *EXAMPLE, "--kernel", "nonsense")
    named = reported.stderr.partition("\n")[0].removeprefix("[info] trace in ")
    assert reported.stdout == f"no kernel was launched: the trace {named} was not created\n"


def test_only_some_kernels(tool: Tool) -> None:
    probed, trace = tool.run(EXAMPLE, "-k", "store:saxpy", "--filter", "strided")
    assert probed.returncode == 0
    statuses = {kernel.name: kernel.status for kernel in open_trace(trace).kernels}
    assert statuses == {name: "probed" if name in ("coalesced_store", "saxpy") else "excluded" for name in KERNELS}
    assert len(list((trace / "result").iterdir())) == 2


def test_only_some_launches(tool: Tool) -> None:
    command = [*EXAMPLE, "--kernel", "saxpy", "--repeat", "5"]
    probed, trace = tool.run(command, "--launches", "1-2,4")
    assert probed.stdout == "saxpy ok\n"
    (kernel,) = open_trace(trace).kernels
    assert (kernel.launches, kernel.launches_probed) == (5, 3)


def test_demo_says_where_it_runs_and_keeps_its_trace(tool: Tool) -> None:
    result = tool("demo", "--sim", "--kernel", "zero_fill", "--tracedir", "kept")
    assert result.returncode == 0
    assert result.stdout.startswith("zero_fill ok\n")
    lines = result.stderr.splitlines()
    assert lines[0] == "[info] demo on the simulated GPU"
    assert lines[-1] == "[info] to open the trace again: tui-probe open kept"
    (trace,) = (tool.folder / "kept").iterdir()
    assert (trace / "event.log").is_file()


def test_demo_is_small_but_fills_the_gpu_and_loads_kernels_before_it_launches_them(tool: Tool) -> None:
    """Kernels are prepared while others run, and a smaller grid would add findings that the kernels do not have."""
    result = tool("demo", "--sim", "--tracedir", "kept")
    assert "idle lanes" in result.stdout
    assert "uncoalesced" in result.stdout
    assert not re.search("idle SMs|small grid", result.stdout)
    (trace,) = (tool.folder / "kept").iterdir()
    tags = re.findall(r"^\[(bin|exec)\]", (trace / "event.log").read_text(), re.MULTILINE)
    assert tags[: len(KERNELS)] == ["bin"] * len(KERNELS)
    assert "exec" in tags


def test_the_report_has_the_block_scheduling_line(tool: Tool) -> None:
    result = tool("run", "-p", "block_sched", "--sim", "--", *EXAMPLE, "--kernel", "zero_fill")
    line = re.search(r"128 blocks, cycles per slot: \d+ running, \d+ in gaps", result.stdout)
    assert line is not None, result.stdout
    assert result.stdout.startswith("zero_fill ok\n")
    assert "simulated" in result.stdout
    again = tool("open", "trace")
    assert (again.returncode, again.stderr) == (0, "")
    assert line[0] in again.stdout


@pytest.mark.parametrize("size", due([(24, 80), (50, 200)]))
def test_the_live_screen_from_start_to_end(tool: Tool, size: tuple[int, int]) -> None:
    argv = [*RUN, "--", *EXAMPLE, "--kernel", "zero_fill"]
    environment = tool.environment | {"TERM": "xterm-256color", COLD: "1"}
    with terminal(argv, tool.folder, environment, size) as screen:
        screen.read_until(b"exit 0")
        screen.type(b"\x11")
        after = screen.read_to_end()
        assert screen.wait() == 0
    assert b"\x1b[?1049l" in after, "the alternate screen is left"
    text = after.rpartition(b"\x1b[?1049l")[2].decode()
    assert "[info] trace in trace/" in text
    assert re.search(r"128 blocks, cycles per slot: \d+ running, \d+ in gaps", text)
