"""Jumps between pages: to the hotspot, and back along the history."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tui_probe.trace.kernel_files import long_position
from tui_probe.ui import keys

if TYPE_CHECKING:
    from tui_probe.draw.view import Spot
    from tui_probe.pages.hotspot import Hotspot, PageSpot
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.ui.views.view import PaneView, Worker

HOTSPOT = "worst"
"""Command of a page that goes to its hotspot."""


class PagesHost(Protocol):
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
    """Goes to the hotspot of a launch for a screen of pages; the results of the launch are read in the background."""

    def __init__(self, screen: PagesHost) -> None:
        self.screen = screen
        self._target: PageSpot | None = None

    def go(self, source: ViewSource | None) -> None:
        """Go to the hotspot of a launch, as the current page has it, or else its findings."""
        screen, view = self.screen, self.screen.view
        self._target = None
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
        place = hotspot.worst or hotspot.marked_line
        line = hotspot.line or hotspot.marked_line
        if hotspot.marked_line is not None and (words := view.go_to_marked_line()):
            self.screen.notice(words)
        elif line is not None and view.go_to_spot(line.spot, exactly=True):
            self.screen.notice(line.text)
        elif place is None:
            remedy = f"; press {_rerun_key()} to run with {hotspot.option}" if hotspot.option else ""
            self.screen.notice(f"{hotspot.reason}{remedy}")
        elif place.page == view.name:
            self.screen.notice(place.text)
        elif not place.is_flagged and (words := view.go_to_marked_line()):
            self.screen.notice(words)
        else:
            self._target = place
            self.screen.jump_to(place.page, place.spot or None)

    def arrive(self, view: PaneView) -> None:
        """A page is shown now: go to its worst place if it is the one that was wanted."""
        target, self._target = self._target, None
        if target is not None and target.page == view.name:
            if HOTSPOT in view.commands() and not target.spot.in_run:
                view.command(HOTSPOT)
            self.screen.notice(target.text)


def _rerun_key() -> str:
    """The key that runs the program again."""
    return keys.key_of("again")


def _find_hotspot(source: ViewSource) -> Hotspot:
    from tui_probe.pages.hotspot import find_hotspot

    return find_hotspot(source)


class LeftPage(NamedTuple):
    """Page that a jump left: its name, its saved state, and the part that it was restricted to (None: all)."""

    name: str
    state: object
    part: object


class JumpHistory:
    """Pages that jumps left, the last one at the end, and the place of the page that is being opened."""

    def __init__(self) -> None:
        self._left_pages: list[LeftPage] = []
        self._target: Spot | None = None
        """Spot on the next page that a jump leads to; None if it leads to no spot."""
        self._returning: LeftPage | None = None
        """The next page, if the user goes back to it."""

    def leave(self, view: PaneView, spot: Spot | None, part: object = None) -> None:
        """Remember a page and the part that it is restricted to; the next page shows ``spot``, if one is given."""
        self._left_pages.append(LeftPage(view.name, view.state(), part))
        self._target, self._returning = spot, None

    def pop_page(self) -> LeftPage | None:
        """Return the page that was left last, and forget it; None if there is none."""
        if not self._left_pages:
            return None
        self._target, self._returning = None, self._left_pages.pop()
        return self._returning

    def arrive(self, view: PaneView, default_spot: Spot) -> None:
        """Move on a page that is shown now: to the target of the jump, its saved state, or else ``default_spot``."""
        target, returning = self._target, self._returning
        self._target = self._returning = None
        if returning is not None and returning.name == view.name:
            view.restore(returning.state)
            return
        spot = default_spot if target is None else target
        if spot and not view.go_to_spot(spot, exactly=target is not None):
            unknown = ""
            if target is not None and target.ptx:
                unknown = f"this page has no data for {long_position(target.ptx[0])}"
            if reason := view.missing_reason(spot) or unknown:
                view.view_host.notice(reason)

    def clear(self) -> None:
        """Forget all pages: the user goes elsewhere than by jumps."""
        self._left_pages.clear()
        self._target = self._returning = None
