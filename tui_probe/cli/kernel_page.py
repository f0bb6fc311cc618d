"""A page of a kernel or a launch on stdout, or as a picture in a file."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe.draw.printable import printable

from .output import inform, put, put_coloured, warn
from .reading import Reading
from .sizes import drawing_size, fits, speaks_utf8
from .status import ExitStatus

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from pathlib import Path

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import View
    from tui_probe.pages.registry import Page
    from tui_probe.pages.views.choose import Choice
    from tui_probe.probekit.kind import Kind
    from tui_probe.trace.address import Address
    from tui_probe.trace.model import Trace

LABEL = 12


@dataclass(frozen=True, slots=True)
class Files:
    """Pictures that are written in the place of text."""

    png: Path | None = None
    perfetto: Path | None = None
    svg: Path | None = None

    def __bool__(self) -> bool:
        return any((self.png, self.perfetto, self.svg))


def write_kernel_page(page: Page, trace: Trace, address: Address, arguments: argparse.Namespace) -> int:
    """Open the page and write it; say what is missing where there is nothing. Returns the exit status."""
    from tui_probe.pages.views.choose import choose
    from tui_probe.pages.views.output import obey

    kind = page.of_kernel
    assert kind is not None
    choice = choose(trace, kind, address.kernel, address.launch)
    if getattr(arguments, "quiet", False):
        if choice.missing is not None:
            return ExitStatus.FAILED
        return _written(kind, choice, _opened(kind, choice), arguments)
    if choice.missing is not None:
        kernel = choice.source.kernel
        warn(f"nothing to show as {arguments.page} of #{kernel.index} {kernel.name}: {choice.missing}")
        sys.stderr.writelines(f"{printable(line)}\n" for line in described(trace))
        return ExitStatus.FAILED
    if choice.also:
        more = ", ".join(f"#{index}" for index in choice.also[:8])
        inform(f"showing #{choice.source.kernel.index}; {address.kernel} also names {more}")
    elif address.is_whole and len(trace.kernels) > 1:
        inform(f"showing #{choice.source.kernel.index} of {len(trace.kernels)} kernels; name one with TRACE:KERNEL")
    shown = choice.source.launch
    if address.launch is not None and shown is not None and shown.number != address.launch:
        inform(f"launch {address.launch} had another probe; showing the nearest that had this one, {shown.number}")
    view = _opened(kind, choice)
    commands = [word for word in getattr(arguments, "do", "").split(",") if word]
    for words in obey(view, commands, drawing_size(arguments)):
        inform(words)
    return _written(kind, choice, view, arguments)


def _opened(kind: Kind, choice: Choice) -> View:
    with Reading() as reading:
        return kind.open(choice.source, reading)


def _written(kind: Kind, choice: Choice, view: View, arguments: argparse.Namespace) -> int:
    """Pictures go to their files; without any, the text or the data to stdout."""
    from tui_probe.draw.view import Document

    files = files_of(arguments)
    if not isinstance(view, Document):
        fits(*drawing_size(arguments))
    try:
        if files:
            return _write_files(kind, view, files, arguments)
        _write_lines(kind, choice, view, arguments)
    except OSError as error:
        file = files.perfetto or files.svg or files.png
        if file is None or isinstance(error, BrokenPipeError):
            raise
        warn(f"error: {error.filename or file}: {error.strerror}: name a file that can be written")
        return ExitStatus.FAILED
    return ExitStatus.OK


def files_of(arguments: argparse.Namespace) -> Files:
    """The files that are asked for; ``report`` knows none."""
    return Files(*(getattr(arguments, name, None) for name in ("png", "perfetto", "svg")))


def _write_lines(kind: Kind, choice: Choice, view: View, arguments: argparse.Namespace) -> None:
    from tui_probe.draw.formats import fenced
    from tui_probe.pages.views.output import data_csv, json_lines, text_lines

    if arguments.format in ("json", "csv"):
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")
        name, schema = arguments.page, arguments.schema
        data = arguments.format == "csv"
        output = data_csv(view, kind.name, schema) if data else json_lines(
            name, choice.source, view, schema, kind.name)  # fmt: skip
    elif arguments.format == "md":
        output = iter(fenced(text_lines(_drawn(view, arguments))))
    else:
        lines = _drawn(view, arguments)
        put_coloured(lines)
        return
    put(output)


def _drawn(view: View, arguments: argparse.Namespace) -> Iterator[Line]:
    """The lines of a view: all of a document, a drawing in the height that there is."""
    from tui_probe.draw.view import Document
    from tui_probe.pages.views.output import view_lines

    columns, height = drawing_size(arguments)
    shown = getattr(arguments, "height", None) if isinstance(view, Document) else height
    plain = arguments.ascii or (not files_of(arguments) and not speaks_utf8(sys.stdout))
    return view_lines(view, columns, shown, ascii_only=plain)


def _write_files(kind: Kind, view: View, files: Files, arguments: argparse.Namespace) -> int:
    """Write the files that are asked for."""
    from tui_probe.draw.picture import write_png, write_svg

    if files.perfetto:
        return trace_events(kind, view, files.perfetto)
    columns, lines = drawing_size(arguments)[0], list(_drawn(view, arguments))
    if files.svg:
        write_svg(files.svg, lines, columns, view.title)
    if files.png:
        write_png(files.png, view, lines, columns)
    for path in filter(None, (files.svg, files.png)):
        put(str(path))
    return ExitStatus.OK


def trace_events(kind: Kind, view: View, path: Path) -> int:
    """Write what ui.perfetto.dev and chrome://tracing open, if the view has a timeline."""
    from tui_probe.pages.perfetto import writer_of

    write = writer_of(view)
    if write is None:
        warn(f"error: {kind.name} has no events to write; timeline, progress and launches have")
        return ExitStatus.USAGE
    inform(f"written: {path}, {write(path)} events")
    return ExitStatus.OK


def described(trace: Trace) -> Iterator[str]:
    """What each page has to show of a trace, or what it needs."""
    from tui_probe.draw.units import counted
    from tui_probe.pages.registry import pages
    from tui_probe.pages.views.choose import first_missing

    total = len(trace.kernels)
    for page in pages():
        if page.of_kernel is None:
            yield f"{page.name:<{LABEL}}the trace: {page.about}"
            continue
        count, why = first_missing(trace, page.of_kernel)
        has = f"{count} of {counted(total, 'kernel')}" if count else f"nothing: {why or 'no kernel was launched'}"
        yield f"{page.name:<{LABEL}}{has}"
