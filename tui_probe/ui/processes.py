"""The processes of a target as lines of a list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.draw import units
from tui_probe.ui.screens.picker import Choice
from tui_probe.ui.state_line import ending

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.ui.feed import ProcessView


def process_choices(processes: Sequence[ProcessView]) -> list[Choice]:
    """A line a process: pid and state, kernels and launches, its command; the value is its place."""
    return [
        Choice(f"{_pid(process)}  {_state(process)}", _figures(process), _command(process), place)
        for place, process in enumerate(processes)
    ]


def _pid(process: ProcessView) -> str:
    pid = process.trace.state.pid if process.trace else None
    return f"pid {'–' if pid is None else pid}"


def process_words(process: ProcessView) -> str:
    """Which process it is and how it is doing: ``pid 4242 ✘ exit 3``."""
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
        return "✘ broke off"
    status = state.exit_status if state.signal is None else -state.signal
    return "○ ended" if status is None else ending(status)[0]


def _figures(process: ProcessView) -> str:
    return (
        f"{units.counted(len(process.kernels), 'kernel')} ({units.count(process.probed)} probed)"
        f" · {units.counted(process.launches, 'launch')}"
    )


def _command(process: ProcessView) -> str:
    if process.problem:
        return process.problem
    command = (process.trace.state.command if process.trace else "") or process.directory.name
    broke_off = process.trace is not None and process.trace.broke_off
    return f"{command}   (killed, crashed, or no room on the disk)" if broke_off else command
