"""The lines that tell of many launches in a few bytes each: ``[passed] FIRST TIME SPAN ITEM …``.

An item is the key of one launch, ``3``; with the number of its reason, ``3/0``; of so many in a row, ``3x250``; or
``@70``: the next launch has that number. Numbers follow one another otherwise. Items of many lines are read at once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.trace.byte_block import BEFORE, BEHIND, ByteBlock

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

PREFIX: Final = b"[passed] "
DEFAULT_REASON: Final = -1
"""In the place of the number of a reason: the launch was not sampled."""

_LINE: Final = re.compile(
    rb"\[passed\] (\d{1,18}) (\d{1,19}) (\d{1,18})((?: (?:@\d{1,18}|\d{1,9}(?:/\d{1,4})?(?:x\d{1,9})?))+)\r?"
)
_JUMP, _SLASH, _TIMES, _BLANK = b"@/x "


@dataclass(frozen=True, slots=True)
class Segments:
    """Lines of packed launches: each an element of every array (i8).

    ``first`` and ``last`` are the least and the greatest number of their launches; ``time_ns`` is since 1970, and
    ``span_ns`` from the first launch to the last. ``offset`` is where the line begins in the log, in bytes, and
    ``size`` that of the line without its end.
    """

    first: NDArray[np.int64]
    last: NDArray[np.int64]
    time_ns: NDArray[np.uint64]
    span_ns: NDArray[np.int64]
    offset: NDArray[np.int64]
    size: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.first)


@dataclass(frozen=True, slots=True)
class Items:
    """Launches in a row of one key and reason (``DEFAULT_REASON`` or its number): arrays of i8, in the log's order."""

    key: NDArray[np.int64]
    reason: NDArray[np.int64]
    number: NDArray[np.int64]
    """Of the first launch."""
    count: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.key)

    def part(self, choice: NDArray[np.bool_]) -> Items:
        return Items(*(getattr(self, each.name)[choice] for each in fields(self)))


def match_line(text: bytes, start: int = 0, end: int | None = None) -> re.Match[bytes] | None:
    """The line between these offsets, if it is one of packed launches and nothing else."""
    return _LINE.fullmatch(text, start, len(text) if end is None else end)


def read_packed(lines: Iterable[tuple[int, re.Match[bytes]]]) -> tuple[Segments, Items]:
    """All that lines say, each given with its offset in the log."""
    offsets, found = [], []
    for offset, match in lines:
        offsets.append(offset)
        found.append(match)
    text = b"".join(match[4] for match in found)
    owner_ends = np.cumsum(np.array([len(match[4]) for match in found], dtype=np.int64))
    first = np.array([int(match[1]) for match in found], dtype=np.int64)
    items, line = _items(text, owner_ends, first)
    starts = np.flatnonzero(np.diff(line, prepend=-1)) if len(line) else line
    filled = line[starts]
    least, greatest = first.copy(), first - 1
    if len(starts):
        least[filled] = np.minimum.reduceat(items.number, starts)
        greatest[filled] = np.maximum.reduceat(items.number + items.count - 1, starts)
    segments = Segments(
        first=least,
        last=greatest,
        time_ns=np.array([int(match[2]) for match in found], dtype=np.uint64),
        span_ns=np.array([int(match[3]) for match in found], dtype=np.int64),
        offset=np.array(offsets, dtype=np.int64),
        size=np.array([match.end() - match.start() for match in found], dtype=np.int64),
    )
    return segments, items


def _items(text: bytes, ends_of_lines: NDArray[np.int64], first: NDArray[np.int64]) -> tuple[Items, NDArray[np.int64]]:
    """The items of a text that is known to hold nothing else, each behind a blank, and the line that each is in."""
    codes = np.frombuffer(text, dtype=np.uint8)
    starts = np.flatnonzero(codes == _BLANK) + 1
    ends = np.append(starts[1:] - 1, len(text))[: len(starts)]
    line = np.searchsorted(ends_of_lines, starts, side="right")
    slash, times = (_places(codes, starts, mark) for mark in (_SLASH, _TIMES))
    key_end = np.where(slash < 0, np.where(times < 0, ends, times), slash)
    jumps = codes[starts] == _JUMP if len(starts) else np.zeros(0, dtype=np.bool_)
    block = ByteBlock(b"".join((b"\0" * BEFORE, text, b"\0" * BEHIND)), BEFORE)
    value = _number(block, starts + jumps, key_end)
    reason = np.full(len(starts), DEFAULT_REASON, dtype=np.int64)
    with_reason = slash >= 0
    reason[with_reason] = _number(block, slash[with_reason] + 1, np.where(times < 0, ends, times)[with_reason])
    count = (~jumps).astype(np.int64)
    repeated = times >= 0
    count[repeated] = _number(block, times[repeated] + 1, ends[repeated])
    number = _numbers(line, jumps, value, count, first)
    kept = ~jumps
    return Items(value, reason, number, count).part(kept), line[kept]


def _places(codes: NDArray[np.uint8], starts: NDArray[np.int64], mark: int) -> NDArray[np.int64]:
    """Where each item has this byte; -1 where it does not."""
    places = np.full(len(starts), -1, dtype=np.int64)
    found = np.flatnonzero(codes == mark)
    places[np.searchsorted(starts, found, side="right") - 1] = found
    return places


def _number(block: ByteBlock, begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    return block.decimal(begin, end, 19)[0].astype(np.int64)


def _numbers(
    line: NDArray[np.int64],
    jumps: NDArray[np.bool_],
    value: NDArray[np.int64],
    count: NDArray[np.int64],
    first: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The number of each item's first launch: counted on from the last jump before it, or from the line's beginning."""
    if not len(line):
        return line
    before = np.cumsum(count) - count
    begins = np.diff(line, prepend=-1) != 0
    anchors = begins | jumps
    base = np.where(jumps, value, first[line]) - before
    at = np.maximum.accumulate(np.where(anchors, np.arange(len(line)), 0))
    numbers: NDArray[np.int64] = base[at] + before
    return numbers
