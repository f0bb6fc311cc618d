"""Words and numbers of many lines at once, as arrays: what a loop over lines would take a microsecond a line for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PAD: Final = 32
_BLANK: Final = ord(" ")
_NEWLINE: Final = ord("\n")


class LineWords:
    """The lines of a block of bytes that ends in a newline, split into words at single blanks.

    Methods take line numbers (i8) and a word's position in the line, and give an element a line. A word that a line
    does not have is empty.
    """

    def __init__(self, text: bytes) -> None:
        self.text = text
        padded = b"\0" * 8 + text + b"\0" * _PAD
        self._bytes = np.frombuffer(padded, dtype=np.uint8, offset=8)
        self._before = np.ndarray((len(text) + 1,), "<u8", padded, strides=(1,))
        """The eight bytes before each offset; ``_eights`` those from it on."""
        self._eights = np.ndarray((len(text) + _PAD - 7,), "<u8", padded, offset=8, strides=(1,))
        separators, newline = _separators(self._bytes[: len(text)])
        self._separators = np.concatenate(([-1], separators))
        self.ends = separators[newline]
        self.starts = np.concatenate(([0], self.ends[:-1] + 1))
        self._first = np.concatenate(([0], newline[:-1] + 1))
        """The separator before each line; a line has as many words as separators that follow, its newline the last."""
        self.words = np.diff(newline, prepend=-1)
        self._heads = [self._eights[self.starts + 8 * i] for i in range(3)]

    def __len__(self) -> int:
        return len(self.ends)

    def begin_with(self, prefix: bytes) -> NDArray[np.bool_]:
        """Which of all lines begin with these bytes, at most 24."""
        same = np.ones(len(self), dtype=np.bool_)
        for head, part in zip(self._heads, _parts(prefix), strict=False):
            same &= _masked(head, part)
        return same

    def edges(self, lines: NDArray[np.int64], words: int) -> NDArray[np.int64]:
        """Where the separators before and after each of the first words are: shape (words + 1, lines).

        Those after the last word are the end of the line.
        """
        first = self._first[lines]
        edges: NDArray[np.int64] = self._separators[
            np.minimum(first + np.arange(words + 1)[:, np.newaxis], first + self.words[lines])
        ]
        return edges

    def bounds(self, lines: NDArray[np.int64], word: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where a word begins and ends in the text (i8); an empty word begins and ends at the end of its line."""
        return between(self.edges(lines, word + 1), word)

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
        for i in range(0, min(digits, int(size.max(initial=0))), 8):
            eight, right = self._eight_digits(np.maximum(end - i, 0), np.clip(size - i, 0, 8))
            good &= right
            value += eight * np.uint64(10**i)
        return value, good

    def _eight_digits(
        self, end: NDArray[np.int64], size: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """The decimal numbers of at most eight digits that end at these offsets, all digits of each at once.

        Digits are made ones of a number twice as long, then of one four times as long, then of the whole; an early
        digit is in a lower byte. In a byte that is no digit, adding 0x46 or taking 0x30 away sets the highest bit.
        """
        kept = _LAST_BYTES[size]
        bytes_ = (self._before[end] & kept) | (_ZEROS & ~kept)
        right = ((bytes_ + _ABOVE_NINE) | (bytes_ - _ZEROS)) & _HIGH_BITS == 0
        value = bytes_ - _ZEROS
        for shift, scale, mask in _PAIRS:
            value = (value * scale + (value >> shift)) & mask
        return value, right

    def hexadecimals(self, lines: NDArray[np.int64], word: int) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """A word as a number of at most 16 hexadecimal digits (u8), with or without 0x, and whether it is one."""
        return self.hexadecimal(*self.bounds(lines, word))

    def hexadecimal(
        self, begin: NDArray[np.int64], end: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """The same of what is between these offsets."""
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
        """Whether these bytes, at most 24, are found at the offsets, which lie in the text."""
        same = np.ones(len(at), dtype=np.bool_)
        for i, part in enumerate(_parts(expected)):
            same &= _masked(self._eights[at + 8 * i], part)
        return same


def between(edges: NDArray[np.int64], word: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where a word begins and ends."""
    return np.minimum(edges[word] + 1, edges[word + 1]), edges[word + 1]


def _separators(body: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The offsets of blanks and newlines, and which elements of them are newlines."""
    found = np.flatnonzero(body <= _BLANK)
    signs = body[found]
    newline = signs == _NEWLINE
    right = newline | (signs == _BLANK)
    if not right.all():  # other control characters
        found, newline = found[right], newline[right]
    return found, np.flatnonzero(newline)


def _parts(expected: bytes) -> list[bytes]:
    return [expected[i : i + 8] for i in range(0, len(expected), 8)]


def _masked(eights: NDArray[np.uint64], part: bytes) -> NDArray[np.bool_]:
    """Which of these groups of eight bytes begin with the part."""
    mask = np.uint64((1 << (8 * len(part))) - 1)
    same: NDArray[np.bool_] = eights & mask == np.uint64(int.from_bytes(part, "little"))
    return same


_ZEROS: Final = np.uint64(0x3030303030303030)
_ABOVE_NINE: Final = np.uint64(0x4646464646464646)
_HIGH_BITS: Final = np.uint64(0x8080808080808080)
_LAST_BYTES: Final = np.array([0] + [((1 << 8 * n) - 1) << (64 - 8 * n) for n in range(1, 9)], dtype=np.uint64)
"""The last so many of eight bytes."""
_PAIRS: Final = tuple(
    (np.uint64(shift), np.uint64(scale), np.uint64(mask))
    for shift, scale, mask in (
        (8, 10, 0x00FF00FF00FF00FF),
        (16, 100, 0x0000FFFF0000FFFF),
        (32, 10_000, 0x00000000FFFFFFFF),
    )
)
_HEX: Final = np.full(256, 255, dtype=np.uint8)
for _value, _sign in enumerate(b"0123456789abcdef"):
    _HEX[_sign] = _value
    _HEX[ord(chr(_sign).upper())] = _value
