"""The accesses of each instruction, and how well they coalesce."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.probekit.lines import LineMeasure, LineRow, LineRows, Lines

from .accesses import accesses_of
from .table import AccessCount, by_line

if TYPE_CHECKING:
    from tui_probe.probekit.probe_results import ProbeResult

    from .table import AccessTable


def _rows(of: ProbeResult, found: AccessTable | AccessCount) -> LineRows:
    """Who asks for the table waits for that of a large result."""
    table = by_line(accesses_of(of), of.kernel.folder) if isinstance(found, AccessCount) else found
    rows = [
        LineRow(
            each.line,
            each.code.source if each.code else None,
            {
                "requests": each.requests,
                "sectors": each.sectors,
                "sectors per request": each.sectors_per_request,
                "used": None if each.used is None else f"{each.used:.0%}",
                "accesses": each.accesses,
                "bytes": each.bytes,
            },
        )
        for each in table.rows
    ]
    notes = ["used: the share of each moved 32-byte sector that was asked for"]
    if table.kept != table.accesses:
        notes.append(f"of the first {table.capacity} accesses of each thread only")
    return LineRows(rows, notes, table.silent)


LINES: Final = Lines(
    (
        LineMeasure("requests", "sum"),
        LineMeasure("sectors", "sum"),
        LineMeasure("sectors per request", "ratio", ("sectors", "requests")),
        LineMeasure("used", better="higher"),
        LineMeasure("accesses", "sum", better="neither"),
        LineMeasure("bytes", "sum"),
    ),
    "sectors per request",
    _rows,
)
