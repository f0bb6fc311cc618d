"""The answer of an evaluation on stdout, or its figures as pictures in files."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

from tui_probe.draw.printable import dump_json
from tui_probe.errors import UsageError

from .output import put, put_coloured, warn
from .sizes import drawing_size, fits, speaks_utf8, table_width
from .status import ExitStatus

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping
    from pathlib import Path
    from typing import Any, TypeVar

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Drawing
    from tui_probe.evals.answer import Answer

    Named = TypeVar("Named")


def write_answer(answer: Answer, arguments: argparse.Namespace) -> int:
    """Write it in the form that was asked for; returns the exit status."""
    if arguments.figure and arguments.table:
        raise UsageError("--figure and --table name one thing each: leave out one of them")
    figure = None if arguments.figure is None else _named(answer.drawings, arguments.figure, "figure", answer)
    table = None if arguments.table is None else _named(answer.tables, arguments.table, "table", answer)
    if arguments.png or arguments.svg:
        return _write_pictures(answer, arguments)
    if arguments.json:
        one = figure.record() if figure is not None else None if table is None else table.records()
        return _write_data([dump_json(answer.to_dict() if one is None else one, indent=1)])
    if arguments.csv:
        from tui_probe.draw.formats import csv_lines

        chosen = table or next(iter(answer.tables.values()))
        return _write_data(csv_lines(figure.cells()) if figure is not None else chosen.csv())
    if table is not None:
        return _write_text([((line, ""),) for line in table.lines(table_width(arguments))], arguments)
    return _write_text(_figure_lines(figure, arguments) if figure else _document_lines(answer, arguments), arguments)


def _named(things: Mapping[str, Named], name: str, what: str, answer: Answer) -> Named:
    if name not in things:
        there = ", ".join(things) or "none"
        raise UsageError(f"{answer.name} has no {what} {name!r}: there are {there}")
    return things[name]


def _write_data(lines: Iterable[str]) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    put(lines)
    return ExitStatus.OK


def _plain(arguments: argparse.Namespace) -> bool:
    return bool(arguments.ascii or not speaks_utf8(sys.stdout))


def _document_lines(answer: Answer, arguments: argparse.Namespace) -> list[Line]:
    from tui_probe.evals.document import AnswerDocument

    return list(AnswerDocument(answer, ascii_only=_plain(arguments)).lines(table_width(arguments)))


def _figure_lines(figure: Drawing, arguments: argparse.Namespace, *, plain: bool | None = None) -> list[Line]:
    columns, height = drawing_size(arguments)
    fits(columns, height)
    work = figure.prepare(columns, height)
    if work is not None:
        work()
    return figure.draw(columns, height, ascii_only=_plain(arguments) if plain is None else plain)


def _write_text(lines: list[Line], arguments: argparse.Namespace) -> int:
    put_coloured(lines, ascii_only=_plain(arguments))
    return ExitStatus.OK


def _write_pictures(answer: Answer, arguments: argparse.Namespace) -> int:
    """The figure that was named, else all: FILE where there is one, FILE-NAME where there are several."""
    from tui_probe.draw.picture import write_png, write_svg

    path: Path = arguments.png or arguments.svg
    chosen: dict[str, Any] = dict(answer.drawings)
    if arguments.figure is not None:
        chosen = {arguments.figure: answer.drawings[arguments.figure]}
    for name, figure in chosen.items():
        file = path if len(chosen) == 1 else path.with_stem(f"{path.stem}-{name}")
        columns = drawing_size(arguments)[0]
        lines = _figure_lines(figure, arguments, plain=bool(arguments.ascii))
        try:
            if arguments.png:
                write_png(file, figure, lines, columns)
            else:
                write_svg(file, lines, columns, figure.title)
        except OSError as error:
            warn(f"error: {file}: {error.strerror}: name a file that can be written")
            return ExitStatus.FAILED
        put(str(file))
    return ExitStatus.OK
