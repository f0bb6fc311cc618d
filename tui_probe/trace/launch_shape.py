"""Grid, block and shared memory of a launch, and the layout of a result file that follows from them."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

Dim3: TypeAlias = tuple[int, int, int]
Shape: TypeAlias = tuple[int, int, int, int, int, int, int]
"""Grid x y z, block x y z in threads, dynamic shared memory in bytes per block; each at most the largest u32."""

WARP_SIZE: Final = 32
"""Threads of a warp on every NVIDIA GPU."""
SECTOR_BYTES: Final = 32
"""Unit in which L1, L2 and device memory transfer data: what an access of a warp touches is counted in sectors."""


def index_in(linear: int, extent: Dim3) -> Dim3:
    """Return the index (x, y, z) of a block or thread with this linear number in a grid or block."""
    x, y, _ = extent
    return linear % x, linear // x % y, linear // (x * y)


def index_text(index: Dim3) -> str:
    """``2,0,0``."""
    return ",".join(map(str, index))


Level = Literal["thread", "warp"]


class Header(NamedTuple):
    """The launch that a result is of. ``shared`` is the dynamic shared memory in bytes per block.

    ``blocks`` are those of the whole grid, measured or not.
    """

    grid: Dim3
    block: Dim3
    shared: int
    maps: int

    @property
    def blocks(self) -> int:
        x, y, z = self.grid
        return x * y * z

    @property
    def threads(self) -> int:
        """Threads per block."""
        x, y, z = self.block
        return x * y * z

    def slots(self, level: Level) -> int:
        """Slots per block: its threads, or its warps. The last warp may be partial."""
        return self.threads if level == "thread" else -(-self.threads // WARP_SIZE)


class Section(NamedTuple):
    """Position of a map: ``slot_bytes`` per slot, from ``offset`` on."""

    level: Level
    slot_bytes: int
    offset: int

    def size(self, header: Header) -> int:
        return header.blocks * header.slots(self.level) * self.slot_bytes
