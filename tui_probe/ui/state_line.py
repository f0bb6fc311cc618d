"""The state of a run in one line."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from tui_probe.render import units

if TYPE_CHECKING:
    from tui_probe.render.spans import Line, Span
    from tui_probe.ui.feed import ProcessView, Snapshot


def state_line(snapshot: Snapshot, process: ProcessView | None, now: float, *, paused: bool = False) -> Line:
    """``● running 12 s · 4 kernels (3 probed) · 120 launches · 1.2 MB written · simulated``, the end included."""
    if not snapshot.loaded:
        return (("◌ reading the trace", "warn"),)
    parts: list[Line] = [_running(snapshot, now)]
    if process is not None:
        probed = sum(row.status == "probed" for row in process.kernels)
        parts.append(((f"{units.counted(len(process.kernels), 'kernel')} ({units.count(probed)} probed)", ""),))
        parts.append(((units.counted(process.launches, "launch"), ""),))
        parts.append(((f"{units.size(process.bytes_written)} written", ""),))
        if process.dropped:
            parts.append(((f"{units.counted(process.dropped, 'result')} dropped", "warn"),))
    if snapshot.simulated:
        parts.append((("[simulated]", "simulated"),))
    if paused:
        parts.insert(0, (("display paused", "warn"),))
    if process is not None and process.problem:
        parts.append(((process.problem, "bad"),))
    spans: list[Span] = []
    for part in parts:
        spans += [(" · ", "dim"), *part] if spans else part
    return tuple(spans)


def _running(snapshot: Snapshot, now: float) -> Line:
    if snapshot.running:
        seconds = now - snapshot.started if snapshot.started is not None else None
        return ((f"● running {units.elapsed(seconds)}" if seconds is not None else "● running", "running"),)
    words, role = ending(snapshot.status)
    if snapshot.started is not None and snapshot.ended is not None:
        words += f" after {units.elapsed(snapshot.ended - snapshot.started)}"
    return ((words, role),)


def ending(status: int | None) -> tuple[str, str]:
    """How a process ended in words, and their role: ``exit 0``, ``killed by signal 15 (SIGTERM)``."""
    if status is None:
        return "○ ended, exit status unknown", "dim"
    if status == 0:
        return "✔ exit 0", "finished"
    if status > 0:
        return f"✘ exit {status}", "failed"
    try:
        name = f" ({signal.Signals(-status).name})"
    except ValueError:
        name = ""
    return f"✘ killed by signal {-status}{name}", "failed"
