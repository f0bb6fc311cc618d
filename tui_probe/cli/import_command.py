"""``tui-probe import``: files of Nsight Compute, Nsight Systems and Chrome traces, as text, JSON, CSV or Markdown."""

from __future__ import annotations

import argparse
import io
import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tui_probe.errors import ImportFileError, UsageError
from tui_probe.nsight.analysis.critical import ELEMENT_BYTES, ExpectedTensor
from tui_probe.nsight.pages.explanations import NCU_PAGES, NSYS_PAGES, NSYS_TRACE_PAGES, TRACE_PAGES
from tui_probe.probekit.page_kinds import FORMATS
from tui_probe.trace.locate import parse_address

from .arguments import open_addressed_kernels, positive, whole_number
from .output import MIN_COLUMNS, ExitStatus, Progress, inform, is_utf8, terminal_size, width_option, write_stdout

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from tui_probe.nsight.analysis.launch_selection import IterationPlan
    from tui_probe.nsight.pages.nsys_profile import NsysSources
    from tui_probe.trace.model import Trace

_LINES_PER_PIECE: Final = 1024
TOOLS: Final = {
    "ncu": "Nsight Compute reports (.ncu-rep) or CSV: kernels by time, memory traffic, sectors, source lines",
    "chrome": "Chrome traces (.json, .json.gz) of PyTorch, JAX or Proton, one per process; same pages as nsys",
    "nsys": "Nsight Systems sqlite exports, or CSV files of nsys stats: kernels, NVTX ranges, gaps, timeline",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The tool that wrote the files, and what it takes."""
    tools = parser.add_subparsers(dest="tool", metavar="TOOL", required=True, title="tools")
    for name, text in TOOLS.items():
        tool = tools.add_parser(name, help=text, description=text, allow_abbrev=False)
        _IMPORTERS[name].add_arguments(tool)
        tool.set_defaults(refuse=tool.error)


def run(arguments: argparse.Namespace) -> int:
    """Write the page that was asked for."""
    return _IMPORTERS[arguments.tool].run(arguments)


def with_tool(words: Sequence[str]) -> list[str]:
    """The words behind ``import``, the tool first: the one that is named, else the one that wrote the first file.

    Raises UsageError if no file has a known format, ImportFileError where the file cannot be read.
    """
    tool_indices = [place for place, word in enumerate(words) if word in TOOLS]
    if tool_indices:
        tool_index = min(tool_indices, key=lambda place: place > 0 and words[place - 1].startswith("-"))
        return [words[tool_index], *words[:tool_index], *words[tool_index + 1 :]]
    file = next((Path(word) for word in words if Path(word).is_file()), None)
    if file is None:
        return [*words]
    from tui_probe.nsight.importers.file_kinds import json_advice, tool_of

    tool = tool_of(file)
    if tool is None and (advice := json_advice(file)):
        raise ImportFileError(f"{file}: {advice}")
    if tool is None:
        raise UsageError(f"{file}: unknown format; use tui-probe import ncu {file} or tui-probe import nsys {file}")
    return [tool, *words]


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a page's format, for both tools."""
    group = parser.add_argument_group("output format")
    group.add_argument("--format", choices=FORMATS, default="table", help="default %(default)s")
    group.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")
    group.add_argument(
        "--width", type=width_option, metavar="N", help="width of tables; default: terminal width, or 120"
    )
    group.add_argument("--explain", action="store_true", help="explain how to read the page")


def open_traces(words: Sequence[str]) -> list[Trace]:
    """The traces of these addresses, each with only the kernels that it names. Raises TraceError, ChoiceError."""
    return [open_addressed_kernels(parse_address(word)) for word in words]


def traces_for_page(arguments: argparse.Namespace, pages: Collection[str]) -> list[Trace]:
    """The traces of ``--trace``, and a message if the page is none of ``pages``, which use them."""
    if arguments.trace and arguments.page not in pages:
        inform(f"page {arguments.page} does not use --trace; use --trace with --page {' or '.join(sorted(pages))}")
    return open_traces(arguments.trace)


def write_page(page: Any, arguments: argparse.Namespace) -> int:
    """Write a table page; nothing else goes to stdout."""
    from tui_probe.pages.table_page import page_lines

    lines = page_lines(
        page,
        arguments.format,
        width=width_of(arguments),
        ascii_only=wants_ascii(arguments),
        explained=arguments.explain,
        whole_commands=not sys.stdout.isatty(),
    )
    with Progress("writing") as writing:
        return write_lines(writing.erase_before(with_progress(lines, len(page.rows), writing)), arguments)


def with_progress(lines: Iterable[str], count: int, progress: Callable[[float], None]) -> Iterator[str]:
    """The lines, about that many, in pieces of several."""
    remaining_lines, written_count = iter(lines), 0
    while piece := [*islice(remaining_lines, _LINES_PER_PIECE)]:
        yield "\n".join(piece)
        written_count += len(piece)
        progress(min(1.0, written_count / max(count, 1)))


def write_lines(lines: Iterable[str], arguments: argparse.Namespace) -> int:
    """Write lines in the encoding of their format."""
    if arguments.format != "table" and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    write_stdout(lines)
    return ExitStatus.OK


def width_of(arguments: argparse.Namespace) -> int:
    """The width asked for, else the terminal's."""
    return arguments.width or text_width()


def text_width() -> int:
    """The terminal's width, 120 without one."""
    return max(MIN_COLUMNS, terminal_size().columns)


def wants_ascii(arguments: argparse.Namespace) -> bool:
    """Return whether to draw in ASCII: on request, or if stdout cannot show more."""
    return bool(arguments.ascii) or (arguments.format == "table" and not is_utf8(sys.stdout))


def add_ncu_arguments(parser: argparse.ArgumentParser) -> None:
    """Files, the page, and what is known of the program."""
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="ncu reports (.ncu-rep) or CSV files")
    parser.add_argument("--page", choices=NCU_PAGES, default="kernels", help="page to print; default %(default)s")
    parser.add_argument(
        "--trace", action="append", default=[], metavar="TRACE[:KERNEL]",
        help="trace of the same program with a counting probe, for --page sectors, critical, lines or sass; may be"
        " repeated",
    )  # fmt: skip
    add_plan_options(parser)
    add_tensor_options(parser)
    add_output_options(parser)


def add_plan_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that select the launches that count."""
    plan = parser.add_argument_group("launches to evaluate")
    plan.add_argument("--warmup", type=count, metavar="W", help="ignore the first W iterations")
    plan.add_argument(
        "--runs",
        type=positive,
        metavar="R",
        help="number of measured iterations; default: all iterations in the launch sequence",
    )
    plan.add_argument(
        "--expect", action="append", default=[], metavar="NAME", help="warn if no kernel with NAME in its name ran"
    )


def add_tensor_options(parser: argparse.ArgumentParser) -> None:
    """The tensor that a kernel should write."""
    tensor = parser.add_argument_group("tensor that a kernel stores, to compute the expected sectors")
    tensor.add_argument("--seq-len", type=positive, metavar="N", help="sequence length")
    tensor.add_argument("--head-dim", type=positive, metavar="N", help="head dimension")
    tensor.add_argument("--dtype", choices=ELEMENT_BYTES, default="fp16", help="type; default %(default)s")
    tensor.add_argument("--heads", type=positive, default=1, metavar="N", help="heads; default %(default)s")
    tensor.add_argument("--batch", type=positive, default=1, metavar="N", help="batch; default %(default)s")


def import_ncu(arguments: argparse.Namespace) -> int:
    """Write one page of the files and traces."""
    from tui_probe.nsight.importers.ncu import read_ncu
    from tui_probe.nsight.pages.opening import NcuSources, ncu_page

    if not arguments.files and not arguments.trace:
        arguments.refuse("pass files: tui-probe import ncu FILE.ncu-rep, or FILE.csv...")
    plan, tensor = plan_of(arguments), tensor_of(arguments)
    with Progress() as reading:
        table = read_ncu(arguments.files, reading) if arguments.files else None
    sources = NcuSources(table, traces_for_page(arguments, TRACE_PAGES), plan, tensor)
    return write_page(ncu_page(arguments.page, sources), arguments)


def plan_of(arguments: argparse.Namespace) -> IterationPlan:
    """Return which launches count, from the options."""
    from tui_probe.nsight.analysis.launch_selection import IterationPlan

    return IterationPlan(arguments.warmup, arguments.runs, tuple(arguments.expect))


def tensor_of(arguments: argparse.Namespace) -> ExpectedTensor | None:
    """The tensor that the options describe, if they do."""
    if arguments.seq_len is None and arguments.head_dim is None:
        return None
    if arguments.seq_len is None or arguments.head_dim is None:
        arguments.refuse("--seq-len and --head-dim are needed together")
    return ExpectedTensor(arguments.seq_len, arguments.head_dim, arguments.dtype, arguments.heads, arguments.batch)


def count(word: str) -> int:
    """A number of iterations."""
    return whole_number(word, 0)


def add_nsys_arguments(parser: argparse.ArgumentParser) -> None:
    """Files and the page."""
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE",
        help="sqlite export, CSV files of one nsys stats run, or Chrome traces",
    )  # fmt: skip
    parser.add_argument("--page", choices=NSYS_PAGES, default="totals", help="page to print; default %(default)s")
    parser.add_argument(
        "--search", default="", metavar="TEXT",
        help="show only kernels and ranges with TEXT in their names, and all kernels in these ranges",
    )  # fmt: skip
    parser.add_argument(
        "--trace", action="append", default=[], metavar="TRACE[:KERNEL]",
        help="with --page kernels: mark the kernels that are in this trace of the same program; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--height", type=timeline_height, metavar="N", default=24, help="height of the timeline in lines; default 24"
    )
    add_output_options(parser)


def import_nsys(arguments: argparse.Namespace) -> int:
    """Write one page."""
    from tui_probe.nsight.importers.nsys import read_nsys
    from tui_probe.nsight.pages.nsys_pages import gaps_page, kernels_page, ranges_page, sums_page, totals_page
    from tui_probe.nsight.pages.nsys_profile import NsysSources

    pages = {
        "totals": totals_page,
        "kernels": kernels_page,
        "ranges": ranges_page,
        "gaps": gaps_page,
        "sums": sums_page,
    }

    with Progress() as reading:
        report = read_nsys(arguments.files, reading)
    with Progress("projecting ranges") as projecting:
        sources = NsysSources(report, arguments.search, traces_for_page(arguments, NSYS_TRACE_PAGES), projecting)
        if arguments.page == "timeline":
            return write_timeline(sources, arguments)
        page = pages[arguments.page](sources)
    return write_page(page, arguments)


def write_timeline(sources: NsysSources, arguments: argparse.Namespace) -> int:
    """The whole timeline as a picture made of characters, or its lanes as data."""
    from tui_probe.draw.csv_table import csv_lines
    from tui_probe.draw.printable import dump_json
    from tui_probe.draw.spans import plain, to_ascii, wrap
    from tui_probe.draw.table import SCHEMA, SCHEMA_VERSION, fenced
    from tui_probe.nsight.pages.explanations import EXPLANATIONS
    from tui_probe.nsight.pages.timeline import StreamTimeline

    drawing = StreamTimeline(sources)
    if arguments.format == "json":
        record = {"schema": SCHEMA, "version": SCHEMA_VERSION, **drawing.record()}
        return write_lines([dump_json(record)], arguments)
    if arguments.format == "csv":
        return write_lines(csv_lines(drawing.cells()), arguments)
    width = width_of(arguments)
    text = [plain(line) for line in drawing.draw(width, arguments.height, ascii_only=wants_ascii(arguments))]
    if arguments.format == "md":
        text = fenced(text)
    if arguments.explain:
        explanation = ["", *(line for paragraph in EXPLANATIONS["nsys timeline"] for line in wrap(paragraph, width))]
        text += map(to_ascii, explanation) if wants_ascii(arguments) else explanation
    return write_lines(text, arguments)


def timeline_height(word: str) -> int:
    """A height: room for a lane and an axis."""
    number = int(word) if word.isascii() and word.isdigit() and len(word) < 5 else 0
    if number < 6:
        raise argparse.ArgumentTypeError(f"{word}: pass a number, at least 6")
    return number


class _Importer(NamedTuple):
    """Functions that add the arguments of a tool, and that write a page of its files."""

    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


_IMPORTERS: Final = {
    "ncu": _Importer(add_ncu_arguments, import_ncu),
    "nsys": _Importer(add_nsys_arguments, import_nsys),
    "chrome": _Importer(add_nsys_arguments, import_nsys),  # timed kernels on streams: the same pages
}
"""Importers by tool, one for each of ``TOOLS``."""
