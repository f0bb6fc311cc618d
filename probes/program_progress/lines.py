"""What each basic block took, by its first line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.probekit.lines import LineMeasure, LineRow, LineRows, Lines, share_text

if TYPE_CHECKING:
    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import ProgramProgress


def _rows(of: ProbeResult, found: ProgramProgress) -> LineRows:
    del of
    rows = [
        LineRow(
            each.line,
            each.source,
            {
                "share": share_text(each.cycles, found.cycles),
                "cycles": each.cycles,
                "visits": each.visits,
                "cycles per visit": each.cycles_per_visit,
                "warps": each.warps,
            },
        )
        for each in found.blocks
    ]
    notes = ["one row per basic block, at its first line; cycles summed over all warps"]
    if found.unknown:
        part = share_text(found.unknown, found.cycles)
        notes.append(f"{part} of the time is unknown: warps entered more blocks than they keep")
    return LineRows(rows, notes)


LINES: Final = Lines(
    (
        LineMeasure("share"),
        LineMeasure("cycles", "sum"),
        LineMeasure("visits", "sum", better="neither"),
        LineMeasure("cycles per visit", "ratio", ("cycles", "visits")),
        LineMeasure("warps", better="neither"),
    ),
    "cycles",
    _rows,
)
