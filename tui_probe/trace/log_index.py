"""Lines of a growing log: tail, index, search and filter.

Only the offset of each 64th line is kept. The lines between are found again when someone asks for one.
"""

from __future__ import annotations

import os
import re
from array import array
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from tui_probe.errors import TraceError
from tui_probe.input_limits import LOG_LINE
from tui_probe.trace.plain_file import open_plain, read_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

SLICE_BYTES: Final = 2 << 20
MARK_INTERVAL: Final = 64
"""One in that many lines is marked."""
MAX_LINE_BYTES: Final = 64 << 10
"""Bytes of a line that are handed out."""
_FIRST_READ_BYTES: Final = 1 << 14
_NEWLINE: Final = ord("\n")


@dataclass(frozen=True, slots=True)
class Needle:
    """A text (its ASCII letters may match either case), or a pattern, which may not reach over a line's end."""

    text: bytes = b""
    ignore_case: bool = True
    pattern: re.Pattern[bytes] | None = None

    @classmethod
    def from_query(cls, query: str | re.Pattern[bytes], *, ignore_case: bool = True) -> Needle:
        if isinstance(query, re.Pattern):
            return cls(pattern=query)
        text = query.encode()
        return cls(text.lower() if ignore_case else text, ignore_case)

    def lines(self, data: bytes) -> Iterator[int]:
        """Offsets in ``data`` of the lines that are hit, ascending."""
        return self._pattern_lines(self.pattern, data) if self.pattern is not None else self._text_lines(data)

    def _text_lines(self, data: bytes) -> Iterator[int]:
        if b"\n" in self.text:
            return
        haystack = data.lower() if self.ignore_case else data
        hit = haystack.find(self.text)
        while hit >= 0:
            yield haystack.rfind(b"\n", 0, hit) + 1
            end = haystack.find(b"\n", hit)
            if end < 0 or end + 1 == len(haystack):
                return
            hit = haystack.find(self.text, end + 1)

    @staticmethod
    def _pattern_lines(pattern: re.Pattern[bytes], data: bytes) -> Iterator[int]:
        position = 0
        while match := pattern.search(data, position):
            start = data.rfind(b"\n", 0, match.start()) + 1
            end = data.find(b"\n", match.start())
            end = len(data) if end < 0 else end
            if match.end() <= end or pattern.search(data[start:end]):
                yield start
            if end + 1 >= len(data):
                return
            position = end + 1


class LogIndex:
    """The lines of one file. A last line without its end of line counts; it may grow.

    ``refresh`` takes in what was appended. ``generation`` goes up when the file was replaced or cut, since line
    numbers then mean other lines. A file that does not exist has no lines.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self.generation = 0
        self._inode: int | None = None
        self._marks = array("q", (0,))
        """The offsets of lines 0, ``STEP``, …"""
        self._count = 0
        self._last_start = 0
        """The offset of the line after the last complete one."""

    def __len__(self) -> int:
        return self._count + (self.size > self._last_start)

    @property
    def complete(self) -> int:
        """Lines that have their end of line."""
        return self._count

    def refresh(self, budget: int | None = None) -> bool:
        """Index at most ``budget`` appended bytes (rounded up to a slice), and return whether anything changed."""
        try:
            with open_plain(self.path) as file:
                status = os.fstat(file.fileno())
                has_changed = self._restart_if_replaced(status)
                limit = status.st_size if budget is None else min(status.st_size, self.size + budget)
                file.seek(self.size)
                while self.size < limit and (data := file.read(min(SLICE_BYTES, status.st_size - self.size))):
                    self._append(data)
                    has_changed = True
                return has_changed
        except FileNotFoundError:
            return self._reset() if self.size else False
        except OSError as error:
            raise TraceError(f"{self.path}: {error.strerror or error}") from error

    def line(self, number: int) -> bytes:
        """Return a line without its end. Raises IndexError if there is none of this number."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        return self.lines(number, number + 1)[0]

    def lines(self, first: int, last: int) -> list[bytes]:
        """Lines ``first`` to before ``last``, without their ends; fewer where the log ends."""
        first, last = max(first, 0), min(last, len(self))
        if first >= last:
            return []
        with open_plain(self.path) as file:
            bounds = self._line_starts(file.fileno(), first, last)
            if bounds[-1] - bounds[0] <= SLICE_BYTES:
                file.seek(bounds[0])
                data = file.read(bounds[-1] - bounds[0])
                pieces = [data[a - bounds[0] : b - bounds[0]] for a, b in pairwise(bounds)]
            else:
                pieces = [_read_at(file.fileno(), a, min(b - a, MAX_LINE_BYTES)) for a, b in pairwise(bounds)]
        return [piece.rstrip(b"\r\n")[:MAX_LINE_BYTES] for piece in pieces]

    def line_at(self, offset: int) -> int:
        """The number of the line that byte ``offset`` belongs to."""
        mark = max(bisect_right(self._marks, offset) - 1, 0)
        with open_plain(self.path) as file:
            line_count = sum(map(len, _line_ends(file.fileno(), self._marks[mark], min(offset, self.size))))
        return min(mark * MARK_INTERVAL + line_count, self._count)

    def search(self, needle: Needle, start: int, direction: Literal[1, -1] = 1) -> int | None:
        """The first line from ``start`` on, ``start`` included, that holds the needle; None if there is none."""
        for first, data in self._runs(start, direction):
            hits = deque(islice(needle.lines(data), 1 if direction > 0 else None), maxlen=1)
            if hits:
                return self.line_at(self._line_start(first) + hits[0])
        return None

    def slices(self, first: int, last: int) -> Iterator[tuple[int, bytes, NDArray[np.int64]]]:
        """Complete lines ``first`` to before ``last``, some megabytes at a time.

        Yields the number of the first line, the bytes of the lines with their ends, and the offset of each line in
        them (i8).
        """
        last = min(last, self._count)
        with open_plain(self.path) as file:
            while first < last:
                begin = self._line_start(first)
                stop = max(min(last, self.line_at(begin + SLICE_BYTES)), first + 1)
                data = _read_at(file.fileno(), begin, self._line_start(stop) - begin)
                newlines = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == _NEWLINE)
                yield first, data, np.concatenate(([0], newlines[:-1] + 1))
                first = stop

    def _line_start(self, number: int) -> int:
        """The offset of a line, or of the end of the file for the number after the last."""
        if number > self._count:
            return self.size
        if number == self._count:
            return self._last_start
        with open_plain(self.path) as file:
            return self._line_starts(file.fileno(), number, number)[0]

    def _line_starts(self, descriptor: int, first: int, last: int) -> list[int]:
        """The offsets of lines ``first`` to ``last``; those that the file has no longer begin at its end."""
        mark, lines_before = divmod(first, MARK_INTERVAL)
        lines_needed = lines_before + last + 1 - first
        pieces, count = [np.array([self._marks[mark]])], 1
        for newlines in _line_ends(descriptor, self._marks[mark], self.size):
            pieces.append(newlines + 1)
            count += len(newlines)
            if count >= lines_needed:
                break
        offsets: list[int] = np.concatenate(pieces)[lines_before:lines_needed].tolist()
        return offsets + [self.size] * (last + 1 - first - len(offsets))

    def _append(self, data: bytes) -> None:
        newlines = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == _NEWLINE) + self.size
        self._marks.frombytes((newlines[-(self._count + 1) % MARK_INTERVAL :: MARK_INTERVAL] + 1).tobytes())
        self._count += len(newlines)
        if len(newlines):
            self._last_start = int(newlines[-1]) + 1
        self.size += len(data)

    def _restart_if_replaced(self, status: os.stat_result) -> bool:
        was_replaced = self._inode not in (None, status.st_ino) or status.st_size < self.size
        self._inode = status.st_ino
        return self._reset() if was_replaced else False

    def _reset(self) -> bool:
        self.size = self._count = self._last_start = 0
        self._marks = array("q", (0,))
        self.generation += 1
        return True

    def _runs(self, start: int, direction: int) -> Iterator[tuple[int, bytes]]:
        """Runs of whole lines from ``start`` towards the end or the beginning: their first number and their bytes."""
        count = len(self)
        begin, stop_line = (max(start, 0), count) if direction > 0 else (0, min(start + 1, count))
        while begin < stop_line:
            if direction > 0:
                first, stop = begin, max(min(stop_line, self.line_at(self._line_start(begin) + SLICE_BYTES)), begin + 1)
                begin = stop
            else:
                end = self._line_start(stop_line)
                first, stop = min(max(self.line_at(max(end - SLICE_BYTES, 0)), begin), stop_line - 1), stop_line
                stop_line = first
            with open_plain(self.path) as file:
                yield (
                    first,
                    _read_at(file.fileno(), self._line_start(first), self._line_start(stop) - self._line_start(first)),
                )


def _line_ends(descriptor: int, begin: int, end: int) -> Iterator[NDArray[np.int64]]:
    """The offsets of the newlines from ``begin`` to before ``end``, the first few first."""
    size = _FIRST_READ_BYTES
    while begin < end and (data := _read_at(descriptor, begin, min(size, end - begin))):
        yield np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == _NEWLINE) + begin
        begin += len(data)
        size = SLICE_BYTES


def _read_at(descriptor: int, offset: int, size: int) -> bytes:
    pieces = []
    while size > 0 and (piece := read_at(descriptor, size, offset)):
        pieces.append(piece)
        offset += len(piece)
        size -= len(piece)
    return b"".join(pieces)


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
        self._lines_searched = 0
        self._matches: list[NDArray[np.int64]] = []

    def refresh(self) -> bool:
        """Search the lines indexed since the last call; return whether any matches, or the file was replaced."""
        was_replaced = self._generation != self.index.generation
        if was_replaced:
            self._restart()
        match_count = len(self._matches)
        for first, data, line_starts in self.index.slices(self._lines_searched, self.index.complete):
            matches = self._matching_lines(data, line_starts)
            if len(matches):
                self._matches.append(matches + first)
            self._lines_searched = first + len(line_starts)
        return was_replaced or len(self._matches) > match_count

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The line numbers (i8), ascending."""
        if len(self._matches) > 1:
            self._matches = [np.concatenate(self._matches)]
        return self._matches[0] if self._matches else np.empty(0, dtype=np.int64)

    def _matching_lines(self, data: bytes, line_starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The indices in ``line_starts`` of the lines that pass."""
        is_match = _tag_mask(data, line_starts, self.tags) if self.tags else np.ones(len(line_starts), dtype=np.bool_)
        if self.needle is not None:
            has_needle = np.zeros(len(line_starts), dtype=np.bool_)
            has_needle[np.searchsorted(line_starts, np.fromiter(self.needle.lines(data), dtype=np.int64))] = True
            is_match &= has_needle
        return np.flatnonzero(is_match)


def _tag_mask(data: bytes, line_starts: NDArray[np.int64], tags: tuple[bytes, ...]) -> NDArray[np.bool_]:
    """Select the lines that begin with one of the tags."""
    padded_bytes = np.frombuffer(data + b"\0" * max(len(tag) for tag in tags), dtype=np.uint8)
    has_tag = np.zeros(len(line_starts), dtype=np.bool_)
    for tag in tags:
        is_match = np.ones(len(line_starts), dtype=np.bool_)
        for position, byte in enumerate(tag):
            is_match &= padded_bytes[line_starts + position] == byte
        has_tag |= is_match
    return has_tag


class LogTail:
    """Reads whole lines from a growing file, in slices; the beginning of an unfinished line is kept for later."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        self.start = 0
        """Start of the slice that was yielded last."""
        self._rest = b""
        self._size = 0

    @property
    def ends_inside_line(self) -> bool:
        """True if the last line that was read has no end yet."""
        return bool(self._rest)

    @property
    def share(self) -> float:
        """The share that was read of the size when reading began."""
        return min(1.0, self.offset / self._size) if self._size else 1.0

    def was_replaced(self) -> bool:
        """True if the file is shorter than the part that was read; the next slices then begin at its start."""
        try:
            was_replaced = self.path.stat().st_size < self.offset
        except OSError:
            return False
        if was_replaced:
            self.offset, self._rest = 0, b""
        return was_replaced

    def slices(self) -> Iterator[bytes]:
        """Yield what was appended, each slice being one or more whole lines that end in a newline."""
        try:
            file = open_plain(self.path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise TraceError(f"{self.path}: {error.strerror or error}") from error
        with file:
            self._size = size = os.fstat(file.fileno()).st_size
            file.seek(self.offset)
            while self.offset < size and (data := file.read(min(SLICE_BYTES, size - self.offset))):
                self.start = self.offset - len(self._rest)
                self.offset += len(data)
                lines = self._whole_lines(data)
                if lines:
                    yield lines

    def _whole_lines(self, data: bytes) -> bytes:
        end = data.rfind(b"\n") + 1
        lines = b"".join((self._rest, memoryview(data)[:end])) if end else b""
        self._rest = data[end:] if end else self._rest + data
        if len(self._rest) > LOG_LINE.maximum:
            lines, self._rest = lines + self._rest + b"\n", b""
        return lines
