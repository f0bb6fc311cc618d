"""How often each line was executed, and its class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.probekit.lines import LineMeasure, LineRows, Lines
from tui_probe.probekit.ranked_lines import ranked_rows

from .analysis import classes_of, executions_of

if TYPE_CHECKING:
    from tui_probe.analysis.by_line import CountsByLine
    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import InstructionMix


def _rows(of: ProbeResult, counted: CountsByLine[InstructionMix]) -> LineRows:
    del of
    rows = ranked_rows(
        counted.lines,
        executions_of,
        lambda line: {"executed": executions_of(line), "class": classes_of(line) or None},
    )
    return LineRows(rows, ["executed: counted once per warp, or group of its lanes, that reaches the line"])


LINES: Final = Lines((LineMeasure("share"), LineMeasure("executed"), LineMeasure("class")), "executed", _rows)
