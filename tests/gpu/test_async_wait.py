"""Waits for asynchronous work on a real GPU: as long as the program measures itself, and without harm to ``wgmma``."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING

import pytest

from tui_probe.engine.kernel_texts import note_in
from tui_probe.probes.async_wait import AsyncWaits, analyse, kind_of, of_line
from tui_probe.trace.follow import open_trace
from tui_probe.trace.results import read_result

from .conftest import PROGRAMS, Runner, nvcc_program

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.records.counter_sums import CountsByLine
    from tui_probe.trace.model import Kernel

TILES, CONSUMERS = 400, 4
"""Tiles of all blocks of ``slow_producer.cu``, each brought by one warp and waited for by several."""


@pytest.fixture(scope="session")
def slow_producer(tmp_path_factory: pytest.TempPathFactory) -> str:
    program = tmp_path_factory.mktemp("waits") / "slow_producer"
    both = "-gencode=arch=compute_90,code=[sm_90,compute_90]"
    return nvcc_program(PROGRAMS / "slow_producer.cu", program, both)


def waits_of(kernel: Kernel, result: Path) -> CountsByLine[AsyncWaits]:
    info = kernel.read_info()
    assert info is not None
    counts: CountsByLine[AsyncWaits] = analyse(read_result(result), info.sites.get(0, ()), kernel.folder)
    return counts


@pytest.mark.parametrize("cycles", [20_000, 200_000])
@pytest.mark.exclusive
def test_waits_are_what_the_program_measures_itself(
    cycles: int, slow_producer: str, runner: Runner, tmp_path: Path
) -> None:
    command = [slow_producer, str(cycles), str(tmp_path / "measured")]
    unprofiled = runner.unprofiled(command)
    assert unprofiled.status == 0, unprofiled.stderr
    profiled = runner.profiled(command, "-p", "async_wait")
    assert (profiled.outcome.status, profiled.outcome.stdout) == (unprofiled.status, unprofiled.stdout)
    count, measured = map(int, (tmp_path / "measured").read_text().split())
    (kernel,) = open_trace(profiled.trace).kernels
    assert kernel.status == "probed", kernel.reason
    (result,) = kernel.results
    lines = {line.sums["waits"]: of_line(line) for line in waits_of(kernel, result).lines}
    assert lines.keys() == {TILES, TILES * CONSUMERS}
    producer, consumers = lines[TILES], lines[TILES * CONSUMERS]
    print(
        f"GPU-WAITS\t{cycles}\tcycles per wait: program {measured / count:.1f}, probe {consumers.cycles_per_wait:.1f}; "
        f"producer {producer.cycles_per_wait:.1f}"
    )
    assert count == consumers.waits
    assert consumers.waited == pytest.approx(measured, rel=0.05)
    assert consumers.waited == pytest.approx(cycles * count, rel=0.1), "the consumers do little but wait"
    assert producer.waited < 0.05 * cycles * producer.waits, "its consumers are never late"


def test_products_on_tensor_cores_run_unharmed(runner: Runner) -> None:
    """Sites are left out, with the reason, where ptxas would serialise wgmma for the probe."""
    for package in ("torch", "triton"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    command = [sys.executable, str(PROGRAMS / "triton_product.py")]
    unprofiled = runner.unprofiled(command)
    assert unprofiled.status == 0, unprofiled.stderr
    profiled = runner.profiled(command, "-p", "async_wait")
    assert (profiled.outcome.status, profiled.outcome.stdout) == (unprofiled.status, unprofiled.stdout)
    (kernel,) = [
        profiled_kernel for profiled_kernel in open_trace(profiled.trace).kernels if profiled_kernel.name == "matmul"
    ]
    assert kernel.status == "probed", kernel.reason
    assert kernel.folder is not None
    assert "wgmma.wait_group" in (kernel.folder / "pruned.ptx").read_text()
    note = note_in((kernel.folder / "kernel.info").read_text())
    for result in kernel.results:
        waits = waits_of(kernel, result)
        cycles = f"{waits.analysis.waited} cycles, {waits.analysis.by_kind}"
        print(f"GPU-WAITS\tmatmul\t{waits.analysis.waits} waits, {cycles}\t{note or 'all sites'}")
        products = [line for line in waits.lines if kind_of(line.opcode) == "wgmma"]
        assert bool(products) != ("left out" in note)
        assert all(line.sums["waits"] for line in products)
