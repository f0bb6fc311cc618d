"""The lines of a log with certain tags or words, found once and followed as the log grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.trace.line_search import Needle
    from tui_probe.trace.log_index import LogIndex


class LineFilter:
    """The numbers of the lines of an index that begin with one of ``tags`` and hold ``needle``.

    No tags stand for all lines. ``refresh`` continues where the last one ended, so it can follow a log. Only
    complete lines are looked at.
    """

    def __init__(self, index: LogIndex, tags: tuple[bytes, ...] = (), needle: Needle | None = None) -> None:
        self.index = index
        self.tags = tags
        self.needle = needle
        self._restart()

    def _restart(self) -> None:
        self._generation = self.index.generation
        self._seen = 0
        self._found: list[NDArray[np.int64]] = []

    def refresh(self) -> bool:
        """Look at the lines that the index has got since; whether any was found, or the file was replaced."""
        replaced = self._generation != self.index.generation
        if replaced:
            self._restart()
        before = len(self._found)
        for first, data, starts in self.index.slices(self._seen, self.index.complete):
            chosen = self._choose(data, starts)
            if len(chosen):
                self._found.append(chosen + first)
            self._seen = first + len(starts)
        return replaced or len(self._found) > before

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The line numbers (i8), ascending."""
        if len(self._found) > 1:
            self._found = [np.concatenate(self._found)]
        return self._found[0] if self._found else np.empty(0, dtype=np.int64)

    def _choose(self, data: bytes, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The indices in ``starts`` of the lines that pass."""
        chosen = _tagged(data, starts, self.tags) if self.tags else np.ones(len(starts), dtype=np.bool_)
        if self.needle is not None:
            held = np.zeros(len(starts), dtype=np.bool_)
            held[np.searchsorted(starts, np.fromiter(self.needle.lines(data), dtype=np.int64))] = True
            chosen &= held
        return np.flatnonzero(chosen)


def _tagged(data: bytes, starts: NDArray[np.int64], tags: tuple[bytes, ...]) -> NDArray[np.bool_]:
    """Which lines begin with one of the tags."""
    padded = np.frombuffer(data + b"\0" * max(len(tag) for tag in tags), dtype=np.uint8)
    chosen = np.zeros(len(starts), dtype=np.bool_)
    for tag in tags:
        same = np.ones(len(starts), dtype=np.bool_)
        for position, byte in enumerate(tag):
            same &= padded[starts + position] == byte
        chosen |= same
    return chosen
