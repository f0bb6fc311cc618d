"""Cost of a launch on the host: native, unprobed, without times, switched off, sampled by default, all probed.

    python -m tests.bench.launch_cost [--launches 2000] [--rounds 15] [--repeats 3] [--variants native sampled ...]

Needs an NVIDIA GPU, nvcc and a C compiler. The variants run in turn, `--repeats` times each; the
table gives the mean and the median of all rounds, and the ratios of both to the native ones. Below
it is what taking times costs a launch on average: few launches are timed, so the mean tells. The
first launch of the probed variant includes preparing the kernel; the time of the assembler by itself stands
last. A million launches are ``--launches 20000 --rounds 50 --repeats 1 --variants native "ran unprobed" "switched
off" sampled``: what each left on the disk and the most memory that its processes had are next to the cost.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAMS = Path(__file__).parent.parent / "gpu" / "programs"
VARIANTS = {
    "native": None,
    "without times": ["-p", "block_sched", "--filter", "zero_fill", "--no-times"],
    "ran unprobed": ["-p", "block_sched", "--filter", "zero_fill"],
    "switched off": ["-p", "block_sched", "--after", "1000000"],
    "sampled": ["-p", "block_sched"],
    "probed": ["-p", "block_sched", "--launches", "all"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS), metavar="VARIANT")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build(folder)
        samples: dict[str, dict[str, list[float]]] = {variant: {} for variant in options.variants}
        for _ in range(options.repeats):
            for variant in samples:
                measure(folder, VARIANTS[variant], options, samples[variant])
        show(samples)
        if options.variants[-1] == "probed":  # whose trace is still there
            show_assembler(folder, statistics.median(samples["probed"]["first"]) / 1e6)


def build(folder: Path) -> None:
    """Compile the host program and its kernels into ``folder``."""
    subprocess.run(["cc", "-O2", "-o", folder / "launch_cost", PROGRAMS / "launch_cost.c", "-ldl"], check=True)
    subprocess.run(["nvcc", "-ptx", "-arch=sm_80", "-o", folder / "kernels.ptx", PROGRAMS / "kernels.cu"], check=True)


def measure(
    folder: Path, arguments: list[str] | None, options: argparse.Namespace, samples: dict[str, list[float]]
) -> None:
    """Run the program once and add its values, in nanoseconds."""
    output = folder / "figures"
    program = [folder / "launch_cost", folder / "kernels.ptx", options.launches, options.rounds, output]
    tool: list[object] = []
    if arguments is not None:
        tool = [sys.executable, "-m", "tui_probe", "run", "--no-report", "--no-cache", "--tracedir", folder / "trace"]
        # Launches beyond a limit would cost nothing.
        tool += ["--max-trace-bytes", "none", "--max-result-files", "none", "--max-log-bytes", "none"]
        tool += [*arguments, "--"]
    shutil.rmtree(folder / "trace", ignore_errors=True)
    begun = subprocess.Popen([str(part) for part in (*tool, *program)], stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(begun.pid, 0)
    begun.returncode = os.waitstatus_to_exitcode(status)
    if begun.returncode:
        raise subprocess.CalledProcessError(begun.returncode, begun.args)
    files = [path for path in (folder / "trace").rglob("*") if path.is_file()]
    samples.setdefault("memory", []).append(used.ru_maxrss * 1024)
    samples.setdefault("disk", []).append(sum(path.stat().st_blocks * 512 for path in files))
    samples.setdefault("results", []).append(sum(path.parent.name == "result" for path in files))
    for line in output.read_text().splitlines():
        kind, value = line.split()
        samples.setdefault(kind, []).append(float(value))


def show(samples: dict[str, dict[str, list[float]]]) -> None:
    """Print the table: medians in microseconds, ratios to native."""
    native, native_mean = (of(samples["native"]["round"]) for of in (statistics.median, statistics.fmean))
    heads = f"{'ratio':>8}{'of means':>10}{'first launch ms':>17}{'MB on disk':>12}{'results':>9}{'MB of memory':>14}"
    print(f"{'launch':<16}{'mean us':>9}{'median us':>11}{'min us':>9}{heads}")
    for variant, kinds in samples.items():
        median = statistics.median(kinds["round"])
        least, first = min(kinds["round"]), statistics.median(kinds["first"]) / 1e6
        mean = statistics.fmean(kinds["round"])
        numbers = f"{mean / 1e3:>9.3f}{median / 1e3:>11.3f}{least / 1e3:>9.3f}"
        numbers += f"{median / native:>8.2f}{mean / native_mean:>10.2f}"
        disk, results, memory = (max(kinds[name]) for name in ("disk", "results", "memory"))
        print(f"{variant:<16}{numbers}{first:>17.2f}{disk / 1e6:>12.2f}{results:>9}{memory / 1e6:>14.0f}")
    if not {"without times", "ran unprobed"} <= samples.keys():
        return
    untimed, timed = (statistics.fmean(samples[name]["round"]) for name in ("without times", "ran unprobed"))
    print(f"times cost {timed - untimed:.1f} ns a launch on average, {timed / untimed:.3f} of the cost without them")


def show_assembler(folder: Path, first_launch: float) -> None:
    """Print what the assembler takes for the probed kernel by itself, in milliseconds."""
    log = next(folder.glob("trace/*/kernel/*/process.log"))
    commands = [line for line in log.read_text().splitlines() if " -o " in line and "/probed.ptx" in line]
    command = shlex.split(commands[0])
    command[-1] = str(folder / "again.bin")
    taken = []
    for _ in range(9):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        taken.append((time.perf_counter() - start) * 1e3)
    assembling = statistics.median(taken)
    overhead = first_launch - assembling
    print(f"first probed launch {first_launch:.1f} ms, assembler {assembling:.1f} ms, rest {overhead:.1f} ms")


if __name__ == "__main__":
    main()
