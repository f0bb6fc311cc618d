"""Output of a run without a screen: messages while it runs, and text reports of its traces.

On a terminal, stderr is for the user. Otherwise scripts read it: it then has one line ``[info] trace in DIRECTORY`` per
trace, so that the last word of a line is the trace. Other messages go to ``run.json`` and to the report on stdout, but
for those that ``run.json`` may lack: see ``report_failures`` and ``report_message``.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.draw import units
from tui_probe.errors import ProbeError
from tui_probe.launcher.run_traces import add_message
from tui_probe.trace.locate import LOG
from tui_probe.trace.recent import exit_counts, find_previous_run, summarize_trace

from .output import (
    Progress,
    discard_output,
    inform,
    shell_word,
    terminal_size,
    warn,
    write_stdout,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from tui_probe.launcher.run_traces import Outcome

MAX_REPORTS: Final = 4
"""Max traces that each get a report; of more, the longest trace per command is reported, of as many commands."""
MAX_LISTED: Final = 8
"""Max traces or commands listed one per line."""
DEFAULT_WIDTH = 100  # cells, where stdout is not a terminal
MIN_WIDTH = 60
HURRIED_BYTES = 16 << 20
"""Max bytes of logs that are read for a report after a signal asked the run to end."""


def stderr_is_terminal() -> bool:
    """True if stderr is a terminal."""
    return os.isatty(2)


def report_message(trace: Path, text: str) -> None:
    """Report a message about a trace in its ``run.json``, or on stderr if that cannot take it."""
    if not stderr_is_terminal():
        try:
            add_message(trace, text)
        except OSError:
            pass
        else:
            return
    warn(f"{text}: {trace}")


def report_failures(outcome: Outcome, max_named: int) -> None:
    """Write the problems of a run to stderr. Of more than ``max_named`` traces of child processes, only one is named.

    If stderr is not a terminal, write only what ``run.json`` may lack: incomplete traces, lost output, and why there is
    no trace.
    """
    for trace, problem in outcome.incomplete.items():
        warn(f"the trace is incomplete ({problem}): {trace}")
    if not stderr_is_terminal():
        for text in [*outcome.lost_output, *([] if outcome.traces else outcome.untraced)]:
            warn(text)
        return
    if outcome.engine_failure:
        warn(outcome.engine_failure)
    for text in outcome.messages:
        warn(text)
    if outcome.program_failure:
        warn(outcome.program_failure)
    if not outcome.no_trace and outcome.first_trace is not None and outcome.first_trace not in outcome.traces:
        warn(_missing_trace(outcome, outcome.first_trace, max_named))


def _missing_trace(outcome: Outcome, directory: Path, max_named: int) -> str:
    traces: Sequence[Path] = outcome.traces
    if outcome.untraced:
        return f"no trace {directory}"
    if not traces:
        return f"no trace {directory}: the command launched no kernel"
    names = f"traces: {' '.join(map(str, traces))}"
    listing = names if len(traces) <= max_named else f"{len(traces)} traces, e.g. {traces[-1]}"
    return f"no trace {directory}: the command launched no kernel, but its child processes did; {listing}"


class TraceAnnouncer:
    """Reports the traces of a run as they appear, each by a line; on a terminal then only that there are more."""

    def __init__(self, descriptor: int = 2) -> None:
        self._descriptor = descriptor
        self._announced = 0

    def __call__(self, trace: Path) -> None:
        if self._announced < MAX_LISTED or not os.isatty(self._descriptor):
            inform(f"trace in {trace}", self._descriptor)
        elif self._announced == MAX_LISTED:
            inform(f"traces of more processes are in {trace.parent}", self._descriptor)
        self._announced += 1


class CommandTraces(NamedTuple):
    """The traces of one command, the longest log first."""

    command: str
    traces: tuple[Path, ...]


def traces_by_command(traces: Sequence[Path]) -> list[CommandTraces]:
    """The traces by command: the command with the most of them first."""
    by_command: dict[str, list[Path]] = {}
    for trace in traces:
        run = summarize_trace(trace)
        by_command.setdefault(run.command if run else "", []).append(trace)
    groups = [
        CommandTraces(command, tuple(sorted(traces, key=log_size, reverse=True)))
        for command, traces in by_command.items()
    ]
    return sorted(groups, key=lambda group: len(group.traces), reverse=True)


def log_size(trace: Path) -> int:
    """Bytes of its event.log; 0 if there is none."""
    try:
        return (trace / LOG).stat().st_size
    except OSError:
        return 0


def traces_to_report(traces: Sequence[Path]) -> Sequence[Path]:
    """Return the traces to report: all of a few; of many, the longest of each of the most frequent commands."""
    if len(traces) <= MAX_REPORTS:
        return traces
    return [group.traces[0] for group in traces_by_command(traces)[:MAX_REPORTS]]


def group_lines(traces: Sequence[Path], cells: int) -> Iterator[str]:
    """Yield a line per command with its number of processes; nothing for up to ``MAX_REPORTS`` traces."""
    from tui_probe.draw.printable import printable
    from tui_probe.draw.shorten import shorten

    if len(traces) <= MAX_REPORTS:
        return
    groups = traces_by_command(traces)
    report_count = len(groups[:MAX_REPORTS])
    processes = units.counted(len(traces), "process")
    yield f"{processes} launched kernels; {report_count} reports follow, each for the longest process of a command"
    for group in groups[:MAX_LISTED]:
        command = printable(group.command) or units.NOT_MEASURED
        yield f"  {len(group.traces):>5} × {shorten(command, max(20, cells - 10))}"
    if len(groups) > MAX_LISTED:
        remaining = sum(len(group.traces) for group in groups[MAX_LISTED:])
        yield f"  {remaining:>5} of {units.counted(len(groups) - MAX_LISTED, 'other command')}"
    yield f"  all traces: {printable(str(traces[0].parent))}; report of another trace: tui-probe report TRACE"


def write_report(
    traces: Sequence[Path],
    ascii_only: bool,
    seconds: float | None = None,
    width: int | None = None,
    select_lines: Callable[[Iterable[str]], Iterable[str]] = iter,
) -> None:
    """Write the report of each trace, of many traces that of one per command, and a command that compares.

    Results are read for at most ``seconds`` in all; None: no limit. ``select_lines`` selects lines. Raises TraceError.
    """
    from tui_probe.draw.spans import to_ascii
    from tui_probe.pages.run_report import run_report
    from tui_probe.trace.follow import open_trace

    width = width or max(MIN_WIDTH, terminal_size((DEFAULT_WIDTH, 24)).columns)
    wants_ascii = ascii_only or "utf" not in sys.stdout.encoding.lower()
    reported = traces_to_report(traces)
    share = None if seconds is None else seconds / len(reported)

    def reports() -> Iterator[str]:
        yield from (to_ascii(line) if wants_ascii else line for line in group_lines(traces, width))
        if len(traces) > MAX_REPORTS:
            yield ""
        for number, directory in enumerate(reported):
            with Progress() as reading:
                trace = open_trace(directory, reading)
            report = run_report(trace, width=width, ascii_only=wants_ascii, seconds=share)
            yield f"\n{report}" if number else report

    write_stdout(select_lines(reports()))
    _write_comparison_hint(reported[0])
    sys.stdout.flush()


def preload_report_code() -> None:
    """Read the code that a report needs, which takes longer than a report. Errors are for the report to tell."""
    with contextlib.suppress(Exception):
        import tui_probe.draw.spans
        import tui_probe.pages.run_report
        import tui_probe.trace.follow  # noqa: F401
        from tui_probe.probekit.registry import all_probes

        all_probes()


def exit_summary(trace: Path) -> str:
    """Return the hook's counts at the end of the process, without reading the whole log."""
    counts = exit_counts(trace)
    if counts is None:
        return "event.log is truncated"
    losses = (
        f"{units.counted(counts.dropped_results, 'result')} dropped" if counts.dropped_results else "all results saved"
    )
    return f"{units.counted(counts.launches, 'launch')} ({units.count(counts.probed_launches)} probed), {losses}"


def report_after_run(outcome: Outcome, ascii_only: bool, seconds: float | None = None) -> None:
    """Write the report after the target's own output. Errors here do not change the run's exit status."""
    traces = outcome.traces
    if not traces:
        _report_no_trace(outcome)
        return
    if seconds is not None and sum(map(log_size, traces_to_report(traces))) > HURRIED_BYTES:
        for line in group_lines(traces, DEFAULT_WIDTH):
            _write_message(line)
        for trace in traces_to_report(traces):
            _write_message(
                f"{exit_summary(trace)}; for the report, which takes longer: tui-probe report {shell_word(trace)}"
            )
        return
    try:
        write_stdout("")
        write_report(traces, ascii_only, seconds)
    except ProbeError as error:
        _write_message(f"no report: {error}")
    except BrokenPipeError:
        discard_output()
    except OSError as error:
        if stderr_is_terminal():
            warn(f"no report, because stdout cannot be written ({error.strerror})")
        discard_output()
    except Exception as error:  # noqa: BLE001 - a bug in a report is none of the program's
        _write_message(f"no report because of {type(error).__name__} ({error}); for details: tui-probe report TRACE")


def _report_no_trace(outcome: Outcome) -> None:
    """Report why there is no trace, unless a terminal has shown it."""
    if stderr_is_terminal():
        return
    if outcome.program_failure:
        _write_message(outcome.program_failure)
    directory = outcome.first_trace
    problem = "there is no trace" if directory is None else f"the trace {shell_word(directory)} was not created"
    for text in outcome.untraced or ("no kernel was launched",):
        _write_message(f"{text}: {problem}")  # it was announced before it was known that no kernel would run


def _write_comparison_hint(trace: Path) -> None:
    """Suggest a comparison if the command was run before."""
    previous_run = find_previous_run(trace)
    if previous_run is not None:
        write_stdout(
            f"\nCompare with the previous run: tui-probe compare {shell_word(previous_run)} {shell_word(trace)}"
        )


def _write_message(text: str) -> None:
    """Write a message in place of a report: to stderr on a terminal, else to stdout."""
    if stderr_is_terminal():
        inform(text)
        return
    with contextlib.suppress(OSError):
        write_stdout(text)
        sys.stdout.flush()
