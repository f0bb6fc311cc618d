"""The loops of a kernel, by the line of their first instruction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.probekit.lines import LineMeasure, LineRow, LineRows, Lines
from tui_probe.trace.source_lines import SourceLines

if TYPE_CHECKING:
    from tui_probe.analysis.warp_pace import WarpProgress
    from tui_probe.probekit.probe_results import ProbeResult


def _rows(of: ProbeResult, found: WarpProgress) -> LineRows:
    folder = of.kernel.folder
    sources = SourceLines.of(folder) if folder else SourceLines({})
    rows = [
        LineRow(
            each.line,
            sources.following(each.line),
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
