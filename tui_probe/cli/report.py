"""``tui-probe report``: the report of a run as at its end, or a page of a trace or kernel, on stdout."""

from __future__ import annotations

import io
import sys
from functools import partial
from typing import TYPE_CHECKING

from tui_probe.errors import UsageError
from tui_probe.probekit.page_kinds import FORMATS

from .arguments import ADDRESS, address_of, trace_folder_of, traces_of_name
from .output import (
    MIN_COLUMNS,
    ExitStatus,
    add_max_chars_option,
    is_utf8,
    limit_lines,
    max_chars,
    terminal_size,
    width_option,
    write_stdout,
)
from .show import page_by_name, write_page
from .text_report import MAX_REPORTS, traces_to_report, write_report

if TYPE_CHECKING:
    import argparse

    from tui_probe.trace.locate import Address


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the trace, the page and its format."""
    parser.add_argument("trace", nargs="?", default="", metavar="TRACE", help=ADDRESS)
    parser.add_argument(
        "--page",
        metavar="PAGE",
        help="page to print (`tui-probe show` lists pages); default: the report of the run, or the summary of KERNEL;"
        " in JSON and CSV, the table of kernels",
    )
    parser.add_argument("--format", choices=FORMATS, default="table", help="default %(default)s")
    parser.add_argument(
        "--brief", action="store_true",
        help="write at most 4000 characters: the kernels with most time, the limiter and the worst lines of each"
             " kernel, and what to measure next",
    )  # fmt: skip
    add_max_chars_option(parser)
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")
    parser.add_argument(
        "--width", type=width_option, metavar="N",
        help="width of tables; default: terminal width, or 120 (report: 100)",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Write the report or the page; nothing else goes to stdout."""
    address = address_of(arguments.trace)
    if arguments.brief:
        return write_brief(address, arguments)
    if arguments.page is None and arguments.format == "table" and address.is_whole:
        traces = traces_of_name(arguments.trace) or (trace_folder_of(address),)
        write_report(
            traces, arguments.ascii, width=arguments.width, select_lines=partial(limit_lines, arguments=arguments)
        )
        return ExitStatus.OK
    name = arguments.page or ("kernels" if address.is_whole else "summary")
    return write_page(page_by_name(name, address), address, arguments)


def write_brief(address: Address, arguments: argparse.Namespace) -> int:
    """Write the brief of a run; several traces of one run share the characters, and JSON is of one trace."""
    from tui_probe.trace.follow import open_trace
    from tui_probe.verdicts.run_brief import MAX_CHARS, run_brief

    if arguments.format not in ("table", "json") or arguments.page is not None or not address.is_whole:
        raise UsageError("--brief reports a whole run; omit KERNEL and --page, and use --format table or json")
    chars = max_chars(arguments) or MAX_CHARS
    if arguments.format == "json":
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")
        write_stdout(run_brief(open_trace(trace_folder_of(address))).document(chars - 1))
        return ExitStatus.OK
    traces = traces_to_report(traces_of_name(arguments.trace) or (trace_folder_of(address),))[:MAX_REPORTS]
    ascii_only = arguments.ascii or not is_utf8(sys.stdout)
    for directory in traces:
        text = run_brief(open_trace(directory)).text(chars // len(traces), ascii_only=ascii_only)
        if arguments.width or sys.stdout.isatty():  # else a program reads it, which takes lines of any length
            text = _wrap_lines(text, arguments.width or max(MIN_COLUMNS, terminal_size().columns))
        write_stdout(text)
    return ExitStatus.OK


def _wrap_lines(text: str, cells: int) -> str:
    """Return the text with long lines broken at words, but with whole commands."""
    from tui_probe.draw.spans import hang_line

    lines = text.splitlines()
    parts = ([line] if line.lstrip().startswith("tui-probe ") else hang_line(line, cells) for line in lines)
    return "".join(f"{part}\n" for line in parts for part in line)
