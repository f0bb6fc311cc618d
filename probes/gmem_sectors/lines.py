"""The requests and sectors of each access."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.analysis.counts import ratio
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.probekit.lines import IDEAL, LineMeasure, LineRow, LineRows, Lines

from .analysis import is_counted
from .waste import waste_of_lines

if TYPE_CHECKING:
    from tui_probe.analysis.by_line import CountsByLine
    from tui_probe.probekit.lines import Value
    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import MemorySectors


def _rows(of: ProbeResult, counted: CountsByLine[MemorySectors]) -> LineRows:
    rows = []
    for each in waste_of_lines(counted.lines, of.kernel.folder):
        values: dict[str, Value] = {
            "wasted sectors": each.wasted,
            "wasted": each.share,
            "sectors": each.sectors,
            "ideal": each.ideal,
            "requests": each.requests,
            "sectors per request": ratio(each.sectors, each.requests),
        }
        if not is_counted(each.line):
            values = dict.fromkeys(values)
        rows.append(LineRow(each.line.line, each.line.source, {**values, "access": each.access}))
    known = all(map(is_counted, counted.lines))
    notes = [] if known else [f"{NOT_MEASURED}: wmma and generic accesses are not counted"]
    return LineRows(rows, [IDEAL, *notes])


LINES: Final = Lines(
    (
        LineMeasure("wasted sectors", "sum"),
        LineMeasure("wasted", "share", ("wasted sectors", "sectors")),
        LineMeasure("sectors", "sum"),
        LineMeasure("ideal", "sum"),
        LineMeasure("requests", "sum"),
        LineMeasure("sectors per request", "ratio", ("sectors", "requests")),
        LineMeasure("access", "first", better="neither"),
    ),
    "wasted sectors",
    _rows,
)
