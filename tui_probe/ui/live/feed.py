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
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from tui_probe.errors import TraceError
from tui_probe.launcher.control import Recording, RecordingSwitch
from tui_probe.probekit.record_counts import status_word
from tui_probe.trace.locate import LOG, is_trace, path_in_trace
from tui_probe.trace.run_info import mask_words
from tui_probe.ui.live.kernel_snapshots import KernelSnapshots

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from tui_probe.probekit.page_kinds import PageSet
    from tui_probe.trace.event_types import Device
    from tui_probe.trace.locate import Address
    from tui_probe.trace.model import Trace
    from tui_probe.ui.requests import HomeSources, OpenTrace, RerunRequest, SameKernel
    from tui_probe.verdicts.finding_summary import FindingSummary
    from tui_probe.verdicts.kernel_snapshot import KernelSnapshot

INTERVAL = 0.5
MAX_INTERVAL = 0.2
"""Seconds of reading after which no further trace is begun with before the next look."""
READING = 0.1
"""Seconds for which folders of kernels are read between two looks at what is wanted."""
RESTING = 0.05
"""Seconds for which none are read after a key."""
RETURN_INTERVAL = 120.0
"""Seconds between two calls of ``return_free_memory``."""
MIN_FREE_BYTES = 1 << 16


class LiveTarget(Protocol):
    """A program that was started under the hook. All may be called from any thread; signals are sent immediately."""

    @property
    def command(self) -> Sequence[str]:
        """The program and its arguments."""

    @property
    def simulated(self) -> bool:
        """True if it runs on the simulated GPU."""

    @property
    def started(self) -> float:
        """Time in seconds since 1970."""

    @property
    def stdout_path(self) -> Path:
        """The file that receives its standard output."""

    @property
    def stderr_path(self) -> Path:
        """The file that receives its standard error."""

    def poll(self) -> int | None:
        """None while it runs, then its exit status, or minus the number of the signal that ended it."""

    def interrupt(self) -> None:
        """Send SIGINT to its process group, as a terminal does on ctrl+c."""

    def terminate(self) -> None:
        """Send SIGTERM to its process group."""

    def kill(self) -> None:
        """Send SIGKILL to its process group."""

    def leave(self) -> None:
        """Let it continue when the screen ends."""

    def trace_directories(self) -> list[Path]:
        """The trace directories that its processes have made so far, the oldest first."""


@dataclass
class Session:
    """Input of the screen: a target that runs, or trace directories that exist."""

    target: LiveTarget | None = None
    traces: tuple[Path, ...] = ()
    imported: PageSet | None = None
    """Files of another profiler, shown instead."""
    home: HomeSources | None = None
    """The home screen, shown instead."""
    from_home: bool = False
    """True if it was opened from the home screen, which appears again afterwards."""
    watching: bool = False
    """Someone else started the run: say so, and when it ends."""
    at: Address | None = None
    """The kernel and the launch to begin at, if it names any."""
    begin: SameKernel | None = None
    """The kernel of a former run from which the target was asked for: begin there."""
    notice: str = ""
    """Text about what is opened, shown once it is read."""
    again: RerunRequest | OpenTrace | None = None
    """The run to start, or the trace to open, after the screen has ended."""


@dataclass(frozen=True)
class ProcessView:
    """One process that launched kernels. ``problem`` says why its trace cannot be read.

    ``trace`` keeps growing in the thread that follows it: its results may be read up to number ``results``.
    """

    directory: Path
    kernels: tuple[KernelSnapshot, ...] = ()
    trace: Trace | None = None
    devices: tuple[Device, ...] = ()
    probed: int = 0
    probe: str = ""
    launches: int = 0
    launches_probed: int = 0
    results: int = 0
    bytes_written: int = 0
    dropped: int | None = None
    problem: str = ""
    damage: tuple[str, ...] = ()
    """Files of the trace that are damaged."""

    @property
    def event_log(self) -> Path:
        return self.directory / LOG


@dataclass(frozen=True)
class Snapshot:
    """Everything at one moment. ``status`` is an exit status, or minus a signal; None while running or unknown.

    ``pid`` is the process of the command, None where only its launcher, or no one, knows.
    """

    processes: tuple[ProcessView, ...] = ()
    command: str = ""
    pid: int | None = None
    running: bool = False
    status: int | None = None
    started: float | None = None
    ended: float | None = None
    simulated: bool = False
    benchmark: bool = False
    stdout: Path | None = None
    stderr: Path | None = None
    recording: Recording | None = None
    """The switch and the budgets of the run; None where it cannot be reached, or has ended."""
    no_room: bool = False
    """The disk of the traces is, or was, full: not everything is kept."""
    loaded: bool = False
    failure: str = ""
    """The reason why the program ended with an error; "" if it did not, or nothing is known."""


class _Trace:
    """A trace that is followed: its reader, rows of its kernels, and the view of its process."""

    def __init__(self, directory: Path) -> None:
        from tui_probe.trace.follow import TraceFollower  # the first frame needs no reader of logs

        self.follower = TraceFollower(directory)
        self.rows = KernelSnapshots()
        self.view = ProcessView(directory)
        self.begun = False
        self.new_findings: deque[tuple[Trace, Mapping[int, FindingSummary]]] = deque()

    def poll(self) -> bool:
        self.begun = True
        follower = self.follower
        trace_before = follower.trace
        try:
            changed = follower.poll()
        except (TraceError, OSError) as error:
            problem = str(error)
            changed = problem != self.view.problem
            self.view = replace(self.view, problem=problem)
            return changed
        trace = follower.trace
        if trace is not trace_before:
            self.rows.clear()
            gc.unfreeze()
        # A kernel that is still being prepared can gain a folder without a further line in the log.
        self.rows.update(trace, follower.changed)
        changed = self._take_findings() or changed
        if changed or self.view.problem:
            self._make_view()
        return changed

    def _take_findings(self) -> bool:
        """Put new findings into the rows; return whether there were any of the trace that is followed."""
        taken = False
        while self.new_findings:
            trace, findings = self.new_findings.popleft()
            if trace is self.follower.trace:
                self.rows.take_findings(findings)
                taken = True
        return taken

    def read_rows(self, wanted: Iterable[int], enough: Callable[[], bool]) -> bool:
        """Read folders of kernels; return whether there were any to read."""
        read = self.rows.read(self.follower.trace, wanted, enough)
        if read:
            self._make_view()
        return read

    def _make_view(self) -> None:
        trace, rows = self.follower.trace, self.rows.all()
        state = trace.state
        self.view = ProcessView(
            directory=self.follower.directory,
            kernels=rows,
            trace=trace,
            devices=tuple(state.devices.values()),
            probed=sum(
                status_word(row.status, row.launches, row.launches_probed, row.results) == "probed" for row in rows
            ),
            probe=(trace.run_info.probe if trace.run_info else None) or "",
            launches=state.launches,
            launches_probed=state.launches_probed,
            results=state.results,
            bytes_written=state.bytes_written,
            dropped=state.launches_dropped,
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
        self._traces: dict[Path, _Trace] = {}
        self._ended: float | None = None
        self._wake = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="tui-probe-feed", daemon=True)
        self.failure: Exception | None = None
        self._failed: tuple[int, str] | None = None
        """Status of the program, and why it failed."""
        self.switch = RecordingSwitch()
        self._rest_until = 0.0
        self._given_back = time.monotonic()
        self.wanted: tuple[int, ...] = ()
        """The kernels whose folders are read first: those visible."""
        self.loaded: Callable[[], object] | None = None
        """Called once, in the thread, when there is something to show."""

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def stop(self) -> None:
        """Stop following; the thread ends by itself, since a read may hang on a dead file system."""
        self._stopped = True
        self._wake.set()

    def _run(self) -> None:
        try:
            while not self._stopped:
                self.poll()
                if self.loaded is not None:
                    self.loaded()
                    self.loaded = None
                    gc.freeze()  # looking through a large trace for garbage takes longer than a key may
                due = time.monotonic() + self._interval
                while not self._stopped and time.monotonic() < due and self.read_rows():
                    if self._rests():
                        self._wake.wait(RESTING)
                self._give_back(due)
                self._wake.wait(max(0.0, due - time.monotonic()))
                self._wake.clear()
        except Exception as error:  # noqa: BLE001 - raised again by the screen, in the event loop
            self.failure = error

    def _give_back(self, now: float) -> None:
        if now > self._given_back + RETURN_INTERVAL:
            return_free_memory()
            self._given_back = now

    def add_findings(self, process: ProcessView, findings: Mapping[int, FindingSummary]) -> None:
        """Show findings of kernels of a process, by index of the kernel, from the next snapshot on."""
        trace = self._traces.get(process.directory)
        if trace is not None and process.trace is not None:
            trace.new_findings.append((process.trace, findings))

    def rest(self) -> None:
        """Note a pressed key: its action goes before reading directories that no one waits for."""
        self._rest_until = time.monotonic() + RESTING

    def _rests(self) -> bool:
        return time.monotonic() < self._rest_until

    def poll(self) -> None:
        """Read what is new and replace ``latest`` if anything changed."""
        target = self.session.target
        status = target.poll() if target else None  # before the logs: they are complete once it has ended
        for directory in target.trace_directories() if target else self._directories():
            self._traces.setdefault(directory, _Trace(directory))
        self._poll_traces()
        self._publish(status)

    def read_rows(self) -> bool:
        """Read folders of kernels for a moment; return whether there were any to read."""
        until = time.monotonic() + READING

        def enough() -> bool:
            return self._rests() or time.monotonic() > until

        read = [trace for trace in self._traces.values() if trace.read_rows(self.wanted, enough)]
        if read:
            self._publish(self.latest.status)
        return bool(read)

    def _publish(self, status: int | None) -> None:
        target = self.session.target
        snapshot = self._of_target(target, status) if target else self._of_traces()
        full = snapshot.running and snapshot.stdout is not None and is_full(snapshot.stdout.parent)
        snapshot = replace(
            snapshot,
            recording=self.switch.look(self._traces) if snapshot.running else None,
            failure=self._failure(snapshot),
        )
        if full or self.latest.no_room:
            snapshot = replace(snapshot, no_room=True)
        if snapshot != self.latest:
            self.latest = snapshot

    def _failure(self, snapshot: Snapshot) -> str:
        """Read why the program failed, once after its end."""
        if snapshot.running or not snapshot.status or snapshot.stderr is None:
            return ""
        if not self._failed or self._failed[0] != snapshot.status:
            from tui_probe.launcher.diagnosis import failure_text

            self._failed = snapshot.status, failure_text(snapshot.stderr, snapshot.status)
        return self._failed[1]

    def _poll_traces(self) -> None:
        """Read what is new in each, and begin with others while there is time: no one waits for all of a large run."""
        new = [trace for trace in self._traces.values() if not trace.begun]
        for trace in self._traces.values():
            if trace.begun:
                trace.poll()
        end = time.monotonic() + MAX_INTERVAL
        for place, trace in enumerate(new):
            if place == 0 or time.monotonic() < end:
                trace.poll()

    def _directories(self) -> list[Path]:
        """The traces that were asked for, and those of other processes of the run that run.json of the first names."""
        directories = list(self.session.traces)
        first = self._traces.get(directories[0])
        info = first.follower.trace.run_info if first else None
        others = (path_in_trace(directories[0].parent, name) for name in (info.processes if info else ()))
        return directories + [
            path for path in others if path is not None and path not in directories and is_trace(path)
        ]

    def _views(self) -> tuple[ProcessView, ...]:
        return tuple(trace.view for trace in self._traces.values())

    def _of_target(self, target: LiveTarget, status: int | None) -> Snapshot:
        if status is not None and self._ended is None:
            self._ended = self._clock()
        return Snapshot(
            processes=self._views(),
            command=" ".join(mask_words(target.command)),  # others may look at this terminal
            running=status is None,
            status=status,
            started=target.started,
            ended=self._ended,
            simulated=target.simulated,
            benchmark=self._benchmark(),
            stdout=target.stdout_path,
            stderr=target.stderr_path,
            loaded=True,
        )

    def _of_traces(self) -> Snapshot:
        states = [trace.follower.trace.state for trace in self._traces.values()]
        first, home = states[0], next(iter(self._traces))
        info = next(iter(self._traces.values())).follower.trace.run_info
        # How the command ended; the first trace may be of only one of its processes.
        ending = info if info is not None and info.ended is not None else first
        return Snapshot(
            processes=self._views(),
            command=(" ".join(info.command) if info is not None else "") or first.command,
            pid=first.pid if info is None or info.pid is None else info.pid,
            running=any(state.running for state in states),
            status=ending.exit_status if ending.signal is None else -ending.signal,
            started=first.started,
            ended=ending.ended,
            simulated=any(state.simulated for state in states),
            benchmark=self._benchmark(),
            stdout=home / "stdout.log",
            stderr=home / "stderr.log",
            loaded=True,
        )

    def _benchmark(self) -> bool:
        return any(trace.follower.trace.state.benchmark for trace in self._traces.values())
