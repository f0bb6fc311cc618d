"""``tui-probe open``: a trace on the screen, or as text where there is no terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.trace.locate import find_trace

from .screen import add_screen_options, show, wants_screen
from .status import ExitStatus
from .text import write_report

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A trace, and how to show it."""
    parser.add_argument("trace", type=Path, metavar="TRACE", help="a trace directory, or a folder of them")
    add_screen_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Show the trace, whether its process has ended or not."""
    trace = find_trace(arguments.trace)
    if wants_screen(arguments):
        return show(arguments, traces=(trace,))
    write_report([trace], arguments.ascii)
    return ExitStatus.OK
