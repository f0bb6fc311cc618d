"""Requests to global memory and the 32-byte sectors that they touch, launch by launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.analysis.gmem_sectors import MemorySectors
from tui_probe.render.count_table import count_kind

if TYPE_CHECKING:
    from tui_probe.analysis.counts import Counts

_COALESCED: Final = 4
"""Sectors of a request whose 32 lanes take 4 bytes each, side by side."""
_MOST: Final = 32


def _notes(counts: Counts) -> list[str]:
    if not isinstance(counts, MemorySectors):
        return []
    notes = []
    for name, ratio in (("load", counts.sectors_per_load), ("store", counts.sectors_per_store)):
        if ratio is not None:
            notes.append(
                f"a {name} touches {ratio:.2f} sectors of 32 B: {ratio / _COALESCED:.2f} times the {_COALESCED} of "
                f"4 bytes a lane side by side; {_MOST} is a lane in a sector of its own"
            )
    return notes


KIND = count_kind(
    "sectors",
    "Sectors",
    "requests to global memory and sectors a request, by launch",
    ("gmem_sectors", "gmem_sectors_by_line"),
    _notes,
)
