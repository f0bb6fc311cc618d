"""Kernels without PTX: probed in their machine code, programs do the same; what must not be probed is not."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tui_probe.trace.follow import open_trace

from .conftest import PROGRAMS, Runner, nvcc_program, tool

if TYPE_CHECKING:
    from tui_probe.trace.model import Trace

EVERY = {"count", "choose", "by_table", "call", "look", "together", "cooperative", "neighbours"}
CODES = {
    "code": ["code=sm_90"],
    "linked": ["code=sm_90", "-rdc=true"],
    "both": ["code=[sm_90,compute_90]"],
}
STREAMS = ("legacy", "per-thread")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with machine code only, with functions in sections of their own, and with PTX too, each with both
    kinds of default streams.
    """
    nvcc = tool("nvcc")
    folder = tmp_path_factory.mktemp("machine_code")
    for name, (code, *more) in CODES.items():
        for streams in STREAMS:
            subprocess.run(
                [nvcc, f"-gencode=arch=compute_90,{code}", *more, "-std=c++17", "-cudart=static",
                 f"--default-stream={streams}", "-o", folder / f"{name}-{streams}", PROGRAMS / "machine_code.cu"],
                check=True, timeout=300,
            )  # fmt: skip
    return folder


def plain(name: str) -> str:
    """``count`` of ``_Z5countPjj``."""
    return next((known for known in EVERY if known in name), name)


def tell(trace: Trace) -> None:
    for kernel in trace.kernels:
        print(f"GPU-TABLE\t{plain(kernel.name)}\t{kernel.status}\t{kernel.mode}\t{kernel.launches_probed}/{kernel.launches}"
              f"\t{kernel.registers_pruned}\t{kernel.registers_probed}\t{kernel.reason}")  # fmt: skip


@pytest.mark.parametrize("streams", STREAMS)
@pytest.mark.parametrize(("code", "way"), [("code", "graft"), ("linked", "graft"), ("both", "ptx")])
def test_every_kind_of_kernel_does_the_same(programs: Path, runner: Runner, code: str, way: str, streams: str) -> None:
    command = [str(programs / f"{code}-{streams}")]
    unprofiled = runner.unprofiled(command)
    assert unprofiled.status == 7, unprofiled.stdout
    profiled = runner.profiled(command, "-p", "block_sched")
    assert profiled.outcome.stdout == unprofiled.stdout
    assert profiled.outcome.status == unprofiled.status
    trace = open_trace(profiled.trace)
    tell(trace)
    assert {plain(kernel.name) for kernel in trace.kernels} == EVERY
    probed = {plain(kernel.name): kernel for kernel in trace.kernels if kernel.status == "probed"}
    assert {kernel.mode for kernel in probed.values()} == {way}
    assert {"count", "look", "together", "cooperative", "neighbours"} <= probed.keys()
    assert probed["count"].launches_probed == 6
    assert code != "linked" or "by_table" in probed


def test_possible_hangs_are_launched_unprobed(programs: Path, runner: Runner) -> None:
    """A probe of many registers, in a kernel whose blocks wait for one another: it ends, with a reason."""
    profiled = runner.profiled([str(programs / "both-legacy")], "-p", "dmat", "-k", "together")
    assert profiled.outcome.status == 7
    trace = open_trace(profiled.trace)
    tell(trace)
    (kernel,) = (probed for probed in trace.kernels if plain(probed.name) == "together")
    before, after = kernel.blocks_per_sm, kernel.blocks_per_sm_probed
    print(f"GPU-TABLE\ttogether\tblocks per SM {before} -> {after}")
    if before is not None and after is not None and after < before:
        reasons = {launch.reason_code for launch in trace.launches}
        assert "residency" in reasons


@pytest.mark.parametrize("machine_code", ["auto", "off"])
@pytest.mark.parametrize(
    ("targets", "way"),
    [(["90", "90a,sm_90a"], "graft"), (["80", "90,sm_90"], "graft"), (["90", "90a,[sm_90a,compute_90a]"], "ptx")],
)
def test_kernel_of_two_targets_does_the_same(
    tmp_path: Path, runner: Runner, targets: list[str], way: str, machine_code: str
) -> None:
    """PTX for one target and SASS for another: the device runs the SASS."""
    ptx, (target, code) = targets[0], targets[1].split(",", 1)
    built_for = [f"-gencode=arch=compute_{ptx},code=compute_{ptx}", f"-gencode=arch=compute_{target},code={code}"]
    program = nvcc_program(PROGRAMS / "two_targets.cu", tmp_path / "two_targets", *built_for)
    unprofiled = runner.unprofiled([program])
    profiled = runner.profiled([program], "--machine-code", machine_code)
    assert profiled.outcome.stdout == unprofiled.stdout == ("900\n" if target == "90" else "901\n")
    (kernel,) = open_trace(profiled.trace).kernels
    if machine_code == "off" and way == "graft":
        assert kernel.reason_code == "ptx-of-other-code"
    else:
        assert (kernel.status, kernel.mode) == ("probed", way)


def test_off_keeps_machine_code_original(programs: Path, runner: Runner) -> None:
    profiled = runner.profiled([str(programs / "code-legacy")], "--machine-code", "off")
    assert profiled.outcome.status == 7
    assert {kernel.reason_code for kernel in open_trace(profiled.trace).kernels} == {"no-ptx"}


def test_closed_library_is_skipped_unless_requested(programs: Path, runner: Runner) -> None:
    """The program itself under the name of a closed library: its file is what tells."""
    disguised = programs / "libcublasLt.so.13"
    if not disguised.exists():
        os.link(programs / "code-legacy", disguised)
    left = open_trace(runner.profiled([str(disguised)]).trace)
    assert {kernel.reason_code for kernel in left.kernels} == {"closed-library"}
    asked = open_trace(runner.profiled([str(disguised)], "--machine-code", "all").trace)
    assert "graft" in {kernel.mode for kernel in asked.kernels}
