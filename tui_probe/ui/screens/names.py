"""Names in full, in front of a screen where they were cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.draw.spans import Line, wrap
from tui_probe.draw.table import safe
from tui_probe.ui.screens.in_front import FittedList, FittedScreen
from tui_probe.ui.screens.tags import framed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events

WIDEST, MARGIN = 120, 4


class NameList(FittedList):
    """Each name in as many lines as it needs."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self.names = names
        self._top = 0

    def fit(self, columns: int, rows: int) -> None:
        """Take the room that the names need and the terminal has."""
        self.styles.width = min(WIDEST, columns - MARGIN)
        self.styles.height = min(len(self._wrapped(min(WIDEST, columns - MARGIN) - 2)) + 4, rows - MARGIN)

    def _wrapped(self, inner: int) -> list[Line]:
        lines: list[Line] = []
        for name in self.names:
            lines += [((part, ""),) for part in wrap(safe(name), inner - 2)] + [()]
        return lines[:-1]

    def scroll(self, step: int) -> None:
        """By lines, where there are more than fit."""
        room = max(1, self.size.height - 4)
        self._top = max(0, min(self._top + step, len(self._wrapped(self.size.width - 2)) - room))
        self.redraw()

    def draw(self, width: int, height: int) -> list[Line]:
        """The names, and keys."""
        inner, room = width - 2, max(1, height - 4)
        shown = self._wrapped(inner)[self._top : self._top + room]
        last: Line = (("y", "key"), (" copy  ", "dim"), ("Esc", "key"), (" back", "dim"))
        return list(framed([*shown, *[()] * (room - len(shown)), (), last], inner))


class NameScreen(FittedScreen["str | None", NameList]):
    """Gives the names, a line each, if they are to be copied."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(NameList(names))

    def press(self, event: events.Key) -> None:
        """Arrows scroll, y copies, any other key leaves."""
        if event.key in ("up", "k", "down", "j"):
            self.list.scroll(1 if event.key in ("down", "j") else -1)
        else:
            self.dismiss("\n".join(map(safe, self.list.names)) if event.key == "y" else None)
