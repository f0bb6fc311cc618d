"""Measured bandwidth as a table, and what it says of caches and blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.table import Column
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.pages.bandwidth.explanations import BANDWIDTH, CACHES, TIMES
from tui_probe.pages.bandwidth.findings import cache_findings
from tui_probe.pages.table_page import TablePage, Words

if TYPE_CHECKING:
    from tui_probe.bandwidth.figures import Bandwidth, Card, Figure


def _in_flight(rate: Figure) -> str:
    return "" if rate.in_flight is None else units.size(rate.in_flight)


def _percent(share: float | None, form: str = ".0%") -> str:
    return NOT_MEASURED if share is None else format(share, form)


def share_of_limit(rate: Figure) -> float | None:
    """Of what the specification allows; None where it says nothing."""
    return None if not rate.limit else rate.bytes_per_second / rate.limit


COLUMNS: Final[tuple[Column[Figure], ...]] = (
    Column("key", lambda r: r.key),
    Column("what", lambda r: r.what, "what", lambda r: r.what, False, narrow=20),
    Column("blocks", lambda r: r.blocks, "blocks", lambda r: str(r.blocks or ""), rank=1),
    Column("bytes_in_flight", lambda r: r.in_flight, "in flight", lambda r: _in_flight(r), rank=1),
    Column("bytes", lambda r: r.size, "moved", lambda r: units.size(r.size), rank=3),
    Column("seconds", lambda r: r.seconds, "median time", lambda r: units.duration(r.seconds), rank=2),
    Column("repeats", lambda r: r.repeats),
    Column("spread", lambda r: r.spread, "spread", lambda r: _percent(r.spread, ".1%"), rank=2),
    Column("bytes_per_second", lambda r: r.bytes_per_second, "bandwidth", lambda r: units.rate(r.bytes_per_second)),
    Column("specified_bytes_per_second", lambda r: r.limit),
    Column("share_of_specification", share_of_limit, "of spec.", lambda r: _percent(share_of_limit(r)), rank=1),
)  # fmt: skip
"""``specified_bytes_per_second`` is null where the driver tells no specification (L2, the way to the host, disks)."""


def bandwidth_page(measured: Bandwidth, *, everything: bool = False) -> TablePage[Figure]:
    """One row per figure; ``everything``: also a row for each pair of blocks and bytes in flight that was tried."""
    card = measured.card
    notes = [CACHES, TIMES] if card is not None else [TIMES]
    rows = [*measured.rates, *measured.swept] if everything else measured.rates
    words = Words([] if card is None else _head(card), list(cache_findings(measured)), notes, BANDWIDTH)
    return TablePage("bandwidth", "Bandwidth", COLUMNS, rows, words, {"device": device_record(card)})


def _head(card: Card) -> list[tuple[str, str]]:
    """The device, and what its memory could do by its clock and bus."""
    words = f"{card.name}: {units.counted(card.sms, 'SM')}, L2 {units.size(card.l2_bytes)}, "
    words += f"{units.size(card.memory_bytes)} of memory"
    limit = card.memory_bandwidth
    if limit is None:
        return [("device", words)]
    clock = f"{card.memory_clock_khz / 1000:.0f} MHz × {card.memory_bus_bits} bit × 2"
    return [("device", words), ("specified", f"{units.rate(limit)} ({clock})")]


def device_record(card: Card | None) -> dict[str, Any] | None:
    """The device as data; None where only the disk was measured."""
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
