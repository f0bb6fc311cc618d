"""One run: the engine, the target, and the traces that they leave."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from tui_probe.engine.cache import default_cache_directory
from tui_probe.probe_files.choices import reader_of
from tui_probe.toolchain import find_tools
from tui_probe.trace.run_info import mask_words
from tui_probe.trace.trace_directory import TraceDirectory
from tui_probe.trace.user_state import remember_command
from tui_probe.version import __version__

from .control import FILE, ControlPage, RecordingWindow
from .driver import find_driver, native_library
from .engine import HURRIED, STOP_LIMIT, Engine
from .environment import HookPaths, framework_settings, python_settings, target_environment
from .run_traces import Outcome, RunNotes, TraceWatch, disk_bytes, launcher_files, stamp_of, write_record
from .spool import Spool, mark_first_trace
from .stuck_processes import StuckProcesses
from .target import (
    SignalScope,
    StandardStreams,
    TargetProcess,
    check_command,
    raise_descriptor_limit,
    restore_descriptor_limit,
    start_target,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from tui_probe.probe_files.choices import ChosenProbe

    from .options import RunOptions

NO_ROOM = os.strerror(errno.ENOSPC)
_TOOLS_LOCK: Final = threading.Lock()
_CUT_ADVICE: Final = "to save more, raise --max-trace-bytes"


class Session:
    """A run from the engine's start to the last word of run.json; a context manager, which stops the engine.

    ``announce`` is called with the path of each trace directory when it appears; of the target's own before the target
    starts, if ``announces_early``. That directory is made before the target starts, and removed at the end if the
    target launched no kernel. ``ends_stuck`` writes a message to the user: with it, processes are ended whose launches
    do not end. Raises LaunchError and its kind.
    """

    def __init__(
        self,
        options: RunOptions,
        probes: Sequence[ChosenProbe],
        announce: Callable[[Path], None],
        *,
        announces_early: bool = True,
        ends_stuck: Callable[[str], object] | None = None,
    ) -> None:
        check_command(options.command, os.environ.get("PATH"))
        self.options = options
        self.probes = probes
        self.driver = find_driver(options.driver, options.simulated, os.environ)
        self.started = time.time()
        self.target: TargetProcess | None = None
        self.first_trace: Path | None = None
        self.cache_counts: dict[str, int] | None = None
        """``hits`` and ``misses`` of the cache of prepared kernels, after the run; None without a cache."""
        self.incomplete: dict[Path, str] = {}
        """Traces, named as the user named their root, that could not be written whole, and why."""
        self.lost_output: list[str] = []
        """Streams that could not be passed on whole, and why."""
        self.program_failure: str | None = None
        """Cause of the program's failure, from the end of its stderr; None if it did not fail, or nothing is known."""
        self.untraced: list[str] = []
        """Reasons why kernels may have been launched without a trace."""
        self.messages: list[str] = []
        """Notices of the run for the user, in run.json."""
        self._announce = announce
        self._announces_early = announces_early
        self._first_is_announced = announces_early
        self._announce_lock = threading.Lock()
        self._hook = native_library("hook")
        self._folder = working_directory()
        self._limits = raise_descriptor_limit()
        self._root = absolute(options.trace_root)
        self.spool = Spool(self._root)
        self.control = _control_page(self.spool.folder, options, probes)
        self._window = RecordingWindow(self.control, options.after, options.duration)
        self._stuck = StuckProcesses(options.watchdog or 0.0, ends_stuck) if ends_stuck is not None else None
        self._start_seconds = time.monotonic()
        self._trace_bytes: dict[Path, int] = {}
        """Bytes of the launcher's files in each trace."""
        self._appended_bytes = 0
        """Bytes by which logs of kernels grew."""
        self._cupy_cache = (default_cache_directory("cupy") if options.cache else None) or self.spool.folder / "cupy"
        try:
            self._notes = RunNotes(self.spool.notes)
            self._watch = TraceWatch(self._root, self._notes)
            self._engine = Engine(probes, options, load_ptx=self.driver.simulated, log=self.spool.engine_log)
        except BaseException:
            self.spool.remove()
            raise
        remember_command(self._recorded_command, self._folder, ", ".join(options.probes))

    @cached_property
    def _reader(self) -> str:
        """The text of read.py, made next to the program."""
        return reader_of(self.probes)

    @property
    def _recorded_command(self) -> list[str]:
        """The command as run.json has it."""
        return list(self.options.command) if self.options.keep_secrets else mask_words(self.options.command)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._engine.stop(HURRIED if self.asked_to_end or self._notes.unanswered else STOP_LIMIT)
        self.spool.remove()

    @property
    def asked_to_end(self) -> bool:
        """True if a signal asked the target to end: nothing waits for long then."""
        return self.target is not None and self.target.asked_to_end

    @property
    def traces(self) -> list[Path]:
        """The trace directories that exist so far (absolute)."""
        return list(self._watch.traces)

    def trace_paths(self) -> list[Path]:
        """Paths of the traces, relative as the user named their root."""
        return [self.options.trace_root / trace.name for trace in self.traces]

    def _probes_for_traces(self) -> Path:
        """A folder of all probes as TOML, which a trace keeps no matter which language each was written in."""
        folder = self.spool.folder / "probes"
        folder.mkdir()
        for probe in self.probes:
            text = probe.path.read_text(encoding="utf-8")
            if probe.path.suffix == ".py":
                from tui_probe.probe_files.new_probe import to_toml  # most probes are not in this language

                text = to_toml(text, str(probe.path))
            with contextlib.suppress(OSError):  # a full disk; the trace has no room for it either
                (folder / f"{probe.name}.toml").write_text(text, encoding="utf-8")
        return folder

    def start(self, streams: StandardStreams, group: SignalScope, unblocked: Collection[int]) -> TargetProcess:
        """Start the target. ``unblocked`` is its signal mask."""
        stamp = stamp_of(self.started)
        folder = self._probes_for_traces()
        probe_file = self.probes[0].path  # which is still there for processes that start after the run's end
        probe_path = probe_file if probe_file.suffix == ".toml" else folder / f"{self.probes[0].name}.toml"
        ending = self.spool.ending
        paths = HookPaths(
            hook=self._hook,
            trace_root=self._root,
            socket=self._engine.socket,
            probe=probe_path,
            probes=folder,
            cupy_cache=self._cupy_cache,
            ending=ending,
            adjacent=self.spool.adjacent,
            notes=self.spool.notes,
            control=self.control.path,
        )
        environment = target_environment(os.environ, self.options, self.driver, paths, stamp, self.probes)
        root = self.options.trace_root
        self.target = start_target(
            self.options.command,
            environment,
            streams,
            group,
            unblocked,
            announce=lambda pid: self._prepare(root / f"{stamp}_{pid}"),
            ending=ending,
        )
        self._start_seconds = time.monotonic()
        self.first_trace = root / f"{stamp}_{self.target.pid}"
        self._watch.expect(self.first_trace.name)
        return self.target

    def _prepare(self, trace: Path) -> None:
        """Make the target's own trace, still empty, and announce it if that is to be first; in the new process."""
        restore_descriptor_limit(self._limits)
        if self.spool.problem:
            return
        mark_first_trace(self.spool.folder, trace.name)
        with contextlib.suppress(OSError):  # the hook will say why it cannot be made
            (self._root / trace.name).mkdir(0o700)
        if self._announces_early:
            self._announce(trace)

    def announce_first_trace(self) -> None:
        """Announce the target's own trace if that was not done; from any thread.

        It was made before the target started. That it is missing for a moment means that the hook puts its own there.
        """
        trace = self.first_trace
        if self._first_is_announced or trace is None or self.spool.problem:
            return
        with self._announce_lock:  # the thread that passes output on calls this, too
            if not self._first_is_announced:
                self._announce(trace)
            self._first_is_announced = True

    def poll(self) -> None:
        """Look for new trace directories, and give them the target's output and their run.json; tend the engine."""
        if revived := self._engine.revive():
            self.messages.append(revived)
        self._update_run()

    def _update_run(self) -> None:
        self.control["ending"] = self.target.end_requests if self.target is not None else 0
        self._window.tick(time.monotonic() - self._start_seconds)
        self._count_output()
        for trace in self._watch.poll():
            if self.first_trace is None or trace.name != self.first_trace.name:
                self._announce(self.options.trace_root / trace.name)
            else:
                self.announce_first_trace()
            self._update_trace(trace, None)
        if self._stuck is not None:
            self.messages += self._stuck.interrupt(self._notes.interrupted)
            self.messages += self._stuck.end(self._notes.stuck, time.monotonic())

    def _count_output(self) -> None:
        """Add the size of the copies of the target's output, and of what else we wrote, to the run's budget."""
        output = disk_bytes((self.spool.stdout, self.spool.stderr))
        self.control["launcher_bytes"] = output + sum(self._trace_bytes.values()) + self._appended_bytes

    def finish(self, returncode: int, *, is_output_kept: bool = True, is_truncated: bool = False) -> None:
        """Complete every trace after the target's end.

        ``is_output_kept``: stdout.log and stderr.log hold all it wrote, but for what is ``is_truncated`` by the budget.
        """
        from . import diagnosis  # see read_end_code

        self._update_run()
        if self.options.cache and self.traces:
            self.cache_counts = self._engine.cache_counts()
        if is_truncated and is_output_kept:
            self.messages.append(
                f"stdout.log and stderr.log end after {self.options.output_limit()} bytes: {_CUT_ADVICE}"
            )
        self.untraced = diagnosis.unseen_drivers(self.spool.adjacent, self.driver.path) + diagnosis.untraced(
            self._notes.failures
        )
        if self.first_trace is not None and self.first_trace.name not in {trace.name for trace in self.traces}:
            self.untraced += diagnosis.unreachable(self.options.command, os.environ.get("PATH"))
            with contextlib.suppress(OSError):  # it is not empty, or was moved away
                (self._root / self.first_trace.name).rmdir()
        if not self.traces:
            self.untraced += diagnosis.still_running()
        self.messages += self.untraced + self.lost_output
        self.program_failure = diagnosis.program_failure(self.spool.stderr, returncode, self.spool.stdout)
        for trace in self.traces:
            self._update_trace(trace, returncode)
            if not is_output_kept:
                self.incomplete.setdefault(self.options.trace_root / trace.name, NO_ROOM)

    def _update_trace(self, trace: Path, returncode: int | None) -> None:
        """Bring a trace up to date; one that cannot be written (moved away, disk full) must not stop the target."""
        try:
            if returncode is None:
                self.spool.link_into(trace)
            else:
                self.spool.copy_into(trace)
            with TraceDirectory(trace) as folder:
                if not folder.contains("read.py"):
                    folder.write("read.py", self._reader.encode())
            if returncode is not None:
                self._append_readers(trace)
            self._trace_bytes[trace] = disk_bytes(launcher_files(trace))
            self._count_output()
            write_record(trace, self.record(returncode))
        except OSError as error:
            self.incomplete[self.options.trace_root / trace.name] = error.strerror or str(error)
        else:
            self.incomplete.pop(self.options.trace_root / trace.name, None)

    def _append_readers(self, trace: Path) -> None:
        """Put the reader at the end of the ``process.log`` of each probed kernel.

        Not before the end: assemblers write to it as long as they work. Of several probes none: ``read.py`` has all.
        Nor where the budget of the run has no room for it.
        """
        if len(self.probes) > 1:
            return
        from tui_probe.probe_model.read_script import BEGIN_MARKER, with_markers  # see read_end_code

        text = with_markers(self._reader)
        for info in sorted(trace.glob("kernel/*/kernel.info")):
            log = info.with_name("process.log")
            bytes_before = disk_bytes([log])
            with contextlib.suppress(OSError), TraceDirectory(trace, "kernel", info.parent.name) as folder:
                if BEGIN_MARKER.encode() in folder.read(log.name):
                    continue
                if not self.control.budget("trace_bytes").has_room_for(len(text)):
                    return
                folder.append(log.name, text.encode())
            self._appended_bytes += disk_bytes([log]) - bytes_before
            self._count_output()

    def engine_failure(self) -> str | None:
        """Return why the engine is gone, or was given up; None while it runs."""
        if failure := self._engine.failure():
            return failure
        if not self._notes.unanswered:
            return None
        process = f"process {self._notes.unanswered[0]}"
        return f"the probe engine did not answer {process} within 1 s; later kernels ran unprobed"

    def outcome(self) -> Outcome:
        """Return the outcome of the run so far."""
        return Outcome(
            first_trace=self.first_trace,
            traces=self.trace_paths(),
            cache_counts=self.cache_counts,
            engine_failure=self.engine_failure(),
            asked_to_end=self.asked_to_end,
            messages=list(self.messages),
            untraced=list(self.untraced),
            lost_output=list(self.lost_output),
            program_failure=self.program_failure,
            no_trace=self.spool.problem,
            incomplete=dict(self.incomplete),
        )

    def record(self, returncode: int | None) -> dict[str, Any]:
        """The content of run.json; ``returncode`` as in Popen, None while the target runs."""
        settings = framework_settings(os.environ, self._hook, self._cupy_cache)
        settings += python_settings(os.environ)
        return {
            "version": 1,
            "command": self._recorded_command,
            "pid": None if self.target is None else self.target.pid,
            "launcher": os.getpid(),
            "cwd": self._folder,
            "started": iso(self.started),
            "ended": None if returncode is None else iso(time.time()),
            "exit_status": returncode if returncode is not None and returncode >= 0 else None,
            "signal": -returncode if returncode is not None and returncode < 0 else None,
            "probe": ", ".join(self.options.probes),
            "probes": [{"name": probe.name, "sample": probe.sample or None} for probe in self.probes],
            "options": self.options.record(),
            "driver": {"path": str(self.driver.path), "simulated": self.driver.simulated},
            "environment": [setting._asdict() for setting in settings],
            "cache": self.cache_counts,
            "budgets": self.control.record(),
            "engine_failure": self.engine_failure(),
            "messages": self.messages,
            "tool": {"version": __version__},
            "toolchain": toolchain(),
            "processes": [trace.name for trace in self.traces],
            "name": self.options.name,
            "program_failure": self.program_failure,
        }


def _control_page(folder: Path, options: RunOptions, probes: Sequence[ChosenProbe]) -> ControlPage:
    """Create the page that hooks read and count on, with recording off until ``--after`` has passed."""
    return ControlPage.create(
        folder / FILE,
        options.limits(),
        shares=options.shares,
        write_rate=options.max_write_rate,
        is_on=options.after <= 0,
        probes=[probe.name for probe in probes],
    )


def read_end_code() -> None:
    """Import the code that a run needs at its end: next to the program, not before its start."""
    import datetime  # noqa: F401

    import tui_probe.launcher.diagnosis
    import tui_probe.probe_model.read_script  # noqa: F401


def toolchain() -> dict[str, str | None]:
    """The assembler that the engine tries first; None where there is none. Any thread may ask first."""
    with _TOOLS_LOCK:
        tools = find_tools("ptxas")
    return {"ptxas": str(tools[0].path), "version": tools[0].version} if tools else {"ptxas": None, "version": None}


def working_directory() -> str:
    """The current directory; as the system names it where it was deleted, since the program can run there, too."""
    try:
        return str(Path.cwd())
    except OSError:
        return os.readlink("/proc/self/cwd")  # noqa: PTH115 - no path


def absolute(path: Path) -> Path:
    """An absolute path, also where the current directory was deleted: nothing can be made in that."""
    try:
        return path.absolute()
    except OSError:
        return Path("/proc/self/cwd", path)


def iso(seconds: float) -> str:
    """A time since the epoch in ISO 8601, local with its offset, to the millisecond."""
    from datetime import datetime  # see read_end_code

    return datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="milliseconds")
