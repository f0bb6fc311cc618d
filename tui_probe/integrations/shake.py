"""Find races: run a program with random delays in its kernels, compare what it leaves, and reduce the delays.

A seed decides the delays. The first seed with which the program leaves something else than without delays is kept.
Then kernels, and lines of one kernel, are halved as long as delays in one half by itself still change what it leaves.
A race shows by chance, so each half is tried several times.

The probe in ``delays.toml`` delays warps at barriers and memory accesses. A delay depends on the seed, the block, the
warp, the instruction and how often the warp came to such instructions, so a seed gives the same delays in each run.
With an odd seed, one of eight visits of any instruction is delayed, for 64 to 32768 cycles. With an even seed, one of
four instructions is slow, and half of its visits are delayed, for 512 to 32768 cycles: otherwise a polling loop would
be late itself, and hide that the value it waits for is stored too early.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from tui_probe.errors import TraceError, UsageError
from tui_probe.own_python import OWN_COMMAND
from tui_probe.records.probed_sites import probed_sites
from tui_probe.trace.follow import open_trace
from tui_probe.trace.locate import is_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tui_probe.trace.model import Trace
    from tui_probe.trace.sites import SiteInstruction

Part = TypeVar("Part")
_DELAYS: Final = Path(__file__).with_name("delays.toml")
_SLOW_INSTRUCTIONS: Final = """\
shr.u32 %part, %hash, 15;
xor.b32 %part, %part, %hash;
mul.lo.u32 %part, %part, 0x2C1B3C6D;
shr.u32 %part, %part, 30;
setp.ne.u32 %is_due, %part, 0;
@%is_due bra $inside;
"""
_ANY_VISIT: Final = {"slow": "", "visits": 7, "lengths": 10, "shortest": 64}
_SLOW_VISIT: Final = {"slow": _SLOW_INSTRUCTIONS, "visits": 1, "lengths": 7, "shortest": 512}
UNDELAYED_RUNS: Final = 3
"""Runs without delays, which must agree: a program that differs by itself shows nothing about races."""
CONFIRMING_RUNS: Final = 3
"""Runs until delays are held not to change anything."""
MAX_SLOWDOWN: Final = 50.0
"""A run with delays is ended after this multiple of the time of one without."""
MIN_LIMIT: Final = 120.0
"""Seconds after which a run with delays is ended at the earliest."""
ENDLESS_TEXT: Final = "the program does not exit"
HASH_VARIABLE: Final = "TUI_PROBE_HASH_MEMORY"
NO_KERNEL_OPTION: Final = "-k=//"
"""No name of a kernel has two slashes."""


def delay_probe(seed: int, first: int = 0, last: int = 0x7FFFFFFF) -> str:
    """Return the text of a probe file that delays instructions on lines ``first`` to ``last`` of pruned.ptx."""
    lines = _DELAYS.read_text(encoding="utf-8").splitlines(keepends=True)
    template = "".join(line for line in lines if not line.startswith(("#", "//")))
    scattered_seed = (seed * 0x9E3779B1 + 0x7F4A7C15) & 0xFFFFFFFF
    return template.format(seed=scattered_seed, first=first, last=last, **(_ANY_VISIT if seed % 2 else _SLOW_VISIT))


@dataclass(frozen=True)
class RunOutcome:
    """Outcome of a run: exit status, output and files, by name."""

    parts: Mapping[str, bytes]

    def difference(self, candidate: RunOutcome) -> str:
        """Return what is different in another run, in one line."""
        for name, content in self.parts.items():
            if (candidate_content := candidate.parts.get(name, b"")) != content:
                return f"{name}: {_first_difference(content, candidate_content)}"
        return ""


def _first_difference(expected: bytes, actual: bytes) -> str:
    expected_lines, actual_lines = (part.decode("utf-8", "replace").split("\n") for part in (expected, actual))
    for number, (expected_line, actual_line) in enumerate(zip(expected_lines, actual_lines, strict=False), 1):
        if expected_line != actual_line:
            return f"line {number} is {actual_line[:80]!r}; in the first run, it was {expected_line[:80]!r}"
    return f"{len(actual_lines)} lines; the first run had {len(expected_lines)} lines"


@dataclass(frozen=True)
class Site:
    """An instruction that can be delayed. ``kernel`` is the kernel's mangled name."""

    kernel: str
    line: int
    text: str


@dataclass(frozen=True)
class Race:
    """Delays that change what a program leaves, reduced to ``sites``.

    Of the last ``tried_runs`` runs ``differing_runs`` differed.
    """

    seed: int
    difference: str
    sites: tuple[Site, ...]
    differing_runs: int
    tried_runs: int


@dataclass
class Shaker:
    """Runs one program. ``options`` are those of ``tui-probe run``, ``files`` what the program writes, ``memory`` the
    kernels after whose launches memory is compared: ``KERNEL`` or ``KERNEL@PARAMETER``.
    """

    options: Sequence[str]
    command: Sequence[str]
    files: Sequence[Path]
    memory: Sequence[str] = ()
    runs: int = 0
    unprobed: dict[str, str] = field(default_factory=dict)
    _limit: float | None = None
    _expected_outcome: RunOutcome | None = None

    def find(self, seeds: Sequence[int], progress: Callable[[str], None]) -> Race | None:
        """Return the race of the first of ``seeds`` that shows one. Raises UsageError if output varies without delays,
        TraceError without a trace.
        """
        self._run_undelayed()
        for seed in seeds:
            difference, sites = self._run_delayed(seed, (), None)
            progress(f"seed {seed} of {seeds[0]} to {seeds[-1]}: {difference or 'no difference'}")
            if difference:
                return self._reduce(seed, difference, sites)
        return None

    def _run_undelayed(self) -> None:
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="tui-probe-shake-") as folder:
            self._expected_outcome = self._run_program(Path(folder) / "0", [NO_KERNEL_OPTION])
            self._limit = max(MAX_SLOWDOWN * (time.monotonic() - begin), MIN_LIMIT)
            for number in range(1, UNDELAYED_RUNS):
                if difference := self._difference(self._run_program(Path(folder) / str(number), [NO_KERNEL_OPTION])):
                    raise UsageError(
                        f"the program's results differ from run to run, even without delays ({difference}): set a fixed"
                        " random seed, print no times and addresses, or compare files with --compare-file"
                    )

    def _run_delayed(self, seed: int, kernels: Sequence[str], lines: tuple[int, int] | None) -> tuple[str, list[Site]]:
        """Return what differs, and the instructions that were delayed: all, or those of some ``kernels``."""
        with tempfile.TemporaryDirectory(prefix="tui-probe-shake-") as name:
            folder = Path(name)
            probe = folder / _DELAYS.name
            probe.write_text(delay_probe(seed, *(lines or ())))
            kernel_option = [f"-k={':'.join(kernels)}"] if kernels else []
            outcome = self._run_program(folder, ["-p", str(probe), "--launches=all", "--wait", *kernel_option])
            traces = [open_trace(path) for path in sorted((folder / "trace").glob("*")) if is_trace(path)]
            return self._difference(outcome), self._delayed_sites(traces)

    def _difference(self, outcome: RunOutcome | None) -> str:
        if outcome is None or self._expected_outcome is None:
            return ENDLESS_TEXT
        return self._expected_outcome.difference(outcome)

    def _delayed_sites(self, traces: Sequence[Trace]) -> list[Site]:
        sites = []
        for kernel in (kernel for trace in traces for kernel in trace.kernels):
            if kernel.launches_probed:
                instructions = probed_sites(kernel.folder).instructions()
                sites += [Site(kernel.name, entry.line, _site_text(entry)) for entry in instructions]
            elif kernel.reason:
                self.unprobed[kernel.name] = str(kernel.reason)
        return sites

    def _reduce(self, seed: int, difference: str, sites: list[Site]) -> Race:
        names = list(dict.fromkeys(site.kernel for site in sites))
        names = _bisect(names, lambda part: self._count_differing_runs(seed, part, None)[0] > 0)
        kernel_sites = [site for site in sites if site.kernel in names]
        if len(names) == 1:
            lines = _bisect(
                sorted({site.line for site in kernel_sites}),
                lambda part: self._count_differing_runs(seed, names, (part[0], part[-1]))[0] > 0,
            )
            kernel_sites = [site for site in kernel_sites if lines[0] <= site.line <= lines[-1]]
        bounds = None
        if len(names) == 1:
            bounds = min(site.line for site in kernel_sites), max(site.line for site in kernel_sites)
        differing_runs, tried_runs = self._count_differing_runs(seed, names, bounds, stops_early=False)
        return Race(seed, difference, tuple(kernel_sites), differing_runs, tried_runs)

    def _count_differing_runs(
        self, seed: int, kernels: Sequence[str], lines: tuple[int, int] | None, *, stops_early: bool = True
    ) -> tuple[int, int]:
        """Return in how many of how many runs something differed; ``stops_early`` at the first such run."""
        differing_runs = 0
        for tried_runs in range(1, CONFIRMING_RUNS + 1):
            differing_runs += bool(self._run_delayed(seed, kernels, lines)[0])
            if differing_runs and stops_early:
                return differing_runs, tried_runs
        return differing_runs, CONFIRMING_RUNS

    def _run_program(self, folder: Path, options: Sequence[str]) -> RunOutcome | None:
        """Run the program once. None if it did not end in time. Raises TraceError if it launched no kernel."""
        self.runs += 1
        for file in self.files:
            file.unlink(missing_ok=True)
        arguments = [*OWN_COMMAND, "run", "--no-ui", "--no-report", f"--tracedir={folder / 'trace'}", *self.options]
        process = subprocess.Popen(
            [*arguments, *options, "--", *self.command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True, env=os.environ | {HASH_VARIABLE: ":".join(self.memory)},
        )  # fmt: skip
        try:
            output, messages = process.communicate(timeout=self._limit)
        except subprocess.TimeoutExpired:
            _end_group(process)
            return None
        if not any(map(is_trace, (folder / "trace").glob("*"))):
            from tui_probe.integrations.child_process import announced_traces  # with asyncio, which runs do not need

            _, text = announced_traces(messages.decode("utf-8", "replace"))
            command = shlex.join(self.command)
            raise TraceError(text or f"{command} launched no kernel (exit status {process.returncode})")
        parts = {"exit status": str(process.returncode).encode(), "output": output}
        if self.memory:
            parts["memory"] = _memory_text(folder / "trace")
        return RunOutcome(parts | {str(file): file.read_bytes() if file.is_file() else b"" for file in self.files})


def _memory_text(folder: Path) -> bytes:
    """Return a line per hash of memory: kernel, launch of it, parameter. Raises UsageError if there is none."""
    lines = []
    for trace in (open_trace(path) for path in sorted(folder.glob("*")) if is_trace(path)):
        counts: Counter[tuple[int, int, int]] = Counter()
        for entry in trace.state.hashes:
            parameter_key = entry.kernel, entry.parameter, entry.offset
            parameter_text = f"parameter {entry.parameter}" + (f" byte {entry.offset}" if entry.offset else "")
            lines.append(
                f"{trace.kernels[entry.kernel].name} launch {counts[parameter_key]} {parameter_text}: {entry.hash}"
            )
            counts[parameter_key] += 1
    if not lines:
        raise UsageError(
            "--compare-memory: no launched kernel has KERNEL in its name, or none of the compared parameters points to"
            " known memory. Write KERNEL, or KERNEL@N for parameter N, counted from 0."
        )
    return "\n".join(lines).encode()


def _end_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _bisect(parts: list[Part], has_race: Callable[[list[Part]], bool]) -> list[Part]:
    """Return the smallest of the halves of halves that still shows something; all if no half does.

    The second half is tried first: a delay far ahead of a race shows it as well, and names another instruction.
    """
    while len(parts) > 1:
        middle = len(parts) // 2
        half = next((half for half in (parts[middle:], parts[:middle]) if has_race(half)), None)
        if half is None:
            break
        parts = half
    return parts


def _site_text(entry: SiteInstruction) -> str:
    place = f" ({entry.source.file}:{entry.source.line})" if entry.source else ""
    return f"{entry.opcode}{place}"
