"""The text report of traces, on stdout."""

from __future__ import annotations

import contextlib
import shutil
import sys
from typing import TYPE_CHECKING

from tui_probe.draw import units
from tui_probe.errors import ProbeError
from tui_probe.trace.recent import exit_counts, run_before

from .messages import on_person
from .output import discard_output, inform, put, shell_word, warn
from .processes import ALONE, group_lines, log_size, reported

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

USUAL_WIDTH = 100  # cells, where stdout is no terminal
LEAST_WIDTH = 60
HURRIED_BYTES = 16 << 20
"""Of logs: reading more takes longer than a run that was asked to end may."""


def write_report(traces: Sequence[Path], ascii_only: bool, seconds: float | None = None) -> None:
    """The report of each trace, an empty line between two; of many, of one of each command. Raises TraceError.

    Results are read for so many ``seconds`` in all; None: as long as it takes.
    """
    from tui_probe.pages.summary import run_report
    from tui_probe.trace.follow import open_trace

    width = max(LEAST_WIDTH, shutil.get_terminal_size((USUAL_WIDTH, 24)).columns)
    plain = ascii_only or "utf" not in sys.stdout.encoding.lower()
    put(group_lines(traces, width), ascii_only=plain)
    if len(traces) > ALONE:
        put("")
    traces = reported(traces)
    share = None if seconds is None else seconds / len(traces)
    reports = (run_report(open_trace(trace), width=width, ascii_only=plain, seconds=share) for trace in traces)
    for number, report in enumerate(reports):
        put(f"\n{report}" if number else report)
    sys.stdout.flush()


def get_ready_to_report() -> None:
    """Read the code that a report needs, which takes longer than a report. Errors are for the report to tell."""
    with contextlib.suppress(Exception):
        import tui_probe.draw.spans
        import tui_probe.pages.summary
        import tui_probe.trace.follow  # noqa: F401
        from tui_probe.probekit.registry import all_probes

        all_probes()


def last_words(trace: Path) -> str:
    """What the hook counted at the end of the process, without reading its whole log."""
    counts = exit_counts(trace)
    if counts is None:
        return "the log broke off"
    kept = f"{units.counted(counts.dropped, 'result')} not kept" if counts.dropped else "every result kept"
    return f"{units.counted(counts.launches, 'launch')} ({units.count(counts.probed)} probed), {kept}"


def report_after_run(
    traces: Sequence[Path], ascii_only: bool, seconds: float | None = None, untraced: Sequence[str] = ()
) -> None:
    """The report after the target's own output. What goes wrong here does not change the run's exit status.

    ``untraced`` is why kernels may have been launched without a trace.
    """
    if not traces:
        if not on_person():  # a person was told
            for text in untraced or ("no kernel was launched",):
                _say(f"{text}: there is no trace")
        return
    if seconds is not None and sum(map(log_size, reported(traces))) > HURRIED_BYTES:
        for line in group_lines(traces, USUAL_WIDTH):
            _say(line)
        for trace in reported(traces):
            _say(f"{last_words(trace)}; the report, which would take a while: tui-probe report {shell_word(trace)}")
        return
    try:
        put("")
        write_report(traces, ascii_only, seconds)
        _say_what_was_before(reported(traces)[0])
    except ProbeError as error:
        _say(f"no report: {error}")
    except BrokenPipeError:
        discard_output()
    except OSError as error:
        if on_person():
            warn(f"no report: writing to stdout: {error.strerror}")
        discard_output()
    except Exception as error:  # noqa: BLE001 - a bug in a report is none of the program's
        _say(f"no report: {type(error).__name__}: {error}; tui-probe report TRACE shows where")


def _say_what_was_before(trace: Path) -> None:
    """How to see what changed, where the command was run before."""
    before = run_before(trace)
    if before is not None:
        put(f"\nWhat changed since the run before: tui-probe compare {shell_word(before)} {shell_word(trace)}")


def _say(text: str) -> None:
    """In the place of a report: to a person, else to those who read the report."""
    if on_person():
        inform(text)
        return
    with contextlib.suppress(OSError):
        put(text)
        sys.stdout.flush()
