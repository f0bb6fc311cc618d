"""Pages of a bandwidth measurement: table, bars, and the sweep over blocks and bytes in flight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.canvas import Canvas
from tui_probe.draw.printable import printable
from tui_probe.draw.spans import clip, hang_line, pad, wrap
from tui_probe.draw.spans import width as cell_width
from tui_probe.draw.table import Column
from tui_probe.draw.table_content import PageTexts
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.draw.view import Document
from tui_probe.pages.table_page import TablePage
from tui_probe.probekit.page_kinds import LazyPage, PageSet
from tui_probe.verdicts.bandwidth import Sweep, bytes_on_card, cache_findings, sweep_findings, sweep_from_rates

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tui_probe.bandwidth.rates import Bandwidth, GpuCard, Rate
    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import View

CACHES_EXPLANATION: Final = (
    "Caches: the memory test reads a buffer at least four times as large as L2, from start to end. When a word is read"
    " again, L2 no longer holds it. The L2 test repeatedly reads a buffer a quarter of the size of L2. Its reads bypass"
    " L1."
)
TIMES_EXPLANATION: Final = (
    "Values are medians over repeats; the first repeat is not counted. Kernels and driver copies are timed with"
    " events. Pageable copies and the disk are timed with the host's clock. A copy counts each byte twice: once for"
    " the read, and once for the write. Spread is the slowest minus the fastest time."
)
BANDWIDTH_EXPLANATION: Final = (
    "Each value is bytes moved divided by time. “of spec.” is the value as a percentage of the specification: the"
    " bandwidth that the clock and the width of the memory bus allow. Reads reach 90 to 95 % of the specification; DRAM"
    " refresh takes the remaining time. Writes and copies reach a lower percentage, because the bus has to change"
    " its direction.",
    "Do caches distort a bandwidth test? Caches distort the test if data is read again before it is evicted. A buffer"
    " that fits in L2 shows the bandwidth of L2, not of memory; the line above the table gives the size of this error"
    " on this GPU. The buffer of the memory test is therefore at least four times as large as L2 and is read once from"
    " start to end. If a launch has few blocks, it reads a small part of the buffer, and the next launch reads the"
    " next part.",
    "What do blocks share? All blocks share L2 and DRAM. The blocks on one SM share its L1, which contains shared"
    " memory; each block has its own part of shared memory. A GPU reaches its bandwidth only with blocks on all SMs."
    " The bytes that an SM has in flight are limited by the buffers of its blocks.",
    "How close is a kernel to these limits? tui-probe roofline TRACES --bandwidth FILE shows probed kernels together"
    " with this measurement.",
)
SWEEP_EXPLANATION: Final = (
    "Rows are numbers of blocks. Columns are the numbers of bytes that each block has in flight, from memory to its"
    " shared memory. Cells show the bandwidth of the whole GPU. By Little's law, bytes in flight = bandwidth ×"
    " latency. A GPU reaches its bandwidth when enough bytes are in flight. The division of bytes among blocks does"
    " not matter.",
    "Bandwidth grows with blocks × bytes per block until enough bytes are in flight. With still more blocks,"
    " requests only wait in queues. If bandwidth falls again, blocks compete in L2 and in the memory queues: this"
    " loss is the cost of contention. The lines above the table show the cost of contention on this GPU.",
    "A kernel with few blocks needs more bytes in flight per block: deeper pipelines, wider loads or more warps."
    " Shared memory and registers limit the bytes in flight. A kernel with many blocks needs few bytes in flight per"
    " block.",
)
_BAR_GROUPS: Final = {
    "On the device": ("memory_read", "memory_write", "memory_copy", "driver_copy", "l2_read", "to_shared"),
    "Between host and device": (
        "host_to_device_pinned", "device_to_host_pinned", "host_to_device_pageable", "device_to_host_pageable",
    ),
    "Disk": ("disk_write", "disk_read"),
}  # fmt: skip
"""Figures that have one scale."""
_NAME_WIDTH: Final = 28
_MIN_BAR_CELLS: Final = 10
_CELL_WIDTH: Final = 9
_BAR_CELLS: Final = 20
_CURVE_ROWS: Final = 12
_CURVE_MARKS: Final = 4
"""Labels of the vertical axis, from the best rate down to 0."""
_AXIS_CELLS: Final = 11
"""Cells left of the curves: the labels of the vertical axis, and the axis."""
_SIGNS: Final = "abcdefghijklmnopqrstuvwxyz"
_MAX_RAMP: Final = 7
"""The last of the roles ramp0 … ramp7."""


def _in_flight_text(rate: Rate) -> str:
    return "" if rate.in_flight is None else units.size(rate.in_flight)


def _percent(share: float | None, form: str = ".0%") -> str:
    return NOT_MEASURED if share is None else format(share, form)


def share_of_limit(rate: Rate) -> float | None:
    """Return the rate as a share of what the specification allows; None if that is unknown."""
    return None if not rate.limit else rate.bytes_per_second / rate.limit


BANDWIDTH_COLUMNS: Final[tuple[Column[Rate], ...]] = (
    Column("key", lambda r: r.key),
    Column("what", lambda r: r.what, "what", lambda r: r.what, right=False, narrow=20),
    Column("blocks", lambda r: r.blocks, "blocks", lambda r: str(r.blocks or ""), rank=1),
    Column("bytes_in_flight", lambda r: r.in_flight, "in flight", lambda r: _in_flight_text(r), rank=1),
    Column("bytes", lambda r: r.size, "moved", lambda r: units.size(r.size), rank=3),
    Column("seconds", lambda r: r.seconds, "median time", lambda r: units.duration(r.seconds), rank=2),
    Column("repeats", lambda r: r.repeats),
    Column("spread", lambda r: r.spread, "spread", lambda r: _percent(r.spread, ".1%"), rank=2),
    Column("bytes_per_second", lambda r: r.bytes_per_second, "bandwidth", lambda r: units.rate(r.bytes_per_second)),
    Column("specified_bytes_per_second", lambda r: r.limit),
    Column("share_of_specification", share_of_limit, "of spec.", lambda r: _percent(share_of_limit(r)), rank=1),
)  # fmt: skip
"""``specified_bytes_per_second`` is null where the driver tells no specification (L2, the way to the host, disks)."""


def bandwidth_page(bandwidth: Bandwidth, *, everything: bool = False) -> TablePage[Rate]:
    """Return the page with a row per rate; ``everything``: also a row per measured pair of blocks and bytes in
    flight.
    """
    card = bandwidth.card
    notes = [CACHES_EXPLANATION, TIMES_EXPLANATION] if card is not None else [TIMES_EXPLANATION]
    rows = [*bandwidth.rates, *bandwidth.swept] if everything else bandwidth.rates
    texts = PageTexts(
        [] if card is None else _page_texts(card), list(cache_findings(bandwidth)), notes, BANDWIDTH_EXPLANATION
    )
    return TablePage("bandwidth", "Bandwidth", BANDWIDTH_COLUMNS, rows, texts, {"device": device_record(card)})


def _page_texts(card: GpuCard) -> list[tuple[str, str]]:
    """Return the device, and what its memory could do by its clock and bus."""
    text = f"{card.name}: {units.counted(card.sms, 'SM')}, L2 {units.size(card.l2_bytes)}, "
    text += f"{units.size(card.memory_bytes)} of memory"
    limit = card.memory_bandwidth
    if limit is None:
        return [("device", text)]
    clock = f"{card.memory_clock_khz / 1000:.0f} MHz × {card.memory_bus_bits} bit × 2"
    return [("device", text), ("specified", f"{units.rate(limit)} ({clock})")]


def device_record(card: GpuCard | None) -> dict[str, Any] | None:
    """Return the device as data; None where only the disk was measured."""
    if card is None:
        return None
    return {
        "name": card.name,
        "sms": card.sms,
        "l2_bytes": card.l2_bytes,
        "memory_bytes": card.memory_bytes,
        "memory_clock_khz": card.memory_clock_khz or None,
        "memory_bus_bits": card.memory_bus_bits or None,
        "memory_bytes_per_second": card.memory_bandwidth,
    }


class BandwidthBars(Document):
    """One bar per value; those of one part of the machine have one scale, and a mark at what is specified."""

    title = "Bandwidth as bars"

    def __init__(self, bandwidth: Bandwidth) -> None:
        self.bandwidth = bandwidth

    def lines(self, width: int) -> Sequence[Line]:
        cells, name_cells = (
            width,
            min(max(cell_width(printable(rate.what)) for rate in self.bandwidth.rates), _NAME_WIDTH),
        )
        lines: list[Line] = []
        for title, rates in self._groups():
            lines += [((title, "title"),), *self._bars(rates, cells, name_cells), ()]
        if any(rate.limit for rate in self.bandwidth.rates):
            legend = (
                "“│” marks the limit that the clock and the width of the memory bus set. Each group is scaled to its"
                " longest bar or mark."
            )
            lines += [((part, "dim"),) for part in wrap(legend, cells)]
        for paragraph in BANDWIDTH_EXPLANATION:
            lines += [(), *(((part, ""),) for part in wrap(paragraph, cells))]
        return lines

    def _groups(self) -> Iterator[tuple[str, list[Rate]]]:
        """Yield the values by part, those of a name that is not known last."""
        rates = self.bandwidth.rates
        for title, keys in _BAR_GROUPS.items():
            group = [rate for rate in rates if rate.key in keys]
            if group:
                yield title, group
        grouped_keys = {key for keys in _BAR_GROUPS.values() for key in keys}
        other_rates = [rate for rate in rates if rate.key not in grouped_keys]
        if other_rates:
            yield "Other", other_rates

    def _bars(self, rates: Sequence[Rate], cells: int, name_cells: int) -> Iterator[Line]:
        """Bars of one scale behind names of ``name_cells`` cells."""
        scale = max(max(rate.bytes_per_second, rate.limit or 0.0) for rate in rates)
        end_texts = [_end_text(rate) for rate in rates]
        end_cells = max(map(cell_width, end_texts))
        bar_cells = max(cells - name_cells - end_cells - 5, _MIN_BAR_CELLS)
        for rate, end in zip(rates, end_texts, strict=True):
            filled_cells = max(round(bar_cells * rate.bytes_per_second / scale), 1)
            limit_cells = min(round(bar_cells * (rate.limit or 0.0) / scale), bar_cells)
            bar = "█" * filled_cells
            tail = " " * max(limit_cells - filled_cells, 0) + "│" if limit_cells > filled_cells else ""
            yield (
                (f"  {pad(clip(printable(rate.what), name_cells), name_cells)} ", ""),
                (bar, "ramp6"),
                (pad(tail, bar_cells + 1 - filled_cells), "accent"),
                (pad(end, end_cells, right=True), ""),
            )

    def record(self) -> Mapping[str, Any]:
        page = bandwidth_page(self.bandwidth)
        return {"page": "bars", **page.fields(), "bandwidth": [*page.records()]}

    def cells(self) -> Iterator[Sequence[object]]:
        return bandwidth_page(self.bandwidth).cells()


def _end_text(rate: Rate) -> str:
    share = share_of_limit(rate)
    return units.rate(rate.bytes_per_second) + ("" if share is None else f" {share:4.0%}")


class SweepPage(Document):
    """All that was tried, with the best of each row as a bar; then the same as curves over the number of blocks."""

    title = "Memory to shared memory, GB/s; rows: blocks, columns: bytes in flight per block"

    def __init__(self, sweep: Sweep, card: GpuCard | None, *, explained: bool = False) -> None:
        self.sweep, self.card, self.explained = sweep, card, explained

    def lines(self, width: int) -> Sequence[Line]:
        lines: list[Line] = [((self.title, "title"),)]
        for finding in sweep_findings(self.sweep, self.card):
            lines += [((part, ""),) for part in hang_line(finding, width)]
        lines += [(), *self._table(width), (), *self._curves(width)]
        for paragraph in SWEEP_EXPLANATION if self.explained else ():
            lines += [(), *(((part, ""),) for part in wrap(paragraph, width))]
        return lines

    def _table(self, cells: int) -> Iterator[Line]:
        sweep = self.sweep
        heading = "".join(pad(units.size(flight), _CELL_WIDTH, right=True) for flight in sweep.flights)
        yield ((f"{'blocks':>8}", "head"), (heading, "head"))
        has_bars = 8 + _CELL_WIDTH * len(sweep.flights) + 2 + _BAR_CELLS <= cells
        for blocks in sweep.blocks:
            spans: list[tuple[str, str]] = [(f"{units.count(blocks):>8}", "head")]
            for flight in sweep.flights:
                rate = sweep.rate_for(blocks, flight)
                text = NOT_MEASURED if rate is None else units.count(round(rate.bytes_per_second / 1e9))
                role = "dim" if rate is None else f"ramp{round(_MAX_RAMP * sweep.share(rate))}"
                spans.append((pad(text, _CELL_WIDTH, right=True), role))
            best = sweep.best_of(blocks)
            if has_bars and best is not None:
                spans += [("  ", ""), ("█" * max(round(_BAR_CELLS * sweep.share(best)), 1), "ramp6")]
            yield tuple(spans)

    def _curves(self, cells: int) -> Iterator[Line]:
        """Bandwidth up, the tried numbers of blocks across at equal steps, a letter for the bytes in flight.

        Where several letters meet, that of the fewest bytes is shown.
        """
        sweep, plot_cells = self.sweep, cells - _AXIS_CELLS - 1
        maximum, rows = sweep.best.bytes_per_second, _CURVE_ROWS
        canvas = Canvas(cells, rows + 2)
        step = min(max(plot_cells // max(len(sweep.blocks), 1), 6), 16)
        for mark in range(_CURVE_MARKS):
            share = 1 - mark / (_CURVE_MARKS - 1)
            label = units.rate(maximum * share) if share else "0"
            canvas.text(0, round((1 - share) * (rows - 1)), f"{label:>{_AXIS_CELLS - 2}} ┤", "dim")
        for place, blocks in enumerate(sweep.blocks):
            column = _AXIS_CELLS + place * step + step // 2
            canvas.text(column - len(units.count(blocks)) + 1, rows + 1, units.count(blocks), "dim")
            for sign, flight in reversed([*zip(_SIGNS, sweep.flights, strict=False)]):
                rate = sweep.rate_for(blocks, flight)
                if rate is not None:
                    row = round((1 - rate.bytes_per_second / maximum) * (rows - 1))
                    canvas.text(column, row, sign, f"hue{_SIGNS.index(sign) % 6}")
        canvas.text(_AXIS_CELLS, rows, "─" * min(step * len(sweep.blocks), plot_cells), "rule")
        yield from canvas.lines()
        signs = (
            f"{sign} {units.size(flight)}".replace(" ", "\u00a0")
            for sign, flight in zip(_SIGNS, sweep.flights, strict=False)
        )
        for part in wrap(f"x axis: blocks; in flight per block: {'   '.join(signs)}", cells):
            yield ((part, "dim"),)

    def record(self) -> Mapping[str, Any]:
        return {
            "page": "sweep",
            "device": device_record(self.card),
            "sweep": [self._row(rate) for rate in self._rates()],
        }

    def _rates(self) -> list[Rate]:
        return sorted(self.sweep.rates, key=lambda rate: (rate.blocks or 0, rate.in_flight or 0))

    @staticmethod
    def _row(rate: Rate) -> dict[str, object]:
        return {
            "blocks": rate.blocks,
            "bytes_in_flight_a_block": rate.in_flight,
            "bytes_in_flight": bytes_on_card(rate),
            "bytes_per_second": rate.bytes_per_second,
        }

    def cells(self) -> Iterator[Sequence[object]]:
        yield list(self._row(self.sweep.best))
        yield from (list(self._row(rate).values()) for rate in self._rates())


def open_bandwidth(bandwidth: Bandwidth, title: str) -> PageSet:
    """Return the values as a table and as bars, and the sweep where there was one."""

    def table() -> View:
        page = bandwidth_page(bandwidth)
        page.shows_explanation = True
        return page.prepare()

    pages = [
        LazyPage("bandwidth", "Figures", table, BANDWIDTH_EXPLANATION),
        LazyPage("bars", "Bars", lambda: BandwidthBars(bandwidth), BANDWIDTH_EXPLANATION),
    ]
    sweep = sweep_from_rates(bandwidth.swept)
    if sweep is not None:
        complete_sweep = sweep
        blocks = LazyPage(
            "sweep",
            "Blocks",
            lambda: SweepPage(complete_sweep, bandwidth.card, explained=True),
            SWEEP_EXPLANATION,
            in_text=True,
        )
        pages.append(blocks)
    return PageSet(title, pages)
