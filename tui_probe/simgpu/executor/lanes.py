"""Sets of threads that execute together, and what warp-level operations need to know of them.

The threads of a batch of blocks are numbered by *place*: block in the batch × warps of a block × 32 + thread. So
a warp is 32 places in a row; the places past the end of a block whose size is not a multiple of 32 are empty.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tui_probe.simgpu.executor.model import WARP_SIZE

Places = NDArray[np.intp]

ALL_WARPS: Final = slice(None)


class Lanes:
    """An unchanging, ascending set of places. ``places_per_block`` is a multiple of 32.

    Derived arrays are made when first asked for, and kept. Arrays named in the singular hold one element
    per lane.
    """

    def __init__(self, places: Places, places_per_block: int, block_count: int) -> None:
        self.places = places
        self.count = len(places)
        self.places_per_block = places_per_block
        self.block_count = block_count
        self.cache: dict[Any, Any] = {}

    @cached_property
    def block(self) -> Places:
        """The block in the batch of each lane."""
        return self.places // self.places_per_block

    @cached_property
    def thread(self) -> Places:
        """The linear index in its block of each lane."""
        return self.places % self.places_per_block

    @cached_property
    def warp(self) -> Places:
        """The warp in the batch of each lane."""
        return self.places // WARP_SIZE

    @cached_property
    def lane(self) -> Places:
        """The lane number, 0 to 31, of each lane."""
        return self.places % WARP_SIZE

    @property
    def place_count(self) -> int:
        """Places in the batch, empty ones too."""
        return self.places_per_block * self.block_count

    @cached_property
    def position(self) -> Places:
        """Positions in this set of all positions of the batch, -1 for missing ones."""
        position = np.full(self.place_count, -1, np.intp)
        position[self.places] = np.arange(self.count)
        return position

    @cached_property
    def warps(self) -> Places | slice:
        """The warps with at least one lane here, ascending; a slice of everything if that is all of them."""
        warp = self.warp
        is_first = np.empty(self.count, np.bool_)
        is_first[:1] = True
        np.not_equal(warp[1:], warp[:-1], out=is_first[1:])
        warps = warp[is_first]
        return ALL_WARPS if len(warps) == self.place_count // WARP_SIZE else warps

    @cached_property
    def warp_count(self) -> int:
        """Number of warps with a lane in this set."""
        return self.place_count // WARP_SIZE if isinstance(self.warps, slice) else len(self.warps)

    @cached_property
    def active_bits(self) -> NDArray[np.uint32]:
        """The active lanes of each warp of the batch, lane 0 in bit 0."""
        present = np.zeros(self.place_count, np.bool_)
        present[self.places] = True
        return warp_bits(present)

    def ballot(self, predicate: NDArray[np.bool_]) -> NDArray[np.uint32]:
        """Return, per warp of the batch, the lanes for which ``predicate`` (one per lane, or a scalar) holds."""
        present = np.zeros(self.place_count, np.bool_)
        present[self.places] = predicate
        return warp_bits(present)

    def select(self, index: Places) -> Lanes:
        """The lanes at the ascending positions ``index``."""
        return Lanes(self.places[index], self.places_per_block, self.block_count)

    def spread(self, value: NDArray[Any]) -> NDArray[Any]:
        """``value`` with one element per lane, also if it is a scalar."""
        return value if value.ndim else np.broadcast_to(value, self.count)


def warp_bits(present: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """Booleans by place, packed into one word per warp."""
    return np.packbits(present, bitorder="little").view(np.dtype("<u4"))


def missing_lanes(members: int, elsewhere: int) -> str:
    """``lanes 0-15 of the mask 0xffffffff have not arrived``: those of ``members`` that are ``elsewhere``."""
    lanes = [lane for lane in range(WARP_SIZE) if (members & elsewhere) >> lane & 1]
    range_starts = [lane for lane in lanes if lane - 1 not in lanes]
    range_ends = [lane for lane in lanes if lane + 1 not in lanes]
    ranges = [
        str(start) if start == end else f"{start}-{end}" for start, end in zip(range_starts, range_ends, strict=True)
    ]
    number, verb = ("lane", "has") if len(lanes) == 1 else ("lanes", "have")
    return f"{number} {', '.join(ranges)} of the mask {members:#x} {verb} not arrived"
