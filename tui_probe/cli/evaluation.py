"""``tui-probe eval``: evaluations of traces, and how to collect them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_probe.errors import UsageError

from .evaluation_output import write_answer
from .output import put
from .reading import Reading
from .screen import add_screen_options, show, wants_screen
from .sizes import cells, jobs, rows, speaks_utf8, table_width
from .status import ExitStatus

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from tui_probe.evals.evaluation import Evaluation

NAME = 14


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The evaluation, its traces, how to collect them, and in which form the answer is wanted."""
    parser.epilog = "Without NAME: a list. Without TRACE the traces that come with tui-probe, and the answer says so."
    parser.add_argument("name", nargs="?", metavar="NAME", help="the evaluation; without it: all there are")
    parser.add_argument(
        "trace", nargs="*", metavar="TRACE",
        help="traces, folders of them, TRACE:KERNEL@LAUNCH, result files, or other files that the evaluation reads",
    )  # fmt: skip
    parser.add_argument(
        "--explain",
        action="store_true",
        help="say what it asks, how to read the answer, and what it runs; nothing else",
    )
    collected = parser.add_argument_group("collecting")
    collected.add_argument("--run", action="store_true", help="collect the traces first; what is there is kept")
    collected.add_argument("--out", type=Path, metavar="DIR", help="where traces are collected; default evals/NAME")
    collected.add_argument("--only", action="append", metavar="RUN", help="collect this run alone; may be repeated")
    collected.add_argument(
        "--python", default=sys.executable, metavar="PATH", help="the interpreter for programs; default this one"
    )
    collected.add_argument(
        "--jobs", type=jobs, default=1, metavar="N",
        help="collect N runs at a time; with more than 1 times are those of a machine that is shared",
    )  # fmt: skip
    collected.add_argument("--sim", action="store_true", help="use the simulated GPU, with small sizes")
    form = parser.add_argument_group("what is written").add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="the answer as JSON")
    form.add_argument("--csv", action="store_true", help="a table as CSV: the main one, that of --table, or a figure's")
    form.add_argument("--png", type=Path, metavar="FILE", help="write figures as pictures (needs matplotlib)")
    form.add_argument("--svg", type=Path, metavar="FILE", help="write figures as drawn text")
    parser.add_argument("--table", metavar="NAME", help="one table alone")
    parser.add_argument("--figure", metavar="NAME", help="one figure alone")
    parser.add_argument("--width", type=cells, metavar="W", help="columns; default: the terminal's, or 120")
    parser.add_argument("--height", type=rows, metavar="H", help="lines of a figure; default 40")
    add_screen_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """List, explain, collect, answer."""
    from tui_probe.evals.registry import evaluation_named

    if arguments.name is None:
        return _written(_list(), arguments)
    evaluation = evaluation_named(arguments.name)
    if arguments.explain:
        return _written(_explained(evaluation, arguments), arguments)
    words, failed = list(arguments.trace), False
    if arguments.run:
        from .evaluation_run import collect, files_named

        folder = arguments.out or Path("evals", evaluation.name)
        failed = not collect(evaluation, folder, arguments)
        words = [str(folder), *map(str, files_named(arguments))]
    elif arguments.out is not None or arguments.only:
        raise UsageError("--out and --only say what to collect, and where: they go with --run")
    status = _answer(evaluation, words, arguments)
    return ExitStatus.FAILED if failed else status


def _answer(evaluation: Evaluation, words: list[str], arguments: argparse.Namespace) -> int:
    from tui_probe.evals.document import pages_of
    from tui_probe.evals.opening import evaluate

    with Reading() as reading:
        answer = evaluate(evaluation.name, words, reading)
    chosen = (arguments.json, arguments.csv, arguments.png, arguments.svg, arguments.figure, arguments.table)
    if not any(chosen) and wants_screen(arguments):
        return show(arguments, imported=pages_of(answer))
    return write_answer(answer, arguments)


def _list() -> Iterator[str]:
    """A line for each."""
    from tui_probe.evals.registry import evaluations

    yield from (f"{each.name:<{NAME}}{each.question}" for each in evaluations())
    yield ""
    yield "tui-probe eval NAME --explain says more; tui-probe eval NAME --run collects the traces for it."


def _explained(evaluation: Evaluation, arguments: argparse.Namespace) -> Iterator[str]:
    """The question, the probes, how to read the answer, and the commands that collect it."""
    from tui_probe.draw.spans import wrap
    from tui_probe.evals.evaluation import Setting

    from .evaluation_run import command_of, files_named

    setting = Setting(simulated=arguments.sim, files=files_named(arguments))
    width = table_width(arguments)
    for paragraph in (f"{evaluation.name}: {evaluation.question}", *evaluation.reading):
        yield from wrap(paragraph, width)
        yield ""
    probes = ", ".join(evaluation.probes)
    yield f"Probes: {probes or 'none'}. Collected by {evaluation.command}, in a process each:"
    yield ""
    for collection in evaluation.collect(setting):
        yield f"{collection.name}: {command_of(collection, arguments)}"


def _written(lines: Iterator[str], arguments: Any) -> int:
    plain = arguments.ascii or not speaks_utf8(sys.stdout)
    put(lines, ascii_only=plain)
    return ExitStatus.OK
