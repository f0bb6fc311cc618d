"""A document of ``draw.view`` in a pane: a cursor, search and filter over lines that are made on demand."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tui_probe.draw.spans import Line, clip_line, width, wrap
from tui_probe.draw.spot import Spot
from tui_probe.ui.exports import document_forms
from tui_probe.ui.focus import cursor_sign, ground_of
from tui_probe.ui.views.finding import find, passing, whole
from tui_probe.ui.views.place import Place
from tui_probe.ui.views.text import SIDE_STEP, mark
from tui_probe.ui.views.view import Desk, View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tui_probe.draw.view import Document
    from tui_probe.probekit.kind import Source
    from tui_probe.ui.exports import Writer


@dataclass(frozen=True)
class Seen:
    """What was visible of a document in ``cells`` columns, and where the cursor was, to be seen again."""

    cells: int
    top: int
    cursor: int
    left: int
    searched: str
    match: int | None
    filtered: str
    chosen: list[int] | None
    before: Before | None
    choices: Mapping[str, Any]
    spot: Spot


@dataclass(frozen=True)
class Before:
    """The first visible line and that of the cursor before there was a filter, and where that put the cursor."""

    top: int
    number: int
    put: int | None = None


class DocumentView(View):
    """A window on a document. Searches and filters run in the background: they have to make every line."""

    kind = "drawing"

    def __init__(self, desk: Desk, name: str, document: Document, source: Source | None) -> None:
        super().__init__(desk, name)
        self.document = document
        self.source = source
        self.lines: Sequence[Line] = ()
        self.place = Place()
        self.left = self.pinned = self.gutter = 0
        self.searched = ""
        self.filtered = ""
        self.chosen: list[int] | None = None
        self.match: int | None = None
        self._new = True
        """Whether the cursor has still to be put where it begins."""
        self._landing: Spot | None = None
        """A spot that is gone to as soon as there are lines."""
        self._before: Before | None = None
        """Where the cursor was when the filter was set."""
        self.moved = False
        """Was the cursor ever put somewhere, so that other pages may go on there?"""

    # -- what is shown

    def replace(self, document: Document, source: Source) -> None:
        """Show a newer state of the same; place, search and filter stay."""
        document.take_over(self.document)
        self.document, self.source = document, source
        self._lay_out()

    def number_pages(self, numbers: Mapping[str, int]) -> None:
        """The numbers by which pages are reached here, which the document may name."""
        self.document.number_pages(numbers)
        if self.width:
            self._lay_out()

    def resume(self, before: View) -> None:
        """The place, search and filter of the page that was here before, of another kernel; from its left edge on."""
        if isinstance(before, DocumentView):
            self.document.take_over(before.document)
            self._new = False
            self.place.top, self.place.cursor = before.place.top, before.place.cursor
            self.searched = before.searched
            if before.filtered:
                self.filtered = before.filtered

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
        if self.filtered:
            self.set_filter(self.filtered, keep=True)
        self.place.fit(self.count, self.room)
        if self._landing is not None and self.width:
            landing, self._landing = self._landing, None
            if not self.land(landing, exactly=True) and (words := self.document.lacks(landing)):
                self.desk.notice(words)
        self.changed()

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
            lines.append(pointed(line, self.gutter, focused=self.focused) if here else line)
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

    def status(self) -> list[str]:
        """Where it is, and what the document says of itself."""
        parts = list(self.document.status())
        if self.filtered:
            parts.insert(0, f"only “{self.filtered}”")
        if self.gutter and self.count:
            rows = self.document.counted()
            count = self.count if rows is None or self.filtered else rows
            parts += self.document.about(self.cursor, self._cells)
            word = "row" if self.filtered else self.document.counted_as
            parts += [f"{word} {self.place.cursor + 1} of {count}"] if self.place.cursor < count else []
        elif self.count > self.room:
            parts.append(f"{self.top + 1}–{min(self.count, self.top + self.room)} of {self.count}")
        return parts

    # -- keys

    def commands(self) -> Mapping[str, str]:
        """What the document can do, stepping from change to change, and going to the worst line."""
        commands = dict(self.document.commands())
        if self.chosen is None and self.document.anchors(self._cells):
            stops = self.document.stops()
            commands |= {"next": f"to the next {stops}", "previous": f"to the previous {stops}"}
        if self.chosen is None and (worst := self.document.worst()) is not None:
            commands["worst"] = worst[1]
        return commands

    def command(self, command: str) -> None:
        """Do one of the commands. The cursor stays at its line of PTX, where there is one."""
        if command in ("next", "previous"):
            self._to_anchor(1 if command == "next" else -1)
            return
        if command == "worst" and (worst := self.document.worst()) is not None:
            self._to(worst[0] - self.pinned)
            self.desk.notice(worst[1])
            return
        here, above, row = self._spot(), self._ptx_line(), self.place.cursor - self.top
        if words := self.document.press(command):
            self.desk.notice(words)
        self._lay_out()
        after = self.document.place_of_spot(here, self._cells)
        if after is None and (words := self.document.lacks(here)):
            self.desk.notice(words)
        if after is None and above is not None:
            after = self.document.place_of(above, self._cells)
        if after is not None and self.chosen is None:
            self.place.cursor = after - self.pinned
            self.place.top = self.place.cursor - row
            self.place.fit(self.count, self.room)
            self.changed()

    def _spot(self) -> Spot:
        """That of the line at the cursor."""
        return self.document.here(self.cursor, self._cells) if self.count else Spot()

    def _ptx_line(self) -> int | None:
        """The line of ``pruned.ptx`` at the cursor, or the last one visible above it."""
        numbers = (self._number(place) for place in range(self.place.cursor, self.top - 1, -1)) if self.count else ()
        lines = (self.document.ptx_line(number, self._cells) for number in numbers)
        return next((line for line in lines if line is not None), None)

    def _to_anchor(self, step: int) -> None:
        """The cursor to the next or previous change."""
        anchors = self.document.anchors(self._cells)
        place = bisect_right(anchors, self.cursor) if step > 0 else bisect_left(anchors, self.cursor) - 1
        stops = self.document.stops()
        if not 0 <= place < len(anchors):
            self.desk.notice(f"no further {stops}" if step > 0 else f"no {stops} before this one")
            return
        self._to(anchors[place] - self.pinned)
        self.desk.notice(f"{stops} {place + 1} of {len(anchors)}")

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

    # -- to and from other pages

    def leads_to(self) -> str:
        """The page that Enter goes to."""
        return self.document.leads_to()

    def target(self) -> Spot | None:
        """The spot that it goes to."""
        return self.document.target(self.cursor, self._cells) if self.count else None

    def nowhere(self) -> str:
        """As the document says of the line at the cursor."""
        return self.document.nowhere(self.cursor, self._cells) if self.count else ""

    def whole_names(self) -> Sequence[str]:
        """As the document says."""
        return self.document.whole_names(self.cursor) if self.count else ()

    def narrowed(self) -> tuple[str, Any] | None:
        """As the document says."""
        return self.document.narrowed(self.cursor) if self.count else None

    def narrow(self, only: Any) -> bool:
        """The cursor to where it begins, since the lines are others."""
        changed = self.document.narrow(only)
        if changed:
            self.clear_search()
            self._new = True
            self._lay_out()
        return changed

    def seen(self) -> object:
        """All that is needed to see it again as it is."""
        choices, place = self.document.choices(), self.place
        found = (self.searched, self.match, self.filtered, self.chosen, self._before)
        return Seen(self._cells, place.top, place.cursor, self.left, *found, choices, self._spot())

    def see(self, seen: object) -> None:
        """The same text, lines and cursor; in another width the same spot."""
        if not isinstance(seen, Seen):
            return
        self.document.choose(seen.choices)
        self.left, self.searched, self.match = seen.left, seen.searched, seen.match
        self.filtered, self.chosen, self._before = seen.filtered, seen.chosen, seen.before
        self._lay_out()
        if self._cells == seen.cells:
            self.place.top, self.place.cursor = seen.top, seen.cursor
            self.place.fit(self.count, self.room)
            self.changed()
        else:
            self.land(seen.spot)

    def here(self) -> Spot:
        """That of the line at the cursor, if it was put there."""
        return self._spot() if self.moved or self.document.tells_at_once else Spot()

    def land(self, spot: Spot, *, exactly: bool = False) -> bool:
        """The cursor to a spot, as soon as there are lines."""
        if not self.width:
            self._landing = spot
            return True
        if not exactly and self._spot().shares_code(spot):
            return True
        if exactly and self.document.turn_to(spot):
            self._lay_out()
        number = self.document.place_of_spot(spot, self._cells)
        if number is None or (self._is_hidden(number) and not exactly):
            return False
        if self._is_hidden(number):
            self.clear_search()
        self._to(self._place_of(number))
        return True

    def _is_hidden(self, number: int) -> bool:
        """Does a line not pass the filter?"""
        if self.chosen is None:
            return False
        place = bisect_left(self.chosen, number)
        return place == len(self.chosen) or self.chosen[place] != number

    def lacks(self, spot: Spot) -> str:
        """The filter hides it, or the document has it not."""
        if self.document.place_of_spot(spot, self._cells) is not None and self.filtered:
            return f"“{self.filtered}” hides the line of the page before: Esc shows all"
        return self.document.lacks(spot)

    def land_on_marked(self) -> str:
        """The cursor to the line that is marked in the visible figure."""
        found = self.document.marked()
        return found[1] if found is not None and self.land(Spot.of_line(found[0]), exactly=True) else ""

    # -- search and filter

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

    # -- out of the screen

    def exported(self) -> Callable[[], Iterable[str]]:
        """All lines that pass the filter."""
        lines, numbers = self.lines, [*range(self.pinned), *map(self._number, range(self.count))]
        return partial(whole, lines, numbers)

    def explanation(self) -> Sequence[str]:
        """How to read it: the document's own words, or those of its view."""
        return self.document.explanation() or super().explanation()

    def forms(self) -> Mapping[str, Writer]:
        """Text, data and pictures."""
        return {**super().forms(), **document_forms(self.name, self.document, self.source, max(20, self.width))}


def pointed(line: Line, gutter: int, *, focused: bool) -> Line:
    """A line with the cursor in its gutter; words that were searched for stay marked."""
    ground = ground_of(focused)
    spans = [(text, role if role.startswith("match") else ground) for text, role in clip_line(line, gutter)]
    used = sum(width(text) for text, _ in spans)
    shown: Line = (*spans, (" " * (gutter - used), ground))
    rest = clip_line(line, sum(width(text) for text, _ in line), skip=gutter)
    return ((cursor_sign(focused), ground), *clip_line(shown, gutter, skip=1), *(rest or ((" ", ""),)))
