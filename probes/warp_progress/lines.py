"""The loops of a kernel, by the line of their first instruction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.analysis.known_sites import sites_of
from tui_probe.probekit.lines import LineMeasure, LineRow, LineRows, Lines

if TYPE_CHECKING:
    from tui_probe.analysis.warp_pace import WarpProgress
    from tui_probe.probekit.probe_results import ProbeResult


def _rows(of: ProbeResult, found: WarpProgress) -> LineRows:
    known = sites_of(of.kernel.folder)
    rows = [
        LineRow(
            each.line,
            known.following(each.line),
            {
                "iterations": each.iterations,
                "cycles per iteration": each.cycles_per_iteration,
                "cycles": each.cycles,
                "warps": each.warps,
            },
        )
        for each in sorted(found.loops, key=lambda loop: -loop.cycles)
    ]
    return LineRows(rows, ["loops, by the line of their first instruction"])


LINES: Final = Lines(
    (
        LineMeasure("iterations", "sum", better="neither"),
        LineMeasure("cycles per iteration", "ratio", ("cycles", "iterations")),
        LineMeasure("cycles", "sum"),
        LineMeasure("warps", better="neither"),
    ),
    "cycles",
    _rows,
)
