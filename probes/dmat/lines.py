"""The accesses of each instruction, and how well they coalesce."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.probekit.lines import IDEAL, LineMeasure, LineRow, LineRows, Lines, Share

from .accesses import accesses_of
from .table import AccessCount, by_line

if TYPE_CHECKING:
    from tui_probe.probekit.probe_results import ProbeResult

    from .table import AccessTable, LineAccesses


def _rows(of: ProbeResult, found: AccessTable | AccessCount) -> LineRows:
    """Who asks for the table waits for that of a large result."""
    table = by_line(accesses_of(of), of.kernel.folder) if isinstance(found, AccessCount) else found
    rows = [
        LineRow(
            each.line,
            each.code.source if each.code else None,
            {
                "wasted sectors": each.wasted,
                "wasted": _share(each),
                "sectors": each.sectors,
                "ideal": each.ideal,
                "requests": each.requests,
                "sectors per request": each.sectors_per_request,
                "access": _access(each),
                "accesses": each.accesses,
                "bytes": each.bytes,
            },
        )
        for each in sorted(table.rows, key=lambda row: (-(row.wasted or 0), -row.sectors, row.line))
    ]
    notes = [IDEAL]
    if table.kept != table.accesses:
        notes.append(f"of the first {table.capacity} accesses of each thread only")
    return LineRows(rows, notes, table.silent)


def _share(row: LineAccesses) -> Share | None:
    return None if row.wasted is None or not row.sectors else Share(row.wasted / row.sectors)


def _access(row: LineAccesses) -> str | None:
    """``load 4 B``."""
    if row.code is None:
        return None
    return row.code.kind + ("" if row.code.bytes is None else f" {row.code.bytes} B")


LINES: Final = Lines(
    (
        LineMeasure("wasted sectors", "sum"),
        LineMeasure("wasted", "share", ("wasted sectors", "sectors")),
        LineMeasure("sectors", "sum"),
        LineMeasure("ideal", "sum"),
        LineMeasure("requests", "sum"),
        LineMeasure("sectors per request", "ratio", ("sectors", "requests")),
        LineMeasure("access", "first", better="neither"),
        LineMeasure("accesses", "sum", better="neither"),
        LineMeasure("bytes", "sum"),
    ),
    "wasted sectors",
    _rows,
)
