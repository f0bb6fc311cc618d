"""``tui-probe eval``: evaluations of traces, their answers as text, data or pictures."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_probe.draw.printable import dump_json
from tui_probe.errors import UsageError

from .output import (
    ExitStatus,
    Progress,
    check_drawing_size,
    drawing_size,
    height_option,
    is_utf8,
    number_from,
    table_width,
    warn,
    width_option,
    write_coloured,
    write_stdout,
)
from .screen import add_screen_options, show, wants_screen

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Mapping
    from typing import TypeVar

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Drawing
    from tui_probe.evals.answer import Answer, Table
    from tui_probe.evals.evaluation import Evaluation

    Named = TypeVar("Named")

_NAME_CELLS = 14
"""Cells of the name of an evaluation, in the list."""


def _jobs(word: str) -> int:
    """Read the number of runs that are collected at the same time."""
    return number_from(word, 1)


def write_answer(answer: Answer, arguments: argparse.Namespace) -> int:
    """Write it in the form that was asked for; returns the exit status."""
    if arguments.figure and arguments.table:
        raise UsageError("--figure and --table cannot be combined; omit one of them")
    drawing = None if arguments.figure is None else _find_named(answer.drawings, arguments.figure, "figure", answer)
    table = None if arguments.table is None else _find_named(answer.tables, arguments.table, "table", answer)
    if arguments.png or arguments.svg:
        return _write_pictures(answer, arguments)
    if arguments.json:
        return _write_data([dump_json(_record(answer, drawing, table), indent=1)])
    if arguments.csv:
        from tui_probe.draw.csv_table import csv_lines

        main_table = table or next(iter(answer.tables.values()))
        return _write_data(csv_lines(drawing.cells()) if drawing is not None else main_table.csv())
    if table is not None:
        return _write_text([((line, ""),) for line in table.lines(table_width(arguments))], arguments)
    return _write_text(_drawing_lines(drawing, arguments) if drawing else _document_lines(answer, arguments), arguments)


def _record(answer: Answer, drawing: Drawing | None, table: Table[Any] | None) -> object:
    """Return the chart or the table that was named as data, else the whole answer."""
    if drawing is not None:
        return drawing.record()
    return answer.to_dict() if table is None else table.records()


def _find_named(entries: Mapping[str, Named], name: str, noun: str, answer: Answer) -> Named:
    if name not in entries:
        choices = ", ".join(entries) or "none"
        raise UsageError(f"{answer.name} has no {noun} {name!r}; it has: {choices}")
    return entries[name]


def _write_data(lines: Iterable[str]) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    write_stdout(lines)
    return ExitStatus.OK


def _wants_ascii(arguments: argparse.Namespace) -> bool:
    return bool(arguments.ascii or not is_utf8(sys.stdout))


def _document_lines(answer: Answer, arguments: argparse.Namespace) -> list[Line]:
    from tui_probe.evals.answer import AnswerDocument

    return list(AnswerDocument(answer, ascii_only=_wants_ascii(arguments)).lines(table_width(arguments)))


def _drawing_lines(drawing: Drawing, arguments: argparse.Namespace, *, ascii_only: bool | None = None) -> list[Line]:
    columns, height = drawing_size(arguments)
    check_drawing_size(columns, height)
    work = drawing.prepare(columns, height)
    if work is not None:
        work()
    return drawing.draw(columns, height, ascii_only=_wants_ascii(arguments) if ascii_only is None else ascii_only)


def _write_text(lines: list[Line], arguments: argparse.Namespace) -> int:
    write_coloured(lines, ascii_only=_wants_ascii(arguments))
    return ExitStatus.OK


def _write_pictures(answer: Answer, arguments: argparse.Namespace) -> int:
    """Write the drawing that was named, else all: FILE for one, FILE-NAME for several."""
    from tui_probe.draw.picture import write_png, write_svg

    path: Path = arguments.png or arguments.svg
    drawings: dict[str, Any] = dict(answer.drawings)
    if arguments.figure is not None:
        drawings = {arguments.figure: answer.drawings[arguments.figure]}
    for name, drawing in drawings.items():
        file = path if len(drawings) == 1 else path.with_stem(f"{path.stem}-{name}")
        columns = drawing_size(arguments)[0]
        lines = _drawing_lines(drawing, arguments, ascii_only=bool(arguments.ascii))
        try:
            if arguments.png:
                write_png(file, drawing, lines, columns)
            else:
                write_svg(file, lines, columns, drawing.title)
        except OSError as error:
            warn(f"error: {file}: {error.strerror}; pass a writable file")
            return ExitStatus.FAILED
        write_stdout(str(file))
    return ExitStatus.OK


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The evaluation, its traces, how to collect them, and in which form the answer is wanted."""
    parser.epilog = "Without NAME, list the evaluations. Without TRACE, use bundled traces and print a note."
    parser.add_argument("name", nargs="?", metavar="NAME", help="evaluation to answer; default: list all")
    parser.add_argument(
        "trace", nargs="*", metavar="TRACE",
        help="traces, directories of traces, TRACE:KERNEL@LAUNCH, result files, or other input; default: bundled"
             " traces",
    )  # fmt: skip
    parser.add_argument(
        "--explain",
        action="store_true",
        help="explain the question, the answer and the programs; then exit",
    )
    collecting = parser.add_argument_group("collecting")
    collecting.add_argument("--run", action="store_true", help="collect missing traces first")
    collecting.add_argument("--out", type=Path, metavar="DIR", help="collect traces in DIR; default evals/NAME")
    collecting.add_argument("--only", action="append", metavar="RUN", help="collect only this run; may be repeated")
    collecting.add_argument(
        "--python",
        default=sys.executable,
        metavar="PATH",
        help="Python interpreter for the programs; default: this one",
    )
    collecting.add_argument(
        "--jobs", type=_jobs, default=1, metavar="N",
        help="collect N runs at the same time; the runs then slow each other down",
    )  # fmt: skip
    collecting.add_argument("--sim", action="store_true", help="use the simulated GPU, with small sizes")
    form = parser.add_argument_group("output").add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument(
        "--csv",
        action="store_true",
        help="print CSV of the main table, or of the table or figure selected with --table or --figure",
    )
    form.add_argument("--png", type=Path, metavar="FILE", help="write charts as pictures (needs matplotlib)")
    form.add_argument("--svg", type=Path, metavar="FILE", help="write charts as SVG")
    parser.add_argument("--table", metavar="NAME", help="only this table")
    parser.add_argument("--figure", metavar="NAME", help="only this chart")
    parser.add_argument(
        "--width", type=width_option, metavar="W", help="width in columns; default: terminal width, or 120"
    )
    parser.add_argument("--height", type=height_option, metavar="H", help="height of a chart in lines; default 40")
    add_screen_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """List, explain, collect, answer."""
    from tui_probe.evals.evaluation import evaluation_named

    if arguments.name is None:
        return _write(_evaluation_lines(), arguments)
    evaluation = evaluation_named(arguments.name)
    if arguments.explain:
        return _write(_explanation_lines(evaluation, arguments), arguments)
    operands, has_failed = list(arguments.trace), False
    if arguments.run:
        from .evaluation_run import collect, files_from_arguments

        folder = arguments.out or Path("evals", evaluation.name)
        has_failed = not collect(evaluation, folder, arguments)
        operands = [str(folder), *map(str, files_from_arguments(arguments))]
    elif arguments.out is not None or arguments.only:
        raise UsageError("--out and --only require --run")
    status = _answer(evaluation, operands, arguments)
    return ExitStatus.FAILED if has_failed else status


def _answer(evaluation: Evaluation, operands: list[str], arguments: argparse.Namespace) -> int:
    from tui_probe.evals.answer import answer_pages
    from tui_probe.evals.evaluation import evaluate

    with Progress() as reading:
        answer = evaluate(evaluation.name, operands, reading)
    output_options = (arguments.json, arguments.csv, arguments.png, arguments.svg, arguments.figure, arguments.table)
    if not any(output_options) and wants_screen(arguments):
        return show(arguments, imported=answer_pages(answer))
    return write_answer(answer, arguments)


def _evaluation_lines() -> Iterator[str]:
    """A line for each."""
    from tui_probe.evals.evaluation import evaluations

    yield from (f"{evaluation.name:<{_NAME_CELLS}}{evaluation.question}" for evaluation in evaluations())
    yield ""
    yield "Details: tui-probe eval NAME --explain. To collect the traces: tui-probe eval NAME --run."


def _explanation_lines(evaluation: Evaluation, arguments: argparse.Namespace) -> Iterator[str]:
    """The question, the probes, how to read the answer, and the commands that collect it."""
    from tui_probe.draw.spans import wrap
    from tui_probe.evals.evaluation import Setting

    from .evaluation_run import command_of, files_from_arguments

    setting = Setting(simulated=arguments.sim, files=files_from_arguments(arguments))
    width = table_width(arguments)
    for paragraph in (f"{evaluation.name}: {evaluation.question}", *evaluation.reading):
        yield from wrap(paragraph, width)
        yield ""
    probes = ", ".join(evaluation.probes)
    yield f"Probes: {probes or 'none'}. To collect the traces below, each in its own process: {evaluation.command}"
    yield ""
    for collection in evaluation.collect(setting):
        yield f"{collection.name}: {command_of(collection, arguments)}"


def _write(lines: Iterator[str], arguments: Any) -> int:
    ascii_only = arguments.ascii or not is_utf8(sys.stdout)
    write_stdout(lines, ascii_only=ascii_only)
    return ExitStatus.OK
