"""``tui-probe report``: a page of a trace or of a kernel as a table, JSON, CSV or Markdown, on stdout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.probekit.page_kinds import FORMATS

from .arguments import ADDRESS, address_of
from .output import width_option
from .show import page_by_name, write_page

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The trace, and what of it in which form."""
    parser.add_argument("trace", nargs="?", default="", metavar="TRACE", help=ADDRESS)
    parser.add_argument(
        "--page",
        metavar="PAGE",
        help="page to show: `tui-probe show` lists them all; default kernels, for one kernel its summary",
    )
    parser.add_argument("--format", choices=FORMATS, default="table", help="default %(default)s")
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")
    parser.add_argument(
        "--width", type=width_option, metavar="N", help="width of tables; default: the terminal's, or 120"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the page; nothing else goes to stdout."""
    address = address_of(arguments.trace)
    name = arguments.page or ("kernels" if address.is_whole else "summary")
    return write_page(page_by_name(name, address), address, arguments)
