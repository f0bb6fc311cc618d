"""The requests and sectors of each access."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.draw.units import NOT_MEASURED
from tui_probe.probekit.lines import LineMeasure, LineRow, LineRows, Lines

from .analysis import is_counted, requests_and_sectors, sectors_per_request

if TYPE_CHECKING:
    from tui_probe.analysis.by_line import CountsByLine
    from tui_probe.probekit.lines import Value
    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import MemorySectors


def _rows(of: ProbeResult, counted: CountsByLine[MemorySectors]) -> LineRows:
    del of
    rows = []
    for each in sorted(counted.lines, key=lambda line: -requests_and_sectors(line)[1]):
        requests, sectors = requests_and_sectors(each)
        values: dict[str, Value] = {
            "sectors per request": sectors_per_request(each),
            "requests": requests,
            "sectors": sectors,
        }
        if not is_counted(each):
            values = dict.fromkeys(values)
        rows.append(LineRow(each.line, each.source, values))
    known = all(map(is_counted, counted.lines))
    return LineRows(rows, [] if known else [f"{NOT_MEASURED}: wmma and generic accesses are not counted"])


LINES: Final = Lines(
    (
        LineMeasure("sectors per request", "ratio", ("sectors", "requests")),
        LineMeasure("requests", "sum"),
        LineMeasure("sectors", "sum"),
    ),
    "sectors per request",
    _rows,
)
