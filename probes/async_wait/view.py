"""What the warps of each launch waited for asynchronous work, by what they waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.probekit.count_table import count_kind

if TYPE_CHECKING:
    from tui_probe.analysis.by_line import CountsByLine

    from .analysis import AsyncWaits


def notes(found: CountsByLine[AsyncWaits]) -> list[str]:
    """The newest launch in words."""
    if not found.whole.waits:
        return ["newest launch: no warp waited for asynchronous work"]
    mean = f"{found.whole.cycles_per_wait or 0:.0f}"
    return [f"newest launch: {units.counted(found.whole.waits, 'wait')} by warps, {mean} cycles each on average"]


WAITS: Final = count_kind(
    "waits",
    "Waits",
    "cycles that warps waited for copies, mbarriers and wgmma",
    (
        "Cycles from reaching a wait to coming through, summed over warps: at mbarriers, for groups of cp.async and of"
        " bulk copies, for wgmma. Little is good: then copies and products are there when warps ask for them. A wait"
        " takes some tens of cycles even where all is there already.",
    ),
    order=60,
)
