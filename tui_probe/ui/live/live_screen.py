"""Live screen: the kernel table and a page, with the lines around them, and the actions of their keys."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from textual.containers import Container

from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import plain
from tui_probe.pages.views import FIXED_PAGES
from tui_probe.trace.user_state import LastView
from tui_probe.ui import keys
from tui_probe.ui.early_keys import EarlyKeys
from tui_probe.ui.layout import arrangement
from tui_probe.ui.live.current_selection import CurrentSelection, step_applies
from tui_probe.ui.live.initial_place import InitialPlace
from tui_probe.ui.live.kernel_table import KernelTable, names_of
from tui_probe.ui.live.launch_rate import LaunchRate
from tui_probe.ui.live.live_pages import DIGITS, PAGE_KEYS, LivePages
from tui_probe.ui.live.pane_actions import PaneActions
from tui_probe.ui.live.preview import Preview
from tui_probe.ui.live.processes import ProcessSwitch
from tui_probe.ui.live.results import KernelFindings
from tui_probe.ui.live.state_line import (
    KernelFilterWarning,
    PreviousRunHint,
    elapsed_line,
    state_line,
    why_empty,
    words_of_watched,
)
from tui_probe.ui.screens.further_pages import LetterScreen, live_further_pages
from tui_probe.ui.screens.kernel import KernelScreen
from tui_probe.ui.screens.view_screen import ViewScreen
from tui_probe.ui.views.table_views import GrowingView, RangesView
from tui_probe.ui.views.tree_view import TreeView
from tui_probe.ui.widgets.bars import Bar, fitting
from tui_probe.ui.widgets.pane import FrameEdge, Pane
from tui_probe.ui.widgets.tabs import TabBar, keys_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from textual import events
    from textual.app import ComposeResult

    from tui_probe.draw.spans import Line
    from tui_probe.ui.layout import Arrangement
    from tui_probe.ui.live.feed import ProcessView, Snapshot
    from tui_probe.ui.views.view import PaneView
    from tui_probe.ui.widgets.tabs import Tab

_NAME_CELLS = 48
"""Cells of the name of a kernel in the title of its panel."""
_RATE_FROM = 100
"""Columns of a terminal from which on there is room for launches per second."""
INTERVAL = 0.5
"""Seconds between frames; twice that while the link is slow."""


class LiveScreen(PaneActions):
    """The kernels of what runs or ran, below all other screens; keys act immediately, no matter what is being read.

    Shows the feed's newest snapshot twice a second, in a table and a page, with a line of each kind around them.
    """

    ASKS = True
    BINDINGS = keys.bindings("tabs", "live", "kernels", "table", "log", "ranges")

    def __init__(self, *, ascii_only: bool = False) -> None:
        super().__init__()
        self.beats = 0
        self.skipped_frames = 0
        self.zoomed = False
        self.in_table = True
        self.table = KernelTable(self, "kernels", self.show_kernel)
        self.table.focused = True
        self._findings = KernelFindings(self, lambda process, found: self.probe_app.feed.tell(process, found))
        self.current_selection = CurrentSelection(self.table)
        self.pages = LivePages(self, self.current_selection, self._findings.found_in, ascii_only=ascii_only)
        self.preview = Preview(self, "preview", self._findings.found_in, ascii_only=ascii_only)
        self.switch = ProcessSwitch(self, self.current_selection, self._show_again)
        self._division: Arrangement | None = None
        self._initial_place = InitialPlace(self)
        self._filter_warning = KernelFilterWarning()
        self._rate = LaunchRate()
        self._previous_run = PreviousRunHint(self)
        self.early_keys = EarlyKeys(self, lambda: not self.current_selection.snapshot.loaded or self.table.waits)

    def compose(self) -> ComposeResult:
        """A table and a page, with a line of each kind around them."""
        yield Bar("bar", id="title")
        with Container(id="body"):
            with Container(id="left"):
                yield FrameEdge(id="place")
                yield Pane(self.table, heavy=True, id="table")
                yield FrameEdge("bottom", id="table_end")
                yield FrameEdge(id="preview_title")
                yield Pane(self.preview, id="preview")
                yield FrameEdge("bottom", id="preview_end")
            with Container(id="right"):
                yield TabBar(DIGITS, id="tabs")
                yield Pane(self.pages.shown, heavy=True, id="page")
                yield FrameEdge("bottom", id="state")
        yield Bar(id="hint")

    def on_mount(self) -> None:
        """Start the one clock of this screen."""
        self._initial_place.take(self.probe_app.session)
        self._divide(*self.app.size)
        self.set_interval(INTERVAL, self.on_interval)

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

    def on_interval(self) -> None:
        """Draw a frame, on a slow link only every second time."""
        self.beats += 1
        if self.beats % 2 == 0 or not self.probe_app.low_bandwidth:
            self.refresh_frame()

    def refresh_frame(self) -> None:
        """A data frame: what changed since the last one. Left out while the terminal lags behind."""
        app = self.probe_app
        if app.feed.failure is not None:
            raise app.feed.failure
        if app.backed_up:
            self.skipped_frames += 1
            return
        if not self.current_selection.paused:
            self._rate.look(sum(process.launches for process in app.feed.latest.processes), time.monotonic())
            self.show_snapshot(app.feed.latest)
        app.withdraw_question()
        self.show_bars()

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Show a snapshot, and let the current page read what is new."""
        if self.probe_app.session.watching and (words := words_of_watched(self.current_selection.snapshot, snapshot)):
            self.notice(words)
        self.current_selection.snapshot = snapshot
        process = self.process
        self.table.show(process.kernels if process else (), timed=snapshot.benchmark)
        self.table.say_empty(process.problem if process and process.problem else why_empty(snapshot))
        self._previous_run.look(snapshot, process)
        if words := self._filter_warning.look(snapshot, time.monotonic()):
            self._notify_front_screen(words)
        if arrangement(*self.size, len(process.kernels) if process else None) != self._division:
            self._divide(*self.size)
        self._begin()
        self.early_keys.release()
        self.pages.take(snapshot, process, self.probe_app.gpu.latest)
        self._findings.look(process, running=snapshot.running)
        self.preview.speaks = self.pages.shown is not self.pages.kernel_page
        self.preview.look(process, self.table.kernel, running=snapshot.running)

    def _begin(self) -> None:
        """Go to the place where the screen begins, then say what was opened."""
        self._initial_place.go()
        session = self.probe_app.session
        if self._initial_place.resumed and session.notice:
            self.call_later(self._notify_front_screen, session.notice)
            session.notice = ""

    def _notify_front_screen(self, text: str) -> None:
        """Show a notice on the screen in front, which may have been opened just now."""
        (self.app.screen if isinstance(self.app.screen, ViewScreen) else self).notice(text)

    def _show_again(self) -> None:
        """Show the same snapshot: another process of it."""
        self.show_snapshot(self.current_selection.snapshot)
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
        rate = self._rate.line() if snapshot.running and self.size.width >= _RATE_FROM else ()
        self.query_one("#title", Bar).show(self._title(), rate)
        self._show_frames()
        self.query_one(TabBar).show_tabs(
            self.page_tabs, self.current, self.pages.shown.status(), focused=not self.in_table
        )
        states = state_line(
            snapshot,
            self.process,
            paused=self.current_selection.paused,
            low_bandwidth=low,
            remark=self._filter_warning.state,
        )
        state = self.query_one("#state", FrameEdge)
        line = (*elapsed_line(snapshot, time.time()), *states, (" ", ""))
        hint = self._previous_run_hint(state.room - len(plain(line)))
        state.show((*line, *hint), focused=not self.in_table)
        self.show_hint()

    def _show_frames(self) -> None:
        """Draw the lines above and below the table and the preview."""
        place = self.query_one("#place", FrameEdge)
        parts = fitting(self.table.status(), place.room - 12)
        place.show(((" Kernels ", "title"),), ((f" {parts} ", "dim"),) if parts else (), focused=self.in_table)
        names = [f" #{row.index} {shorten(row.demangled, _NAME_CELLS)} " for row in (self.table.kernel,) if row]
        self.query_one("#preview_title", FrameEdge).show(tuple((name, "title") for name in names))
        self.query_one("#table_end", FrameEdge).show((), focused=self.in_table)

    def _previous_run_hint(self, room: int) -> Line:
        """Return a hint at an earlier run to compare with, if all of it fits."""
        hint = self._previous_run.text
        return (("· ", "dim"), (hint, "note"), (" ", "")) if hint and len(hint) + 4 <= room else ()

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
        division.apply(self, zoomed=self.zoomed, in_table=self.in_table)
        if self.zoomed or not division.preview:
            self.preview.resize(0, 0)
        self.show_bars()

    def focus_table(self, *, in_table: bool) -> None:
        """Let keys go to the table, or to the page."""
        self.in_table = self.table.focused = in_table
        for view in (*self.pages.views.values(), self.pages.of_kernel.view):
            view.focused = not in_table and view is self.pages.shown
        if self.zoomed:
            self._divide(*self.size)
        self.redraw(self.table)
        self.redraw(self.pages.shown)

    # -- keys

    def hints(self) -> list[keys.Key]:
        """The keys of the pane that has them, then those of the screen."""
        rows = keys.in_scope("app", "live", "kernels", "view", self.view.kind)
        if isinstance(self.view, GrowingView):
            rows += [row for row in keys.in_scope("table") if row.id == "open"]
        order = {"app": 0, self.view.kind: 1, "table": 1}
        rows.sort(key=lambda row: 2 if row.id == "next_found" else order.get(row.scope, 3))
        return [row for row in rows if self._named(row)]

    def _named(self, row: keys.Key) -> bool:
        """Return whether a key acts now; others are not named."""
        stands_out = any(kernel.stands_out for kernel in self.table.shown)
        return stands_out if row.id == "next_found" else row.id != "interrupt" or self.probe_app.target_runs

    # -- keys of the screen

    def on_key(self, event: events.Key) -> None:
        """Handle a key; hold one for the table until there is a table."""
        self.probe_app.feed.rest()
        self.table.hold()
        if self.early_keys.hold(event, on_table=self.in_table and self.prompt is None):
            event.stop()
            event.prevent_default()
        else:
            self.take_key(event)

    def applies(self, row: keys.Key) -> bool:
        """Return whether a key acts now: its kernel, launch or process exists, and the run can be paused."""
        if row.id in ("process", "processes"):
            return self.switch.applies
        if row.id == "together":
            return self.view is self.pages.ranges
        if row.id == "record":
            return self.current_selection.snapshot.recording is not None
        if row.id == "pause":
            return self.current_selection.paused or self.current_selection.snapshot.running
        return step_applies(row, self.current_selection.source(), self.table) and super().applies(row)

    def action_page(self, page: str) -> None:
        """Show a page; the pane with the keys keeps them."""
        self.pages.current = page
        if self.pages.is_of_kernel:
            self.pages.of_kernel.show(page)
        else:
            self._host(self.pages.shown)
        self.show_snapshot(self.current_selection.snapshot)

    def _host(self, view: PaneView) -> None:
        view.focused = not self.in_table
        self.query_one("#page", Pane).host(view)

    def action_digit(self, digit: int) -> None:
        """Show the page of a digit."""
        self.action_page(DIGITS[digit - 1].id)

    def action_more_pages(self) -> None:
        """List the pages of the run, and further ones of the selected kernel."""
        run, menu = [tab for tab in self.page_tabs if tab.id in PAGE_KEYS], LetterScreen("Pages")
        self.app.push_screen(menu, self._take_page)
        job = partial(live_further_pages, run, self.current_selection.source())
        self.tables.submit((self, "pages"), job, menu.take)

    def _take_page(self, page: str | None) -> None:
        if page is not None:
            self.action_page(page)

    # -- the pages of a kernel

    @property
    def ascii_only(self) -> bool:
        """Are only ASCII characters drawn?"""
        return self.probe_app.ascii_only

    @property
    def window(self) -> tuple[int, int]:
        """Columns and rows for a page."""
        return self.query_one("#page", Pane).inner

    def page_keys(self) -> Mapping[str, str]:
        """Return the keys of pages, by name."""
        return keys_of(self.page_tabs)

    def arrive(self, view: PaneView) -> None:
        """Show a page of a kernel that is open now."""
        self.pages.of_kernel.take(view)
        if self.pages.is_of_kernel and self.is_mounted:
            self._host(view)
            self.show_bars()

    def action_next_pane(self) -> None:
        """Table or page."""
        self.focus_table(in_table=not self.in_table)

    def action_zoom(self) -> None:
        """The pane with the keys in full size, and back."""
        self.zoomed = not self.zoomed
        self._divide(*self.size)

    def action_back(self) -> None:
        """One level back: search and filter, full size, the table, home."""
        if self.view.clear_search():
            return
        if self.zoomed:
            self.action_zoom()
        elif not self.in_table:
            self.focus_table(in_table=True)
        elif self.probe_app.session.from_home:
            self.call_later(self.app.run_action, "quit")  # which leads home, and asks first while the target runs
        else:
            self.notice("Ctrl-Q quits")

    def action_pause(self) -> None:
        """Freeze what is shown, and continue."""
        self.current_selection.paused = not self.current_selection.paused
        self.refresh_frame()

    def action_record(self) -> None:
        """Switch recording on or off, in all processes of the run."""
        snapshot = self.current_selection.snapshot
        if snapshot.loaded and not snapshot.running:
            self.notice("the run has ended: R runs the program again")
            return
        on = self.probe_app.feed.switch.turn()
        if on is None:
            self.notice("this run has no switch: it has launched nothing yet")
        else:
            self.notice(
                "launches are recorded" if on else f"launches run unprobed; {keys.key_of('record')} records again"
            )

    def action_again(self) -> None:
        """Run the program again."""
        self.action_ask("")

    def action_ask(self, probe: str) -> None:
        """Run the program again, with a probe or with one to choose."""
        source, process, option = self.current_selection.source(), self.process, f"-p {probe}" if probe else ""
        if source is not None:
            self.probe_app.run_again(source.trace.directory, source.kernel.kernel, option)
        elif process is not None:
            self.probe_app.run_again(process.directory, None, option)

    # -- keys about kernels, launches and processes

    def action_open(self) -> None:
        """To the screen of the selected kernel, or of that in a row of ranges or graphs; of a range to its kernels."""
        if isinstance(self.view, RangesView | TreeView) and self.view.enter():
            return
        if isinstance(self.view, GrowingView):
            index = self.view.kernel_index()
            if index is None:
                self.notice("this line is not about a kernel")
                return
            self.table.select(index)
            self.show_screen_of_kernel(*self.view.destination())
            return
        if not self.in_table and self.view is not self.pages.kernel_page and not self.pages.is_of_kernel:
            self.notice("Enter leads nowhere here: Tab goes to the table, where it opens a kernel")
        elif self.table.kernel is None:
            self.notice("no kernel is selected")
        else:
            self.pages.of_kernel.save_states()
            self.show_screen_of_kernel(self.current if self.pages.is_of_kernel else "")

    def show_screen_of_kernel(self, page: str = "", line: int | None = None) -> None:
        """Go to the screen of the selected kernel, to its first page or to this one, and to a line of the PTX."""
        self.app.push_screen(KernelScreen(self.current_selection, page or FIXED_PAGES[0], line))

    @property
    def place(self) -> LastView:
        """Return the user's place: kernel, page, line and sorting."""
        above = next((screen for screen in self.app.screen_stack if isinstance(screen, KernelScreen)), None)
        column, reverse = self.table.sorting
        page, line = (above.current, above.line) if above else ("", None)
        return LastView(self.table.selected, self.current, page, column, reverse, line)

    def open_kernel(self, directory: Path, index: int) -> str:
        """To the screen of a kernel of the trace in ``directory``. Returns why that cannot be done yet."""
        processes = self.current_selection.snapshot.processes
        place = next((place for place, each in enumerate(processes) if each.directory == directory), None)
        if place is None or all(row.index != index for row in processes[place].kernels):
            return f"{directory.name} is still being read: try again in a moment"
        self.switch.show(place)
        self.table.select(index)
        # The table takes its rows in the background: what is asked for later comes after it.
        self.tables.submit((self, "open"), lambda: None, lambda _: self.show_screen_of_kernel())
        return ""

    def action_step_kernel(self, step: int) -> None:
        """Previous or next kernel; page and pane stay."""
        self.table.step(step)

    def action_step_launch(self, step: int) -> None:
        """Previous or next launch of the selected kernel, for its screen."""
        source = self.current_selection.source()
        problem = self.current_selection.step_launch(source, step) if source is not None else "no kernel is selected"
        self.notice(problem or f"{self.current_selection.selection_text()}; Enter shows it")

    def action_compare(self) -> None:
        """Mark the kernel at hand, or compare it with the one that was marked."""
        source = self.current_selection.source()
        if source is None:
            self.notice("no kernel is selected")
        else:
            self.probe_app.compare(source)

    def action_next_process(self) -> None:
        """The next process of the target."""
        self.switch.next()

    def action_processes(self) -> None:
        """Choose a process from a list."""
        self.switch.choose()
