"""With how many lanes each branch and each access was executed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.probekit.lines import LineMeasure, LineRow, LineRows, Lines
from tui_probe.trace.result_layout import WARP_SIZE

from .analysis import executions_and_lanes, lanes_per_execution

if TYPE_CHECKING:
    from tui_probe.analysis.by_line import CountsByLine
    from tui_probe.probekit.lines import Value
    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import Divergence


def _rows(of: ProbeResult, counted: CountsByLine[Divergence]) -> LineRows:
    del of
    rows = []
    for each in counted.lines:
        executions, lanes = executions_and_lanes(each)
        found: dict[str, Value] = {
            "lanes per execution": lanes_per_execution(each),
            "executions": executions,
            "idle lanes": WARP_SIZE * executions - lanes,
            "lanes": lanes,
        }
        rows.append((lanes - WARP_SIZE * executions, LineRow(each.line, each.source, found)))
    rows.sort(key=lambda pair: pair[0])
    return LineRows([row for _, row in rows], ["idle lanes: those of 32 that were not active, of all executions"])


LINES: Final = Lines(
    (
        LineMeasure("lanes per execution", "ratio", ("lanes", "executions"), better="higher"),
        LineMeasure("executions", "sum", better="neither"),
        LineMeasure("idle lanes", "sum"),
        LineMeasure("lanes", "sum", better="neither"),
    ),
    "lanes per execution",
    _rows,
)
