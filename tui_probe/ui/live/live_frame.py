"""Frame of the live screen: the kernel table and a page, with the lines around them."""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import TYPE_CHECKING

from textual.containers import Container

from tui_probe.draw.spans import plain
from tui_probe.trace.user_state import last_view
from tui_probe.ui.early_keys import EarlyKeys
from tui_probe.ui.layout import arrangement
from tui_probe.ui.live.current_selection import CurrentSelection, InitialSelection
from tui_probe.ui.live.kernel_table import KernelTable, names_of
from tui_probe.ui.live.live_pages import TABS, LivePages
from tui_probe.ui.live.preview import Preview
from tui_probe.ui.live.processes import ProcessSwitch
from tui_probe.ui.live.results import KernelFindings
from tui_probe.ui.live.state_line import (
    KernelFilterWarning,
    PreviousRunHint,
    elapsed_line,
    state_line,
    why_empty,
    words_at_end,
)
from tui_probe.ui.screens.view_screen import ViewScreen
from tui_probe.ui.widgets.bars import Bar, Rule, TabBar, fitting
from tui_probe.ui.widgets.lines import Pane

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.app import ComposeResult

    from tui_probe.draw.spans import Line
    from tui_probe.ui.layout import Arrangement
    from tui_probe.ui.live.feed import ProcessView, Snapshot
    from tui_probe.ui.requests import SameKernel
    from tui_probe.ui.views.view import PaneView
    from tui_probe.ui.widgets.bars import Tab

INTERVAL = 0.5


class LiveFrame(ViewScreen):
    """Shows the feed's newest snapshot twice a second, in a table and a page, with a line of each kind around them."""

    def __init__(self, *, ascii_only: bool = False) -> None:
        super().__init__()
        self.beats = 0
        self.skipped_frames = 0
        self.zoomed = False
        self.in_table = True
        self.table = KernelTable(self, "kernels", self.show_kernel)
        self.table.focused = True
        self._findings = KernelFindings(self, lambda process, words: self.probe_app.feed.tell(process, words))
        self.pages = LivePages(self, self._findings.found_in, ascii_only=ascii_only)
        self.preview = Preview(self, "preview", self._findings.found_in, ascii_only=ascii_only)
        self.current_selection = CurrentSelection(self.table)
        self.switch = ProcessSwitch(self, self.current_selection, self._take_again)
        self._division: Arrangement | None = None
        self._beginning: InitialSelection | None = None
        self._resumed = False
        self._filter_warning = KernelFilterWarning()
        self._previous_run = PreviousRunHint(self)
        self._same: SameKernel | None = None
        """The kernel from which this run was asked for, until it is there or somebody chooses one."""
        self.early_keys = EarlyKeys(self, lambda: not self.current_selection.snapshot.loaded or self.table.waits)

    def compose(self) -> ComposeResult:
        """A table and a page, with a line of each kind around them."""
        with Container(id="top"):
            yield Bar("bar", id="title")
            yield Bar("bar", id="place")
        with Container(id="body"):
            with Container(id="left"):
                yield Pane(self.table, id="table")
                yield Pane(self.preview, id="preview")
            yield Rule(id="rule")
            with Container(id="right"):
                yield TabBar(TABS, one_of_several=True, id="tabs")
                yield Pane(self.pages.shown, id="page")
        yield Bar("bar", id="state")
        yield Bar(id="hint")

    def on_mount(self) -> None:
        """Start the one clock of this screen."""
        if self.probe_app.session.target is not None:
            self._same = self.probe_app.session.begin
        self._divide(*self.app.size)
        self.set_interval(INTERVAL, self.beat)

    @property
    def current(self) -> str:
        """The name of the page that is shown."""
        return self.pages.current

    @property
    def view(self) -> PaneView:
        """The pane that has the keys."""
        return self.table if self.in_table else self.pages.shown

    @property
    def process(self) -> ProcessView | None:
        """The process that is shown."""
        return self.current_selection.process

    def whole_names(self) -> Sequence[str]:
        """Return the selection of the page, else the selected kernel."""
        kernel = self.table.kernel
        return super().whole_names() or ([] if kernel is None else names_of(kernel))

    @property
    def preview_pane(self) -> Pane:
        """Return the pane with the preview of the selected kernel."""
        return self.query_one("#preview", Pane)

    @property
    def page_tabs(self) -> Sequence[Tab]:
        """The pages that there are."""
        return self.pages.tabs(self.process)

    # -- the clock

    def beat(self) -> None:
        """The clock: a frame, but only every second time if the link is slow."""
        self.beats += 1
        if self.beats % 2 == 0 or not self.probe_app.low_bandwidth:
            self.tick()

    def tick(self) -> None:
        """A data frame: what changed since the last one. Left out while the terminal lags behind."""
        app = self.probe_app
        if app.feed.failure is not None:
            raise app.feed.failure
        if app.backed_up:
            self.skipped_frames += 1
            return
        if not self.current_selection.paused:
            self.take(app.feed.latest)
        app.withdraw_question()
        self.show_bars()

    def take(self, snapshot: Snapshot) -> None:
        """Show a snapshot, and let the current page read what is new."""
        if self.probe_app.session.watching and (words := words_at_end(self.current_selection.snapshot, snapshot)):
            self.notice(words)
        self.current_selection.snapshot = snapshot
        process = self.process
        self.table.show(process.kernels if process else (), timed=snapshot.benchmark)
        self.table.say_empty(process.problem if process and process.problem else why_empty(snapshot))
        self._previous_run.look(snapshot, process)
        if words := self._filter_warning.look(snapshot, time.monotonic()):
            self._say(words)
        if arrangement(*self.size, len(process.kernels) if process else None) != self._division:
            self._divide(*self.size)
        self._begin()
        self.early_keys.release()
        self.pages.take(snapshot, process, self.probe_app.gpu.latest)
        self._findings.look(process, running=snapshot.running)
        self.preview.speaks = self.pages.shown is not self.pages.kernel_page
        self.preview.look(process, self.table.kernel, running=snapshot.running)

    def _begin(self) -> None:
        """Go where the command line says, as soon as that is there."""
        self._resume()
        self._go_to_same()
        self._beginning = self._beginning or InitialSelection(self.probe_app.session.at)
        selection = self._beginning.look(self.current_selection)
        if isinstance(selection, str):
            self.notice(selection)
        elif selection is not None:
            self.table.select(selection.kernel.index)
            self.current_selection.keep_launch(selection)
            self.show_screen_of_kernel()
        session = self.probe_app.session
        if self._resumed and session.notice:
            self.call_later(self._say, session.notice)
            session.notice = ""

    def _say(self, words: str) -> None:
        """On the screen in front, which may have been opened just now."""
        (self.app.screen if isinstance(self.app.screen, ViewScreen) else self).notice(words)

    def _resume(self) -> None:
        """Go where the user was when this trace was left, unless it is being made, or a place was named, or chosen."""
        snapshot, process, at = self.current_selection.snapshot, self.process, self.probe_app.session.at
        if self._resumed or not snapshot.loaded or process is None or self.table.waits:
            return
        self._resumed = True
        named = at is not None and not at.is_whole
        if snapshot.running or named or self.table.held:
            return
        place = last_view(process.directory)
        if place is None:
            self.table.prefer_probed()
            return
        if place.column or place.reverse:
            self.table.sort_by(place.column, reverse=place.reverse)
        if place.page in {tab.id for tab in self.page_tabs} and place.page != self.current:
            self.action_page(place.page)
            self.focus_table(in_table=True)
        if place.kernel is not None and any(row.index == place.kernel for row in process.kernels):
            self.table.select(place.kernel)
            if place.kernel_page:
                self.show_screen_of_kernel(place.kernel_page, place.line)

    def _go_to_same(self) -> None:
        same, process = self._same, self.process
        if same is None or process is None or self.table.waits:
            return
        index = same.index_in(process.kernels, all_there=not self.current_selection.snapshot.running)
        if self.table.held or index is not None:
            self._same = None
        if not self.table.held and index is not None:
            self.table.select(index)

    @abstractmethod
    def action_page(self, page: str) -> None:
        """Show a page and go there."""

    @abstractmethod
    def show_screen_of_kernel(self, page: str = "", line: int | None = None) -> None:
        """Go to the screen of the selected kernel, to its first page or to this one, and to a line of the PTX."""

    def _take_again(self) -> None:
        """Show the same snapshot: another process of it."""
        self.take(self.current_selection.snapshot)
        self.show_bars()

    def show_kernel(self) -> None:
        """Show the selected kernel on the pages about one kernel."""
        self.probe_app.feed.wanted = self.table.unread_in_sight()
        self._begin()
        self.early_keys.release()
        self.pages.show_kernel(self.table.kernel)

    # -- the lines around the panes

    def show_bars(self) -> None:
        """Title, tabs, state and hints."""
        snapshot, low = self.probe_app.feed.latest, self.probe_app.low_bandwidth
        place = self.query_one("#place", Bar)
        self.query_one("#title", Bar).show(self._title())
        place.show((), ((fitting(self.table.status(), place.size.width - 1), "dim"),))
        notes = self.pages.shown.status()
        self.query_one(TabBar).show(self.current, notes, focused=not self.in_table, tabs=self.page_tabs)
        states = state_line(
            snapshot,
            self.process,
            paused=self.current_selection.paused,
            low_bandwidth=low,
            remark=self._filter_warning.state,
        )
        state = self.query_one("#state", Bar)
        line = (*elapsed_line(snapshot, time.time()), *states)
        state.show((*line, *self._what_was_before(state.size.width - len(plain(line)))))
        self.show_hint()

    def _what_was_before(self, room: int) -> Line:
        """Return a hint at an earlier run to compare with, if all of it fits."""
        hint = self._previous_run.text
        return ((" · ", "dim"), (hint, "note")) if hint and len(hint) + 4 <= room else ()

    def _title(self) -> Line:
        process = self.process
        watching = [("watching  ", "accent")] if self.probe_app.session.watching else []
        probe = [(f"{process.probe}  ", "note")] if process is not None and process.probe else []
        command = self.current_selection.snapshot.command
        return ((" tui-probe  ", "title"), *watching, *self.switch.line(), *probe, (command, "dim"))

    # -- layout

    def on_resize(self, event: events.Resize) -> None:
        """Divide the terminal anew."""
        self._divide(*event.size)

    def _divide(self, width: int, height: int) -> None:
        division = arrangement(width, height, len(self.process.kernels) if self.process else None)
        self._division = division
        if division is None:
            return
        left, alone = self.query_one("#left"), self.zoomed
        preview = self.preview_pane
        self.query_one("#body").set_class(division.beside and not alone, "beside")
        left.styles.width = division.table_cells if division.beside and not alone else "1fr"
        left.styles.height = "1fr" if division.beside or alone else division.table_cells + division.preview
        left.set_class(alone and not self.in_table, "hidden")
        preview.styles.height = division.preview
        preview.set_class(alone or not division.preview, "hidden")
        if alone or not division.preview:
            self.preview.resize(0, 0)
        self.query_one("#right").set_class(alone and self.in_table, "hidden")
        self.show_bars()

    def focus_table(self, in_table: bool) -> None:
        """Let keys go to the table, or to the page."""
        self.in_table = self.table.focused = in_table
        for view in self.pages.views.values():
            view.focused = not in_table and view is self.pages.shown
        if self.zoomed:
            self._divide(*self.size)
        self.redraw(self.table)
        self.redraw(self.pages.shown)
