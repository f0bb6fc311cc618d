"""The supervisor: a process that owns a run under the screen, and lives until the program has ended.

It is forked into a session of its own, so that the end of the screen, its shell or its terminal does not reach it. It
answers the screen on a socket, with one line of JSON per question and per answer::

    {"do": "poll"}                        {"returncode": null, "traces": [DIR...]}
    {"do": "forward", "number": 15}       {}      a signal that reached the launcher
    {"do": "group", "number": 2}          {}      a signal for every process of the program's group
    {"do": "end"}                         the outcome of the run (Outcome), once it is complete; the last answer

A connection that ends means that the screen has ended: the program keeps running, and the supervisor completes its
traces.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import threading
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from tui_probe.errors import ProbeError, TargetError
from tui_probe.trace.user_state import remember_opened

from . import signals
from .session import Session
from .target import SignalScope, StandardStreams, TargetProcess

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tui_probe.probe_files.choices import ChosenProbe

    from .options import RunOptions

OUTPUT_SECONDS = 0.5
"""Seconds after the end of the target in which the last of its output is awaited."""


class OutputLog:
    """Copies what is written to ``target_end`` to the end of ``log``.

    ``tee`` does so: it keeps reading when the log takes no more, where the target itself would fail to write.
    Without it the target writes into the log. ``limit``: bytes that ``tee`` keeps; None: all.
    """

    def __init__(self, log: Path, limit: int | None = None) -> None:
        self.log = log
        self._limit = limit
        log.touch()
        tee = shutil.which("tee")
        if tee is None:
            self.target_end = os.open(log, os.O_WRONLY | os.O_APPEND)
            self._process = None
            return
        reading, self.target_end = os.pipe()
        self._process = subprocess.Popen(
            [tee, "-a", "-i", str(log)], stdin=reading, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
            restore_signals=False,  # SIGXFSZ stays ignored: a log at its limit is one that takes no more
            preexec_fn=self._limit_files,
        )  # fmt: skip
        os.close(reading)

    def _limit_files(self) -> None:
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        if self._limit is not None and (hard == resource.RLIM_INFINITY or self._limit < hard):
            resource.setrlimit(resource.RLIMIT_FSIZE, (self._limit, hard))

    @property
    def is_truncated(self) -> bool:
        """True once the log has reached its limit."""
        return self._limit is not None and self.log.stat().st_size >= self._limit

    def finish(self, seconds: float) -> bool:
        """Wait for the end of the stream, unless other processes hold it open for longer. False if some was lost."""
        if self._process is None:
            return True
        try:
            return self._process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            return True


class DetachedTarget:
    """The session's target, started away from our terminal. Every method may be called from any thread."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._finished = False
        self.simulated = session.driver.simulated
        self.started = session.started
        self.stdout_path = session.spool.stdout
        self.stderr_path = session.spool.stderr
        limit = session.options.output_limit()
        self._output_logs = [OutputLog(log, limit) for log in (self.stdout_path, self.stderr_path)]
        self._target = self._start()

    def _start(self) -> TargetProcess:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        stdin = os.open(os.devnull, os.O_RDONLY)
        descriptors = [stdin, *(log.target_end for log in self._output_logs)]
        try:
            return self._session.start(StandardStreams(*descriptors), SignalScope.SESSION, mask)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    @property
    def pid(self) -> int:
        return self._target.pid

    def poll(self) -> int | None:
        """None while it runs, then its exit status, or minus the number of the signal that ended it."""
        with self._lock:  # the thread that waits and the one that answers both poll; the session may end only once
            returncode = self._target.poll()
            if returncode is None:
                self._session.poll()
            elif not self._finished:
                self._finished = True
                is_complete = [log.finish(OUTPUT_SECONDS) for log in self._output_logs]
                is_truncated = any(log.is_truncated for log in self._output_logs)
                self._session.finish(
                    returncode, is_output_kept=is_truncated or all(is_complete), is_truncated=is_truncated
                )
            return returncode

    def wait(self) -> int:
        """Wait for the target's end, forwarding signals. Returns ``Popen.returncode``."""
        with signals.held_back():
            returncode = signals.wait(self._target, self.poll)
        self.poll()
        return returncode

    def trace_directories(self) -> list[Path]:
        """The trace directories that its processes have made so far, the oldest first."""
        return self._session.traces

    def forward_signal(self, number: int) -> None:
        """Send the target a signal that reached the launcher."""
        self._target.send(number)

    def send_to_group(self, number: int) -> None:
        """Send a signal to every process of its group, as a terminal does."""
        self._target.send_to_group(number)


class LineStream(Protocol):
    """Lines to read, and bytes to write."""

    def __iter__(self) -> Iterator[bytes]:
        """The lines that come in."""

    def write(self, data: bytes, /) -> object:
        """Write data, which ``flush`` sends."""

    def flush(self) -> object:
        """Send what was written."""


def become_supervisor(connection: socket.socket, options: RunOptions, probes: Sequence[ChosenProbe]) -> NoReturn:
    """Own a run in the process that was just forked, then end it.

    The first answer describes the run, or the error that prevents it.
    """
    try:
        leave_terminal()
        with connection.makefile("rwb") as stream:
            try:
                supervise(stream, options, probes)
            except ProbeError as error:
                answer(stream, error_answer(error))
    except OSError:
        pass  # the screen has ended
    finally:
        os._exit(0)  # a copy of the launcher's process: its exit handlers and buffers are not ours to run or flush


def leave_terminal() -> None:
    """Begin a session of our own, with streams that keep neither a terminal nor the reader of a pipe waiting."""
    os.setsid()
    null_device = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null_device, descriptor)
    os.close(null_device)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def error_answer(error: ProbeError) -> dict[str, Any]:
    """Return an error as an answer; ``status`` is the exit status that it asks for."""
    status = error.status if isinstance(error, TargetError) else None
    return {"error": type(error).__name__, "text": str(error), "status": status}


def supervise(stream: LineStream, options: RunOptions, probes: Sequence[ChosenProbe]) -> None:
    """Start the target, and answer until it has ended and the connection has ended, or the outcome was requested."""
    with Session(options, probes, announce=lambda _: None) as session:
        target = DetachedTarget(session)
        answer(stream, description(target, session))
        released = threading.Event()
        outcome_requested = False

        def serve() -> None:
            nonlocal outcome_requested
            outcome_requested = answer_questions(stream, target)
            released.set()

        threading.Thread(target=serve, name="questions", daemon=True).start()
        target.wait()
        for trace in target.trace_directories():  # its screen may stay open for long
            remember_opened(trace)
        released.wait()  # the screen may still show what is in the spool
        outcome = session.outcome()
    if outcome_requested:  # set before ``released``
        answer(stream, outcome.to_json())


def description(target: DetachedTarget, session: Session) -> dict[str, Any]:
    """Return the first answer: facts that do not change while the target runs."""
    return {
        "pid": target.pid,
        "simulated": target.simulated,
        "started": target.started,
        "stdout": str(target.stdout_path),
        "stderr": str(target.stderr_path),
        "first_trace": str(session.first_trace),
        "no_trace": session.spool.problem,
    }


def answer_questions(stream: LineStream, target: DetachedTarget) -> bool:
    """Answer until the connection ends. Return True if the outcome of the run was requested."""
    try:
        for line in stream:
            question = json.loads(line)
            match question["do"]:
                case "end":
                    return True
                case "poll":
                    returncode = target.poll()
                    answer(stream, {"returncode": returncode, "traces": list(map(str, target.trace_directories()))})
                case "forward":
                    target.forward_signal(question["number"])
                    answer(stream, {})
                case "group":
                    target.send_to_group(question["number"])
                    answer(stream, {})
    except OSError:
        pass
    return False


def answer(stream: LineStream, message: dict[str, Any]) -> None:
    """Send one line of JSON."""
    stream.write(json.dumps(message).encode() + b"\n")
    stream.flush()
