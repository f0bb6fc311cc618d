"""The text report of traces, on stdout."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

from tui_probe.errors import ProbeError

from .output import discard_output, warn

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

USUAL_WIDTH = 100  # cells, where stdout is no terminal
LEAST_WIDTH = 60


def write_report(traces: Sequence[Path], ascii_only: bool) -> None:
    """The report of each trace, an empty line between two. Raises TraceError."""
    from tui_probe.pages.summary import run_report
    from tui_probe.trace.follow import open_trace

    width = max(LEAST_WIDTH, shutil.get_terminal_size((USUAL_WIDTH, 24)).columns)
    plain = ascii_only or "utf" not in sys.stdout.encoding.lower()
    reports = (run_report(open_trace(trace), width=width, ascii_only=plain) for trace in traces)
    for number, report in enumerate(reports):
        sys.stdout.write(f"\n{report}" if number else report)
    sys.stdout.flush()


def report_after_run(traces: Sequence[Path], ascii_only: bool) -> None:
    """The report after the target's own output. What goes wrong here does not change the run's exit status."""
    if not traces:
        return
    try:
        sys.stdout.write("\n")
        write_report(traces, ascii_only)
    except ProbeError as error:
        warn(f"no report: {error}")
    except BrokenPipeError:
        discard_output()
    except OSError as error:
        warn(f"no report: writing to stdout: {error.strerror}")
        discard_output()
    except Exception as error:  # noqa: BLE001 - a bug in a report is none of the program's
        warn(f"no report: {type(error).__name__}: {error}; tui-probe report TRACE shows where")
