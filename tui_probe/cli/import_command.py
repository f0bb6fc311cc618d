"""``tui-probe import``: files of Nsight Compute and Nsight Systems, as text, JSON, CSV or Markdown."""

from __future__ import annotations

import importlib
import io
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tui_probe.errors import UsageError
from tui_probe.pages.choices import FORMATS
from tui_probe.trace.address import parse_address

from .addresses import opened_in_part
from .output import put
from .reading import Reading
from .sizes import NARROWEST, cells, speaks_utf8
from .status import ExitStatus

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tui_probe.cli.commands import Command
    from tui_probe.trace.model import Trace

TOOLS: Final = {
    "ncu": "CSV files of Nsight Compute: which kernels matter, memory traffic, sectors, the critical kernel",
    "chrome": "Chrome traces of PyTorch's profiler, JAX or Proton (.json, .json.gz), one per process: the same pages",
    "nsys": "Nsight Systems: an sqlite export, or CSV files of nsys stats: kernels, NVTX ranges, gaps, a timeline",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The tool that wrote the files, and what it takes."""
    tools = parser.add_subparsers(dest="tool", metavar="TOOL", required=True, title="tools")
    for name, text in TOOLS.items():
        tool = tools.add_parser(name, help=text, description=text, allow_abbrev=False)
        module = command(name)
        module.add_arguments(tool)
        tool.set_defaults(refuse=tool.error)


def run(arguments: argparse.Namespace) -> int:
    """Write the page that was asked for."""
    return command(arguments.tool).run(arguments)


def with_tool(words: Sequence[str]) -> list[str]:
    """The words behind ``import``, the tool first: the one that is named, else the one that wrote the first file.

    Raises UsageError where that cannot be told, ImportFileError where the file cannot be read.
    """
    places = [place for place, word in enumerate(words) if word in TOOLS]
    if places:
        at = min(places, key=lambda place: place > 0 and words[place - 1].startswith("-"))
        return [words[at], *words[:at], *words[at + 1 :]]
    file = next((Path(word) for word in words if Path(word).is_file()), None)
    if file is None:
        return [*words]
    from tui_probe.nsight.importers.which_tool import tool_of

    tool = tool_of(file)
    if tool is None:
        raise UsageError(f"{file}: which tool wrote it? tui-probe import ncu {file}, or tui-probe import nsys {file}")
    return [tool, *words]


def command(tool: str) -> Command:
    name = "nsys" if tool == "chrome" else tool  # both have timelines
    module: Command = importlib.import_module(f"tui_probe.cli.import_{name}")
    return module


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """How a page is written, for both tools."""
    shown = parser.add_argument_group("output format")
    shown.add_argument("--format", choices=FORMATS, default="table", help="default %(default)s")
    shown.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")
    shown.add_argument("--width", type=cells, metavar="N", help="width of tables; default: the terminal's, or 120")
    shown.add_argument("--explain", action="store_true", help="explain how to read the page, and what it can answer")


def opened(words: Sequence[str]) -> list[Trace]:
    """The traces of these addresses, each with the kernels alone that it names. Raises TraceError, ChoiceError."""
    return [opened_in_part(parse_address(word)) for word in words]


def write_page(page: Any, arguments: argparse.Namespace) -> int:
    """Write a table page; nothing else goes to stdout."""
    from tui_probe.pages.table_page import page_lines

    lines = page_lines(
        page,
        arguments.format,
        width=width_of(arguments),
        ascii_only=plain(arguments),
        explained=arguments.explain,
        whole_commands=not sys.stdout.isatty(),
    )
    with Reading("writing") as writing:
        return write_lines(writing.before(counted_off(lines, len(page.rows), writing)), arguments)


def counted_off(lines: Iterable[str], count: int, progress: Callable[[float], None]) -> Iterator[str]:
    """The lines, of which there are about so many."""
    for place, line in enumerate(lines):
        progress(min(1.0, place / max(count, 1)))
        yield line


def write_lines(lines: Iterable[str], arguments: argparse.Namespace) -> int:
    """Write lines in the encoding of their format."""
    if arguments.format != "table" and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    put(lines)
    return ExitStatus.OK


def width_of(arguments: argparse.Namespace) -> int:
    """The width asked for, else the terminal's."""
    return arguments.width or text_width()


def text_width() -> int:
    """The terminal's width, 120 without one."""
    return max(NARROWEST, shutil.get_terminal_size((120, 24)).columns)


def plain(arguments: argparse.Namespace) -> bool:
    """Whether to draw in ASCII: on request, or where stdout cannot show more."""
    return bool(arguments.ascii) or (arguments.format == "table" and not speaks_utf8(sys.stdout))
