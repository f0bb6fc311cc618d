"""Multiplications of matrices, as their words say it: the shape is in bits of its own for each operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because

if TYPE_CHECKING:
    from tui_probe.sass.words import Word

_WARP: Final = 32
_HMMA, _IMMA, _BMMA, _DMMA, _QMMA = 0x03C, 0x037, 0x03D, 0x03F, 0x07A
_SHAPES: Final[dict[int, tuple[tuple[int, ...], dict[tuple[int, ...], int]]]] = {
    _HMMA: ((78, 75), {(0, 0): 16 * 8 * 8, (0, 1): 16 * 8 * 16, (1, 0): 16 * 8 * 4, (1, 1): 16 * 8 * 32}),
    _IMMA: (
        (86, 85, 75),
        {
            (0, 0, 0): 8 * 8 * 16,
            (0, 1, 0): 8 * 8 * 32,
            (1, 0, 0): 16 * 8 * 16,
            (1, 0, 1): 16 * 8 * 32,
            (1, 1, 0): 16 * 8 * 64,
        },
    ),
    _BMMA: ((76, 75), {(0, 0): 8 * 8 * 128, (0, 1): 16 * 8 * 128, (1, 0): 16 * 8 * 256}),
    _QMMA: ((75,), {(0,): 16 * 8 * 16, (1,): 16 * 8 * 32}),
}
NAMES: Final = {
    _HMMA: "HMMA", _IMMA: "IMMA", _BMMA: "BMMA", _DMMA: "DMMA", _QMMA: "QMMA",
    0x1F0: "HGMMA", 0x1F1: "IGMMA", 0x1F2: "BGMMA", 0x1F3: "QGMMA",
}  # fmt: skip
_GROUP: Final = 128
_GROUP_M: Final = 64
_GROUP_N_AT, _GROUP_N_BITS, _GROUP_N_UNIT = 53, 5, 8
_HGMMA, _QGMMA = 0x1F0, 0x1F3
_OTHERS: Final = frozenset({0x1F1, 0x1F2})
"""IGMMA, BGMMA: of no known shape."""
_NEVER_SET: Final = {_IMMA: (73, 77, 79)}
"""Bits that say something of a shape that is not known."""
_TF32: Final = 58
OPERATIONS: Final = frozenset({*_SHAPES, _DMMA, _HGMMA, _QGMMA}) | _OTHERS
_FIRST_WIDE_DMMA: Final = 90


class Product(NamedTuple):
    """``share`` is what one lane stands for of the multiply-adds; ``of_group``: four warps work together."""

    share: int
    of_group: bool


def product_of(word: Word, arch: int) -> Product:
    """The product of one of ``OPERATIONS``. Raises UnsupportedKernelError for a shape that is not known."""
    if word.operation == _DMMA and arch < _FIRST_WIDE_DMMA:
        return Product(8 * 8 * 4 // _WARP, of_group=False)
    if word.operation in (_HGMMA, _QGMMA):
        n = (word.field(_GROUP_N_AT, _GROUP_N_BITS) + 1) * _GROUP_N_UNIT
        k = 32 if word.operation == _QGMMA else 8 if word.field(_TF32, 1) else 16
        return Product(_GROUP_M * n * k // _GROUP, of_group=True)
    bits, shapes = _SHAPES.get(word.operation, ((), {}))
    products = shapes.get(tuple(word.field(bit, 1) for bit in bits))
    if not products or any(word.field(bit, 1) for bit in _NEVER_SET.get(word.operation, ())):
        raise UnsupportedKernelError(because("graft-access", opcode=f"{word.opcode:#05x}"))
    return Product(products // _WARP, of_group=False)
