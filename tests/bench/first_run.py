"""Kernels without a result in the first run on a machine, since they were still being prepared.

    python -m tests.bench.first_run [--sim | --stub] [--tool PATH] [--probe survey] [--rounds 1] [--tested]
                                    [--real NAME... | -- COMMAND...]

Each program runs once with an empty cache; with `--tested` as on a machine where the self-test of grafts ran before:
the first program then runs three times more, ahead of all, for its outcome. `--sim` takes the simulated GPU: its
launches wait for no kernel here, as on a GPU, and load PTX. `--stub` takes the tests' driver: kernels are assembled as
for a GPU, and nothing runs. `--tool` is another tui-probe, which then runs each program in turn with this one, with
`--rounds` as often. A row has the kernels that were launched; those without a result since they were being prepared;
of the others those with times only, since their counting probes were being prepared; the kernels from the cache that
were prepared ahead of their launch; and the seconds that the run took longer than the program by itself. Without a
command these are programs of this repository, some of which work for a while between loading their kernels and
launching them; with `--stub` also some with large kernels, for which ptxas takes 0.1 s, and ten times as long with all
counting probes; with `--real` those of `tests/bench/programs`, which need a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.bench.real_programs import prepared

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
STUB = HERE.parent / "hook" / "stub_driver.c"
BEING_PREPARED = "being prepared"
EXAMPLES = (
    "tui_probe/simgpu/examples/demo.py",
    "tests/e2e/programs/three_faults.py",
    "tui_probe/evals/programs/stores.py",
)
STARTS = ((1, 0), (3, 0), (10, 0), (30, 0), (10, 500), (30, 2000), (60, 4000))
"""Kernels of ``start_program``, and milliseconds between their load and the first launch."""
LARGE_STARTS = ((3, 0, 20), (11, 500, 20), (22, 1000, 20), (4, 500, 80), (11, 2000, 80))
"""The same, and accesses of each kernel."""


@dataclass(frozen=True)
class FirstRun:
    """Outcome of one program."""

    kernels: int
    missed: int
    timed_only: int
    ahead: int
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sim", action="store_true")
    parser.add_argument("--stub", action="store_true")
    parser.add_argument("--tool", type=Path)
    parser.add_argument("--probe", default="survey")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--tested", action="store_true")
    parser.add_argument("--real", nargs="+", default=[], metavar="NAME")
    parser.add_argument("command", nargs="*")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        Bench(Path(name), options).run()


@dataclass
class Bench:
    """Runs programs with tools in turn, below ``folder``."""

    folder: Path
    options: argparse.Namespace
    runs: dict[str, list[FirstRun]] = field(default_factory=lambda: defaultdict(list))

    def run(self) -> None:
        """Print a row of each run, and the sum of each tool."""
        tools = {"this": [sys.executable, "-m", "tui_probe"]}
        if self.options.tool:
            tools["other"] = [str(self.options.tool)]
        programs = self.programs()
        sys.stdout.write(f"{'program':<40}{'tool':>6}{'kernels':>8}{'missed':>7}{'timed':>6}{'ahead':>6}{'added':>7}\n")
        if self.options.tested:
            self.prepare_self_test(tools["this"], next(iter(programs.values())))
        for _ in range(self.options.rounds):
            for program, command in programs.items():
                plain = seconds_of(self.unprofiled(command))
                for tool, start in tools.items():
                    first = self.first_run(start, command, plain)
                    self.runs[tool].append(first)
                    sys.stdout.write(f"{program[:39]:<40}{tool:>6}{row(first)}\n")
                    sys.stdout.flush()
        for tool, runs in self.runs.items():
            kernels, missed, timed = (
                sum(getattr(run, name) for run in runs) for name in ("kernels", "missed", "timed_only")
            )
            added = statistics.median(run.seconds for run in runs)
            sys.stdout.write(
                f"{tool}: missed {missed} of {kernels} kernels, {timed} with times only, {added:.2f} s added (median)\n"
            )

    @property
    def self_test(self) -> Path:
        """Outcome of the self-test of grafts."""
        return self.folder / "tested" / "grafts"

    def prepare_self_test(self, tool: list[str], command: list[str]) -> None:
        """Run a program three times, which leaves the outcome of the self-test."""
        home = self.folder / "trial"
        for _ in range(3):
            subprocess.run(
                [*self.profiled(tool, home), *command], env=environment(home), cwd=ROOT,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True,
            )  # fmt: skip
        grafts = home / "cache" / "tui-probe" / "grafts"
        if grafts.exists():
            shutil.copytree(grafts, self.self_test)

    def programs(self) -> dict[str, list[str]]:
        """Names and commands of what is to run."""
        if self.options.real:
            return prepared(self.folder, self.options.real)
        if self.options.command:
            return {" ".join(self.options.command): self.options.command}
        return own_programs(self.folder, stub=self.options.stub)

    @cached_property
    def driver(self) -> list[str]:
        """Options that choose the driver."""
        if not self.options.stub:
            return ["--sim"] if self.options.sim else []
        library = self.folder / "stub" / "libcuda.so.1"
        library.parent.mkdir()
        flags = ["-shared", "-fPIC", "-O1", f"-Wl,-soname,{library.name}"]
        subprocess.run(["cc", *flags, "-o", library, STUB, "-lpthread", "-ldl"], check=True)
        return ["--driver", str(library)]

    def profiled(self, tool: list[str], home: Path) -> list[str]:
        """The command that a program's is appended to."""
        as_on_gpu = ["env", "TUI_PROBE_PATIENT="] if self.options.sim else []
        quiet = ["run", "--no-ui", "--no-report"]
        return [*tool, *quiet, *self.driver, "-p", self.options.probe, "--tracedir", str(home), "--", *as_on_gpu]

    def unprofiled(self, command: list[str]) -> list[str] | None:
        """The program by itself; None on a driver that only tui-probe has."""
        if self.options.sim:
            return None
        library = Path(self.driver[1]).parent if self.options.stub else None
        return ["env", f"LD_LIBRARY_PATH={library}", *command] if library else command

    def first_run(self, tool: list[str], command: list[str], plain: float) -> FirstRun:
        """Run a program with an empty cache."""
        home = Path(tempfile.mkdtemp(dir=self.folder))
        if self.self_test.exists():
            shutil.copytree(self.self_test, home / "cache" / "tui-probe" / "grafts")
        seconds = seconds_of([*self.profiled(tool, home), *command], environment(home)) - plain
        trace = max(home.glob("*/event.log"), key=lambda log: log.stat().st_mtime).parent
        report = subprocess.run(
            [*tool, "report", str(trace), "--format", "json"], env=environment(home), capture_output=True, check=True
        )
        return FirstRun(*counts(json.loads(report.stdout)), count_ahead(trace), seconds)


def row(run: FirstRun) -> str:
    """The cells of a run."""
    return f"{run.kernels:>8}{run.missed:>7}{run.timed_only:>6}{run.ahead:>6}{run.seconds:>7.2f}"


def environment(home: Path) -> dict[str, str]:
    """The environment of a run with its own cache. The stub has no types of parameters."""
    own = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CACHE", "CONFIG", "STATE")}
    return os.environ | own | {"STUB_NO_PARAM_INFO": "1"}


def seconds_of(command: list[str] | None, env: dict[str, str] | None = None) -> float:
    """Run a command; how long it took, 0 without one."""
    if command is None:
        return 0.0
    begun = time.monotonic()
    subprocess.run(command, env=env, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.monotonic() - begun


def own_programs(folder: Path, *, stub: bool) -> dict[str, list[str]]:
    """Names and commands of the programs, of which one is compiled. The stub runs only that one."""
    start = folder / "start"
    subprocess.run(["cc", "-O1", "-o", start, HERE / "start_program.c", "-ldl"], check=True)
    starts = [*((count, pause, 1) for count, pause in STARTS), *(LARGE_STARTS if stub else ())]
    programs = {
        f"{count} kernels of {accesses} accesses, {pause} ms": [str(start), str(count), str(pause), str(accesses)]
        for count, pause, accesses in starts
    }
    return programs | ({} if stub else {Path(path).name: [sys.executable, str(ROOT / path)] for path in EXAMPLES})


def counts(report: dict[str, Any]) -> tuple[int, int, int]:
    """The launched kernels, those that were being prepared at every launch, and those of which probes were."""
    kernels = report["kernels"]
    missed = [kernel for kernel in kernels if BEING_PREPARED in str(kernel["reason"])]
    others = [kernel for kernel in kernels if kernel not in missed]
    timed = sum(any(BEING_PREPARED in str(probe["reason"]) for probe in kernel["probes"]) for kernel in others)
    return len(kernels), len(missed), timed


def count_ahead(trace: Path) -> int:
    """The kernels of a trace that were prepared ahead of their launch, with any probe."""
    logs = (trace / "kernel").glob("*/**/process.log")
    text = "prepared ahead of this launch"
    return len({log.relative_to(trace).parts[1] for log in logs if text in log.read_text(errors="replace")})


if __name__ == "__main__":
    main()
