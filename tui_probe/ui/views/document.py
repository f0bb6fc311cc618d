"""A document of ``render/views`` in a pane: scrolls, searches and filters lines that are made on demand."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import partial
from typing import TYPE_CHECKING

from tui_probe.render.spans import Line, clip_line, plain, wrap
from tui_probe.ui.exports import document_forms
from tui_probe.ui.views.text import SIDE_STEP, contains, mark
from tui_probe.ui.views.view import Desk, View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tui_probe.render.views.view import Document, Source
    from tui_probe.ui.exports import Writer


class DocumentView(View):
    """A window on a document. Searches and filters run in the background: they have to make every line."""

    kind = "drawing"

    def __init__(self, desk: Desk, name: str, document: Document, source: Source | None) -> None:
        super().__init__(desk, name)
        self.document = document
        self.source = source
        self.lines: Sequence[Line] = ()
        self.top = self.left = self.pinned = 0
        self.searched = ""
        self.filtered = ""
        self.chosen: list[int] | None = None
        self.match: int | None = None

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
        """The place, search and filter of the page that was here before, of another kernel."""
        if isinstance(before, DocumentView):
            self.document.take_over(before.document)
            self.top, self.left, self.searched = before.top, before.left, before.searched
            if before.filtered:
                self.filtered = before.filtered

    def resize(self, width: int, height: int) -> None:
        """Other lines for another width."""
        super().resize(width, height)
        self._lay_out()

    def _lay_out(self) -> None:
        self.lines = self.document.lines(max(20, self.width))
        self.pinned = self.document.pinned(max(20, self.width))
        if self.filtered:
            self.set_filter(self.filtered, keep=True)
        self.changed()

    @property
    def count(self) -> int:
        """Lines that pass the filter, without those that are pinned."""
        return len(self.lines) - self.pinned if self.chosen is None else len(self.chosen)

    @property
    def room(self) -> int:
        """Lines of the window below those that are pinned."""
        return max(1, self.height - self.pinned)

    def _number(self, place: int) -> int:
        """The line of the document at a place among those that pass the filter."""
        return place + self.pinned if self.chosen is None else self.chosen[place]

    def draw(self, width: int, height: int) -> list[Line]:
        """The pinned lines, then those in the window, searched words marked."""
        if not self.count and self.filtered:
            why = f"no line contains “{self.filtered}”: Esc shows all"
            return [((f" {part}", "dim"),) for part in wrap(why, width - 2)]
        self.top = max(0, min(self.top, self.count - self.room))
        places = range(self.top, min(self.count, self.top + self.room))
        numbers = [*range(self.pinned), *map(self._number, places)]
        return [self._marked(number, clip_line(self.lines[number], width, skip=self.left)) for number in numbers][
            :height
        ]

    def _marked(self, number: int, line: Line) -> Line:
        if not self.searched or number < self.pinned:
            return line
        return mark(line, self.searched, "match" if number == self.match else "match_other")

    def status(self) -> list[str]:
        """Where it is, and what the document says of itself."""
        parts = list(self.document.status())
        if self.filtered:
            parts.insert(0, f"only “{self.filtered}”")
        if self.count > self.room:
            parts.append(f"{self.top + 1}–{min(self.count, self.top + self.room)} of {self.count}")
        return parts

    # -- keys

    def commands(self) -> Mapping[str, str]:
        """What the document can do, and stepping from change to change."""
        commands = dict(self.document.commands())
        if self.chosen is None and self.document.anchors(max(20, self.width)):
            commands |= {"next": "to the next change", "previous": "to the previous change"}
        return commands

    def command(self, command: str) -> None:
        """Do one of the commands."""
        if command in ("next", "previous"):
            self._to_anchor(1 if command == "next" else -1)
            return
        if words := self.document.press(command):
            self.desk.notice(words)
        self._lay_out()

    def _to_anchor(self, step: int) -> None:
        """The next or previous change to the top of the window, with some lines above it."""
        anchors = self.document.anchors(max(20, self.width))
        above = min(3, self.room // 4)
        here = self.top + self.pinned + above
        place = bisect_right(anchors, here) if step > 0 else bisect_left(anchors, here) - 1
        if 0 <= place < len(anchors):
            before = self.top
            self._scroll(anchors[place] - self.pinned - above)
            if self.top != before:
                self.desk.notice(f"change {place + 1} of {len(anchors)}")
                return
        self.desk.notice("no further change" if step > 0 else "no change before this one")

    def move(self, step: int) -> None:
        """Scroll by lines."""
        self._scroll(self.top + step)

    def move_page(self, step: int) -> None:
        """Scroll by windows."""
        self._scroll(self.top + step * max(1, self.room - 1))

    def move_to(self, end: int) -> None:
        """To the start or the end."""
        self._scroll(self.count if end else 0)

    def shift(self, step: int) -> None:
        """Scroll sideways."""
        self.left = max(0, self.left + step * SIDE_STEP)
        self.changed()

    def _scroll(self, top: int) -> None:
        self.top = max(0, min(top, self.count - self.room))
        self.changed()

    # -- search and filter

    def search(self, text: str) -> None:
        """From the first line in sight on."""
        self.searched, self.match = text, None
        self.next_match(1)

    def next_match(self, step: int) -> None:
        """Around the end, in the background."""
        if self.searched and self.count:
            start = self.top - step if self.match is None else self._place_of(self.match)
            job = partial(_find, self.lines, [*map(self._number, range(self.count))], self.searched, start, step)
            self.desk.tables.submit((self, "find"), job, partial(self._found, self.lines))

    def _place_of(self, number: int) -> int:
        return number - self.pinned if self.chosen is None else bisect_left(self.chosen, number)

    def _found(self, lines: Sequence[Line], place: int | None) -> None:
        if lines is not self.lines:
            return
        self.match = None if place is None else self._number(place)
        if place is None:
            self.desk.notice(f"“{self.searched}” is not on this page")
        elif not self.top <= place < self.top + self.room:
            self.top = max(0, place - self.room // 3)
        self.changed()

    @property
    def filter_text(self) -> str:
        """What shown lines must contain."""
        return self.filtered

    def set_filter(self, text: str, *, keep: bool = False) -> None:
        """Only lines that contain ``text``; found in the background."""
        self.filtered = text
        if not text:
            self.chosen, self.top = None, 0
            self.changed()
            return
        job = partial(_passing, self.lines, self.pinned, text)
        self.desk.tables.submit((self, "filter"), job, partial(self._take_filter, self.lines, keep))

    def _take_filter(self, lines: Sequence[Line], keep: bool, chosen: list[int]) -> None:
        if lines is self.lines and self.filtered:
            self.chosen, self.match = chosen, None
            self.top = self.top if keep else 0
            self.changed()

    def clear_search(self) -> bool:
        """Forget search and filter."""
        had = bool(self.searched or self.filtered)
        self.searched, self.filtered, self.chosen, self.match = "", "", None, None
        if had:
            self.changed()
        return had

    # -- out of the screen

    def exported(self) -> Callable[[], Iterable[str]]:
        """All lines that pass the filter."""
        lines, numbers = self.lines, [*range(self.pinned), *map(self._number, range(self.count))]
        return lambda: (plain(lines[number]).rstrip() for number in numbers)

    def explanation(self) -> Sequence[str]:
        """How to read it: the document's own words, or those of its view."""
        return self.document.explanation() or super().explanation()

    def forms(self) -> Mapping[str, Writer]:
        """Text, data and pictures."""
        return {**super().forms(), **document_forms(self.name, self.document, self.source, max(20, self.width))}


def _find(lines: Sequence[Line], numbers: list[int], text: str, start: int, step: int) -> int | None:
    """The place of the next line with ``text`` after ``start``, around the end."""
    count = len(numbers)
    order = ((start + step * i) % count for i in range(1, count + 1))
    return next((place for place in order if contains(plain(lines[numbers[place]]), text)), None)


def _passing(lines: Sequence[Line], first: int, text: str) -> list[int]:
    """The lines from ``first`` on that contain ``text``."""
    return [number for number in range(first, len(lines)) if contains(plain(lines[number]), text)]
