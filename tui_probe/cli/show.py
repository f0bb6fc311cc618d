"""``tui-probe show``: one view of a kernel or a launch as text, data or a picture."""

from __future__ import annotations

import argparse
import io
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.errors import ChoiceError

from .output import inform, warn
from .report import cells, speaks_utf8
from .status import ExitStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import View
    from tui_probe.pages.views.choose import Choice
    from tui_probe.probekit.kind import Kind
    from tui_probe.trace.model import Trace

SHORTEST = 5
MOST_CELLS = 1_000_000
"""Columns times lines of a drawing."""
_LABEL = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The view, the trace, what of it, and in which form."""
    parser.epilog = "Without VIEW: list the views. With only a TRACE: list what each view can show of it."
    parser.add_argument(
        "view",
        nargs="?",
        metavar="VIEW",
        help="a page of a kernel, such as source or timeline; default: list them all",
    )
    parser.add_argument("trace", nargs="?", type=Path, metavar="TRACE", help="a trace directory, or a folder of them")
    parser.add_argument("-k", "--kernel", metavar="RE|INDEX", help="the kernel: its index, or a regular expression")
    parser.add_argument("--launch", type=int, metavar="N", help="the launch, counted from 0 through the process")
    parser.add_argument(
        "--do", metavar="COMMAND[,…]", default="", help="commands for the view, as keys give them on the screen"
    )
    parser.add_argument("--width", type=cells, metavar="W", help="columns; default: the terminal's, or 120")
    parser.add_argument("--height", type=rows, metavar="H", help="lines; default: all, and 40 of a drawing")
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")
    parser.add_argument(
        "--explain", action="store_true", help="explain how to read the view; without a TRACE, only that"
    )
    parser.add_argument("--format", choices=("text", "json", "csv"), default="text", help="default %(default)s")
    parser.add_argument("--png", type=Path, metavar="FILE", help="write a picture (needs matplotlib)")
    parser.add_argument("--perfetto", type=Path, metavar="FILE", help="write trace events, of timeline and launches")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="write the text as a picture")


def run(arguments: argparse.Namespace) -> int:
    """Write the view to stdout, or to the files that are named."""
    from tui_probe.pages.views import names
    from tui_probe.trace.follow import open_trace

    name: str | None = arguments.view
    path: Path | None = arguments.trace
    if name is not None and path is None and name not in names() and Path(name).exists():
        return list_views(open_trace(Path(name)))  # a trace alone
    if name is not None and name not in names():
        warn(f"error: there is no view {name!r}; there are {', '.join(names())}")
        return ExitStatus.USAGE
    if path is None:
        if name is not None and arguments.explain:
            return explain(name, arguments)
        if name is not None:
            warn(f"error: name a trace: tui-probe show {name} TRACE")
            return ExitStatus.USAGE
        return list_views(None)
    trace = open_trace(path)
    return list_views(trace) if name is None else show(name, trace, arguments)


def show(name: str, trace: Trace, arguments: argparse.Namespace) -> int:
    """Open one view and write it; say what is missing where there is nothing."""
    from tui_probe.draw.view import no_progress
    from tui_probe.pages.views import kind_of
    from tui_probe.pages.views.choose import choose
    from tui_probe.pages.views.output import obey

    kind = kind_of(name)
    choice = choose(trace, kind, arguments.kernel, arguments.launch)
    if choice.missing is not None:
        warn(
            f"nothing to show as {name} of #{choice.source.kernel.index} {choice.source.kernel.name}: {choice.missing}"
        )
        for line in described(trace):
            sys.stderr.write(line + "\n")
        return ExitStatus.FAILED
    if choice.also:
        more = ", ".join(f"#{index}" for index in choice.also[:8])
        inform(f"showing #{choice.source.kernel.index}; {arguments.kernel} also names {more}")
    view = kind.open(choice.source, no_progress)
    for words in obey(view, [word for word in arguments.do.split(",") if word], size(arguments)):
        inform(words)
    try:
        return write(kind, choice, view, arguments)
    except OSError as error:
        file = arguments.perfetto or arguments.svg or arguments.png
        if file is None or isinstance(error, BrokenPipeError):
            raise
        warn(f"error: {error.filename or file}: {error.strerror}: name a file that can be written")
        return ExitStatus.FAILED


def size(arguments: argparse.Namespace) -> tuple[int, int]:
    """Columns and lines to draw in."""
    terminal = shutil.get_terminal_size((120, 40))
    height = arguments.height or (max(SHORTEST, terminal.lines - 1) if sys.stdout.isatty() else 40)
    return arguments.width or max(40, terminal.columns), height


def fits(columns: int, height: int) -> None:
    """Raises ChoiceError for a drawing that nobody could read and that takes minutes to make."""
    if columns * height > MOST_CELLS:
        raise ChoiceError(
            f"--width {columns} --height {height}: a drawing has at most {MOST_CELLS:,} characters, such as"
            " 1000 by 1000; --do zoom_in shows a part in more detail"
        )


def write(kind: Kind, choice: Choice, view: View, arguments: argparse.Namespace) -> int:
    """Pictures go to their files; without any, the text or the data to stdout."""
    from tui_probe.draw.view import Document
    from tui_probe.pages.views.output import data_csv, json_lines, text_lines, view_lines

    columns, height = size(arguments)
    if not isinstance(view, Document):
        fits(columns, height)
    shown = arguments.height if isinstance(view, Document) else height
    if arguments.perfetto:
        return trace_events(kind, view, arguments.perfetto)
    if arguments.png or arguments.svg:
        pictures(view, list(view_lines(view, columns, shown, ascii_only=arguments.ascii)), columns, arguments)
        return ExitStatus.OK
    if arguments.format == "text":
        plain = arguments.ascii or not speaks_utf8(sys.stdout)
        lines = view_lines(view, columns, shown, ascii_only=plain)
        output = coloured(lines) if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else text_lines(lines)
    else:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")
        output = json_lines(kind.name, choice.source, view) if arguments.format == "json" else data_csv(view)
    for line in output:
        sys.stdout.write(line + "\n")
    if arguments.explain and arguments.format == "text":
        sys.stdout.write("\n")
        explain(kind.name, arguments)
    return ExitStatus.OK


def explain(name: str, arguments: argparse.Namespace) -> int:
    """Write what a view shows and how to read it."""
    from tui_probe.draw.heading import named
    from tui_probe.draw.spans import to_ascii
    from tui_probe.pages.explanations import paragraphs
    from tui_probe.pages.views import kind_of

    kind = kind_of(name)
    plain = arguments.ascii or not speaks_utf8(sys.stdout)
    for line in (named(kind.title, kind.about), *paragraphs(kind.explanation, size(arguments)[0])):
        sys.stdout.write((to_ascii(line) if plain else line) + "\n")
    return ExitStatus.OK


def pictures(view: View, lines: list[Line], columns: int, arguments: argparse.Namespace) -> None:
    """Write the files that are asked for."""
    from tui_probe.draw.picture import write_png, write_svg

    if arguments.svg:
        write_svg(arguments.svg, lines, columns, view.title)
    if arguments.png:
        write_png(arguments.png, view, lines, columns)
    for path in filter(None, (arguments.svg, arguments.png)):
        inform(f"written: {path}")


def trace_events(kind: Kind, view: View, path: Path) -> int:
    """Write what ui.perfetto.dev and chrome://tracing open, if the view has a timeline."""
    from tui_probe.pages.perfetto import writer_of

    write = writer_of(view)
    if write is None:
        warn(f"error: {kind.name} has no events to write; timeline, progress and launches have")
        return ExitStatus.USAGE
    inform(f"written: {path}, {write(path)} events")
    return ExitStatus.OK


def coloured(lines: Iterator[Line]) -> Iterator[str]:
    """Lines with the colours of a terminal, on its own ground."""
    from tui_probe.draw.palette import ANSI

    for line in lines:
        yield "".join(ANSI.style(role).render(text) if role else text for text, role in line)


def list_views(trace: Trace | None) -> int:
    """Every view and what it shows, or what it has to show of a trace."""
    from tui_probe.pages.views import kinds

    if trace is None:
        for kind in kinds():
            sys.stdout.write(f"{kind.name:<{_LABEL}}{kind.about}\n")
        sys.stdout.write("\ntui-probe show TRACE says what there is of each in a trace.\n")
    else:
        for line in described(trace):
            sys.stdout.write(line + "\n")
    return ExitStatus.OK


def described(trace: Trace) -> Iterator[str]:
    """What each view has to show of a trace, or what it needs."""
    from tui_probe.draw.units import counted
    from tui_probe.pages.views import kinds
    from tui_probe.pages.views.choose import first_missing

    total = len(trace.kernels)
    for kind in kinds():
        count, why = first_missing(trace, kind)
        has = f"{count} of {counted(total, 'kernel')}" if count else f"nothing: {why or 'no kernel was launched'}"
        yield f"{kind.name:<{_LABEL}}{has}"


def rows(word: str) -> int:
    """A height in lines."""
    try:
        number = int(word)
    except ValueError:
        number = 0
    if number < SHORTEST:
        raise argparse.ArgumentTypeError(f"{word}: a number of at least {SHORTEST} was expected")
    return number
