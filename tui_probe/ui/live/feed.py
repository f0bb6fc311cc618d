"""Feed of the live screen: snapshots of a run and its traces, kept up to date by a thread.

The thread reads; the screen takes ``Feed.latest``, which is replaced as a whole: only the newest state matters, and
none can pile up.
"""

from __future__ import annotations

import ctypes
import gc
import os
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from tui_probe.errors import TraceError
from tui_probe.launcher.control import RecordingSwitch
from tui_probe.probekit.record_counts import status_word
from tui_probe.trace.locate import is_trace, path_in_trace
from tui_probe.trace.run_info import mask_words
from tui_probe.ui.live.snapshots import KernelSnapshots, ProcessView, Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from tui_probe.trace.model import Trace
    from tui_probe.ui.session import LiveTarget, Session
    from tui_probe.verdicts.finding_summary import FindingSummary

INTERVAL = 0.5
"""Seconds between two polls of the traces."""
MAX_POLL_SECONDS = 0.2
"""Seconds of a poll after which it begins to read no further trace: the others begin with the next poll."""
READ_SECONDS = 0.1
"""Seconds for which directories of kernels are read before ``Feed.visible_indices`` is read again."""
REST_SECONDS = 0.05
"""Seconds after a key in which no directory is read: its action goes first."""
RETURN_INTERVAL = 120.0
"""Seconds between two calls of ``return_free_memory``."""
MIN_FREE_BYTES = 1 << 16
"""Free bytes of a disk below which a line of the log may not fit any more."""


class _FollowedTrace:
    """Reader of a growing trace, the rows of its kernels, and the view of its process."""

    def __init__(self, directory: Path) -> None:
        from tui_probe.trace.follow import TraceFollower  # the first frame needs no reader of logs

        self.follower = TraceFollower(directory)
        self.rows = KernelSnapshots()
        self.view = ProcessView(directory)
        self.has_begun = False
        self.new_findings: deque[tuple[Trace, Mapping[int, FindingSummary]]] = deque()

    def poll(self) -> bool:
        self.has_begun = True
        follower = self.follower
        trace_before = follower.trace
        try:
            has_changed = follower.poll()
        except (TraceError, OSError) as error:
            problem = str(error)
            has_changed = problem != self.view.problem
            self.view = replace(self.view, problem=problem)
            return has_changed
        trace = follower.trace
        if trace is not trace_before:
            self.rows.clear()
            gc.unfreeze()
        # A kernel that is still being prepared can gain a folder without a further line in the log.
        self.rows.update(trace, follower.changed_kernels)
        has_changed = self._take_findings() or has_changed
        if has_changed or self.view.problem:
            self._make_view()
        return has_changed

    def _take_findings(self) -> bool:
        """Put new findings into the rows; return whether there were any of the trace that is followed."""
        has_taken = False
        while self.new_findings:
            trace, findings = self.new_findings.popleft()
            if trace is self.follower.trace:
                self.rows.take_findings(findings)
                has_taken = True
        return has_taken

    def read_rows(self, preferred_indices: Iterable[int], should_stop: Callable[[], bool]) -> bool:
        """Read directories of kernels; return whether there were any to read."""
        has_read = self.rows.read_folders(self.follower.trace, preferred_indices, should_stop)
        if has_read:
            self._make_view()
        return has_read

    def _make_view(self) -> None:
        trace, rows = self.follower.trace, self.rows.all_rows()
        state = trace.state
        self.view = ProcessView(
            directory=self.follower.directory,
            kernels=rows,
            trace=trace,
            devices=tuple(state.devices.values()),
            probed_kernels=sum(
                status_word(row.status, row.launches, row.launches_probed, row.results) == "probed" for row in rows
            ),
            probe=(trace.run_info.probe if trace.run_info else None) or "",
            launches=state.launches,
            launches_probed=state.launches_probed,
            results=state.results,
            bytes_written=state.bytes_written,
            dropped_launches=state.launches_dropped,
            damage=trace.damage,
        )


def is_full(folder: Path) -> bool:
    """Return whether a directory has no room for files; False where the file system does not report it."""
    try:
        room = os.statvfs(folder)
    except OSError:
        return False
    return room.f_blocks > 0 and room.f_bavail * room.f_frsize < MIN_FREE_BYTES


def return_free_memory() -> None:
    """Return free pages to the system if the C library (glibc) can: by itself it does so only at the heap's end."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


class Feed:
    """Follows the target and its traces in a thread. ``latest`` is safe to read from any thread."""

    def __init__(self, session: Session, interval: float = INTERVAL, clock: Callable[[], float] = time.time) -> None:
        self.session = session
        self.latest = Snapshot()
        self._interval = interval
        self._clock = clock
        self._traces: dict[Path, _FollowedTrace] = {}
        self._end_time: float | None = None
        self._wake = threading.Event()
        self._is_stopped = False
        self._thread = threading.Thread(target=self._follow_traces, name="tui-probe-feed", daemon=True)
        self.failure: Exception | None = None
        self._diagnosis: tuple[int, str] | None = None
        """Exit status of the program, and the text of ``Snapshot.failure``, which is read once."""
        self.switch = RecordingSwitch()
        self._rest_until = 0.0
        self._memory_returned_at = time.monotonic()
        self.wanted: tuple[int, ...] = ()
        """Indices of the kernels whose directories are read first: those that are visible."""
        self.on_loaded: Callable[[], object] | None = None
        """Called once, in the thread, when there is something to show."""

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def stop(self) -> None:
        """Stop following; the thread ends by itself, since a read may hang on a dead file system."""
        self._is_stopped = True
        self._wake.set()

    def _follow_traces(self) -> None:
        try:
            while not self._is_stopped:
                self.poll()
                if self.on_loaded is not None:
                    self.on_loaded()
                    self.on_loaded = None
                    gc.freeze()  # looking through a large trace for garbage takes longer than a key may
                next_poll = time.monotonic() + self._interval
                while not self._is_stopped and time.monotonic() < next_poll and self.read_rows():
                    if self._is_resting():
                        self._wake.wait(REST_SECONDS)
                self._return_memory(next_poll)
                self._wake.wait(max(0.0, next_poll - time.monotonic()))
                self._wake.clear()
        except Exception as error:  # noqa: BLE001 - raised again by the screen, in the event loop
            self.failure = error

    def _return_memory(self, now: float) -> None:
        if now > self._memory_returned_at + RETURN_INTERVAL:
            return_free_memory()
            self._memory_returned_at = now

    def add_findings(self, process: ProcessView, findings: Mapping[int, FindingSummary]) -> None:
        """Show findings of kernels of a process, by index of the kernel, from the next snapshot on."""
        trace = self._traces.get(process.directory)
        if trace is not None and process.trace is not None:
            trace.new_findings.append((process.trace, findings))

    def rest(self) -> None:
        """Note a pressed key: its action goes before reading directories that no one waits for."""
        self._rest_until = time.monotonic() + REST_SECONDS

    def _is_resting(self) -> bool:
        return time.monotonic() < self._rest_until

    def poll(self) -> None:
        """Read what is new and replace ``latest`` if anything changed."""
        target = self.session.target
        status = target.poll() if target else None  # before the logs: they are complete once it has ended
        for directory in target.trace_directories() if target else self._directories():
            self._traces.setdefault(directory, _FollowedTrace(directory))
        self._poll_traces()
        self._publish(status)

    def read_rows(self) -> bool:
        """Read directories of kernels for ``READING`` seconds; return whether there were any to read."""
        deadline = time.monotonic() + READ_SECONDS

        def should_stop() -> bool:
            return self._is_resting() or time.monotonic() > deadline

        read_traces = [trace for trace in self._traces.values() if trace.read_rows(self.wanted, should_stop)]
        if read_traces:
            self._publish(self.latest.status)
        return bool(read_traces)

    def _publish(self, status: int | None) -> None:
        target = self.session.target
        snapshot = self._target_snapshot(target, status) if target else self._traces_snapshot()
        is_disk_full = snapshot.is_running and snapshot.stdout is not None and is_full(snapshot.stdout.parent)
        snapshot = replace(
            snapshot,
            recording=self.switch.look(self._traces) if snapshot.is_running else None,
            failure=self._failure_text(snapshot),
        )
        if is_disk_full or self.latest.no_room:
            snapshot = replace(snapshot, no_room=True)
        if snapshot != self.latest:
            self.latest = snapshot

    def _failure_text(self, snapshot: Snapshot) -> str:
        """Read why the program failed, once after its end."""
        if snapshot.is_running or not snapshot.status or snapshot.stderr is None:
            return ""
        if not self._diagnosis or self._diagnosis[0] != snapshot.status:
            from tui_probe.launcher.diagnosis import failure_text

            self._diagnosis = snapshot.status, failure_text(snapshot.stderr, snapshot.status)
        return self._diagnosis[1]

    def _poll_traces(self) -> None:
        """Read new lines of each log; begin with further logs for ``MAX_INTERVAL``, so that a large run shows early."""
        new_traces = [trace for trace in self._traces.values() if not trace.has_begun]
        for trace in self._traces.values():
            if trace.has_begun:
                trace.poll()
        deadline = time.monotonic() + MAX_POLL_SECONDS
        for place, trace in enumerate(new_traces):
            if place == 0 or time.monotonic() < deadline:
                trace.poll()

    def _directories(self) -> list[Path]:
        """Return the traces of the session, then those of other processes, which run.json of the first one names."""
        directories = list(self.session.traces)
        first_trace = self._traces.get(directories[0])
        info = first_trace.follower.trace.run_info if first_trace else None
        process_paths = (path_in_trace(directories[0].parent, name) for name in (info.processes if info else ()))
        return directories + [
            path for path in process_paths if path is not None and path not in directories and is_trace(path)
        ]

    def _views(self) -> tuple[ProcessView, ...]:
        return tuple(trace.view for trace in self._traces.values())

    def _target_snapshot(self, target: LiveTarget, status: int | None) -> Snapshot:
        if status is not None and self._end_time is None:
            self._end_time = self._clock()
        return Snapshot(
            processes=self._views(),
            command=" ".join(mask_words(target.command)),  # others may look at this terminal
            is_running=status is None,
            status=status,
            start_time=target.started,
            end_time=self._end_time,
            simulated=target.simulated,
            benchmark=self._is_benchmark(),
            stdout=target.stdout_path,
            stderr=target.stderr_path,
            is_loaded=True,
        )

    def _traces_snapshot(self) -> Snapshot:
        states = [trace.follower.trace.state for trace in self._traces.values()]
        first_state, directory = states[0], next(iter(self._traces))
        info = next(iter(self._traces.values())).follower.trace.run_info
        # How the command ended; the first trace may be of only one of its processes.
        ending = info if info is not None and info.ended is not None else first_state
        return Snapshot(
            processes=self._views(),
            command=(" ".join(info.command) if info is not None else "") or first_state.command,
            pid=first_state.pid if info is None or info.pid is None else info.pid,
            is_running=any(state.is_running for state in states),
            status=ending.exit_status if ending.signal is None else -ending.signal,
            start_time=first_state.started,
            end_time=ending.ended,
            simulated=any(state.simulated for state in states),
            benchmark=self._is_benchmark(),
            stdout=directory / "stdout.log",
            stderr=directory / "stderr.log",
            is_loaded=True,
        )

    def _is_benchmark(self) -> bool:
        return any(trace.follower.trace.state.benchmark for trace in self._traces.values())
