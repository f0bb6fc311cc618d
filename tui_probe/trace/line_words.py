"""Words and numbers of many lines at once, as arrays: what a loop over lines would take a microsecond a line for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PAD: Final = 32
_BLANK: Final = ord(" ")


class LineWords:
    """The lines of a block of bytes that ends in a newline, split into words at single blanks.

    Methods take line numbers (i8) and a word's position in the line, and give an element a line. A word that a line
    does not have is empty.
    """

    def __init__(self, text: bytes) -> None:
        self.text = text
        self._bytes = np.frombuffer(text + b"\0" * _PAD, dtype=np.uint8)
        body = self._bytes[: len(text)]
        self.ends = np.flatnonzero(body == ord("\n"))
        self.starts = np.concatenate(([0], self.ends[:-1] + 1))
        self._blanks = np.append(np.flatnonzero(body == _BLANK), len(text))
        self._first = np.searchsorted(self._blanks, self.starts)
        self.words = np.searchsorted(self._blanks, self.ends) - self._first + 1
        self._eights = np.ndarray((len(text) + _PAD - 7,), "<u8", self._bytes, strides=(1,))
        self._heads = [self._eights[np.minimum(self.starts + 8 * i, len(text))] for i in range(3)]

    def __len__(self) -> int:
        return len(self.ends)

    def begin_with(self, prefix: bytes) -> NDArray[np.bool_]:
        """Which of all lines begin with these bytes, at most 24."""
        same = np.ones(len(self), dtype=np.bool_)
        for head, part in zip(self._heads, _parts(prefix), strict=False):
            same &= _masked(head, part)
        return same

    def bounds(self, lines: NDArray[np.int64], word: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where a word begins and ends in the text (i8); an empty word begins and ends at the end of its line."""
        ends, first, count = self.ends[lines], self._first[lines], self.words[lines]
        last = len(self._blanks) - 1
        begin = self.starts[lines] if word == 0 else self._blanks[np.minimum(first + word - 1, last)] + 1
        end = np.where(count > word + 1, self._blanks[np.minimum(first + word, last)], ends)
        return np.where(count > word, begin, ends), end

    def is_word(self, lines: NDArray[np.int64], word: int, expected: bytes) -> NDArray[np.bool_]:
        """Whether the word is this one."""
        begin, end = self.bounds(lines, word)
        same: NDArray[np.bool_] = (end - begin == len(expected)) & self.same(begin, expected)
        return same

    def numbers(self, lines: NDArray[np.int64], word: int, digits: int) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """A word as a decimal number (u8), and whether it is one of at most ``digits`` (19) digits."""
        return self.decimal(*self.bounds(lines, word), digits)

    def decimal(
        self, begin: NDArray[np.int64], end: NDArray[np.int64], digits: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """The decimal numbers between these offsets (u8), and whether they are numbers of at most so many digits."""
        size = end - begin
        good = (size > 0) & (size <= digits)
        value = np.zeros(len(begin), dtype=np.uint64)
        for i in range(min(digits, int(size.max(initial=0)))):
            inside = size > i
            digit = self._bytes[begin + i] - np.uint8(ord("0"))
            good &= ~inside | (digit < 10)
            value = np.where(inside, value * np.uint64(10) + digit, value)
        return value, good

    def hexadecimals(self, lines: NDArray[np.int64], word: int) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """A word as a number of at most 16 hexadecimal digits (u8), with or without 0x, and whether it is one."""
        begin, end = self.bounds(lines, word)
        begin = begin + 2 * self.same(begin, b"0x")
        size = end - begin
        good = (size > 0) & (size <= 16)
        value = np.zeros(len(begin), dtype=np.uint64)
        for i in range(min(16, int(size.max(initial=0)))):
            inside = size > i
            digit = _HEX[self._bytes[begin + i]]
            good &= ~inside | (digit < 16)
            value = np.where(inside, value * np.uint64(16) + digit, value)
        return value, good

    def same(self, at: NDArray[np.int64], expected: bytes) -> NDArray[np.bool_]:
        """Whether these bytes are found at the offsets, which lie in the text."""
        same = np.ones(len(at), dtype=np.bool_)
        for i, part in enumerate(_parts(expected)):
            same &= _masked(self._eights[np.minimum(at + 8 * i, len(self.text))], part)
        return same


def _parts(expected: bytes) -> list[bytes]:
    return [expected[i : i + 8] for i in range(0, len(expected), 8)]


def _masked(eights: NDArray[np.uint64], part: bytes) -> NDArray[np.bool_]:
    """Which of these groups of eight bytes begin with the part."""
    mask = np.uint64((1 << (8 * len(part))) - 1)
    same: NDArray[np.bool_] = eights & mask == np.uint64(int.from_bytes(part, "little"))
    return same


_HEX: Final = np.full(256, 255, dtype=np.uint8)
for _value, _sign in enumerate(b"0123456789abcdef"):
    _HEX[_sign] = _value
    _HEX[ord(chr(_sign).upper())] = _value
