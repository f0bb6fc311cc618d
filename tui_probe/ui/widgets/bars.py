"""Bars of one line, and the line of keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.draw.spans import Line, Span, clip_line, spread, width
from tui_probe.ui.keys import Key, shown
from tui_probe.ui.widgets.lines import LinesWidget

if TYPE_CHECKING:
    from collections.abc import Sequence


KEPT = frozenset({"help", "palette", "leave", "leave_home"})
"""Keys by which one finds all others, and the way back: named on every terminal."""
_KEY_GAP = 3


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


def fitting(parts: Sequence[str], cells: int, leading: int = 0) -> str:
    """The ``leading`` parts, and as many of the last ones as fit next to them in ``cells`` cells, joined by dots."""
    for first in range(leading, len(parts) + 1):
        text = " · ".join((*parts[:leading], *parts[first:]))
        if width(text) <= cells:
            return text
    return " · ".join(parts[:leading])


def key_line(keys: Sequence[Key], cells: int) -> Line:
    """Return the keys with their short texts, as many as fit, in the given order; ``KEPT`` ones always have room."""
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
