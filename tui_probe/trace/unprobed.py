"""Unprobed launches: packed log lines ``[passed]``, and the table of their counts and positions.

An item is the key of one launch, ``3``; with the number of its reason, ``3/0``; of that many in a row, ``3x250``; or
``@70``: the next launch has that number. Numbers follow one another otherwise. Items of many lines are read at the
same time.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.reasons import Reason, because
from tui_probe.trace.launches import CAPTURED
from tui_probe.trace.line_block import LEADING_BYTES, TRAILING_BYTES, ByteBlock
from tui_probe.trace.locate import LOG
from tui_probe.trace.long_column import LongColumn, Spill
from tui_probe.trace.plain_file import plain_descriptor, read_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from tui_probe.trace.launch_events import ShapeGroupNamed

LINE_PREFIX: Final = b"[passed] "
DEFAULT_REASON: Final = -1
"""Stands for the number of a reason: the launch was not sampled, as most are, so that its items are shorter."""

_PACKED_LINE: Final = re.compile(
    rb"\[passed\] (\d{1,18}) (\d{1,19}) (\d{1,18})((?: (?:@\d{1,18}|\d{1,9}(?:/\d{1,4})?(?:x\d{1,9})?))+)\r?"
)
_JUMP, _SLASH, _TIMES, _BLANK = b"@/x "
_NOT_SAMPLED: Final = because("not-sampled")
_MAX_REASONS: Final = 4096
"""Reasons that are kept: a damaged log may name any number."""
BLOCK: Final = 1 << 11
"""Lines whose positions are written to the file together."""
_KEY_FACTOR: Final = 1 << 32
"""Larger than any key or reason, so that both fit into one number for ``np.unique``."""


@dataclass(frozen=True, slots=True)
class PackedSegments:
    """Lines of packed launches: each an element of every array (i8).

    ``first_launch`` and ``last_launch`` are the least and the greatest number of their launches. ``time_ns`` is since
    1970, and ``span_ns`` from the first launch to the last. ``offset`` is where the line begins in the log, in bytes,
    and ``size`` that of the line without its end.
    """

    first_launch: NDArray[np.int64]
    last_launch: NDArray[np.int64]
    time_ns: NDArray[np.uint64]
    span_ns: NDArray[np.int64]
    offset: NDArray[np.int64]
    size: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.first_launch)


@dataclass(frozen=True, slots=True)
class PackedItems:
    """Launches in a row of one key and reason (``DEFAULT_REASON`` or its number): arrays of i8, in the log's order."""

    key: NDArray[np.int64]
    reason: NDArray[np.int64]
    number: NDArray[np.int64]
    """Number of the first launch."""
    count: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.key)

    def part(self, choice: NDArray[np.bool_]) -> PackedItems:
        return PackedItems(*(getattr(self, field.name)[choice] for field in fields(self)))


def match_line(text: bytes, start: int = 0, end: int | None = None) -> re.Match[bytes] | None:
    """Return the match of the line between these offsets; None if it is not a line of packed launches."""
    return _PACKED_LINE.fullmatch(text, start, len(text) if end is None else end)


def read_packed(lines: Iterable[tuple[int, re.Match[bytes]]]) -> tuple[PackedSegments, PackedItems]:
    """Read lines, each given with its offset in the log: segments and items in the order of the lines."""
    offsets, matches = [], []
    for offset, match in lines:
        offsets.append(offset)
        matches.append(match)
    text = b"".join(match[4] for match in matches)
    owner_ends = np.cumsum(np.array([len(match[4]) for match in matches], dtype=np.int64))
    first_launches = np.array([int(match[1]) for match in matches], dtype=np.int64)
    items, line = _packed_items(text, owner_ends, first_launches)
    item_starts = np.flatnonzero(np.diff(line, prepend=-1)) if len(line) else line
    filled_lines = line[item_starts]
    min_launches, max_launches = first_launches.copy(), first_launches - 1
    if len(item_starts):
        min_launches[filled_lines] = np.minimum.reduceat(items.number, item_starts)
        max_launches[filled_lines] = np.maximum.reduceat(items.number + items.count - 1, item_starts)
    segments = PackedSegments(
        first_launch=min_launches,
        last_launch=max_launches,
        time_ns=np.array([int(match[2]) for match in matches], dtype=np.uint64),
        span_ns=np.array([int(match[3]) for match in matches], dtype=np.int64),
        offset=np.array(offsets, dtype=np.int64),
        size=np.array([match.end() - match.start() for match in matches], dtype=np.int64),
    )
    return segments, items


def _packed_items(
    text: bytes, ends_of_lines: NDArray[np.int64], first_launches: NDArray[np.int64]
) -> tuple[PackedItems, NDArray[np.int64]]:
    """Return the items of a text that contains nothing else, each behind a blank, and the line of each item."""
    codes = np.frombuffer(text, dtype=np.uint8)
    item_starts = np.flatnonzero(codes == _BLANK) + 1
    item_ends = np.append(item_starts[1:] - 1, len(text))[: len(item_starts)]
    line = np.searchsorted(ends_of_lines, item_starts, side="right")
    slash, multipliers = (_byte_positions(codes, item_starts, mark) for mark in (_SLASH, _TIMES))
    key_end = np.where(slash < 0, np.where(multipliers < 0, item_ends, multipliers), slash)
    is_jump = codes[item_starts] == _JUMP if len(item_starts) else np.zeros(0, dtype=np.bool_)
    block = ByteBlock(b"".join((b"\0" * LEADING_BYTES, text, b"\0" * TRAILING_BYTES)), LEADING_BYTES)
    value = _parse_numbers(block, item_starts + is_jump, key_end)
    reason = np.full(len(item_starts), DEFAULT_REASON, dtype=np.int64)
    has_reason = slash >= 0
    reason[has_reason] = _parse_numbers(
        block, slash[has_reason] + 1, np.where(multipliers < 0, item_ends, multipliers)[has_reason]
    )
    count = (~is_jump).astype(np.int64)
    is_repeated = multipliers >= 0
    count[is_repeated] = _parse_numbers(block, multipliers[is_repeated] + 1, item_ends[is_repeated])
    number = _launch_numbers(line, is_jump, value, count, first_launches)
    is_item = ~is_jump
    return PackedItems(value, reason, number, count).part(is_item), line[is_item]


def _byte_positions(codes: NDArray[np.uint8], item_starts: NDArray[np.int64], mark: int) -> NDArray[np.int64]:
    """Return the offset of this byte in each item; -1 for an item without it."""
    places = np.full(len(item_starts), -1, dtype=np.int64)
    offsets = np.flatnonzero(codes == mark)
    places[np.searchsorted(item_starts, offsets, side="right") - 1] = offsets
    return places


def _parse_numbers(block: ByteBlock, begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    return block.decimal(begin, end, 19)[0].astype(np.int64)


def _launch_numbers(
    line: NDArray[np.int64],
    is_jump: NDArray[np.bool_],
    value: NDArray[np.int64],
    count: NDArray[np.int64],
    first_launches: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the number of each item's first launch: counted from the last jump before it, or from the line's start."""
    if not len(line):
        return line
    counts_before = np.cumsum(count) - count
    is_line_start = np.diff(line, prepend=-1) != 0
    is_anchor = is_line_start | is_jump
    base = np.where(is_jump, value, first_launches[line]) - counts_before
    anchor_items = np.maximum.accumulate(np.where(is_anchor, np.arange(len(line)), 0))
    numbers: NDArray[np.int64] = base[anchor_items] + counts_before
    return numbers


@dataclass(frozen=True, slots=True)
class UnprobedLaunch:
    """One launch of a packed line, between ``time_ns`` (since 1970) and ``span_ns`` later. Kernel None: unknown."""

    number: int
    kernel: int | None
    key: int
    reason: Reason
    time_ns: int
    span_ns: int


@dataclass(frozen=True, slots=True)
class PackedCounts:
    """Launches of packed lines by key: those that ran, and those that were captured into a graph."""

    launches: Counter[int] = field(default_factory=Counter)
    captures: Counter[int] = field(default_factory=Counter)


class UnprobedTable:
    """The packed launches of a process: exact counts per key, and where to find each launch by its number.

    The lines themselves stay in the log, and are read again when someone asks for a launch or for those of a range.
    Where a line is takes some fifty bytes: in memory for the newest, in a file for older ones.
    """

    def __init__(self, directory: Path, spill: Spill | None = None) -> None:
        self._log = directory / LOG
        self.keys: dict[int, ShapeGroupNamed] = {}
        self._reasons: dict[int, Reason] = {}
        self._counts: Counter[tuple[int, int]] = Counter()
        self._unlogged: Counter[int] = Counter()
        self._unnamed: Counter[int] = Counter()
        """Launches of keys that have not been described yet, as the log's own always are."""
        spill = spill or Spill()
        self._columns = {
            field.name: LongColumn("Q" if field.name == "time_ns" else "q", spill, BLOCK)
            for field in fields(PackedSegments)
        }

    def __len__(self) -> int:
        """Return the number of launches, including those that the log had no room for."""
        return sum(self._counts.values()) + self.launches_lost

    @property
    def launches_lost(self) -> int:
        """Launches that were counted and have no number, as the log could not be written fast enough."""
        return sum(self._unlogged.values())

    @property
    def segments(self) -> int:
        """Number of packed lines."""
        return len(self._columns["first_launch"])

    def name_key(self, key: ShapeGroupNamed) -> int:
        """Note the shape group of a key, unless it is known. Return how many of its launches were counted before."""
        if key.key in self.keys:
            return 0
        self.keys[key.key] = key
        return self._unnamed.pop(key.key, 0)

    def name_reason(self, number: int, reason: Reason) -> None:
        if len(self._reasons) < _MAX_REASONS:
            self._reasons.setdefault(number, reason)

    def reason(self, number: int) -> Reason:
        """Return the reason with this number in packed lines."""
        if number == DEFAULT_REASON:
            return _NOT_SAMPLED
        return self._reasons.get(number) or Reason("the log has no reason", None)

    def kernel_of(self, key: int) -> int | None:
        group = self.keys.get(key)
        return None if group is None else group.kernel

    def add(self, segments: PackedSegments, items: PackedItems) -> PackedCounts:
        """Add lines, and the items that were read of them; return the launches of each key."""
        for name, column in self._columns.items():
            column.extend(getattr(segments, name))
        counts = PackedCounts()
        for key, reason, count in _sums(items):
            self._counts[key, reason] += count
            (counts.captures if self.reason(reason).code == CAPTURED else counts.launches)[key] += count
        self._unnamed.update({key: count for key, count in counts.launches.items() if key not in self.keys})
        return counts

    def add_lost(self, key: int, count: int) -> None:
        """Note that the log had no room for that many launches of a key."""
        self._unlogged[key] += count
        if key not in self.keys:
            self._unnamed[key] += count

    def counts(self) -> Iterator[tuple[int | None, Reason, int]]:
        """Yield kernel, reason and number of launches. Lost ones were not sampled: others wait for room."""
        for (key, reason), count in self._counts.items():
            yield self.kernel_of(key), self.reason(reason), count
        for key, count in self._unlogged.items():
            yield self.kernel_of(key), _NOT_SAMPLED, count

    def find(self, number: int) -> UnprobedLaunch | None:
        """Return the packed launch that the process counts as ``number``; None if no line reports it."""
        has_number = (self._column("first_launch") <= number) & (number <= self._column("last_launch"))
        for line in np.flatnonzero(has_number).tolist():
            _, items = self._read_lines(np.array([line]))
            positions = np.flatnonzero((items.number <= number) & (number < items.number + items.count))
            if len(positions):
                key, reason = int(items.key[positions[0]]), int(items.reason[positions[0]])
                time, span = (self._columns[name][line] for name in ("time_ns", "span_ns"))
                return UnprobedLaunch(number, self.kernel_of(key), key, self.reason(reason), time, span)
        return None

    def launches_between(self, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the numbers, in no order, and kernels (i8; -1 unknown) of the launches from ``first`` to ``last``.

        Launches that were captured into a graph are left out.
        """
        lines = np.flatnonzero((self._column("first_launch") <= last) & (self._column("last_launch") >= first))
        _, items = self._read_lines(lines)
        capture_reasons = [number for number, reason in self._reasons.items() if reason.code == CAPTURED]
        items = items.part(~np.isin(items.reason, capture_reasons))
        begin = np.maximum(items.number, first)
        count = np.maximum(np.minimum(items.number + items.count - 1, last) - begin + 1, 0)
        numbers = np.repeat(begin - (np.cumsum(count) - count), count) + np.arange(count.sum())
        keys, place = np.unique(items.key, return_inverse=True)
        kernels = [self.kernel_of(key) for key in keys.tolist()]
        kernel_of_key = np.array([-1 if kernel is None else kernel for kernel in kernels], dtype=np.int64)
        return numbers, np.repeat(kernel_of_key[place], count) if len(keys) else np.zeros(0, dtype=np.int64)

    def lines(self) -> list[tuple[int, ...]]:
        """Return, per packed line: min and max launch, time, span, offset in the log, size."""
        return list(zip(*self._columns.values(), strict=True))

    def _column(self, name: str) -> NDArray[np.int64]:
        return np.array(self._columns[name], dtype=np.int64)

    def _read_lines(self, lines: NDArray[np.int64]) -> tuple[PackedSegments, PackedItems]:
        """Read these lines of the log again. What is no longer there is left out."""
        return read_packed(self._matches(lines.tolist()))

    def _matches(self, lines: list[int]) -> Iterator[tuple[int, re.Match[bytes]]]:
        if not lines:
            return
        try:
            log = plain_descriptor(self._log)
        except OSError:
            return
        try:
            for line in lines:
                offset = self._columns["offset"][line]
                match = match_line(read_at(log, self._columns["size"][line], offset))
                if match is not None:
                    yield offset, match
        except OSError:
            return
        finally:
            os.close(log)


def _sums(items: PackedItems) -> Iterator[tuple[int, int, int]]:
    """Yield key, reason and number of launches, each pair once."""
    if not len(items):
        return
    codes, place = np.unique(items.key * _KEY_FACTOR + (items.reason - DEFAULT_REASON), return_inverse=True)
    counts = np.zeros(len(codes), dtype=np.int64)
    np.add.at(counts, place, items.count)
    for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
        yield code // _KEY_FACTOR, code % _KEY_FACTOR + DEFAULT_REASON, count
