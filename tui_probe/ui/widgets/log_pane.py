"""A window on a file that grows: follows its end, filters while it follows, and keeps no line but those in sight."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tui_probe.render import units
from tui_probe.render.spans import Line, clip_line, printable
from tui_probe.trace.log_index import LogIndex
from tui_probe.ui import keys
from tui_probe.ui.log_view import Page, find, log_lines, make_filter, read_page, refreshed
from tui_probe.ui.widgets.lines import Lines
from tui_probe.ui.widgets.text_page import mark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from numpy.typing import NDArray
    from textual import events

    from tui_probe.trace.line_filter import LineFilter

_TAGGED = re.compile(r"\[[a-z][a-z_-]{0,30}\]")
_FAILURE = re.compile(r"\b(failed|fail|error|fatal|Traceback|Exception|skipped|dropped)\b")


def log_line(text: str) -> Line:
    """A line with its tag set apart, and in another role if it tells of a failure (the word stands there too)."""
    tag = _TAGGED.match(text)
    role = "bad" if _FAILURE.search(text) else ""
    if tag is None:
        return ((text, role),)
    return ((tag[0], "accent"), (text[tag.end() :], role))


class LogPane(Lines, can_focus=True):
    """One log. Files are read in the background; drawn is the newest window that was read."""

    BINDINGS = keys.bindings("move", "log")
    SIDE_STEP = 8

    def __init__(self, *, follow: bool = True, styled: bool = True, **options: str | None) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.path: Path | None = None
        self.empty = "nothing yet"
        self.index: LogIndex | None = None
        self.page = Page()
        self.starts_following = follow
        self.follow = follow
        self.styled = styled
        self.tags: frozenset[str] = frozenset()
        self.filtered = ""
        self.searched = ""
        self.match: int | None = None
        self.left = 0
        self._top = 0
        self._seen = 0
        self._filter: LineFilter | None = None
        self._chosen: NDArray[np.int64] | None = None

    # -- what is shown

    def open(self, path: Path | None, empty: str = "nothing yet") -> None:
        """Show another file from its start, or from its end if this pane follows; None shows only ``empty``."""
        if path == self.path and empty == self.empty:
            return
        self.path, self.empty = path, empty
        self.index = None if path is None else LogIndex(path)
        self.page, self.follow, self.match = Page(), self.starts_following, None
        self._top = self.left = self._seen = 0
        self._refilter()

    def look(self) -> None:
        """Read the window again: the file may have grown."""
        if self.index is None:
            self.redraw()
        elif self._filter is not None:
            self.probe_app.search.submit((self, "filter"), partial(refreshed, self._filter), self._take_chosen)
            # Also index what is new, so that the filter has something to look at next time.
            self._read()
        else:
            self._read()

    def _read(self) -> None:
        if self.index is None or not self.size.height:
            return
        top = None if self.follow else self._top
        job = partial(read_page, self.index, top, self.size.height, self._chosen)
        self.probe_app.quick.submit((self, "page"), job, partial(self._take, self.index))

    def _take(self, index: LogIndex, page: Page) -> None:
        if index is not self.index or self._waits_for_filter:
            return
        self.page, self._top = page, page.top
        if self.follow:
            self._seen = page.total
        self.redraw()
        self.probe_app.page_changed()

    def _take_chosen(self, chosen: NDArray[np.int64]) -> None:
        if self._filter is not None:
            self._chosen = chosen
            self._read()

    @property
    def _waits_for_filter(self) -> bool:
        return self._filter is not None and self._chosen is None

    def draw(self, width: int, height: int) -> list[Line]:
        """The lines of the newest window."""
        page = self.page
        if self.index is None or page.problem or not page.lines:
            return [((f" {self._nothing()}", "bad" if page.problem else "dim"),)]
        lines = []
        for number, raw in zip(page.numbers[:height], page.lines, strict=False):
            text = printable(raw)
            line = log_line(text) if self.styled else ((text, ""),)
            if self.searched:
                line = mark(line, self.searched, "match" if number == self.match else "match_other")
            lines.append(clip_line(((" ", ""), *line), width, skip=self.left))
        return lines

    def _nothing(self) -> str:
        if self.page.problem:
            return self.page.problem
        if self._filter is not None:
            return "filtering" if self._waits_for_filter else "no line passes the filter: Esc shows all"
        return self.empty

    def status(self) -> Line:
        """Where the window is, and what is filtered."""
        page = self.page
        parts = []
        if self.tags:
            parts.append("only " + " ".join(sorted(self.tags)))
        if self.filtered:
            parts.append(f"only “{self.filtered}”")
        if page.total > self.size.height:
            end = min(page.total, page.top + self.size.height)
            parts.append(f"{units.count(page.top + 1)}–{units.count(end)} of {units.count(page.total)}")
        if page.total and self.follow:
            parts.append("following")
        elif page.total > self._seen and self._seen:
            parts.append(f"{units.count(page.total - self._seen)} new ↓ End")
        return ((" · ".join(parts), "dim"),) if parts else ()

    # -- filter and search

    def set_filter(self, text: str) -> None:
        """Only lines that contain ``text``."""
        self.filtered = text
        self._refilter()

    def set_tags(self, tags: frozenset[str]) -> None:
        """Only lines that begin with one of these tags; all lines for none."""
        self.tags = tags
        self._refilter()

    def _refilter(self) -> None:
        self._chosen = None
        self._filter = None if self.index is None else make_filter(self.index, self.tags, self.filtered)
        if not self.follow:
            self._top = 0
        self.look()
        self.redraw()

    def search(self, text: str) -> None:
        """To the first line from the window's start on that contains ``text``."""
        self.searched, self.match = text, None
        self._find(self._top, 1)

    def action_next_match(self, step: int) -> None:
        """To the next or previous line that contains the searched text."""
        place = self._top if self.match is None else self._place_of(self.match) + step
        self._find(place, step)

    def _place_of(self, number: int) -> int:
        return number if self._chosen is None else int(np.searchsorted(self._chosen, number))

    def _find(self, place: int, step: int) -> None:
        if self.index is None or not self.searched:
            return
        job = partial(find, self.index, self.searched, place, step, self._chosen)
        self.probe_app.search.submit((self, "find"), job, self._found)

    def _found(self, place: int | None) -> None:
        if place is None:
            self.probe_app.notice(f"“{self.searched}” is not in this log")
            return
        self.match = place if self._chosen is None else int(self._chosen[place])
        if not self._top <= place < self._top + self.size.height:
            self._go(place - self.size.height // 3)
        self.follow = False
        self._read()
        self.redraw()

    def clear_search(self) -> bool:
        """Forget search and filters. False if there was none."""
        had = bool(self.searched or self.filtered or self.tags)
        if had:
            self.searched, self.filtered, self.tags, self.match = "", "", frozenset(), None
            self._refilter()
        return had

    def copied(self) -> str:
        """The lines in sight."""
        return self.text()

    def exported(self) -> Callable[[], Iterable[str]]:
        """All lines that pass the filter, to be read in the background."""
        return lambda: [] if self.index is None else log_lines(self.index, self._chosen)

    # -- keys

    def _go(self, top: int) -> None:
        self._top = max(0, min(top, self.page.total - self.size.height))

    def _scroll(self, top: int) -> None:
        """Scroll to ``top``; upwards ends following."""
        last = self.page.total - self.size.height
        if top < self._top:
            self.follow = False
        self._go(top)
        if top > last and last > 0 and not self.follow:
            self._go(last)
        self._read()

    def action_move(self, step: int) -> None:
        """Scroll by lines."""
        self._scroll(self._top + step)

    def action_move_page(self, step: int) -> None:
        """Scroll by pages."""
        self._scroll(self._top + step * max(1, self.size.height - 1))

    def action_move_to(self, end: int) -> None:
        """To the start (0); to the end (-1), and follow it."""
        if end:
            self.follow = True
            self._read()
        else:
            self._scroll(0)

    def action_follow(self) -> None:
        """Follow the end, or stay."""
        self.follow = not self.follow
        self._read()
        self.probe_app.page_changed()

    def action_shift(self, step: int) -> None:
        """Scroll sideways."""
        self.left = max(0, self.left + step * self.SIDE_STEP)
        self.redraw()

    def action_tags(self) -> None:
        """Choose tags."""
        self.probe_app.choose_tags(self)

    def on_resize(self) -> None:
        """Another window needs other lines."""
        self._read()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel scrolls by three lines."""
        event.stop()
        self.action_move(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel scrolls by three lines."""
        event.stop()
        self.action_move(-3)
