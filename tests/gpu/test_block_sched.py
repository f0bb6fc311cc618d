"""Block scheduling measured on a GPU agrees with the kernel's duration measured by the driver's events."""

from __future__ import annotations

from pathlib import Path

from tui_probe.analysis.block_sched import analyse
from tui_probe.trace.model import Trace
from tui_probe.trace.results import read_result

from .conftest import Runner


def test_running_and_scheduling_fill_the_duration_of_a_zero_fill(built: Path, runner: Runner) -> None:
    output = runner.folder / "timing"
    command = [str(built / "zero_fill"), str(built / "kernels.ptx"), str(output)]
    profiled = runner.profiled(command, "-p", "block_sched", "-k", "zero_fill")
    assert profiled.outcome.status == 0, profiled.outcome.stderr
    timing = dict(line.split() for line in output.read_text().splitlines())
    cycles = float(timing["milliseconds"]) * 1e6 * float(timing["cycles_per_ns"])

    (kernel,) = (k for k in Trace.open(profiled.trace).kernels if k.name == "zero_fill")
    last = sorted(kernel.results)[-1]
    schedule = analyse(read_result(last))
    print(f"GPU-FIGURE\tzero fill\t{schedule.line()}\tduration {cycles:.0f} cycles, {timing['milliseconds']} ms")
    assert schedule.blocks == 32768
    total = schedule.running + schedule.scheduling
    assert abs(total - cycles) <= 0.10 * cycles, (schedule.line(), cycles)


def test_benchmark_mode_times_the_original_beside_the_probed_kernel(built: Path, runner: Runner) -> None:
    command = [str(built / "driver_api"), str(built)]
    alone = runner.alone(command)
    profiled = runner.profiled(command, "-p", "block_sched", "--benchmark")
    assert (profiled.outcome.status, profiled.outcome.stdout) == (alone.status, alone.stdout)
    for kernel in Trace.open(profiled.trace).kernels:
        print(f"GPU-BENCHMARK\t{kernel.name}\t{kernel.registers_pruned}\t{kernel.registers_probed}\t{kernel.slowdown}")
        if kernel.status == "probed":
            assert kernel.registers_probed is not None
            assert kernel.slowdown is not None
            assert 0.2 < kernel.slowdown < 20
