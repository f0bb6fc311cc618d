"""How often each line was executed, and its class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.probekit.lines import LineMeasure, LineRow, LineRows, Lines, share_text

from .analysis import classes_of, executions_of

if TYPE_CHECKING:
    from tui_probe.analysis.by_line import CountsByLine
    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import InstructionMix


def _rows(of: ProbeResult, counted: CountsByLine[InstructionMix]) -> LineRows:
    del of
    whole = sum(map(executions_of, counted.lines))
    rows = [
        LineRow(
            line.line,
            line.source,
            {
                "share": share_text(executions_of(line), whole),
                "executed": executions_of(line),
                "class": classes_of(line) or None,
            },
        )
        for line in sorted(counted.lines, key=lambda line: -executions_of(line))
    ]
    return LineRows(rows, ["executed: counted once per warp, or group of its lanes, that reaches the line"])


LINES: Final = Lines((LineMeasure("share"), LineMeasure("executed"), LineMeasure("class")), "executed", _rows)
