"""What a report says first: which run it is of, on what, and what was kept of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tui_probe.render import units
from tui_probe.render.table import safe

if TYPE_CHECKING:
    from tui_probe.trace.model import State, Trace

SIMULATED = "simulated GPU: clocks and cycles are those of a model, and nothing here is a time"


def head_lines(trace: Trace) -> list[str]:
    """A few ``label  words`` lines."""
    state = trace.state
    lines = [f"trace     {safe(str(trace.directory))}", f"command   {safe(state.command) or units.NOT_MEASURED}"]
    lines.append(f"outcome   {_outcome(state)}")
    lines += [
        f"device    {safe(device.name)}, {units.counted(device.sms, 'SM')}, cc {device.capability}"
        for device in state.devices.values()
    ]
    if state.simulated:
        lines.append(f"          {SIMULATED}")
    lines.append(
        f"seen      {units.counted(state.kernels, 'kernel')}, {units.counted(state.launches, 'launch')} "
        f"({units.count(state.launches_probed)} probed), {units.counted(state.results, 'result')}, "
        f"{units.size(state.bytes_written)}"
    )
    if state.launches_dropped:
        why = f": {safe(state.dropped_reason)}" if state.dropped_reason else ""
        lines.append(f"          {units.counted(state.launches_dropped, 'result')} not kept{why}")
    return lines


def head_record(trace: Trace) -> dict[str, Any]:
    """The same as data. Times are seconds since 1970; None is not known."""
    state = trace.state
    device = state.device
    return {
        "trace": str(trace.directory).encode("utf-8", "backslashreplace").decode(),
        "run": {
            "pid": state.pid,
            "command": state.command,
            "started": state.started,
            "ended": state.ended,
            "running": state.running,
            "exit_status": state.exit_status,
            "signal": state.signal,
            "device": None if device is None else device.name,
            "capability": None if device is None else device.capability,
            "sms": None if device is None else device.sms,
            "simulated": state.simulated,
            "benchmark": state.benchmark,
            "kernels": state.kernels,
            "launches": state.launches,
            "launches_probed": state.launches_probed,
            "launches_dropped": state.launches_dropped,
            "dropped_reason": state.dropped_reason,
            "results": state.results,
            "bytes_written": state.bytes_written,
        },
    }


def _outcome(state: State) -> str:
    """How the process ended, and how long it took where that is a time."""
    if state.running:
        words = "still running"
    elif state.signal is not None:
        words = f"ended by signal {state.signal}"
    elif state.exit_status is not None:
        words = f"exit status {state.exit_status}"
    else:
        words = "ended, exit status not known"
    if state.started is None or state.ended is None:
        return words
    return f"{words} after {units.elapsed(state.ended - state.started)}"
