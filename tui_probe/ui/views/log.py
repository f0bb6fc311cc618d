"""Window on a growing log file: follows its end, searches, filters, and keeps only visible lines."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from tui_probe.draw import units
from tui_probe.draw.printable import printable
from tui_probe.draw.spans import Line, clip_line, wrap
from tui_probe.errors import TraceError
from tui_probe.ui.views.view import SIDE_STEP, PaneView, ViewHost, mark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path
    from typing import Literal

    import numpy as np
    from numpy.typing import NDArray

    from tui_probe.trace.log_index import LineFilter, Needle

_TAG_PATTERN = r"\[[a-z][a-z_-]{0,30}\]"
_TAG = re.compile(_TAG_PATTERN)
_TAGS_OF_LINES = re.compile(rb"^" + _TAG_PATTERN.encode(), re.MULTILINE)
_BATCH_LINES = 1000
"""Lines of a log that an export reads at a time."""
_FAILURE = re.compile(r"\b(failed|fail|error|fatal|Traceback|Exception|skipped|dropped(?! 0\b))\b")


@dataclass(frozen=True)
class LogFilter:
    """Filter of lines: those that begin with one of ``tags`` and contain ``text``; all by default."""

    tags: frozenset[str] = frozenset()
    text: str = ""


@dataclass(frozen=True)
class LogWindow:
    """A window of a log.

    ``total`` lines can be scrolled through, those that are wanted; ``top`` is the place of the first one visible among
    them; ``numbers`` are the numbers in the file of those visible.
    """

    wanted: LogFilter = LogFilter()
    top: int = 0
    total: int = 0
    lines: tuple[bytes, ...] = ()
    numbers: tuple[int, ...] = ()
    problem: str = ""


class LogReader:
    """One log. All methods read the file, and belong to one thread."""

    def __init__(self, path: Path) -> None:
        from tui_probe.trace.log_index import LogIndex  # brings NumPy, which the first frame of a screen does not need

        self.index = LogIndex(path)
        self._log_filter = LogFilter()
        self._filter: LineFilter | None = None

    def page(self, top: int | None, height: int, log_filter: LogFilter) -> LogWindow:
        """The window of ``height`` lines from ``top`` on, or at the end for None."""
        try:
            self.index.refresh()
            matches = self._matching_lines(log_filter)
            total = len(self.index) if matches is None else len(matches)
            last_top = max(0, total - height)
            first_line = last_top if top is None else max(0, min(top, last_top))
            end = min(total, first_line + height)
            if matches is None:
                numbers, lines = list(range(first_line, end)), self.index.lines(first_line, end)
            else:
                numbers = matches[first_line:end].tolist()
                lines = [line for number in numbers for line in self.index.lines(number, number + 1)]
        except (TraceError, OSError) as error:
            return LogWindow(log_filter, problem=str(error))
        return LogWindow(log_filter, first_line, total, tuple(lines), tuple(numbers))

    def find(self, text: str, place: int, step: Literal[1, -1], log_filter: LogFilter) -> tuple[int, int] | None:
        """The next (1) or previous (-1) line with ``text`` from ``place`` on, around the end.

        Returns its place among the wanted lines and its number in the file; None if there is none, or no file.
        """
        try:
            return self._find(needle_of(text), place, step, self._matching_lines(log_filter))
        except OSError:
            return None

    def _find(
        self, needle: Needle, place: int, step: Literal[1, -1], matches: NDArray[np.int64] | None
    ) -> tuple[int, int] | None:
        total = len(self.index) if matches is None else len(matches)
        for start in (place, 0 if step > 0 else total - 1):
            if 0 <= start < total and (position := self._find_from(needle, start, step, matches)) is not None:
                return position
        return None

    def count_tags(self) -> dict[str, int]:
        """Count the lines per ``[tag]`` in what can be read of the file."""
        counts: dict[str, int] = {}
        with contextlib.suppress(OSError):
            for _, data, _ in self.index.slices(0, self.index.complete):
                for match in _TAGS_OF_LINES.finditer(data):
                    tag = match[0].decode()
                    counts[tag] = counts.get(tag, 0) + 1
        return counts

    def all_lines(self, log_filter: LogFilter) -> Iterator[str]:
        """All wanted lines as text that is safe to show."""
        matches = self._matching_lines(log_filter)
        numbers = range(len(self.index)) if matches is None else matches.tolist()
        for first in range(0, len(numbers), _BATCH_LINES):
            batch = numbers[first : first + _BATCH_LINES]
            if matches is None:
                raw = self.index.lines(batch[0], batch[-1] + 1)
            else:
                raw = [self.index.line(number) for number in batch]
            yield from map(printable, raw)

    def _matching_lines(self, log_filter: LogFilter) -> NDArray[np.int64] | None:
        """The numbers of the wanted lines, None for all."""
        if log_filter != self._log_filter:
            self._log_filter, tags = log_filter, tuple(tag.encode() for tag in sorted(log_filter.tags))
            needle = needle_of(log_filter.text) if log_filter.text else None
            from tui_probe.trace.log_index import LineFilter

            self._filter = LineFilter(self.index, tags, needle) if tags or needle else None
        if self._filter is None:
            return None
        self._filter.refresh()
        return self._filter.numbers

    def _find_from(
        self, needle: Needle, place: int, step: Literal[1, -1], matches: NDArray[np.int64] | None
    ) -> tuple[int, int] | None:
        line = place if matches is None else int(matches[place])
        while True:
            number = self.index.search(needle, line, step)
            if number is None:
                return None
            if matches is None:
                return number, number
            position = int(matches.searchsorted(number))
            if position < len(matches) and matches[position] == number:
                return position, number
            line = number + step
            if not 0 <= line < len(self.index):
                return None


def needle_of(text: str) -> Needle:
    """``text`` literally; lower case matches both cases."""
    from tui_probe.trace.log_index import Needle

    return Needle.from_query(text, ignore_case=text == text.lower())


def log_line(text: str) -> Line:
    """A line with its tag set apart, and in another role if it reports a failure (the word is there too)."""
    tag = _TAG.match(text)
    role = "bad" if _FAILURE.search(text) else ""
    if tag is None:
        return ((text, role),)
    return ((tag[0], "accent"), (text[tag.end() :], role))


class LogView(PaneView):
    """One log. It is read in the background; drawn is the newest window that was read."""

    key_scope = "log"

    def __init__(self, view_host: ViewHost, name: str, *, follow: bool = True, styled: bool = True) -> None:
        super().__init__(view_host, name)
        self.path: Path | None = None
        self.empty_text = "nothing yet"
        self.reader: LogReader | None = None
        self.page = LogWindow()
        self.wanted = LogFilter()
        self.starts_following = follow
        self.follow = follow
        self.styled = styled
        self.search_text = ""
        self.match: int | None = None
        self.left = 0
        self._top = self._top_before = 0
        self._seen_lines = 0
        self._match_place = 0

    # -- what is shown

    def open(self, path: Path | None, empty_text: str = "nothing yet") -> None:
        """Show another file from its start, or from its end if this view follows; None shows only ``empty_text``."""
        if path == self.path and empty_text == self.empty_text:
            return
        if path != self.path:
            self.reader = None if path is None else LogReader(path)
            self.page, self.follow, self.match = LogWindow(self.wanted), self.starts_following, None
            self._top = self.left = self._seen_lines = 0
        self.path, self.empty_text = path, empty_text
        self.update()
        self.request_redraw()

    def update(self) -> None:
        """Read the window again: the file may have grown."""
        if self.reader is not None and self.height:
            top = None if self.follow else self._top
            job = partial(self.reader.page, top, self.height, self.wanted)
            self.view_host.logs.submit((self, "page"), job, partial(self._take, self.reader))

    def _take(self, reader: LogReader, page: LogWindow) -> None:
        if reader is not self.reader or page.wanted != self.wanted:
            return
        self.page, self._top = page, page.top
        if self.follow:
            self._seen_lines = page.total
        self.request_redraw()

    def resize(self, width: int, height: int) -> None:
        """Another window needs other lines."""
        super().resize(width, height)
        self.update()

    def draw(self, width: int, height: int) -> list[Line]:
        """The lines of the newest window."""
        page = self.page
        if self.reader is None or page.problem or not page.lines:
            role = "bad" if page.problem else "dim"
            return [((f" {part}", role),) for part in wrap(self._empty_message(), width - 2)]
        lines = []
        for number, raw in zip(page.numbers[:height], page.lines, strict=False):
            text = printable(raw)
            line = log_line(text) if self.styled else ((text, ""),)
            if self.search_text:
                line = mark(line, self.search_text, "match" if number == self.match else "match_other")
            lines.append(clip_line(((" ", ""), *line), width, skip=self.left))
        return lines

    def _empty_message(self) -> str:
        if self.page.problem:
            return self.page.problem
        if self.wanted != LogFilter() and self.reader is not None:
            return "filtering" if self.page.wanted != self.wanted else "no line passes the filter: press Esc to see all"
        return self.empty_text

    def status(self) -> list[str]:
        """Return the position of the window, and the filter."""
        page, parts = self.page, list[str]()
        if self.wanted.tags:
            parts.append("only " + " ".join(sorted(self.wanted.tags)))
        if self.wanted.text:
            parts.append(f"only “{self.wanted.text}”")
        if page.total > self.height:
            end = min(page.total, page.top + self.height)
            parts.append(f"{units.count(page.top + 1)}–{units.count(end)} of {units.count(page.total)}")
        if page.total and self.follow:
            parts.append("following")
        elif page.total > self._seen_lines and self._seen_lines:
            parts.append(f"{units.count(page.total - self._seen_lines)} new ↓ End")
        return parts

    # -- filter and search

    @property
    def filter_text(self) -> str:
        """Text that shown lines must contain."""
        return self.wanted.text

    def set_filter(self, text: str) -> None:
        """Only lines that contain ``text``."""
        self._apply_filter(replace(self.wanted, text=text))

    def set_tags(self, tags: frozenset[str]) -> None:
        """Only lines that begin with one of these tags; all lines for none."""
        self._apply_filter(replace(self.wanted, tags=tags))

    def _apply_filter(self, log_filter: LogFilter) -> None:
        if self.wanted == LogFilter():
            self._top_before = self._top
        self.wanted = log_filter
        if not self.follow:
            self._top = self._top_before if log_filter == LogFilter() and not self._top else 0
        self._seen_lines = 0
        self.page = LogWindow()
        self.update()
        self.request_redraw()

    def count_tags(self, on_counts: Callable[[dict[str, int]], None]) -> None:
        """Count the lines of each tag, then call ``on_counts``."""
        if self.reader is not None:
            self.view_host.logs.submit((self, "tags"), self.reader.count_tags, on_counts)

    def search(self, text: str) -> None:
        """Go to the first line from the window's start on that contains ``text``."""
        self.search_text, self.match = text, None
        self._find(self._top, 1)

    def next_match(self, step: int) -> None:
        """Go to the next or previous line that contains the searched text."""
        self._find(self._top if self.match is None else self._match_place + step, step)

    def _find(self, place: int, step: int) -> None:
        if self.reader is not None and self.search_text:
            job = partial(self.reader.find, self.search_text, place, 1 if step > 0 else -1, self.wanted)
            self.view_host.logs.submit((self, "find"), job, self._take_match)

    def _take_match(self, place_and_number: tuple[int, int] | None) -> None:
        if place_and_number is None:
            self.view_host.notice(f"“{self.search_text}” is not in this log")
        else:
            self._match_place, self.match = place_and_number
            self.follow = False
            if not self._top <= self._match_place < self._top + self.height:
                self._top = max(0, self._match_place - self.height // 3)
            self.update()
        self.request_redraw()

    def clear_search(self) -> bool:
        """End the search; without one the filter; without both the choice of tags. False if there was none."""
        if self.search_text:
            self.search_text, self.match = "", None
            self.request_redraw()
        elif self.wanted.text:
            self._apply_filter(replace(self.wanted, text=""))
        elif self.wanted != LogFilter():
            self._apply_filter(LogFilter())
        else:
            return False
        return True

    def line_exporter(self) -> Callable[[], Iterable[str]]:
        """All lines that pass the filter, to be read in the background."""
        if self.path is None:
            return lambda: ()
        return partial(_export_lines, self.path, self.wanted)

    # -- keys

    def move(self, step: int) -> None:
        """Scroll by lines; upwards ends following."""
        if step < 0:
            self.follow = False
        self._top = max(0, min(self._top + step, self.page.total - self.height))
        self.update()

    def move_to(self, end: int) -> None:
        """Move to the start, or to the end and follow it."""
        self.follow = bool(end)
        self._top = 0
        self.update()

    def toggle_follow(self) -> None:
        """Follow the end, or stay."""
        self.follow = not self.follow
        self.update()
        self.request_redraw()

    def shift(self, step: int) -> None:
        """Scroll sideways."""
        self.left = max(0, self.left + step * SIDE_STEP)
        self.request_redraw()


def _export_lines(path: Path, log_filter: LogFilter) -> Iterable[str]:
    reader = LogReader(path)
    reader.index.refresh()
    return reader.all_lines(log_filter)
