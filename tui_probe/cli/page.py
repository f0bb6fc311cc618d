"""A page by its name, of a trace or of a kernel, for ``show`` and ``report``."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

from tui_probe.errors import UsageError
from tui_probe.pages.schema import NEWEST, SCHEMAS

from .addresses import opened, place_of
from .kernel_page import files_of, write_kernel_page
from .output import put
from .reading import Reading
from .sizes import speaks_utf8, table_width
from .status import ExitStatus
from .text import write_report

if TYPE_CHECKING:
    import argparse

    from tui_probe.pages.choices import Format
    from tui_probe.pages.registry import Page
    from tui_probe.trace.address import Address
    from tui_probe.trace.model import Trace


def add_schema_option(parser: argparse.ArgumentParser) -> None:
    """Which words data has."""
    parser.add_argument(
        "--schema", type=int, choices=SCHEMAS, default=NEWEST, metavar="N",
        help="words of JSON and CSV: 1 has the older ones, as filtered for excluded; default %(default)s",
    )  # fmt: skip


def write_page(page: Page, address: Address, arguments: argparse.Namespace) -> int:
    """Write a page: of the whole trace where the address names no kernel or launch in it.

    ``arguments.page`` is the name that it was asked for by. A page that only kernels have is of the first that has it.
    Pictures, and commands for a view, are of kernels alone. Returns the exit status.
    """
    viewed = bool(files_of(arguments) or getattr(arguments, "do", ""))
    of_kernel = not address.is_whole or page.of_trace is None or (viewed and page.of_kernel is not None)
    if of_kernel and page.of_kernel is None:
        raise UsageError(f"{page.name} is a page of a whole trace: leave out the kernel and the launch")
    if viewed and page.of_kernel is None:
        raise UsageError(f"{page.name} is a page of a whole trace: pictures and --do are for pages of kernels")
    trace = opened(address)
    if of_kernel:
        return write_kernel_page(page, trace, address, arguments)
    return _write_trace_page(trace, arguments)


def _write_trace_page(trace: Trace, arguments: argparse.Namespace) -> int:
    from tui_probe.pages.report import report_lines

    form: Format = "table" if arguments.format == "text" else arguments.format
    plain = arguments.ascii or (form == "table" and not speaks_utf8(sys.stdout))
    if form != "table" and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    with Reading() as reading:
        lines = report_lines(
            trace, arguments.page, form,
            width=table_width(arguments), ascii_only=plain, schema=arguments.schema, progress=reading,
        )  # fmt: skip
        put(reading.before(lines))
    return ExitStatus.OK


def write_summary(address: Address, arguments: argparse.Namespace) -> int:
    """What ``open`` and ``watch`` write where there is no screen: the report of a run, or the summary of a kernel."""
    if address.is_whole:
        write_report([place_of(address)], arguments.ascii)
        return ExitStatus.OK
    from tui_probe.pages.registry import page_named

    arguments.page, arguments.format, arguments.schema, arguments.width = "summary", "text", NEWEST, None
    return write_page(page_named(arguments.page, {}), address, arguments)
