"""Results whose numbers may be taken together: those of whole launches, or of as many blocks of as many.

A sum over some blocks is no smaller sum over all: where a budget lets a few launches be recorded whole and others for a
sample of their blocks, a mean of both is of nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.draw import units

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tui_probe.probekit.measured import Measured

Extent = tuple[int, int] | None
"""Blocks that were measured, and those of the grid; None for all of any grid."""


def extent_of(result: Measured) -> Extent:
    """Of how much of its launch a result is. One that cannot be read has no numbers, and counts as whole."""
    if result.sample is None or result.blocks is None:
        return None
    return len(result.sample.blocks), result.blocks


def by_extent(results: Iterable[Measured]) -> dict[Extent, list[Measured]]:
    """Those that may be taken together: whole launches first, then samples, the most blocks first."""
    found: dict[Extent, list[Measured]] = {}
    for result in results:
        found.setdefault(extent_of(result), []).append(result)
    return dict(sorted(found.items(), key=lambda each: (each[0] is not None, [-blocks for blocks in each[0] or ()])))


def alike(results: Iterable[Measured]) -> tuple[Extent, list[Measured]]:
    """Those that one number is made of: whole launches where there are any, else the samples of most blocks."""
    analysed = [result for result in results if result.analysis is not None]
    return next(iter(by_extent(analysed).items()), (None, []))


def extent_words(extent: Extent) -> str:
    """``64 of 1 024 blocks``, "" for all."""
    return "" if extent is None else f"{units.count(extent[0])} of {units.counted(extent[1], 'block')}"
