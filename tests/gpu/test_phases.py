"""Phases on a real GPU: boundaries where a kernel reads the clock itself, and a late producer that is named."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tui_probe.probekit.measured import analyse_result
from tui_probe.probes.phases.analysis import START
from tui_probe.probes.phases.tables import multiply_adds, rows_of
from tui_probe.probes.phases.waits import waits_of
from tui_probe.trace.follow import open_trace
from tui_probe.trace.results import read_result

from .conftest import PROGRAMS, Profiled, Runner, cutlass_product, nvcc_program
from .test_tensors import tensor_copy_cubin

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.probes.phases.analysis import LaunchPhases
    from tui_probe.probes.phases.waits import Wait
    from tui_probe.trace.results import Result

SOURCE = PROGRAMS / "planted_phases.cu"
CONSUMERS, TILES, DELAYS = 4, 64, (20, 40, 60, 80, 100)
ROUND_CYCLES = 16 * 4
"""16 multiplications in a row, besides the loop around them."""
MAX_ERROR = 100
TEST_CYCLES = 130
"""Cycles by which the test for the iteration lengthens a start in SASS at most: 25 instructions that stall for 142
cycles, in place of 11 that stall for 17. On an H200, the median of a phase was 110 cycles longer.
"""
WAIT_ROUNDS = 500
"""Of ``planted_waits.cu``: rounds of a launch. The late warps have 4 more rounds of work in each launch."""
PRODUCER, CONSUMER = ("empty", "late", "copy"), ("full", "compute", "release")


@pytest.fixture(scope="session", params=["ptx", "debug_ptx", "sass"])
def planted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program with PTX, with PTX in the debug section of its cubin only, and without any."""
    code = "[sm_90,compute_90]" if request.param == "ptx" else "sm_90"
    lines = () if request.param == "sass" else ("-lineinfo",)
    program = tmp_path_factory.mktemp("phases") / "planted_phases"
    return nvcc_program(SOURCE, program, f"-gencode=arch=compute_90,code={code}", *lines)


def lines_of(name: str) -> str:
    """The lines from the comment with the name of a phase to the next such comment."""
    comments = [number for number, line in enumerate(SOURCE.read_text().splitlines(), 1) if line.lstrip()[:2] == "//"]
    first = next(
        number for number, line in enumerate(SOURCE.read_text().splitlines(), 1) if line.lstrip() == f"// {name}"
    )
    return f"{SOURCE.name}:{first}-{next(number for number in comments if number > first) - 1}"


def launches_of(trace: Path) -> list[tuple[Result, LaunchPhases]]:
    """The results of all launches in order."""
    kernels = open_trace(trace).kernels
    (kernel,) = [kernel for kernel in kernels if kernel.status == "probed"]
    launches = []
    for probed in kernel.by_probe():
        for row in sorted(probed.result_rows, key=lambda row: probed.trace.results.launch(row) or 0):
            path = probed.trace.results.path(row)
            assert path is not None
            launches.append((read_result(path), analyse_result(probed.trace, probed, row).analysis))
    return launches


@pytest.mark.exclusive
def test_boundaries_are_where_the_kernel_reads_clocks(
    planted: str, request: pytest.FixtureRequest, runner: Runner, tmp_path: Path
) -> None:
    """A record of a boundary is less than 100 cycles from each clock that the kernel reads there.

    Not for the first tile: the added code is not in the instruction cache yet. SASS without lines has the starts of
    waits only.
    """
    by_line = "ptx" in request.node.name
    unprofiled = runner.unprofiled([planted, str(tmp_path / "unprobed")])
    options = [part for name in (*PRODUCER, *CONSUMER) for part in ("--phase", f"{name}={lines_of(name)}")]
    profiled = runner.profiled(
        [planted, str(tmp_path / "clocks")], "-p", "phases", *(options if by_line else ()), "--wait"
    )
    assert (profiled.outcome.status, profiled.outcome.stdout) == (unprofiled.status, unprofiled.stdout)
    clocks = np.fromfile(tmp_path / "clocks", np.uint32).reshape(len(DELAYS), CONSUMERS + 1, TILES, 3)
    launches = launches_of(profiled.trace)
    assert len(launches) == len(DELAYS)
    errors = []
    for own, (result, analysis) in zip(clocks, launches, strict=True):
        names = {site.instruction.line: site.phase.work for site in analysis.sites if site.phase}
        records = result.records(1, START)[0]
        for warp in range(CONSUMERS + 1):
            work = np.array([names.get(line, "") for line in records["line"][warp].tolist()])
            boundaries = PRODUCER if warp == CONSUMERS else CONSUMER
            for place, name in enumerate(boundaries if by_line else ("mbarrier wait",)):
                since = (records["clock"][warp][work == name] - own[warp, 0, 0]).astype(np.int32)
                read_there = (own[warp, :, place] - own[warp, 0, 0]).astype(np.int32)
                assert len(since) >= TILES, (warp, name)
                later = read_there[:, None] - since
                errors.append(later[np.arange(TILES), np.abs(later).argmin(axis=1)])
    error = np.array(errors)[:, 1:]
    shown = f"{error.min()} to {error.max()}, median {np.median(error)}, p95 {np.percentile(error, 95)}"
    print(f"GPU-PHASES\tclock of the kernel after the record of its boundary: {shown}")
    assert np.abs(error).max() <= MAX_ERROR


@pytest.mark.exclusive
@pytest.mark.parametrize("has_ptx", [True, False])
def test_copies_by_tensor_map_name_their_tensors(has_ptx: bool, runner: Runner, tmp_path: Path) -> None:
    """The content of a map in a kernel's parameter is what the call that made it returned."""
    command = [sys.executable, str(PROGRAMS.parents[1] / "probes" / "tensor_copy.py")]
    command += [] if has_ptx else [str(tensor_copy_cubin(tmp_path))]
    profiled = runner.profiled(command, "-p", "phases", "--wait")
    assert profiled.outcome.stdout == "True\n"
    for _, analysis in launches_of(profiled.trace):
        names = {phase.work: phase.tensors for phase in analysis.phases}
        assert not has_ptx or names["bulk copy"] == ("param 0",)
        assert names["global store"] == ("param 1",)


@pytest.mark.exclusive
def test_late_producer_is_named_and_its_delay_measured(planted: str, runner: Runner, tmp_path: Path) -> None:
    """The wait grows by the cycles of each round, and little time is in no named phase."""
    profiled = runner.profiled([planted, str(tmp_path / "clocks")], "-p", "phases", "--wait")
    waits, late = [], []
    for _, analysis in launches_of(profiled.trace)[1:]:
        assert set(analysis.roles) == {"consumer", "producer"}
        wait = max((wait for wait in waits_of(analysis) if wait.role == "consumer"), key=lambda wait: wait.share)
        assert wait.partner == "producer"
        waits.append(wait.late_cycles / (CONSUMERS * TILES))
        rows = [row for row in rows_of(analysis) if row.role == "producer"]
        late.append(max(row.median for row in rows))
        assert (in_named := analysis.named_share()) is not None
        assert in_named >= 0.95
    print(f"GPU-PHASES\twait for the producer by delay: {waits}; its longest phase: {late}")
    for steps in (np.diff(waits), np.diff(late)):
        assert steps == pytest.approx(np.full(3, steps.mean()), rel=0.05)
        assert steps.mean() >= 20 * ROUND_CYCLES


@pytest.mark.exclusive
def test_every_kth_iteration_has_the_shares_of_all(planted: str, runner: Runner, tmp_path: Path) -> None:
    """Shares of phases, and of the producer's lateness, within 3 points of a run that records all iterations.

    In SASS, a start takes more instructions where it tests for the iteration: each start lengthens the loop, and its
    own phase, by up to ``TEST_CYCLES``. This changes the shares, but no phase by more than its own starts.
    """
    runs = []
    for number, records in enumerate(("first", "every:8")):
        command = [planted, str(tmp_path / f"clocks{number}")]
        unprofiled = runner.unprofiled(command)
        profiled = runner.profiled(command, "-p", "phases", "--phase-records", records, "--wait")
        assert (profiled.outcome.status, profiled.outcome.stdout) == (unprofiled.status, unprofiled.stdout)
        runs.append([analysis for _, analysis in launches_of(profiled.trace)][1:])
    test_cycles = TEST_CYCLES if open_trace(profiled.trace).kernels[0].mode == "graft" else 0
    for complete, part in zip(*runs, strict=True):
        late = [next(wait.late_share for wait in waits_of(own) if wait.role == "consumer") for own in (complete, part)]
        print(f"GPU-PHASES\tevery 8th iteration: {part.starts_kept} of {complete.starts_kept}; late {late}")
        assert (part.sampling_period, part.roles) == (8, complete.roles)
        assert part.starts_kept < complete.starts_kept / 3
        assert late[1] == pytest.approx(late[0], abs=0.05)
        estimated = {(row.role, row.phase.name): row for row in rows_of(part) if row.phase.stage == "loop"}
        rows = {(row.role, row.phase.name): row for row in rows_of(complete) if row.phase.stage == "loop"}
        assert estimated.keys() == rows.keys()
        for (role, name), row in rows.items():
            of_role = [own for own in rows.values() if own.role == role]
            other, added = estimated[role, name], test_cycles * len(row.phase.lines)
            print(f"GPU-PHASES\t{role} {name}: {row.share:.3f} {row.median}, {other.share:.3f} {other.median}")
            starts = sum(len(own.phase.lines) for own in of_role)
            changed = test_cycles * starts / sum(own.median for own in of_role)
            assert other.share == pytest.approx(row.share, abs=0.03 + changed)
            if row.phase.activity != "wait":
                assert other.median == pytest.approx(row.median, abs=max(MAX_ERROR, added))


@pytest.mark.exclusive
@pytest.mark.parametrize(
    ("program", "kernel", "products"),
    [("attention", "flash_attention", 2 * 16 * 2048 * 2048 * 64), ("grouped_matmul", "grouped_matmul", 2048**3)],
)
def test_triton_kernels_keep_their_results(program: str, kernel: str, products: int, runner: Runner) -> None:
    """The multiply-adds of all warps are those of the matrices."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("no Triton on this machine")
    command = [sys.executable, str(PROGRAMS / f"{program}.py")]
    unprofiled = runner.unprofiled(command)
    assert unprofiled.status == 0, unprofiled.stderr
    profiled = runner.profiled(command, "-p", "phases", "-k", kernel, "--launches", "2", "--wait")
    assert (profiled.outcome.status, profiled.outcome.stdout) == (unprofiled.status, unprofiled.stdout)
    ((_, analysis),) = launches_of(profiled.trace)
    in_named = analysis.named_share()
    print(f"GPU-PHASES\t{program}: {in_named} of warp life in named phases, {analysis.starts_seen} starts")
    assert in_named is not None
    assert in_named >= 0.95
    assert {"mma", "wgmma wait"} <= {phase.work for phase in analysis.phases}
    assert multiply_adds(analysis) == products


def profiled_gluon(name: str, runner: Runner, *options: str) -> Profiled:
    """The phases of a program in Gluon, which prints True with and without the probe. Skips without Triton."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("no Triton on this machine")
    command = [sys.executable, str(PROGRAMS / f"{name}.py")]
    unprofiled = runner.unprofiled(command)
    assert (unprofiled.status, unprofiled.stdout) == (0, "True\n"), unprofiled.stderr
    profiled = runner.profiled(command, "-p", "phases", *options, "--wait")
    assert (profiled.outcome.status, profiled.outcome.stdout) == (0, "True\n"), profiled.outcome.stderr
    return profiled


@pytest.mark.exclusive
def test_products_of_gluon_are_those_of_its_matrices(runner: Runner) -> None:
    profiled = profiled_gluon("gluon_product", runner, "-k", "product", "--launches", "1")
    ((_, analysis),) = launches_of(profiled.trace)
    assert multiply_adds(analysis) == 512 * 1024 * 768


@pytest.mark.exclusive
@pytest.mark.parametrize("has_ptx", [True, False], ids=["ptx", "sass"])
def test_products_of_cutlass_are_those_of_its_matrices(has_ptx: bool, runner: Runner) -> None:
    """A size for which each warp has room for all its phases."""
    size, program = 1024, cutlass_product(runner.folder, has_ptx=has_ptx)
    unprofiled = runner.unprofiled([program, str(size)])
    assert unprofiled.status == 0, unprofiled.stderr
    profiled = runner.profiled([program, str(size)], "-p", "phases", "--launches", "1", "--wait")
    assert (profiled.outcome.status, profiled.outcome.stdout) == (0, unprofiled.stdout), profiled.outcome.stderr
    ((_, analysis),) = launches_of(profiled.trace)
    print(f"GPU-PHASES\tCUTLASS: {multiply_adds(analysis)} multiply-adds, {analysis.named_share()} named")
    assert multiply_adds(analysis) == size**3


@pytest.mark.exclusive
def test_roles_of_gluon_kernel_are_distinguished(runner: Runner) -> None:
    """One warp loads, four compute, one stores, two are idle."""
    profiled = profiled_gluon("gluon_roles", runner, "-k", "roles", "--launches", "2")
    ((_, analysis),) = launches_of(profiled.trace)
    shown = subprocess.run(
        [sys.executable, "-m", "tui_probe", "show", "phases", str(profiled.trace), "--width", "140"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    print(f"GPU-PHASES\t{analysis.roles}, {analysis.named_share()} named, {waits_of(analysis)}\n{shown.stdout}")
    assert sorted(analysis.roles) == ["consumer 1", "consumer 2", "other", "producer"]
    assert (in_named := analysis.named_share()) is not None
    assert in_named >= 0.95


@pytest.mark.exclusive
@pytest.mark.parametrize("sampled", ["", ":1/2"])
def test_roles_that_exchange_registers_have_phases(sampled: str, runner: Runner, tmp_path: Path) -> None:
    """Three warpgroups with ``setmaxnreg`` and without PTX: two wait for the third, in steps of its work."""
    program = nvcc_program(
        PROGRAMS / "planted_waits.cu", tmp_path / "planted_waits", "-gencode=arch=compute_90a,code=sm_90a"
    )
    unprofiled = runner.unprofiled([program])
    options = ("-p", f"phases{sampled}", "-k", "late_producer", "--launches", "all", "--wait")
    profiled = runner.profiled([program], *options)
    assert (profiled.outcome.status, profiled.outcome.stdout) == (unprofiled.status, unprofiled.stdout)
    (kernel,) = [kernel for kernel in open_trace(profiled.trace).kernels if kernel.status == "probed"]
    assert kernel.mode == "graft"
    waits = []
    for result, analysis in launches_of(profiled.trace):
        names = {site.instruction.line: site.phase.work for site in analysis.sites if site.phase}
        records = result.records(1, START)[0]
        work = np.array([[names.get(line, "") for line in own] for own in records["line"].tolist()])
        assert (np.count_nonzero(work == "mbarrier wait", axis=1) >= WAIT_ROUNDS).all()
        lengths = (records["clock"][:, 1:] - records["clock"][:, :-1]).astype(np.uint32)
        waiting = np.where((work[:, :-1] == "mbarrier wait") & (work[:, 1:] != ""), lengths, 0).sum(axis=1)
        waits.append(float(np.median(waiting[len(waiting) // 3 :])) / WAIT_ROUNDS)
    print(f"GPU-PHASES\twaits of two warpgroups for the third by its work: {waits}")
    steps = np.diff(waits)[1:]
    assert steps == pytest.approx(np.full(len(steps), steps.mean()), rel=0.05)
    assert steps.mean() == pytest.approx(4 * ROUND_CYCLES, rel=0.25)


def pipeline_waits(name: str, runner: Runner, code: str = "[sm_90,compute_90]") -> list[Wait]:
    """The waits of a launch of a program that waits for itself, longest first."""
    gencode = f"-gencode=arch=compute_90,code={code}"
    program = nvcc_program(PROGRAMS / f"{name}.cu", runner.folder / name, gencode, "-lineinfo")
    unprofiled = runner.unprofiled([program])
    assert unprofiled.status == 0, unprofiled.stderr
    profiled = runner.profiled([program], "-p", "phases", "--launches", "1", "--wait")
    assert profiled.outcome.stdout == unprofiled.stdout
    ((_, analysis),) = launches_of(profiled.trace)
    waits: list[Wait] = waits_of(analysis)
    return waits


@pytest.mark.exclusive
def test_producer_that_computes_too_long_is_named_with_its_line(runner: Runner) -> None:
    source = (PROGRAMS / "late_lookup.cu").read_text().splitlines()
    line = next(number for number, text in enumerate(source, 1) if text.endswith("// looks up"))
    wait = next(wait for wait in pipeline_waits("late_lookup", runner) if wait.role == "consumer")
    print(f"GPU-PHASES\tlate_lookup: {wait}")
    assert wait.partner == "producer"
    assert wait.share >= 0.5
    assert (wait.late_share or 0) >= 0.5
    assert wait.occupation_share >= 0.5
    file, _, number = wait.occupation_place.rpartition(":")
    assert file.endswith("late_lookup.cu")
    assert abs(int(number) - line) <= 2


@pytest.mark.exclusive
@pytest.mark.parametrize("code", ["[sm_90,compute_90]", "sm_90"], ids=["ptx", "sass"])
def test_warp_with_more_work_is_named_at_the_barrier(code: str, runner: Runner) -> None:
    wait = next(wait for wait in pipeline_waits("uneven_warps", runner, code) if wait.last_warp is not None)
    print(f"GPU-PHASES\tuneven_warps {code}: {wait}")
    assert wait.last_warp == 5
    assert (wait.last_share or 0) >= 0.9
    assert (wait.late_share or 0) >= 0.5
    assert wait.occupation_share >= 0.5


@pytest.mark.exclusive
@pytest.mark.parametrize("code", ["[sm_90,compute_90]", "sm_90"], ids=["ptx", "sass"])
@pytest.mark.parametrize("kernel", ["static_barriers", "dynamic_barriers"])
def test_late_copy_of_two_is_named_by_its_barrier(kernel: str, code: str, runner: Runner) -> None:
    """K is late in the first launch, V in the second: consumers wait at the barrier of the late one."""
    gencode = f"-gencode=arch=compute_90,code={code}"
    program = nvcc_program(PROGRAMS / "kv_pipeline.cu", runner.folder / "kv_pipeline", gencode)
    unprofiled = runner.unprofiled([program])
    assert unprofiled.status == 0, unprofiled.stderr
    profiled = runner.profiled([program], "-p", "phases", "-k", kernel, "--launches", "all", "--wait")
    assert profiled.outcome.stdout == unprofiled.stdout
    launches = launches_of(profiled.trace)
    assert len(launches) == 2
    late, shares = [], []
    for _, analysis in launches:
        waits = [wait for wait in waits_of(analysis) if wait.role == "consumer" and wait.partner == "producer"]
        by_barrier = {wait.phase.barriers: wait for wait in waits}
        assert len(by_barrier) == 2
        longest = max(waits, key=lambda wait: wait.share)
        late.append(longest.phase.tensors)
        shares.append({name: (wait.share, wait.late_share, wait.by_order) for name, wait in by_barrier.items()})
        assert longest.by_order
        assert (longest.late_share or 0) >= 0.5
        assert longest.share >= 3 * min(wait.share for wait in waits)
    print(f"GPU-PHASES\t{kernel} {code}: {shares}")
    assert late == [("param 1",), ("param 2",)]
