"""Requests to global memory and the 32-byte sectors that they touch, launch by launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.analysis.gmem_sectors import MemorySectors
from tui_probe.probekit.count_table import count_kind

if TYPE_CHECKING:
    from tui_probe.analysis.counts import Counts

_SCALE: Final = (
    "32 lanes side by side take 4 for 4 bytes each, 8 for 8 and 16 for 16; 32: each lane has a sector of its own"
)


def _notes(counts: Counts) -> list[str]:
    if not isinstance(counts, MemorySectors):
        return []
    ratios = (("load", counts.sectors_per_load), ("store", counts.sectors_per_store))
    said = [f"a {name} touches {ratio:.2f} sectors of 32 B" for name, ratio in ratios if ratio is not None]
    return [*said, _SCALE] if said else []


KIND = count_kind(
    "sectors",
    "Sectors",
    "requests to global memory and sectors a request, by launch",
    ("gmem_sectors", "gmem_sectors_by_line"),
    _notes,
)
