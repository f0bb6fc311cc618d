"""Titles of pages in the line above their panel: the digits, then the current further page or the key of their list."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from tui_probe.draw.spans import width as cells_of
from tui_probe.probekit.page_kinds import MORE, key_text
from tui_probe.ui.widgets.pane import FrameEdge, edge_line, fitting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events

    from tui_probe.draw.spans import Line, Span

NOTES = 22
"""Cells that long titles must leave for notes."""
_FILTER = "only "
"""Start of the note of a filter."""


@dataclass(frozen=True)
class Tab:
    """A page. ``title`` is for wide terminals, ``short`` for narrow ones; ``key`` is a digit, or a letter behind ``0``.

    A page with nothing to show is ``empty``, for the reason ``lack``; a run with ``option`` fills it, if one can.
    ``about`` describes it in the list.
    """

    id: str
    title: str
    short: str
    key: str = ""
    empty: bool = False
    option: str = ""
    about: str = ""
    lack: str = "nothing recorded"

    @property
    def is_further(self) -> bool:
        """True if it is in the list behind ``0``."""
        return not self.key.isdigit()


def keys_of(tabs: Sequence[Tab]) -> dict[str, str]:
    """Return the keys of pages by name: ``8``, ``0 b``; none of a page without a key."""
    return {tab.id: key_text(tab.key) for tab in tabs if tab.key}


class TabBar(FrameEdge):
    """The line above the panel of a page; at the right what the page says about itself."""

    def __init__(self, tabs: Sequence[Tab], **options: str | None) -> None:
        super().__init__("top", **options)
        self.tabs = tabs
        self.current = tabs[0].id
        self.notes: Sequence[str] = ()
        self._shown: Sequence[Tab] = ()
        self._ends: list[int] = []

    def show_tabs(self, tabs: Sequence[Tab], current: str, notes: Sequence[str], *, focused: bool) -> None:
        """Mark the page ``current``; as many of the ``notes`` as fit stand at the right, the last ones first."""
        self.tabs, self.current, self.notes = tabs, current, notes
        self.focused = focused
        self.redraw()

    def draw(self, width: int, height: int) -> list[Line]:
        """The titles, as long as the width allows."""
        del height
        self._shown = shown_tabs(self.tabs, self.current)
        room, wide = width - 4, width - 4 - (NOTES if self.notes else 0)
        if any(note.startswith(_FILTER) for note in self.notes):  # that something is left out must be seen
            room = wide = width - 7 - cells_of(" · ".join(self.notes))
        titles = _titles(self._shown, self.current, room, wide)
        self._ends = [2 + end for end in accumulate(map(len, titles))]
        spans: list[Span] = [(title, self._role(tab)) for tab, title in zip(self._shown, titles, strict=True)]
        note = fitting(self.notes, width - self._ends[-1] - 6)
        right: Line = ((f" {note} ", "dim"),) if note else ()
        return [edge_line((*spans, (" ", "")), right, width, focused=self.focused, edge=self.edge)]

    def _role(self, tab: Tab) -> str:
        if tab.id == self.current:
            return "tab" if self.focused else "tab_idle"
        return "rule" if tab.empty else "dim"

    async def on_click(self, event: events.Click) -> None:
        """A click on a title shows its page."""
        for tab, end in zip(self._shown, self._ends, strict=True):
            if event.x < end:
                await self.run_action("screen.more_pages" if tab.key == MORE else f"screen.page({tab.id!r})")
                return


def shown_tabs(tabs: Sequence[Tab], current: str) -> list[Tab]:
    """Return the pages of the digits in order, then the current further page, or one for the list of them."""
    digits = sorted((tab for tab in tabs if not tab.is_further), key=lambda tab: tab.key)
    further = [tab for tab in tabs if tab.is_further]
    own = next((tab for tab in further if tab.id == current), None)
    if own is not None:
        return [*digits, own]
    return [*digits, Tab("", "more", "more", MORE)] if further else digits


def _titles(tabs: Sequence[Tab], current: str, room: int, wide: int) -> list[str]:
    """Return full titles if they fit in ``wide`` cells, else short ones, the digits alone, or the title of the page."""
    for form, limit in ((_full, wide), (_short_named, room), (_short, room), (_digit, room)):
        titles = [form(tab, tab.id == current) for tab in tabs]
        if sum(map(len, titles)) <= limit:
            return titles
    return [_short(tab, True) if tab.id == current else "" for tab in tabs]


def _full(tab: Tab, _: bool) -> str:
    return f" {key_text(tab.key)} {f'({tab.title})' if tab.empty else tab.title} "


def _short_named(tab: Tab, _: bool) -> str:
    return f" {key_text(tab.key)} {f'({tab.short})' if tab.empty else tab.short}"


def _short(tab: Tab, is_current: bool) -> str:
    word = "" if tab.empty and not is_current else f" {tab.short}"
    return f" {key_text(tab.key)}{word}"


def _digit(tab: Tab, is_current: bool) -> str:
    return _short(tab, is_current) if is_current else f" {key_text(tab.key)}"
