"""Block scheduling measured on a GPU agrees with the kernel's duration measured by the driver's events."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from tui_probe.analysis.block_sched import analyse
from tui_probe.trace.model import Trace
from tui_probe.trace.results import read_result

from .conftest import Runner


def test_running_and_scheduling_fill_the_duration_of_a_zero_fill(built: Path, runner: Runner) -> None:
    """The duration is the zero fill's less an empty kernel's: what the launch itself takes is on no SM's clock."""
    output = runner.folder / "timing"
    command = [str(built / "zero_fill"), str(built / "kernels.ptx"), str(output)]
    profiled = runner.profiled(command, "-p", "block_sched", "-k", "zero_fill")
    assert profiled.outcome.status == 0, profiled.outcome.stderr
    timing: dict[str, list[float]] = {}
    for line in output.read_text().splitlines():
        name, value = line.split()
        timing.setdefault(name, []).append(float(value))
    fill, empty = median(timing["zero_fill"]), median(timing["nothing"])
    cycles = (fill - empty) * 1e6 * timing["cycles_per_ns"][0]

    (kernel,) = (k for k in Trace.open(profiled.trace).kernels if k.name == "zero_fill")
    schedules = [analyse(read_result(path)) for path in kernel.results]
    total = median(schedule.running + schedule.scheduling for schedule in schedules)
    print(f"GPU-FIGURE zero fill: {schedules[-1].line()}; median running + scheduling {total:.0f} cycles; "
          f"events {fill * 1e3:.2f} us, empty kernel {empty * 1e3:.2f} us, difference {cycles:.0f} cycles")  # fmt: skip
    assert {schedule.blocks for schedule in schedules} == {32768}
    assert abs(total - cycles) <= 0.10 * cycles


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
