"""Programs on several GPUs: one process with all of them, and a process each. With one GPU they run on that one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tui_probe.trace.follow import open_trace
from tui_probe.trace.locate import traces_in
from tui_probe.verdicts.probe_coverage import probe_coverage

from .conftest import PROGRAMS, Runner


@pytest.mark.parametrize("probe", ["gmem_bytes", "block_sched", "dmat"])
def test_one_process_on_every_gpu(probe: str, built: Path, runner: Runner) -> None:
    command = [str(built / "two_devices")]
    unprofiled = runner.unprofiled(command)
    profiled = runner.profiled(command, "-p", probe)
    assert profiled.outcome.status == unprofiled.status == 0
    assert profiled.outcome.stdout == unprofiled.stdout
    (kernel,) = open_trace(profiled.trace).kernels
    devices = unprofiled.stdout.count("device")
    print(f"GPU-DEVICES\t{devices}\t{kernel.name}\t{kernel.status}\t{kernel.launches}\t{kernel.reason}")
    assert (kernel.name, kernel.status, kernel.launches) == ("add_index", "probed", 100 * devices)


def test_a_process_for_each_gpu(runner: Runner) -> None:
    pytest.importorskip("triton")
    command = [sys.executable, str(PROGRAMS / "distributed.py")]
    unprofiled = runner.unprofiled(command)
    profiled = runner.profiled(command, "-p", "gmem_bytes")
    assert profiled.outcome.status == unprofiled.status == 0
    assert profiled.outcome.stdout == unprofiled.stdout
    traces = [open_trace(path) for path in traces_in(profiled.trace.parent)]
    kernels = [kernel for trace in traces for kernel in trace.kernels if kernel.name == "scale"]
    assert [(kernel.status, kernel.launches) for kernel in kernels] == [("probed", 4), ("probed", 4)]


LEAST = 0.99
"""Of each process's GPU time in kernels that were recorded."""


def test_collectives_between_gpus(runner: Runner) -> None:
    """NCCL's kernels wait for one another across GPUs, and have no PTX."""
    torch = pytest.importorskip("torch")
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    command = [sys.executable, str(PROGRAMS / "collectives.py")]
    unprofiled = runner.unprofiled(command)
    assert unprofiled.status == 0, unprofiled.stderr
    profiled = runner.profiled(command, "-p", "block_sched", "--machine-code", "all")
    assert (profiled.outcome.status, profiled.outcome.stdout) == (0, unprofiled.stdout)
    shares = []
    for trace in map(open_trace, traces_in(profiled.trace.parent)):
        coverage = probe_coverage(trace)
        if coverage is None:
            continue
        shares.append(coverage.probed.share)
        slowest = max((kernel.slowdown or 0.0 for kernel in trace.kernels), default=0.0)
        print(f"GPU-COLLECTIVES\t{coverage.sentence}\tslowest {slowest:.3f}")
        for kernel in trace.kernels:
            print(f"GPU-COLLECTIVES\t{kernel.name[:60]}\t{kernel.mode}\t{kernel.launches_probed}/{kernel.launches}")
        ours = [kernel for kernel in trace.kernels if "nccl" in kernel.name.lower()]
        assert any(kernel.launches_probed for kernel in ours)
    assert len(shares) == 2
    assert min(shares) >= LEAST
