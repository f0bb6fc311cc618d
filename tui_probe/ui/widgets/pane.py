"""Pane: a window for one view, between the sides of its frame; bars of one line with titles and keys around panes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tui_probe.draw.spans import Line, Span, clip_line, spread, to_ascii, width
from tui_probe.ui.keys import Key, shown
from tui_probe.ui.widgets.lines import LinesWidget

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from textual import events

    from tui_probe.ui.views.view import PaneView

# Frames of panels: the line above with a title, the line below, and the sides.
#
# The panel with the keys has heavy lines, others thin ones, so that they differ without colours, too.

Edge = Literal["top", "middle", "bottom"]
_THIN, _HEAVY = "─│", "━┃"
_CORNERS = {
    "top": (("╭", "╮"), ("┏", "┓")),
    "middle": (("├", "┤"), ("┣", "┫")),
    "bottom": (("╰", "╯"), ("┗", "┛")),
}
WHEEL = 3
"""Lines that the mouse wheel moves by."""


def frame_role(focused: bool) -> str:
    """Return the role of the lines of a frame."""
    return "accent" if focused else "rule"


def _signs(focused: bool) -> str:
    return _HEAVY if focused else _THIN


def side(focused: bool) -> Span:
    """Return the line at the left and at the right of a panel."""
    return _signs(focused)[1], frame_role(focused)


def edge_line(left: Line, right: Line, cells: int, *, focused: bool, edge: Edge = "top") -> Line:
    """Return the line above or below a panel with texts at its left and right; ``left`` is cut to fit.

    "middle" is the line above a panel that is the end of the one before it, too.
    """
    line, role = _signs(focused)[0], frame_role(focused)
    first, last = _CORNERS[edge][focused]
    end: Line = (*right, (line, role)) if right else ()
    room = cells - 2 - _cells(end)
    if room < 1:
        end, room = (), max(0, cells - 2)
    begin: Line = ((line, role), *left) if left and room > 1 else ()
    if _cells(begin) > room:
        begin = (*clip_line(begin, max(0, room - 1)), ("…", begin[-1][1]))
    return ((first, role), *begin, (line * (room - _cells(begin)), role), *end, (last, role))


def _cells(line: Iterable[Span]) -> int:
    return sum(width(text) for text, _ in line)


class FrameEdge(LinesWidget):
    """The line above or below a panel."""

    DEFAULT_CSS = "FrameEdge { height: 1; }"

    def __init__(self, edge: Edge = "top", **options: str | None) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.edge: Edge = edge
        self.focused = False
        self.left: Line = ()
        self.right: Line = ()

    def show(self, left: Line, right: Line = (), *, focused: bool | None = None) -> None:
        """Show ``left`` at the start and ``right`` at the end, in the lines of the panel that has the keys or not."""
        self.left, self.right = left, right
        self.focused = self.focused if focused is None else focused
        self.redraw()

    @property
    def room(self) -> int:
        """Cells for texts."""
        return max(0, self.size.width - 4)

    def draw(self, width: int, height: int) -> list[Line]:
        """The line."""
        del height
        return [edge_line(self.left, self.right, width, focused=self.focused, edge=self.edge)]


class Pane(LinesWidget):
    """A window for one view at a time; changing the view sends only the cells that differ.

    ``heavy``: there are other panes, so the sides are heavy while this one has the keys.
    """

    def __init__(self, view: PaneView, *, heavy: bool = False, **options: str | None) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.view, self.heavy = view, heavy

    @property
    def inner(self) -> tuple[int, int]:
        """Columns and rows for the view."""
        columns, rows = self.size
        return max(0, columns - 2), rows

    def host(self, view: PaneView) -> None:
        """Show another view."""
        self.view = view
        self._fit()
        self.redraw()

    def draw(self, width: int, height: int) -> list[Line]:
        """Return the lines that the view draws."""
        size = max(0, width - 2), height
        if size != (self.view.width, self.view.height):
            self.view.resize(*size)
        return self.view.draw(*size)

    def finish(self, line: Line, cells: int) -> Line:
        """Put a line between the sides."""
        sign, role = side(self.heavy and self.view.focused)
        edge = (to_ascii(sign) if self.probe_app.ascii_only else sign, role)
        return (edge, *super().finish(line, max(0, cells - 2)), edge)

    def _fit(self) -> None:
        if self.size and self.inner != (self.view.width, self.view.height):
            self.view.resize(*self.inner)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel moves by three lines."""
        event.stop()
        self.view.move(WHEEL)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel moves by three lines."""
        event.stop()
        self.view.move(-WHEEL)

    def on_click(self, event: events.Click) -> None:
        """A click points at a cell."""
        self.view.click(event.y, max(0, event.x - 1))


KEPT = frozenset({"help", "palette", "leave", "leave_home"})
"""Keys by which one finds all others, and the way back: named on every terminal."""
_KEY_GAPS = (2, 3)
"""Cells between two keys, on narrow and on wide terminals."""
_WIDE = 100
"""Cells of a wide terminal."""


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
    room, gap = cells, _KEY_GAPS[cells >= _WIDE]
    for place in sorted(range(len(keys)), key=lambda place: keys[place].id not in KEPT):
        size = width(labels[place]) + (gap if named else 1)
        if not labels[place]:
            continue
        if size > room:
            break
        named.append(place)
        room -= size
    spans: list[Span] = []
    for place in sorted(named):
        label = shown(keys[place].keys[0])
        spans += [(" " * gap if spans else " ", ""), (label, "key"), (f" {keys[place].footer}", "dim")]
    return clip_line(tuple(spans), cells)
