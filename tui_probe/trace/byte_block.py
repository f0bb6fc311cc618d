"""A block of bytes that is looked at in many places at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.trace import eight_digits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tui_probe.trace.eight_digits import Eights

    Digits = Callable[[Eights, NDArray[np.int64]], tuple[Eights, NDArray[np.bool_]]]

BEFORE: Final = 8
BEHIND: Final = 32
"""Bytes that have to stand before and behind those that are looked at."""


class ByteBlock:
    """Offsets (i8, of any shape) count from byte ``first`` of ``buffer`` on."""

    def __init__(self, buffer: bytes | NDArray[Any], first: int) -> None:
        size = memoryview(buffer).nbytes - 7  # type: ignore[arg-type]
        self._before = np.ndarray((size - first + BEFORE,), "<u8", buffer, offset=first - BEFORE, strides=(1,))
        """The eight bytes before each offset; ``_eights`` those from it on."""
        self._eights = np.ndarray((size - first,), "<u8", buffer, offset=first, strides=(1,))

    def eights(self, at: NDArray[np.int64]) -> Eights:
        """Eight bytes from each offset on, as one integer."""
        return self._eights[at]

    def same(self, at: NDArray[np.int64], expected: bytes) -> NDArray[np.bool_]:
        """Whether these bytes, at most 32, are found at the offsets."""
        same = begin_with(self._eights[at], expected[:8])
        for i in range(8, len(expected), 8):
            same &= begin_with(self._eights[at + i], expected[i : i + 8])
        return same

    def words(self, at: NDArray[np.int64], expected: Sequence[bytes]) -> NDArray[np.bool_]:
        """Whether these words, of at most 15 bytes, and a blank after each are found; ``at`` has a row for each word.

        Gives an element for each column of ``at``.
        """
        found = np.ones(at.shape[1], dtype=np.bool_)
        for i in range(0, max(map(len, expected)) + 1, 8):
            masks, parts = _parts([(word + b" ")[i : i + 8] for word in expected])
            found &= (self._eights[at + i] & masks == parts).all(axis=0)
        return found

    def decimal(
        self, begin: NDArray[np.int64], end: NDArray[np.int64], digits: int | NDArray[np.int64]
    ) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """The decimal numbers between these offsets (u8), and whether they are numbers of at most so many digits.

        ``digits`` is at most 19; an array of them goes with the offsets as arrays do.
        """
        return self._number(begin, end, digits, eight_digits.decimal, 10**8)

    def hexadecimal(
        self, begin: NDArray[np.int64], end: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """The same of numbers of at most 16 hexadecimal digits, with or without 0x."""
        return self._number(begin + 2 * self.same(begin, b"0x"), end, 16, eight_digits.hexadecimal, 16**8)

    def _number(
        self,
        begin: NDArray[np.int64],
        end: NDArray[np.int64],
        digits: int | NDArray[np.int64],
        read: Digits,
        scale: int,
    ) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Eight digits at a time from the end; few numbers have more."""
        sizes = end - begin
        good = sizes > 0
        good &= sizes <= digits
        value, right = read(self._before[end], np.minimum(np.maximum(sizes, 0), 8))
        good &= right
        for place in (1, 2):
            longer = np.nonzero(good & (sizes > 8 * place))
            if not len(longer[0]):
                break
            rest = np.minimum(sizes[longer] - 8 * place, 8)
            more, right = read(self._before[end[longer] - 8 * place], rest)
            value[longer] += more * np.uint64(scale**place)
            good[longer] &= right
        return value, good


def _parts(words: Sequence[bytes]) -> tuple[Eights, Eights]:
    """Masks and values of words of at most eight bytes, as columns."""
    masks = [(1 << 8 * len(word)) - 1 for word in words]
    parts = [int.from_bytes(word, "little") for word in words]
    return np.array(masks, dtype=np.uint64)[:, np.newaxis], np.array(parts, dtype=np.uint64)[:, np.newaxis]


def begin_with(eights: Eights, part: bytes) -> NDArray[np.bool_]:
    """Which of these groups of eight bytes begin with the part."""
    if len(part) < 8:
        eights = eights & np.uint64((1 << (8 * len(part))) - 1)
    same: NDArray[np.bool_] = eights == np.uint64(int.from_bytes(part, "little"))
    return same
