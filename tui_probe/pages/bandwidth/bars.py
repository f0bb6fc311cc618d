"""Measured bandwidth as bars, beside what the specification allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.formats import as_record
from tui_probe.draw.spans import clip, pad, wrap
from tui_probe.draw.spans import width as cell_width
from tui_probe.draw.table import in_data, safe
from tui_probe.draw.view import Document
from tui_probe.pages.bandwidth.explanations import BANDWIDTH
from tui_probe.pages.bandwidth.table_page import COLUMNS, device_record, share_of_limit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tui_probe.bandwidth.figures import Bandwidth, Figure
    from tui_probe.draw.spans import Line

_PARTS: Final = {
    "On the device": ("memory_read", "memory_write", "memory_copy", "driver_copy", "l2_read", "to_shared"),
    "Between host and device": (
        "host_to_device_pinned", "device_to_host_pinned", "host_to_device_pageable", "device_to_host_pageable",
    ),
    "Disk": ("disk_write", "disk_read"),
}  # fmt: skip
"""Figures that have one scale."""
_NAME: Final = 28
_LEAST_BAR: Final = 10


class BandwidthBars(Document):
    """One bar per figure; those of one part of the machine have one scale, and a mark at what is specified."""

    title = "Bandwidth as bars"

    def __init__(self, measured: Bandwidth) -> None:
        self.measured = measured

    def lines(self, width: int) -> Sequence[Line]:
        cells, name = width, min(max(cell_width(safe(rate.what)) for rate in self.measured.rates), _NAME)
        lines: list[Line] = []
        for title, rates in self._parts():
            lines += [((title, "title"),), *self._bars(rates, cells, name), ()]
        if any(rate.limit for rate in self.measured.rates):
            legend = "│ limit by clock and width of the memory bus. The longest bar or mark of a part sets its scale."
            lines += [((part, "dim"),) for part in wrap(legend, cells)]
        for paragraph in BANDWIDTH:
            lines += [(), *(((part, ""),) for part in wrap(paragraph, cells))]
        return lines

    def _parts(self) -> Iterator[tuple[str, list[Figure]]]:
        """The figures by part, those of a name that is not known last."""
        rates = self.measured.rates
        for title, keys in _PARTS.items():
            found = [rate for rate in rates if rate.key in keys]
            if found:
                yield title, found
        known = {key for keys in _PARTS.values() for key in keys}
        others = [rate for rate in rates if rate.key not in known]
        if others:
            yield "Other", others

    def _bars(self, rates: Sequence[Figure], cells: int, name: int) -> Iterator[Line]:
        """Bars of one scale behind names of ``name`` cells."""
        scale = max(max(rate.bytes_per_second, rate.limit or 0.0) for rate in rates)
        ends = [_end(rate) for rate in rates]
        last = max(map(cell_width, ends))
        room = max(cells - name - last - 5, _LEAST_BAR)
        for rate, end in zip(rates, ends, strict=True):
            filled = max(round(room * rate.bytes_per_second / scale), 1)
            mark = min(round(room * (rate.limit or 0.0) / scale), room)
            bar = "█" * filled
            rest = " " * max(mark - filled, 0) + "│" if mark > filled else ""
            yield (
                (f"  {pad(clip(safe(rate.what), name), name)} ", ""),
                (bar, "ramp6"),
                (pad(rest, room + 1 - filled), "accent"),
                (pad(end, last, right=True), ""),
            )

    def record(self) -> Mapping[str, Any]:
        rates = [as_record(COLUMNS, rate) for rate in self.measured.rates]
        return {"page": "bars", "device": device_record(self.measured.card), "bandwidth": rates}

    def cells(self) -> Iterator[Sequence[object]]:
        columns = in_data(COLUMNS)
        yield [column.key for column in columns]
        for rate in self.measured.rates:
            yield [column.value(rate) for column in columns if column.value is not None]


def _end(rate: Figure) -> str:
    share = share_of_limit(rate)
    return units.rate(rate.bytes_per_second) + ("" if share is None else f" {share:4.0%}")
