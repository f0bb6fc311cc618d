"""Processes of a run: lines of a list, and the switch from one to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.draw import units
from tui_probe.probekit.record_counts import launches_text
from tui_probe.ui.live.state_line import ending
from tui_probe.ui.screens.lists import PickerItem, PickScreen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.ui.live.current_selection import CurrentSelection
    from tui_probe.ui.live.feed import ProcessView
    from tui_probe.ui.screens.view_screen import ViewScreen

_ONLY_PROCESS = "only one process has a trace"


class ProcessSwitch:
    """Goes from process to process for a screen, which ``changed`` then draws anew."""

    def __init__(self, screen: ViewScreen, at_hand: CurrentSelection, changed: Callable[[], None]) -> None:
        self.screen = screen
        self.current_selection = at_hand
        self.changed = changed

    @property
    def applies(self) -> bool:
        """True if there are several."""
        return len(self.current_selection.snapshot.processes) > 1

    def line(self) -> Line:
        """Describe the shown process if there are several: ``process 2 of 3: pid 4242 ● running``."""
        process, processes = self.current_selection.process, self.current_selection.snapshot.processes
        if process is None or not self.applies:
            return ()
        place = self.current_selection.place % len(processes) + 1
        return ((f"process {place} of {len(processes)}: {process_words(process)}  ", "accent"),)

    def show(self, place: int) -> None:
        """Show the process of this place; behind the last one comes the first."""
        self.current_selection.select_process(place)
        self.changed()

    def step(self, step: int) -> None:
        """Show the next or previous one."""
        if self.applies:
            self.show(self.current_selection.place + step)
        else:
            self.screen.notice(_ONLY_PROCESS)

    def choose(self) -> None:
        """Choose one from a list."""
        processes = self.current_selection.snapshot.processes
        if self.applies:
            place = self.current_selection.place % len(processes)
            self.screen.app.push_screen(PickScreen("Processes", process_choices(processes), place), self._take)
        else:
            self.screen.notice(_ONLY_PROCESS if processes else "no process has a trace yet")

    def _take(self, place: int | None) -> None:
        if place is not None:
            self.show(place)


def process_choices(processes: Sequence[ProcessView]) -> list[PickerItem]:
    """One line per process: pid and state, kernels and launches, its command; the value is its place."""
    return [
        PickerItem(f"{_pid(process)}  {_state(process)}", _counts(process), _command(process), place)
        for place, process in enumerate(processes)
    ]


def _pid(process: ProcessView) -> str:
    pid = process.trace.state.pid if process.trace else None
    return f"pid {'–' if pid is None else pid}"


def process_words(process: ProcessView) -> str:
    """Describe a process and its state: ``pid 4242 ✘ exit 3``."""
    return f"{_pid(process)} {_state(process)}"


def _state(process: ProcessView) -> str:
    if process.problem:
        return "✘ cannot be read"
    if process.trace is None:
        return "◌ being read"
    state = process.trace.state
    if state.running:
        return "● running"
    if process.trace.broke_off:
        return "✘ incomplete"
    status = state.exit_status if state.signal is None else -state.signal
    return "○ ended" if status is None else ending(status)[0]


def _counts(process: ProcessView) -> str:
    return (
        f"{units.counted(len(process.kernels), 'kernel')} ({units.count(process.probed)} probed)"
        f" · {launches_text(process.launches, process.launches_probed)}"
    )


def _command(process: ProcessView) -> str:
    if process.problem:
        return process.problem
    command = (process.trace.state.command if process.trace else "") or process.directory.name
    broke_off = process.trace is not None and process.trace.broke_off
    return f"{command}   (killed, crashed or disk full)" if broke_off else command
