"""The state of a run in one line."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import safe
from tui_probe.pages.budgets import kept_of
from tui_probe.pages.launch_counts import launches_told
from tui_probe.trace.failures import ended_context

if TYPE_CHECKING:
    from tui_probe.draw.spans import Line, Span
    from tui_probe.ui.feed import ProcessView, Snapshot
    from tui_probe.ui.recording import Recording

_NAME: Final = 24
"""Cells of a kernel's name."""


def elapsed_line(snapshot: Snapshot, now: float) -> Line:
    """Whether it runs, and for how long: ``● running 12 s``, ``✔ exit 0 after 3 s``."""
    if not snapshot.loaded:
        return ((" ◌ reading the trace", "warn"),)
    if snapshot.running:
        since = "" if snapshot.started is None else " " + units.elapsed(now - snapshot.started)
        return ((f" ● running{since}", "running"),)
    words, role = ending(snapshot.status)
    if snapshot.started is not None and snapshot.ended is not None:
        words += f" after {units.elapsed(snapshot.ended - snapshot.started)}"
    return ((f" {words}", role),)


def state_line(
    snapshot: Snapshot,
    process: ProcessView | None,
    *,
    paused: bool = False,
    low_bandwidth: bool = False,
    remark: str = "",
) -> Line:
    """`` · [simulated] · 4 kernels (3 probed) · 120 launches · 1.2 MB written``; what matters most comes first.

    ``remark`` is what is wrong with all kernels.
    """
    parts: list[Span] = []
    if process is not None and (failed := _failed(process)):
        parts.append((failed, "failed"))
    if snapshot.simulated:
        parts.append(("[simulated]", "simulated"))
    if snapshot.no_room:
        parts.append(("disk full: not all is kept", "failed"))
    if snapshot.recording is not None and not snapshot.recording.on:
        parts.append(("not recording: R resumes", "warn"))
    if snapshot.recording is not None and snapshot.recording.reached:
        parts.append((_budgets_told(snapshot.recording, process), "warn"))
    if paused:
        parts.append(("display paused: Space resumes", "warn"))
    if low_bandwidth:
        parts.append(("low bandwidth", "note"))
    if process is not None and process.dropped:
        parts.append((f"{units.counted(process.dropped, 'result')} dropped", "warn"))
    if remark:
        parts.append((remark, "warn"))
    if process is not None:
        kernels = units.counted(len(process.kernels), "kernel")
        parts.append((f"{kernels} ({units.count(process.probed)} probed)", ""))
        parts.append((launches_told(process.launches, process.launches_probed), ""))
        parts.append((f"{units.size(process.bytes_written)} written", ""))
    return tuple(span for part in parts for span in ((" · ", "dim"), part))


def _failed(process: ProcessView) -> str:
    """The kernel that ended the GPU context, or how many may have; "" for none."""
    failed = [row for row in process.kernels if ended_context(row.failures)]
    if len(failed) == 1:
        return f"✘ #{failed[0].index} {shorten(safe(failed[0].demangled), _NAME)} failed"
    return f"✘ {len(failed)} kernels may have failed" if failed else ""


def _budgets_told(recording: Recording, process: ProcessView | None) -> str:
    """``budget reached: trace; raise with --max-trace-bytes; kept 64 of 20 000 launches of saxpy``."""
    kept = "" if process is None or recording.reached == ("log",) else kept_of(process.kernels)
    told = (f"budget reached: {', '.join(recording.reached)}", f"raise with {', '.join(recording.options)}", kept)
    return "; ".join(filter(None, told))


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
