"""State of a run in one line: its end, filters without a match, the previous run, and launches per second."""

from __future__ import annotations

import signal
from collections import deque
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.charts import column_chart
from tui_probe.draw.printable import printable
from tui_probe.draw.shorten import shorten
from tui_probe.probekit.record_counts import launches_text
from tui_probe.trace.kernel_status import ended_context
from tui_probe.trace.recent import find_previous_run
from tui_probe.ui import keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tui_probe.draw.spans import Line, Span
    from tui_probe.launcher.control import Recording
    from tui_probe.ui.live.snapshots import ProcessView, Snapshot
    from tui_probe.ui.views.view import ViewHost
    from tui_probe.verdicts.probe_coverage import UnmeasuredProbe

_NAME_CELLS: Final = 24
"""Cells of a kernel's name."""
WARN_AFTER = 5.0
"""Seconds in which kernels are launched and none matches the kernel filter, after which a running program is warned."""
_FILTER_CELLS: Final = 30
"""Cells of the kernel filter in the line of state."""


def elapsed_line(snapshot: Snapshot, now: float) -> Line:
    """Describe the state and duration of the run: ``● running 12 s``, ``✔ exit 0 after 3 s``."""
    if not snapshot.is_loaded:
        return ((" ◌ reading the trace", "warn"),)
    if snapshot.is_running:
        duration = "" if snapshot.start_time is None else " " + units.elapsed(now - snapshot.start_time)
        return ((f" ● running{duration}", "running"),)
    text, role = end_span(snapshot.status)
    if snapshot.start_time is not None and snapshot.end_time is not None:
        text += f" after {units.elapsed(snapshot.end_time - snapshot.start_time)}"
    return ((f" {text}", role),)


def state_line(
    snapshot: Snapshot,
    process: ProcessView | None,
    *,
    is_paused: bool = False,
    low_bandwidth: bool = False,
    remark: str = "",
) -> Line:
    """`` · [simulated] · 4 kernels (3 probed) · 120 launches · 1.2 MB written``; what matters most comes first.

    ``remark`` is a warning about all kernels.
    """
    parts: list[Span] = []
    if process is not None and (failure := _failed_kernels(process)):
        parts.append((failure, "failed"))
    parts += _run_states(snapshot, process)
    if is_paused:
        parts.append(("display paused: press Space to resume", "warn"))
    if low_bandwidth:
        parts.append(("low bandwidth", "note"))
    if process is not None and process.dropped_launches:
        parts.append((f"{units.counted(process.dropped_launches, 'result')} dropped", "warn"))
    if process is not None:
        parts += [(damage, "warn") for damage in process.damage]
    if remark:
        parts.append((remark, "warn"))
    if process is not None:
        parts += [*_unused_probes(process), *_totals(process)]
    return tuple(span for part in parts for span in ((" · ", "dim"), part))


def _run_states(snapshot: Snapshot, process: ProcessView | None) -> Iterator[Span]:
    """Yield states of the run that change what is recorded."""
    if snapshot.simulated:
        yield "[simulated]", "simulated"
    if snapshot.no_room:
        yield "disk full: results are dropped", "failed"
    if snapshot.recording is not None and not snapshot.recording.is_on:
        yield f"not recording: press {keys.key_of('record')} to resume", "warn"
    if snapshot.recording is not None and snapshot.recording.budget_names:
        yield _reached_budgets(snapshot.recording, process), "warn"


def _totals(process: ProcessView) -> Iterator[Span]:
    """Yield the numbers of kernels and launches, and the bytes written."""
    yield f"{units.counted(len(process.kernels), 'kernel')} ({units.count(process.probed_kernels)} probed)", ""
    yield launches_text(process.launches, process.launches_probed), ""
    yield f"{units.size(process.bytes_written)} written", ""


def _unused_probes(process: ProcessView) -> list[Span]:
    """The probes of the run without any result, if there are any."""
    if process.trace is None:
        return []
    # Needs NumPy, as traces do; the first frame has none.
    from tui_probe.verdicts.probe_coverage import unused_probes

    probes = unused_probes(process.trace)
    return [(unused_text(probes), "warn")] if probes else []


def unused_text(probes: Sequence[UnmeasuredProbe]) -> str:
    """``no result: PROBE (every kernel ran once, with other probes; --replay relaunches them)``."""
    names, reasons = ", ".join(printable(probe.probe) for probe in probes), {probe.reason for probe in probes}
    reason = printable(reasons.pop()) if len(reasons) == 1 else "for several reasons"
    return f"no result: {names} ({reason}; press {keys.key_of('again')} for --replay)"


def _failed_kernels(process: ProcessView) -> str:
    """The kernel that ended the GPU context, or how many may have; "" for none."""
    failed_rows = [row for row in process.kernels if ended_context(row.failures)]
    if len(failed_rows) == 1:
        return f"✘ #{failed_rows[0].index} {shorten(printable(failed_rows[0].demangled), _NAME_CELLS)} failed"
    return f"✘ {len(failed_rows)} kernels may have failed" if failed_rows else ""


def _reached_budgets(recording: Recording, process: ProcessView | None) -> str:
    """``budget reached: trace; raise with --max-trace-bytes; kept 64 of 20 000 launches of saxpy``."""
    from tui_probe.verdicts.run_outcome import largest_loss_text

    loss = "" if process is None or recording.budget_names == ("log",) else largest_loss_text(process.kernels)
    parts = (f"budget reached: {', '.join(recording.budget_names)}", f"raise with {', '.join(recording.options)}", loss)
    return "; ".join(filter(None, parts))


def end_span(status: int | None) -> tuple[str, str]:
    """Return text and role of the end of a process: ``exit 0``, ``killed by signal 15 (SIGTERM)``."""
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


def watch_notice(previous: Snapshot, snapshot: Snapshot) -> str:
    """Return the notice of a change between two snapshots of a run that is only watched; "" for none."""
    if snapshot.is_loaded and snapshot.is_running and not previous.is_loaded:
        return f"watching: press {keys.key_of('record')} to switch recording; Ctrl-Q leaves the program running"
    if not snapshot.is_loaded or snapshot.is_running:
        return ""
    if previous.is_running:
        return "the run has ended"
    return "" if previous.is_loaded else "this run has already ended"


def empty_table_text(snapshot: Snapshot, process: ProcessView | None) -> str:
    """Return the reason why the table is empty."""
    if process is not None and process.problem:
        return process.problem
    if not snapshot.is_loaded:
        return "reading the trace"
    if snapshot.is_running:
        return "waiting for the first kernel"
    if snapshot.failure:
        end, _ = end_span(snapshot.status)
        return f"no kernel was launched; {end}: {snapshot.failure}; press 0, then e, to see stderr"
    if process is not None and process.damage:
        return f"no kernel can be shown: {', '.join(process.damage)}"
    return "no kernel was launched; press 0, then o or e, to see the output (interactive programs need --no-ui)"


class KernelFilterWarning:
    """Warning that the kernel filter ``-k`` matches no kernel that was launched."""

    def __init__(self) -> None:
        self.state = ""
        """Text for the line of state; "" without a warning."""
        self._unmatched_start: float | None = None
        """Time from which on kernels were launched and none matches, in seconds; None if one matches."""

    def update(self, snapshot: Snapshot, now: float) -> str:
        """Return the warning once, with similar names; "" for none."""
        unmatched = self._unmatched_filter(snapshot)
        if unmatched is None:
            self.state, self._unmatched_start = "", None
            return ""
        self._unmatched_start = now if self._unmatched_start is None else self._unmatched_start
        if self.state or (snapshot.is_running and now < self._unmatched_start + WARN_AFTER):
            return ""
        self.state = f"-k {shorten(printable(unmatched), _FILTER_CELLS)} matches no kernel"
        return self._filter_warning(unmatched, snapshot)

    @classmethod
    def unmeasured_reason(cls, snapshot: Snapshot) -> str:
        """Return the reason if no kernel is probed: that of all kernels if they share one, else a general one."""
        unmatched = cls._unmatched_filter(snapshot)
        if unmatched is not None:
            return cls._filter_warning(unmatched, snapshot)
        return "no kernel is probed yet" if snapshot.is_running else "no kernel was probed"

    @staticmethod
    def _filter_warning(unmatched: str, snapshot: Snapshot) -> str:
        from tui_probe.pages.unprobed_kernels import kernel_filter_warning

        warning = kernel_filter_warning(
            unmatched, chain.from_iterable(process.kernels for process in snapshot.processes)
        )
        return warning.replace("no kernel", "no kernel so far", 1) if snapshot.is_running else warning

    @staticmethod
    def _unmatched_filter(snapshot: Snapshot) -> str | None:
        """Return the kernel filter if no process has launched a kernel that matches."""
        launching_processes = [process for process in snapshot.processes if process.kernels]
        if not launching_processes:
            return None
        from tui_probe.pages.unprobed_kernels import unmatched_kernel_filter

        filters = {
            unmatched_kernel_filter(process.trace, process.kernels)
            for process in launching_processes
            if process.trace is not None
        }
        return filters.pop() if len(filters) == 1 else None


class PreviousRunHint:
    """Hint that the command of the shown process ran before, and can be compared with that run."""

    def __init__(self, view_host: ViewHost) -> None:
        self._view_host = view_host
        self._directory: Path | None = None
        """Trace for which an earlier run was looked for last."""
        self.text = ""
        """The hint; "" if its command did not run before."""

    def update(self, snapshot: Snapshot, process: ProcessView | None) -> None:
        """Look for an earlier run in the background, as soon as this one has ended."""
        if process is None or snapshot.is_running or not snapshot.is_loaded or process.directory == self._directory:
            return
        self._directory, self.text = process.directory, ""
        self._view_host.tables.submit((self, "before"), partial(find_previous_run, process.directory), self._take)

    def _take(self, previous_run: Path | None) -> None:
        self.text = "" if previous_run is None else f"{keys.key_of('again')}: compare with the previous run"


SAMPLES: Final = 12
"""Samples in the chart."""
_MIN_SECONDS: Final = 0.4
"""Time between two samples."""


class LaunchRate:
    """Launches per second, from their number at each frame; without new launches no sample is added."""

    def __init__(self) -> None:
        self.samples: deque[float] = deque(maxlen=SAMPLES)
        self._launches: int | None = None
        """Number of launches at the last sample."""
        self._sampled_at = 0.0
        """Time of the last sample in seconds."""

    def update(self, launches: int, now: float) -> None:
        """Add a sample, if there were launches since the last one."""
        if self._launches is None or launches < self._launches:
            self._launches, self._sampled_at = launches, now
        elif launches > self._launches and now - self._sampled_at >= _MIN_SECONDS:
            self.samples.append((launches - self._launches) / (now - self._sampled_at))
            self._launches, self._sampled_at = launches, now

    def line(self) -> Line:
        """Return ``launches/s ▁▂▆▇ 4 120``; nothing before the first sample."""
        if not self.samples:
            return ()
        chart = column_chart(list(self.samples), SAMPLES, maximum=max(self.samples))[0]
        return (("launches/s ", "dim"), (chart, "ramp5"), (f" {units.count(round(self.samples[-1]))}", ""))
