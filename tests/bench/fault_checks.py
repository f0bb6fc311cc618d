"""Cost of the watchdog per kernel, and time of ``bounds_check`` next to that of ``compute-sanitizer memcheck``.

    python -m tests.bench.fault_checks [watchdog | bounds] [--pairs 5] [--launches 20] [--minutes 6] [--program PATH …]

Needs an NVIDIA GPU and nvcc. ``watchdog`` runs each program with the watchdog's code and ``--benchmark``, which times
the original kernel before each probed one, and prints the median ratio of these pairs, with the least and the greatest;
below the table are the kernels over 20 µs that take more than 1.10 times as long. ``bounds`` runs each program without
a tool, under ``bounds_check`` and under ``memcheck`` in turn, ``--pairs`` times. It prints the median time of a process
without a tool, and the median ratios to it. No run begins when ``--minutes`` are over.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import geometric_mean, median
from typing import TYPE_CHECKING

from tui_probe.trace.follow import open_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

GOAL, LONG_MS = 1.10, 0.02
"""Ratio that kernels of this time and longer should have at most."""
SOURCES = Path(__file__).parent / "programs"
WAITING = ("grid_sync", "cub_scan", "cub_sort", "thrust_mix", "verdicts")
ACCESSING = ("access_patterns", "cub_sort", "thrust_mix")
TOOL = [sys.executable, "-m", "tui_probe", "run", "--no-ui", "--no-report"]
ORIGINAL, BOUNDS, MEMCHECK = "original", "bounds_check", "memcheck"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=["watchdog", "bounds"])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--launches", type=int, default=20, help="timed launches per kernel (default 20)")
    parser.add_argument("--minutes", type=float, default=6.0)
    parser.add_argument("--program", type=Path, action="append", help="an executable, instead of the programs here")
    parser.add_argument("--sim", action="store_true", help="on the simulated GPU: no ratios of kernels")
    given = parser.parse_args(arguments)
    ends = time.monotonic() + 60 * given.minutes
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.part in (None, "watchdog"):
            programs = given.program or list(built(WAITING, folder))
            print_watchdog(watchdog_pairs(programs, folder, given, lambda: time.monotonic() < ends))
        if given.part in (None, "bounds"):
            programs = given.program or list(built(ACCESSING, folder))
            print_bounds(process_seconds(programs, folder, given, lambda: time.monotonic() < ends))


def built(names: Sequence[str], folder: Path) -> Iterator[Path]:
    """Compile programs with SASS and PTX for the GPU of this machine."""
    jobs = {}
    for name in names:
        if not (folder / name).exists():
            command = ["nvcc", "-O3", "-lineinfo", "-std=c++17", "-arch=native", "-cudart=static", "-o"]
            jobs[name] = subprocess.Popen([*command, str(folder / name), str(SOURCES / f"{name}.cu")])
    for name in names:
        if name not in jobs or jobs[name].wait() == 0:
            yield folder / name
        else:
            print(f"{name}: nvcc failed", file=sys.stderr)


def traced(options: Sequence[str], program: Path, folder: Path) -> Path | None:
    """Run a program under tui-probe; its trace, or None if it failed."""
    command = [*TOOL, *options, "--tracedir", str(folder / "trace"), "--", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    trace = re.search(r"\[info\] trace in (.+)", done.stderr)
    if done.returncode or trace is None:
        print(f"{program.name}: {done.stdout}{done.stderr}"[-1500:], file=sys.stderr)
        return None
    return Path(trace[1].strip())


# Kernels under the watchdog


def watchdog_pairs(
    programs: Sequence[Path], folder: Path, given: argparse.Namespace, has_time: Callable[[], bool]
) -> dict[tuple[str, str], tuple[float, list[float]]]:
    """Time of the original in ms and ratios of its pairs, by program and kernel."""
    options = ["-p", "stuck_warps", "--benchmark", "--launches", f"0-{given.launches - 1}", *["--sim"] * given.sim]
    pairs: dict[tuple[str, str], tuple[float, list[float]]] = {}
    for program in programs:
        trace = traced(options, program, folder) if has_time() else None
        for kernel in open_trace(trace).kernels if trace else ():
            if kernel.time_ms is not None and kernel.times.impacts:
                pairs[program.name, kernel.demangled] = kernel.time_ms, list(kernel.times.impacts)
            else:
                print(f"{program.name} {kernel.demangled[:60]}: {kernel.reason or kernel.status}", flush=True)
        if trace:
            shutil.rmtree(trace)
    return pairs


def print_watchdog(pairs: Mapping[tuple[str, str], tuple[float, list[float]]]) -> None:
    """Print a row per kernel, and whether those that take long keep the goal."""
    print(f"\n{'program':18}{'µs':>9}{'pairs':>6}{'ratio':>7}{'least':>7}{'most':>7}  kernel")
    for (program, kernel), (milliseconds, ratios) in sorted(pairs.items()):
        numbers = f"{1e3 * milliseconds:9.1f}{len(ratios):6}{median(ratios):7.3f}{min(ratios):7.3f}{max(ratios):7.3f}"
        print(f"{program:18}{numbers}  {kernel[:80]}")
    long = {names: median(ratios) for names, (milliseconds, ratios) in pairs.items() if milliseconds >= LONG_MS}
    if long:
        over = [f"{program} {kernel[:60]} {ratio:.3f}" for (program, kernel), ratio in long.items() if ratio > GOAL]
        print(f"{len(long)} kernels of 20 µs and more: mean ratio {geometric_mean(long.values()):.3f}, "
              f"most {max(long.values()):.3f}, over {GOAL:.2f}: {'; '.join(over) or 'none'}", flush=True)  # fmt: skip


# Processes under bounds_check and memcheck


def checker() -> str | None:
    return shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")


def process_seconds(
    programs: Sequence[Path], folder: Path, given: argparse.Namespace, has_time: Callable[[], bool]
) -> dict[str, dict[str, list[float]]]:
    """Seconds of processes by program and variant; the first round, which fills caches, is not counted."""
    bounds = [*TOOL, "-p", "bounds_check", "--launches", "all", "--wait", "--tracedir", str(folder / "trace")]
    variants = {ORIGINAL: [], BOUNDS: [*bounds, *["--sim"] * given.sim, "--"]}
    if found := checker():
        variants[MEMCHECK] = [found, "--tool", "memcheck"]
    seconds: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for program in programs:
        for number in range(given.pairs + 1):
            for variant, before in variants.items():
                if has_time():
                    begin = time.monotonic()
                    done = subprocess.run([*before, str(program)], capture_output=True, text=True, check=False)
                    took = time.monotonic() - begin
                    if done.returncode:
                        print(f"{program.name} {variant}: {done.stdout}{done.stderr}"[-600:], file=sys.stderr)
                    elif number:
                        seconds[program.name][variant].append(took)
                    shutil.rmtree(folder / "trace", ignore_errors=True)
    return seconds


def print_bounds(seconds: Mapping[str, Mapping[str, Sequence[float]]]) -> None:
    """Print a row per program: seconds without a tool, and the ratios of the processes next to it."""
    print(f"\n{'program':18}{'seconds':>9}{BOUNDS:>24}{MEMCHECK:>24}")
    for program, variants in seconds.items():
        original = variants.get(ORIGINAL, ())
        cells = [ratio_text(original, variants.get(variant, ())) for variant in (BOUNDS, MEMCHECK)]
        print(
            f"{program:18}{median(original) if original else float('nan'):9.2f}{cells[0]:>24}{cells[1]:>24}", flush=True
        )


def ratio_text(original: Sequence[float], checked: Sequence[float]) -> str:
    """``3.20 (2.90 to 3.41)``: the median, least and greatest ratio of pairs; – if nothing was measured."""
    ratios = [with_checks / without for without, with_checks in zip(original, checked, strict=False)]
    return f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})" if ratios else "–"


if __name__ == "__main__":
    main()
