"""Windows on a log file, searches and filters in it. Slow enough to run in a background thread, and in one only."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tui_probe.draw.printable import printable
from tui_probe.errors import TraceError
from tui_probe.trace.line_filter import LineFilter
from tui_probe.trace.line_search import Needle
from tui_probe.trace.log_index import LogIndex

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Literal

    from numpy.typing import NDArray

_TAG = re.compile(rb"^\[[a-z][a-z_-]{0,30}\]", re.MULTILINE)


@dataclass(frozen=True)
class Wanted:
    """Which lines are shown: those that begin with one of ``tags`` and contain ``text``; all by default."""

    tags: frozenset[str] = frozenset()
    text: str = ""


@dataclass(frozen=True)
class Page:
    """A window of a log.

    ``total`` lines can be scrolled through, those that are wanted; ``top`` is the place of the first one visible among
    them; ``numbers`` are the numbers in the file of those visible.
    """

    wanted: Wanted = Wanted()
    top: int = 0
    total: int = 0
    lines: tuple[bytes, ...] = ()
    numbers: tuple[int, ...] = ()
    problem: str = ""


class LogReader:
    """One log. All methods read the file, and belong to one thread."""

    def __init__(self, path: Path) -> None:
        self.index = LogIndex(path)
        self._wanted = Wanted()
        self._filter: LineFilter | None = None

    def page(self, top: int | None, height: int, wanted: Wanted) -> Page:
        """The window of ``height`` lines from ``top`` on, or at the end for None."""
        try:
            self.index.refresh()
            chosen = self._choose(wanted)
            total = len(self.index) if chosen is None else len(chosen)
            last_top = max(0, total - height)
            first = last_top if top is None else max(0, min(top, last_top))
            end = min(total, first + height)
            if chosen is None:
                numbers, lines = list(range(first, end)), self.index.lines(first, end)
            else:
                numbers = chosen[first:end].tolist()
                lines = [line for number in numbers for line in self.index.lines(number, number + 1)]
        except (TraceError, OSError) as error:
            return Page(wanted, problem=str(error))
        return Page(wanted, first, total, tuple(lines), tuple(numbers))

    def find(self, text: str, place: int, step: Literal[1, -1], wanted: Wanted) -> tuple[int, int] | None:
        """The next (1) or previous (-1) line with ``text`` from ``place`` on, around the end.

        Returns its place among the wanted lines and its number in the file; None if there is none, or no file.
        """
        try:
            return self._find(needle_of(text), place, step, self._choose(wanted))
        except OSError:
            return None

    def _find(
        self, needle: Needle, place: int, step: Literal[1, -1], chosen: NDArray[np.int64] | None
    ) -> tuple[int, int] | None:
        total = len(self.index) if chosen is None else len(chosen)
        for start in (place, 0 if step > 0 else total - 1):
            if 0 <= start < total and (found := self._find_from(needle, start, step, chosen)) is not None:
                return found
        return None

    def count_tags(self) -> dict[str, int]:
        """How many lines begin with each ``[tag]``; as far as the file can be read."""
        counts: dict[str, int] = {}
        with contextlib.suppress(OSError):
            for _, data, _ in self.index.slices(0, self.index.complete):
                for match in _TAG.finditer(data):
                    tag = match[0].decode()
                    counts[tag] = counts.get(tag, 0) + 1
        return counts

    def all_lines(self, wanted: Wanted) -> Iterator[str]:
        """All wanted lines as text that is safe to show."""
        chosen = self._choose(wanted)
        numbers = range(len(self.index)) if chosen is None else chosen.tolist()
        for first in range(0, len(numbers), 1000):
            some = numbers[first : first + 1000]
            raw = self.index.lines(some[0], some[-1] + 1) if chosen is None else [self.index.line(n) for n in some]
            yield from map(printable, raw)

    def _choose(self, wanted: Wanted) -> NDArray[np.int64] | None:
        """The numbers of the wanted lines, None for all."""
        if wanted != self._wanted:
            self._wanted, tags = wanted, tuple(tag.encode() for tag in sorted(wanted.tags))
            needle = needle_of(wanted.text) if wanted.text else None
            self._filter = LineFilter(self.index, tags, needle) if tags or needle else None
        if self._filter is None:
            return None
        self._filter.refresh()
        return self._filter.numbers

    def _find_from(
        self, needle: Needle, place: int, step: Literal[1, -1], chosen: NDArray[np.int64] | None
    ) -> tuple[int, int] | None:
        line = place if chosen is None else int(chosen[place])
        while True:
            number = self.index.search(needle, line, step)
            if number is None:
                return None
            if chosen is None:
                return number, number
            at = int(np.searchsorted(chosen, number))
            if at < len(chosen) and chosen[at] == number:
                return at, number
            line = number + step
            if not 0 <= line < len(self.index):
                return None


def needle_of(text: str) -> Needle:
    """``text`` literally; lower case matches both cases."""
    return Needle.of(text, ignore_case=text == text.lower())
