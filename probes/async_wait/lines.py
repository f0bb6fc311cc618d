"""What warps wait at each place for asynchronous work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.probekit.lines import LineMeasure, LineRows, Lines
from tui_probe.probekit.ranked_lines import ranked_rows

from .analysis import kind_of, of_line

if TYPE_CHECKING:
    from tui_probe.analysis.by_line import CountsByLine, LineSums
    from tui_probe.probekit.lines import Value
    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import AsyncWaits


def _rows(of: ProbeResult, counted: CountsByLine[AsyncWaits]) -> LineRows:
    del of
    rows = ranked_rows(counted.lines, lambda line: of_line(line).waited, _found)
    return LineRows(rows, ["cycles of all warps together, from reaching a wait to coming through"])


def _found(line: LineSums) -> dict[str, Value]:
    each = of_line(line)
    return {
        "cycles": each.waited,
        "waits": each.waits,
        "cycles per wait": each.cycles_per_wait,
        "for": kind_of(line.opcode),
    }


LINES: Final = Lines(
    (
        LineMeasure("share"),
        LineMeasure("cycles", "sum"),
        LineMeasure("waits", "sum", better="neither"),
        LineMeasure("cycles per wait", "ratio", ("cycles", "waits")),
        LineMeasure("for", "first", better="neither"),
    ),
    "cycles",
    _rows,
)
