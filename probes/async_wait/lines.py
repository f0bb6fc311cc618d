"""What warps wait at each place for asynchronous work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.probekit.lines import LineMeasure, LineRow, LineRows, Lines, share_text

from .analysis import kind_of, of_line

if TYPE_CHECKING:
    from tui_probe.analysis.by_line import CountsByLine
    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import AsyncWaits


def _rows(of: ProbeResult, counted: CountsByLine[AsyncWaits]) -> LineRows:
    del of
    found = [(line, of_line(line)) for line in counted.lines]
    rows = [
        LineRow(
            line.line,
            line.source,
            {
                "share": share_text(each.waited, counted.whole.waited),
                "cycles": each.waited,
                "waits": each.waits,
                "cycles per wait": each.cycles_per_wait,
                "for": kind_of(line.opcode),
            },
        )
        for line, each in sorted(found, key=lambda pair: -pair[1].waited)
    ]
    return LineRows(rows, ["cycles of all warps together, from reaching a wait to coming through"])


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
