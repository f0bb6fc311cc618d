"""``tui-probe import nsys`` and ``import chrome``: timelines of Nsight Systems, or Chrome traces."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.nsight.pages.choices import NSYS_PAGES

from .import_command import add_output_options, opened, plain, width_of, write_lines, write_page
from .reading import Reading

if TYPE_CHECKING:
    from tui_probe.nsight.pages.nsys_sources import NsysSources


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Files and the page."""
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE",
        help="an sqlite export, CSV files of one nsys stats, or Chrome traces",
    )  # fmt: skip
    parser.add_argument("--page", choices=NSYS_PAGES, default="totals", help="what to show; default %(default)s")
    parser.add_argument(
        "--search", default="", metavar="TEXT",
        help="only kernels and ranges with TEXT in their names, and kernels that ran within such a range",
    )  # fmt: skip
    parser.add_argument(
        "--trace", action="append", default=[], metavar="TRACE[:KERNEL]",
        help="a trace of the same program: the page kernels names its kernels; may be repeated",
    )  # fmt: skip
    parser.add_argument("--height", type=lines, metavar="N", default=24, help="lines of the timeline; default 24")
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write one page."""
    from tui_probe.nsight.importers.nsys import read_nsys
    from tui_probe.nsight.pages.nsys_pages import gaps_page, kernels_page, ranges_page, sums_page, totals_page
    from tui_probe.nsight.pages.nsys_sources import NsysSources

    pages = {
        "totals": totals_page,
        "kernels": kernels_page,
        "ranges": ranges_page,
        "gaps": gaps_page,
        "sums": sums_page,
    }

    with Reading() as reading:
        report = read_nsys(arguments.files, reading)
    with Reading("projecting ranges") as projecting:
        sources = NsysSources(report, arguments.search, opened(arguments.trace), projecting)
        if arguments.page == "timeline":
            return write_timeline(sources, arguments)
        page = pages[arguments.page](sources)
    return write_page(page, arguments)


def write_timeline(sources: NsysSources, arguments: argparse.Namespace) -> int:
    """The whole timeline as a picture made of characters, or its lanes as data."""
    from tui_probe.draw.formats import SCHEMA, SCHEMA_VERSION, csv_lines, fenced
    from tui_probe.draw.printable import dump_json
    from tui_probe.draw.spans import plain as words_of
    from tui_probe.draw.spans import to_ascii, wrap
    from tui_probe.nsight.pages.explanations import EXPLANATIONS
    from tui_probe.nsight.pages.timeline import StreamTimeline

    drawing = StreamTimeline(sources)
    if arguments.format == "json":
        record = {"schema": SCHEMA, "version": SCHEMA_VERSION, **drawing.record()}
        return write_lines([dump_json(record)], arguments)
    if arguments.format == "csv":
        return write_lines(csv_lines(drawing.cells()), arguments)
    width = width_of(arguments)
    text = [words_of(line) for line in drawing.draw(width, arguments.height, ascii_only=plain(arguments))]
    if arguments.format == "md":
        text = fenced(text)
    if arguments.explain:
        about = ["", *(line for paragraph in EXPLANATIONS["nsys timeline"] for line in wrap(paragraph, width))]
        text += map(to_ascii, about) if plain(arguments) else about
    return write_lines(text, arguments)


def lines(word: str) -> int:
    """A height: room for a lane and an axis."""
    number = int(word) if word.isascii() and word.isdigit() and len(word) < 5 else 0
    if number < 6:
        raise argparse.ArgumentTypeError(f"{word}: a number of at least 6 was expected")
    return number
