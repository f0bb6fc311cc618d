"""Data frames of the live screen: what changed since the last one, at most twice a second."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tui_probe.ui.live.state_line import why_empty, words_of_watched
from tui_probe.ui.screens.view_screen import ViewScreen

if TYPE_CHECKING:
    from tui_probe.ui.early_keys import EarlyKeys
    from tui_probe.ui.live.feed import Snapshot
    from tui_probe.ui.live.initial_place import InitialPlace
    from tui_probe.ui.live.live_bars import LiveBars, LivePanes
    from tui_probe.ui.live.results import KernelFindings

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
        early: tuple[InitialPlace, EarlyKeys],
    ) -> None:
        self._screen, self._panes, self._bars, self._findings = screen, panes, bars, findings
        self._initial_place, self._early_keys = early
        self.beats = 0
        self.skipped = 0
        """Frames that were left out since the terminal lagged behind."""

    def start(self) -> None:
        """Start the one clock of the screen."""
        self._initial_place.take(self._screen.probe_app.session)
        self._screen.set_interval(INTERVAL, self.beat)

    def beat(self) -> None:
        """Draw a frame, on a slow link only every second time."""
        self.beats += 1
        if self.beats % 2 == 0 or not self._screen.probe_app.low_bandwidth:
            self.refresh()

    def refresh(self) -> None:
        """Draw a frame. Left out while the terminal lags behind."""
        app, paused = self._screen.probe_app, self._panes.selection.paused
        if app.feed.failure is not None:
            raise app.feed.failure
        if app.backed_up:
            self.skipped += 1
            return
        if not paused:
            launches = sum(process.launches for process in app.feed.latest.processes)
            self._bars.rate.look(launches, time.monotonic())
            self.show(app.feed.latest)
        app.withdraw_question()
        self._screen.show_bars()

    def show(self, snapshot: Snapshot) -> None:
        """Show a snapshot, and let the current page read what is new."""
        screen, panes, selection = self._screen, self._panes, self._panes.selection
        if screen.probe_app.session.watching and (words := words_of_watched(selection.snapshot, snapshot)):
            screen.notice(words)
        selection.snapshot = snapshot
        process = panes.process
        panes.table.show(process.kernels if process else (), timed=snapshot.benchmark, simulated=snapshot.simulated)
        panes.table.say_empty(process.problem if process and process.problem else why_empty(snapshot))
        if words := self._bars.follow(snapshot, process):
            self._notify_front_screen(words)
        self.begin()
        panes.pages.take(snapshot, process, screen.probe_app.gpu.latest)
        self._findings.look(process, running=snapshot.running)
        panes.preview.speaks = panes.pages.shown is not panes.pages.kernel_page
        panes.preview.look(process, panes.table.kernel, running=snapshot.running)

    def show_again(self) -> None:
        """Show the same snapshot: another page or process of it."""
        self.show(self._panes.selection.snapshot)
        self._screen.show_bars()

    def begin(self) -> None:
        """Go to the place where the screen begins, say what was opened, then act on keys that waited for the table."""
        self._initial_place.go()
        session = self._screen.probe_app.session
        if self._initial_place.resumed and session.notice:
            self._screen.call_later(self._notify_front_screen, session.notice)
            session.notice = ""
        self._early_keys.release()

    def _notify_front_screen(self, text: str) -> None:
        """Show a notice on the screen in front, which may have been opened just now."""
        front = self._screen.app.screen
        (front if isinstance(front, ViewScreen) else self._screen).notice(text)
