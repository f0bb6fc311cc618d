"""Bytes of global memory that each launch read and wrote, and by which way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.probekit.count_table import count_kind

if TYPE_CHECKING:
    from .analysis import MemoryBytes


def notes(found: MemoryBytes) -> list[str]:
    """The newest launch in words."""
    words = (
        f"newest launch: {units.size(found.read)} read, {units.size(found.written)} written, as instructions ask for"
    )
    if found.tensor_loads or found.tensor_stores:
        words += "; copies by tensor map state no size, so the sum is unknown"
    return [words]


MEMORY: Final = count_kind(
    "memory",
    "Memory",
    "bytes of global memory that each launch read and wrote",
    (
        "Bytes that executed instructions asked for, per launch, before any cache. Divided by the time of the original"
        " they give the bandwidth that the kernel asks for, not what DRAM moves.",
    ),
    order=70,
)
