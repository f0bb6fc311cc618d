"""Failures around a run leave the target as it is, and a trace that names them."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import HANG
from tui_probe.pages.run_report import run_report
from tui_probe.trace.follow import open_trace

from ..launcher.terminal import terminal
from ..launcher.test_signals import kill_engine
from .conftest import EXAMPLE, RUN, Tool

# Runs one kernel, says so, and runs another when a line comes in.
IN_STEPS = """
import argparse, os, sys
from tui_probe.simgpu.examples import demo
gpu = demo.Gpu()
options = argparse.Namespace(size=1000, repeat=1, slow=False)
demo.run_example(gpu, 'zero_fill', options)
sys.stdin.readline()
sys.exit(0 if demo.run_example(gpu, 'saxpy', options) else 1)
"""
IN_CHILDREN = """
import argparse, os, sys
from tui_probe.simgpu.examples import demo
options = argparse.Namespace(size=1000, repeat=1, slow=False)
for status, name in enumerate(('zero_fill', 'saxpy')):
    if os.fork() == 0:
        sys.exit(status if demo.run_example(demo.Gpu(), name, options) else 9)
    os.wait()
"""


def start(tool: Tool, source: str) -> subprocess.Popen[bytes]:
    """``tui-probe run`` of a Python program whose input and outputs are pipes."""
    command = [*RUN, "--no-report", "--", sys.executable, "-c", source]
    return subprocess.Popen(
        command, cwd=tool.folder, env=tool.environment, start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_kernels_are_probed_after_the_engine_has_died(tool: Tool) -> None:
    with start(tool, IN_STEPS) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"zero_fill ok\n"
        kill_engine(process.pid)
        rest, messages = process.communicate(b"\n", timeout=HANG)
    assert (process.returncode, rest) == (0, b"saxpy ok\n")
    (line,) = messages.decode().splitlines()
    trace = open_trace(tool.folder / line.split()[-1])
    assert trace.run_info is not None
    assert trace.run_info.messages[0].startswith("the probe engine ended with signal 9")
    assert "the probe engine ended with signal 9" in run_report(trace)
    assert [(kernel.name, kernel.status) for kernel in trace.kernels] == [("zero_fill", "probed"), ("saxpy", "probed")]


def test_a_target_that_is_asked_to_end_saves_its_results(tool: Tool) -> None:
    with start(tool, IN_STEPS) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"zero_fill ok\n"
        process.send_signal(signal.SIGTERM)
        process.wait(HANG)
        assert process.stderr is not None
        messages = process.stderr.read()
    assert process.returncode == 128 + signal.SIGTERM
    trace = tool.folder / messages.decode().splitlines()[0].split()[-1]
    assert len(list((trace / "result").iterdir())) == 1
    assert "[exit] launches 1 probed 1 dropped 0" in (trace / "event.log").read_text()
    assert json.loads((trace / "run.json").read_text())["signal"] == signal.SIGTERM


def test_each_process_that_launches_kernels_has_a_trace(tool: Tool) -> None:
    result = tool("run", "-p", "block_sched", "--sim", "--no-report", "--", sys.executable, "-c", IN_CHILDREN)
    assert (result.returncode, result.stdout) == (0, "zero_fill ok\nsaxpy ok\n")
    traces = [tool.folder / line.split()[-1] for line in result.stderr.splitlines()]
    assert [[kernel.name for kernel in open_trace(trace).kernels] for trace in traces] == [["zero_fill"], ["saxpy"]]
    for trace in traces:
        assert (trace / "stdout.log").read_text() == result.stdout
    assert [open_trace(trace).state.exit_status for trace in traces] == [0, 1]


def test_ctrl_c_on_the_screen_interrupts_the_target(tool: Tool) -> None:
    program = f"{IN_STEPS.replace('sys.stdin.readline()', 'import time; time.sleep(99)')}"
    argv = [*RUN, "--no-report", "--", sys.executable, "-c", program]
    with terminal(argv, tool.folder, tool.environment | {"TERM": "xterm-256color"}) as screen:
        screen.read_until(b"1 launch")
        screen.type(b"\x03")
        screen.read_until(b"killed by signal 2")
        screen.type(b"\x11")
        left = screen.read_to_end().rpartition(b"\x1b[?1049l")[2].decode()
        assert os.waitstatus_to_exitcode(screen.wait()) == 128 + signal.SIGINT
    trace = tool.folder / Path(left.split("[info] trace in ")[1].split()[0])
    assert "KeyboardInterrupt" in (trace / "stderr.log").read_text()


def test_min_free_disk_is_respected(tool: Tool) -> None:
    """No result is saved, the program runs as ever, and the report says why and what to do."""
    result, trace = tool.run([*EXAMPLE, "--kernel", "saxpy"], "--min-free-disk", "8000T")
    problem = "no further results were saved: disk is nearly full (less than 8192000 GiB free)"
    unprofiled = tool.unprofiled(*EXAMPLE, "--kernel", "saxpy")
    assert (result.returncode, result.stdout) == (unprofiled.returncode, unprofiled.stdout)
    assert list((trace / "result").iterdir()) == []
    assert problem in " ".join(tool("report", str(trace)).stdout.split())
    again = tool("run", "-p", "block_sched", "--sim", "--min-free-disk", "8000T", "--", *EXAMPLE, "--kernel", "saxpy")
    assert problem in " ".join(again.stdout.split())
    assert "or lower --min-free-disk" in " ".join(again.stdout.split())


@pytest.mark.parametrize(
    "options", ["size=4k", "size=96k", "size=400k", "size=4k,nr_inodes=2", "ro"], ids=lambda text: text[-8:]
)
def test_a_disk_without_room_from_the_start(tool: Tool, options: str) -> None:
    """Also on a read-only disk: the program does what it does without tui-probe, and the user learns why."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"], check=False).returncode:
        pytest.skip("needs unshare, and name spaces for users")
    disk = tool.folder / "disk"
    disk.mkdir()
    unprofiled = tool.unprofiled(*EXAMPLE)
    run = [*RUN, "--no-ui", "--min-free-disk", "0", "--no-report"]
    run += ["--tracedir", f"{disk}/t", "--", *EXAMPLE]
    result = tool.in_namespace(f"mount -t tmpfs -o {options} tmpfs {disk} && exec {shlex.join(run)}")
    assert (result.returncode, result.stdout) == (0, unprofiled.stdout), result.stderr
    assert re.search(r"No space left on device|Read-only file system", result.stderr)
