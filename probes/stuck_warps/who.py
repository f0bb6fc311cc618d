"""Words for places, warps and lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.probekit.finding import place as place_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .analysis import StuckWarp, StuckWarps, WarpPlace

_ALL_LANES: Final = 0xFFFFFFFF
_MOST_RANGES: Final = 4


def whole_place(place: WarpPlace) -> str:
    """``bar.sync PTX:19 tile.cu:12``; before the first place that is known, ``the entry``."""
    return place_text(place.line, place.source, place.opcode or None) if place.line else "the entry"


def warp_words(found: StuckWarps, warp: StuckWarp) -> str:
    """``block 3 warp 1``, with the block's coordinates in a grid of more than one dimension."""
    x, y, z = found.grid
    index = warp.block
    where = str(index) if y * z == 1 else f"({index % x},{index // x % y},{index // (x * y)})"
    return f"block {where} warp {warp.warp}"


def lane_words(mask: int) -> str:
    """``lane 0``, ``lanes 1-31``, ``all lanes``."""
    if mask == _ALL_LANES:
        return "all lanes"
    lanes = [lane for lane in range(32) if mask >> lane & 1]
    return f"{'lane' if len(lanes) == 1 else 'lanes'} {range_words(lanes)}"


def range_words(numbers: Iterable[int]) -> str:
    """``0-2, 5``; of many ranges the first ones, and how many numbers there are."""
    ordered = sorted(set(numbers))
    ranges = _ranges(ordered)
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in ranges[:_MOST_RANGES]]
    more = f", … ({units.count(len(ordered))})" if len(ranges) > _MOST_RANGES else ""
    return ", ".join(texts) + more


def _ranges(ordered: Sequence[int]) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    for number in ordered:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1] = ranges[-1][0], number
        else:
            ranges.append((number, number))
    return ranges
