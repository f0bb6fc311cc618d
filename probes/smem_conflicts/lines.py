"""The passes of each access to shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.probekit.lines import LineMeasure, LineRow, LineRows, Lines

from .analysis import of_line

if TYPE_CHECKING:
    from tui_probe.analysis.by_line import CountsByLine
    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import BankConflicts


def _rows(of: ProbeResult, counted: CountsByLine[BankConflicts]) -> LineRows:
    del of
    found = [(line, of_line(line)) for line in counted.lines]
    rows = [
        LineRow(
            line.line,
            line.source,
            {
                "degree": each.degree,
                "conflicts": each.conflicts,
                "accesses": each.accesses,
                "passes per access": each.passes_per_access,
                "passes": each.passes,
            },
        )
        for line, each in sorted(found, key=lambda pair: (-pair[1].conflicts, -pair[1].passes))
    ]
    words = "conflicts: passes beyond the fewest possible; degree: passes over the fewest possible"
    return LineRows(rows, [words])


LINES: Final = Lines(
    (
        LineMeasure("degree"),
        LineMeasure("conflicts", "sum"),
        LineMeasure("accesses", "sum", better="neither"),
        LineMeasure("passes per access", "ratio", ("passes", "accesses")),
        LineMeasure("passes", "sum"),
    ),
    "conflicts",
    _rows,
)
