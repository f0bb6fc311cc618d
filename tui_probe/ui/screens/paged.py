"""Base of screens of pages: each page is opened in the background on first use; keys that all such screens share.

A subclass says which pages there are, what the title says, and which keys differ.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual.css.query import NoMatches

from tui_probe.draw.spans import width
from tui_probe.draw.view import Spot
from tui_probe.ui import keys
from tui_probe.ui.early_keys import LEAVING_KEY_IDS, PAGE_KEY_IDS, EarlyKeys
from tui_probe.ui.screens.further_pages import LetterScreen, further_pages
from tui_probe.ui.screens.jumps import HOTSPOT, HotspotJump, JumpHistory
from tui_probe.ui.screens.page_opening import MessageView, PageOpener, underlying_view
from tui_probe.ui.screens.view_screen import SORT_OR_ZOOM, ViewScreen
from tui_probe.ui.session import BETWEEN_HINT
from tui_probe.ui.views.document_view import MARK, DocumentView
from tui_probe.ui.widgets.pane import Bar, FrameEdge, Pane, Tab, TabBar, fit_parts, keys_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.app import ComposeResult

    from tui_probe.draw.spans import Line
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.ui.screens.page_opening import PageSpec
    from tui_probe.ui.views.view import PaneView

INTERVAL = 0.25
"""Seconds between redraws of the progress of an opening: short enough for it to seem steady."""
LEADING_KEYS = ("leave", "jump", "worst")
"""Keys that are before those of the current page, in the line of keys."""
_ORDERS = ("order", "order_back", "reverse")
"""Commands that are not named next to that key, which does the same."""
UNHINTED_KEYS = (*LEADING_KEYS, "interrupt")


class PagedScreen(ViewScreen):
    """Goes from page to page, and remembers the way that jumps took.

    ``tabs`` are its pages, ``current`` the name of the last requested one. ``tabs_known``: all pages are known.
    """

    BINDINGS = keys.bindings("tabs", "pages", "drawing")
    SCOPES: ClassVar[tuple[str, ...]] = ()
    """Scopes of keys that this screen has besides those of all screens of pages."""
    NO_TARGET_TEXT = "this page has no lines to follow"
    """Message of Enter on a page without targets."""

    def __init__(self, tabs: Sequence[Tab], current: str, *, tabs_known: bool, reading: str = "reading…") -> None:
        super().__init__()
        self.tabs, self.current = tabs, current
        self.tabs_known = tabs_known
        self.opener = PageOpener(self)
        self.early_keys = EarlyKeys(self, lambda: self.opener.opening is not None, PAGE_KEY_IDS, LEAVING_KEY_IDS)
        self._view: PaneView = MessageView(self, "nothing", reading)
        self.held_back = True
        """The screen before stays until the page and its tabs are there: an empty screen would be sent, too."""
        self._bars_due = False
        """True if the lines around the page are drawn when the present message is handled."""
        self.jump_history = JumpHistory()
        self.hotspot_jump = HotspotJump(self)
        self.spot = Spot()
        """Position in the launch, from the pages that were left."""
        self.part: object = None
        """Line of source to which pages are restricted that can be, until ``q``; None: they show all."""
        self._menu: LetterScreen | None = None
        """The list of further pages, while it waits until they are known."""

    def compose(self) -> ComposeResult:
        """Yield the title, page tabs, page, its visible part and hints."""
        yield Bar("bar", id="title")
        yield TabBar(self.tabs, id="tabs")
        yield Pane(self._view, id="page")
        yield FrameEdge("bottom", id="state")
        yield Bar(id="hint")

    def on_mount(self) -> None:
        """Open the page, and start the clock."""
        self.set_interval(INTERVAL, self.tick)
        self.begin()

    def on_resize(self, event: events.Resize) -> None:
        """Name as many keys as fit."""
        super().on_resize(event)
        self.show_bars()

    def on_unmount(self) -> None:
        """Cancel an opening."""
        self.opener.close()

    # -- what the screens say

    def begin(self) -> None:
        """Find out what pages there are, and show the first. Called once there is a terminal."""
        self.show_page()

    @abstractmethod
    def page(self, name: str) -> PageSpec | None:
        """A page that can be opened; None if there is nothing at hand that it could be about."""

    @abstractmethod
    def leave(self) -> None:
        """Leave the screen, when there is nothing left to go back from."""

    @property
    def shown_source(self) -> ViewSource | None:
        """The launch whose worst place is looked for where the current page knows none; None for none."""
        return None

    def jump_text(self, page: str) -> str:
        """Return the word for Enter where it opens a page, for the line of keys."""
        return page

    def jump_label(self) -> str:
        """Return the word for Enter on the current page; "" if it opens nothing."""
        page = self._view.target_view()
        return self.jump_text(page) if page else ""

    @abstractmethod
    def title_line(self, cells: int) -> tuple[Line, Line]:
        """Return the left and right text of the first line."""

    def run_line(self, *, brief: bool = False) -> Line:
        """Return the state of the run, next to the page; ``brief``: only whether it is simulated."""
        del brief
        return ()

    def status_text(self, cells: int) -> str:
        """Describe the visible part of the page, without the state of the run, as ``[simulated]``.

        Where there is little room, what it is about and the last parts, which matter most.
        """
        run_text = "".join(text for text, _ in self.run_line())
        return fit_parts(
            [part for part in self._view.status() if f"[{part}]" not in run_text], cells, self._view.pinned_parts()
        )

    def update(self) -> None:
        """Take over changes of the run. Called once per ``INTERVAL``."""

    # -- what the pages ask for

    @property
    def view(self) -> PaneView:
        """The current page."""
        return self._view

    @property
    def is_empty(self) -> bool:
        """True if the current page has a message in place of its content."""
        return isinstance(underlying_view(self._view), MessageView)

    @property
    def page_tabs(self) -> Sequence[Tab]:
        """The pages that the palette offers."""
        return self.tabs

    @property
    def ascii_only(self) -> bool:
        """True if only ASCII characters are drawn."""
        return self.probe_app.ascii_only

    @property
    def window(self) -> tuple[int, int]:
        """Columns and rows for a page."""
        return self.query_one("#page", Pane).inner

    def page_keys(self) -> dict[str, str]:
        """Return the keys of pages, by name, for the pages known so far."""
        return keys_of(self.tabs) if self.tabs_known else {}

    # -- what is shown

    def take_tabs(self, tabs: Sequence[Tab]) -> None:
        """All pages are known now, so the list of further pages is, too."""
        self.tabs, self.tabs_known = tabs, True
        if isinstance(self._view, DocumentView):
            self._view.name_keys(self.page_keys())
        self.show_bars()
        self._show_complete()
        menu, self._menu = self._menu, None
        if menu is not None and not menu.was_closed:
            menu.take(further_pages(self.tabs))

    def show_page(self) -> None:
        """Show the current page, and open it if that was not done."""
        self.opener.cancel()
        page = self.page(self.current)
        if page is None:
            self.host(MessageView(self, "nothing", "no kernel is selected"))
        elif self.current in self.opener.views:
            self.arrive(self.opener.views[self.current])
        else:
            self.opener.open(page, underlying_view(self._view))
            self.show_bars()

    def arrive(self, view: PaneView) -> None:
        """Show a page that has been opened, at the place that was jumped to."""
        self.host(view)
        view.select_part(self.part)
        self.jump_history.arrive(view, self.spot)
        self.hotspot_jump.arrive(view)
        self.early_keys.release()

    def host(self, view: PaneView) -> None:
        """Put a view into the pane."""
        self._view.focused, view.focused = False, True
        self._view = view
        if self.is_mounted:
            self.query_one("#page", Pane).host(view)
            self.show_bars()
            self._show_complete()

    def _show_complete(self) -> None:
        if self.tabs_known and self.opener.opening is None:
            self.show_whole()

    def show_whole(self) -> None:
        """Draw the lines around the page with the first frame."""
        if self.held_back:
            super().show_whole()
            self.show_bars()

    def tick(self) -> None:
        """Draw the progress of an opening, and changes of the run. Left out while the terminal lags behind."""
        if self.probe_app.screen is not self or self.probe_app.is_backed_up:
            return
        if self.opener.update(self._view):
            self.show_whole()
        self.update()
        self._draw_bars()

    def show_bars(self) -> None:
        """Draw title, page tabs, state and hints, once for all that a key or a result changes."""
        if not self.held_back and not self._bars_due:
            self._bars_due = True
            self.call_next(self._draw_bars)

    def _draw_bars(self) -> None:
        self._bars_due = False
        with suppress(NoMatches):  # what comes while the screen is taken down, widget by widget
            self._show_bars()

    def _show_bars(self) -> None:
        title, state, run_state = self.query_one("#title", Bar), self.query_one("#state", FrameEdge), self.run_line()
        title.show(*self.title_line(title.size.width))
        self.query_one(TabBar).show_tabs(self.tabs, self.current, (), focused=False)
        if self._view.pinned_parts() and width(" · ".join(self._view.status())) > _room(state, run_state):
            run_state = self.run_line(brief=True)
        status = self.status_text(_room(state, run_state))
        state.show(((f" {status} ", ""),) if status else (), (*run_state, (" ", "")) if run_state else ())
        self.show_hint()

    def hints(self) -> list[keys.Key]:
        """Return the keys that leave and lead on, the keys of the page, then those of the screen."""
        commands = set(self._view.commands())
        if self._sorts:
            commands.difference_update(_ORDERS)  # one key for the order of tables
        drawing = [key for key in keys.in_scope("drawing") if keys.command_of(key) in commands]
        sort = [key for key in keys.in_scope("table") if key.id == "sort" and self._sorts]
        of_screen = keys.in_scope(*self.SCOPES, "pages", "app", "view", "tabs")
        hinted = [key for key in of_screen if key.id not in UNHINTED_KEYS and self.is_hinted(key)]
        probe = [key for key in hinted if key.id == "probe"]  # hinted only at a line of the probe, so it comes early
        screen_keys = [key for key in hinted if key.id != "probe"]
        return [*self._leading_hints(), *probe, *drawing, *sort, *screen_keys]

    def _leading_hints(self) -> list[keys.Key]:
        """Return those of ``LEADING_KEYS`` that act now; Enter with the word for what it opens."""
        leave, jump, worst = (
            next(key for key in keys.in_scope("pages") if key.id == key_id) for key_id in LEADING_KEYS
        )
        hints = [leave] if self.is_hinted(leave) else []
        if label := self.jump_label():
            hints.append(replace(jump, footer=label))
        if self.applies(worst):
            hints.append(worst)
        return hints

    @property
    def _sorts(self) -> bool:
        """Return whether the sort key sorts here, and does not zoom."""
        return bool(self._view.sortable()) and SORT_OR_ZOOM not in self._view.commands()

    def is_hinted(self, key: keys.Key) -> bool:
        """Return whether the line of keys names a key, if there is room."""
        if key.id == "search":
            return self._view.searches
        if key.id == "filter":
            return self._view.filters
        return key.id not in ("again", "probe", "previous_page", "page_0")

    def applies(self, row: keys.Key) -> bool:
        """Return whether a key does something; for the hotspot key, whether the page has one."""
        return HOTSPOT in self._view.commands() if row.id == "worst" else super().applies(row)

    # -- keys

    def on_key(self, event: events.Key) -> None:
        """Handle a key; hold one for the page that is being read."""
        if self.early_keys.hold(event, has_keys=self.prompt is None):
            event.stop()
            event.prevent_default()
        else:
            self.take_key(event)

    def action_back(self) -> None:
        """Stop reading; end search and filter; go back on the way that jumps took; leave."""
        if self.opener.opening is not None:
            self._stop_reading(self.opener.opening.page.title)
        elif self._view.clear_search():
            return
        elif (left_page := self.jump_history.pop_page()) is not None:
            self.part = left_page.part
            self._go(left_page.name)
        elif self.part is not None:
            self.part = None
            self._view.select_part(None)
            self.notice("all rows are shown again")
            self.show_bars()
        else:
            self.leave()

    def _stop_reading(self, title: str) -> None:
        """Return to the page from which the one that is being read was opened."""
        self.opener.cancel()
        left_page, page = self.jump_history.pop_page(), underlying_view(self._view).name
        if left_page is not None:
            page, self.part = left_page.name, left_page.part
        if page in self.opener.views:
            self._go(page)
            self.notice(f"stopped reading {title}")
        else:
            self.host(MessageView(self, self.current, "stopped: press the key of a page to open it"))

    def action_jump(self) -> None:
        """Open the page or screen with more details of what is at the cursor; going back returns to this one."""
        page, spot, kernel = self._view.target_view(), self._view.target(), self._view.kernel_target()
        if (page_and_part := self._view.part_at_cursor()) is not None:
            self.jump_history.leave(self._view, None, self.part)
            page_of_part, self.part = page_and_part
            self._go(page_of_part)
        elif kernel is not None:
            if problem := self.probe_app.live.open_kernel(*kernel):
                self.notice(problem)
        elif page and spot is not None:
            self.jump_to(page, spot)
        elif page == "kernel":
            self.notice("this line does not open a kernel")
        else:
            self.notice(self._view.no_target_reason() or ("this line has no details" if page else self.NO_TARGET_TEXT))

    def jump_to(self, page: str, spot: Spot | None) -> None:
        """Show a page, at a place if one is given; going back returns to this one."""
        self.jump_history.leave(self._view, spot, self.part)
        self._go(page)

    def _go(self, page: str) -> None:
        self.spot = self._view.spot().completed_from(self.spot)
        self.current = page
        self.show_page()

    def action_again(self) -> None:
        """Say that no program can be run again: only the screen of a kernel knows one."""
        self.notice("these files do not name a program to run")

    def action_worst(self) -> None:
        """Go to the hotspot of this page, or of the page that shows it."""
        self.hotspot_jump.go(self.shown_source)

    def action_page(self, page: str) -> None:
        """Show a page by its name."""
        self.jump_history.clear()
        self._go(page)

    def action_digit(self, digit: int) -> None:
        """Show the page of a digit."""
        tab = next((tab for tab in self.tabs if tab.key == str(digit)), None)
        if tab is None:
            self.notice(f"this screen has no page {digit}: press > for the next page, 0 for a list")
        else:
            self.action_page(tab.id)

    def action_more_pages(self) -> None:
        """List further pages, each with its letter."""
        if self.tabs_known and not any(tab.is_further for tab in self.tabs):
            self.notice("this screen has no other pages")
            return
        menu = LetterScreen("Pages", further_pages(self.tabs) if self.tabs_known else None)
        self._menu = None if self.tabs_known else menu
        self.app.push_screen(menu, self._take_page)

    def _take_page(self, name: str | None) -> None:
        if name is not None:
            self.action_page(name)

    def action_next_pane(self) -> None:
        """Show the notice that there is one panel."""
        self.notice(f"this screen has one panel; press {keys.key_of('next_page')} for the next page")

    def action_next_page(self, step: int) -> None:
        """Show the next (1) or previous (-1) page of those that have content."""
        names = [tab.id for tab in self.tabs if not tab.is_empty or tab.id == self.current]
        self.action_page(names[(names.index(self.current) + step) % len(names)])

    def action_command(self, command: str) -> None:
        """Give a command to the page. Where nothing can be zoomed, ``s`` sorts, as in the kernel table."""
        commands = self._view.commands()
        if command == SORT_OR_ZOOM and command not in commands:
            self.action_choose_order()
        elif command in commands:
            self._view.command(command)
            self.show_bars()
        elif command == MARK and isinstance(self._view, DocumentView):
            self.notice(BETWEEN_HINT)
        else:
            self.notice(keys.unused_command_text(command))


def _room(edge: FrameEdge, run_state: Line) -> int:
    """Cells of a line that are left of the state of the run."""
    return edge.room - sum(len(text) for text, _ in run_state) - (5 if run_state else 2)
