"""``tui-probe show``: one page of a trace, a kernel or a launch as text, data or a picture."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.pages.choices import SHOW_ONCE
from tui_probe.trace.address import parse_address

from .addresses import ADDRESS, named, opened
from .asked_page import asked_page
from .kernel_page import LABEL, described
from .output import put
from .page import add_schema_option, write_page
from .sizes import cells, drawing_size, rows, speaks_utf8
from .status import ExitStatus

if TYPE_CHECKING:
    import argparse

    from tui_probe.pages.registry import Page
    from tui_probe.trace.model import Trace

SCOPE = 15


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The page, the trace, what of it, and in which form."""
    parser.epilog = (
        "Without PAGE: a list of the pages; with a TRACE alone: what each of them has to show of it."
        " A page that a trace and its kernels have is of the trace where no kernel or launch is named;"
        " pictures and --do are for kernels."
    )
    parser.add_argument(
        "page", nargs="?", metavar="PAGE", help="a page, such as source or timeline; without it: all there are"
    )
    parser.add_argument("trace", nargs="?", metavar="TRACE", help=ADDRESS)
    parser.add_argument("-k", "--kernel", metavar="RE|INDEX", help="the kernel: its index, or a regular expression")
    parser.add_argument("--launch", type=int, metavar="N", help="the launch, counted from 0 through the process")
    parser.add_argument(
        "--do", metavar="COMMAND[,…]", default="", help="commands for the view, as keys give them on the screen"
    )
    parser.add_argument("--width", type=cells, metavar="W", help="columns; default: the terminal's, or 120")
    parser.add_argument("--height", type=rows, metavar="H", help="lines; default: all, and 40 of a drawing")
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")
    parser.add_argument(
        "--explain", action="store_true", help="explain how to read the page; without a TRACE, only that"
    )
    parser.add_argument("--format", choices=("text", "json", "csv"), default="text", help="default %(default)s")
    add_schema_option(parser)
    parser.add_argument("--png", type=Path, metavar="FILE", help="write a picture (needs matplotlib)")
    parser.add_argument("--perfetto", type=Path, metavar="FILE", help="write trace events, of timeline and launches")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="write the text as a picture")


def run(arguments: argparse.Namespace) -> int:
    """Write the page to stdout, or to the files that are named."""
    from tui_probe.pages.registry import find_page

    name, word = arguments.page, arguments.trace
    if name is None:
        return list_pages(None)
    if word is None and find_page(name, SHOW_ONCE) is None and names_a_trace(name):
        return list_pages(opened(named(name)))
    address = named(word or "")
    page = asked_page(name, SHOW_ONCE, address)
    if word is None and arguments.explain:
        return explain(page, arguments)
    status = write_page(page, address.agreed(arguments.kernel, arguments.launch), arguments)
    if arguments.explain and arguments.format == "text" and status == ExitStatus.OK:
        put("")
        explain(page, arguments)
    return status


def names_a_trace(word: str) -> bool:
    """Whether a word that is no page is meant for a trace."""
    return Path(word).exists() or os.sep in word or not parse_address(word).is_whole


def explain(page: Page, arguments: argparse.Namespace) -> int:
    """Write what a page shows and how to read it."""
    from tui_probe.draw.heading import named
    from tui_probe.pages.explanations import paragraphs

    plain = arguments.ascii or not speaks_utf8(sys.stdout)
    words = page.explanation
    put((named(page.title, page.about), *paragraphs(words, drawing_size(arguments)[0])), ascii_only=plain)
    return ExitStatus.OK


def list_pages(trace: Trace | None) -> int:
    """Every page, what it is of and what it shows, or what it has to show of a trace."""
    from tui_probe.pages.registry import pages

    if trace is None:
        put(f"{page.name:<{LABEL}}{page.scope:<{SCOPE}}{page.about}" for page in pages())
        put("\ntui-probe show TRACE says what there is of each in a trace.")
    else:
        put(described(trace))
    return ExitStatus.OK
