"""Current selection: the process, kernel and launch that keys act on, steps between launches, and the marked one."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tui_probe.draw import units
from tui_probe.errors import ChoiceError
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.record_counts import launches_text
from tui_probe.ui.live.snapshots import Snapshot
from tui_probe.ui.live.state_line import end_span
from tui_probe.ui.screens.lists import PickerItem, PickerScreen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tui_probe.draw.spans import Line
    from tui_probe.trace.launches import Launch
    from tui_probe.trace.model import Trace
    from tui_probe.ui.keys import Key
    from tui_probe.ui.live.kernel_table import KernelTable
    from tui_probe.ui.live.snapshots import ProcessView
    from tui_probe.ui.screens.view_screen import ViewScreen

NO_LATER_LAUNCH = "no later launch has a result"
NO_EARLIER_LAUNCH = "no earlier launch has a result"


def step_applies(row: Key, source: ViewSource | None, table: KernelTable) -> bool:
    """Return whether a key that steps has a kernel or launch to step to; True for other keys."""
    step = -1 if row.id.startswith("previous") else 1
    if row.id in ("previous_kernel", "next_kernel"):
        return bool(table.shown_rows) and 0 <= table.kernels.place + step < len(table.shown_rows)
    if row.id in ("previous_launch", "next_launch"):
        return source is not None and next_launch(source, step) is not None
    return True


def has_several(source: ViewSource | None) -> bool:
    """Return whether there are several launches to step through. It takes no longer for many."""
    return source is not None and (len(source.kernel.result_rows) or source.kernel.launches) > 1


def with_newest_launch(source: ViewSource) -> ViewSource:
    """Return the source with the launch that has the newest result now, if none was chosen. Later results do not
    change it.
    """
    row = _newest_row(source)
    return source if source.launch is not None or row is None else replace(source, launch=source.trace.launches[row])


def has_newer_result(source: ViewSource) -> bool:
    """Return whether a later launch than the selected one has a result."""
    row = _newest_row(source)
    return source.launch is not None and row is not None and row > source.launch.row


def _newest_row(source: ViewSource) -> int | None:
    rows = source.kernel.result_rows
    return source.trace.results.launch(rows[-1]) if rows else None


def launch_rows(source: ViewSource) -> list[int]:
    """Return the rows of a kernel's launches that can be stepped through: those with results, or all without any."""
    results = source.trace.results
    with_results = (results.launch(row) for row in source.kernel.result_rows)
    return sorted({row for row in with_results if row is not None}) or list(source.kernel.rows)


def launch_text(source: ViewSource, *, brief: bool = False) -> str:
    """Describe the shown launch and its position: ``launch 3 (1st of 8 of this kernel), the only launch …``.

    The number is what pages call the launch and what ``KERNEL@LAUNCH`` takes: it counts from 0 through the process. The
    place among the launches of the kernel counts from 1. ``brief``: these only.
    """
    kernel, result_count = source.kernel, len(source.kernel.result_rows)
    if not kernel.launches:
        return "no launch"
    if not result_count and source.launch is None:
        return "1 launch, no result" if kernel.launches == 1 else f"{units.count(kernel.launches)} launches, no result"
    row = _launch_row(source)
    if row is None:
        return f"newest result of {units.counted(kernel.launches, 'launch')}"
    number = source.trace.launches[row].number
    if kernel.launches == 1:
        return "the only launch" if number is None else f"launch {number} (the only one of this kernel)"
    is_only_result = result_count == 1 and row == source.trace.results.launch(kernel.result_rows[0])
    only_note = ", the only launch with a result" if is_only_result and not brief else ""
    recorded = " recorded" if kernel.launches_recorded < kernel.launches else ""
    place = f"{units.ordinal(bisect_left(kernel.rows, row) + 1)}{recorded} of {units.count(kernel.launches)}"
    return f"{place} launches{only_note}" if number is None else f"launch {number} ({place} of this kernel){only_note}"


def _launch_row(source: ViewSource) -> int | None:
    """Return the row of the launch that pages show: the selected one, else that of the result to show."""
    if source.launch is not None:
        return source.launch.row
    from tui_probe.probekit.shown_results import find_shown_result  # imports NumPy, which the first frame does without

    result_row = find_shown_result(source, may_read=False).row
    return None if result_row is None else source.trace.results.launch(result_row)


def next_launch(source: ViewSource, step: int) -> Launch | None:
    """Return the launch ``step`` positions from the shown one; None beyond the ends."""
    rows, shown_row = launch_rows(source), _launch_row(source)
    current = len(rows) - 1
    if shown_row is not None:
        current = next((place for place in range(len(rows) - 1, -1, -1) if rows[place] <= shown_row), 0)
    place = current + step
    if not 0 <= place < len(rows):
        return None
    launch: Launch = source.trace.launches[rows[place]]
    return launch


class CurrentSelection:
    """Process, kernel and launch of the shown ``snapshot`` that keys act on."""

    def __init__(self, table: KernelTable) -> None:
        self.table = table
        self.snapshot = Snapshot()
        self.is_paused = False
        """True if the snapshot stays although the run continues."""
        self.place = 0
        self._launches: dict[int, Launch] = {}
        """Selected launches by kernel index, where they are not the newest with a result."""
        self._page_states: dict[tuple[Path, int], dict[str, object]] = {}
        """Last view states by page name, per kernel."""

    @property
    def process(self) -> ProcessView | None:
        """The shown process; None without any."""
        processes = self.snapshot.processes
        return processes[self.place % len(processes)] if processes else None

    def select_process(self, place: int) -> None:
        """Select process ``place`` modulo their number; clear the kernel."""
        self.place = place
        self.table.forget()
        self._launches.clear()

    def source(self) -> ViewSource | None:
        """Return the selected kernel and its launch; None if no kernel is selected or known."""
        process, row = self.process, self.table.kernel
        trace = process.trace if process else None
        kernel = trace.kernels.get(row.index) if trace is not None and row is not None else None
        if trace is None or kernel is None:
            return None
        return ViewSource(trace, kernel, self._launches.get(kernel.index))

    def select_launch(self, source: ViewSource, launch: Launch) -> None:
        """Select a launch; the newest is stored as none, so newer results replace it."""
        if has_newer_result(ViewSource(source.trace, source.kernel, launch)):
            self._launches[source.kernel.index] = launch
        else:
            self._launches.pop(source.kernel.index, None)

    def pin_launch(self, source: ViewSource) -> None:
        """Select the launch of this source; newer results do not replace it."""
        if source.launch is not None:
            self._launches[source.kernel.index] = source.launch

    def step_launch(self, source: ViewSource, step: int) -> str:
        """Select the launch ``step`` positions on. Return the reason why there is none, else ""."""
        launch = next_launch(source, step)
        if launch is None:
            return NO_LATER_LAUNCH if step > 0 else NO_EARLIER_LAUNCH
        self.select_launch(source, launch)
        return ""

    def save_page_states(self, source: ViewSource, states: dict[str, object]) -> None:
        """Save the states of a kernel's pages, for when the user returns to it."""
        self._page_states[_kernel_key(source)] = states

    def page_states(self, source: ViewSource) -> dict[str, object]:
        """Return the saved states of a kernel's pages, by name."""
        return self._page_states.get(_kernel_key(source), {})

    def selection_text(self) -> str:
        """Describe the selected kernel and launch: ``#3: launch 5 (2nd of 8 of this kernel)``."""
        source = self.source()
        return "" if source is None else f"#{source.kernel.index}: {launch_text(source)}"


def _kernel_key(source: ViewSource) -> tuple[Path, int]:
    return source.trace.directory, source.kernel.index


# A screen ends with its trace, and when its run is run again; the mark of a comparison lives as long as the program.


@dataclass(frozen=True, slots=True)
class Mark:
    """A kernel of a trace by its index; ``launch`` is the row of one of its launches, None for none."""

    directory: Path
    kernel: int
    launch: int | None

    def source_in(self, trace: Trace) -> ViewSource:
        """Return the marked kernel in the trace as read by now. Raises ChoiceError if it is gone."""
        kernel = trace.kernels.get(self.kernel)
        if kernel is None or (self.launch is not None and self.launch >= len(trace.launches)):
            raise ChoiceError(f"{self.directory} no longer has the marked kernel or launch")
        return ViewSource(trace, kernel, None if self.launch is None else trace.launches[self.launch])

    def read_source(self) -> ViewSource:
        """Return the marked kernel of a trace that is not open. Raises TraceError, OSError and ChoiceError."""
        from tui_probe.trace.follow import open_trace  # read in the background, after the first frame

        return self.source_in(open_trace(self.directory))


def mark_of(source: ViewSource) -> Mark:
    """Return the mark of a kernel or launch."""
    launch = None if source.launch is None else source.launch.row
    return Mark(source.trace.directory.absolute(), source.kernel.index, launch)


class MarkHolder:
    """Holds at most one mark."""

    def __init__(self) -> None:
        self._mark: Mark | None = None

    def keep(self, mark: Mark) -> None:
        """Replace the mark."""
        self._mark = mark

    def take(self) -> Mark | None:
        """Return the mark and clear it."""
        mark, self._mark = self._mark, None
        return mark


MARK_HOLDER = MarkHolder()
"""Mark holder of the program."""


_ONLY_PROCESS = "only one process has a trace"


class ProcessSwitch:
    """Goes from process to process for a screen, which ``on_change`` then draws anew."""

    def __init__(self, screen: ViewScreen, selection: CurrentSelection, on_change: Callable[[], None]) -> None:
        self.screen = screen
        self.selection = selection
        self.on_change = on_change

    @property
    def applies(self) -> bool:
        """True if there are several."""
        return len(self.selection.snapshot.processes) > 1

    def line(self) -> Line:
        """Describe the shown process if there are several: ``process 2 of 3: pid 4242 ● running``."""
        process, processes = self.selection.process, self.selection.snapshot.processes
        if process is None or not self.applies:
            return ()
        place = self.selection.place % len(processes) + 1
        return ((f"process {place} of {len(processes)}: {process_text(process)}  ", "accent"),)

    def show(self, place: int) -> None:
        """Show the process of this place; behind the last one comes the first."""
        self.selection.select_process(place)
        self.on_change()

    def step(self, step: int) -> None:
        """Show the next or previous one."""
        if self.applies:
            self.show(self.selection.place + step)
        else:
            self.screen.notice(_ONLY_PROCESS)

    def choose(self) -> None:
        """Choose one from a list."""
        processes = self.selection.snapshot.processes
        if self.applies:
            place = self.selection.place % len(processes)
            self.screen.app.push_screen(PickerScreen("Processes", process_choices(processes), place), self._take)
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


def process_text(process: ProcessView) -> str:
    """Describe a process and its state: ``pid 4242 ✘ exit 3``."""
    return f"{_pid(process)} {_state(process)}"


def _state(process: ProcessView) -> str:
    if process.problem:
        return "✘ cannot be read"
    if process.trace is None:
        return "◌ being read"
    state = process.trace.state
    if state.is_running:
        return "● running"
    if process.trace.broke_off:
        return "✘ incomplete"
    status = state.exit_status if state.signal is None else -state.signal
    return "○ ended" if status is None else end_span(status)[0]


def _counts(process: ProcessView) -> str:
    return (
        f"{units.counted(len(process.kernels), 'kernel')} ({units.count(process.probed_kernels)} probed)"
        f" · {launches_text(process.launches, process.launches_probed)}"
    )


def _command(process: ProcessView) -> str:
    if process.problem:
        return process.problem
    command = (process.trace.state.command if process.trace else "") or process.directory.name
    broke_off = process.trace is not None and process.trace.broke_off
    return f"{command}   (killed, crashed or disk full)" if broke_off else command
