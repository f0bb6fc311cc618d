"""Pane: a window for one view, between the sides of its frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.draw.spans import to_ascii
from tui_probe.ui.widgets.frames import side
from tui_probe.ui.widgets.lines import LinesWidget

if TYPE_CHECKING:
    from textual import events

    from tui_probe.draw.spans import Line
    from tui_probe.ui.views.view import PaneView

WHEEL = 3
"""Lines that the mouse wheel moves by."""


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

    def _finish(self, line: Line, cells: int) -> Line:
        """Put a line between the sides."""
        sign, role = side(self.heavy and self.view.focused)
        edge = (to_ascii(sign) if self.probe_app.ascii_only else sign, role)
        return (edge, *super()._finish(line, max(0, cells - 2)), edge)

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
