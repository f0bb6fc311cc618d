"""What was asked of memory and of arithmetic, with the operations per byte."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.probekit.finding import Finding, Gain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import Asked

_SECTOR: Final = 32
_MUCH: Final = 0.1
"""The part of all sectors from which on what is wasted stands out."""


def findings(of: ProbeResult, found: Asked) -> Iterator[Finding]:
    """Memory, then arithmetic."""
    del of
    yield from _memory(found)
    yield from _arithmetic(found)


def _memory(found: Asked) -> Iterator[Finding]:
    read, written, sectors = found.read, found.written, found.sectors
    values = {"read": read, "written": written, "sectors": sectors}
    words = f"{units.size(read)} read, {units.size(written)} written"
    if read is None or written is None or sectors is None:
        yield Finding("asked", "memory", f"{words}; copies by tensor map state no size", values=values)
        return
    plain = found.sums["load_sectors"] + found.sums["store_sectors"]
    wasted = _SECTOR * (plain - found.sums["load_ideal"] - found.sums["store_ideal"])
    words += f", in {units.counted(sectors, 'sector')} of 32 B"
    if plain and wasted > _MUCH * plain * _SECTOR:
        words += ", more than they need"
        yield Finding("asked", "memory", words, stands_out=True, asks="coalescing",
                      values=values | {"wasted_bytes": wasted}, gain=Gain(wasted, plain * _SECTOR, "B"))  # fmt: skip
    else:
        yield Finding("asked", "memory", words, values=values)


def _arithmetic(found: Asked) -> Iterator[Finding]:
    kinds = {"tensor": found.tensor_operations, "fp32": found.sums["fp32_operations"],
             "fp64": found.sums["fp64_operations"], "fp16": found.sums["half_operations"]}  # fmt: skip
    parts = [f"{units.count(number)} {name}" for name, number in kinds.items() if number]
    if not parts:
        yield Finding("operations", "operations", "no floating-point operation was executed", values=kinds)
        return
    words = f"{', '.join(parts)} operations"
    moved = None if found.read is None or found.written is None else found.read + found.written
    if moved:
        words += f", {sum(kinds.values()) / moved:.3g} per byte asked for"
    yield Finding("operations", "operations", words, values=kinds)
