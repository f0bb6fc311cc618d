"""A screen of pages: of a kernel, of imported files, of a comparison. Here is what keys do on all of them.

What pages there are, what the title says and what is special about a key is for the screens that are made of this one.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from tui_probe.draw.spot import Spot
from tui_probe.ui import keys
from tui_probe.ui.between import HOW
from tui_probe.ui.screens.paged_frame import PagedFrame
from tui_probe.ui.seeker import WORST, Seeker
from tui_probe.ui.trail import Trail
from tui_probe.ui.views.document import MARK, DocumentView
from tui_probe.ui.views.message import MessageView
from tui_probe.ui.widgets.bars import NUMBERED, Tab, numbers_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.probekit.kind import Source
    from tui_probe.ui.views.view import View

FIRST = ("leave", "jump", "probe", "worst")
"""Keys that stand before those of the current page, in the line of keys."""
_SORTS = {"zoom_out": "order", "zoom_out_rows": "order_back"}
"""What ``s`` and ``S`` do on a page that has an order."""
UNNAMED = (*FIRST, "interrupt")


class PagedScreen(PagedFrame):
    """Goes from page to page, and remembers the way that jumps took."""

    BINDINGS = keys.bindings("pages", "drawing")
    SCOPES: ClassVar[tuple[str, ...]] = ()
    """Scopes of keys that this screen has besides those of all screens of pages."""
    NOWHERE = "this page has no lines to follow"
    """What Enter says on a page that leads nowhere."""

    def __init__(self, tabs: Sequence[Tab], current: str, *, known: bool, reading: str = "reading…") -> None:
        super().__init__(tabs, current, known=known, reading=reading)
        self.trail = Trail()
        self.seeker = Seeker(self)
        self.spot = Spot()
        """Where in the launch one is, as the pages that were left told."""
        self.only: object = None
        """What alone is shown on every page that can, until ``q`` ends it; None for all."""
        self._awaited: int | None = None
        """The number of a page that was asked for before it was known which page that is."""

    # -- what the screens say

    @abstractmethod
    def leave(self) -> None:
        """There is nothing left to go back from: leave the screen."""

    @property
    def about(self) -> Source | None:
        """The launch whose worst place is looked for where the current page knows none; None for none."""
        return None

    def jump_words(self, page: str) -> str:
        """The short word for Enter, where it leads to a page."""
        return page

    # -- what is shown

    def take_tabs(self, tabs: Sequence[Tab]) -> None:
        """All pages are known now: also the one that was asked for by a number."""
        super().take_tabs(tabs)
        awaited, self._awaited = self._awaited, None
        if awaited is not None and not self.opener.closed:
            self.action_number(awaited)

    def arrive(self, view: View) -> None:
        """At the place that was jumped to."""
        super().arrive(view)
        view.narrow(self.only)
        self.trail.arrive(view, self.spot)
        self.seeker.arrive(view)

    def hints(self) -> list[keys.Key]:
        """How to leave and where to go from here, the keys of the page, then those of the screen."""
        commands = self._view.commands()
        own = {key.id: key for key in keys.in_scope("pages")}
        page = self._view.leads_to()
        first = [
            *([own["leave"]] if self.names(own["leave"]) else []),
            *([replace(own["jump"], footer=self.jump_words(page))] if page else []),
            *([own["probe"]] if self.names(own["probe"]) else []),
            *([own["worst"]] if self.applies(own["worst"]) else []),
        ]
        drawing = [key for key in keys.in_scope("drawing") if keys.command_of(key) in commands]
        rest = [key for key in keys.in_scope(*self.SCOPES, "pages", "app", "view") if key.id not in UNNAMED]
        return [*first, *drawing, *(key for key in rest if self.names(key))]

    def names(self, key: keys.Key) -> bool:
        """Is a key named in the line of keys, if there is room?"""
        if key.id in ("search", "filter"):
            return self._view.searches if key.id == "search" else self._view.filters
        return key.id not in ("again", "probe")

    def applies(self, row: keys.Key) -> bool:
        """Does the current page know a worst place?"""
        return WORST in self._view.commands() if row.id == "worst" else super().applies(row)

    # -- keys

    def action_back(self) -> None:
        """Stop reading; end search and filter; go back on the way that jumps took; leave."""
        if self.opener.opening is not None:
            self.opener.give_up()
            stopped = MessageView(self, self.current, "stopped: Tab or the number of a page starts again")
            self.host(self.lasting if self.lasting.name == self.current else stopped)
        elif self._view.clear_search():
            return
        elif (before := self.trail.back()) is not None:
            page, self.only = before
            self._go(page)
        elif self.only is not None:
            self.only = None
            self._view.narrow(None)
            self.notice("all is shown again")
            self.show_bars()
        else:
            self.leave()

    def action_jump(self) -> None:
        """To the page or the screen that knows more of what is at the cursor; going back returns to this one."""
        page, spot, kernel = self._view.leads_to(), self._view.target(), self._view.opened()
        if (narrowed := self._view.narrowed()) is not None:
            self.trail.leave(self._view, None, self.only)
            self.only = narrowed[1]
            self._go(narrowed[0])
        elif kernel is not None:
            if problem := self.probe_app.live.open_kernel(*kernel):
                self.notice(problem)
        elif page and spot is not None:
            self.jump_to(page, spot)
        elif page == "kernel":
            self.notice("this line leads to no kernel of a trace")
        else:
            self.notice(self._view.nowhere() or ("nothing more is known of this place" if page else self.NOWHERE))

    def jump_to(self, page: str, spot: Spot | None) -> None:
        """Show a page, at a place if one is given; going back returns to this one."""
        self.trail.leave(self._view, spot, self.only)
        self._go(page)

    def _go(self, page: str) -> None:
        self.spot = self._view.here().over(self.spot)
        self.current, self._awaited = page, None
        self.show_page()

    def action_probe(self) -> None:
        """Only pages of a kernel come from a probe."""
        self.notice("p is for the screen of a kernel: it shows the probe's own file")

    def action_again(self) -> None:
        """Only a kernel's screen knows what ran."""
        self.notice("R is for the screens of a run and of its kernels")

    def action_worst(self) -> None:
        """To the worst place of this page, or of the page that shows it."""
        self.seeker.go(self.about)

    def action_page(self, page: str) -> None:
        """Show a page by its name."""
        self.trail.clear()
        self._go(page)

    def action_number(self, number: int) -> None:
        """Show the page of a number; of several with one number the first, then the next."""
        pages = [name for name, own in numbers_of(self.tabs).items() if own == number]
        if number > self.certain and not self.known:
            self._awaited = number
        elif pages:
            at = pages.index(self.current) + 1 if self.current in pages else 0
            self.action_page(pages[at % len(pages)])
        else:
            self.notice(f"there is no page {number % NUMBERED}: Tab goes from page to page")

    def action_next_view(self, step: int) -> None:
        """The page beside this one."""
        names = [tab.id for tab in self.tabs]
        self.action_page(names[(names.index(self.current) + step) % len(names)])

    def action_command(self, command: str) -> None:
        """Give a command to the page. Where nothing can be zoomed, the keys for that sort, as in the kernel table."""
        commands = self._view.commands()
        command = command if command in commands else _SORTS.get(command, command)
        if command in commands:
            self._view.command(command)
            self.show_bars()
        elif command == MARK and isinstance(self._view, DocumentView):
            self.notice(HOW)
        else:
            self.notice(f"this page has no such key ({keys.words_of(command)})")
