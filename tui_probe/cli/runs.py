"""The list of recent runs, where no screen shows it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Literal

from tui_probe.draw.printable import dump_json

from .output import put
from .text import LEAST_WIDTH, USUAL_WIDTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.trace.recent import Brief


def print_runs(traces: Sequence[Brief], form: Literal["text", "json"]) -> None:
    """By command, those with the newest runs first."""
    from tui_probe.pages.run_list import run_lines, run_record, runs_of

    groups, width = runs_of(traces), max(LEAST_WIDTH, shutil.get_terminal_size((USUAL_WIDTH, 24)).columns)
    if form == "json":
        put(dump_json(run_record(groups), indent=1))
    elif groups:
        put("\n".join(run_lines(groups, width)))
    else:
        put("no traces yet: tui-probe run -- COMMAND, or try the example with tui-probe demo")
