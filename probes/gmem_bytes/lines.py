"""The bytes that each access moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.draw.units import NOT_MEASURED
from tui_probe.probekit.lines import LineMeasure, LineRow, LineRows, Lines, share_text

from .analysis import bytes_of

if TYPE_CHECKING:
    from tui_probe.analysis.by_line import CountsByLine
    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import MemoryBytes


def _rows(of: ProbeResult, counted: CountsByLine[MemoryBytes]) -> LineRows:
    del of
    found = [(line, bytes_of(line)) for line in counted.lines]
    known = [moved for _, moved in found if moved is not None]
    whole = sum(known) if len(known) == len(found) else None
    rows = []
    for line, moved in sorted(found, key=lambda pair: -(pair[1] or 0)):
        share = None if moved is None or whole is None else share_text(moved, whole)
        rows.append(LineRow(line.line, line.source, {"share": share, "bytes": moved}))
    return LineRows(rows, [] if whole is not None else [f"{NOT_MEASURED}: copies by tensor map state no size"])


LINES: Final = Lines((LineMeasure("share"), LineMeasure("bytes", "sum")), "bytes", _rows)
