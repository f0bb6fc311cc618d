"""Blocks of log lines as arrays: bytes, numbers, lines and their fields.

A number of at most eight digits is the last of eight bytes, and these are one integer (u8), the first byte in its
lowest byte, as memory holds them. So all digits of all numbers are read at the same time: digits become numbers of two
digits, then of four, then of eight. The arrays of bytes are used up: what is worked out takes their place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

EightBytes: TypeAlias = "NDArray[np.uint64]"
_LAST_BYTES: Final = np.array([0] + [((1 << 8 * n) - 1) << (64 - 8 * n) for n in range(1, 9)], dtype=np.uint64)
"""The last so many of eight bytes."""
_PAIRS: Final = tuple(
    (np.uint64(bits), np.uint64(mask))
    for bits, mask in ((8, 0x00FF00FF00FF00FF), (16, 0x0000FFFF0000FFFF), (32, 0xFFFFFFFF))
)
BEFORE: Final = 8
"""Bytes in front of the text, so that the eight bytes before its first one can be read, too."""
BEHIND: Final = 32
"""Bytes that have to be before and behind those that are looked at."""
WIDEST: Final = 256
"""Bytes of a line that can be looked at."""
_NEWLINE: Final = ord("\n")
_BLANK: Final = ord(" ")


def decimal(eights: EightBytes, sizes: NDArray[np.int64]) -> tuple[EightBytes, NDArray[np.bool_]]:
    """The numbers in the last ``sizes`` of eight bytes, and whether all of these are digits. One of no digits is 0."""
    eights ^= _repeat_byte(0x30)
    eights &= _LAST_BYTES[sizes]
    more = eights + _repeat_byte(0x80 - 10)  # sets the highest bit of a byte above 9
    more |= eights
    more &= _HIGH_BITS
    return _join_digits(eights, 10), more == 0


def hexadecimal(eights: EightBytes, sizes: NDArray[np.int64]) -> tuple[EightBytes, NDArray[np.bool_]]:
    """Read numbers of up to eight hexadecimal digits, small or capital; also return which are valid."""
    masks = _LAST_BYTES[sizes]
    small = eights | _repeat_byte(0x20)
    digit = _at_least(eights, 0x30) & ~_at_least(eights, 0x3A)
    letter = _at_least(small, 0x61) & ~_at_least(small, 0x67)
    good = ((digit | letter) & ~eights | ~masks) & _HIGH_BITS == _HIGH_BITS
    digits = (eights & _repeat_byte(0x0F)) + ((letter & _HIGH_BITS) >> np.uint64(7)) * np.uint64(9)
    return _join_digits(digits & masks, 16), good


def _join_digits(digits: EightBytes, base: int) -> EightBytes:
    """Join eight digits, which are in a byte each, into a number."""
    for bits, mask in _PAIRS:
        units = digits >> bits
        digits *= np.uint64(base)
        digits += units
        digits &= mask
        base *= base
    return digits


def _repeat_byte(byte: int) -> np.uint64:
    """An integer of eight such bytes."""
    return np.uint64(byte * 0x0101010101010101)


def _at_least(eights: EightBytes, byte: int) -> EightBytes:
    """Set the highest bit of each byte that is at least this, its own highest bit left aside."""
    at_least: EightBytes = (eights | _HIGH_BITS) - _repeat_byte(byte)
    return at_least


_HIGH_BITS: Final = _repeat_byte(0x80)


if TYPE_CHECKING:
    Digits = Callable[[EightBytes, NDArray[np.int64]], tuple[EightBytes, NDArray[np.bool_]]]


class ByteBlock:
    """Offsets (i8, of any shape) count from byte ``first`` of ``buffer`` on."""

    def __init__(self, buffer: bytes | NDArray[Any], first: int) -> None:
        size = memoryview(buffer).nbytes - 7  # type: ignore[arg-type]
        self._before = np.ndarray((size - first + BEFORE,), "<u8", buffer, offset=first - BEFORE, strides=(1,))
        """The eight bytes before each offset; ``_eights`` those from it on."""
        self._eights = np.ndarray((size - first,), "<u8", buffer, offset=first, strides=(1,))

    def eights(self, at: NDArray[np.int64]) -> EightBytes:
        """Eight bytes from each offset on, as one integer."""
        return self._eights[at]

    def same(self, at: NDArray[np.int64], expected: bytes) -> NDArray[np.bool_]:
        """Select the offsets at which these bytes, at most 32, are found."""
        same = groups_begin_with(self._eights[at], expected[:8])
        for i in range(8, len(expected), 8):
            same &= groups_begin_with(self._eights[at + i], expected[i : i + 8])
        return same

    def words(self, at: NDArray[np.int64], expected: Sequence[bytes]) -> NDArray[np.bool_]:
        """Select where these words, of at most 15 bytes, and a blank after each are; ``at`` has a row for each word.

        Gives an element for each column of ``at``.
        """
        matching = np.ones(at.shape[1], dtype=np.bool_)
        for i in range(0, max(map(len, expected)) + 1, 8):
            masks, parts = _word_masks([(word + b" ")[i : i + 8] for word in expected])
            matching &= (self._eights[at + i] & masks == parts).all(axis=0)
        return matching

    def decimal(
        self, begin: NDArray[np.int64], end: NDArray[np.int64], digits: int | NDArray[np.int64]
    ) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """The decimal numbers between these offsets (u8), and whether they are numbers of at most that many digits.

        ``digits`` is at most 19; an array of them goes with the offsets as arrays do.
        """
        return self._number(begin, end, digits, decimal, 10**8)

    def hexadecimal(
        self, begin: NDArray[np.int64], end: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Read numbers of up to 16 hexadecimal digits, with or without 0x; also return which are valid."""
        return self._number(begin + 2 * self.same(begin, b"0x"), end, 16, hexadecimal, 16**8)

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
            digits_left = np.minimum(sizes[longer] - 8 * place, 8)
            more, right = read(self._before[end[longer] - 8 * place], digits_left)
            value[longer] += more * np.uint64(scale**place)
            good[longer] &= right
        return value, good


def _word_masks(words: Sequence[bytes]) -> tuple[EightBytes, EightBytes]:
    """Masks and values of words of at most eight bytes, as columns."""
    masks = [(1 << 8 * len(word)) - 1 for word in words]
    parts = [int.from_bytes(word, "little") for word in words]
    return np.array(masks, dtype=np.uint64)[:, np.newaxis], np.array(parts, dtype=np.uint64)[:, np.newaxis]


def groups_begin_with(eights: EightBytes, part: bytes) -> NDArray[np.bool_]:
    """Select the groups of eight bytes that begin with the part."""
    if len(part) < 8:
        eights = eights & np.uint64((1 << (8 * len(part))) - 1)
    same: NDArray[np.bool_] = eights == np.uint64(int.from_bytes(part, "little"))
    return same


class LineBlock:
    """``text`` ends in a newline; ``starts`` and ``ends`` (i8) are the offsets of its lines, which go by number."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self._padded = b"".join((b"\0" * BEFORE, text, b"\0" * WIDEST))
        self.bytes = ByteBlock(self._padded, BEFORE)
        self.ends = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == _NEWLINE)
        self.starts = np.concatenate(([0], self.ends[:-1] + 1))
        self.heads = self.bytes.eights(self.starts)
        """The first eight bytes of each line."""
        self._known: dict[bytes, tuple[NDArray[np.int64], EightBytes]] = {}

    def __len__(self) -> int:
        return len(self.ends)

    def begin_with(self, prefix: bytes) -> NDArray[np.int64]:
        """The lines that begin with these bytes, at most 40."""
        lines, following = self._lines_beginning(prefix[:8])
        if len(prefix) > 8:
            lines = lines[groups_begin_with(following, prefix[8:16])]
        if len(prefix) > 16:
            lines = lines[self.bytes.same(self.starts[lines] + 16, prefix[16:])]
        return lines

    def _lines_beginning(self, part: bytes) -> tuple[NDArray[np.int64], EightBytes]:
        """The lines that begin with at most eight bytes, and the eight bytes that follow the first eight."""
        known = self._known.get(part)
        if known is None:
            lines = np.flatnonzero(groups_begin_with(self.heads, part))
            following = self.bytes.eights(self.starts[lines] + 8) if len(part) == 8 else self.heads[:0]
            known = self._known[part] = lines, following
        return known

    def windows(self, starts: NDArray[np.int64], width: int) -> NDArray[np.uint8]:
        """Return ``width`` bytes (at most ``WIDEST``) from each of these offsets on: shape (offsets, width)."""
        rows = np.ndarray((len(self.text),), f"V{width}", self._padded, offset=BEFORE, strides=(1,))
        windows: NDArray[np.uint8] = rows[starts].view(np.uint8).reshape(-1, width)
        return windows


class LineFields:
    """The first words of some lines, separated by single blanks; a word that a line does not have is empty.

    ``good`` are the lines (b1) that were as was expected so far. Where words would have to be looked for too far from
    the beginning of a line, it is not good from the start. Offsets are those in ``bytes``, a copy of these lines only.
    """

    def __init__(self, block: LineBlock, at: NDArray[np.int64], words: int, *, behind: bytes) -> None:
        """Words are counted from those ``behind`` these bytes, with which each line begins."""
        self._starts = block.starts[at] + len(behind)
        lengths = block.ends[at] - self._starts
        width = min(max(int(lengths.max(initial=0)) + 8, BEHIND) & ~7, WIDEST)
        windows = block.windows(np.concatenate(([0], self._starts, [0])), width)
        self.bytes = ByteBlock(windows, width)
        self._rows = np.arange(len(at)) * width
        self.ends = self._rows + lengths
        self._edges = self._separators(windows[1:-1], words)
        self.good = self._edges[-1] < self._rows + width

    def _separators(self, windows: NDArray[np.uint8], words: int) -> NDArray[np.int64]:
        """The offsets of the separators before and after each word: shape (words + 1, lines).

        Those after the last word of a line are its end.
        """
        blanks = np.append(np.flatnonzero(windows.reshape(-1) == _BLANK), windows.size)
        nth = np.searchsorted(blanks, self._rows) + np.arange(words)[:, np.newaxis]
        edges = np.empty((words + 1, len(windows)), dtype=np.int64)
        edges[0] = self._rows - 1
        np.minimum(nth, len(blanks) - 1, out=nth)
        np.minimum(blanks[nth], self.ends, out=edges[1:])
        return edges

    def bounds(self, word: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The begin and end of a word in each line; an empty one is at the end of its line."""
        return np.minimum(self._edges[word] + 1, self._edges[word + 1]), self._edges[word + 1]

    def end(self, word: int) -> NDArray[np.int64]:
        """The end of a word in each line."""
        return self.bounds(word)[1]

    def in_text(self, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Offsets, one per line, as those in the text of the block."""
        offsets = offsets - self._rows
        offsets += self._starts
        return offsets

    def expect(self, condition: NDArray[np.bool_]) -> None:
        """Lines for which this does not hold are not good."""
        self.good &= condition

    def words(self, **positions: int) -> None:
        """Expect words, none the last of its line, given as ``word=position``."""
        begin = self._edges[np.array(list(positions.values()))] + 1
        self.expect(self.bytes.words(begin, [word.encode() for word in positions]))

    def is_word(self, position: int, word: bytes) -> NDArray[np.bool_]:
        """Select the lines that have this word there, and others behind it."""
        return self.bytes.words(self._edges[position : position + 1] + 1, [word])

    def numbers(self, digits: Mapping[int, int]) -> Sequence[NDArray[np.uint64]]:
        """Decimal numbers in words at these positions, each of at most that many digits."""
        value, good = self._decimal(digits)
        self.good &= good.all(axis=0)
        return list(value)

    def numbers_or_none(self, digits: Mapping[int, int]) -> Sequence[NDArray[np.int64]]:
        """Read numbers of up to 18 digits, -1 for each that is ``-``."""
        value, good = self._decimal(digits)
        positions = np.array(list(digits))
        begin = self._edges[positions] + 1
        none = (self._edges[positions + 1] - begin == 1) & self.bytes.same(begin, b"-")
        self.good &= (good | none).all(axis=0)
        return list(np.where(none, -1, value.astype(np.int64)))

    def _decimal(self, digits: Mapping[int, int]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        positions = np.array(list(digits))
        most = np.array(list(digits.values()))[:, np.newaxis]
        return self.bytes.decimal(self._edges[positions] + 1, self._edges[positions + 1], most)

    def hexadecimal(self, word: int) -> NDArray[np.uint64]:
        """A hexadecimal number of at most 16 digits."""
        value, good = self.bytes.hexadecimal(*self.bounds(word))
        self.expect(good)
        return value
