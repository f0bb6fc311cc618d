"""Kernels without a result in the first run on a machine, since they were still being prepared.

    python -m tests.bench.first_run [--sim | --stub] [--tool PATH] [--probe survey] [--rounds 1] [--tested] [--again]
                                    [--jobs 1] [--options "--machine-code all"]
                                    [--real NAME... | --list FILE | -- COMMAND...]

Each program runs once with an empty cache; with `--tested` as on a machine where tui-probe ran before: the first
program then runs once with each tool, ahead of all, for the outcome of the self-test and the compiled modules. `--sim`
takes the simulated GPU: its launches wait for no kernel here, as on a GPU, and load PTX. `--stub` takes the tests'
driver: kernels are assembled as for a GPU, and nothing runs. `--tool` is another tui-probe, which then runs each
program in turn with this one, with `--rounds` as often. `--jobs` programs run at a time.

A row has the kernels that were launched; those without a result since they were being prepared; of the others those
with times only, since their counting probes were being prepared; the kernels from the cache that were prepared ahead of
their launch; the share of GPU time in kernels with a result; and the seconds that the run took longer than the program
by itself just before, with `--again` also for a second run. The last lines have the median, the 90th percentile and the
largest of these seconds, and name the programs that ended with another status or, with `--real`, with other output.

Without a command these are programs of this repository, some of which work for a while between loading their kernels
and launching them; with `--stub` also some with large kernels, for which ptxas takes 0.1 s, and ten times as long with
all counting probes; with `--real` those of `tests/bench/programs`, which need a GPU; with `--list` those of a file,
which has a name, a folder and a command per line, separated by tabs.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench.real_programs import Outcome, covered, prepared

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
STUB = HERE.parent / "hook" / "stub_driver.c"
BEING_PREPARED = "being prepared"
KEPT = ("grafts", "bytecode", "probes")
"""Parts of the cache that all programs share: outcomes of the self-test, compiled modules, facts about probes."""
SELF_TEST_LIMIT = 60
"""Seconds that the self-test of grafts may take."""
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
    covered: float | None
    """Share of GPU time in kernels with a result; None if no launch was timed."""
    seconds: float
    again: float | None
    """The seconds of a second run."""
    same: bool


@dataclass(frozen=True)
class Program:
    """A command, and the folder in which it runs."""

    command: list[str]
    folder: Path = ROOT
    prints_the_same: bool = False
    """True if each run prints the same."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sim", action="store_true")
    parser.add_argument("--stub", action="store_true")
    parser.add_argument("--tool", type=Path)
    parser.add_argument("--probe", default="survey")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--tested", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--options", default="", help="more options of the run")
    parser.add_argument("--real", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--list", type=Path, metavar="FILE")
    parser.add_argument("command", nargs="*")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:  # the self-test of grafts may still write
        Bench(Path(name), options).run()


@dataclass
class Bench:
    """Runs programs with tools in turn, below ``folder``."""

    folder: Path
    options: argparse.Namespace
    runs: dict[str, dict[str, list[FirstRun]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    """By tool and program."""

    def run(self) -> None:
        """Print a row of each run, and the sum of each tool."""
        programs = self.programs()
        titles = f"{'program':<40}{'tool':>6}{'kernels':>8}{'missed':>7}{'timed':>6}{'ahead':>6}{'time':>8}"
        sys.stdout.write(f"{titles}{'added':>7}{'again':>7}\n")
        if self.options.tested:
            for tool in self.tools:
                self.prepare_self_test(tool, next(iter(programs.values())))
        with ThreadPoolExecutor(self.options.jobs) as pool:
            for _ in range(self.options.rounds):
                list(pool.map(self.measure, programs, programs.values()))
        for tool, runs in self.runs.items():
            sys.stdout.write("".join(f"{tool}: {line}\n" for line in summary(runs)))

    @cached_property
    def tools(self) -> dict[str, list[str]]:
        """The commands of this tui-probe and of another one."""
        other = {"other": [str(self.options.tool)]} if self.options.tool else {}
        return {"this": [sys.executable, "-m", "tui_probe"]} | other

    def measure(self, name: str, program: Program) -> None:
        """Run a program with each tool, and print a row of each."""
        for tool, start in self.tools.items():
            run = self.first_run(start, program)
            self.runs[tool][name].append(run)
            sys.stdout.write(f"{name[:39]:<40}{tool:>6}{row(run)}\n")
            sys.stdout.flush()

    @property
    def tested(self) -> Path:
        """The part of the cache that a run of another program leaves."""
        return self.folder / "tested"

    def prepare_self_test(self, name: str, program: Program) -> None:
        """Run a program, wait for the outcome of the tool's self-test, and keep what other runs have of it."""
        home = self.folder / f"trial-{name}"
        finished([*self.profiled(self.tools[name], home), *program.command], program.folder, environment(home))
        grafts = home / "cache" / "tui-probe" / "grafts"
        end = time.monotonic() + SELF_TEST_LIMIT
        while not any(grafts.glob("*.json")) and grafts.exists() and time.monotonic() < end:
            time.sleep(0.1)
        for part in KEPT:
            if (grafts.parent / part).exists():
                shutil.copytree(grafts.parent / part, self.tested / part, dirs_exist_ok=True)

    def programs(self) -> dict[str, Program]:
        """Return the programs to run, by name."""
        if self.options.list:
            rows = (line.split("\t") for line in self.options.list.read_text().splitlines())
            return {name: Program(command.split(), Path(folder)) for name, folder, command in rows}
        if self.options.real:
            real = prepared(self.folder, self.options.real)
            return {name: Program(command, prints_the_same=True) for name, command in real.items()}
        if self.options.command:
            return {" ".join(self.options.command): Program(self.options.command)}
        own = own_programs(self.folder, stub=self.options.stub)
        return {name: Program(command) for name, command in own.items()}

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
        quiet = ["run", "--no-ui", "--no-report", *self.options.options.split()]
        return [*tool, *quiet, *self.driver, "-p", self.options.probe, "--tracedir", str(home), "--", *as_on_gpu]

    def unprofiled(self, program: Program) -> Outcome | None:
        """The program by itself; None on a driver that only tui-probe has."""
        if self.options.sim:
            return None
        library = [f"LD_LIBRARY_PATH={Path(self.driver[1]).parent}"] if self.options.stub else []
        return finished(["env", *library, *program.command], program.folder, dict(os.environ))

    def first_run(self, tool: list[str], program: Program) -> FirstRun:
        """Run a program with an empty cache, and once more, each after the program by itself."""
        home = Path(tempfile.mkdtemp(dir=self.folder))
        if self.tested.exists():
            shutil.copytree(self.tested, home / "cache" / "tui-probe")
        command = [*self.profiled(tool, home), *program.command]
        runs = [
            (self.unprofiled(program), finished(command, program.folder, environment(home)))
            for _ in range(2 if self.options.again else 1)
        ]
        logs = sorted(home.glob("*/event.log"), key=lambda log: log.stat().st_mtime)
        launched = self.launched(tool, logs[0].parent) if logs else (0, 0, 0, 0, None)
        seconds = [run.seconds - (plain.seconds if plain else 0) for plain, run in runs]
        same = all(plain is None or is_same(plain, run, program) for plain, run in runs)
        shutil.rmtree(home, ignore_errors=True)  # the self-test of grafts may still write there
        return FirstRun(*launched, seconds[0], seconds[1] if seconds[1:] else None, same)

    def launched(self, tool: list[str], trace: Path) -> tuple[int, int, int, int, float | None]:
        """The launched kernels, those without a result, those with times only, those prepared ahead; share of time."""
        report = [*tool, "report", str(trace), "--format", "json"]
        done = subprocess.run(report, env=environment(trace.parent), capture_output=True, check=True)
        content = json.loads(done.stdout)
        return *counts(content), count_ahead(trace), covered(content["kernels"])


def is_same(plain: Outcome, run: Outcome, program: Program) -> bool:
    """Return whether both ended with the same status, and printed the same where that can be expected."""
    return plain.status == run.status and (plain.stdout == run.stdout or not program.prints_the_same)


def summary(runs: dict[str, list[FirstRun]]) -> Iterator[str]:
    """The sums of all runs, and the programs that did not end as by themselves."""
    every = [run for rounds in runs.values() for run in rounds]
    kernels, missed, timed = (sum(getattr(run, name) for run in every) for name in ("kernels", "missed", "timed_only"))
    yield f"missed {missed} of {kernels} kernels, {timed} with times only"
    yield f"added in the first run: {spread([run.seconds for run in every])}"
    if again := [run.again for run in every if run.again is not None]:
        yield f"added in the second run: {spread(again)}"
    different = [name for name, rounds in runs.items() if not all(run.same for run in rounds)]
    yield f"other status or output: {', '.join(different) or 'no program'}"


def spread(seconds: list[float]) -> str:
    """The median, 90th percentile and largest of seconds."""
    values = sorted(seconds)
    tenth = values[min(len(values) - 1, math.ceil(0.9 * len(values)) - 1)]
    return f"median {statistics.median(values):.2f} s, 90 % {tenth:.2f} s, largest {values[-1]:.2f} s"


def row(run: FirstRun) -> str:
    """The cells of a run."""
    again = "–" if run.again is None else f"{run.again:.2f}"
    share = "–" if run.covered is None else f"{run.covered:.1%}"
    return f"{run.kernels:>8}{run.missed:>7}{run.timed_only:>6}{run.ahead:>6}{share:>8}{run.seconds:>7.2f}{again:>7}"


def environment(home: Path) -> dict[str, str]:
    """The environment of a run with its own cache. The stub has no types of parameters."""
    own = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CACHE", "CONFIG", "STATE")}
    return os.environ | own | {"STUB_NO_PARAM_INFO": "1"}


def finished(command: list[str], folder: Path, env: dict[str, str]) -> Outcome:
    """Run a command to its end."""
    begun = time.monotonic()
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    return Outcome(done.returncode, done.stdout, done.stderr, time.monotonic() - begun)


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
    timed = sum(any(BEING_PREPARED in str(probe["reason"]) for probe in kernel["probes"] or ()) for kernel in others)
    return len(kernels), len(missed), timed


def count_ahead(trace: Path) -> int:
    """The kernels of a trace that were prepared ahead of their launch, with any probe."""
    logs = (trace / "kernel").glob("*/**/process.log")
    text = "prepared ahead of this launch"
    return len({log.relative_to(trace).parts[1] for log in logs if text in log.read_text(errors="replace")})


if __name__ == "__main__":
    main()
