"""What a log pane asks of a file, answered in a background thread. Knows nothing of Textual."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tui_probe.errors import TraceError
from tui_probe.render.spans import printable
from tui_probe.trace.line_filter import LineFilter
from tui_probe.trace.line_search import Needle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tui_probe.trace.log_index import LogIndex

_TAG = re.compile(rb"^\[[a-z][a-z_-]{0,30}\]", re.MULTILINE)


@dataclass(frozen=True)
class Page:
    """A window of a log. ``total`` lines can be scrolled through: all lines, or those that pass the filter."""

    top: int = 0
    total: int = 0
    lines: tuple[bytes, ...] = ()
    numbers: tuple[int, ...] = ()
    size: int = 0
    generation: int = 0
    exists: bool = True
    problem: str = ""


def read_page(index: LogIndex, top: int | None, height: int, chosen: NDArray[np.int64] | None) -> Page:
    """The window of ``height`` lines from ``top`` on (None: at the end), of the ``chosen`` lines only if given."""
    try:
        index.refresh()
        total = len(index) if chosen is None else len(chosen)
        first = max(0, total - height)
        if top is not None:
            first = max(0, min(top, first))
        last = min(total, first + height)
        if chosen is None:
            numbers = tuple(range(first, last))
            lines = tuple(index.lines(first, last))
        else:
            numbers = tuple(int(number) for number in chosen[first:last])
            lines = tuple(line for number in numbers for line in index.lines(number, number + 1))
        exists = index.size > 0 or index.path.exists()
    except (TraceError, OSError) as error:
        return Page(problem=str(error))
    return Page(first, total, lines, numbers, index.size, index.generation, exists)


def needle_of(text: str) -> Needle:
    """``text`` literally; lower case matches both cases."""
    return Needle.of(text, ignore_case=text == text.lower())


def make_filter(index: LogIndex, tags: frozenset[str], text: str) -> LineFilter | None:
    """A filter for lines with one of the tags that contain ``text``; None if all lines pass."""
    if not tags and not text:
        return None
    return LineFilter(index, tuple(tag.encode() for tag in sorted(tags)), needle_of(text) if text else None)


def refreshed(line_filter: LineFilter) -> NDArray[np.int64]:
    """The numbers of the lines that pass, with those that were appended."""
    line_filter.refresh()
    return line_filter.numbers


def find(index: LogIndex, text: str, place: int, step: int, chosen: NDArray[np.int64] | None) -> int | None:
    """The place of the next (1) or previous (-1) line that contains ``text``, from ``place`` on, around the end.

    A place counts the lines that can be scrolled through. None if there is no such line.
    """
    needle = needle_of(text)
    total = len(index) if chosen is None else len(chosen)
    for start in (place, 0 if step > 0 else total - 1):
        if 0 <= start < total and (found := _find_from(index, needle, start, step, chosen)) is not None:
            return found
    return None


def _find_from(index: LogIndex, needle: Needle, place: int, step: int, chosen: NDArray[np.int64] | None) -> int | None:
    direction = 1 if step > 0 else -1
    line = place if chosen is None else int(chosen[place])
    while True:
        number = index.search(needle, line, 1 if direction > 0 else -1)
        if number is None or chosen is None:
            return number
        at = int(np.searchsorted(chosen, number))
        if at < len(chosen) and chosen[at] == number:
            return at
        line = number + direction
        if not 0 <= line < len(index):
            return None


def log_lines(index: LogIndex, chosen: NDArray[np.int64] | None) -> Iterator[str]:
    """All lines, or the ``chosen`` ones, as text."""
    numbers = range(len(index)) if chosen is None else chosen.tolist()
    for first in range(0, len(numbers), 1000):
        some = numbers[first : first + 1000]
        raw = index.lines(some[0], some[-1] + 1) if chosen is None else [index.line(number) for number in some]
        yield from map(printable, raw)


def count_tags(index: LogIndex) -> dict[str, int]:
    """How many lines begin with each ``[tag]``."""
    counts: dict[str, int] = {}
    for _, data, _ in index.slices(0, index.complete):
        for match in _TAG.finditer(data):
            tag = match[0].decode()
            counts[tag] = counts.get(tag, 0) + 1
    return counts
