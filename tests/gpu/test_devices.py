"""Programs on several GPUs: one process with all of them, and a process each. With one GPU they run on that one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tui_probe.trace.follow import open_trace
from tui_probe.trace.locate import traces_in

from .conftest import PROGRAMS, Runner


@pytest.mark.parametrize("probe", ["gmem_bytes", "block_sched", "dmat"])
def test_one_process_on_every_gpu(probe: str, built: Path, runner: Runner) -> None:
    command = [str(built / "two_devices")]
    alone = runner.alone(command)
    profiled = runner.profiled(command, "-p", probe)
    assert profiled.outcome.status == alone.status == 0
    assert profiled.outcome.stdout == alone.stdout
    (kernel,) = open_trace(profiled.trace).kernels
    devices = alone.stdout.count("device")
    print(f"GPU-DEVICES\t{devices}\t{kernel.name}\t{kernel.status}\t{kernel.launches}\t{kernel.reason}")
    assert (kernel.name, kernel.status, kernel.launches) == ("add_index", "probed", 100 * devices)


def test_a_process_for_each_gpu(runner: Runner) -> None:
    pytest.importorskip("triton")
    command = [sys.executable, str(PROGRAMS / "distributed.py")]
    alone = runner.alone(command)
    profiled = runner.profiled(command, "-p", "gmem_bytes")
    assert profiled.outcome.status == alone.status == 0
    assert profiled.outcome.stdout == alone.stdout
    traces = [open_trace(path) for path in traces_in(profiled.trace.parent)]
    kernels = [kernel for trace in traces for kernel in trace.kernels if kernel.name == "scale"]
    assert [(kernel.status, kernel.launches) for kernel in kernels] == [("probed", 4), ("probed", 4)]
