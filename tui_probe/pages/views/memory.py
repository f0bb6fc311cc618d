"""Bytes that each launch read from and wrote to global memory, and by which way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.analysis.gmem_bytes import MemoryBytes
from tui_probe.draw import units
from tui_probe.probekit.count_table import count_kind

if TYPE_CHECKING:
    from tui_probe.analysis.counts import Counts


def _notes(counts: Counts) -> list[str]:
    if not isinstance(counts, MemoryBytes):
        return []
    sizes = f"{units.size(counts.read)} read, {units.size(counts.written)} written"
    words = f"newest launch: {sizes}, as instructions ask for"
    if counts.tensor_loads or counts.tensor_stores:
        words += "; copies by tensor map name no size, so the sum is not known"
    return [words]


KIND = count_kind(
    "memory",
    "Memory",
    "bytes of global memory that each launch read and wrote",
    ("gmem_bytes", "gmem_bytes_by_line"),
    _notes,
)
