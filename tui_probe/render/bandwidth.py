"""Measured bandwidth as a table, and the sweep over blocks and bytes in flight as a chart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tui_probe.render import units
from tui_probe.render.hanging import hanging
from tui_probe.render.spans import pad
from tui_probe.render.table import Column
from tui_probe.render.units import NOT_MEASURED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.bandwidth.device import Properties
    from tui_probe.bandwidth.measure import Rate

_BAR: Final = 20


def rate_text(bytes_per_second: float | None) -> str:
    """``4.02 TB/s``; powers of 1000."""
    return NOT_MEASURED if bytes_per_second is None else f"{units.size(bytes_per_second)}/s"


def _in_flight(rate: Rate) -> str:
    return "" if rate.in_flight is None else units.size(rate.in_flight)


def _percent(share: float | None) -> str:
    return NOT_MEASURED if share is None else f"{share:.0%}"


def _share(rate: Rate) -> float | None:
    return None if rate.limit is None else rate.bytes_per_second / rate.limit


COLUMNS: Final[tuple[Column[Rate], ...]] = (
    Column("key", lambda r: r.key),
    Column("what", lambda r: r.what, "what", lambda r: r.what, False, narrow=20),
    Column("blocks", lambda r: r.blocks, "blocks", lambda r: str(r.blocks or ""), rank=1),
    Column("bytes_in_flight", lambda r: r.in_flight, "in flight", lambda r: _in_flight(r), rank=1),
    Column("bytes", lambda r: r.size, "moved", lambda r: units.size(r.size), rank=3),
    Column("seconds", lambda r: r.seconds, "median time", lambda r: units.duration(r.seconds), rank=2),
    Column("repeats", lambda r: len(r.times)),
    Column("spread", lambda r: r.spread, "spread", lambda r: f"{r.spread:.1%}", rank=2),
    Column("bytes_per_second", lambda r: r.bytes_per_second, "bandwidth", lambda r: rate_text(r.bytes_per_second)),
    Column("specified_bytes_per_second", lambda r: r.limit),
    Column("share_of_specification", _share, "of spec.", lambda r: _percent(_share(r)), rank=1),
)  # fmt: skip
"""``specified_bytes_per_second`` is null where the driver tells no specification (L2, the way to the host, disks)."""


def head_record(properties: Properties | None) -> dict[str, Any]:
    """The device as JSON; ``device`` is null where only the disk was measured."""
    if properties is None:
        return {"page": "bandwidth", "device": None}
    device = {
        "name": properties.name,
        "sms": properties.sms,
        "l2_bytes": properties.l2_bytes,
        "memory_bytes": properties.memory_bytes,
        "memory_clock_khz": properties.memory_clock_khz or None,
        "memory_bus_bits": properties.memory_bus_bits or None,
        "memory_bytes_per_second": properties.memory_bandwidth,
    }
    return {"page": "bandwidth", "device": device}


def head_lines(properties: Properties, cells: int) -> Iterator[str]:
    """The device, and what its memory could do by its clock and bus."""
    limit = properties.memory_bandwidth
    words = f"{properties.name}: {units.counted(properties.sms, 'SM')}, L2 {units.size(properties.l2_bytes)}, "
    words += f"{units.size(properties.memory_bytes)} of memory"
    if limit is not None:
        clock = f"{properties.memory_clock_khz / 1000:.0f} MHz × {properties.memory_bus_bits} bit × 2"
        words += f", specified {rate_text(limit)} ({clock})"
    yield from hanging(words, cells)


_CACHES: Final = (
    "Caches: memory is a buffer at least four times as large as L2, gone through end to end, so that no word is still"
    " in L2 at its next turn; L2 is a quarter of its size, read again and again past L1."
)
_TIMES: Final = (
    "Medians of repeats after one that does not count; kernels and driver copies by events, pageable copies and the"
    " disk by the host's clock. A copy counts each byte twice, read and written. Spread: slowest less fastest."
)

SWEEP_NOTE: Final = (
    "What a number of blocks costs: by Little's law the bytes in flight on the whole card must be bandwidth × latency."
    " Few blocks cannot have that many on their way, whatever each does; with many blocks fewer bytes a block"
    " suffice, and more of them only queue."
)


def note_lines(cells: int, *, on_gpu: bool) -> Iterator[str]:
    """How it was measured."""
    for note in (_CACHES, _TIMES) if on_gpu else (_TIMES,):
        yield from hanging(note, cells)


def sweep_lines(rates: Sequence[Rate], cells: int) -> Iterator[str]:
    """A row a number of blocks, a column a number of bytes in flight; bars show the best of each row."""
    flights = sorted({rate.in_flight or 0 for rate in rates})
    best = max(rates, key=lambda rate: rate.bytes_per_second)
    yield "Device to shared memory, GB/s, by blocks (rows) and bytes in flight a block (columns)"
    yield pad("blocks", 8, right=True) + "".join(pad(units.size(flight), 9, right=True) for flight in flights)
    for blocks in sorted({rate.blocks or 0 for rate in rates}):
        row = {rate.in_flight: rate for rate in rates if rate.blocks == blocks}
        line = pad(str(blocks), 8, right=True)
        for flight in flights:
            value = f"{row[flight].bytes_per_second / 1e9:.0f}" if flight in row else NOT_MEASURED
            line += pad(value, 9, right=True)
        top = max(rate.bytes_per_second for rate in row.values())
        bar = "█" * round(_BAR * top / best.bytes_per_second)
        yield (f"{line}  {bar}" if len(line) + 2 + _BAR <= cells else line).rstrip()
    flight_text = f"{units.size(best.in_flight)} in flight in each"
    yield f"best: {units.counted(best.blocks or 0, 'block')}, {flight_text}: {rate_text(best.bytes_per_second)}"
    yield from hanging(SWEEP_NOTE, cells)
