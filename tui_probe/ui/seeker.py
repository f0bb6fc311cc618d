"""The way to the worst place: on the current page, or on the page that shows it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

from tui_probe.ui import keys

if TYPE_CHECKING:
    from tui_probe.draw.spot import Spot
    from tui_probe.pages.findings.worst_place import Place, WorstPlace
    from tui_probe.probekit.kind import Source
    from tui_probe.ui.views.view import View, Worker

WORST = "worst"


class PagesDesk(Protocol):
    """The screen that shows pages."""

    @property
    def view(self) -> View:
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


class Seeker:
    """Goes there for a screen of pages; what a launch's result says is read in the background."""

    def __init__(self, screen: PagesDesk) -> None:
        self.screen = screen
        self._wanted: Place | None = None

    def go(self, source: Source | None) -> None:
        """To the worst place of a launch, as the current page knows it, or else as its findings do."""
        screen, view = self.screen, self.screen.view
        self._wanted = None
        if WORST in view.commands():
            view.command(WORST)
            screen.show_bars()
        elif source is None:
            screen.notice("this page has no worst place")
        else:
            screen.analyses.submit((screen, WORST), partial(_find, source), partial(self._take, view))

    def _take(self, view: View, found: WorstPlace) -> None:
        """On the page that is shown, where it has the line or a mark of its own; else where the place is."""
        if view is not self.screen.view:
            return
        place = found.worst or found.marked
        line = found.line or found.marked
        if found.marked is not None and (words := view.land_on_marked()):
            self.screen.notice(words)
        elif line is not None and view.land(line.spot, exactly=True):
            self.screen.notice(line.words)
        elif place is None:
            self.screen.notice(found.why + (f": {_again()} asks with {found.asks}" if found.asks else ""))
        elif place.page == view.name:
            self.screen.notice(place.words)
        else:
            self._wanted = place
            self.screen.jump_to(place.page, place.spot or None)

    def arrive(self, view: View) -> None:
        """A page is shown now: go to its worst place if it is the one that was wanted."""
        wanted, self._wanted = self._wanted, None
        if wanted is not None and wanted.page == view.name:
            if WORST in view.commands() and not wanted.spot.in_run:
                view.command(WORST)
            self.screen.notice(wanted.words)


def _again() -> str:
    """The key that runs the program again."""
    return keys.shown(next(key for key in keys.in_scope("pages") if key.id == "again").keys[0])


def _find(source: Source) -> WorstPlace:
    from tui_probe.pages.findings.worst_place import worst_place

    return worst_place(source)
