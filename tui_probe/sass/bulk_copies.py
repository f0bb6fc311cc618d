"""Bulk copies (TMA) in SASS: their direction, and the uniform registers of their addresses, sizes and coordinates.

One warp instruction starts a copy of any size between global and shared memory, by address or by tensor map.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.sass.uniform_registers import uniform_bits

if TYPE_CHECKING:
    from tui_probe.sass.target import GraftTarget
    from tui_probe.sass.words import Word

_TENSOR_LOAD, _TENSOR_STORES, _TENSOR_PREFETCH = 0x1B4, frozenset({0x1B5, 0x1B6}), 0x1B8
"""UTMALDG; UTMASTG and UTMAREDG; UTMAPF."""
_BEFORE_COORDINATES: Final = {_TENSOR_LOAD: 2, **dict.fromkeys(_TENSOR_STORES, 1), _TENSOR_PREFETCH: 0}
"""Uniform registers before the coordinates: the address in shared memory, and that of the mbarrier."""
_TENSOR_COPIES: Final = frozenset(_BEFORE_COORDINATES)
_BULK_COPIES: Final = frozenset({0x1BA, 0x1BB})
"""UBLKCP, UBLKRED."""
_BULK_PREFETCH: Final = 0x1BC
UNIFORM_COPIES: Final = _TENSOR_COPIES | _BULK_COPIES | {_BULK_PREFETCH}
_DIRECTION: Final = 73, 2
_TO_SHARED, _TO_GLOBAL = 1, 2
_SIZE_REGISTER: Final = 64
_FIRST_OPERAND, _SECOND_OPERAND = 32, 24
"""Positions of uniform registers with the operands of copies: in shared memory the address, and of loads the mbarrier,
then the coordinates of a box; in global memory the address of the bytes or of the map.
"""
_MULTICAST: Final = 75, 1
_FORM, _LAST_DIMENSION = (82, 3), (79, 3)
"""Fields of copies by tensor map: 0 for tiles, others for pixels (im2col) and gathers; the dimensions, less 1."""


@dataclass(frozen=True, slots=True)
class BulkCopy:
    """A bulk copy between global and shared memory, or a prefetch of one, which a warp executes once for all its lanes.

    ``size`` is the uniform register whose low 16 bits are the size in units of 16 bytes; None if a tensor map has it.
    ``address`` is the first of two uniform registers with the address of the bytes, or of the map. A box has that many
    ``dimensions``, and its coordinates are in the uniform registers from ``coordinates`` on; 0 for other forms.
    """

    is_load: bool
    is_prefetch: bool
    size: int | None
    address: int
    coordinates: int = 0
    dimensions: int = 0
    is_multicast: bool = False

    @property
    def suffix(self) -> str:
        """``.2D``, ``.S.G.MULTICAST``: what follows the name of the instruction."""
        form = f".{self.dimensions}D" if self.dimensions else ""
        if self.size is not None and not self.is_prefetch:
            form = ".S.G" if self.is_load else ".G.S"
        return form + ".MULTICAST" * self.is_multicast


def bulk_copy_of(word: Word, arch: int) -> BulkCopy | None:
    """Return the bulk copy that an instruction starts; None for other instructions, and between shared memories."""
    operation = word.operation
    if operation not in UNIFORM_COPIES:
        return None
    bits = uniform_bits(arch)
    shared_operand, global_operand, size = (
        word.field(bit, bits) for bit in (_FIRST_OPERAND, _SECOND_OPERAND, _SIZE_REGISTER)
    )
    is_multicast = bool(word.field(*_MULTICAST))
    if operation in _TENSOR_COPIES:
        is_load, dimensions = operation not in _TENSOR_STORES, word.field(*_LAST_DIMENSION) + 1
        dimensions = 0 if word.field(*_FORM) else dimensions
        coordinates = shared_operand + _BEFORE_COORDINATES[operation]
        return BulkCopy(
            is_load,
            operation == _TENSOR_PREFETCH,
            None,
            global_operand,
            coordinates,
            dimensions,
            is_multicast=is_multicast,
        )
    if operation == _BULK_PREFETCH:
        return BulkCopy(True, True, size, global_operand)
    direction = word.field(*_DIRECTION)
    if direction not in (_TO_SHARED, _TO_GLOBAL):
        return None
    is_load = direction == _TO_SHARED
    return BulkCopy(is_load, False, size, global_operand if is_load else shared_operand, is_multicast=is_multicast)


def bulk_copies_of(target: GraftTarget) -> dict[int, BulkCopy]:
    """Return the bulk copies of a kernel by the number of the instruction."""
    copies = {index: bulk_copy_of(word, target.arch) for index, word in enumerate(target.words) if not word.never_runs}
    return {index: copy for index, copy in copies.items() if copy is not None}
