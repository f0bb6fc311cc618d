"""Window on the lines of a document with a cursor, and the search and filter that move it, both in the background."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from tui_probe.draw.spans import Line, clip_line, plain, width
from tui_probe.ui.views.view import contains, cursor_role, cursor_sign, edge_sign, mark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tui_probe.draw.view import Document
    from tui_probe.ui.views.view import ViewHost


@dataclass
class ScrollPosition:
    """``top`` and ``cursor`` count the lines that pass the filter. A text without cursor has ``pointed`` unset.

    The cursor moves through a window that is still, and at an edge the window moves by half of itself: scrolling
    by a line would send every line again. ``count`` is how many lines there are, ``room`` how many are visible.
    """

    top: int = 0
    cursor: int = 0
    has_cursor: bool = False

    def clamp(self, count: int, room: int) -> None:
        """Both within the text, the cursor within the window."""
        self.top = max(0, min(self.top, count - room))
        self.cursor = max(self.top, min(self.cursor, self.top + room - 1, count - 1)) if self.has_cursor else self.top

    def follow(self, count: int, room: int) -> None:
        """The window has another size: it moves as little as it must, and the cursor stays on its line."""
        if self.has_cursor:
            self.cursor = max(0, min(self.cursor, count - 1))
            self.top = min(max(self.top, self.cursor - room + 1), self.cursor)
        self.clamp(count, room)

    def step(self, step: int, count: int, room: int) -> None:
        """Move by lines."""
        if not self.has_cursor:
            self.top += step
        else:
            self.cursor = max(0, min(self.cursor + step, count - 1))
            half = max(1, room // 2)
            if self.cursor < self.top:
                self.top = min(self.cursor, self.top - half)
            elif self.cursor >= self.top + room:
                self.top = max(self.cursor - room + 1, self.top + half)
        self.clamp(count, room)

    def page(self, step: int, count: int, room: int) -> None:
        """Move by windows. The cursor keeps its row; if there is no further window it goes to the end."""
        previous_top, size = self.top, step * max(1, room - 1)
        self.top = max(0, min(self.top + size, count - room))
        self.cursor += self.top - previous_top if self.top != previous_top else size
        self.clamp(count, room)

    def go_to(self, line: int, count: int, room: int, *, lines_above: int = 3) -> None:
        """Move to a line. The window stays if the line and some after it are visible, else some lines are left
        above it.
        """
        if not self.top <= line < self.top + max(1, room - room // 4):
            self.top = line - min(lines_above, room // 4)
        self.cursor = line
        self.clamp(count, room)


class LineWindow:
    """The lines of a document that pass a filter, or all, and the part of them that is visible.

    ``chosen`` are the numbers of the lines that pass. ``left`` cells are scrolled out at the left.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self.lines: Sequence[Line] = ()
        self.place = ScrollPosition()
        self.height = 0
        self.left = self.pinned = self.gutter = 0
        self.matches: list[int] | None = None

    def lay_out(self, cells: int, height: int) -> None:
        """Take the document's lines for that many cells; they may be others than before."""
        self.height = height
        self.lines, self.pinned = self.document.lines(cells), self.document.pinned(cells)
        self.gutter = self.document.gutter(cells)
        self.place.has_cursor = self.gutter > 0

    @property
    def top(self) -> int:
        """The first visible line, of those that pass the filter."""
        return self.place.top

    @property
    def cursor(self) -> int:
        """The line of the document that the cursor is on, or the first one visible."""
        return self.number(self.place.cursor) if self.count else 0

    @property
    def count(self) -> int:
        """Lines that pass the filter, without those that are pinned."""
        return len(self.lines) - self.pinned if self.matches is None else len(self.matches)

    @property
    def room(self) -> int:
        """Lines of the window below those that are pinned, and below the titles of filtered rows."""
        return max(1, self.height - self.pinned - (0 if self.matches is None else len(self._titles())))

    @property
    def header_rows(self) -> int:
        """Lines of the window above those that scroll."""
        return self.pinned + len(self._titles())

    def number(self, place: int) -> int:
        """The line of the document at a place among those that pass the filter."""
        return place + self.pinned if self.matches is None else self.matches[place]

    def place_of(self, number: int) -> int:
        """The place of a line of the document among those that pass the filter."""
        return number - self.pinned if self.matches is None else bisect_left(self.matches, number)

    def is_hidden(self, number: int) -> bool:
        """Return whether the filter hides a line."""
        if self.matches is None:
            return False
        place = bisect_left(self.matches, number)
        return place == len(self.matches) or self.matches[place] != number

    def go_to(self, place: int, *, lines_above: int = 3) -> None:
        """The cursor to a place, with some lines above it."""
        self.place.go_to(place, self.count, self.room, lines_above=lines_above)

    def clamp(self) -> None:
        """Cursor and window within the lines."""
        self.place.clamp(self.count, self.room)

    def click(self, row: int) -> bool:
        """The cursor to the line in a row of the window; False if there is none."""
        place = self.top + row - (self.pinned if self.matches is None else self.header_rows)
        if not self.gutter or row < self.header_rows or place >= self.count:
            return False
        self.place.cursor = place
        return True

    def _titles(self) -> range:
        """Titles of columns that are above rows in the window, and are not in it themselves."""
        tables = self.document.headings()
        first_number = self.number(min(self.top, self.count - 1)) if self.count else 0
        if self.matches is not None:
            in_table = (titles for titles, rows in tables if first_number in rows)
            return next(in_table, tables[0][0] if tables else range(0))
        in_sight = (titles for titles, rows in tables if titles.start < first_number < rows.stop - len(titles))
        return next(in_sight, range(0)) if self.count else range(0)

    def _uncover(self) -> None:
        """Titles lie over the first lines of the window: let the cursor not be under them."""
        if self.matches is None and 0 <= self.place.cursor - self.top < len(self._titles()):
            self.place.top = max(0, self.place.cursor - len(self._titles()))

    def draw(self, width: int, search_text: str, match: int | None, *, focused: bool) -> list[Line]:
        """The pinned lines, then the visible ones, searched words and the cursor marked."""
        self.clamp()
        self._uncover()
        titles = self._titles()
        covered = 0 if self.matches is not None else len(titles)
        places = range(self.top + covered, min(self.count, self.top + self.room))

        def marked_part(number: int) -> Line:
            line = self._visible_part(number, width)
            if not search_text or number < self.pinned:
                return line
            return mark(line, search_text, "match" if number == match else "match_other")

        lines = [marked_part(number) for number in (*range(self.pinned), *titles)]
        for place in places:
            line = marked_part(self.number(place))
            at_cursor = self.gutter and place == self.place.cursor
            lines.append(cursor_line(line, self.gutter, width, focused=focused) if at_cursor else line)
        return lines

    def _visible_part(self, number: int, width: int) -> Line:
        """The visible part of a line; its gutter and pinned lines stay where they are."""
        line = self.lines[number]
        if not self.left or number < self.pinned:
            return clip_line(line, width)
        fixed_cells = min(self.gutter, width)
        return (*clip_line(line, fixed_cells), *clip_line(line, width - fixed_cells, skip=fixed_cells + self.left))


def cursor_line(line: Line, gutter: int, cells: int, *, focused: bool) -> Line:
    """A line of ``cells`` cells with the cursor in its gutter and at its end; words that were searched for stay marked.

    A ground over the whole line would cost its text twice over per move of the cursor.
    """
    ground = cursor_role(focused)
    spans = [(text, role if role.startswith("match") else ground) for text, role in clip_line(line, gutter)]
    used_cells = sum(width(text) for text, _ in spans)
    gutter_line: Line = (*spans, (" " * (gutter - used_cells), ground))
    body = clip_line(line, sum(width(text) for text, _ in line), skip=gutter)
    cursor_spans: Line = (
        (cursor_sign(focused), ground),
        *clip_line(gutter_line, gutter, skip=1),
        *(body or ((" ", ""),)),
    )
    free = cells - 1 - sum(width(text) for text, _ in cursor_spans)
    return (*cursor_spans, (" " * free, ""), (edge_sign(focused), ground)) if free >= 0 else cursor_spans


def next_match_place(lines: Sequence[Line], numbers: list[int], text: str, start: int, step: int) -> int | None:
    """The place among ``numbers`` of the next line with ``text`` after ``start``, around the end."""
    count = len(numbers)
    order = ((start + step * i) % count for i in range(1, count + 1))
    return next((place for place in order if contains(plain(lines[numbers[place]]), text)), None)


def matching_lines(lines: Sequence[Line], first_number: int, text: str) -> list[int]:
    """The lines from ``first_number`` on that contain ``text``."""
    return [number for number in range(first_number, len(lines)) if contains(plain(lines[number]), text)]


def with_titles(matches: list[int], tables: Sequence[tuple[range, range]]) -> list[int]:
    """The lines that pass a filter, with the titles of each table that has such rows, except those of the first
    table, which are above the window.
    """
    numbers = set(matches)
    for place, (titles, rows) in enumerate(tables):
        numbers -= {*titles}
        numbers |= {*titles} if place and not numbers.isdisjoint(rows) else set()
    return sorted(numbers)


def plain_lines(lines: Sequence[Line], numbers: list[int]) -> Iterator[str]:
    """Lines in full, as text."""
    return (plain(lines[number]).rstrip() for number in numbers)


@dataclass(frozen=True)
class PositionBeforeFilter:
    """The first visible line and that of the cursor before there was a filter, and where that put the cursor."""

    top: int
    number: int
    filtered_number: int | None = None


@dataclass(frozen=True)
class SearchState:
    """Search and filter of a document, to be restored."""

    search_text: str
    match: int | None
    filter_text: str
    matches: list[int] | None
    position: PositionBeforeFilter | None


class DocumentSearch:
    """Search and filter on the lines of a window.

    ``on_move`` is called after the cursor was put elsewhere, ``on_change`` where other lines are to be drawn.
    """

    def __init__(
        self, window: LineWindow, view_host: ViewHost, on_move: Callable[[], None], on_change: Callable[[], None]
    ) -> None:
        self.search_text = ""
        self.filter_text = ""
        self.match: int | None = None
        self._window, self._view_host = window, view_host
        self._on_move, self._on_change = on_move, on_change
        self._position: PositionBeforeFilter | None = None
        """Position of the cursor when the filter was set."""

    def search(self, text: str) -> None:
        """Go to the next line with a text, from the cursor on."""
        self.search_text, self.match = text, None
        self.next_match(1)

    def next_match(self, step: int) -> None:
        """Go to the next or previous match, around the end, in the background."""
        window = self._window
        if not self.search_text or not window.count:
            return
        origin = window.place.cursor if window.gutter or self.match is None else window.place_of(self.match)
        start = origin - step if self.match is None else origin
        numbers = [*map(window.number, range(window.count))]
        job = partial(next_match_place, window.lines, numbers, self.search_text, start, step)
        self._view_host.tables.submit((self, "find"), job, partial(self._take_match, window.lines))

    def _take_match(self, lines: Sequence[Line], place: int | None) -> None:
        window = self._window
        if lines is not window.lines:
            return
        self.match = None if place is None else window.number(place)
        if place is None:
            self._view_host.notice(f"“{self.search_text}” is not on this page")
            self._on_change()
        else:
            window.go_to(place, lines_above=window.room // 3)
            self._on_move()

    def set_filter(self, text: str, *, keep: bool = False) -> None:
        """Leave only lines that contain ``text``; found in the background. ``keep``: the cursor stays."""
        window = self._window
        if not text:
            self._show_all()
            return
        if self._position is None:
            self._position = PositionBeforeFilter(window.top, window.cursor)
        self.filter_text = text
        job = partial(matching_lines, window.lines, window.pinned, text)
        self._view_host.tables.submit((self, "filter"), job, partial(self._take_filter, window.lines, keep))

    def _take_filter(self, lines: Sequence[Line], keep: bool, matches: list[int]) -> None:
        """The cursor to the first of them from where it was on."""
        window = self._window
        if lines is not window.lines or not self.filter_text:
            return
        matches = with_titles(matches, window.document.headings())
        window.matches, self.match = matches, None
        if not keep and self._position is not None:
            place = min(bisect_left(matches, self._position.number), max(0, len(matches) - 1))
            window.place.top = 0
            window.go_to(place)
            self._position = replace(self._position, filtered_number=matches[place] if matches else None)
        self._on_change()

    def clear(self) -> bool:
        """End the search, or without one the filter; False if there was neither."""
        had_search, had_filter = bool(self.search_text), bool(self.filter_text)
        self.search_text, self.match = "", None
        if had_search:
            self._on_change()
        elif had_filter:
            self._show_all()
        return had_search or had_filter

    def clear_all(self) -> None:
        """End both."""
        while self.clear():
            pass

    def _show_all(self) -> None:
        """No filter: the cursor stays at its line; where it was not moved it returns to the one it was on before."""
        window = self._window
        cursor, position, was_filtered = window.cursor, self._position, window.matches is not None
        has_no_match = was_filtered and not window.count
        self.filter_text, window.matches, self._position = "", None, None
        if was_filtered and position is not None and (has_no_match or cursor == position.filtered_number):
            window.place.top, window.place.cursor = position.top, position.number - window.pinned
            window.clamp()
        elif was_filtered:
            window.go_to(cursor - window.pinned)
        self._on_change()

    def resume(self, previous: DocumentSearch) -> None:
        """Take search and filter of the page that was here before; its lines are filtered when they are laid out."""
        self.search_text = previous.search_text
        if previous.filter_text:
            self.filter_text = previous.filter_text

    def state(self) -> SearchState:
        """Return all that is needed to see the same lines again."""
        return SearchState(self.search_text, self.match, self.filter_text, self._window.matches, self._position)

    def restore(self, state: SearchState) -> None:
        """Show the lines of a state again."""
        self.search_text, self.match, self.filter_text = state.search_text, state.match, state.filter_text
        self._window.matches, self._position = state.matches, state.position
