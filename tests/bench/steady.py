"""Cost of leaving the profiler on: steps of PyTorch loops, as ratios to the same loops without it.

    python -m tests.bench.steady [training decoding graph] [--limit 155] [--starts 4] [--window 0.25] [--cpus 8]
                                 [--variants again on off switched light kineto proton] [--patience 90]
                                 [--program FILE] [--sim]

Needs PyTorch with torchvision and transformers on an NVIDIA GPU, or another ``--program``, which ``--sim`` tries
without one. A start has one process per variant and one without a profiler. All are warm before the first measurement;
then each in turn, in random order, measures steps for ``--window`` seconds, while the others wait. So a pair of windows
is less than a second or two apart, and what the machine does meanwhile slows both. Starts repeat this with new
processes, until ``--limit`` seconds per loop are over, but there are at least five pairs. The processes of a loop share
``--cpus`` processors; engines and the benchmark use others.

Variants: ``again`` is a second process without a profiler, whose ratios show the noise; ``on`` is the
default set of probes, ``light`` is ``block_sched``, ``off`` the default set with recording switched off by ``tui-probe
ctl off``; ``kineto`` is torch.profiler and ``proton`` that of Triton. ``switched`` is one process under the default
set, which switches recording on or off before each step. Its ratios are to its steps with recording off, so they do not
have the differences between processes, nor those of the machine that last longer than a step. A variant that ends
early, or does not answer for ``--patience`` seconds, is left out from then on: its row has the reason. Without the loop
itself there is no table.

A row has the median of the ratios of all pairs, with an interval that has it in 95 % of samples of starts and of their
pairs (bootstrap). The columns are explained in ``steady_windows``; ``cpu`` and ``instructions`` are of the host alone.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PROGRAM = Path(__file__).parent.parent / "gpu" / "programs" / "steady_loops.py"
TOOL = [sys.executable, "-m", "tui_probe"]
LOOPS = ("training", "decoding", "graph")
NATIVE = "native"
VARIANTS: dict[str, list[str]] = {
    "again": [],
    "on": ["run", "--no-ui", "--no-report"],
    "light": ["run", "--no-ui", "--no-report", "-p", "block_sched"],
    "off": ["run", "--no-ui", "--no-report"],
    "switched": ["run", "--no-ui", "--no-report"],
    "kineto": [],
    "proton": [],
}
USUAL_VARIANTS = ("again", "on", "off", "kineto", "proton")
PROFILERS = ("kineto", "proton")
BASES = {"switched": "unrecorded"}
"""Variants whose windows are compared with other windows than those of the native loop."""
COLUMNS = ("step", "mean", "cpu", "instructions")
UNITS = {"instructions": (1e-6, "M")}
LEAST_PAIRS = 5
SAMPLES = 2000
"""Samples of a bootstrap."""
Window = dict[str, float | None]
"""Measured values, of a variant that failed none."""
Pairs = list[list[float]]
"""Ratios of pairs, in a list per start."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("loops", nargs="*", default=LOOPS, metavar="LOOP")
    parser.add_argument("--limit", type=float, default=155)
    parser.add_argument("--starts", type=int, default=4)
    parser.add_argument("--window", type=float, default=0.25)
    parser.add_argument("--warm-up", type=float, default=3)
    parser.add_argument("--cpus", type=int, default=8)
    parser.add_argument("--patience", type=float, default=90, help="seconds until a process counts as hanging")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=USUAL_VARIANTS, metavar="VARIANT")
    parser.add_argument("--program", type=Path, default=PROGRAM)
    parser.add_argument("--sim", action="store_true")
    options = parser.parse_args()
    processors = share_processors(options.cpus)
    for loop in options.loops:
        with tempfile.TemporaryDirectory() as name:
            LoopBench(Path(name), loop, processors, options).run()


def share_processors(count: int) -> list[int]:
    """Return the last ``count`` processors, and leave them to the loops. None are pinned where there are too few."""
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) <= count:
        return []
    os.sched_setaffinity(0, allowed[:-count])
    return allowed[-count:]


@dataclass
class LoopBench:
    """Measures one loop, with traces and a cache below ``folder``."""

    folder: Path
    loop: str
    processors: Sequence[int]
    options: argparse.Namespace
    failures: dict[str, str] = field(default_factory=dict)
    """Reasons of the variants that are left out."""

    def run(self) -> None:
        """Fill the cache, measure in each start, and print the table."""
        end = time.monotonic() + self.options.limit
        tools = {tuple(VARIANTS[variant]): variant for variant in self.options.variants if VARIANTS[variant]}
        closing = self.close(self.start(list(tools.values())))
        starts: list[dict[str, list[Window]]] = []
        for left in range(self.options.starts, 0, -1):
            if NATIVE in self.failures:
                break
            share = (end - time.monotonic()) / left
            windows, closing = self.measure(time.monotonic() + share - closing)
            starts.append(windows)
            print(f"{self.loop}, start {len(starts)}, {len(windows[NATIVE])} windows: {brief(windows)}", flush=True)
        show(self.loop, starts, self.failures)

    def start(self, variants: Sequence[str]) -> dict[str, LoopProcess]:
        """Start a process of each variant that has not failed; those that are returned are warm."""
        processes = {
            variant: LoopProcess(
                self.command(variant), self.environment, self.folder / f"{variant}.err", self.options.patience
            )
            for variant in variants
            if variant not in self.failures
        }
        for variant, process in processes.items():
            with self.noted(variant):
                process.wait_until_warm()
        if "off" in processes and "off" not in self.failures:
            control = [*TOOL, "ctl", str(self.folder / "off"), "off"]
            subprocess.run(control, env=self.environment, check=True, stdout=subprocess.DEVNULL)
        return processes

    @contextmanager
    def noted(self, variant: str) -> Iterator[None]:
        """Leave a variant out from now on if its process fails."""
        try:
            yield
        except LoopFailedError as error:
            self.failures.setdefault(variant, str(error))

    def measure(self, end: float) -> tuple[dict[str, list[Window]], float]:
        """Measure windows of all variants in turn, until another round would not fit, as often as needed at least.

        Returns them, and the seconds in which the processes ended.
        """
        processes = self.start([NATIVE, *self.options.variants])
        windows: dict[str, list[Window]] = {variant: [] for variant in (NATIVE, *self.options.variants)}
        windows |= {BASES[variant]: [] for variant in self.options.variants if variant in BASES}
        longest, least = 0.0, math.ceil(LEAST_PAIRS / self.options.starts)
        while len(windows[NATIVE]) < least or time.monotonic() + longest < end:
            begun = time.monotonic()
            for variant in random.sample([NATIVE, *self.options.variants], len(self.options.variants) + 1):
                for name, window in self.windows_of(variant, processes).items():
                    windows[name].append(window)
            longest = max(longest, time.monotonic() - begun)
            if NATIVE in self.failures:
                break
        return windows, self.close(processes)

    def windows_of(self, variant: str, processes: dict[str, LoopProcess]) -> dict[str, Window]:
        """Measure a window of a variant, or a pair if it has a base of its own; empty where it failed."""
        names = {variant: "on", BASES[variant]: "off"} if variant in BASES else {variant: ""}
        windows: dict[str, Window] = {name: {} for name in names}
        if variant in self.failures:
            return windows
        with self.noted(variant):
            if variant in BASES:
                states = processes[variant].measure_switched(self.options.window)
                return {name: states[state] for name, state in names.items()}
            windows[variant] = processes[variant].measure(self.options.window)
        return windows

    def close(self, processes: dict[str, LoopProcess]) -> float:
        """End all; the seconds that it took."""
        begun = time.monotonic()
        for variant, process in processes.items():
            with self.noted(variant):
                process.end()
        return time.monotonic() - begun

    def command(self, variant: str) -> list[str]:
        """The program, under the profiler of a variant."""
        arguments = VARIANTS.get(variant, [])
        driver = ["--sim"] if self.options.sim else []
        tool = [*TOOL, *arguments, *driver, "--tracedir", str(self.folder / variant), "--"] if arguments else []
        profiler = [variant] if variant in PROFILERS else []
        return [*tool, sys.executable, str(self.options.program), self.loop, str(self.options.warm_up), *profiler]

    @property
    def environment(self) -> dict[str, str]:
        """The environment of all processes, with a cache of their own."""
        own = {f"XDG_{kind}_HOME": str(self.folder / kind.lower()) for kind in ("CACHE", "CONFIG", "STATE")}
        return os.environ | own | {"STEADY_CPUS": ",".join(map(str, self.processors))}


class LoopFailedError(Exception):
    """A process of a loop ended early, or did not answer in time."""


class LoopProcess:
    """A process that runs steps of a loop when requested. Its stderr goes to the file ``errors``.

    Methods raise LoopFailedError if it ends early, or takes ``patience`` seconds longer than it should.
    """

    def __init__(self, command: list[str], environment: dict[str, str], errors: Path, patience: float) -> None:
        self._errors, self._patience = errors, patience
        with errors.open("wb") as file:
            self._process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                start_new_session=True,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests: IO[str] = self._process.stdin
        self._answers: IO[str] = self._process.stdout

    def wait_until_warm(self) -> None:
        """Wait for the end of the warm-up."""
        self._line("ready\n", self._patience)

    def measure(self, seconds: float) -> Window:
        """Measure steps for so long."""
        window: Window = self._answer(f"{seconds}", seconds)
        return window

    def measure_switched(self, seconds: float) -> dict[str, Window]:
        """Measure steps with recording ``on`` and ``off`` for so long."""
        windows: dict[str, Window] = self._answer(f"{seconds} switched", seconds)
        return windows

    def _answer(self, request: str, seconds: float) -> Any:
        with suppress(BrokenPipeError):  # then there is no answer
            self._requests.write(f"{request}\n")
            self._requests.flush()
        return json.loads(self._line("{", seconds + self._patience))

    def end(self) -> None:
        """Let the program end."""
        with suppress(BrokenPipeError):
            self._requests.close()
        with self._killed_after(self._patience):
            status = self._process.wait()
        self._answers.close()
        if status:
            raise self._failure(status)

    def _line(self, start: str, seconds: float) -> str:
        """The next line that begins like this: others are of libraries."""
        with self._killed_after(seconds):
            for line in self._answers:
                if line.startswith(start):
                    return line
            status = self._process.wait()
        raise self._failure(status)

    @contextmanager
    def _killed_after(self, seconds: float) -> Iterator[None]:
        timer = threading.Timer(seconds, os.killpg, (self._process.pid, signal.SIGKILL))
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _failure(self, status: int) -> LoopFailedError:
        if status == -signal.SIGKILL:
            return LoopFailedError(f"no answer for {self._patience:g} s")
        lines = [line for line in self._errors.read_text(errors="replace").splitlines() if line.strip()]
        return LoopFailedError(f"status {status}: {lines[-1].strip() if lines else 'no message'}")


def ratios(starts: Sequence[dict[str, list[Window]]], variant: str, column: str) -> Pairs:
    """Ratios of a column to that of the base's window of the same round, for each start. Unknown values have none."""
    pairs: Pairs = []
    for windows in starts:
        both = zip(windows[variant], windows[BASES.get(variant, NATIVE)], strict=True)
        values = [(window.get(column), native.get(column)) for window, native in both]
        pairs.append([value / base for value, base in values if value is not None and base])
    return [start for start in pairs if start]


def interval(pairs: Pairs) -> tuple[float, float]:
    """Interval that has 95 % of the medians of samples: of starts with replacement, and of pairs of each of these."""
    chance = random.Random(0)
    medians = []
    for _ in range(SAMPLES):
        starts = chance.choices(pairs, k=len(pairs))
        medians.append(statistics.median(ratio for start in starts for ratio in chance.choices(start, k=len(start))))
    cuts = statistics.quantiles(medians, n=40, method="inclusive")
    return cuts[0], cuts[-1]


def brief(windows: dict[str, list[Window]]) -> str:
    """Medians of the steps of one start."""
    steps = {variant: [step for window in own if (step := window.get("step"))] for variant, own in windows.items()}
    return ", ".join(
        f"{variant} {statistics.median(values):.3f} ms" if values else f"{variant} –"
        for variant, values in steps.items()
    )


def show(loop: str, starts: Sequence[dict[str, list[Window]]], failures: dict[str, str]) -> None:
    """Print the table of a loop, with the reasons of ``failures``."""
    natives: dict[str, list[float]] = defaultdict(list)
    for window in (window for windows in starts for window in windows[NATIVE]):
        for column in COLUMNS:
            if (value := window.get(column)) is not None:
                natives[column].append(value)
    print(row_text(loop, COLUMNS))
    print(row_text(f"  {NATIVE}", [native_text(natives[column], column) for column in COLUMNS]))
    for variant in starts[0] if starts else ():
        if variant != NATIVE and variant not in BASES.values():
            print(row_text(f"  {variant}", [ratio_text(ratios(starts, variant, column)) for column in COLUMNS]))
    for variant, reason in failures.items():
        print(f"  {variant} failed: {reason}")
    sys.stdout.flush()


def row_text(name: str, cells: Sequence[str]) -> str:
    """A row of the table."""
    return f"{name:<12}{''.join(f' {cell:>23}' for cell in cells)}"


def native_text(values: list[float], column: str) -> str:
    """The median of all windows without a profiler."""
    scale, unit = UNITS.get(column, (1.0, "ms"))
    return f"{statistics.median(values) * scale:.4g} {unit}" if values else "–"


def ratio_text(pairs: Pairs) -> str:
    """The median of the ratios, and its interval."""
    if not pairs:
        return "–"
    low, high = interval(pairs)
    return f"{statistics.median(ratio for start in pairs for ratio in start):.3f} ({low:.3f}–{high:.3f})"


if __name__ == "__main__":
    main()
