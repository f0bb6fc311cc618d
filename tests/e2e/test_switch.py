"""Recording is switched while a program runs, on the simulated GPU."""

from __future__ import annotations

import sys

import pytest

from tui_probe.launcher.control import FIELDS
from tui_probe.trace.follow import open_trace

from .conftest import Tool

# Runs kernels, one of them in the range that the program asks to be profiled.
PROGRAM = """
import argparse, ctypes, subprocess, sys, time
from tui_probe.simgpu.examples import demo
gpu = demo.Gpu()
driver = ctypes.CDLL("libcuda.so.1")
options = argparse.Namespace(size=1000, repeat=1, slow=False)
def ctl(word):
    command = [sys.executable, "-m", "tui_probe", "ctl", "trace", word]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
def wait_for(on):
    with open(os.environ["TUI_PROBE_CONTROL"], "rb", buffering=0) as page:
        while int.from_bytes(os.pread(page.fileno(), 4, ON_OFFSET), sys.byteorder) != on:
            time.sleep(0.01)
import os
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
ok = True
for name, before, after in STEPS:
    before()
    ok = demo.run_example(gpu, name, options) and ok
    after()
sys.exit(0 if ok else 1)
"""
RANGE = """(
    ("zero_fill", lambda: None, lambda: None),
    ("saxpy", driver.cuProfilerStart, driver.cuProfilerStop),
    ("coalesced_store", lambda: None, lambda: None),
)"""
CTL = """(
    ("zero_fill", lambda: ctl("off"), lambda: None),
    ("saxpy", lambda: ctl("on"), lambda: ctl("off")),
    ("coalesced_store", lambda: None, lambda: None),
)"""
WINDOW = """(
    ("zero_fill", lambda: None, lambda: None),
    ("saxpy", lambda: wait_for(1), lambda: None),
    ("coalesced_store", lambda: wait_for(0), lambda: None),
)"""


@pytest.mark.parametrize(
    ("steps", "options"),
    [(RANGE, ["--capture-range"]), (CTL, []), (WINDOW, ["--after", "3s", "--for", "1s"])],
    ids=["capture-range", "ctl", "window"],
)
def test_only_what_runs_while_it_is_on_is_recorded(tool: Tool, steps: str, options: list[str]) -> None:
    run, trace = tool.run(
        [sys.executable, "-c", PROGRAM.replace("STEPS", steps).replace("ON_OFFSET", str(FIELDS["on"]))], *options
    )
    assert run.returncode == 0, run.stderr
    kernels = {kernel.name: kernel for kernel in open_trace(trace).kernels}
    assert {name: kernel.launches for name, kernel in kernels.items()} == dict.fromkeys(
        ("zero_fill", "saxpy", "coalesced_store"), 1
    )
    assert [name for name, kernel in kernels.items() if len(kernel.result_rows)] == ["saxpy"]
    for name in ("zero_fill", "coalesced_store"):
        reason = kernels[name].stated_reason
        assert reason is not None
        assert reason.code == "switched-off"
