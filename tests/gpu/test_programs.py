"""Programs of every kind run under the profiler with the same output and exit status as without it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from tui_probe.trace.follow import open_trace

from .conftest import PROGRAMS, Runner

NATIVE = {
    "driver_api": ["{built}/driver_api", "{built}"],
    "runtime_static": ["{built}/runtime_static"],
    "runtime_shared": ["{built}/runtime_shared"],
}
PYTHON = {
    "triton_kernel": "triton",
    "compiled_graph": "torch",
    "cupy_raw": "cupy",
    "jax_matmul": "jax",
}
PROBED = {
    "driver_api": {"saxpy", "count_visits", "nothing"},
    "runtime_static": {"_Z5scaleIfEvPT_S0_i", "_Z5totalPKfPfi"},
    "runtime_shared": {"_Z5scaleIfEvPT_S0_i", "_Z5totalPKfPfi"},
    "triton_kernel": {"add", "matmul"},
    "cupy_raw": {"scale_add"},
}


def command_of(name: str, built: Path) -> list[str]:
    if name in NATIVE:
        return [part.format(built=built) for part in NATIVE[name]]
    if importlib.util.find_spec(PYTHON[name]) is None:
        pytest.skip(f"{PYTHON[name]} is not installed")
    return [sys.executable, str(PROGRAMS / f"{name}.py")]


@pytest.mark.parametrize("name", [*NATIVE, *PYTHON])
def test_a_program_does_the_same_with_and_without_the_profiler(name: str, built: Path, runner: Runner) -> None:
    command = command_of(name, built)
    unprofiled = runner.unprofiled(command)
    profiled = runner.profiled(command, "-p", "block_sched")
    assert profiled.outcome.status == unprofiled.status
    assert profiled.outcome.stdout == unprofiled.stdout

    kernels = open_trace(profiled.trace).kernels
    assert kernels
    for kernel in kernels:
        print(f"GPU-TABLE\t{name}\t{kernel.name}\t{kernel.status}\t{kernel.launches}\t"
              f"{kernel.registers_pruned}\t{kernel.registers_probed}\t{kernel.reason}")  # fmt: skip
        assert kernel.status in ("probed", "skipped"), f"{kernel.name}: {kernel.reason}"
        assert kernel.registers_pruned is not None, kernel.name
        assert kernel.status == "probed" or kernel.reason, kernel.name
    assert PROBED.get(name, set()) <= {kernel.name for kernel in kernels if kernel.status == "probed"}
