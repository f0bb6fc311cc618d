"""``tui-probe watch``: look at a run from another terminal, without touching it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from tui_probe.errors import TraceError
from tui_probe.launcher.spool import living_runs
from tui_probe.trace.locate import LOG, find_trace, is_trace, parse_address
from tui_probe.trace.recent import running_traces, summarize_trace
from tui_probe.trace.user_state import remember_opened

from .arguments import resolve_name, trace_dir
from .output import inform, shell_word
from .screen import add_screen_options, show, wants_screen
from .show import write_summary

if TYPE_CHECKING:
    import argparse
    from pathlib import Path


INTERVAL = 0.2
"""Seconds between looks for the first trace: no event announces it to other processes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the argument for the run."""
    parser.add_argument(
        "trace", nargs="?", default="", metavar="TRACE",
        help="a trace, the name of a run, or a directory of traces (the newest active run in it); default: the trace"
        " directory. TRACE:KERNEL@LAUNCH opens the screen at that launch",
    )  # fmt: skip
    add_screen_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Follow the run until the user quits; without a terminal, report what there is now."""
    address = resolve_name(parse_address(arguments.trace))
    folder = address.path or trace_dir()
    if wants_screen(arguments):
        wait_for_the_first_kernel(folder)
    trace = trace_to_watch(folder)
    remember_opened(trace)
    if wants_screen(arguments):
        return show(arguments, traces=(trace,), watching=True, address=address)
    run_brief = summarize_trace(trace)
    inform(f"{'still running' if run_brief and run_brief.is_running else 'ended'}: {trace}")
    return write_summary(replace(address, path=trace), arguments)


def wait_for_the_first_kernel(folder: Path) -> None:
    """Wait while a run is active in a folder of traces, but none of the traces is of an active run."""
    announced = False
    while folder.is_dir() and not is_trace(folder) and living_runs(folder) and not running_traces(folder):
        if not announced:
            inform(f"a run is active in {folder}; waiting for its first kernel launch (Ctrl-C: stop)")
            announced = True
        time.sleep(INTERVAL)


def trace_to_watch(path: Path) -> Path:
    """The trace itself, or the newest running one of a folder. Raises TraceError."""
    if path.name == LOG or is_trace(path) or not path.is_dir():
        return find_trace(path)
    active_runs = running_traces(path)
    if active_runs:
        return active_runs[-1]
    if living_runs(path):
        raise TraceError(f"a run is active in {path}, but no kernel launched yet")
    ended_run = find_trace(path)  # says what to do where there is none at all
    raise TraceError(f"no active run in {path}; the newest ended run: tui-probe open {shell_word(ended_run)}")
