"""``tui-probe report``: a trace as a table, JSON, CSV or Markdown, on stdout."""

from __future__ import annotations

import argparse
import io
import shutil
import sys
from pathlib import Path
from typing import TextIO

from tui_probe.errors import ChoiceError
from tui_probe.pages.choices import FORMATS

from .output import warn
from .status import ExitStatus

NARROWEST = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The trace, and what of it in which form."""
    parser.add_argument("trace", type=Path, metavar="TRACE", help="a trace directory, or a folder of them: the newest")
    parser.add_argument(
        "--page",
        metavar="PAGE",
        default="kernels",
        help="page to show (a wrong name lists them all); default %(default)s",
    )
    parser.add_argument("--format", choices=FORMATS, default="table", help="default %(default)s")
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")
    parser.add_argument("--width", type=cells, metavar="N", help="width of tables; default: the terminal's, or 120")


def run(arguments: argparse.Namespace) -> int:
    """Write the page; nothing else goes to stdout."""
    from tui_probe.pages.report import report_lines
    from tui_probe.trace.follow import open_trace

    trace = open_trace(arguments.trace)
    width = arguments.width or max(NARROWEST, shutil.get_terminal_size((120, 24)).columns)
    plain = arguments.ascii or (arguments.format == "table" and not speaks_utf8(sys.stdout))
    if arguments.format != "table" and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    try:
        lines = report_lines(trace, arguments.page, arguments.format, width=width, ascii_only=plain)
    except ChoiceError as error:
        warn(f"error: argument --page: {error}")
        return ExitStatus.USAGE
    for line in lines:
        sys.stdout.write(line + "\n")
    return ExitStatus.OK


def speaks_utf8(stream: TextIO) -> bool:
    """Whether any character can be written; data formats are UTF-8 always, tables what the terminal can show."""
    return "utf" in (stream.encoding or "").lower()


def cells(word: str) -> int:
    """A width of tables."""
    try:
        number = int(word)
    except ValueError:
        number = 0
    if number < NARROWEST:
        raise argparse.ArgumentTypeError(f"{word}: a number of at least {NARROWEST} was expected")
    return number
