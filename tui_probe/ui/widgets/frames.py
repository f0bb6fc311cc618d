"""Frames of panels: the line above with a title, the line below, and the sides.

The panel with the keys has heavy lines, others thin ones, so that they differ without colours, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tui_probe.draw.spans import Line, Span, clip_line, width
from tui_probe.ui.widgets.lines import LinesWidget

if TYPE_CHECKING:
    from collections.abc import Iterable

Edge = Literal["top", "middle", "bottom"]
_THIN, _HEAVY = "─│", "━┃"
_CORNERS = {
    "top": (("╭", "╮"), ("┏", "┓")),
    "middle": (("├", "┤"), ("┣", "┫")),
    "bottom": (("╰", "╯"), ("┗", "┛")),
}


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
