"""Numbers of at most eight digits, each the last of eight bytes, all digits of all numbers at once.

Eight bytes are one integer (u8), the first in its lowest byte, as memory holds them. ``sizes`` (i8) says how many of
them belong to each number. Digits are made ones of a number twice as long, then of one four times as long, then of
the whole. The arrays of bytes are used up: what is worked out takes their place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Eights: TypeAlias = "NDArray[np.uint64]"


def decimal(eights: Eights, sizes: NDArray[np.int64]) -> tuple[Eights, NDArray[np.bool_]]:
    """The numbers, and whether all bytes of each are digits. One of no digits is 0."""
    eights ^= _each(0x30)
    eights &= _LAST_BYTES[sizes]
    more = eights + _each(0x80 - 10)  # sets the highest bit of a byte above 9
    more |= eights
    more &= _HIGH_BITS
    return _joined(eights, 10), more == 0


def hexadecimal(eights: Eights, sizes: NDArray[np.int64]) -> tuple[Eights, NDArray[np.bool_]]:
    """The same of hexadecimal digits, small or capital."""
    own = _LAST_BYTES[sizes]
    small = eights | _each(0x20)
    figure = _at_least(eights, 0x30) & ~_at_least(eights, 0x3A)
    letter = _at_least(small, 0x61) & ~_at_least(small, 0x67)
    good = ((figure | letter) & ~eights | ~own) & _HIGH_BITS == _HIGH_BITS
    digits = (eights & _each(0x0F)) + ((letter & _HIGH_BITS) >> np.uint64(7)) * np.uint64(9)
    return _joined(digits & own, 16), good


def _joined(digits: Eights, base: int) -> Eights:
    """One number of the eight digits, which lie in a byte each."""
    for bits, mask in _PAIRS:
        units = digits >> bits
        digits *= np.uint64(base)
        digits += units
        digits &= mask
        base *= base
    return digits


def _each(byte: int) -> np.uint64:
    """An integer of eight such bytes."""
    return np.uint64(byte * 0x0101010101010101)


def _at_least(eights: Eights, byte: int) -> Eights:
    """Sets the highest bit of each byte that is at least this, its own highest bit left aside."""
    at_least: Eights = (eights | _HIGH_BITS) - _each(byte)
    return at_least


_HIGH_BITS: Final = _each(0x80)
_LAST_BYTES: Final = np.array([0] + [((1 << 8 * n) - 1) << (64 - 8 * n) for n in range(1, 9)], dtype=np.uint64)
"""The last so many of eight bytes."""
_PAIRS: Final = tuple(
    (np.uint64(bits), np.uint64(mask))
    for bits, mask in ((8, 0x00FF00FF00FF00FF), (16, 0x0000FFFF0000FFFF), (32, 0xFFFFFFFF))
)
