"""The screen of one kernel: pages about it and about one of its launches, each opened in the background."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.css.query import NoMatches

from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import width
from tui_probe.draw.view import Document
from tui_probe.pages.views import FIXED, kind_of
from tui_probe.ui import keys
from tui_probe.ui.launches import at_hand, has_several, launch_words, newer_result, next_launch, step_applies
from tui_probe.ui.opening import Nothing, Opening, pages_of
from tui_probe.ui.screens.view_screen import ViewScreen
from tui_probe.ui.seeker import Seeker
from tui_probe.ui.state_line import elapsed_line
from tui_probe.ui.trail import Trail
from tui_probe.ui.views.document import DocumentView
from tui_probe.ui.views.drawing import DrawingView
from tui_probe.ui.views.message import MessageView, OpeningView
from tui_probe.ui.widgets.bars import NUMBERED, Bar, Tab, TabBar, fitting
from tui_probe.ui.widgets.pane import Pane

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from tui_probe.draw.spans import Line
    from tui_probe.pages.kernel_row import KernelRow
    from tui_probe.probekit.kind import Kind, Source
    from tui_probe.ui.screens.live import LiveScreen
    from tui_probe.ui.views.view import View

INTERVAL = 0.25


def _tab(kind: Kind, source: Source, *, empty: bool) -> Tab:
    """The tab of a view, with the probe that opens it where it is empty and another run could."""
    probe = kind.probes[0] if empty and kind.probes and source.kernel.status == "probed" else ""
    return Tab(kind.name, kind.title, kind.short or kind.title, empty, probe)


class KernelScreen(ViewScreen):
    """Shows the kernel that is selected in the table of the live screen, in whose order it steps."""

    BINDINGS = keys.bindings("kernels", "kernel", "drawing")

    def __init__(self, live: LiveScreen, page: str = FIXED[0]) -> None:
        super().__init__()
        self.live = live
        self.current = page
        self.opening: Opening | None = None
        self.newer: Opening | None = None
        self.hosted: dict[str, View] = {}
        self.tabs = [Tab(kind.name, kind.title, kind.short or kind.title) for kind in map(kind_of, FIXED)]
        self._view: View = MessageView(self, "nothing", "reading…")
        self._of: Source | None = None
        self._at: Source | None = None
        """The same, with the launch that was the newest when it was shown if none was chosen."""
        self._row: KernelRow | None = None
        self._counted: Source | None = None
        """Whose pages ``tabs`` are; those of another kernel are in another order."""
        self._awaited: int | None = None
        """The number of a page that was asked for before it was known which page that is."""
        self.trail = Trail()
        self.seeker = Seeker(self)

    def compose(self) -> ComposeResult:
        """The kernel, its pages, the page, what is seen of it, hints."""
        yield Bar("bar", id="title")
        yield TabBar(self.tabs, id="tabs")
        yield Pane(self._view, id="page")
        yield Bar("bar", id="state")
        yield Bar(id="hint")

    def on_mount(self) -> None:
        """Open the page, and start the clock."""
        self.set_interval(INTERVAL, self.tick)
        self.show_kernel()

    def on_unmount(self) -> None:
        """Nobody waits for what is being opened."""
        self.give_up()

    @property
    def view(self) -> View:
        """The page in sight."""
        return self._view

    @property
    def page_tabs(self) -> Sequence[Tab]:
        """The pages that the palette offers."""
        return self.tabs

    def page_numbers(self) -> dict[str, int]:
        """The keys of pages, by view, as far as it is known which pages there are."""
        known = self.tabs if self._counted is self._of else []
        return {tab.id: number for number, tab in enumerate(known[:NUMBERED], 1)}

    # -- what is shown

    def show_kernel(self) -> None:
        """Show the page of the kernel or launch that is at hand now, at the place of the one before."""
        self.give_up()
        self._of, self._row = self.live.source(), self.live.table.kernel
        self._at = None if self._of is None else at_hand(self._of)
        self.hosted.clear()
        self.trail.clear()
        self._awaited = None
        if self._of is not None:
            self.tables.submit((self, "pages"), partial(pages_of, self._of), partial(self._take_pages, self._of))
        self.show_page()

    def _take_pages(self, source: Source, pages: list[Any]) -> None:
        if source is self._of:
            self.tabs = [_tab(kind, source, empty=not has) for kind, has in pages]
            self._counted, awaited, self._awaited = source, self._awaited, None
            if isinstance(self._view, DocumentView):
                self._view.number_pages(self.page_numbers())
            with suppress(NoMatches):  # what comes while the screen is taken down, widget by widget
                self.show_bars()
            if awaited is not None:
                self.action_number(awaited)

    def _of_all_launches(self) -> bool:
        """Is the page about all launches if none was chosen? Others are about one, and stay with it."""
        return self.current in FIXED or kind_of(self.current).grows

    def show_page(self) -> None:
        """Show the current page, and open it if that was not done."""
        self.give_up()
        source = self._of if self._of_all_launches() else self._at
        if source is None:
            self.host(MessageView(self, "nothing", "no kernel is selected"))
        elif self.current in self.hosted:
            self.host(self.hosted[self.current])
            self.trail.arrive(self._view)
            self.seeker.arrive(self._view)
        else:
            self.opening = opening = Opening(kind_of(self.current), source)
            self.analyses.submit((self, "open"), opening.run, partial(self._opened, opening))
            self.show_bars()

    def _opened(self, opening: Opening, result: Any) -> None:
        """Take what was opened, if it is still wanted."""
        if opening is not self.opening:
            return
        if result is None:
            self.opening = None
            return
        view = self._hosting(opening, result)
        before = self._view.before if isinstance(self._view, OpeningView) else self._view
        if isinstance(view, DocumentView | DrawingView) and before.name == view.name:
            view.resume(before)
        size = self.query_one("#page", Pane).size
        if isinstance(view, DrawingView) and size:
            # What was there stays until the drawing is ready: an empty page in between would be sent, too.
            view.when_ready = partial(self._take, opening, view)
            view.resize(*size)
        else:
            self._take(opening, view)

    def _take(self, opening: Opening, view: View) -> None:
        """Show what was opened."""
        if opening is self.opening:
            self.opening = None
            self.hosted[view.name] = view
            self.host(view)
            self.trail.arrive(view)
            self.seeker.arrive(view)

    def _hosting(self, opening: Opening, result: Any) -> View:
        name = opening.kind.name
        if isinstance(result, Nothing):
            return MessageView(self, name, result.text, "bad" if result.fault else "dim")
        if isinstance(result, Document):
            view = DocumentView(self, name, result, opening.source)
            view.number_pages(self.page_numbers())
            return view
        return DrawingView(self, name, result, opening.source, ascii_only=self.probe_app.ascii_only)

    def give_up(self) -> None:
        """Stop what is being opened."""
        for opening in (self.opening, self.newer):
            if opening is not None:
                opening.cancel()
        self.opening = self.newer = None

    def host(self, view: View) -> None:
        """Put a view into the pane."""
        self._view.focused, view.focused = False, True
        self._view = view
        if self.is_mounted:
            self.query_one("#page", Pane).host(view)
            self.show_bars()

    # -- the clock

    def tick(self) -> None:
        """Progress of what is opened, and what the target did meanwhile. Left out while the terminal lags behind."""
        if self.probe_app.screen is not self or self.probe_app.backed_up:
            return
        if self.opening is not None and not isinstance(self._view, OpeningView):
            self.host(OpeningView(self, self._view.name, self.opening, self._view))
        elif isinstance(self._view, OpeningView):
            self.redraw(self._view)
        row = self.live.table.kernel
        if row is not None and self._row is not None and row.index != self._row.index:
            self.show_kernel()  # the table lost the kernel that was shown
        elif row != self._row and kind_of(self.current).grows and self.opening is None and self.newer is None:
            self._read_again(row)
        self.show_bars()

    def _read_again(self, row: KernelRow | None) -> None:
        source = self.live.source()
        if source is None or self.live.paused:
            return
        self._row = row
        self.newer = newer = Opening(kind_of(self.current), source)
        self.analyses.submit((self, "newer"), newer.run, partial(self._take_newer, newer))

    def _take_newer(self, newer: Opening, result: Any) -> None:
        if newer is not self.newer:
            return
        self.newer = None
        if isinstance(result, Document) and isinstance(self._view, DocumentView):
            self._view.replace(result, newer.source)

    # -- the lines around the page

    def show_bars(self) -> None:
        """The kernel, the pages, the state, hints."""
        if not self.is_mounted:
            return
        snapshot = self.live.snapshot
        title = self.query_one("#title", Bar)
        title.show(*self._title(title.size.width))
        self.query_one(TabBar).show(self.current, None, focused=True, tabs=self.tabs)
        state = self.query_one("#state", Bar)
        run: Line = (*elapsed_line(snapshot, time.time()), (" [simulated]" if snapshot.simulated else "", "simulated"))
        room = state.size.width - sum(len(text) for text, _ in run) - 3
        state.show(((f" {fitting(self._view.status(), room)}", ""),), run)
        self.show_hint()

    def _title(self, cells: int) -> tuple[Line, Line]:
        source = self._at
        if source is None:
            return ((" no kernel", "title"),), ()
        kernel = source.kernel
        newer = f", {keys.shown(_next_launch().keys[0])} newer" if self._has_newer() else ""
        room = cells - len(kernel.status) - len(newer) - 10
        words = launch_words(source)
        if width(kernel.demangled) + width(words) > room:
            words = launch_words(source, brief=True)
        right: Line = ((words, "dim"), (newer, "accent"), ("  ", ""), (kernel.status, kernel.status))
        name = shorten(kernel.demangled, max(10, room - width(words)))
        return ((f" #{kernel.index} ", "dim"), (name, "title")), right

    def hints(self) -> list[keys.Key]:
        """The keys of the page, then those of the screen."""
        commands = self._view.commands()
        drawing = [key for key in keys.in_scope("drawing") if keys.command_of(key) in commands]
        own = [key for key in keys.in_scope("kernel") if key.id == "leave"]
        if page := self._view.leads_to():
            own += [replace(key, footer=kind_of(page).title) for key in keys.in_scope("kernel") if key.id == "jump"]
        own += [key for key in keys.in_scope("kernel") if key.id == "worst" and self.applies(key)]
        without = ("leave", "jump", "worst", "interrupt")
        rest = [key for key in keys.in_scope("kernels", "kernel", "app", "view") if key.id not in without]
        steps, searches = has_several(self._of), self._view.searches
        left_out = {"next_launch": not steps, "search": not searches, "filter": not searches}
        return [*own, *drawing, *(key for key in rest if not left_out.get(key.id))]

    # -- keys

    def action_back(self) -> None:
        """Stop reading; end search and filter; leave."""
        if self.opening is not None:
            self.give_up()
            before = self._view.before if isinstance(self._view, OpeningView) else self._view
            stopped = MessageView(self, self.current, "stopped: Tab or the number of a page goes on")
            self.host(before if before.name == self.current else stopped)
        elif self._view.clear_search():
            return
        elif (page := self.trail.back()) is not None:
            self.current, self._awaited = page, None
            self.show_page()
        else:
            self.app.pop_screen()

    def action_jump(self) -> None:
        """To the page that knows more of the line of PTX at the cursor; going back returns to this one."""
        page, line = self._view.leads_to(), self._view.target()
        if page and line is not None:
            self.jump_to(page, line)
        else:
            self.notice("nothing more is known of this place" if page else "this page has no lines to follow")

    def jump_to(self, page: str, line: int | None) -> None:
        """Show a page, at a line of ``pruned.ptx`` if that is given; going back returns to this one."""
        self.trail.leave(self._view, line)
        self.current, self._awaited = page, None
        self.show_page()

    def action_worst(self) -> None:
        """To the worst place of this page, or of the page that shows it."""
        self.seeker.go(self._at)

    def action_page(self, page: str) -> None:
        """Show a page by its name."""
        self.trail.clear()
        self.current, self._awaited = page, None
        self.show_page()

    def action_number(self, number: int) -> None:
        """Show a page by its number."""
        if number > len(FIXED) and self._counted is not self._of:
            self._awaited = number
        elif number <= min(len(self.tabs), NUMBERED):
            self.action_page(self.tabs[number - 1].id)
        else:
            self.notice(f"there is no page {number}")

    def action_next_view(self, step: int) -> None:
        """The page beside this one."""
        names = [tab.id for tab in self.tabs]
        self.action_page(names[(names.index(self.current) + step) % len(names)])

    def action_step_kernel(self, step: int) -> None:
        """Previous or next kernel; page and place stay."""
        before = self.live.table.selected
        self.live.table.step(step)
        if self.live.table.selected == before:
            self.notice("this is the last kernel" if step > 0 else "this is the first kernel")
        else:
            self.show_kernel()

    def action_step_launch(self, step: int) -> None:
        """Previous or next launch; page and place stay."""
        source = self._at
        if source is None:
            return
        if step > 0 and self._has_newer():
            self.show_kernel()
            return
        found = next_launch(source, step)
        if found is None:
            self.notice("no later launch has a result" if step > 0 else "no earlier launch has a result")
            return
        self.live.take_launch(source, found)
        self.show_kernel()

    def _has_newer(self) -> bool:
        """Was the newest launch asked for, and is there a newer one than what is shown?"""
        of, at = self._of, self._at
        return of is not None and at is not None and of.launch is None and newer_result(at)

    def applies(self, row: keys.Key) -> bool:
        """There may be no other kernel or launch to step to, and nothing that was measured."""
        if row.id == "worst":
            return self._at is not None and self._at.kernel.status == "probed" and bool(self._at.kernel.result_rows)
        if row.id == "next_launch" and self._has_newer():
            return super().applies(row)
        return step_applies(row, self._at, self.live.table) and super().applies(row)

    def action_compare(self) -> None:
        """Mark the kernel at hand, or compare it with the one that was marked."""
        source = self._of
        if source is None:
            self.notice("no kernel is selected")
        else:
            self.probe_app.compare(source)

    def action_command(self, command: str) -> None:
        """Give a command to the page."""
        if command in self._view.commands():
            self._view.command(command)
            self.show_bars()
        else:
            self.notice(f"this page has no such key ({keys.words_of(command)})")


def _next_launch() -> keys.Key:
    return next(key for key in keys.in_scope("kernels") if key.id == "next_launch")
