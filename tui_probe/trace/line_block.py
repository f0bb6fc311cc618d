"""The lines of a block of text, of which many are looked at together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.trace.byte_block import BEFORE, ByteBlock, begin_with

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.trace.eight_digits import Eights

WIDEST: Final = 256
"""Bytes of a line that can be looked at."""
_NEWLINE: Final = ord("\n")


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
        self._known: dict[bytes, tuple[NDArray[np.int64], Eights]] = {}

    def __len__(self) -> int:
        return len(self.ends)

    def begin_with(self, prefix: bytes) -> NDArray[np.int64]:
        """The lines that begin with these bytes, at most 40."""
        found, following = self._found(prefix[:8])
        if len(prefix) > 8:
            found = found[begin_with(following, prefix[8:16])]
        if len(prefix) > 16:
            found = found[self.bytes.same(self.starts[found] + 16, prefix[16:])]
        return found

    def _found(self, part: bytes) -> tuple[NDArray[np.int64], Eights]:
        """The lines that begin with at most eight bytes, and the eight bytes that follow the first eight."""
        known = self._known.get(part)
        if known is None:
            found = np.flatnonzero(begin_with(self.heads, part))
            following = self.bytes.eights(self.starts[found] + 8) if len(part) == 8 else self.heads[:0]
            known = self._known[part] = found, following
        return known

    def windows(self, starts: NDArray[np.int64], width: int) -> NDArray[np.uint8]:
        """So many bytes (at most ``WIDEST``) from each of these offsets on: shape (offsets, width)."""
        rows = np.ndarray((len(self.text),), f"V{width}", self._padded, offset=BEFORE, strides=(1,))
        windows: NDArray[np.uint8] = rows[starts].view(np.uint8).reshape(-1, width)
        return windows
