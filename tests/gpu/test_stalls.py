"""Planted waits on a real GPU: each is found at its instruction, with its class, as long as it was made."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tui_probe.probekit.measured import analyse_result
from tui_probe.trace.follow import open_trace

from .conftest import PROGRAMS, Runner

if TYPE_CHECKING:
    from tui_probe.trace.model import Kernel

FMA_CYCLES = 4
ROUND_CYCLES = 16 * FMA_CYCLES
"""Of ``work`` in the program, besides the loop around it."""
LATE = {
    "late_barrier": ("barrier", 0.5),
    "late_mbarrier": ("mbarrier", 0.5),
    "late_cluster": ("cluster", 0.5),
    "late_producer": ("mbarrier", 1.0),
}
"""By kernel: the class of the wait for the late warps, and the part of the warps at it that wait."""


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> str:
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if nvcc is None:
        pytest.skip("no nvcc on this machine to build the test program with")
    program = tmp_path_factory.mktemp("planted") / "planted_waits"
    command = [nvcc, "-arch=sm_90a", "-std=c++17", "-lineinfo", "-o", str(program), str(PROGRAMS / "planted_waits.cu")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NVCC_")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return str(program)


def longest(kernel: Kernel) -> list[tuple[str, float]]:
    """The class and mean cycles of the longest wait of each launch, in order."""
    longest = []
    for probed in kernel.by_probe():
        for row in sorted(probed.result_rows, key=lambda row: probed.trace.results.launch(row) or 0):
            worst = analyse_result(probed.trace, probed, row).analysis.sites[0]
            assert worst.longest is not None
            assert worst.longest >= worst.per_pass
            longest.append((worst.wait.kind, worst.per_pass))
    return longest


@pytest.mark.exclusive
def test_planted_waits_are_as_long_as_they_were_made(planted: str, runner: Runner) -> None:
    unprofiled = runner.unprofiled([planted])
    profiled = runner.profiled([planted], "-p", "stall_sites", "--launches", "all", "--wait")
    assert (profiled.outcome.status, profiled.outcome.stdout) == (unprofiled.status, unprofiled.stdout)
    kernels = {kernel.demangled.partition("(")[0]: longest(kernel) for kernel in open_trace(profiled.trace).kernels}
    chases = {count: kernels[f"void chase<{count}>"][-1] for count in (0, 16, 32, 48, 96)}
    print(f"GPU-STALLS\tchase {chases}")
    assert {kind for count, (kind, _) in chases.items() if count <= 48} == {"global"}
    slope = np.polyfit([16, 32, 48], [chases[count][1] for count in (16, 32, 48)], 1)[0]
    assert slope == pytest.approx(-FMA_CYCLES, rel=0.05)
    assert chases[96][1] < 10
    for name, (kind, waiting) in LATE.items():
        waits = kernels[name]
        print(f"GPU-STALLS\t{name} {waits}")
        assert {kind_found for kind_found, _ in waits[1:]} == {kind}
        steps = np.diff([cycles for _, cycles in waits[1:]])
        assert steps == pytest.approx(np.full(3, steps.mean()), rel=0.05)
        assert steps.mean() > 4 * ROUND_CYCLES * waiting * 0.9
    copies = kernels["copies"]
    print(f"GPU-STALLS\tcopies {copies}")
    assert copies[0][0] == "async"
    assert copies[0][1] > 100
