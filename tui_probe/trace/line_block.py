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
LEADING_BYTES: Final = 8
"""Bytes in front of the text, so that the eight bytes before its first one can be read, too."""
TRAILING_BYTES: Final = 32
"""Bytes that have to be before and after those that are read."""
MAX_WIDTH: Final = 256
"""Bytes of a line that can be read."""
_NEWLINE: Final = ord("\n")
_BLANK: Final = ord(" ")


def decimal(eights: EightBytes, sizes: NDArray[np.int64]) -> tuple[EightBytes, NDArray[np.bool_]]:
    """Return the numbers in the last ``sizes`` of eight bytes, and whether all are digits. One of no digits is 0."""
    eights ^= _repeat_byte(0x30)
    eights &= _LAST_BYTES[sizes]
    above_nine = eights + _repeat_byte(0x80 - 10)  # sets the highest bit of a byte above 9
    above_nine |= eights
    above_nine &= _HIGH_BITS
    return _join_digits(eights, 10), above_nine == 0


def hexadecimal(eights: EightBytes, sizes: NDArray[np.int64]) -> tuple[EightBytes, NDArray[np.bool_]]:
    """Read numbers of up to eight hexadecimal digits, small or capital; also return which are valid."""
    masks = _LAST_BYTES[sizes]
    lowercase = eights | _repeat_byte(0x20)
    digit = _at_least(eights, 0x30) & ~_at_least(eights, 0x3A)
    letter = _at_least(lowercase, 0x61) & ~_at_least(lowercase, 0x67)
    is_valid = ((digit | letter) & ~eights | ~masks) & _HIGH_BITS == _HIGH_BITS
    digits = (eights & _repeat_byte(0x0F)) + ((letter & _HIGH_BITS) >> np.uint64(7)) * np.uint64(9)
    return _join_digits(digits & masks, 16), is_valid


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
    """Offsets (i8, of any shape) count from byte ``origin`` of ``buffer`` on."""

    def __init__(self, buffer: bytes | NDArray[Any], origin: int) -> None:
        size = memoryview(buffer).nbytes - 7  # type: ignore[arg-type]
        self._eights_before = np.ndarray(
            (size - origin + LEADING_BYTES,), "<u8", buffer, offset=origin - LEADING_BYTES, strides=(1,)
        )
        """The eight bytes before each offset; ``_eights_from`` holds those from it on."""
        self._eights_from = np.ndarray((size - origin,), "<u8", buffer, offset=origin, strides=(1,))

    def eights(self, offsets: NDArray[np.int64]) -> EightBytes:
        """Eight bytes from each offset on, as one integer."""
        return self._eights_from[offsets]

    def has_text(self, offsets: NDArray[np.int64], text: bytes) -> NDArray[np.bool_]:
        """Select the offsets at which these bytes, at most 32, are found."""
        is_match = groups_begin_with(self._eights_from[offsets], text[:8])
        for i in range(8, len(text), 8):
            is_match &= groups_begin_with(self._eights_from[offsets + i], text[i : i + 8])
        return is_match

    def has_words(self, offsets: NDArray[np.int64], words: Sequence[bytes]) -> NDArray[np.bool_]:
        """Return, for each column of ``offsets``, whether all words stand there, each with a blank after it.

        Words have at most 15 bytes; ``offsets`` has a row for each word.
        """
        is_match = np.ones(offsets.shape[1], dtype=np.bool_)
        for i in range(0, max(map(len, words)) + 1, 8):
            masks, parts = _word_masks([(word + b" ")[i : i + 8] for word in words])
            is_match &= (self._eights_from[offsets + i] & masks == parts).all(axis=0)
        return is_match

    def decimal(
        self, begin: NDArray[np.int64], end: NDArray[np.int64], digits: int | NDArray[np.int64]
    ) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """The decimal numbers between these offsets (u8), and whether they are numbers of at most that many digits.

        ``digits`` is at most 19; an array of them goes with the offsets as arrays do.
        """
        return self._parse_numbers(begin, end, digits, decimal, 10**8)

    def hexadecimal(
        self, begin: NDArray[np.int64], end: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Read numbers of up to 16 hexadecimal digits, with or without 0x; also return which are valid."""
        return self._parse_numbers(begin + 2 * self.has_text(begin, b"0x"), end, 16, hexadecimal, 16**8)

    def _parse_numbers(
        self,
        begin: NDArray[np.int64],
        end: NDArray[np.int64],
        digits: int | NDArray[np.int64],
        parse: Digits,
        scale: int,
    ) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Parse eight digits at a time from the end; few numbers have more."""
        sizes = end - begin
        is_valid = sizes > 0
        is_valid &= sizes <= digits
        value, are_digits = parse(self._eights_before[end], np.minimum(np.maximum(sizes, 0), 8))
        is_valid &= are_digits
        for place in (1, 2):
            long_rows = np.nonzero(is_valid & (sizes > 8 * place))
            if not len(long_rows[0]):
                break
            digits_left = np.minimum(sizes[long_rows] - 8 * place, 8)
            high_digits, are_digits = parse(self._eights_before[end[long_rows] - 8 * place], digits_left)
            value[long_rows] += high_digits * np.uint64(scale**place)
            is_valid[long_rows] &= are_digits
        return value, is_valid


def _word_masks(words: Sequence[bytes]) -> tuple[EightBytes, EightBytes]:
    """Masks and values of words of at most eight bytes, as columns."""
    masks = [(1 << 8 * len(word)) - 1 for word in words]
    parts = [int.from_bytes(word, "little") for word in words]
    return np.array(masks, dtype=np.uint64)[:, np.newaxis], np.array(parts, dtype=np.uint64)[:, np.newaxis]


def groups_begin_with(eights: EightBytes, part: bytes) -> NDArray[np.bool_]:
    """Select the groups of eight bytes that begin with the part."""
    if len(part) < 8:
        eights = eights & np.uint64((1 << (8 * len(part))) - 1)
    is_match: NDArray[np.bool_] = eights == np.uint64(int.from_bytes(part, "little"))
    return is_match


class LineBlock:
    """Lines of ``text``, which ends in a newline. ``line_starts`` and ``line_ends`` (i8) are their offsets."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self._padded_text = b"".join((b"\0" * LEADING_BYTES, text, b"\0" * MAX_WIDTH))
        self.bytes = ByteBlock(self._padded_text, LEADING_BYTES)
        self.line_ends = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == _NEWLINE)
        self.line_starts = np.concatenate(([0], self.line_ends[:-1] + 1))
        self.heads = self.bytes.eights(self.line_starts)
        """The first eight bytes of each line."""
        self._lines_by_head: dict[bytes, tuple[NDArray[np.int64], EightBytes]] = {}

    def __len__(self) -> int:
        return len(self.line_ends)

    def lines_with_prefix(self, prefix: bytes) -> NDArray[np.int64]:
        """Return the lines that begin with these bytes, at most 40."""
        lines, following = self._lines_with_head(prefix[:8])
        if len(prefix) > 8:
            lines = lines[groups_begin_with(following, prefix[8:16])]
        if len(prefix) > 16:
            lines = lines[self.bytes.has_text(self.line_starts[lines] + 16, prefix[16:])]
        return lines

    def _lines_with_head(self, head: bytes) -> tuple[NDArray[np.int64], EightBytes]:
        """The lines that begin with at most eight bytes, and the eight bytes that follow the first eight."""
        entry = self._lines_by_head.get(head)
        if entry is None:
            lines = np.flatnonzero(groups_begin_with(self.heads, head))
            following = self.bytes.eights(self.line_starts[lines] + 8) if len(head) == 8 else self.heads[:0]
            entry = self._lines_by_head[head] = lines, following
        return entry

    def windows(self, offsets: NDArray[np.int64], width: int) -> NDArray[np.uint8]:
        """Return ``width`` bytes (at most ``MAX_WIDTH``) from each of these offsets on: shape (offsets, width)."""
        rows = np.ndarray((len(self.text),), f"V{width}", self._padded_text, offset=LEADING_BYTES, strides=(1,))
        windows: NDArray[np.uint8] = rows[offsets].view(np.uint8).reshape(-1, width)
        return windows


class LineFields:
    """The first words of some lines, separated by single blanks; a word that a line does not have is empty.

    ``is_valid`` (b1) is true for each line that has met all expectations so far. A line whose words are too far from
    its beginning is not valid from the start. Offsets are those in ``bytes``, a copy of these lines only.
    """

    def __init__(self, block: LineBlock, lines: NDArray[np.int64], words: int, *, prefix: bytes) -> None:
        """Count the words after ``prefix``, with which each line begins."""
        self._text_starts = block.line_starts[lines] + len(prefix)
        lengths = block.line_ends[lines] - self._text_starts
        width = min(max(int(lengths.max(initial=0)) + 8, TRAILING_BYTES) & ~7, MAX_WIDTH)
        windows = block.windows(np.concatenate(([0], self._text_starts, [0])), width)
        self.bytes = ByteBlock(windows, width)
        self._rows = np.arange(len(lines)) * width
        self.line_ends = self._rows + lengths
        self._edges = self._separators(windows[1:-1], words)
        self.is_valid = self._edges[-1] < self._rows + width

    def _separators(self, windows: NDArray[np.uint8], words: int) -> NDArray[np.int64]:
        """The offsets of the separators before and after each word: shape (words + 1, lines).

        Those after the last word of a line are its end.
        """
        blanks = np.append(np.flatnonzero(windows.reshape(-1) == _BLANK), windows.size)
        nth = np.searchsorted(blanks, self._rows) + np.arange(words)[:, np.newaxis]
        edges = np.empty((words + 1, len(windows)), dtype=np.int64)
        edges[0] = self._rows - 1
        np.minimum(nth, len(blanks) - 1, out=nth)
        np.minimum(blanks[nth], self.line_ends, out=edges[1:])
        return edges

    def bounds(self, word: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The begin and end of a word in each line; an empty one is at the end of its line."""
        return np.minimum(self._edges[word] + 1, self._edges[word + 1]), self._edges[word + 1]

    def word_end(self, word: int) -> NDArray[np.int64]:
        """The end of a word in each line."""
        return self.bounds(word)[1]

    def text_offsets(self, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Offsets, one per line, as those in the text of the block."""
        offsets = offsets - self._rows
        offsets += self._text_starts
        return offsets

    def expect(self, condition: NDArray[np.bool_]) -> None:
        """Mark the lines for which the condition does not hold as not valid."""
        self.is_valid &= condition

    def expect_words(self, **positions: int) -> None:
        """Expect words, none the last of its line, given as ``word=position``."""
        begin = self._edges[np.array(list(positions.values()))] + 1
        self.expect(self.bytes.has_words(begin, [word.encode() for word in positions]))

    def is_word(self, position: int, word: bytes) -> NDArray[np.bool_]:
        """Select the lines that have this word there, and others behind it."""
        return self.bytes.has_words(self._edges[position : position + 1] + 1, [word])

    def numbers(self, digits: Mapping[int, int]) -> Sequence[NDArray[np.uint64]]:
        """Decimal numbers in words at these positions, each of at most that many digits."""
        value, are_digits = self._decimal(digits)
        self.is_valid &= are_digits.all(axis=0)
        return list(value)

    def numbers_or_none(self, digits: Mapping[int, int]) -> Sequence[NDArray[np.int64]]:
        """Read numbers of up to 18 digits, -1 for each that is ``-``."""
        value, are_digits = self._decimal(digits)
        positions = np.array(list(digits))
        begin = self._edges[positions] + 1
        is_none = (self._edges[positions + 1] - begin == 1) & self.bytes.has_text(begin, b"-")
        self.is_valid &= (are_digits | is_none).all(axis=0)
        return list(np.where(is_none, -1, value.astype(np.int64)))

    def _decimal(self, digits: Mapping[int, int]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        positions = np.array(list(digits))
        max_digits = np.array(list(digits.values()))[:, np.newaxis]
        return self.bytes.decimal(self._edges[positions] + 1, self._edges[positions + 1], max_digits)

    def hexadecimal(self, word: int) -> NDArray[np.uint64]:
        """A hexadecimal number of at most 16 digits."""
        value, is_number = self.bytes.hexadecimal(*self.bounds(word))
        self.expect(is_number)
        return value
