"""``tui-probe open``: a trace, or imported files, on the screen, or as text where there is no terminal."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.errors import TraceError, UsageError
from tui_probe.trace.locate import LOG, trace_of_result, traces_in
from tui_probe.trace.user_state import remember_opened

from .arguments import address_of, trace_folder_of, traces_of_name
from .import_command import add_plan_options, add_tensor_options, open_traces, plan_of, tensor_of, text_width
from .output import ExitStatus, inform, is_utf8, shell_word, write_stdout
from .screen import add_screen_options, show, wants_screen
from .show import write_summary

if TYPE_CHECKING:
    import argparse


ACCEPTED_FILES: Final = (
    "open accepts a trace (a directory with event.log, or the name of a run), reports or CSV files of ncu, sqlite or"
    " CSV files of nsys, Chrome traces, and the output of bandwidth --format json"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A trace or files, and how to show them."""
    parser.add_argument(
        "trace", nargs="?", default="", metavar="TRACE",
        help="a trace, a directory of traces, or the name of a run (also TRACE:KERNEL@LAUNCH); a file of ncu or nsys;"
        " a Chrome trace; the output of bandwidth --format json; default: the newest trace",
    )  # fmt: skip
    parser.add_argument("more", nargs="*", type=Path, metavar="FILE", help="more files of the same profiler")
    parser.add_argument(
        "--trace", action="append", default=[], metavar="TRACE[:KERNEL]", dest="adjacent",
        help="with files of ncu or nsys: trace of the same program; may be repeated",
    )  # fmt: skip
    add_screen_options(parser)
    add_plan_options(parser)
    add_tensor_options(parser)
    parser.set_defaults(refuse=parser.error)


def run(arguments: argparse.Namespace) -> int:
    """Show the trace, whether its process has ended or not."""
    file = Path(arguments.trace)
    if file.is_file() and file.name != LOG and trace_of_result(file) is None:
        return open_files(arguments, [file, *arguments.more])
    address = address_of(arguments.trace)
    if address.path is not None and not address.path.exists():
        raise TraceError(f"{address.path} does not exist; {ACCEPTED_FILES}")
    if arguments.more:
        arguments.refuse("pass one trace, or several files of ncu or nsys")
    if arguments.adjacent:
        arguments.refuse("--trace needs files of ncu or nsys: tui-probe open FILE --trace TRACE")
    trace = trace_folder_of(address)
    remember_opened(trace)
    choice_notice = newest_trace_notice(address.path, trace)
    if wants_screen(arguments):
        traces = traces_of_name(arguments.trace) if address.is_whole else ()
        return show(arguments, traces=traces or (trace,), address=address, notice=choice_notice)
    if choice_notice:
        inform(choice_notice)
    return write_summary(replace(address, path=trace), arguments)


def newest_trace_notice(path: Path | None, trace: Path) -> str:
    """Describe which of a folder's traces is opened; "" where a trace was named, or there is no other."""
    traces = [] if path is None or path in (trace, trace / LOG) else traces_in(path)
    if path is None or len(traces) < 2:
        return ""
    listing = f"tui-probe list {shell_word(path)}"
    return f"{trace.name} is the newest of {len(traces)} traces in {path}; to list them: {listing}"


def _picture_kind(file: Path) -> str:
    """Return the format of a picture, as ``show --png`` and ``--svg`` write it; "" for any other file."""
    try:
        with file.open("rb") as stream:
            head = stream.read(256)
    except OSError:
        return ""
    if head.startswith(b"\x89PNG"):
        return "PNG"
    return "SVG" if b"<svg" in head else ""


def open_files(arguments: argparse.Namespace, files: list[Path]) -> int:
    """Show files of another profiler: on the screen, or without one their first page."""
    plan, tensor = plan_of(arguments), tensor_of(arguments)
    from tui_probe.nsight.pages.opening import open_imported
    from tui_probe.pages.view_output import text_lines, view_lines

    traces = open_traces(arguments.adjacent)
    for file in files:
        if kind := _picture_kind(file):
            raise UsageError(f"{file} is a picture ({kind}), which open does not show. {ACCEPTED_FILES}")
    imported = open_imported(files, plan, tensor, traces)
    if wants_screen(arguments):
        return show(arguments, traces=tuple(trace.directory for trace in traces), imported=imported)
    ascii_only = arguments.ascii or not is_utf8(sys.stdout)
    for place, page in enumerate(imported.pages):
        if place == 0 or page.in_text:
            write_stdout(text_lines(view_lines(page.make(), text_width(), None, ascii_only=ascii_only)))
    return ExitStatus.OK
