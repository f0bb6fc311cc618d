"""``run --watchdog`` on a GPU: planted deadlocks, and what the watching code costs kernels that end."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_watchdog import (
    CAUSES,
    KINDS,
    LINES,
    OWN_ENDS,
    SIGNALLED,
    UNWATCHED,
    check_interrupted_launch,
    check_unfinished_launch,
    interrupted,
)
from tui_probe.trace.follow import open_trace

from .conftest import PROGRAMS, Runner

LIMITED = ("--watchdog", "30s")
"""A process that its driver does not let end is ended then, and has another status."""
GOAL = 1.10
"""Part of their own time that kernels over 20 µs should take at most."""


def shown(trace: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "tui_probe", "show", "stuck", str(trace), "--format", "json"]
    document = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    data: dict[str, Any] = document["data"]
    return data


@pytest.mark.exclusive
@pytest.mark.parametrize("kind", KINDS)
def test_planted_deadlock_has_its_cause_line_and_missing_warps(kind: str, runner: Runner) -> None:
    command = [sys.executable, str(PROGRAMS / "deadlocks.py"), kind]
    profiled = runner.profiled(command, "--no-ui", "--watchdog", "2s", "-p", "gmem_bytes")
    data = shown(profiled.trace)
    print(f"GPU-STUCK {kind} {data['cause']['words']}")
    assert data["cause"]["key"] == CAUSES[kind]
    assert data["places"][0]["line"] == LINES[kind]
    if kind in ("mbarrier", "token"):
        assert data["places"][0]["missing"].startswith("3 at bar.sync")


SASS_PLACES = {
    "mbarrier": ("mbarrier-count", "SYNCS"),
    "token": ("mbarrier-count", "SYNCS"),
    "grid": ("grid-does-not-fit", "LD"),
    "lock": ("flag-not-set", "ATOM"),
    "count": ("flag-not-set", "LD"),
    "leak": ("flag-not-set", "ATOM"),
}
"""Causes and operations in kernels without PTX; for these, the lock that a warp took is not known."""


@pytest.mark.exclusive
@pytest.mark.parametrize("kind", KINDS)
def test_planted_deadlock_without_ptx_has_its_instruction(kind: str, runner: Runner) -> None:
    major, minor = (device_attribute(number) for number in (75, 76))
    command = [sys.executable, str(PROGRAMS / "deadlocks.py"), kind, f"sm_{major}{minor}"]
    profiled = runner.profiled(command, "--no-ui", "--watchdog", "4s", "-p", "gmem_bytes")
    kernels = open_trace(profiled.trace).kernels
    print(f"GPU-STUCK-SASS {kind} {[(kernel.name, kernel.status, str(kernel.reason)) for kernel in kernels]}")
    data = shown(profiled.trace)
    print(f"GPU-STUCK-SASS {kind} {data['cause']['words']}")
    for place in data["places"]:
        print(f"GPU-STUCK-SASS {kind} {place['warps']} at {place['opcode']} {place['offset']}")
    cause, operation = SASS_PLACES[kind]
    assert data["cause"]["key"] == cause
    assert any(place["opcode"].startswith(operation) and place["offset"] for place in data["places"])


@pytest.mark.exclusive
def test_rank_that_has_not_arrived_is_named(runner: Runner) -> None:
    program = PROGRAMS / "ranks.py"
    script = "".join(f"RANK={rank} WORLD_SIZE=3 {sys.executable} {program} & " for rank in range(3)) + "wait"
    profiled = runner.profiled(["sh", "-c", script], "--no-ui", "--watchdog", "3s", "-p", "gmem_bytes")
    command = [sys.executable, "-m", "tui_probe", "show", "stuck", str(profiled.trace), "--format", "json"]
    document = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    print(f"GPU-RANKS {document['cause']['words']}")
    assert (document["cause"]["key"], document["cause"]["missing"]) == ("rank-missing", [2])
    assert [(row["rank"], row["kernel"]) for row in document["stuck"]] == [
        (0, "all_reduce"), (1, "all_reduce"), (2, None),
    ]  # fmt: skip


@pytest.mark.exclusive
@pytest.mark.parametrize("how", OWN_ENDS)
def test_process_that_ends_during_a_launch_leaves_its_places(tmp_path: Path, how: str) -> None:
    status, messages = interrupted(("--no-report", *LIMITED, "--tracedir", str(tmp_path)), os.environ, how)
    assert status == OWN_ENDS[how], messages
    (trace,) = tmp_path.iterdir()
    check_interrupted_launch(trace)


@pytest.mark.exclusive
@pytest.mark.parametrize("name", SIGNALLED)
def test_run_that_is_interrupted_during_a_launch_leaves_its_places(tmp_path: Path, name: str) -> None:
    (how, *signals), expected = SIGNALLED[name]
    status, messages = interrupted((*LIMITED, "--tracedir", str(tmp_path)), os.environ, how, *signals)
    assert status == expected, messages
    (trace,) = tmp_path.iterdir()
    check_interrupted_launch(trace)
    assert "#0 spin  interrupted after " in messages
    assert "measured in" not in messages


@pytest.mark.exclusive
def test_run_without_a_watchdog_names_the_launch_that_runs(tmp_path: Path) -> None:
    options = ("--tracedir", str(tmp_path))
    status, messages = interrupted(options, os.environ, "wait", "SIGINT", "SIGINT", limit="", reported_in=tmp_path)
    assert status == 143, messages
    (trace,) = tmp_path.iterdir()
    check_unfinished_launch(trace, messages)


@pytest.mark.exclusive
def test_launch_that_is_not_watched_is_ended_at_the_limit(tmp_path: Path) -> None:
    """The driver's call has returned: the events around the launch show that it runs."""
    options = ("--tracedir", str(tmp_path))
    status, messages = interrupted(options, os.environ, "wait", kernel="count", limit="2s")
    assert status == 143, messages
    text = " ".join(messages.split())
    assert f"launch 0 ran longer than 2 s, and {UNWATCHED}; the process was ended" in text


def device_attribute(number: int) -> int:
    driver, value = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    assert driver.cuDeviceGetAttribute(ctypes.byref(value), number, 0) == 0
    return value.value


@pytest.mark.exclusive
def test_cost_of_watching_code(built: Path, runner: Runner) -> None:
    command = [str(built / "driver_api"), str(built)]
    profiled = runner.profiled(command, "-p", "stuck_warps", "--benchmark")
    assert profiled.outcome.stdout == runner.unprofiled(command).stdout
    for kernel in open_trace(profiled.trace).kernels:
        if kernel.slowdown is not None:
            print(f"GPU-WATCHDOG-COST {kernel.name} {kernel.time_ms} ms {kernel.slowdown:.3f} (goal {GOAL})")
