"""``tui-probe report``: the report of a run as at its end, or a page of a trace or kernel, on stdout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.probekit.page_kinds import FORMATS

from .arguments import ADDRESS, address_of, trace_folder_of, traces_of_name
from .output import ExitStatus, width_option
from .run_display import write_report
from .show import page_by_name, write_page

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the trace, the page and its format."""
    parser.add_argument("trace", nargs="?", default="", metavar="TRACE", help=ADDRESS)
    parser.add_argument(
        "--page",
        metavar="PAGE",
        help="page to write, see `tui-probe show`; default: the report of `run`; as data, its kernels; of one"
        " kernel, the summary",
    )
    parser.add_argument("--format", choices=FORMATS, default="table", help="default %(default)s")
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")
    parser.add_argument(
        "--width", type=width_option, metavar="N",
        help="width of tables; default: the terminal's, or 120 (report: 100)",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Write the report or the page; nothing else goes to stdout."""
    address = address_of(arguments.trace)
    if arguments.page is None and arguments.format == "table" and address.is_whole:
        traces = traces_of_name(arguments.trace) or (trace_folder_of(address),)
        write_report(traces, arguments.ascii, width=arguments.width)
        return ExitStatus.OK
    name = arguments.page or ("kernels" if address.is_whole else "summary")
    return write_page(page_by_name(name, address), address, arguments)
