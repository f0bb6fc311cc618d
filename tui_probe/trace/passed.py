"""Launches that the log tells of in packed lines: exact counts per key, and where to find each by its number.

The lines themselves stay in the log, and are read again when somebody asks for a launch or for those of a range. Where
a line stands takes some fifty bytes: in memory for the newest, in a file for older ones.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.reasons import Reason, because
from tui_probe.trace.launches import CAPTURED
from tui_probe.trace.locate import LOG
from tui_probe.trace.long_column import LongColumn
from tui_probe.trace.packed_lines import DEFAULT_REASON, Items, Segments, match_line, read_packed
from tui_probe.trace.plain_file import plain_descriptor
from tui_probe.trace.spill import Spill

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from tui_probe.trace.launch_events import KeyNamed

_NOT_SAMPLED: Final = because("not-sampled")
_MOST_REASONS: Final = 4096
BLOCK: Final = 1 << 11
"""Lines of which where they are goes to the file together."""
_MANY: Final = 1 << 32
"""More than a key or a reason: both make one number."""


@dataclass(frozen=True, slots=True)
class PassedLaunch:
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

    run: Counter[int] = field(default_factory=Counter)
    captured: Counter[int] = field(default_factory=Counter)


class PassedTable:
    """The packed launches of a process."""

    def __init__(self, directory: Path, spill: Spill | None = None) -> None:
        self._log = directory / LOG
        self.keys: dict[int, KeyNamed] = {}
        self._reasons: dict[int, Reason] = {}
        self._counts: Counter[tuple[int, int]] = Counter()
        self._lost: Counter[int] = Counter()
        self._early: Counter[int] = Counter()
        """Launches of keys that have not been described yet, as the log's own always are."""
        spill = spill or Spill()
        self._columns = {
            each.name: LongColumn("Q" if each.name == "time_ns" else "q", spill, BLOCK) for each in fields(Segments)
        }

    def __len__(self) -> int:
        """How many launches there are, those among them that the log had no room for."""
        return sum(self._counts.values()) + self.lost

    @property
    def lost(self) -> int:
        """Launches that were counted and have no number, as the log could not be written fast enough."""
        return sum(self._lost.values())

    @property
    def segments(self) -> int:
        """How many lines there are."""
        return len(self._columns["first"])

    def name_key(self, key: KeyNamed) -> int:
        """Note what a key is of, unless that is known; how many launches of it were counted before."""
        if key.key in self.keys:
            return 0
        self.keys[key.key] = key
        return self._early.pop(key.key, 0)

    def name_reason(self, number: int, reason: Reason) -> None:
        if len(self._reasons) < _MOST_REASONS:
            self._reasons.setdefault(number, reason)

    def reason(self, number: int) -> Reason:
        """The reason with this number in packed lines."""
        if number == DEFAULT_REASON:
            return _NOT_SAMPLED
        return self._reasons.get(number) or Reason("the log does not say why", None)

    def kernel_of(self, key: int) -> int | None:
        known = self.keys.get(key)
        return None if known is None else known.kernel

    def add(self, segments: Segments, items: Items) -> PackedCounts:
        """Add lines, and the items that were read of them; return the launches of each key."""
        for name, column in self._columns.items():
            column.extend(getattr(segments, name))
        added = PackedCounts()
        for key, reason, count in _sums(items):
            self._counts[key, reason] += count
            (added.captured if self.reason(reason).code == CAPTURED else added.run)[key] += count
        self._early.update({key: count for key, count in added.run.items() if key not in self.keys})
        return added

    def lose(self, key: int, count: int) -> None:
        """Note that the log had no room for so many launches of a key."""
        self._lost[key] += count
        if key not in self.keys:
            self._early[key] += count

    def counts(self) -> Iterator[tuple[int | None, Reason, int]]:
        """Kernel, reason and number of launches; lost ones were not sampled, for others wait for room."""
        for (key, reason), count in self._counts.items():
            yield self.kernel_of(key), self.reason(reason), count
        for key, count in self._lost.items():
            yield self.kernel_of(key), _NOT_SAMPLED, count

    def find(self, number: int) -> PassedLaunch | None:
        """The packed launch that the process counts as ``number``; None if no line tells of it."""
        inside = (self._column("first") <= number) & (number <= self._column("last"))
        for line in np.flatnonzero(inside).tolist():
            _, items = self._read(np.array([line]))
            meant = np.flatnonzero((items.number <= number) & (number < items.number + items.count))
            if len(meant):
                key, reason = int(items.key[meant[0]]), int(items.reason[meant[0]])
                time, span = (self._columns[name][line] for name in ("time_ns", "span_ns"))
                return PassedLaunch(number, self.kernel_of(key), key, self.reason(reason), time, span)
        return None

    def within(self, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the numbers, in no order, and kernels (i8; -1 unknown) of the launches from ``first`` to ``last``.

        Launches that were captured into a graph are left out.
        """
        lines = np.flatnonzero((self._column("first") <= last) & (self._column("last") >= first))
        _, items = self._read(lines)
        captured = [number for number, reason in self._reasons.items() if reason.code == CAPTURED]
        items = items.part(~np.isin(items.reason, captured))
        begin = np.maximum(items.number, first)
        count = np.maximum(np.minimum(items.number + items.count - 1, last) - begin + 1, 0)
        numbers = np.repeat(begin - (np.cumsum(count) - count), count) + np.arange(count.sum())
        keys, place = np.unique(items.key, return_inverse=True)
        kernels = [self.kernel_of(key) for key in keys.tolist()]
        of_key = np.array([-1 if kernel is None else kernel for kernel in kernels], dtype=np.int64)
        return numbers, np.repeat(of_key[place], count) if len(keys) else np.zeros(0, dtype=np.int64)

    def lines(self) -> list[tuple[int, ...]]:
        """Of each packed line least and greatest launch, time, span, offset in the log and size."""
        return list(zip(*self._columns.values(), strict=True))

    def _column(self, name: str) -> NDArray[np.int64]:
        return np.array(self._columns[name], dtype=np.int64)

    def _read(self, lines: NDArray[np.int64]) -> tuple[Segments, Items]:
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
                match = match_line(os.pread(log, self._columns["size"][line], offset))
                if match is not None:
                    yield offset, match
        except OSError:
            return
        finally:
            os.close(log)


def _sums(items: Items) -> Iterator[tuple[int, int, int]]:
    """Key, reason and number of launches, each pair once."""
    if not len(items):
        return
    codes, place = np.unique(items.key * _MANY + (items.reason - DEFAULT_REASON), return_inverse=True)
    counts = np.zeros(len(codes), dtype=np.int64)
    np.add.at(counts, place, items.count)
    for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
        yield code // _MANY, code % _MANY + DEFAULT_REASON, count
