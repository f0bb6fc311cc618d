"""``tui-probe compare``: two traces, two kernels or two launches against each other."""

from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.errors import ChoiceError

from .report import cells, speaks_utf8
from .status import ExitStatus

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from tui_probe.render.comparison import Comparison
    from tui_probe.render.views.view import Source
    from tui_probe.trace.model import Trace

    Sides = tuple[Source, Source] | tuple[Trace, Trace]

FORMATS = ("table", "json", "csv", "md")
DRAWN = ("dmat", "timeline", "progress")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Both sides, and the form."""
    parser.epilog = (
        "A and B are TRACE, TRACE:KERNEL or TRACE:KERNEL@LAUNCH; KERNEL is an index or a regular expression."
        " B may leave out the trace of A: tui-probe compare trace:matmul@0 :matmul@5"
    )
    parser.add_argument("before", metavar="A", help="what was before")
    parser.add_argument("after", metavar="B", help="what is after")
    parser.add_argument("--view", choices=DRAWN, help="a drawing of both side by side, in the place of figures")
    parser.add_argument("--height", type=int, metavar="N", default=24, help="lines of a drawing; default %(default)s")
    parser.add_argument("--format", choices=FORMATS, default="table", help="default %(default)s")
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII characters alone")
    parser.add_argument("--width", type=cells, metavar="N", help="width of tables; default: the terminal's, or 120")


def run(arguments: argparse.Namespace) -> int:
    """Write the comparison; nothing else goes to stdout."""
    sides = opened(arguments.before, arguments.after)
    lines = written(compared(sides), arguments) if arguments.view is None else drawn(sides, arguments)
    for line in lines:
        sys.stdout.write(line + "\n")
    return ExitStatus.OK


def opened(before: str, after: str) -> Sides:
    """Both sides: two traces, or a kernel of each. Raises ChoiceError for a trace against a kernel."""
    from tui_probe.trace.follow import open_trace

    first_path, first = side(before)
    second_path, second = side(after)
    if first_path is None:
        raise ChoiceError(f"{before}: name a trace before the colon")
    one = open_trace(first_path)
    other = one if second_path is None else open_trace(second_path)
    if first is None and second is None:
        return one, other
    if first is None or second is None:
        raise ChoiceError("a trace and a kernel cannot be compared: name a kernel on both sides, TRACE:KERNEL")
    return source(one, first), source(other, second)


def compared(sides: Sides) -> Comparison:
    """The figures of both sides."""
    from tui_probe.render.comparison import compare_sources, compare_traces
    from tui_probe.render.views.view import Source, no_progress

    match sides:
        case (Source() as one, Source() as other):
            return compare_sources(one, other, no_progress)
        case (one, other):
            return compare_traces(one, other, no_progress)


def drawn(sides: Sides, arguments: argparse.Namespace) -> Iterator[str]:
    """A drawing of both sides."""
    from tui_probe.render.beside import open_beside
    from tui_probe.render.views.output import data_csv, text_lines, view_lines
    from tui_probe.render.views.view import Source, no_progress

    one, other = sides
    if not isinstance(one, Source) or not isinstance(other, Source):
        raise ChoiceError("a drawing is of a kernel: name one on both sides, TRACE:KERNEL")
    view = open_beside(arguments.view, one, other, no_progress)
    if arguments.format == "csv":
        return data_csv(view)
    if arguments.format == "json":
        return iter([json.dumps(view.record(), allow_nan=False)])
    width, height = arguments.width or shutil.get_terminal_size((120, 40)).columns, arguments.height
    return text_lines(view_lines(view, width, height, ascii_only=arguments.ascii or not speaks_utf8(sys.stdout)))


def side(word: str) -> tuple[Path | None, str | None]:
    """The trace and the kernel that a side names; the path None where it is left out."""
    path, colon, kernel = word.rpartition(":")
    if not colon or Path(word).exists():
        return Path(word), None
    return (Path(path) if path else None), kernel


def source(trace: Trace, word: str) -> Source:
    """``KERNEL`` or ``KERNEL@LAUNCH``."""
    from tui_probe.render.views import kind_of
    from tui_probe.render.views.choose import choose

    kernel, at, launch = word.rpartition("@")
    if not at:
        return choose(trace, kind_of("summary"), word).source
    if not launch.isdigit():
        raise ChoiceError(f"{word}: the number of a launch is expected after the @")
    return choose(trace, kind_of("summary"), kernel or None, int(launch)).source


def written(comparison: Comparison, arguments: argparse.Namespace) -> Iterator[str]:
    """The lines of the form that was asked for."""
    from tui_probe.render.comparison import FIGURE_COLUMNS
    from tui_probe.render.formats import as_json, as_record
    from tui_probe.render.views.output import data_csv, text_lines, view_lines

    if arguments.format != "table" and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    if arguments.format == "json":
        record = comparison.record()
        head = {"page": "compare", **{key: value for key, value in record.items() if key != "figures"}}
        return as_json(head, "figures", (as_record(FIGURE_COLUMNS, row) for row in comparison.rows))
    if arguments.format == "csv":
        return data_csv(comparison)
    if arguments.format == "md":
        return markdown(comparison)
    width = arguments.width or max(40, shutil.get_terminal_size((120, 24)).columns)
    return text_lines(view_lines(comparison, width, None, ascii_only=arguments.ascii or not speaks_utf8(sys.stdout)))


def markdown(comparison: Comparison) -> Iterator[str]:
    """A table a kernel."""
    from tui_probe.render.comparison import FIGURE_COLUMNS
    from tui_probe.render.formats import as_markdown

    for letter, head in zip("AB", comparison.heads, strict=True):
        yield f"{letter}: `{head}`  "
    for kernel, group in comparison.groups.items():
        yield ""
        if kernel:
            yield f"**`{kernel}`**"
            yield ""
        yield from as_markdown(FIGURE_COLUMNS, group)
    for letter, names in comparison.alone.items():
        for name in names:
            yield f"- only in {letter}: `{name}`"
