"""``tui-probe explain``: a walk through a trace, from the files to the numbers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .arguments import address_of, open_address
from .output import ExitStatus, put, speaks_utf8, table_width, width_option

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The trace, and how wide the text may be."""
    parser.add_argument("trace", nargs="?", default="", metavar="TRACE", help="a trace; default the newest")
    parser.add_argument(
        "--width", type=width_option, metavar="W", help="width in columns; default: terminal width, or 100"
    )
    parser.add_argument("--ascii", action="store_true", help="use ASCII characters only")


def run(arguments: argparse.Namespace) -> int:
    """Write the walk to stdout."""
    from tui_probe.pages.views.explain import walk_lines

    plain = arguments.ascii or not speaks_utf8(sys.stdout)
    put(walk_lines(open_address(address_of(arguments.trace)), table_width(arguments)), ascii_only=plain)
    return ExitStatus.OK
