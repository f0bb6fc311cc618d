"""Jumps between pages: to the hotspot, and back along the history."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

from tui_probe.trace.kernel_files import long_position
from tui_probe.ui import keys

if TYPE_CHECKING:
    from tui_probe.draw.view import Spot
    from tui_probe.pages.hotspot import Hotspot, PageSpot
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.ui.views.view import PaneView, Worker

HOTSPOT = "worst"


class PagesDesk(Protocol):
    """The screen that shows pages."""

    @property
    def view(self) -> PaneView:
        """The current page."""

    @property
    def analyses(self) -> Worker:
        """Reads and analyses results."""

    def notice(self, text: str) -> None:
        """Say something for some seconds."""

    def show_bars(self) -> None:
        """Draw the lines around the page."""

    def jump_to(self, page: str, spot: Spot | None) -> None:
        """Show a page, at a place if one is given."""


class HotspotJump:
    """Goes there for a screen of pages; what a launch's result says is read in the background."""

    def __init__(self, screen: PagesDesk) -> None:
        self.screen = screen
        self._wanted: PageSpot | None = None

    def go(self, source: ViewSource | None) -> None:
        """Go to the hotspot of a launch, as the current page has it, or else its findings."""
        screen, view = self.screen, self.screen.view
        self._wanted = None
        if HOTSPOT in view.commands():
            view.command(HOTSPOT)
            screen.show_bars()
        elif source is None:
            screen.notice("this page has no hotspot")
        else:
            screen.analyses.submit((screen, HOTSPOT), partial(_find_hotspot, source), partial(self._take, view))

    def _take(self, view: PaneView, hotspot: Hotspot) -> None:
        """Move on the shown page, if it has the line or a mark of its own; else open the page of the hotspot."""
        if view is not self.screen.view:
            return
        place = hotspot.worst or hotspot.marked
        line = hotspot.line or hotspot.marked
        if hotspot.marked is not None and (words := view.land_on_marked()):
            self.screen.notice(words)
        elif line is not None and view.land(line.spot, exactly=True):
            self.screen.notice(line.words)
        elif place is None:
            self.screen.notice(
                hotspot.why + (f"; press {_rerun_key()} to run with {hotspot.asks}" if hotspot.asks else "")
            )
        elif place.page == view.name:
            self.screen.notice(place.words)
        elif not place.is_flagged and (words := view.land_on_marked()):
            self.screen.notice(words)
        else:
            self._wanted = place
            self.screen.jump_to(place.page, place.spot or None)

    def arrive(self, view: PaneView) -> None:
        """A page is shown now: go to its worst place if it is the one that was wanted."""
        wanted, self._wanted = self._wanted, None
        if wanted is not None and wanted.page == view.name:
            if HOTSPOT in view.commands() and not wanted.spot.in_run:
                view.command(HOTSPOT)
            self.screen.notice(wanted.words)


def _rerun_key() -> str:
    """The key that runs the program again."""
    return keys.key_of("again")


def _find_hotspot(source: ViewSource) -> Hotspot:
    from tui_probe.pages.hotspot import find_hotspot

    return find_hotspot(source)


@dataclass
class JumpHistory:
    """Pages that were left by a jump, with the saved state of each and its limits; the last one at the end."""

    steps: list[tuple[str, object]] = field(default_factory=list)
    onlys: list[object] = field(default_factory=list)
    _to: Spot | None = None
    _back: tuple[str, object] | None = None

    def leave(self, view: PaneView, spot: Spot | None, only: object = None) -> None:
        """Remember a page; the one that is shown next is to show this place, if one is given."""
        self.steps.append((view.name, view.state()))
        self.onlys.append(only)
        self._to, self._back = spot, None

    def back(self) -> tuple[str, object] | None:
        """The page that was left last, and what it was limited to; None if there is none."""
        if not self.steps:
            return None
        self._to, self._back = None, self.steps.pop()
        return self._back[0], self.onlys.pop()

    def arrive(self, view: PaneView, at: Spot) -> None:
        """A page is shown now: at the spot that was jumped to, as it was left, or else where one is (``at``)."""
        to, back = self._to, self._back
        self._to = self._back = None
        if back is not None and back[0] == view.name:
            view.restore(back[1])
            return
        wanted = at if to is None else to
        if wanted and not view.land(wanted, exactly=to is not None):
            unknown = f"this page has no data for {long_position(to.ptx[0])}" if to is not None and to.ptx else ""
            if words := view.missing_reason(wanted) or unknown:
                view.desk.notice(words)

    def clear(self) -> None:
        """Going elsewhere than by jumps ends the way."""
        self.steps.clear()
        self.onlys.clear()
        self._to = self._back = None
