"""What a screen of pages shows: each page is opened in the background when it is first looked at."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING

from textual.css.query import NoMatches

from tui_probe.draw.spans import width
from tui_probe.ui.opener import PageOpener
from tui_probe.ui.screens.view_screen import ViewScreen
from tui_probe.ui.views.document import DocumentView
from tui_probe.ui.views.message import MessageView, OpeningView
from tui_probe.ui.widgets.bars import Bar, Tab, TabBar, fitting, keys_of
from tui_probe.ui.widgets.pane import Pane

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from tui_probe.draw.spans import Line
    from tui_probe.ui.opening import Page
    from tui_probe.ui.views.view import View

INTERVAL = 0.25


class PagedFrame(ViewScreen):
    """``tabs`` are its pages, ``current`` the name of the one that was asked for last.

    ``known``: all pages are known; until then the first ones are, as many as ``certain``.
    """

    def __init__(self, tabs: Sequence[Tab], current: str, *, known: bool, reading: str = "reading…") -> None:
        super().__init__()
        self.tabs, self.current = tabs, current
        self.known, self.certain = known, len(tabs)
        self.opener = PageOpener(self)
        self._view: View = MessageView(self, "nothing", reading)

    def compose(self) -> ComposeResult:
        """What it is about, its pages, the page, what is seen of it, hints."""
        yield Bar("bar", id="title")
        yield TabBar(self.tabs, id="tabs")
        yield Pane(self._view, id="page")
        yield Bar("bar", id="state")
        yield Bar(id="hint")

    def on_mount(self) -> None:
        """Open the page, and start the clock."""
        self.set_interval(INTERVAL, self.tick)
        self.begin()

    def on_unmount(self) -> None:
        """Nobody waits for what is being opened."""
        self.opener.close()

    # -- what the screens say

    def begin(self) -> None:
        """There is a terminal now: find out what pages there are, and show the first."""
        self.show_page()

    @abstractmethod
    def page(self, name: str) -> Page | None:
        """A page that can be opened; None if there is nothing at hand that it could be about."""

    @abstractmethod
    def title_line(self, cells: int) -> tuple[Line, Line]:
        """What stands left and right in the first line."""

    def run_line(self, *, brief: bool = False) -> Line:
        """How the run is doing, at the right of what is seen of the page; ``brief``: only whether it is simulated."""
        del brief
        return ()

    def seen(self, cells: int) -> str:
        """What is seen of the page, without what stands beside it of the run, as ``[simulated]``.

        Where there is little room, what it is about and the last parts, which matter most.
        """
        run = "".join(text for text, _ in self.run_line())
        return fitting([part for part in self._view.status() if f"[{part}]" not in run], cells, self._view.leading())

    def look(self) -> None:
        """The clock: take in what happened meanwhile."""

    # -- what the pages ask for

    @property
    def view(self) -> View:
        """The current page."""
        return self._view

    @property
    def page_tabs(self) -> Sequence[Tab]:
        """The pages that the palette offers."""
        return self.tabs

    @property
    def ascii_only(self) -> bool:
        """Are only ASCII characters drawn?"""
        return self.probe_app.ascii_only

    @property
    def window(self) -> tuple[int, int]:
        """Columns and rows for a page."""
        return self.query_one("#page", Pane).size

    def page_keys(self) -> dict[str, str]:
        """What is pressed for pages, by name, as far as it is known which pages there are."""
        return {name: key for name, key in keys_of(self.tabs).items() if key} if self.known else {}

    # -- what is shown

    def take_tabs(self, tabs: Sequence[Tab]) -> None:
        """All pages are known now."""
        self.tabs, self.known = tabs, True
        if isinstance(self._view, DocumentView):
            self._view.name_keys(self.page_keys())
        self.show_bars()

    def show_page(self) -> None:
        """Show the current page, and open it if that was not done."""
        self.opener.give_up()
        page = self.page(self.current)
        if page is None:
            self.host(MessageView(self, "nothing", "no kernel is selected"))
        elif self.current in self.opener.kept:
            self.arrive(self.opener.kept[self.current])
        else:
            self.opener.open(page, self.lasting)
            self.show_bars()

    @property
    def lasting(self) -> View:
        """The current page, or the one that was before what says how far an opening is."""
        return self._view.before if isinstance(self._view, OpeningView) else self._view

    def arrive(self, view: View) -> None:
        """A page that was asked for is open: show it."""
        self.host(view)

    def host(self, view: View) -> None:
        """Put a view into the pane."""
        self._view.focused, view.focused = False, True
        self._view = view
        if self.is_mounted:
            self.query_one("#page", Pane).host(view)
            self.show_bars()

    def tick(self) -> None:
        """Progress of what is opened, and what happened meanwhile. Left out while the terminal lags behind."""
        if self.probe_app.screen is not self or self.probe_app.backed_up:
            return
        if isinstance(self._view, OpeningView):
            self.redraw(self._view)
        elif self.opener.opening is not None:
            self.host(OpeningView(self, self._view.name, self.opener.opening, self._view))
        self.look()
        self.show_bars()

    def show_bars(self) -> None:
        """What it is about, the pages, the state, hints."""
        with suppress(NoMatches):  # what comes while the screen is taken down, widget by widget
            self._show_bars()

    def _show_bars(self) -> None:
        title, state, run = self.query_one("#title", Bar), self.query_one("#state", Bar), self.run_line()
        title.show(*self.title_line(title.size.width))
        self.query_one(TabBar).show(self.current, None, focused=True, tabs=self.tabs)
        if self._view.leading() and width(" · ".join(self._view.status())) > _room(state, run):
            run = self.run_line(brief=True)
        state.show(((f" {self.seen(_room(state, run))}", ""),), run)
        self.show_hint()


def _room(bar: Bar, run: Line) -> int:
    """Cells of a bar that stand left of how the run is doing."""
    return bar.size.width - sum(len(text) for text, _ in run) - (3 if run else 2)
