"""Each recorded store of a NaN or an infinity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.probekit.lines import LineMeasure, LineRow, LineRows, Lines

if TYPE_CHECKING:
    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import NanCheck


def _rows(of: ProbeResult, found: NanCheck) -> LineRows:
    del of
    rows = [
        LineRow(
            each.line,
            each.source,
            {
                "value": each.words,
                "block": ",".join(map(str, each.block)),
                "thread": ",".join(map(str, each.thread)),
                "address": f"{each.address:#x}",
            },
        )
        for each in found.found
    ]
    rows += [LineRow(each.line, each.source, {"value": "not looked at"}) for each in found.unchecked]
    return LineRows(rows, [f"stores of NaN or infinity: {found.stores}; the first of each warp, by time"])


LINES: Final = Lines(
    (LineMeasure("value", "first"), LineMeasure("block"), LineMeasure("thread"), LineMeasure("address")),
    "value",
    _rows,
)
