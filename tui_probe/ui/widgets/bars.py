"""The bars of one line: title, tabs, state, keys."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from tui_probe.draw.spans import Line, Span, clip_line, spread, width
from tui_probe.ui.keys import Key, shown
from tui_probe.ui.views.view import pane_sign
from tui_probe.ui.widgets.lines import LinesWidget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events


NUMBERED = 10
"""Keys of pages: 1 to 9, and 0 for the tenth."""
KEPT = frozenset({"help", "palette", "leave", "leave_home"})
"""Keys by which one finds all others, and the way back: named on every terminal, anything else there is."""
_KEY_GAP = 3
NOTES = 22
"""Cells that long titles of pages must leave for notes."""


class Bar(LinesWidget):
    """One line that is set from outside: what is left, and what is right."""

    DEFAULT_CSS = "Bar { height: 1; }"

    def __init__(self, role: str = "", **options: str | None) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.role = role
        self.left: Line = ()
        self.right: Line = ()

    def show(self, left: Line, right: Line = ()) -> None:
        """Show ``left`` at the start and ``right`` at the end; ``left`` is cut where they would meet."""
        self.left, self.right = left, right
        self.redraw()

    def draw(self, width: int, height: int) -> list[Line]:
        """Both parts on one ground."""
        del height
        line = spread(self.left, (*self.right, (" ", "")), width)
        return [tuple((text, f"{role}+{self.role}" if self.role else role) for text, role in line)]


class Rule(LinesWidget):
    """A line from top to bottom between two panes."""

    DEFAULT_CSS = "Rule { width: 1; height: 1fr; }"

    def draw(self, width: int, height: int) -> list[Line]:
        """The line."""
        del width
        return [(("│", "rule"),)] * height


@dataclass(frozen=True)
class Tab:
    """A page that a number key shows. ``title`` is for wide terminals, ``short`` for narrow ones.

    One with nothing to show (``empty``) is in brackets where the others leave room, with the ``probe`` that opens
    it, if one does, where they leave still more. ``number`` is that of its key, 10 for ``0`` and 0 for none; without it
    it is its place.
    """

    id: str
    title: str
    short: str
    empty: bool = False
    probe: str = ""
    number: int | None = None


def numbers_of(tabs: Sequence[Tab]) -> dict[str, int]:
    """The number of each page, by name; 0 for none."""
    places = {tab.id: place if place <= NUMBERED else 0 for place, tab in enumerate(tabs, 1)}
    return {tab.id: places[tab.id] if tab.number is None else tab.number for tab in tabs}


def keys_of(tabs: Sequence[Tab]) -> dict[str, str]:
    """Return the keys of each page, by name: ``8``, of several with one number ``0`` and ``00``; "" for nothing."""
    times: Counter[int] = Counter()
    keys = {}
    for name, number in numbers_of(tabs).items():
        times[number] += 1
        keys[name] = str(number % NUMBERED) * times[number] if number else ""
    return keys


class TabBar(LinesWidget):
    """The pages, the current one marked, and at the right what the current page says about itself.

    ``one_of_several``: there are other panes, so that a sign tells where the keys go.
    """

    DEFAULT_CSS = "TabBar { height: 1; }"

    def __init__(self, tabs: Sequence[Tab], *, one_of_several: bool = False, **options: str | None) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.tabs, self.one_of_several = tabs, one_of_several
        self.current = tabs[0].id
        self.focused = False
        self.notes: Sequence[str] = ()
        self.noted = True
        self._ends: list[int] = []
        self._keys: dict[str, str] = {}

    def show(
        self, current: str, notes: Sequence[str] | None, *, focused: bool, tabs: Sequence[Tab] | None = None
    ) -> None:
        """Mark the page ``current``; as many of the ``notes`` as fit are at the right, the last ones first.

        Where there never are notes (None), the titles have all the room.
        """
        self.noted = notes is not None
        self.tabs = self.tabs if tabs is None else tabs
        self.current, self.notes, self.focused = current, notes or (), focused
        self.redraw()

    def draw(self, width: int, height: int) -> list[Line]:
        """The tabs, with titles as long as the width allows."""
        del height
        self._keys = keys_of(self.tabs)
        # Not by what the notes need now: titles that change while a log grows are hard to read.
        titles = _within(self._titles(width, width - 1 - (NOTES if self.noted else 0)), width - 1)
        self._ends = list(accumulate(map(len, titles)))
        spans = [(title, self._role(tab)) for tab, title in zip(self.tabs, titles, strict=True)]
        if self.one_of_several:
            sign = pane_sign(self.focused)
            spans[:1] = [(sign, "accent"), (spans[0][0][1:], spans[0][1])]
        note = fitting(self.notes, width - self._ends[-1] - 2)
        return [spread(spans, ((note, "dim"), (" ", "")), width)]

    def _titles(self, room: int, wide: int) -> list[str]:
        """The titles: in full, or as many of them short as it takes to fit in ``wide`` cells; where not all
        short ones fit in ``room``, some of them and numbers."""
        shown = [not tab.empty or tab.id == self.current for tab in self.tabs]
        texts = [tab.title if here else "" for tab, here in zip(self.tabs, shown, strict=True)]
        titles = [self._title(place, word) for place, word in enumerate(texts)]
        if sum(map(len, titles)) <= wide:
            return self._with_empty(titles, wide)
        for place in sorted(range(len(texts)), key=lambda i: len(self.tabs[i].short) - len(texts[i])):
            if shown[place] and sum(map(len, titles)) > wide:
                titles[place] = self._title(place, self.tabs[place].short)
        for place in reversed(range(len(titles))):  # what no number shows goes first
            name = self.tabs[place].id
            if not self._keys[name] and sum(map(len, titles)) > room and name != self.current:
                titles[place] = ""
        if sum(map(len, titles)) <= room:
            return titles
        return self._some_short(shown, room)

    def _some_short(self, shown: Sequence[bool], room: int) -> list[str]:
        """The short title of the current page, of as many of the first ones as fit, and numbers for the others."""
        titles = [self._title(place, "", numbered=here) for place, here in enumerate(shown)]
        order = sorted(range(len(titles)), key=lambda place: self.tabs[place].id != self.current)
        for place in (place for place in order if shown[place]):
            title = self._title(place, self.tabs[place].short)
            if self.tabs[place].id == self.current or sum(map(len, titles)) - len(titles[place]) + len(title) <= room:
                titles[place] = title
        return titles

    def _title(self, place: int, word: str, *, numbered: bool = False) -> str:
        """`` 8 Lines ``; "" for a page without a title, unless it is ``numbered`` all the same."""
        key = self._keys[self.tabs[place].id] if word or numbered else ""
        parts = " ".join(filter(None, (key, word)))
        return f" {parts} " if parts else ""

    def _with_empty(self, titles: list[str], room: int) -> list[str]:
        """Titles of pages with nothing to show, where there is room, and behind them what opens them."""
        empty = [place for place, tab in enumerate(self.tabs) if tab.empty and tab.id != self.current]
        for place in empty:
            title = self._title(place, f"({self.tabs[place].title})")
            if sum(map(len, titles)) + len(title) <= room:
                titles[place] = title
        for place in empty:
            tab = self.tabs[place]
            title = self._title(place, f"({tab.title}: -p {tab.probe})")
            known = titles[place] and tab.probe and all(titles[other] for other in empty)
            if known and sum(map(len, titles)) - len(titles[place]) + len(title) <= room:
                titles[place] = title
        return titles

    def _role(self, tab: Tab) -> str:
        if tab.id != self.current:
            return "dim"
        return "tab" if self.focused else "tab_idle"

    async def on_click(self, event: events.Click) -> None:
        """A click on a tab shows its page."""
        for tab, end in zip(self.tabs, self._ends, strict=True):
            if event.x < end:
                await self.run_action(f"screen.page({tab.id!r})")
                return


def _within(titles: list[str], room: int) -> list[str]:
    """The titles, without the blank behind the last one where it would be the one cell too much."""
    last = max((place for place, title in enumerate(titles) if title), default=0)
    too_long = sum(map(len, titles)) > room
    return [title.rstrip() if too_long and place == last else title for place, title in enumerate(titles)]


def fitting(parts: Sequence[str], cells: int, leading: int = 0) -> str:
    """The ``leading`` parts, and as many of the last ones as fit beside them in ``cells`` cells, joined by dots."""
    for first in range(leading, len(parts) + 1):
        text = " · ".join((*parts[:leading], *parts[first:]))
        if width(text) <= cells:
            return text
    return " · ".join(parts[:leading])


def key_line(keys: Sequence[Key], cells: int) -> Line:
    """As many keys with their short words as fit, in the order given; ``KEPT`` ones have their room in any case."""
    labels = [f"{shown(key.keys[0])} {key.footer}" if key.footer else "" for key in keys]
    named: list[int] = []
    room = cells
    for place in sorted(range(len(keys)), key=lambda place: keys[place].id not in KEPT):
        size = width(labels[place]) + (_KEY_GAP if named else 1)
        if not labels[place]:
            continue
        if size > room:
            break
        named.append(place)
        room -= size
    spans: list[Span] = []
    for place in sorted(named):
        label = shown(keys[place].keys[0])
        spans += [(" " * _KEY_GAP if spans else " ", ""), (label, "key"), (f" {keys[place].footer}", "dim")]
    return clip_line(tuple(spans), cells)
