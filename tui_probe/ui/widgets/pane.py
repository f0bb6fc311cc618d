"""A widget that shows a view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.ui.widgets.lines import Lines

if TYPE_CHECKING:
    from textual import events

    from tui_probe.draw.spans import Line
    from tui_probe.ui.views.view import View

WHEEL = 3


class Pane(Lines):
    """A window for one view at a time; changing the view sends only the cells that differ."""

    def __init__(self, view: View, **options: str | None) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.view = view

    def host(self, view: View) -> None:
        """Show another view."""
        self.view = view
        self._fit()
        self.redraw()

    def draw(self, width: int, height: int) -> list[Line]:
        """What the view draws."""
        if (width, height) != (self.view.width, self.view.height):
            self.view.resize(width, height)
        return self.view.draw(width, height)

    def _fit(self) -> None:
        if self.size and self.size != (self.view.width, self.view.height):
            self.view.resize(*self.size)

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
        self.view.click(event.y, event.x)
