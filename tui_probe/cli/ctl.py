"""``tui-probe ctl``: switch a run on and off, and change its budgets, from another terminal."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.draw.units import budget as budget_text
from tui_probe.draw.units import counted
from tui_probe.draw.units import size as size_text
from tui_probe.launcher.control import BUDGETS, NO_LIMIT, ControlPage, find_page

from .arguments import count, limit, trace_dir
from .output import write_stdout

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from tui_probe.launcher.control import Budget

ACTIONS: Final = ("status", "on", "off", "probe", "budget")
ALL_PROBES: Final = "all"
"""Word for all probes, in place of the name of one."""
READERS: Final[dict[str, Callable[[str], int]]] = {
    "trace-bytes": limit,
    "result-files": count,
    "log-bytes": limit,
    "write-rate": limit,
}
"""Functions that read the value of a budget, by its name on the command line."""
REFUSED_NOUNS: Final = {"trace_bytes": "launch", "result_files": "launch", "log_bytes": "line"}
"""Nouns for refusals of a budget that is used up, by its name in the page."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for the run and the action."""
    parser.usage = "tui-probe ctl [TRACE_OR_DIR] status|on|off|probe NAME|budget NAME=VALUE..."
    parser.add_argument(
        "words", nargs="*", metavar="[TRACE_OR_DIR] ACTION",
        help="status: show whether launches are recorded, and how much of each budget is used (default); on: record"
             " launches; off: run launches unprobed; probe NAME: use only this probe; probe all: use all probes,"
             " alternately; budget: set limits, such as trace-bytes=4G, result-files=5000, log-bytes=none,"
             " write-rate=50M (per second). Default TRACE_OR_DIR: the newest active run in the trace"
             " directory",
    )  # fmt: skip
    parser.set_defaults(refuse=parser.error)


def run(arguments: argparse.Namespace) -> int:
    """Find the run and do it. Raises ControlError where there is none."""
    operands = list(arguments.words)
    folder = Path(operands.pop(0)) if operands and operands[0] not in ACTIONS else trace_dir()
    action, values = (operands[0], operands[1:]) if operands else ("status", [])
    if action not in ACTIONS:
        arguments.refuse(f"{action} is not an action; use one of {', '.join(ACTIONS)}")
    if problem := misuse(action, values):
        arguments.refuse(problem)
    try:
        limits = read_limits(values) if action == "budget" else {}
    except ArgumentTypeError as error:
        arguments.refuse(str(error))
    control = ControlPage.open(find_page(folder))
    for name, value in limits.items():
        control.set_limit(name, value)
    if action in ("on", "off"):
        control.switch(action == "on")
    if action == "probe":
        control.choose_probe(None if values == [ALL_PROBES] else values[0])
    write_stdout(status_text(control))
    return 0


def misuse(action: str, values: Sequence[str]) -> str | None:
    """Return the problem with the number of words after an action."""
    if action == "budget" and not values:
        return "write budget NAME=VALUE, e.g. trace-bytes=4G"
    if action == "probe" and len(values) != 1:
        return "write probe NAME or probe all"
    return f"{action} takes no value" if values and action not in ("budget", "probe") else None


def read_limits(words: Sequence[str]) -> dict[str, int]:
    """``trace-bytes=4G`` as limits by their names in the page. Raises ArgumentTypeError."""
    limits = {}
    for word in words:
        name, _, text = word.partition("=")
        if name not in READERS:
            raise ArgumentTypeError(f"{word!r} is not a budget; use one of {', '.join(READERS)}, e.g. trace-bytes=4G")
        limits[name.replace("-", "_")] = READERS[name](text)
    return limits


def status_text(control: ControlPage) -> str:
    """The switch and the budgets, a line each."""
    lines = [f"recording is {'on' if control.is_on else 'off'}  (run of process {control['launcher']})"]
    if len(control.probes) > 1:
        selection = f"only {control.only_probe}" if control.only_probe else "alternately"
        lines.append(f"probes        {', '.join(control.probes)}: {selection}")
    lines += [budget_line(name, control.budget(name)) for name in BUDGETS]
    lines.append(rate_line(control["write_rate"]))
    if control["over_share"]:
        lines.append(
            f"{counted(control['over_share'], 'launch')} ran unprobed: the results of each would exceed the"
            " share of trace-bytes for one launch"
        )
    if control["over_rate"]:
        lines.append(
            f"{counted(control['over_rate'], 'launch')} ran unprobed: results exceeded write-rate or half the disk rate"
        )
    return "\n".join(lines) + "\n"


def rate_line(rate: int) -> str:
    """Return ``write-rate    256M/s at most``."""
    return f"{'write-rate':12}  " + ("no limit" if rate == NO_LIMIT else f"{budget_text(rate) + '/s':>10} max")


def budget_line(name: str, budget: Budget) -> str:
    """Return ``trace-bytes   12.6 MB of 1G``, and how often there was no room."""
    format_amount, format_limit = (str, str) if name == "result_files" else (size_text, budget_text)
    limit_text = "no limit" if budget.limit is None else f"of {format_limit(budget.limit)}"
    refusals = f", {counted(budget.refused, REFUSED_NOUNS[name])} refused" if budget.refused else ""
    return f"{name.replace('_', '-'):12}  {format_amount(budget.used):>10} {limit_text}{refusals}"
