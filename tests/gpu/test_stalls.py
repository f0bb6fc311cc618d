"""Planted waits on a real GPU: each is found at its instruction, with its class, as long as it was made."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tui_probe.binaries.cubin import Cubin
from tui_probe.pages.code.line_measures import measures_of
from tui_probe.probekit.measured import analyse_result
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.sass.accesses import stack_accesses
from tui_probe.sass.target import GraftTarget
from tui_probe.trace.follow import open_trace
from tui_probe.ui import rerun
from tui_probe.verdicts.limiter import kernel_limiter

from .conftest import PROGRAMS, Runner, nvcc_program, tool
from .test_counts import counters_of

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.probes.stall_sites.analysis import StallSite
    from tui_probe.trace.model import Kernel, Trace

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

LATE_ROUNDS = (0, 2, 4, 8)
"""Of ``planted_waits late``: by how many rounds the late warps or copies come later, by launch."""
COPY_ROUND_CYCLES = 3 * FMA_CYCLES
LATE_LINES = {
    "late_barrier": ("barrier", "__syncthreads();", ""),
    "late_mbarrier": ("mbarrier", "b->wait(b->arrive());", "b->wait(b->arrive());"),
    "late_producer": ("mbarrier", "wait_for(full, i & 1);", "wait_for(full, i & 1);"),
    "late_copy": ("async", "__pipeline_wait_prior(0);", "__pipeline_memcpy_async("),
}
"""By kernel: the class of the wait, what is on the line that waits, and on the line of the producer. The producer of a
barrier wait is the warp that comes last, which has no line; that of an mbarrier wait is the instruction that tests it.
"""
SPILLS = {"smsp__inst_executed_op_local_ld.sum": "local loads", "smsp__inst_executed_op_local_st.sum": "local stores"}
WAVEFRONTS = {
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": "loads",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum": "stores",
}
CONFLICT_ROUNDS, BANKS = 64 * 8, 32
"""Of ``bank_conflicts.cu``: executions of each access in all warps."""
SPILL_ROUNDS, SPILL_WARPS, SPILL_REGISTERS = 100, 32, 32
"""Of ``spills.cu``: rounds of the loop, warps of a launch, and the limit with which it is compiled."""


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> str:
    program = tmp_path_factory.mktemp("planted") / "planted_waits"
    return nvcc_program(PROGRAMS / "planted_waits.cu", program, "-arch=sm_90a", "-lineinfo")


def longest(kernel: Kernel) -> list[tuple[str, float]]:
    """The class and mean measured cycles of the longest wait of each launch, in order."""
    longest = []
    for probed in kernel.by_probe():
        for row in sorted(probed.result_rows, key=lambda row: probed.trace.results.launch(row) or 0):
            worst = analyse_result(probed.trace, probed, row).analysis.sites[0]
            assert worst.longest_wait is not None
            assert worst.longest_wait >= worst.per_pass
            longest.append((worst.wait.kind, worst.measured_cycles / worst.passes))
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
    assert copies[0][1] > 100  # rounds: test_waits_grow_by_the_rounds_that_their_producer_is_late


def line_of(kernel: str, text: str) -> int:
    """The first line behind the name of a kernel of ``planted_waits.cu`` that has the text."""
    lines = (PROGRAMS / "planted_waits.cu").read_text().splitlines()
    begin = next(number for number, line in enumerate(lines, 1) if f" {kernel}(" in line)
    return next(number for number, line in enumerate(lines, 1) if number > begin and text in line)


def sites_by_launch(kernels: list[Kernel]) -> list[list[StallSite]]:
    """The sites of the launches of these kernels, in order."""
    launches = []
    for kernel in kernels:
        for probed in kernel.by_probe():
            for row in probed.result_rows:
                stalls = analyse_result(probed.trace, probed, row).analysis
                launches.append((probed.trace.results.launch(row) or 0, stalls.sites))
    return [sites for _, sites in sorted(launches, key=lambda launch: launch[0])]


def wait_of(kind: str, sites: list[StallSite]) -> StallSite:
    """The longest wait of a class."""
    return max((own for own in sites if own.wait and own.wait.kind == kind), key=lambda own: own.measured_cycles)


@pytest.mark.parametrize("name", LATE_LINES)
@pytest.mark.exclusive
def test_waits_grow_by_the_rounds_that_their_producer_is_late(name: str, planted: str, runner: Runner) -> None:
    profiled = runner.profiled([planted, "late"], "-p", "stall_sites", "-k", name, "--launches", "all", "--wait")
    assert profiled.outcome.status == 0, profiled.outcome.stderr
    kernels = [kernel for kernel in open_trace(profiled.trace).kernels if name in kernel.demangled]
    launches = sites_by_launch(kernels)[-len(LATE_ROUNDS) :]
    kind, waiting, producing = LATE_LINES[name]
    assert len(launches) == len(LATE_ROUNDS)
    longest = wait_of(kind, launches[-1])
    waits = [next(own for own in sites if own.line == longest.line) for sites in launches]
    cycles = [wait.measured_cycles / wait.passes for wait in waits]
    slopes = np.diff(cycles) / np.diff(LATE_ROUNDS)
    print(f"GPU-STALLS\t{name} late by {LATE_ROUNDS}: {cycles}, by round {slopes}")
    print(f"GPU-STALLS\t{name} {[(wait.place, wait.opcode, wait.producer_in_program) for wait in waits]}")
    assert slopes.max() <= 1.15 * slopes.min()
    assert slopes.min() > 0
    if name == "late_copy":
        assert slopes.mean() == pytest.approx(COPY_ROUND_CYCLES, rel=0.15)
    for wait in waits:
        assert wait.wait is not None
        assert wait.wait.kind == kind
        assert wait.place == f"planted_waits.cu:{line_of(name, waiting)}"
        if producing:
            assert wait.producer_in_program.endswith(f" planted_waits.cu:{line_of(name, producing)}")
        else:
            assert not wait.producer


@pytest.mark.exclusive
def test_barrier_waits_are_as_long_as_they_were_made(planted: str, runner: Runner) -> None:
    profiled = runner.profiled([planted], "-p", "barrier_wait", "-k", "late_", "--launches", "all", "--wait")
    assert profiled.outcome.status == 0, profiled.outcome.stderr
    kernels = {kernel.demangled.partition("(")[0]: kernel for kernel in open_trace(profiled.trace).kernels}
    for name in ("late_barrier", "late_cluster"):
        waits = []
        for probed in kernels[name].by_probe():
            for row in sorted(probed.result_rows, key=lambda row: probed.trace.results.launch(row) or 0):
                analysis = analyse_result(probed.trace, probed, row).analysis
                waits.append(analysis.waited / analysis.barriers)
        print(f"GPU-STALLS\tbarrier_wait {name} {waits}")
        assert len(waits) == 5
        assert waits[0] < ROUND_CYCLES * (10 if name == "late_cluster" else 1)
        steps = np.diff(waits[1:])
        assert steps == pytest.approx(np.full(3, steps.mean()), rel=0.05)
        assert steps.mean() > 4 * ROUND_CYCLES * 0.5 * 0.9  # half of the warps wait


@pytest.mark.exclusive
def test_spills_are_executed_as_often_as_counters_say(tmp_path: Path, runner: Runner) -> None:
    program, cubin = tmp_path / "spills", tmp_path / "spills.cubin"
    options = ["-arch=sm_90", "-lineinfo", f"-maxrregcount={SPILL_REGISTERS}"]
    command = [tool("nvcc"), *options, str(PROGRAMS / "spills.cu")]
    subprocess.run([*command, "-o", str(program)], check=True, capture_output=True)
    subprocess.run([*command, "-cubin", "-o", str(cubin)], check=True, capture_output=True)
    profiled = runner.profiled([str(program), str(SPILL_ROUNDS)], "-p", "stalls", "--wait")
    assert profiled.outcome.status == 0, profiled.outcome.stderr
    image = Cubin.read(cubin.read_bytes())
    accesses = stack_accesses(GraftTarget.from_cubin(image, next(iter(image.kernels))))
    by_hand = {
        "local loads": {at.offset: SPILL_WARPS * SPILL_ROUNDS**at.depth for at in accesses if at.is_load},
        "local stores": {at.offset: SPILL_WARPS * SPILL_ROUNDS**at.depth for at in accesses if not at.is_load},
    }
    trace = open_trace(profiled.trace)
    measures = measures_of(ViewSource(trace, trace.kernels[0]))
    assert measures is not None
    measured = {column.name: column.numbers for column in measures.columns if column.name in by_hand}
    assert measured == by_hand
    _, counted = counters_of([str(program), str(SPILL_ROUNDS)], metrics=SPILLS)[0]
    print(f"GPU-STALLS\tspills {counted}")
    assert {name: sum(own.values()) for name, own in measured.items()} == counted


def latency_program(folder: Path, work: int) -> list[str]:
    """``latency.cu`` with this many additions behind each load."""
    program = folder / f"latency{work}"
    options = ["-arch=sm_90", "-lineinfo", f"-DWORK={work}", "-o", str(program)]
    subprocess.run([tool("nvcc"), *options, str(PROGRAMS / "latency.cu")], check=True, capture_output=True)
    return [str(program)]


def surveyed(runner: Runner, program: list[str], *options: str) -> Trace:
    """A run with some launches of each kernel under each probe of the survey."""
    profiled = runner.profiled(program, "-p", "survey", "--launches", "auto", "--wait", *options)
    assert (profiled.outcome.status, profiled.outcome.stdout) == (0, "no error\n"), profiled.outcome.stderr
    return open_trace(profiled.trace)


@pytest.mark.exclusive
def test_survey_and_stalls_in_one_run_name_the_cause_of_latency(tmp_path: Path, runner: Runner) -> None:
    program = latency_program(tmp_path, 0)
    alone = surveyed(runner, program)
    kernel = next(own for own in alone.kernels if own.name.startswith("_Z6follow"))
    assert rerun.offer(alone.directory, kernel).choices[0].value == "-p stalls"
    trace = surveyed(runner, program, "-p", "stalls")
    for own in trace.kernels:
        for probed in own.by_probe():
            print(f"GPU-STALLS\t{own.demangled} {probed.probe} {len(probed.result_rows)} {probed.reason}")
            assert probed.result_rows or probed.reason or own.launches == 1
    follow = next(own for own in trace.kernels if own.name.startswith("_Z6follow"))
    limiter = kernel_limiter(follow)
    assert limiter is not None
    assert limiter.verdict.limit == "latency"
    source = (PROGRAMS / "latency.cu").read_text()
    assert f"latency.cu:{source.partition('__ldcg')[0].count(chr(10)) + 1} " in limiter.cause
    assert rerun.offer(trace.directory, follow).choices[0].value != "-p stalls"


@pytest.mark.exclusive
def test_comparison_of_builds_has_waits_by_line(tmp_path: Path, runner: Runner) -> None:
    traces = [surveyed(runner, latency_program(tmp_path, work), "-p", "stalls").directory for work in (0, 96)]
    command = [sys.executable, "-m", "tui_probe", "compare", *map(str, traces), "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    waits = [wait for wait in json.loads(done.stdout)["waits"] if "follow" in wait["kernel"]]
    print(f"GPU-STALLS\tbuilds {waits}")
    longest = max(waits, key=lambda wait: wait["before"] or 0)
    assert longest["waits_for"] == "global memory"
    assert longest["difference"] < -0.05


@pytest.mark.exclusive
def test_wavefronts_of_lines_in_machine_code_add_up_to_the_counters(tmp_path: Path, runner: Runner) -> None:
    program = tmp_path / "bank_conflicts"
    built_for = "-gencode=arch=compute_90,code=sm_90"  # without PTX, which -lineinfo would leave in the cubin
    source = str(PROGRAMS / "bank_conflicts.cu")
    subprocess.run([tool("nvcc"), built_for, "-o", str(program), source], check=True, capture_output=True)
    profiled = runner.profiled([str(program)], "-p", "smem_conflicts_by_line", "--machine-code", "all")
    assert profiled.outcome.status == 0, profiled.outcome.stderr
    trace = open_trace(profiled.trace)
    counted = [sum(own.values()) for _, own in counters_of([str(program)], metrics=WAVEFRONTS)]
    for kernel, total in zip(trace.kernels, counted, strict=True):
        assert kernel.mode == "graft"
        measures = measures_of(ViewSource(trace, kernel))
        assert measures is not None
        passes = next(column.numbers for column in measures.columns if column.name == "passes")
        print(f"GPU-STALLS\t{kernel.demangled} wavefronts {passes} ncu {total}")
        degree = int(re.findall(r"<(\d+)>", kernel.demangled)[0])
        assert set(passes.values()) == {CONFLICT_ROUNDS * math.gcd(degree, BANKS)}
        assert sum(passes.values()) == total


@pytest.mark.parametrize("runs", ["3", "60", "3000"])
@pytest.mark.exclusive
def test_groups_without_a_notable_wait_end(runs: str, tmp_path: Path, runner: Runner) -> None:
    command = [*latency_program(tmp_path, 0), runs]
    profiled = runner.profiled(command, "-p", "stalls", "--launches", "auto", "--wait")
    assert (profiled.outcome.status, profiled.outcome.stdout) == (0, "no error\n"), profiled.outcome.stderr
    kernels = [kernel for kernel in open_trace(profiled.trace).kernels if kernel.launches > 1]
    assert len(kernels) == 2
    for kernel in kernels:
        groups = [group for group in kernel.by_probe() if group.result_rows]
        assert not [group.probe for group in groups if group.matched_nothing]
        counts = {group.probe: (len(group.result_rows), group.outcome.ended_after) for group in groups}
        print(f"GPU-STALLS\t{runs} launches of {kernel.demangled}: {counts}")
        assert sum(count for count, _ in counts.values()) >= min(int(runs), 8)
        ended = [group for group in groups if group.outcome.ended_after is not None]
        for group in ended:  # launches that were under way have results, too
            rows = {group.trace.results.launch(row): row for row in group.result_rows}
            last = group.trace.launches.row_of(group.outcome.ended_after or 0)
            stalls = analyse_result(group.trace, group, rows[last]).analysis
            assert 100 * max((site.waited_cycles for site in stalls.sites), default=0) < stalls.life
        others = [count for count, after in counts.values() if after is None]
        assert all(len(group.result_rows) <= min(others) for group in ended)
    shown = subprocess.run(
        [sys.executable, "-m", "tui_probe", "show", "stalls", str(profiled.trace), "-k", "follow"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    print(shown.stdout)
    assert shown.returncode == 0


@pytest.mark.exclusive
def test_page_has_the_cost_of_each_group_without_a_benchmark(tmp_path: Path, runner: Runner) -> None:
    """Of 600 launches most are not probed; some of each kind are timed."""
    command = [*latency_program(tmp_path, 0), "600"]
    profiled = runner.profiled(command, "-p", "stalls", "--launches", "auto", "--wait")
    assert (profiled.outcome.status, profiled.outcome.stdout) == (0, "no error\n"), profiled.outcome.stderr
    shown = [sys.executable, "-m", "tui_probe", "show", "stalls", str(profiled.trace), "-k", "follow"]
    data = json.loads(subprocess.run([*shown, "--format", "json"], capture_output=True, text=True, check=True).stdout)
    slowdowns = data["data"]["slowdowns"]
    print(f"GPU-STALLS\tslowdowns {slowdowns}")
    assert slowdowns
    assert None not in slowdowns
    page = subprocess.run(shown, capture_output=True, text=True, check=True).stdout
    assert "(launches of this run with and without the probe, ± standard error)" in " ".join(page.split())


@pytest.fixture(scope="module")
def three_kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trace of ``three_kernels.cu`` under stalls."""
    folder = tmp_path_factory.mktemp("three_kernels")
    program = nvcc_program(PROGRAMS / "three_kernels.cu", folder / "three_kernels", "-arch=sm_90", "-lineinfo")
    profiled = Runner(folder).profiled([program], "-p", "stalls", "--launches", "all", "--wait")
    assert (profiled.outcome.status, profiled.outcome.stdout) == (0, "no error\n"), profiled.outcome.stderr
    return profiled.trace


@pytest.mark.parametrize(
    ("name", "kind", "waiting", "producing"),
    [
        ("scale_rows", "global memory", "y[i] = x[i] * w;", "LDG three_kernels.cu:12"),
        ("column_filter", "cp.async group", "__pipeline_wait_prior(0);", "LDGSTS three_kernels.cu:22"),
        ("row_norm", "barrier", "__syncthreads();\n    float scale", "–"),
    ],
)
@pytest.mark.exclusive
def test_page_names_planted_faults(name: str, kind: str, waiting: str, producing: str, three_kernels: Path) -> None:
    """A load directly before the use of its value, a pipeline of depth 1, a sum by one thread before a barrier.

    The load of ``scale_rows`` itself waits for its address, about as long: either may be the longest.
    """
    shown = [sys.executable, "-m", "tui_probe", "show", "stalls", str(three_kernels), "-k", name]
    page = subprocess.run(shown, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "160"})
    print(page.stdout)
    data = subprocess.run([*shown, "--format", "json"], capture_output=True, text=True, check=True)
    source = (PROGRAMS / "three_kernels.cu").read_text()
    line = source[: source.index(waiting)].count("\n") + 1
    longest = [site for site in json.loads(data.stdout)["data"]["sites"] if site["share"] > 0.15]
    site = next(site for site in longest if (site["call_line"] or site["line"]) == line)
    assert (site["waits_for"], site["producer"] or "–") == (kind, producing)
    (row, *_) = (row for row in page.stdout.splitlines() if f"0x{site['offset']:04x}" in row)
    assert f"three_kernels.cu:{line}" in row
    assert producing in row
    assert ("pipeline of depth 1" in page.stdout) is (name == "column_filter")
