"""What warps wait at each barrier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.probekit.lines import LineMeasure, LineRow, LineRows, Lines, share_text

from .analysis import of_line

if TYPE_CHECKING:
    from tui_probe.analysis.by_line import CountsByLine
    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import BarrierWaits


def _rows(of: ProbeResult, counted: CountsByLine[BarrierWaits]) -> LineRows:
    del of
    found = [(line, of_line(line)) for line in counted.lines]
    whole = sum(each.waited for _, each in found)
    rows = [
        LineRow(
            line.line,
            line.source,
            {
                "share": share_text(each.waited, whole),
                "cycles": each.waited,
                "waits": each.barriers,
                "cycles per wait": each.cycles_per_barrier,
            },
        )
        for line, each in sorted(found, key=lambda pair: -pair[1].waited)
    ]
    return LineRows(rows, ["cycles from reaching a barrier to passing it, summed over all warps"])


LINES: Final = Lines(
    (
        LineMeasure("share"),
        LineMeasure("cycles", "sum"),
        LineMeasure("waits", "sum", better="neither"),
        LineMeasure("cycles per wait", "ratio", ("cycles", "waits")),
    ),
    "cycles",
    _rows,
)
