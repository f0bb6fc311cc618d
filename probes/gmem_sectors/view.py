"""Requests to global memory and the 32-byte sectors that they touch, launch by launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.probekit.count_table import count_kind

if TYPE_CHECKING:
    from .analysis import MemorySectors

_SCALE: Final = "coalesced: 4 sectors for 4 bytes per lane, 8 for 8 and 16 for 16; worst: 32, one per lane"


def notes(found: MemorySectors) -> list[str]:
    """Loads and stores of the newest launch, and what their numbers mean."""
    ratios = (("load", found.sectors_per_load), ("store", found.sectors_per_store))
    said = [f"a {name} touches {ratio:.2f} sectors of 32 B" for name, ratio in ratios if ratio is not None]
    return [*said, _SCALE] if said else []


SECTORS: Final = count_kind(
    "sectors",
    "Sectors",
    "requests to global memory and sectors per request, by launch",
    (
        "A request is one load or store that a warp executes with at least one active lane; a sector is 32 bytes. 4"
        " sectors per request mean 4 bytes per lane, side by side; 32 mean that each lane is in a sector of its own."
        " ncu counts the same way.",
    ),
    order=80,
)
