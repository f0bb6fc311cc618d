"""Any call that the hook makes of the real driver for itself may fail: same output, same status, a readable trace."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.attack.fault_walk import Walk, missing, tools
from tests.attack.scenarios import Scenario
from tui_probe.launcher.engine import Engine
from tui_probe.launcher.options import RunOptions
from tui_probe.probe_files.choices import choose_probes

from .conftest import PROGRAMS, tool

ALLOCATING = ("bench_buffer", "empty_pair", "pool", "replay", "stopwatch", "variants")
"""Prefixes of the hook's files that ask the driver for memory."""
CUDA_ERROR_OUT_OF_MEMORY = 2
WORKERS = min(os.cpu_count() or 2, 6)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that unloads kernels that still run, and one with streams, textures and variables in machine code."""
    nvcc = tool("nvcc")
    if reason := missing():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("programs")
    subprocess.run(["cc", "-O2", "-o", folder / "unusual", PROGRAMS / "unusual.c", "-ldl"], check=True)
    code = ["-gencode=arch=compute_90,code=sm_90", "-std=c++17", "-cudart=static"]
    subprocess.run([nvcc, *code, "-o", folder / "machine_code", PROGRAMS / "machine_code.cu"], check=True)
    return folder


@pytest.fixture(params=["unload", "reset", "machine_code"])
def scenario(request: pytest.FixtureRequest, programs: Path, tmp_path: Path) -> Iterator[Scenario]:
    """A run of the program under the real driver, with the engine that runs have."""
    name = request.param
    command: tuple[str, ...] = (str(programs / "machine_code"),)
    if name != "machine_code":
        command = (str(programs / "unusual"), str(PROGRAMS / "unusual.ptx"), name)
    unprofiled = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    options = RunOptions(command=("true",), probes=("block_sched",), trace_root=tmp_path)
    engine = Engine(choose_probes(["block_sched"]), options, True, tmp_path / "engine.log")
    environment = {"TUI_PROBE_ENGINE": str(engine.socket), "TUI_PROBE_DRIVER": "", "TUI_PROBE_LAUNCHES": "all"}
    try:
        yield Scenario(name, environment, command=command, output=unprofiled.stdout, status=unprofiled.returncode)
    finally:
        engine.stop()


def walked(walk: Walk, scenario: Scenario, folder: Path, calls: Sequence[int]) -> None:
    walk.go(tools(folder / "tools"), scenario, folder / "walk", calls, WORKERS)
    print(f"GPU-FAULTS\t{scenario.name}\t{walk.runs} runs\t{len(walk.met)} places", *walk.complaints, sep="\n")
    assert not walk.complaints
    assert walk.met


def test_calls_of_the_driver_may_fail(scenario: Scenario, tmp_path: Path) -> None:
    """The first, and each call at every place."""
    walked(Walk(kinds=("driver",)), scenario, tmp_path, (1, 0))


def test_there_may_be_no_memory(scenario: Scenario, tmp_path: Path) -> None:
    """For the first, the second and each later thing that the hook asks memory of the device for."""
    scenario.environment["FAULT_ERROR"] = str(CUDA_ERROR_OUT_OF_MEMORY)
    walked(Walk(kinds=("driver",), files=ALLOCATING), scenario, tmp_path, (1, 2, 3, 4, 5, 0))
