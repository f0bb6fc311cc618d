"""Window on the lines of a document, made on demand, with a cursor."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe.draw.spans import Line, clip_line, width, wrap
from tui_probe.ui.views.view import SIDE_STEP, Desk, PaneView, cursor_role, cursor_sign, edge_sign, mark

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tui_probe.draw.view import Document
    from tui_probe.probekit.page_kinds import ViewSource


@dataclass
class ScrollPosition:
    """``top`` and ``cursor`` count the lines that pass the filter. A text without cursor has ``pointed`` unset.

    The cursor moves through a window that stands still, and at an edge the window moves by half of itself: scrolling
    by a line would send every line again. ``count`` is how many lines there are, ``room`` how many are visible.
    """

    top: int = 0
    cursor: int = 0
    pointed: bool = False

    def fit(self, count: int, room: int) -> None:
        """Both within the text, the cursor within the window."""
        self.top = max(0, min(self.top, count - room))
        self.cursor = max(self.top, min(self.cursor, self.top + room - 1, count - 1)) if self.pointed else self.top

    def follow(self, count: int, room: int) -> None:
        """The window has another size: it moves as little as it must, and the cursor stays on its line."""
        if self.pointed:
            self.cursor = max(0, min(self.cursor, count - 1))
            self.top = min(max(self.top, self.cursor - room + 1), self.cursor)
        self.fit(count, room)

    def step(self, step: int, count: int, room: int) -> None:
        """By lines."""
        if not self.pointed:
            self.top += step
        else:
            self.cursor = max(0, min(self.cursor + step, count - 1))
            half = max(1, room // 2)
            if self.cursor < self.top:
                self.top = min(self.cursor, self.top - half)
            elif self.cursor >= self.top + room:
                self.top = max(self.cursor - room + 1, self.top + half)
        self.fit(count, room)

    def page(self, step: int, count: int, room: int) -> None:
        """By windows. The cursor keeps its row; where there is no further window it goes to the end."""
        before, size = self.top, step * max(1, room - 1)
        self.top = max(0, min(self.top + size, count - room))
        self.cursor += self.top - before if self.top != before else size
        self.fit(count, room)

    def to(self, line: int, count: int, room: int, *, above: int = 3) -> None:
        """To a line. The window stays if the line and some after it are visible, else some lines are left above it."""
        if not self.top <= line < self.top + max(1, room - room // 4):
            self.top = line - min(above, room // 4)
        self.cursor = line
        self.fit(count, room)


class DocumentWindow(PaneView):
    """The lines that pass a filter, or all; ``chosen`` are their numbers. Searched words are marked."""

    kind = "drawing"

    def __init__(self, desk: Desk, name: str, document: Document, source: ViewSource | None) -> None:
        super().__init__(desk, name)
        self.document = document
        self.source = source
        self.lines: Sequence[Line] = ()
        self.place = ScrollPosition()
        self.left = self.pinned = self.gutter = 0
        self.searched = ""
        self.filtered = ""
        self.chosen: list[int] | None = None
        self.match: int | None = None
        self._new = True
        """The cursor has not been put at its start yet."""
        self.moved = False
        """Was the cursor ever put somewhere, so that other pages may go on there?"""
        self._keys: Mapping[str, str] = {}

    def replace(self, document: Document, source: ViewSource) -> None:
        """Show a newer state of the same; place, search and filter stay."""
        document.take_over(self.document)
        document.name_keys(self._keys)
        self.document, self.source = document, source
        self._lay_out()

    def name_keys(self, keys: Mapping[str, str]) -> None:
        """Take the keys of pages, which the document may name."""
        self._keys = keys
        self.document.name_keys(keys)
        if self.width:
            self._lay_out()

    def resize(self, width: int, height: int) -> None:
        """Other lines for another width."""
        super().resize(width, height)
        self._lay_out()

    def _lay_out(self) -> None:
        cells = self._cells
        self.lines, self.pinned = self.document.lines(cells), self.document.pinned(cells)
        self.gutter = self.document.gutter(cells)
        self.place.pointed = self.gutter > 0
        if self._new and self.width:
            self._new, self.place.cursor = False, self.document.begins(cells) - self.pinned
        self._filter_again()
        self.place.follow(self.count, self.room)
        self._go_on()
        self.changed()

    def _filter_again(self) -> None:
        """The lines are others: those that pass the filter have to be found anew."""

    def _go_on(self) -> None:
        """There are lines: what waited for them."""

    @property
    def _cells(self) -> int:
        return max(20, self.width)

    @property
    def top(self) -> int:
        """The first visible line, of those that pass the filter."""
        return self.place.top

    @property
    def cursor(self) -> int:
        """The line of the document that the cursor is on, or the first one visible."""
        return self._number(self.place.cursor) if self.count else 0

    @property
    def count(self) -> int:
        """Lines that pass the filter, without those that are pinned."""
        return len(self.lines) - self.pinned if self.chosen is None else len(self.chosen)

    @property
    def room(self) -> int:
        """Lines of the window below those that are pinned, and below the titles of filtered rows."""
        return max(1, self.height - self.pinned - (0 if self.chosen is None else len(self.document.heading()[0])))

    def _titles(self) -> range:
        """Titles of columns that stand above rows in the window, and are not in it themselves."""
        titles, rows = self.document.heading()
        if self.chosen is not None or not titles or not self.count:
            return titles
        first = self._number(self.top)
        return titles if titles.start < first < rows.stop - len(titles) else range(0)

    def _uncover(self) -> None:
        """Titles lie over the first lines of the window: let the cursor not be under them."""
        if self.chosen is None and 0 <= self.place.cursor - self.top < len(self._titles()):
            self.place.top = max(0, self.place.cursor - len(self._titles()))

    def _number(self, place: int) -> int:
        """The line of the document at a place among those that pass the filter."""
        return place + self.pinned if self.chosen is None else self.chosen[place]

    def _place_of(self, number: int) -> int:
        return number - self.pinned if self.chosen is None else bisect_left(self.chosen, number)

    def draw(self, width: int, height: int) -> list[Line]:
        """The pinned lines, then those in the window, searched words and the cursor marked."""
        if not self.count and self.filtered:
            why = f"no line contains “{self.filtered}”: Esc shows all"
            return [((f" {part}", "dim"),) for part in wrap(why, width - 2)]
        self.place.fit(self.count, self.room)
        self._uncover()
        titles = self._titles()
        covered = 0 if self.chosen is not None else len(titles)
        places = range(self.top + covered, min(self.count, self.top + self.room))
        lines = [self._shown(number, width) for number in (*range(self.pinned), *titles)]
        for place in places:
            line = self._shown(self._number(place), width)
            here = self.gutter and place == self.place.cursor
            lines.append(cursor_line(line, self.gutter, width, focused=self.focused) if here else line)
        return lines[:height]

    def _shown(self, number: int, width: int) -> Line:
        """A line as far as it is visible; its gutter and pinned lines stay where they are."""
        line = self.lines[number]
        if self.left and number >= self.pinned:
            still = min(self.gutter, width)
            line = (*clip_line(line, still), *clip_line(line, width - still, skip=still + self.left))
        else:
            line = clip_line(line, width)
        if not self.searched or number < self.pinned:
            return line
        return mark(line, self.searched, "match" if number == self.match else "match_other")

    def _to(self, place: int) -> None:
        self.place.to(place, self.count, self.room)
        self._moved()

    def _moved(self) -> None:
        self.moved = True
        self.changed()

    def move(self, step: int) -> None:
        """By lines."""
        self.place.step(step, self.count, self.room)
        self._moved()

    def move_page(self, step: int) -> None:
        """By windows."""
        self.place.page(step, self.count, self.room)
        self._moved()

    def move_to(self, end: int) -> None:
        """To the start or the end."""
        self._to(self.count - 1 if end else 0)

    def shift(self, step: int) -> None:
        """Scroll sideways."""
        self.left = max(0, self.left + step * SIDE_STEP)
        self.changed()

    def click(self, row: int, column: int = 0) -> None:
        """The cursor to the line that is pointed at."""
        del column
        above = self.pinned + len(self._titles())
        place = self.top + row - (self.pinned if self.chosen is None else above)
        if self.gutter and row >= above and place < self.count:
            self.place.cursor = place
            self._moved()


def cursor_line(line: Line, gutter: int, cells: int, *, focused: bool) -> Line:
    """A line of ``cells`` cells with the cursor in its gutter and at its end; words that were searched for stay marked.

    A ground over the whole line would cost its text twice over per move of the cursor.
    """
    ground = cursor_role(focused)
    spans = [(text, role if role.startswith("match") else ground) for text, role in clip_line(line, gutter)]
    used = sum(width(text) for text, _ in spans)
    shown: Line = (*spans, (" " * (gutter - used), ground))
    body = clip_line(line, sum(width(text) for text, _ in line), skip=gutter)
    marked: Line = ((cursor_sign(focused), ground), *clip_line(shown, gutter, skip=1), *(body or ((" ", ""),)))
    free = cells - 1 - sum(width(text) for text, _ in marked)
    return (*marked, (" " * free, ""), (edge_sign(focused), ground)) if free >= 0 else marked
