"""``tui-probe gate``: compare a program with its baseline; exit status 1 if something became worse."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from tui_probe.errors import UsageError
from tui_probe.integrations.baselines import find_baseline, have_same_assembler, save_baseline, tools_of
from tui_probe.integrations.child_process import profiled_run
from tui_probe.nvml import GPU_IDLE, open_nvml, sample_all
from tui_probe.pages.gate_report import (
    clock_lines,
    clocks_json,
    gate_json,
    gate_junit,
    gate_lines,
    gate_markdown,
    gate_sarif,
)
from tui_probe.trace.follow import open_trace
from tui_probe.trace.gpu_time import typical_ns
from tui_probe.verdicts.gate import MIN_BLOCKS, Clocks, judge_counts, judge_times

from .output import ExitStatus, write_stdout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tui_probe.nvml import GpuSample
    from tui_probe.trace.model import Trace
    from tui_probe.verdicts.gate import Judgement

SAMPLE_INTERVAL: Final = 0.05
"""Seconds between samples: NVML takes about a millisecond for one, and clocks change over tenths of a second."""


class ClockWatch:
    """Samples clocks during runs, apart for each program. ``missing_reason`` is why there are no samples, or ""."""

    def __init__(self, opener: Callable[[], tuple[Any, str]] = open_nvml, interval: float = SAMPLE_INTERVAL) -> None:
        self._nvml, self.missing_reason = opener()
        self._interval = interval
        self._samples: dict[str, list[GpuSample]] = {}

    @contextmanager
    def watch(self, program: str) -> Iterator[None]:
        """Sample in a thread until the end of the block, for a program."""
        stop = threading.Event()
        thread = threading.Thread(target=self._sample, args=(program, stop), name="tui-probe-clocks", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _sample(self, program: str, stop: threading.Event) -> None:
        samples = self._samples.setdefault(program, [])
        while self._nvml is not None and not stop.wait(self._interval):
            try:
                samples += [sample for sample in sample_all(self._nvml) if _is_busy(sample)]
            except self._nvml.NVMLError as error:
                self.missing_reason = f"NVIDIA management library: {error}"
                return

    def clocks(self, program: str) -> Clocks | None:
        """Return the clocks during all runs of a program; None without a sample of a busy GPU."""
        samples = self._samples.get(program, [])
        values = [sample.sm_clock for sample in samples if sample.sm_clock is not None]
        if not values:
            return None
        reasons = [name for sample in samples for name in sample.clock_limits or ()]
        limits = {name: reasons.count(name) / len(samples) for name in dict.fromkeys(reasons)}
        return Clocks(len(values), min(values), median(values), max(values), limits)


def _is_busy(sample: GpuSample) -> bool:
    return sample.clock_limits is not None and GPU_IDLE not in sample.clock_limits


_COUNTING_OPTIONS: Final = ("-p", "counts", "--launches=all", "--wait")
"""Options of a run that counts: all launches, none of them unprobed."""
_TIMING_OPTIONS: Final = ("-p", "counts", "-k=//")
"""Options of a run that is only timed: no name of a kernel has two slashes, so nothing is prepared and probed."""
_BASELINE_RUNS: Final = 2
"""Runs of a baseline, which show whether a count differs from run to run."""
_REPORTS: Final = {"markdown": gate_markdown, "junit": gate_junit}
"""Writers of report files, by option."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the baseline, what is compared, and the reports."""
    parser.add_argument("name", metavar="BASELINE", help="name of the baseline")
    parser.add_argument("--record", action="store_true", help="record the baseline of this commit, from two runs")
    parser.add_argument(
        "--directory", type=Path, default=Path(".tui-probe"), metavar="DIRECTORY",
        help="directory of baselines; commit it with the code; default %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "--metric", action="append", default=[], metavar="METRIC", help="judge only this metric; may be repeated"
    )
    parser.add_argument(
        "--against",
        metavar="COMMAND",
        help="compare times with the program that COMMAND starts, in interleaved runs (ABBA)",
    )
    parser.add_argument(
        "--repeats", type=_repeats, default=8, metavar="N", help="number of ABBA blocks; default %(default)s"
    )
    parser.add_argument(
        "--within",
        type=_share,
        default=0.01,
        metavar="X%",
        help="ignore differences in times below X%%; default 1%%",
    )
    parser.add_argument("--sim", action="store_true", help="use the simulated GPU: compare counts, not times")
    parser.add_argument("-k", "--kernel", default="", metavar="A:B", help="only kernels with A or B in their names")
    parser.add_argument("--machine-code", choices=("auto", "all", "off"), default="auto", help="as in tui-probe run")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default %(default)s")
    for form, format_title in (("markdown", "Markdown"), ("junit", "JUnit XML"), ("sarif", "SARIF")):
        parser.add_argument(f"--{form}", type=Path, metavar="FILE", help=f"write {format_title} to this file, too")
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="the program and its arguments, after --")


def run(arguments: argparse.Namespace) -> int:
    """Record or judge. Raises UsageError without a baseline, TraceError where nothing was traced."""
    with tempfile.TemporaryDirectory(prefix="tui-probe-gate-") as folder:
        if arguments.record:
            traces = [_run_counting(arguments, Path(folder)) for _ in range(_BASELINE_RUNS)]
            write_stdout(str(save_baseline(arguments.directory, arguments.name, arguments.command, traces)))
            return ExitStatus.OK
        baseline = find_baseline(arguments.directory, arguments.name)
        if baseline is None and not arguments.against:
            raise UsageError(
                f"{arguments.directory} has no baseline {arguments.name} for a commit in this history; record a"
                f" baseline with tui-probe gate {shlex.quote(arguments.name)} --record"
                f" {'--sim ' if arguments.sim else ''}-- COMMAND"
            )
        judgements: list[Judgement] = []
        head: dict[str, Any] = {}
        clocks: dict[str, Clocks | str] = {}
        if baseline is not None:
            trace = _run_counting(arguments, Path(folder))
            same_tools = have_same_assembler(baseline.tools, tools_of(trace))
            judgements += judge_counts(baseline.runs, trace, arguments.metric, same_tools=same_tools)
            head = {"baseline_commit": baseline.commit, "baseline_tools": baseline.tools, "tools": tools_of(trace)}
        if arguments.against:
            time_judgements, clocks = _compare_times(arguments, Path(folder))
            judgements += time_judgements
    _report(arguments, judgements, head, clocks)
    if any(judged.verdict == "worse" for judged in judgements):
        return ExitStatus.FAILED
    decided = any(judged.verdict != "cannot tell" for judged in judgements)
    return ExitStatus.OK if decided else ExitStatus.NO_VERDICT


def _run_counting(arguments: argparse.Namespace, folder: Path) -> Trace:
    """Run the program with counting probes. Raises UsageError if it fails: its counts are then of something else."""
    kernels = [f"-k={arguments.kernel}"] if arguments.kernel else []
    return _run_traced(arguments, arguments.command, folder, [*_COUNTING_OPTIONS, *kernels])


def _run_traced(arguments: argparse.Namespace, command: list[str], folder: Path, options: Sequence[str]) -> Trace:
    run_options = [
        *(["--sim"] if arguments.sim else []),
        f"--machine-code={arguments.machine_code}",
        f"--tracedir={folder}",
    ]
    result = profiled_run([*options, *run_options], command, sys.stderr)
    if result.status:
        if result.messages:
            sys.stderr.write(f"{result.messages}\n")
        raise UsageError(f"{shlex.join(command)} ended with status {result.status}: nothing is judged")
    return open_trace(result.trace(command))


def _compare_times(arguments: argparse.Namespace, folder: Path) -> tuple[list[Judgement], dict[str, Clocks | str]]:
    """Run both programs in blocks ABBA. Return verdicts on the times of their kernels, and the clocks of each."""
    if arguments.sim:
        raise UsageError("--against compares times, which a simulated GPU does not have; omit --sim")
    commands = {"baseline": shlex.split(arguments.against), "now": arguments.command}
    watch = ClockWatch()

    def measure(program: str) -> dict[str, float]:
        with watch.watch(program):
            trace = _run_traced(arguments, commands[program], folder, _TIMING_OPTIONS)
        return _kernel_times(trace, arguments.kernel)

    for command in commands.values():
        _run_traced(arguments, command, folder, _TIMING_OPTIONS)  # the first run finds cold caches and clocks
    blocks: dict[str, list[tuple[float, float]]] = {}
    for _ in range(arguments.repeats):
        # ABBA: a drift of the clock during the block has the same effect on both programs.
        baseline, candidate, candidate_again, baseline_again = map(measure, ("baseline", "now", "now", "baseline"))
        for kernel in baseline.keys() & candidate.keys() & candidate_again.keys() & baseline_again.keys():
            pair = (baseline[kernel] + baseline_again[kernel]) / 2, (candidate[kernel] + candidate_again[kernel]) / 2
            blocks.setdefault(kernel, []).append(pair)
    no_clocks = watch.missing_reason or "the clock was never sampled while the GPU was busy"
    clocks = {program: watch.clocks(program) or no_clocks for program in commands}
    return list(judge_times(blocks, arguments.within)), clocks


def _kernel_times(trace: Trace, kernel_filter: str) -> dict[str, float]:
    """Return seconds per launch by kernel, as is typical without a probe; of kernels that ``-k`` selects."""
    parts = [part for part in kernel_filter.split(":") if part]
    times: dict[str, float] = {}
    for kernel in trace.kernels:
        nanoseconds = typical_ns(kernel.samples, kernel.launches)
        if nanoseconds and (not parts or any(part in kernel.name for part in parts)):
            times[kernel.demangled] = nanoseconds / 1e9
    return times


def _report(
    arguments: argparse.Namespace,
    judgements: list[Judgement],
    head: dict[str, Any],
    clocks: Mapping[str, Clocks | str],
) -> None:
    """Print the verdicts and write the files."""
    if arguments.format == "json":
        head |= {"clocks": {program: clocks_json(of_program) for program, of_program in clocks.items()}}
        write_stdout(gate_json(judgements, arguments.name, head))
    else:
        write_stdout([*gate_lines(judgements), *clock_lines(clocks, arguments.within)])
    texts = {form: make(judgements, arguments.name) for form, make in _REPORTS.items() if getattr(arguments, form)}
    if arguments.sarif:
        texts["sarif"] = gate_sarif(judgements)
    for form, text in texts.items():
        path = getattr(arguments, form)
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}; pass a writable file") from None


def _share(text: str) -> float:
    """``1%`` or ``0.01`` -> 0.01."""
    number = re.fullmatch(r"(\d*\.?\d+)(%?)", text)
    value = float(number[1]) / (100 if number[2] else 1) if number else 1.0
    if value >= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage below 100%, such as 1%")
    return value


def _repeats(text: str) -> int:
    if not re.fullmatch(r"\d{1,6}", text) or int(text) < MIN_BLOCKS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least {MIN_BLOCKS}, such as 8")
    return int(text)
