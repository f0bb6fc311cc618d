"""A run that is asked to end does not wait for a disk that is far behind, and has its report."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.patience import HANG
from tui_probe.trace.follow import open_trace

from ..hook.conftest import compile_c
from ..launcher.test_signals import children_of, command_line, wait_for_end
from .conftest import RUN, Tool

PATIENT = 40  # seconds that a program's end may wait for its results, unless someone asks the program to end

# Launches some kernels and says so; a word of the command line tells it what to do with SIGTERM.
MANY = """
import argparse, signal, sys, time
from tui_probe.simgpu.examples import demo
if sys.argv[1] == 'handle':
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
demo.run_example(demo.Gpu(), 'saxpy', argparse.Namespace(size=1000, repeat=12, slow=False))
print('up', flush=True)
time.sleep(60)
"""
ON_SLOW_DISK = 'exec env LD_PRELOAD="$LD_PRELOAD:$0" SLOW_DISK=400 "$@"'
"""Slows the disk of the program only, whose hook writes the results."""


@pytest.fixture(scope="module")
def slow_disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("slow") / "slow_disk.so"
    compile_c(Path(__file__).parents[1] / "hook" / "slow_disk.c", library, "-shared")
    return library


def start(tool: Tool, library: Path, what: str) -> subprocess.Popen[str]:
    """``tui-probe run`` of the program on a disk that takes 0.4 s for each write, once it is up."""
    argv = [*RUN, "--no-ui", "--", "sh", "-c", ON_SLOW_DISK, str(library), sys.executable, "-c", MANY, what]
    process = subprocess.Popen(
        argv, cwd=tool.folder, env=tool.environment | {"TUI_PROBE_EXIT_TIMEOUT": str(PATIENT)},
        start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    while (line := process.stdout.readline()) != "up\n":
        assert line, process.communicate()
    return process


@pytest.mark.parametrize(
    ("number", "what", "status"),
    [
        (signal.SIGTERM, "leave", 128 + signal.SIGTERM),
        (signal.SIGHUP, "leave", 128 + signal.SIGHUP),
        (signal.SIGINT, "leave", 128 + signal.SIGINT),
        (signal.SIGTERM, "handle", 7),
    ],
)
def test_a_run_that_is_asked_to_end(tool: Tool, slow_disk: Path, number: int, what: str, status: int) -> None:
    process = start(tool, slow_disk, what)
    target = next(os.pidfd_open(child) for child in children_of(process.pid) if MANY in command_line(child))
    process.send_signal(number)
    wait_for_end(target)
    output, messages = process.communicate(timeout=HANG)
    assert process.returncode == status, messages
    folder = tool.folder / messages.splitlines()[0].split()[-1]
    trace = open_trace(folder)
    assert trace.state.launches_dropped
    assert trace.state.dropped_reason_code == "no-time"
    assert f"{trace.state.launches_dropped} results not kept: the program ended before the result was written" in output
    record = json.loads((folder / "run.json").read_text())
    assert (record["exit_status"], record["signal"]) == ((7, None) if what == "handle" else (None, number))
    waited = re.findall(r"gave up waiting for kernels and results after (\d+) ms", (folder / "event.log").read_text())
    assert all(int(milliseconds) < PATIENT * 1000 for milliseconds in waited)


def test_a_reader_that_takes_nothing_does_not_hold_the_end_up(tool: Tool) -> None:
    program = ["sh", "-c", "echo up >&2; yes & exec sleep 60"]
    argv = [*RUN, "--no-report", "--", *program]
    process = subprocess.Popen(
        argv, cwd=tool.folder, env=tool.environment, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    process.stderr.readline()
    time.sleep(1)  # until the pipe is full
    process.send_signal(signal.SIGTERM)
    assert process.wait(HANG) == 128 + signal.SIGTERM
    process.stderr.close()
    assert process.stdout is not None
    process.stdout.close()
