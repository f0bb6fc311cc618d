"""Tensor maps: what a tile of a tensor is, and where its elements are.

A map has 128 bytes, whose layout is the device's own affair: here as in ``FIELDS``, and in the simulated driver's
``tensor_map.c``. Numbers mean what ``tensormap.replace`` of PTX takes; strides are bytes, without that of the innermost
dimension, which comes first everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.errors import SimulationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAP_BYTES: Final = 128
DIMENSIONS: Final = 5
# Offset in bytes, bytes of an entry, and how many there are.
FIELDS: Final = {
    "global_address": (0, 8, 1),
    "rank": (8, 4, 1),
    "elemtype": (12, 4, 1),
    "interleave_layout": (16, 4, 1),
    "swizzle_mode": (20, 4, 1),
    "fill_mode": (24, 4, 1),
    "global_stride": (32, 8, 4),
    "global_dim": (64, 4, 5),
    "box_dim": (84, 4, 5),
    "element_stride": (104, 4, 5),
}
_ELEMENT_BYTES: Final = (1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2, 4, 4)
_SPANS: Final = (0, 32, 64, 128)
"""Bytes of a row that a swizzle mode exchanges pieces of."""
_PIECE: Final = 16
_LARGEST_TILE: Final = 256 << 10
"""Bytes: more than there is shared memory."""


@dataclass(frozen=True)
class Tile:
    """The elements of a box at some coordinates: their device addresses, and whether each is inside the tensor.

    ``offsets`` are bytes from the start of the tile in shared memory, where all are side by side.
    """

    element_bytes: int
    addresses: NDArray[np.uint64]
    inside: NDArray[np.bool_]
    offsets: NDArray[np.uint64]
    span: int

    @property
    def bytes(self) -> int:
        return len(self.addresses) * self.element_bytes

    def shared_addresses(self, start: int) -> NDArray[np.uint64]:
        """Where the elements are in shared memory, for a tile that begins at ``start``."""
        address = self.offsets + np.uint64(start)
        if self.span:
            address ^= (address >> np.uint64(7) & np.uint64(self.span // _PIECE - 1)) << np.uint64(4)
        return address


class TensorMap:
    """A map out of its bytes. Raises SimulationError for one that is not executed, or was not encoded."""

    def __init__(self, raw: bytes) -> None:
        fields = {name: _entries(raw, *place) for name, place in FIELDS.items()}
        self.rank = fields["rank"][0] + 1
        self._address = fields["global_address"][0]
        kind, mode = fields["elemtype"][0], fields["swizzle_mode"][0]
        if self.rank > DIMENSIONS or kind >= len(_ELEMENT_BYTES) or mode >= len(_SPANS) or not self._address:
            raise SimulationError("a tensor map that was not encoded by cuTensorMapEncodeTiled or tensormap.replace")
        if fields["interleave_layout"][0] or fields["fill_mode"][0]:
            raise SimulationError("a tensor map with interleaved layout, or NaN for what is outside: not executed")
        self.element_bytes = _ELEMENT_BYTES[kind]
        self._span = _SPANS[mode]
        self._strides = [self.element_bytes, *fields["global_stride"]][: self.rank]
        self._extents, self._box, self._steps = (
            fields[name][: self.rank] for name in ("global_dim", "box_dim", "element_stride")
        )
        if not all(self._box) or not all(self._steps) or math.prod(self._box) * self.element_bytes > _LARGEST_TILE:
            raise SimulationError(f"a tensor map with a box of {self._box} elements, every {self._steps}th")
        if self._span and self._box[0] * self.element_bytes != self._span:
            raise SimulationError(f"a tensor map with rows of {self._box[0]} elements in {self._span} swizzled bytes")

    def tile(self, coordinates: list[int]) -> Tile:
        """The box whose first element is at ``coordinates``."""
        counts = [-(-size // step) for size, step in zip(self._box, self._steps, strict=True)]
        linear = np.arange(int(np.prod(counts)), dtype=np.int64)
        address = np.full(len(linear), self._address, np.int64)
        inside = np.ones(len(linear), np.bool_)
        rest = linear
        for count, step, extent, stride, first in zip(
            counts, self._steps, self._extents, self._strides, coordinates, strict=True
        ):
            rest, own = np.divmod(rest, count)
            place = first + own * step
            inside &= (place >= 0) & (place < extent)
            address += place * stride
        offsets = (linear * self.element_bytes).astype(np.uint64)
        return Tile(self.element_bytes, address.astype(np.uint64), inside, offsets, self._span)


def _entries(raw: bytes, start: int, size: int, count: int) -> list[int]:
    return [int.from_bytes(raw[start + size * n : start + size * (n + 1)], "little") for n in range(count)]
