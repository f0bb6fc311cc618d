"""A screen of pages, each opened in the background when it is first looked at: of a kernel, of files, of a comparison.

What pages there are, what the title says and what is special about a key is for the screens that are made of this one.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual.css.query import NoMatches

from tui_probe.ui import keys
from tui_probe.ui.opener import PageOpener
from tui_probe.ui.screens.view_screen import ViewScreen
from tui_probe.ui.seeker import WORST, Seeker
from tui_probe.ui.trail import Trail
from tui_probe.ui.views.document import DocumentView
from tui_probe.ui.views.message import MessageView, OpeningView
from tui_probe.ui.widgets.bars import NUMBERED, Bar, Tab, TabBar, fitting
from tui_probe.ui.widgets.pane import Pane

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from tui_probe.draw.spans import Line
    from tui_probe.probekit.kind import Source
    from tui_probe.ui.opening import Page
    from tui_probe.ui.views.view import View

INTERVAL = 0.25
FIRST = ("leave", "jump", "worst")
"""Keys that stand before those of the page in sight, in the line of keys."""
UNNAMED = (*FIRST, "interrupt")


class PagedScreen(ViewScreen):
    """``tabs`` are its pages, ``current`` the name of the one that was asked for last.

    ``known``: all pages are known; until then the first ``certain`` ones are, and a number beyond them waits.
    """

    BINDINGS = keys.bindings("pages", "drawing")
    SCOPES: ClassVar[tuple[str, ...]] = ()
    """Scopes of keys that this screen has besides those of all screens of pages."""
    NOWHERE = "this page has no lines to follow"
    """What Enter says on a page that leads nowhere."""

    def __init__(self, tabs: Sequence[Tab], current: str, *, known: bool, reading: str = "reading…") -> None:
        super().__init__()
        self.tabs, self.current = tabs, current
        self.known, self.certain = known, len(tabs)
        self.opener = PageOpener(self)
        self.trail = Trail()
        self.seeker = Seeker(self)
        self._view: View = MessageView(self, "nothing", reading)
        self._awaited: int | None = None
        """The number of a page that was asked for before it was known which page that is."""

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
        self.opener.give_up()

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

    @abstractmethod
    def leave(self) -> None:
        """There is nothing left to go back from: leave the screen."""

    @property
    def about(self) -> Source | None:
        """The launch whose worst place is looked for where the page in sight knows none; None for none."""
        return None

    def run_line(self) -> Line:
        """How the run is doing, at the right of what is seen of the page."""
        return ()

    def seen(self, cells: int) -> str:
        """What is seen of the page; where there is little room the last parts of it, which matter most."""
        return fitting(self._view.status(), cells)

    def look(self) -> None:
        """The clock: take in what happened meanwhile."""

    def jump_words(self, page: str) -> str:
        """The short word for Enter, where it leads to a page."""
        return page

    # -- what the pages ask for

    @property
    def view(self) -> View:
        """The page in sight."""
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

    def page_numbers(self) -> dict[str, int]:
        """The keys of pages, by name, as far as it is known which pages there are."""
        return {tab.id: number for number, tab in enumerate(self.tabs[:NUMBERED], 1)} if self.known else {}

    # -- what is shown

    def take_tabs(self, tabs: Sequence[Tab]) -> None:
        """All pages are known now."""
        self.tabs, self.known = tabs, True
        awaited, self._awaited = self._awaited, None
        if isinstance(self._view, DocumentView):
            self._view.number_pages(self.page_numbers())
        with suppress(NoMatches):  # what comes while the screen is taken down, widget by widget
            self.show_bars()
        if awaited is not None:
            self.action_number(awaited)

    def show_page(self) -> None:
        """Show the current page, and open it if that was not done."""
        self.opener.give_up()
        page = self.page(self.current)
        if page is None:
            self.host(MessageView(self, "nothing", "no kernel is selected"))
        elif self.current in self.opener.kept:
            self.arrive(self.opener.kept[self.current])
        else:
            self.opener.open(page, self._lasting)
            self.show_bars()

    @property
    def _lasting(self) -> View:
        """The page in sight, or the one that was before what says how far an opening is."""
        return self._view.before if isinstance(self._view, OpeningView) else self._view

    def arrive(self, view: View) -> None:
        """A page is open: show it, at the place that was jumped to."""
        self.host(view)
        self.trail.arrive(view)
        self.seeker.arrive(view)

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
        if not self.is_mounted:
            return
        title, state, run = self.query_one("#title", Bar), self.query_one("#state", Bar), self.run_line()
        title.show(*self.title_line(title.size.width))
        self.query_one(TabBar).show(self.current, None, focused=True, tabs=self.tabs)
        room = state.size.width - sum(len(text) for text, _ in run) - (3 if run else 2)
        state.show(((f" {self.seen(room)}", ""),), run)
        self.show_hint()

    def hints(self) -> list[keys.Key]:
        """How to leave and where to go from here, the keys of the page, then those of the screen."""
        commands = self._view.commands()
        own = {key.id: key for key in keys.in_scope("pages")}
        page = self._view.leads_to()
        first = [
            *([own["leave"]] if self.names(own["leave"]) else []),
            *([replace(own["jump"], footer=self.jump_words(page))] if page else []),
            *([own["worst"]] if self.applies(own["worst"]) else []),
        ]
        drawing = [key for key in keys.in_scope("drawing") if keys.command_of(key) in commands]
        rest = [key for key in keys.in_scope(*self.SCOPES, "pages", "app", "view") if key.id not in UNNAMED]
        return [*first, *drawing, *(key for key in rest if self.names(key))]

    def names(self, key: keys.Key) -> bool:
        """Is a key named in the line of keys, if there is room?"""
        return self._view.searches or key.id not in ("search", "filter")

    def applies(self, row: keys.Key) -> bool:
        """Does the page in sight know a worst place?"""
        return WORST in self._view.commands() if row.id == "worst" else super().applies(row)

    # -- keys

    def action_back(self) -> None:
        """Stop reading; end search and filter; go back on the way that jumps took; leave."""
        if self.opener.opening is not None:
            self.opener.give_up()
            stopped = MessageView(self, self.current, "stopped: Tab or the number of a page goes on")
            self.host(self._lasting if self._lasting.name == self.current else stopped)
        elif self._view.clear_search():
            return
        elif (page := self.trail.back()) is not None:
            self._go(page)
        else:
            self.leave()

    def action_jump(self) -> None:
        """To the page or the screen that knows more of what is at the cursor; going back returns to this one."""
        page, line, kernel = self._view.leads_to(), self._view.target(), self._view.opened()
        if kernel is not None:
            if problem := self.probe_app.live.open_kernel(*kernel):
                self.notice(problem)
        elif page and line is not None:
            self.jump_to(page, line)
        elif page == "kernel":
            self.notice("this line leads to no kernel of a trace")
        else:
            self.notice("nothing more is known of this place" if page else self.NOWHERE)

    def jump_to(self, page: str, line: int | None) -> None:
        """Show a page, at a line of ``pruned.ptx`` if that is given; going back returns to this one."""
        self.trail.leave(self._view, line)
        self._go(page)

    def _go(self, page: str) -> None:
        self.current, self._awaited = page, None
        self.show_page()

    def action_worst(self) -> None:
        """To the worst place of this page, or of the page that shows it."""
        self.seeker.go(self.about)

    def action_page(self, page: str) -> None:
        """Show a page by its name."""
        self.trail.clear()
        self._go(page)

    def action_number(self, number: int) -> None:
        """Show a page by its number."""
        if number > self.certain and not self.known:
            self._awaited = number
        elif number <= min(len(self.tabs), NUMBERED):
            self.action_page(self.tabs[number - 1].id)
        else:
            self.notice(f"there is no page {number}")

    def action_next_view(self, step: int) -> None:
        """The page beside this one."""
        names = [tab.id for tab in self.tabs]
        self.action_page(names[(names.index(self.current) + step) % len(names)])

    def action_command(self, command: str) -> None:
        """Give a command to the page."""
        if command in self._view.commands():
            self._view.command(command)
            self.show_bars()
        else:
            self.notice(f"this page has no such key ({keys.words_of(command)})")
