"""Search and filter of a document. They run in the background: they have to make every line."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from tui_probe.ui.views.document_window import DocumentWindow
from tui_probe.ui.views.finding import find, passing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Document
    from tui_probe.probekit.kind import Source
    from tui_probe.ui.views.view import Desk


@dataclass(frozen=True)
class Before:
    """The first visible line and that of the cursor before there was a filter, and where that put the cursor."""

    top: int
    number: int
    put: int | None = None


class SearchedDocument(DocumentWindow):
    """A window on a document in which text is searched for, or on its lines that contain a text."""

    def __init__(self, desk: Desk, name: str, document: Document, source: Source | None) -> None:
        super().__init__(desk, name, document, source)
        self._before: Before | None = None
        """Where the cursor was when the filter was set."""

    def _filter_again(self) -> None:
        if self.filtered:
            self.set_filter(self.filtered, keep=True)

    def search(self, text: str) -> None:
        """From the cursor on."""
        self.searched, self.match = text, None
        self.next_match(1)

    def next_match(self, step: int) -> None:
        """Around the end, in the background."""
        if self.searched and self.count:
            here = self.place.cursor if self.gutter or self.match is None else self._place_of(self.match)
            start = here - step if self.match is None else here
            job = partial(find, self.lines, [*map(self._number, range(self.count))], self.searched, start, step)
            self.desk.tables.submit((self, "find"), job, partial(self._found, self.lines))

    def _found(self, lines: Sequence[Line], place: int | None) -> None:
        if lines is not self.lines:
            return
        self.match = None if place is None else self._number(place)
        if place is None:
            self.desk.notice(f"“{self.searched}” is not on this page")
            self.changed()
        else:
            self.place.to(place, self.count, self.room, above=self.room // 3)
            self._moved()

    @property
    def filter_text(self) -> str:
        """What shown lines must contain."""
        return self.filtered

    def set_filter(self, text: str, *, keep: bool = False) -> None:
        """Only lines that contain ``text``; found in the background."""
        if not text:
            self._show_all()
            return
        if self._before is None:
            self._before = Before(self.top, self.cursor)
        self.filtered = text
        job = partial(passing, self.lines, self.pinned, text)
        self.desk.tables.submit((self, "filter"), job, partial(self._take_filter, self.lines, keep))

    def _take_filter(self, lines: Sequence[Line], keep: bool, chosen: list[int]) -> None:
        """The cursor to the first of them from where it was on."""
        if lines is not self.lines or not self.filtered:
            return
        titles = self.document.heading()[0]
        chosen = [number for number in chosen if number not in titles]
        self.chosen, self.match = chosen, None
        if not keep and self._before is not None:
            place = min(bisect_left(chosen, self._before.number), max(0, len(chosen) - 1))
            self.place.top = 0
            self.place.to(place, self.count, self.room)
            self._before = replace(self._before, put=chosen[place] if chosen else None)
        self.changed()

    def clear_search(self) -> bool:
        """Forget search and filter."""
        had = bool(self.searched or self.filtered)
        self.searched, self.match = "", None
        if had:
            self._show_all()
        return had

    def _show_all(self) -> None:
        """No filter: the cursor stays at its line; where it was not moved it returns to the one it was on before."""
        here, before, was_filtered = self.cursor, self._before, self.chosen is not None
        lost = was_filtered and not self.count
        self.filtered, self.chosen, self._before = "", None, None
        if was_filtered and before is not None and (lost or here == before.put):
            self.place.top, self.place.cursor = before.top, before.number - self.pinned
            self.place.fit(self.count, self.room)
        elif was_filtered:
            self.place.to(here - self.pinned, self.count, self.room)
        self.changed()

    def _is_hidden(self, number: int) -> bool:
        """Does a line not pass the filter?"""
        if self.chosen is None:
            return False
        place = bisect_left(self.chosen, number)
        return place == len(self.chosen) or self.chosen[place] != number
