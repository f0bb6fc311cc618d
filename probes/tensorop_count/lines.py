"""The multiply-adds of each matrix instruction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.probekit.lines import LineMeasure, LineRows, Lines
from tui_probe.probekit.ranked_lines import ranked_rows

from .analysis import instructions_of, multiply_adds_of

if TYPE_CHECKING:
    from tui_probe.analysis.by_line import CountsByLine
    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import TensorOperations


def _rows(of: ProbeResult, counted: CountsByLine[TensorOperations]) -> LineRows:
    del of
    rows = ranked_rows(
        counted.lines,
        multiply_adds_of,
        lambda line: {"multiply-adds": multiply_adds_of(line), "instructions": instructions_of(line)},
    )
    return LineRows(rows, ["instructions are counted per warp, wgmma per four warps; a multiply-add is two operations"])


LINES: Final = Lines(
    (LineMeasure("share"), LineMeasure("multiply-adds", "sum"), LineMeasure("instructions", "sum")),
    "multiply-adds",
    _rows,
)
