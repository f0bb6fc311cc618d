"""Block scheduling measured on a GPU agrees with what the driver's events and the hardware's counters say."""

from __future__ import annotations

import shutil
from pathlib import Path
from statistics import median

import pytest

from tui_probe.probes.block_sched.analysis import BlockSchedule, analyse
from tui_probe.probes.block_sched.view import schedule_line
from tui_probe.trace.follow import open_trace
from tui_probe.trace.results import read_result

from .conftest import Runner
from .test_counts import ncu_rows

LARGEST = 524288
COUNTERS = "sm__cycles_active.max,sm__cycles_elapsed.max"


def schedules_of(trace: Path) -> dict[int, list[BlockSchedule]]:
    """The schedule of each launch of ``zero_fill``, by its number of blocks."""
    (kernel,) = (kernel for kernel in open_trace(trace).kernels if kernel.name == "zero_fill")
    schedules: dict[int, list[BlockSchedule]] = {}
    for path in kernel.results:
        schedule = analyse(read_result(path))
        schedules.setdefault(schedule.blocks, []).append(schedule)
    return schedules


def cycles_of(schedules: list[BlockSchedule]) -> float:
    return median(float(schedule.running + schedule.scheduling) for schedule in schedules)


@pytest.mark.exclusive
def test_running_and_scheduling_fill_the_duration_of_a_zero_fill(built: Path, runner: Runner) -> None:
    """Events also see what no SM's clock sees, about 12 000 cycles per launch: so the longest fill is compared."""
    output = runner.folder / "timing"
    profiled = runner.profiled([str(built / "zero_fill"), str(built / "kernels.ptx"), str(output)], "-k", "zero_fill")
    assert profiled.outcome.status == 0, profiled.outcome.stderr
    timing: dict[str, list[float]] = {}
    for line in output.read_text().splitlines():
        name, value = line.split()
        timing.setdefault(name, []).append(float(value))
    rate = timing["cycles_per_us"][0]

    for blocks, schedules in sorted(schedules_of(profiled.trace).items()):
        measured, cycles = median(timing[str(blocks)]) * 1e3 * rate, cycles_of(schedules)
        print(f"GPU-FIGURE {schedule_line(schedules[-1])}; median sum {cycles:.0f}, events {measured:.0f} cycles")
        if blocks == LARGEST:
            assert abs(cycles - measured) <= 0.10 * measured


@pytest.mark.exclusive
def test_running_and_scheduling_fill_the_cycles_that_the_counters_count(built: Path, runner: Runner) -> None:
    """The SM that is busy longest: its active cycles, from the hardware, and its running and scheduling cycles."""
    if shutil.which("ncu") is None:
        pytest.skip("no ncu on this machine to read the hardware's counters with")
    command = [str(built / "zero_fill"), str(built / "kernels.ptx"), str(runner.folder / "timing")]
    options = ["--csv", "--clock-control", "none", "--metrics", COUNTERS, "-k", "zero_fill"]
    counted = runner.unprofiled(["ncu", *options, *command]).stdout
    if "ERR_NVGPUCTRPERM" in counted:
        pytest.skip("no permission to read the hardware's counters")
    counters: dict[tuple[int, str], list[float]] = {}
    for row in ncu_rows(counted):
        blocks = int(row["Grid Size"].strip("()").split(",")[0])
        counters.setdefault((blocks, row["Metric Name"]), []).append(float(row["Metric Value"].replace(",", "")))

    profiled = runner.profiled(command, "-k", "zero_fill")
    by_blocks = schedules_of(profiled.trace)
    assert max(by_blocks) >= 32768
    for blocks, schedules in sorted(by_blocks.items()):
        active = median(counters[blocks, "sm__cycles_active.max"])
        elapsed = median(counters[blocks, "sm__cycles_elapsed.max"])
        cycles = cycles_of(schedules)
        print(f"GPU-FIGURE {blocks} blocks: {cycles:.0f} cycles, counters {active:.0f} active, {elapsed:.0f} elapsed")
        if blocks >= 32768:
            assert abs(cycles - active) <= 0.10 * active


def test_benchmark_mode_times_original_and_probed_kernel(built: Path, runner: Runner) -> None:
    command = [str(built / "driver_api"), str(built)]
    unprofiled = runner.unprofiled(command)
    profiled = runner.profiled(command, "-p", "block_sched", "--benchmark")
    assert (profiled.outcome.status, profiled.outcome.stdout) == (unprofiled.status, unprofiled.stdout)
    for kernel in open_trace(profiled.trace).kernels:
        print(f"GPU-BENCHMARK {kernel.name} {kernel.registers_pruned} {kernel.registers_probed} {kernel.slowdown}")
        if kernel.status == "probed":
            assert kernel.registers_probed is not None
            assert kernel.slowdown is not None
            assert 0.2 < kernel.slowdown < 20
