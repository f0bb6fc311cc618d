"""Atomics and reductions on global memory and generic addresses, as their words say it.

Ra holds the address, 64 bits in a pair; signed bits from bit 40 on are added, 24 of them, or 23 in an atomic of sm_100
and later. A pair of uniform registers from bit 64 on is a descriptor, which says nothing of the address, or is added:

    who                                    descriptor where this bit is set
    RED and REDG                           71, from sm_100 on 81
    ATOM and ATOMG                         71, from sm_100 on 76, of floating-point numbers 90

Compare-and-swap has neither, and on sm_75, which has no descriptors, what lacks bit 91. Types from bit 73 on: four bits
up to sm_89, and of floating-point numbers later; else three.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.sass.access import Access, Address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tui_probe.sass.words import Word

ATOM: Final = frozenset({0x18A, 0x18B, 0x1A2})
"""Of generic addresses: of integers (up to sm_89 of all), compare-and-swap, of floating-point numbers."""
ATOMG: Final = frozenset({0x1A8, 0x1A9, 0x1A3})
"""The same of global memory."""
RED: Final = frozenset({0x18E, 0x1A6})
"""Without a result, of global memory: of integers (up to sm_89 of all), and of floating-point numbers."""
ATOMS: Final = frozenset({0x18C, 0x18D})
"""Of shared memory, with or without a result; compare-and-swap is the second."""

_SWAPS: Final = frozenset({0x18B, 0x1A9})
_FLOATS: Final = frozenset({0x1A2, 0x1A3, 0x1A6})
_LONG: Final = 72
"""Whether addresses have 64 bits."""
_UNIFORM: Final = 91
_UNIFORM_AT: Final = 64
_OFFSET_AT: Final = 40
_TYPE_AT: Final = 73
_PAIR: Final[tuple[int, int]] = (70, 63)
"""Set where Ra of an atomic is a pair, up to sm_90 and later."""
_PAIR_OF_RED: Final = 90
_AMPERE: Final = 80
_HOPPER: Final = 90
_BLACKWELL: Final = 100
_INTEGERS: Final[Mapping[int, int]] = {0: 4, 1: 4, 2: 8, 3: 8, 4: 16}
_SWAPPED: Final[Mapping[int, int]] = {0: 4, 1: 4, 2: 8, 4: 16}
_REALS: Final[Mapping[int, int]] = {
    0: 4, 1: 8, 2: 16, 3: 4, 4: 8, 5: 16, 9: 4, 10: 8, 11: 16, 12: 4, 13: 8, 14: 16, 15: 8,
}  # fmt: skip
_ALL: Final[Mapping[int, int]] = {0: 4, 1: 4, 2: 8, 3: 4, 4: 4, 5: 8, 6: 8}
"""Types up to sm_89: integers of 32 and 64 bits, f32, f16x2, s64, f64."""


def atomic_of(word: Word, arch: int) -> Access | None:
    """The access of an atomic or a reduction; None for any other instruction, those of shared memory among them.

    Raises UnsupportedKernelError for one whose address or type is not known.
    """
    if word.operation not in ATOM | ATOMG | RED:
        return None
    size = _bytes(word, arch)
    if size is None or not _is_known(word, arch):
        raise UnsupportedKernelError(because("graft-access", opcode=f"{word.opcode:#05x}"))
    short = arch >= _BLACKWELL and word.operation not in RED | _SWAPS
    width = 23 if short else 24
    offset = word.field(_OFFSET_AT, width)
    address = Address(word.ra, True, _added(word, arch), offset - (offset >> width - 1 << width))
    return Access(word.operation, address, size)


def _is_known(word: Word, arch: int) -> bool:
    """Whether Ra is a pair, in a form whose uniform registers are known."""
    if not word.field(_LONG, 1):
        return False
    if word.operation in _SWAPS or (arch < _AMPERE and not word.field(_UNIFORM, 1)):
        return not word.field(_UNIFORM, 1)
    pair = _PAIR_OF_RED if word.operation in RED else _PAIR[arch >= _BLACKWELL]
    return bool(word.field(_UNIFORM, 1)) and bool(word.field(pair, 1))


def _added(word: Word, arch: int) -> int | None:
    """The first uniform register that is added; None for none, or for the one that is always 0."""
    if not word.field(_UNIFORM, 1) or word.field(_descriptor(word.operation, arch), 1):
        return None
    bits = 8 if arch >= _BLACKWELL else 6
    number = word.field(_UNIFORM_AT, bits)
    return None if number == (1 << bits) - 1 else number


def _descriptor(operation: int, arch: int) -> int:
    if arch < _BLACKWELL:
        return 71
    if operation in RED:
        return 81
    return 90 if operation in _FLOATS else 76


def _bytes(word: Word, arch: int) -> int | None:
    if arch < _HOPPER:
        return _ALL.get(word.field(_TYPE_AT, 4))
    if word.operation in _FLOATS:
        return _REALS.get(word.field(_TYPE_AT, 4))
    return (_SWAPPED if word.operation in _SWAPS else _INTEGERS).get(word.field(_TYPE_AT, 3))
