"""Search and filter of a document in a pane: both run in the background, and move the cursor of the window."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from tui_probe.ui.views.document_window import matching_lines, next_match_place

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.ui.views.document_window import LineWindow
    from tui_probe.ui.views.view import Desk


@dataclass(frozen=True)
class PositionBeforeFilter:
    """The first visible line and that of the cursor before there was a filter, and where that put the cursor."""

    top: int
    number: int
    put: int | None = None


@dataclass(frozen=True)
class SearchState:
    """Search and filter of a document, to be restored."""

    searched: str
    match: int | None
    filtered: str
    chosen: list[int] | None
    before: PositionBeforeFilter | None


class DocumentSearch:
    """Search and filter on the lines of a window.

    ``moved`` is called after the cursor was put elsewhere, ``changed`` where other lines are to be drawn.
    """

    def __init__(self, window: LineWindow, desk: Desk, moved: Callable[[], None], changed: Callable[[], None]) -> None:
        self.searched = ""
        self.filtered = ""
        self.match: int | None = None
        self._window, self._desk = window, desk
        self._moved, self._changed = moved, changed
        self._before: PositionBeforeFilter | None = None
        """Position of the cursor when the filter was set."""

    def search(self, text: str) -> None:
        """Go to the next line with a text, from the cursor on."""
        self.searched, self.match = text, None
        self.next_match(1)

    def next_match(self, step: int) -> None:
        """Go to the next or previous match, around the end, in the background."""
        window = self._window
        if not self.searched or not window.count:
            return
        here = window.place.cursor if window.gutter or self.match is None else window.place_of(self.match)
        start = here - step if self.match is None else here
        numbers = [*map(window.number, range(window.count))]
        job = partial(next_match_place, window.lines, numbers, self.searched, start, step)
        self._desk.tables.submit((self, "find"), job, partial(self._take_match, window.lines))

    def _take_match(self, lines: Sequence[Line], place: int | None) -> None:
        window = self._window
        if lines is not window.lines:
            return
        self.match = None if place is None else window.number(place)
        if place is None:
            self._desk.notice(f"“{self.searched}” is not on this page")
            self._changed()
        else:
            window.go_to(place, above=window.room // 3)
            self._moved()

    def set_filter(self, text: str, *, keep: bool = False) -> None:
        """Leave only lines that contain ``text``; found in the background. ``keep``: the cursor stays."""
        window = self._window
        if not text:
            self._show_all()
            return
        if self._before is None:
            self._before = PositionBeforeFilter(window.top, window.cursor)
        self.filtered = text
        job = partial(matching_lines, window.lines, window.pinned, text)
        self._desk.tables.submit((self, "filter"), job, partial(self._take_filter, window.lines, keep))

    def _take_filter(self, lines: Sequence[Line], keep: bool, chosen: list[int]) -> None:
        """The cursor to the first of them from where it was on."""
        window = self._window
        if lines is not window.lines or not self.filtered:
            return
        titles = window.document.heading()[0]
        chosen = [number for number in chosen if number not in titles]
        window.chosen, self.match = chosen, None
        if not keep and self._before is not None:
            place = min(bisect_left(chosen, self._before.number), max(0, len(chosen) - 1))
            window.place.top = 0
            window.go_to(place)
            self._before = replace(self._before, put=chosen[place] if chosen else None)
        self._changed()

    def clear(self) -> bool:
        """End the search, or without one the filter; False if there was neither."""
        searched, filtered = bool(self.searched), bool(self.filtered)
        self.searched, self.match = "", None
        if searched:
            self._changed()
        elif filtered:
            self._show_all()
        return searched or filtered

    def clear_all(self) -> None:
        """End both."""
        while self.clear():
            pass

    def _show_all(self) -> None:
        """No filter: the cursor stays at its line; where it was not moved it returns to the one it was on before."""
        window = self._window
        here, before, was_filtered = window.cursor, self._before, window.chosen is not None
        lost = was_filtered and not window.count
        self.filtered, window.chosen, self._before = "", None, None
        if was_filtered and before is not None and (lost or here == before.put):
            window.place.top, window.place.cursor = before.top, before.number - window.pinned
            window.fit()
        elif was_filtered:
            window.go_to(here - window.pinned)
        self._changed()

    def resume(self, before: DocumentSearch) -> None:
        """Take search and filter of the page that was here before; its lines are filtered when they are laid out."""
        self.searched = before.searched
        if before.filtered:
            self.filtered = before.filtered

    def state(self) -> SearchState:
        """Return all that is needed to see the same lines again."""
        return SearchState(self.searched, self.match, self.filtered, self._window.chosen, self._before)

    def restore(self, state: SearchState) -> None:
        """Show the lines of a state again."""
        self.searched, self.match, self.filtered = state.searched, state.match, state.filtered
        self._window.chosen, self._before = state.chosen, state.before
