"""The bars of one line: title, tabs, state, keys."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from tui_probe.render.spans import Line, Span, clip_line, spread, width
from tui_probe.ui.keys import Key, shown
from tui_probe.ui.widgets.lines import Lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events


NUMBERED = 9
"""Pages that have a number key."""
NOTES = 22
"""Cells that long titles of pages must leave for notes."""


class Bar(Lines):
    """One line that is set from outside: what stands left, and what stands right."""

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


class Rule(Lines):
    """A line from top to bottom between two panes."""

    DEFAULT_CSS = "Rule { width: 1; height: 1fr; }"

    def draw(self, width: int, height: int) -> list[Line]:
        """The line."""
        del width
        return [(("│", "rule"),)] * height


@dataclass(frozen=True)
class Tab:
    """A page that a number key shows. ``title`` is for wide terminals, ``short`` for narrow ones.

    One with nothing to show (``empty``) stands in brackets where it has a title, and is left out where it is narrow.
    """

    id: str
    title: str
    short: str
    empty: bool = False


class TabBar(Lines):
    """The pages, the current one marked, and at the right what the current page says about itself."""

    DEFAULT_CSS = "TabBar { height: 1; }"

    def __init__(self, tabs: Sequence[Tab], **options: str | None) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.tabs = tabs
        self.current = tabs[0].id
        self.focused = False
        self.notes: Sequence[str] = ()
        self.noted = True
        self._ends: list[int] = []

    def show(
        self, current: str, notes: Sequence[str] | None, *, focused: bool, tabs: Sequence[Tab] | None = None
    ) -> None:
        """Mark the page ``current``; as many of the ``notes`` as fit stand at the right, the last ones first.

        Where there never are notes (None), the titles have all the room.
        """
        self.noted = notes is not None
        self.tabs = self.tabs if tabs is None else tabs
        self.current, self.notes, self.focused = current, notes or (), focused
        self.redraw()

    def draw(self, width: int, height: int) -> list[Line]:
        """The tabs, with titles as long as the width allows."""
        del height
        long, short, numbers = (self._titles(shortness) for shortness in range(3))
        # Not by what the notes need now: titles that change while a log grows are hard to read.
        titles = long if sum(map(len, long)) + (NOTES if self.noted else 0) < width else short
        if sum(map(len, titles)) >= width:
            titles = numbers
        self._ends = list(accumulate(map(len, titles)))
        spans = [(title, self._role(tab)) for tab, title in zip(self.tabs, titles, strict=True)]
        note = fitting(self.notes, width - self._ends[-1] - 2)
        return [spread(spans, ((note, "dim"), (" ", "")), width)]

    def _titles(self, shortness: int) -> list[str]:
        """The titles in full (0), short (1), or as numbers but for the current one (2)."""
        titles = []
        for number, tab in enumerate(self.tabs, 1):
            text = (tab.title, tab.short, tab.short if tab.id == self.current else "")[shortness]
            parts = [str(number)] if number <= NUMBERED else []
            if tab.empty and tab.id != self.current:
                text = f"({text})" if shortness == 0 else ""
                parts = parts if shortness == 0 else []
            parts += [text] if text else []
            titles.append(f" {' '.join(parts)} " if parts else "")
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


def fitting(parts: Sequence[str], cells: int) -> str:
    """As many of the last parts as fit in ``cells`` cells, joined by dots."""
    for first in range(len(parts) + 1):
        text = " · ".join(parts[first:])
        if width(text) <= cells:
            return text
    return ""


def key_line(keys: Sequence[Key], cells: int) -> Line:
    """As many keys with their short words as fit, in the order given."""
    spans: list[Span] = []
    used = 0
    for key in keys:
        if not key.footer:
            continue
        label = shown(key.keys[0])
        size = width(label) + width(key.footer) + (4 if spans else 2)
        if used + size > cells:
            break
        spans += [("   " if spans else " ", ""), (label, "key"), (f" {key.footer}", "dim")]
        used += size
    return clip_line(tuple(spans), cells)
