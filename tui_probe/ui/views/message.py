"""What stands in the place of a view that is being opened, or that has nothing to show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.draw.spans import wrap
from tui_probe.ui.views.view import Desk, View

if TYPE_CHECKING:
    from tui_probe.draw.spans import Line
    from tui_probe.ui.opening import Opening

_BAR = 30


class OpeningView(View):
    """How far the opening of a view is."""

    kind = "drawing"
    searches = filters = False

    def __init__(self, desk: Desk, name: str, opening: Opening, before: View) -> None:
        super().__init__(desk, name)
        self.opening = opening
        self.before = before
        """What was shown until then: its place is that of what comes."""

    def draw(self, width: int, height: int) -> list[Line]:
        """A bar, and how to stop."""
        del width, height
        done = round(_BAR * self.opening.share)
        bar = "█" * done + "░" * (_BAR - done)
        return [
            ((f" reading {self.opening.page.title} ", ""), (bar, "accent"), (f" {self.opening.words}", "")),
            ((" Esc stops; all other keys still work", "dim"),),
        ]


class MessageView(View):
    """Why there is nothing to see, and what to do."""

    kind = "drawing"
    searches = filters = False

    def __init__(self, desk: Desk, name: str, text: str, role: str = "dim") -> None:
        super().__init__(desk, name)
        self.text = text
        self.role = role

    def draw(self, width: int, height: int) -> list[Line]:
        """The words."""
        del height
        return [(), *(((f" {part}", self.role),) for part in wrap(self.text, max(20, width - 2)))]
