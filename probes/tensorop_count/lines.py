"""The multiply-adds of each matrix instruction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.probekit.lines import LineMeasure, LineRow, LineRows, Lines, share_text

from .analysis import instructions_of, multiply_adds_of

if TYPE_CHECKING:
    from tui_probe.analysis.by_line import CountsByLine
    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import TensorOperations


def _rows(of: ProbeResult, counted: CountsByLine[TensorOperations]) -> LineRows:
    del of
    whole = sum(map(multiply_adds_of, counted.lines))
    rows = [
        LineRow(
            line.line,
            line.source,
            {
                "share": share_text(multiply_adds_of(line), whole),
                "multiply-adds": multiply_adds_of(line),
                "instructions": instructions_of(line),
            },
        )
        for line in sorted(counted.lines, key=lambda line: -multiply_adds_of(line))
    ]
    return LineRows(rows, ["instructions are counted per warp, wgmma per four warps; a multiply-add is two operations"])


LINES: Final = Lines(
    (LineMeasure("share"), LineMeasure("multiply-adds", "sum"), LineMeasure("instructions", "sum")),
    "multiply-adds",
    _rows,
)
