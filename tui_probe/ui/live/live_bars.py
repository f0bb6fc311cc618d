"""Frames of the live screen: its panes, the lines around them, and what changed since the last frame."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe.draw.shorten import fitted_command, shorten
from tui_probe.draw.spans import plain
from tui_probe.ui import keys
from tui_probe.ui.layout import arrangement
from tui_probe.ui.live.state_line import (
    KernelFilterWarning,
    LaunchRate,
    PreviousRunHint,
    elapsed_line,
    empty_table_text,
    state_line,
    watch_notice,
)
from tui_probe.ui.screens.view_screen import ViewScreen
from tui_probe.ui.views.table_views import GrowingView
from tui_probe.ui.widgets.pane import Bar, FrameEdge, TabBar, fit_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.ui.early_keys import EarlyKeys
    from tui_probe.ui.layout import Arrangement
    from tui_probe.ui.live.current_selection import CurrentSelection, ProcessSwitch
    from tui_probe.ui.live.initial_place import InitialPlace
    from tui_probe.ui.live.kernel_table import KernelTable
    from tui_probe.ui.live.live_pages import LivePages
    from tui_probe.ui.live.preview import Preview
    from tui_probe.ui.live.results import KernelFindings
    from tui_probe.ui.live.snapshots import ProcessView, Snapshot
    from tui_probe.ui.views.view import PaneView
    from tui_probe.ui.widgets.pane import Tab

_NAME_CELLS = 48
"""Cells of the name of a kernel in the title of its panel."""
_RATE_FROM = 100
"""Columns of a terminal from which on there is room for launches per second."""


@dataclass
class LivePanes:
    """The panes of a live screen. ``in_table``: the table has the keys, else the page; ``zoomed``: it is alone."""

    table: KernelTable
    pages: LivePages
    preview: Preview
    selection: CurrentSelection
    switch: ProcessSwitch
    in_table: bool = True
    zoomed: bool = False

    @property
    def view(self) -> PaneView:
        """The pane that has the keys."""
        return self.table if self.in_table else self.pages.current_view

    @property
    def process(self) -> ProcessView | None:
        """The process that is shown."""
        return self.selection.process

    @property
    def tabs(self) -> Sequence[Tab]:
        """The pages that there are."""
        return self.pages.tabs(self.process)


class LiveBars:
    """Title, frames, tabs, state and hints of a live screen."""

    def __init__(self, screen: ViewScreen, panes: LivePanes) -> None:
        self._screen, self._panes = screen, panes
        self._division: Arrangement | None = None
        self.filter_warning = KernelFilterWarning()
        self.rate = LaunchRate()
        self.previous_run = PreviousRunHint(screen)

    # -- layout

    def divide(self, width: int, height: int) -> None:
        """Give the panes their parts of a terminal of this size."""
        panes = self._panes
        self._division = self._arrangement(width, height)
        if self._division is None:
            return
        self._division.apply(self._screen, zoomed=panes.zoomed, in_table=panes.in_table)
        if panes.zoomed or not self._division.preview:
            panes.preview.resize(0, 0)
        self.show()

    def follow(self, snapshot: Snapshot, process: ProcessView | None) -> str:
        """Take what a snapshot changes; returns the warning of a kernel filter without a match, the first time."""
        self.previous_run.update(snapshot, process)
        if self._arrangement(*self._screen.size) != self._division:
            self.divide(*self._screen.size)
        return self.filter_warning.update(snapshot, time.monotonic())

    def _arrangement(self, width: int, height: int) -> Arrangement | None:
        process, snapshot = self._panes.process, self._panes.selection.snapshot
        return arrangement(
            width,
            height,
            len(process.kernels) if process else None,
            complete=snapshot.is_loaded and not snapshot.is_running,
            tall_preview=self._panes.preview.is_tall,
        )

    # -- lines

    def show(self) -> None:
        """Draw all lines but that of hints, each if it changed."""
        screen, panes, snapshot = self._screen, self._panes, self._screen.probe_app.feed.latest
        rate = self.rate.line() if snapshot.is_running and screen.size.width >= _RATE_FROM else ()
        screen.query_one("#title", Bar).show(self._title(), rate)
        self._show_frames()
        tabs = screen.query_one(TabBar)
        tabs.show_tabs(panes.tabs, panes.pages.current, panes.pages.current_view.status(), focused=not panes.in_table)
        state = screen.query_one("#state", FrameEdge)
        line = (*elapsed_line(snapshot, time.time()), *self._states(snapshot), (" ", ""))
        hint = self._previous_run_hint(state.room - len(plain(line)))
        state.show((*line, *hint), focused=not panes.in_table)

    def _states(self, snapshot: Snapshot) -> Line:
        panes = self._panes
        return state_line(
            snapshot,
            panes.process,
            is_paused=panes.selection.is_paused,
            low_bandwidth=self._screen.probe_app.low_bandwidth,
            remark=self.filter_warning.state,
        )

    def _title(self) -> Line:
        panes, process = self._panes, self._panes.process
        watching = [("watching  ", "accent")] if self._screen.probe_app.session.watching else []
        probe = [(f"{process.probe}  ", "note")] if process is not None and process.probe else []
        line = ((" tui-probe  ", "title"), *watching, *panes.switch.line(), *probe)
        room = self._screen.size.width - len(plain(line))
        return (*line, (fitted_command(panes.selection.snapshot.command, room), "dim"))

    def _show_frames(self) -> None:
        """Draw the lines above and below the table and the preview."""
        screen, panes = self._screen, self._panes
        place = screen.query_one("#place", FrameEdge)
        parts = fit_parts(panes.table.status(), place.room - 12)
        place.show(((" Kernels ", "title"),), ((f" {parts} ", "dim"),) if parts else (), focused=panes.in_table)
        names = [f" #{row.index} {shorten(row.demangled, _NAME_CELLS)} " for row in (panes.table.kernel,) if row]
        screen.query_one("#preview_title", FrameEdge).show(tuple((name, "title") for name in names))
        screen.query_one("#table_end", FrameEdge).show((), focused=panes.in_table)

    def _previous_run_hint(self, room: int) -> Line:
        """Return a hint at an earlier run to compare with, if all of it fits."""
        hint = self.previous_run.text
        return (("· ", "dim"), (hint, "note"), (" ", "")) if hint and len(hint) + 4 <= room else ()

    # -- hints

    def hints(self) -> list[keys.Key]:
        """Return the keys of the pane that has them, then those of the screen."""
        view = self._panes.view
        rows = keys.in_scope("app", "live", "kernels", "view", view.key_scope)
        if isinstance(view, GrowingView):
            rows += [row for row in keys.in_scope("table") if row.id == "open"]
        order = {"app": 0, view.key_scope: 1, "table": 1}
        special_order = {"next_found": 2, "filter": 3}
        rows.sort(key=lambda row: special_order.get(row.id, order.get(row.scope, 4)))
        return [row for row in rows if self._is_named(row)]

    def _is_named(self, row: keys.Key) -> bool:
        """Return whether a key acts now; others are not named."""
        if row.scope == "drawing":
            is_unbound = row.keys[0] not in self._screen.active_bindings
            return is_unbound and keys.command_of(row) in self._panes.view.commands()
        if row.id == "next_found":
            return any(kernel.stands_out for kernel in self._panes.table.shown_rows)
        if row.id == "pause":
            return self._screen.applies(row)
        return row.id not in ("interrupt", "probe") or (row.id == "interrupt" and self._screen.probe_app.target_runs)


INTERVAL = 0.5
"""Seconds between frames; twice that while the link is slow."""


class LiveFrames:
    """Shows the newest snapshot of the feed on a live screen, and lets findings be read."""

    def __init__(
        self,
        screen: ViewScreen,
        panes: LivePanes,
        bars: LiveBars,
        findings: KernelFindings,
        startup: tuple[InitialPlace, EarlyKeys],
    ) -> None:
        self._screen, self._panes, self._bars, self._findings = screen, panes, bars, findings
        self._initial_place, self._early_keys = startup
        self.ticks = 0
        self.skipped_frames = 0
        """Frames that were left out since the terminal lagged behind."""

    def start(self) -> None:
        """Start the one clock of the screen."""
        self._initial_place.take(self._screen.probe_app.session)
        self._screen.set_interval(INTERVAL, self.tick)

    def tick(self) -> None:
        """Draw a frame, on a slow link only every second time."""
        self.ticks += 1
        if self.ticks % 2 == 0 or not self._screen.probe_app.low_bandwidth:
            self.refresh()

    def refresh(self) -> None:
        """Draw a frame. Left out while the terminal lags behind."""
        app, paused = self._screen.probe_app, self._panes.selection.is_paused
        if app.feed.failure is not None:
            raise app.feed.failure
        if app.is_backed_up:
            self.skipped_frames += 1
            return
        if not paused:
            launches = sum(process.launches for process in app.feed.latest.processes)
            self._bars.rate.update(launches, time.monotonic())
            self.show(app.feed.latest)
        app.withdraw_question()
        self._screen.show_bars()

    def show(self, snapshot: Snapshot) -> None:
        """Show a snapshot, and let the current page read what is new."""
        screen, panes, selection = self._screen, self._panes, self._panes.selection
        if screen.probe_app.session.watching and (words := watch_notice(selection.snapshot, snapshot)):
            screen.notice(words)
        selection.snapshot = snapshot
        process = panes.process
        panes.table.show(process.kernels if process else (), timed=snapshot.benchmark, simulated=snapshot.simulated)
        panes.table.set_empty_text(empty_table_text(snapshot, process))
        if words := self._bars.follow(snapshot, process):
            self._notify_front_screen(words)
        self.begin()
        panes.pages.take(snapshot, process, screen.probe_app.gpu.latest)
        self._findings.update(process, is_running=snapshot.is_running)
        panes.preview.shows_findings = panes.pages.current_view is not panes.pages.kernel_page
        panes.preview.update(process, panes.table.kernel, is_running=snapshot.is_running)

    def show_again(self) -> None:
        """Show the same snapshot: another page or process of it."""
        self.show(self._panes.selection.snapshot)
        self._screen.show_bars()

    def begin(self) -> None:
        """Go to the place where the screen begins, say what was opened, then act on keys that waited for the table."""
        self._initial_place.go()
        session = self._screen.probe_app.session
        if self._initial_place.has_resumed and session.notice:
            self._screen.call_later(self._notify_front_screen, session.notice)
            session.notice = ""
        self._early_keys.release()

    def _notify_front_screen(self, text: str) -> None:
        """Show a notice on the screen in front, which may have been opened just now."""
        front = self._screen.app.screen
        (front if isinstance(front, ViewScreen) else self._screen).notice(text)
