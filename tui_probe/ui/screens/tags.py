"""A small list to choose the tags of a log from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.draw import units
from tui_probe.draw.spans import Line, pad, width
from tui_probe.ui.screens.in_front import FittedList, FittedScreen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual import events
    from textual.app import App

    from tui_probe.ui.views.log import LogView

INNER = 36


KEYS: Line = (
    ("Space", "key"),
    (" toggle  ", "dim"),
    ("Enter", "key"),
    (" show  ", "dim"),
    ("a", "key"),
    (" all", "dim"),
)


class TagList(FittedList):
    """Tags with their counts, each with a box; they are counted while it is shown."""

    def __init__(self, chosen: frozenset[str]) -> None:
        super().__init__()
        self.chosen = set(chosen)
        self.counts: dict[str, int] = {}
        self.names: list[str] = []
        self.title = "counting…"
        self.place = 0
        self._top = 0

    def take(self, counts: dict[str, int]) -> None:
        """They are counted."""
        self.counts, self.names = counts, sorted({*counts, *self.chosen})
        self.title = "Tags to show (none: all)" if self.names else "no line of this log has a tag"

    def fit(self, columns: int, rows: int) -> None:
        """As many lines as there are tags, and the terminal has."""
        self.styles.width = min(INNER + 2, columns)
        self.styles.height = min(len(self.names) + 5, rows)

    def draw(self, width: int, height: int) -> list[Line]:
        """The list in a frame, the tags around the marked one."""
        del width
        room = max(1, height - 5)
        self._top = max(min(self._top, self.place), self.place - room + 1)
        shown = [self._line(place) for place in range(len(self.names))][self._top : self._top + room]
        return list(framed([((self.title, "title"),), *shown, (), KEYS], INNER))

    def _line(self, place: int) -> Line:
        name = self.names[place]
        box = "[x]" if name in self.chosen else "[ ]"
        text = f"{box} {pad(name, 14)} {pad(units.count(self.counts.get(name, 0)), 12, right=True)} "
        return ((text, "select" if place == self.place else ""),)


def framed(lines: Iterable[Line], inner: int) -> Iterable[Line]:
    """``lines`` in a frame that is ``inner`` cells wide inside."""
    yield (("┌" + "─" * inner + "┐", "rule"),)
    for line in lines:
        used = sum(width(text) for text, _ in line)
        yield (("│ ", "rule"), *line, (" " * (inner - used - 1), ""), ("│", "rule"))
    yield (("└" + "─" * inner + "┘", "rule"),)


class TagScreen(FittedScreen["frozenset[str] | None", TagList]):
    """Gives the chosen tags, none for all, or None if left with Escape."""

    def __init__(self, chosen: frozenset[str]) -> None:
        super().__init__(TagList(chosen), early=True)

    def take(self, counts: dict[str, int]) -> None:
        """How many lines have each tag."""
        self.list.take(counts)
        self.come()

    def press(self, event: events.Key) -> None:
        """Arrows and jk move, space toggles, a clears, Enter takes, Escape leaves."""
        tags = self.list
        if event.key in ("up", "k", "down", "j") and tags.names:
            tags.place = (tags.place + (1 if event.key in ("down", "j") else -1)) % len(tags.names)
        elif event.key in ("space", "x") and tags.names:
            tags.chosen ^= {tags.names[tags.place]}
        elif event.key == "a":
            tags.chosen.clear()
        elif event.key == "enter":
            self.dismiss(frozenset(tags.chosen))
        elif event.key in ("escape", "q"):
            self.dismiss(None)
        tags.redraw()


def choose_tags(app: App[None], log: LogView) -> None:
    """Count the tags of a log, have some of them chosen, and show only those."""

    def take(chosen: frozenset[str] | None) -> None:
        if chosen is not None:
            log.set_tags(chosen)

    if log.reader is None:
        log.desk.notice("there is nothing in this log")
        return
    menu = TagScreen(log.wanted.tags)
    app.push_screen(menu, take)
    log.count_tags(menu.take)
