"""``tui-probe show``: one page of a trace, a kernel or a launch as text, data or a picture; ``report`` shares it."""

from __future__ import annotations

import io
import os
import sys
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.draw.printable import printable
from tui_probe.errors import ProbeError, TraceError, UsageError
from tui_probe.trace.locate import Address, parse_address

from .arguments import (
    ADDRESS,
    KERNEL,
    address_of,
    open_address,
    open_addressed_kernels,
    trace_folder_of,
    traces_of_name,
)
from .output import (
    ExitStatus,
    Progress,
    add_max_chars_option,
    check_drawing_size,
    drawing_size,
    height_option,
    inform,
    is_utf8,
    limit_lines,
    limited_json,
    max_chars,
    table_width,
    warn,
    width_option,
    write_coloured,
    write_stdout,
)
from .text_report import report_message, stderr_is_terminal, write_report

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import View
    from tui_probe.pages.page_registry import PageEntry
    from tui_probe.probekit.page_kinds import Format, ViewKind
    from tui_probe.probekit.probe_results import ViewTarget
    from tui_probe.trace.model import Trace

_NAME_CELLS = 12
"""Cells of the name of a page, in a list of pages."""
_SCOPE_CELLS = 15
"""Cells of what a page is about: a trace, a kernel or a launch."""
FINDINGS_FIELDS = ("findings", "data", "summary")
"""Fields of documents that --max-chars cuts last: those that have findings."""
_MAX_NAMED = 8
"""Further kernels that a message names, of those that an address matches."""


@dataclass(frozen=True, slots=True)
class PictureFiles:
    """Pictures that are written instead of text."""

    png: Path | None = None
    perfetto: Path | None = None
    svg: Path | None = None

    def __bool__(self) -> bool:
        return any((self.png, self.perfetto, self.svg))


def write_kernel_page(page: PageEntry, trace: Trace, address: Address, arguments: argparse.Namespace) -> int:
    """Open the page and write it; say what is missing where there is nothing. Returns the exit status."""
    from tui_probe.pages.view_output import run_commands
    from tui_probe.probekit.probe_results import choose_target

    kind = page.of_kernel
    assert kind is not None
    choice = choose_target(trace, kind, address.kernel, address.launch)
    if getattr(arguments, "quiet", False):
        if choice.missing_reason is not None:
            return ExitStatus.FAILED
        return _write_view(kind, choice, _open_view(kind, choice), arguments)
    if choice.missing_reason is not None:
        kernel = choice.source.kernel
        warn(f"page {page.name} of #{kernel.index} {kernel.name} has no data: {choice.missing_reason}")
        sys.stderr.writelines(f"{printable(line)}\n" for line in page_descriptions(trace))
        return ExitStatus.FAILED
    for message in _choice_messages(trace, choice, address):
        inform(message)
    view = _open_view(kind, choice)
    commands = [word for word in getattr(arguments, "do", "").split(",") if word]
    for text in run_commands(view, commands, drawing_size(arguments)):
        inform(text)
    return _write_view(kind, choice, view, arguments)


def _choice_messages(trace: Trace, choice: ViewTarget, address: Address) -> Iterator[str]:
    """Yield which kernel and launch are shown, if the address names several kernels or another launch."""
    kernel, launch = choice.source.kernel, choice.source.launch
    if choice.other_matches:
        other_kernels = ", ".join(f"#{index}" for index in choice.other_matches[:_MAX_NAMED])
        yield f"showing #{kernel.index}; {address.kernel} also matches {other_kernels}"
    elif address.is_whole and len(trace.kernels) > 1:
        is_timed = kernel.gpu_time is not None and kernel.result_rows
        reason = " (the first kernel by GPU time that has results and this page)" if is_timed else ""
        yield f"showing #{kernel.index} of {len(trace.kernels)} kernels{reason}; select a kernel with TRACE:KERNEL"
    if address.launch is not None and launch is not None and launch.number != address.launch:
        yield (
            f"launch {address.launch} had another probe; showing launch {launch.number}, the nearest launch with"
            " this probe"
        )


def _open_view(kind: ViewKind, choice: ViewTarget) -> View:
    with Progress() as reading:
        return kind.open(choice.source, reading)


def _write_view(kind: ViewKind, choice: ViewTarget, view: View, arguments: argparse.Namespace) -> int:
    """Pictures go to their files; without any, the text or the data to stdout."""
    from tui_probe.draw.view import Document

    files = files_of(arguments)
    if not isinstance(view, Document):
        check_drawing_size(*drawing_size(arguments))
    try:
        if files:
            return _write_files(kind, view, files, arguments)
        _write_lines(kind, choice, view, arguments)
    except OSError as error:
        file = files.perfetto or files.svg or files.png
        if file is None or isinstance(error, BrokenPipeError):
            raise
        warn(f"error: {error.filename or file}: {error.strerror}; pass a writable file")
        return ExitStatus.FAILED
    return ExitStatus.OK


def files_of(arguments: argparse.Namespace) -> PictureFiles:
    """Return the files of the options; none for ``report``, which lacks these options."""
    return PictureFiles(*(getattr(arguments, name, None) for name in ("png", "perfetto", "svg")))


def _write_lines(kind: ViewKind, choice: ViewTarget, view: View, arguments: argparse.Namespace) -> None:
    from tui_probe.draw.table import fenced
    from tui_probe.pages.view_output import csv_of_view, json_lines, text_lines, view_document

    if arguments.format in ("json", "csv") and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    limited = max_chars(arguments) is not None
    if arguments.format == "csv":
        write_stdout(limit_lines(csv_of_view(view), arguments, csv=True))
    elif arguments.format == "json" and limited:
        write_stdout(limited_json(view_document(kind.name, choice.source, view), arguments, keep=FINDINGS_FIELDS))
    elif arguments.format == "json":
        write_stdout(json_lines(kind.name, choice.source, view))
    elif arguments.format == "md":
        write_stdout(limit_lines(fenced(text_lines(_view_lines(view, arguments))), arguments))
    elif limited:
        write_stdout(limit_lines(text_lines(_view_lines(view, arguments)), arguments))
    else:
        write_coloured(_view_lines(view, arguments))


def _view_lines(view: View, arguments: argparse.Namespace) -> Iterator[Line]:
    """The lines of a view: all of a document, a drawing in the height that there is."""
    from tui_probe.draw.view import Document
    from tui_probe.pages.view_output import view_lines

    columns, height = drawing_size(arguments)
    height_limit = getattr(arguments, "height", None) if isinstance(view, Document) else height
    ascii_only = arguments.ascii or (not files_of(arguments) and not is_utf8(sys.stdout))
    return view_lines(view, columns, height_limit, ascii_only=ascii_only)


def _write_files(kind: ViewKind, view: View, files: PictureFiles, arguments: argparse.Namespace) -> int:
    """Write the files that are asked for."""
    from tui_probe.draw.picture import write_png, write_svg

    columns = drawing_size(arguments)[0]
    lines = list(_view_lines(view, arguments)) if files.svg or files.png else []
    if files.svg:
        write_svg(files.svg, lines, columns, view.title)
    if files.png:
        write_png(files.png, view, lines, columns)
    for path in filter(None, (files.svg, files.png)):
        write_stdout(str(path))
    return trace_events(kind, view, files.perfetto) if files.perfetto else ExitStatus.OK


def trace_events(kind: ViewKind, view: View, path: Path) -> int:
    """Write what ui.perfetto.dev and chrome://tracing open, if the view has a timeline."""
    from tui_probe.pages.view_output import writer_of

    write = writer_of(view)
    if write is None:
        warn(f"error: {kind.name} has no trace events; use timeline, progress, phases or launches")
        return ExitStatus.USAGE
    inform(f"written: {path}, {write(path)} events")
    return ExitStatus.OK


def page_descriptions(trace: Trace) -> Iterator[str]:
    """List what each page has to show of a trace, or what it needs."""
    from tui_probe.draw.units import counted
    from tui_probe.pages.page_registry import all_pages
    from tui_probe.probekit.probe_results import count_viewable

    total = len(trace.kernels)
    for page in all_pages():
        if page.of_kernel is None:
            yield f"{page.name:<{_NAME_CELLS}}the trace: {page.about}"
            continue
        count, missing_reason = count_viewable(trace, page.of_kernel)
        contents = (
            f"{count} of {counted(total, 'kernel')}"
            if count
            else f"no data: {missing_reason or 'no kernel was launched'}"
        )
        yield f"{page.name:<{_NAME_CELLS}}{contents}"


def write_page(page: PageEntry, address: Address, arguments: argparse.Namespace) -> int:
    """Write a page: of the whole trace where the address names no kernel or launch in it.

    A page that only kernels have is of the first that has it. Pictures, and commands for a view, are of kernels only.
    Returns the exit status.
    """
    needs_view = bool(files_of(arguments) or getattr(arguments, "do", ""))
    of_kernel = not address.is_whole or page.of_trace is None or (needs_view and page.of_kernel is not None)
    if of_kernel and page.of_kernel is None:
        raise UsageError(f"{page.name} is a page of a whole trace; omit the kernel and the launch")
    if needs_view and page.of_kernel is None:
        raise UsageError(f"{page.name} is a page of a whole trace; pictures and --do need a page of a kernel")
    trace = open_address(address)
    applies = page.of_trace.applies if page.of_trace else None
    if of_kernel or (applies is not None and page.of_kernel is not None and not applies(trace)):
        return write_kernel_page(page, trace, address, arguments)
    return _write_trace_page(page, trace, arguments)


def _write_trace_page(page: PageEntry, trace: Trace, arguments: argparse.Namespace) -> int:
    from tui_probe.pages.page_registry import report_document, report_lines

    form: Format = "table" if arguments.format == "text" else arguments.format
    ascii_only = arguments.ascii or (form == "table" and not is_utf8(sys.stdout))
    if form != "table" and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    chars = max_chars(arguments)
    with Progress() as reading:
        if form == "json" and chars is not None:
            document, omitted_rows = report_document(trace, page.name, chars, reading)
            write_stdout(limited_json(document, arguments, keep=FINDINGS_FIELDS, omitted_rows=omitted_rows))
            return ExitStatus.OK
        lines = report_lines(
            trace, page.name, form,
            width=table_width(arguments), ascii_only=ascii_only, progress=reading,
        )  # fmt: skip
        write_stdout(reading.erase_before(limit_lines(lines, arguments, csv=form == "csv")))
    return ExitStatus.OK


def write_summary(address: Address, arguments: argparse.Namespace) -> int:
    """Write the report of a run, or the summary of a kernel: ``open`` and ``watch`` without a screen."""
    if address.is_whole:
        write_report([trace_folder_of(address)], arguments.ascii)
        return ExitStatus.OK
    from tui_probe.pages.page_registry import require_page

    arguments.format, arguments.width = "text", None
    return write_page(require_page("summary"), address, arguments)


def page_by_name(name: str, address: Address) -> PageEntry:
    """Return the page of a name. Raises UsageError if there is none, with a hint if the trace's probe is unknown."""
    from tui_probe.pages.page_registry import require_page

    try:
        return require_page(name)
    except UsageError as error:
        unknown = _unknown_probe(address)
        raise UsageError(f"{error}. {unknown}") if unknown else error from None


def _unknown_probe(address: Address) -> str | None:
    from tui_probe.probekit.probe_view import unknown_probe_advice

    try:
        trace = open_address(address)
    except ProbeError:
        return None
    advice = next(filter(None, map(unknown_probe_advice, trace.kernels)), None)
    return advice and f"Pages of the trace's own probe may be missing: {advice}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The page, the trace, what of it, and in which form."""
    parser.epilog = (
        "Without PAGE, show lists all pages. With TRACE but no PAGE, show lists the pages of the trace, and what each"
        " page shows. If a page exists for traces and for kernels, show prints the page of the trace unless you name a"
        " kernel or a launch. Pictures and --do need a kernel."
    )
    parser.add_argument(
        "page", nargs="?", metavar="PAGE", help="page to print, e.g. source or timeline; default: list all"
    )
    parser.add_argument("trace", nargs="?", metavar="TRACE", help=ADDRESS)
    parser.add_argument("-k", "--kernel", metavar="A:B", help=KERNEL)
    parser.add_argument("--launch", type=int, metavar="N", help="index of a launch in the process, from 0")
    parser.add_argument(
        "--do", metavar="COMMAND[,…]", default="", help="send commands to the view, like keys on the screen"
    )
    parser.add_argument(
        "--width", type=width_option, metavar="W", help="width in columns; default: terminal width, or 120"
    )
    parser.add_argument(
        "--height", type=height_option, metavar="H", help="height in lines; default: all lines, or 40 for a drawing"
    )
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")
    parser.add_argument("--explain", action="store_true", help="explain how to read the page; TRACE may be omitted")
    parser.add_argument("--format", choices=("text", "json", "csv"), default="text", help="default %(default)s")
    add_max_chars_option(parser)
    parser.add_argument("--png", type=Path, metavar="FILE", help="write a picture (needs matplotlib)")
    parser.add_argument(
        "--perfetto",
        type=Path,
        metavar="FILE",
        help="write timeline, progress, phases or launches as trace events for ui.perfetto.dev",
    )
    parser.add_argument("--svg", type=Path, metavar="FILE", help="write the text as a picture")


def run(arguments: argparse.Namespace) -> int:
    """Write the page to stdout, or to the files that are named."""
    from tui_probe.pages.page_registry import find_page

    name, word = arguments.page, arguments.trace
    if name is None:
        return list_pages(None, arguments)
    if word is None and find_page(name) is None and names_a_trace(name):
        address = address_of(name).with_options(arguments.kernel, arguments.launch)
        return list_pages(open_addressed_kernels(address), arguments)
    address = address_of(word or "")
    page = page_by_name(name, address)
    if word is None and arguments.explain:
        return explain(page, arguments)
    try:
        status = write_page(page, address.with_options(arguments.kernel, arguments.launch), arguments)
    except TraceError as error:
        if word is None and Path(name).is_dir():
            hint = f"{name} is a page; to list the pages of the trace in directory {name}: tui-probe show ./{name}"
            raise TraceError(f"{error}. {hint}") from error
        raise
    if arguments.explain and arguments.format == "text" and status == ExitStatus.OK:
        write_stdout("")
        explain(page, arguments)
    return status


def names_a_trace(word: str) -> bool:
    """Return whether a word that is not a page is meant as a trace."""
    return Path(word).exists() or os.sep in word or not parse_address(word).is_whole or bool(traces_of_name(word))


def explain(page: PageEntry, arguments: argparse.Namespace) -> int:
    """Write what a page shows and how to read it."""
    from tui_probe.draw.shorten import view_heading
    from tui_probe.draw.spans import paragraphs

    ascii_only = arguments.ascii or not is_utf8(sys.stdout)
    explanation = page.explanation
    write_stdout(
        (view_heading(page.title, page.about), *paragraphs(explanation, drawing_size(arguments)[0])),
        ascii_only=ascii_only,
    )
    return ExitStatus.OK


def list_pages(trace: Trace | None, arguments: argparse.Namespace) -> int:
    """List every page with its subject and contents, or what it has to show of a trace."""
    from tui_probe.pages.page_registry import all_pages

    if trace is None:
        pages = [f"{page.name:<{_NAME_CELLS}}{page.scope:<{_SCOPE_CELLS}}{page.about}" for page in all_pages()]
        write_stdout(limit_lines([*pages, "", "To list the pages of a trace: tui-probe show TRACE."], arguments))
    else:
        write_stdout(limit_lines(page_descriptions(trace), arguments))
    return ExitStatus.OK


def write_pictures(traces: Sequence[Path], probes: Sequence[str]) -> None:
    """Write a picture per trace in which a view of the probes has something to show; print the paths, a line each.

    A failure does not change the run's exit status.
    """
    for trace in traces:
        for page in _drawn_pages(probes):
            try:
                status = write_page(page, Address(trace), _picture_arguments(page, trace))
            except (ProbeError, OSError) as error:
                report_message(trace, f"no picture of {page.name}: {error}")
                continue
            if status == ExitStatus.OK:
                break
        else:
            report_message(trace, "no picture: the pages have no data")


def _drawn_pages(probes: Sequence[str]) -> Iterator[PageEntry]:
    """Yield the views that only these probes have, then those that all share and that are drawn."""
    from tui_probe.pages.page_registry import require_page
    from tui_probe.probekit.registry import probe_named

    registered_probes = [probe for name in probes if (probe := probe_named(name)) is not None]
    names = [view.name for probe in registered_probes for view in probe.views]
    if any(probe.timeline for probe in registered_probes):
        names.append("timeline")
    return (require_page(name) for name in dict.fromkeys([*names, "summary"]))


def _picture_arguments(page: PageEntry, trace: Path) -> Namespace:
    return Namespace(
        page=page.name, png=trace / f"{page.name}.png", perfetto=None, svg=None, do="", ascii=False, width=None,
        height=None, format="text", quiet=not stderr_is_terminal(),
    )  # fmt: skip
