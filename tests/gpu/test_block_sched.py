"""Block scheduling measured on a GPU agrees with the kernel's duration measured by the driver's events."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from tui_probe.analysis.block_sched import analyse
from tui_probe.trace.model import Trace
from tui_probe.trace.results import read_result

from .conftest import Runner


def test_running_and_scheduling_fill_the_duration_of_a_zero_fill(built: Path, runner: Runner) -> None:
    """Both grow alike from a fill of one block an SM to one of 32 768 blocks.

    The difference is compared, since a kernel's duration also holds what no SM's clock sees: the launch, and the
    writing back of what was stored after the last block has left.
    """
    output = runner.folder / "timing"
    command = [str(built / "zero_fill"), str(built / "kernels.ptx"), str(output)]
    profiled = runner.profiled(command, "-p", "block_sched", "-k", "zero_fill")
    assert profiled.outcome.status == 0, profiled.outcome.stderr
    timing: dict[str, list[float]] = {}
    for line in output.read_text().splitlines():
        name, value = line.split()
        timing.setdefault(name, []).append(float(value))
    microseconds = {name: median(values) * 1e3 for name, values in timing.items() if name != "cycles_per_ns"}
    rate = timing["cycles_per_ns"][0] * 1e3
    duration = (microseconds["zero_fill"] - microseconds["one_block_an_sm"]) * rate

    (kernel,) = (k for k in Trace.open(profiled.trace).kernels if k.name == "zero_fill")
    schedules = [analyse(read_result(path)) for path in kernel.results]
    cycles = {
        blocks: median(one.running + one.scheduling for one in schedules if one.blocks == blocks)
        for blocks in {schedule.blocks for schedule in schedules}
    }
    few, many = sorted(cycles)
    print(f"GPU-FIGURE {schedules[0].line()}; cycles {cycles}; events {microseconds} us at {rate:.0f} cycles/us")
    assert many == 32768
    assert abs((cycles[many] - cycles[few]) - duration) <= 0.10 * duration


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
