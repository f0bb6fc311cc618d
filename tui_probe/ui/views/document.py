"""A document of ``draw.view`` in a pane: its commands, its place among other pages, and what leaves the screen."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw.spot import Spot
from tui_probe.ui.exports import document_forms
from tui_probe.ui.views.document_search import SearchedDocument
from tui_probe.ui.views.finding import whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tui_probe.draw.view import Document
    from tui_probe.probekit.kind import Source
    from tui_probe.ui.exports import Writer
    from tui_probe.ui.views.document_search import Before
    from tui_probe.ui.views.view import Desk, View


MARK: Final = "mark"


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
    moved: bool


class DocumentView(SearchedDocument):
    """A document in a pane: what its keys do, how other pages lead to it and it to them, and how it is exported."""

    def __init__(self, desk: Desk, name: str, document: Document, source: Source | None) -> None:
        super().__init__(desk, name, document, source)
        self._landing: Spot | None = None
        """A spot that is gone to as soon as there are lines."""
        self._unseen: Seen | None = None
        """What is to be seen again as soon as there are lines."""

    # -- what is shown

    def resume(self, before: View) -> None:
        """The place, search and filter of the page that was here before, of another kernel; from its left edge on."""
        if isinstance(before, DocumentView):
            self.document.take_over(before.document)
            self._new = False
            self.place.top, self.place.cursor = before.place.top, before.place.cursor
            self.searched = before.searched
            if before.filtered:
                self.filtered = before.filtered

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

    def leading(self) -> int:
        """A filter is told first, and always: without it lines seem to be missing."""
        return 1 if self.filtered else self.document.leading()

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
        if command == MARK:
            self.desk.notice(self.document.mark(self.cursor, self._cells) if self.count else "")
            self.changed()
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

    def asked(self) -> str:
        """What the document would have measured."""
        return self.document.asked()

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
        return Seen(self._cells, place.top, place.cursor, self.left, *found, choices, self._spot(), self.moved)

    def see(self, seen: object) -> None:
        """The same text, lines and cursor; in another width the same spot."""
        if isinstance(seen, Seen) and self.width:
            self._see(seen)
        elif isinstance(seen, Seen):
            self._unseen = seen

    def _see(self, seen: Seen) -> None:
        if seen.choices:
            self.document.choose(seen.choices)
        self.left, self.searched, self.match = seen.left, seen.searched, seen.match
        self.filtered, self.chosen, self._before = seen.filtered, seen.chosen, seen.before
        self.moved = seen.moved
        self._lay_out()
        if self.chosen is not None:
            self.chosen = [number for number in self.chosen if number < len(self.lines)]  # there may be fewer now
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

    def _go_on(self) -> None:
        if not self.width:
            return
        if self._unseen is not None:
            unseen, self._unseen = self._unseen, None
            self._see(unseen)
        if self._landing is None:
            return
        landing, self._landing = self._landing, None
        if not self.land(landing, exactly=True) and (words := self.document.lacks(landing)):
            self.desk.notice(words)

    def lacks(self, spot: Spot) -> str:
        """The filter hides it, or the document has it not."""
        if self.document.place_of_spot(spot, self._cells) is not None and self.filtered:
            return f"“{self.filtered}” hides the line of the page before: Esc shows all"
        return self.document.lacks(spot)

    def land_on_marked(self) -> str:
        """The cursor to the line that is marked in the visible figure."""
        found = self.document.marked()
        return found[1] if found is not None and self.land(Spot.of_line(found[0]), exactly=True) else ""

    # -- out of the screen

    def copied(self) -> str:
        """All that is visible, with suggested commands whole."""
        return "\n".join(self.document.unbroken(super().copied().split("\n")))

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
