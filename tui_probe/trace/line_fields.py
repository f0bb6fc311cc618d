"""The words and numbers of lines that look alike, as arrays: a loop would take a microsecond for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.trace.byte_block import BEHIND, ByteBlock
from tui_probe.trace.line_block import WIDEST

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tui_probe.trace.line_block import LineBlock

_BLANK: Final = ord(" ")


class LineFields:
    """The first words of some lines, separated by single blanks; a word that a line does not have is empty.

    ``good`` are the lines (b1) that were as was expected so far. Where words would have to be looked for too far from
    the beginning of a line, it is not good from the start. Offsets are those in ``bytes``, a copy of these lines alone.
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
        """Where a word begins and ends; an empty one at the end of its line."""
        return np.minimum(self._edges[word] + 1, self._edges[word + 1]), self._edges[word + 1]

    def end(self, word: int) -> NDArray[np.int64]:
        """Where a word ends."""
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
        """Which lines have this word there, and others behind it."""
        return self.bytes.words(self._edges[position : position + 1] + 1, [word])

    def numbers(self, digits: Mapping[int, int]) -> Sequence[NDArray[np.uint64]]:
        """Decimal numbers in words at these positions, each of at most so many digits."""
        value, good = self._decimal(digits)
        self.good &= good.all(axis=0)
        return list(value)

    def figures(self, digits: Mapping[int, int]) -> Sequence[NDArray[np.int64]]:
        """The same of at most 18 digits, with -1 for each that is ``-``."""
        value, good = self._decimal(digits)
        words = np.array(list(digits))
        begin = self._edges[words] + 1
        none = (self._edges[words + 1] - begin == 1) & self.bytes.same(begin, b"-")
        self.good &= (good | none).all(axis=0)
        return list(np.where(none, -1, value.astype(np.int64)))

    def _decimal(self, digits: Mapping[int, int]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        words = np.array(list(digits))
        most = np.array(list(digits.values()))[:, np.newaxis]
        return self.bytes.decimal(self._edges[words] + 1, self._edges[words + 1], most)

    def hexadecimal(self, word: int) -> NDArray[np.uint64]:
        """A hexadecimal number of at most 16 digits."""
        value, good = self.bytes.hexadecimal(*self.bounds(word))
        self.expect(good)
        return value
