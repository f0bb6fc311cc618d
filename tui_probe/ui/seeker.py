"""The way to the worst place: on the current page, or on the page that shows it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

from tui_probe.draw.spot import Spot

if TYPE_CHECKING:
    from tui_probe.pages.findings.found import Found
    from tui_probe.probekit.finding import Finding
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
        self._wanted: Finding | None = None

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

    def _take(self, view: View, found: Found | None) -> None:
        if view is not self.screen.view:
            return
        line = next((each for each in found.findings if each.line), None) if found else None
        worst = found.worst if found else None
        if line is not None and line.line is not None and view.land(Spot.of_line(line.line), exactly=True):
            self.screen.notice(f"{line.label}: {line.words}")
        elif found is not None and found.unread:
            self.screen.notice(f"the result could not be read: {found.problem}")
        elif worst is None and (words := view.land_on_marked()):
            self.screen.notice(words)
        elif worst is None:
            self.screen.notice("nothing stands out in this launch" if found else "this launch has no result")
        elif worst.page == view.name:
            self.screen.notice(f"{worst.label}: {worst.words}")
        else:
            self._wanted = worst
            self.screen.jump_to(worst.page, worst.spot or None)

    def arrive(self, view: View) -> None:
        """A page is shown now: go to its worst place if it is the one that was wanted."""
        wanted, self._wanted = self._wanted, None
        if wanted is not None and wanted.page == view.name:
            if WORST in view.commands() and not wanted.spot.in_run:
                view.command(WORST)
            self.screen.notice(f"{wanted.label}: {wanted.words}")


def _find(source: Source) -> Found | None:
    from tui_probe.pages.findings.found import find

    return find(source)
