"""Cost of the profiler in real programs: time, disk, and equal output.

    python -m tests.bench.real_programs [NAME …] [--options "" "-p dmat" …] [--seconds 60] [--out FILE.json]


Needs an NVIDIA GPU; programs of CUDA C++ need nvcc, those of a framework the framework, and are named where they
cannot run. All run once, by themselves and profiled, so that caches are full; then each by itself, and under the
profiler with each set of options. Below the table are what starting the profiler itself takes, and the median and the
worst ratio of the time beyond that allowance of ``START`` seconds.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parent / "programs"
START = 0.5
"""Seconds that starting the profiler may take, not counted in the ratios."""
LONG = 0.02
"""Milliseconds from which on a kernel's slowdown is printed."""
STARTING = "one_launch"
"""The program that does next to nothing, whose time is that of starting; it has no part in the ratios."""
LIBRARIES = {"cublas_products": ["-lcublas"]}
NEEDS = {
    "cupy": "cupy", "jax": "optax", "torch": "torch", "timm": "timm", "graph_network": "torch_geometric",
    "triton": "triton", "numba": "numba", "nccl": "torch", "gaussian": "gpytorch",
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """A finished program. ``seconds`` of wall time; ``status`` -9 where it ran past the limit."""

    status: int
    stdout: str
    stderr: str
    seconds: float


@dataclass(frozen=True)
class ProgramCost:
    """A program with one set of options, compared with itself unprofiled. ``disk`` in bytes as the file system counts
    them.
    """

    program: str
    options: str
    unprofiled: float
    profiled: float
    same: bool
    disk: int
    results: int
    kernels: int
    probed: int
    covered: float | None
    """Share of the GPU time in kernels that were probed, of the time of all that have a sample; None without any."""
    slowdowns: dict[str, float]
    """By the names of probed kernels of 20 us and more, where launches of both kinds were timed."""
    reasons: dict[str, int]

    @property
    def ratio(self) -> float:
        """The profiled time beyond the start of the profiler, over the unprofiled time."""
        return max(self.profiled - START, 0) / self.unprofiled


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--options", nargs="+", default=[""])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows: list[ProgramCost] = []
    with tempfile.TemporaryDirectory() as name:
        commands = prepared(Path(name), options.names)
        warm_up(commands, options.options, options.seconds, Path(name))
        for program, command in commands.items():
            measured = measure(program, command, options.options, options.seconds, Path(name))
            for row in measured:
                print(line(row), flush=True)
            rows += measured
    show(rows, options.options)
    if options.out:
        options.out.write_text(json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8")


def prepared(folder: Path, names: list[str]) -> dict[str, list[str]]:
    """Return the command of each program; programs that cannot run are named on stderr with the reason."""
    chosen = [
        path
        for path in sorted(PROGRAMS.iterdir())
        if path.suffix in (".cu", ".py") and path.stem in (names or [path.stem])
    ]
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        problems = list(pool.map(lambda path: problem_of(path, folder), chosen))
    for path, problem in zip(chosen, problems, strict=True):
        if problem:
            print(f"{path.stem}: {problem}", file=sys.stderr)
    return {
        path.stem: [str(folder / path.stem)] if path.suffix == ".cu" else [sys.executable, str(path)]
        for path, problem in zip(chosen, problems, strict=True)
        if not problem
    }


def problem_of(path: Path, folder: Path) -> str:
    """Return the reason why a program cannot run here, else ""; CUDA C++ programs are built into the folder."""
    if path.suffix == ".cu":
        return built(path, folder / path.stem)
    package = next(needed for prefix, needed in NEEDS.items() if path.stem.startswith(prefix))
    return "" if importlib.util.find_spec(package) else f"{package} is not installed"


def built(source: Path, program: Path) -> str:
    """Compile a program for this machine's GPU, with PTX inside; why that failed, else ""."""
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if nvcc is None:
        return "no nvcc to build it with"
    libraries = LIBRARIES.get(source.stem, [])
    command = [nvcc, "-O2", "-std=c++17", "-arch=sm_90", "-o", str(program), str(source), *libraries]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    return made.stderr.strip().split("\n")[-1] if made.returncode else ""


def warm_up(commands: dict[str, list[str]], choices: list[str], limit: float, folder: Path) -> None:
    """Run everything once, side by side: files are read from the disk, and the caches of all compilers filled."""
    tools = [[], *(tool(choice, folder / "warm") for choice in choices)]
    with ThreadPoolExecutor(max_workers=(os.cpu_count() or 1) // 2 or 1) as pool:
        for before in tools:
            list(pool.map(lambda command: started([*before, *command], 4 * limit, folder), commands.values()))  # noqa: B023
            shutil.rmtree(folder / "warm", ignore_errors=True)


def tool(choice: str, root: Path) -> list[str]:
    """The profiler with these options, to be before a command."""
    return [
        sys.executable,
        "-m",
        "tui_probe",
        "run",
        "--no-ui",
        "--no-report",
        "--tracedir",
        str(root),
        *choice.split(),
        "--",
    ]


def started(command: list[str], limit: float, folder: Path) -> Outcome:
    begin = time.perf_counter()
    environment = os.environ | {"PYTHONHASHSEED": "0", "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor")}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=limit, check=False, env=environment, cwd=folder
        )
    except subprocess.TimeoutExpired:
        return Outcome(-9, "", f"ran past {limit:.0f} s", time.perf_counter() - begin)
    return Outcome(done.returncode, done.stdout, done.stderr, time.perf_counter() - begin)


def measure(program: str, command: list[str], choices: list[str], limit: float, folder: Path) -> list[ProgramCost]:
    """The program by itself, then profiled."""
    unprofiled = started(command, limit, folder)
    if unprofiled.status:
        print(
            f"{program}: ends with {unprofiled.status} by itself: {unprofiled.stderr.strip()[-200:]}", file=sys.stderr
        )
        return []
    return [profiled(program, command, choice, unprofiled, limit, folder) for choice in choices]


def profiled(
    program: str, command: list[str], choice: str, unprofiled: Outcome, limit: float, folder: Path
) -> ProgramCost:
    """One run under the profiler; its trace is looked at and removed."""
    root = folder / "trace"
    outcome = started([*tool(choice, root), *command], 4 * limit, folder)
    same = (outcome.status, outcome.stdout) == (unprofiled.status, unprofiled.stdout)
    if not same:
        print(f"{program} {choice}: {outcome.status}: {outcome.stdout!r} for {unprofiled.stdout!r}", file=sys.stderr)
        print(outcome.stderr[-600:], file=sys.stderr)
    kernels = reported(root)
    files = [path for path in root.rglob("*") if path.is_file()] if root.exists() else []
    disk = sum({(stat.st_dev, stat.st_ino): stat.st_blocks * 512 for stat in map(os.lstat, files)}.values())
    results = sum(path.parent.name == "result" for path in files)
    shutil.rmtree(root, ignore_errors=True)
    return ProgramCost(
        program, choice, unprofiled.seconds, outcome.seconds, same, disk, results, len(kernels),
        sum(kernel["status"] == "probed" for kernel in kernels), covered(kernels), slowdowns(kernels),
        dict(Counter(kernel["reason"] for kernel in kernels if kernel["status"] != "probed")),
    )  # fmt: skip


def reported(root: Path) -> list[dict[str, Any]]:
    """The kernels of all traces, as ``report`` tells them."""
    kernels: list[dict[str, Any]] = []
    for trace in root.glob("*/event.log"):
        report = [sys.executable, "-m", "tui_probe", "report", str(trace.parent), "--format", "json"]
        done = subprocess.run(report, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{trace}: {done.stderr.strip()[-300:]}", file=sys.stderr)
        else:
            kernels += json.loads(done.stdout)["kernels"]
    return kernels


def covered(kernels: list[dict[str, Any]]) -> float | None:
    """The share of GPU time in kernels with a probed launch."""
    timed = [(kernel["time_total_ms"], kernel["launches_probed"]) for kernel in kernels if kernel["time_total_ms"]]
    total = sum(time for time, _ in timed)
    return sum(time for time, probed in timed if probed) / total if total else None


def slowdowns(kernels: list[dict[str, Any]]) -> dict[str, float]:
    return {
        kernel["name"]: kernel["slowdown"]
        for kernel in kernels
        if kernel["slowdown"] and (kernel["time_median_ms"] or 0) >= LONG
    }


def line(row: ProgramCost) -> str:
    marks = "same" if row.same else "DIFFERS"
    share = "–" if row.covered is None else f"{row.covered:.1%}"
    slow = list(row.slowdowns.values())
    slowed = f"{statistics.mean(slow):.3f}/{max(slow):.2f} ({len(slow)})" if slow else "–"
    return (
        f"{row.program:<22}{row.options or 'default':<18}{row.unprofiled:>7.2f}{row.profiled:>8.2f}{row.ratio:>7.2f}"
        f"{row.disk / 1e6:>9.1f} MB{row.results:>7}{row.probed:>6}/{row.kernels:<5}{share:>7}  {slowed:<18}{marks}"
    )


def show(rows: list[ProgramCost], choices: list[str]) -> None:
    """Median, worst and the budgets, by set of options."""
    for choice in choices:
        chosen = [row for row in rows if row.options == choice and row.program != STARTING]
        for row in rows:
            if row.options == choice and row.program == STARTING:
                print(f"{choice or 'default'}: starting takes {row.profiled - row.unprofiled:.2f} s")
        if chosen:
            print(f"{choice or 'default'}: {sentence(chosen)}")


def sentence(rows: list[ProgramCost]) -> str:
    worst = max(rows, key=lambda row: row.ratio)
    median = statistics.median(row.ratio for row in rows)
    return (
        f"{len(rows)} programs, {sum(row.same for row in rows)} with the same output; ratio median {median:.2f}, "
        f"worst {worst.ratio:.2f} ({worst.program}); most disk {max(row.disk for row in rows) / 1e6:.0f} MB, "
        f"most results {max(row.results for row in rows)}"
    )


if __name__ == "__main__":
    main()
