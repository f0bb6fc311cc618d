"""Supervisor: a process in its own session that owns a run under the screen until the program has ended."""

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
from tui_probe.trace.recent import remember

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
    def cut(self) -> bool:
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
        self._keepers = [OutputLog(log, session.options.output_limit()) for log in (self.stdout_path, self.stderr_path)]
        self._target = self._start()

    def _start(self) -> TargetProcess:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        stdin = os.open(os.devnull, os.O_RDONLY)
        ends = [stdin, *(keeper.target_end for keeper in self._keepers)]
        try:
            return self._session.start(StandardStreams(*ends), SignalScope.SESSION, mask)
        finally:
            for descriptor in ends:
                os.close(descriptor)

    @property
    def pid(self) -> int:
        return self._target.pid

    def poll(self) -> int | None:
        """None while it runs, then its exit status, or minus the number of the signal that ended it."""
        with self._lock:
            returncode = self._target.poll()
            if returncode is None:
                self._session.poll()
            elif not self._finished:
                self._finished = True
                complete = [keeper.finish(OUTPUT_SECONDS) for keeper in self._keepers]
                cut = any(keeper.cut for keeper in self._keepers)
                self._session.finish(returncode, output_kept=cut or all(complete), cut=cut)
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

    def forward(self, number: int) -> None:
        """A signal that reached those who started it."""
        self._target.send(number)

    def send_to_group(self, number: int) -> None:
        """A signal for every process of its group, as from a terminal."""
        self._target.send_to_group(number)


# A process of its own session that holds a run under the screen: it lives until the target has ended.
#
# Anyone who started the run asks it over a socket, one line of JSON for each question and answer:
#
#     {"do": "poll"}                        {"returncode": null, "traces": [DIR...]}
#     {"do": "forward", "number": 15}       {}      a signal that reached the launcher
#     {"do": "group", "number": 2}          {}      a signal for every process of the target's group
#     {"do": "end"}                         what the run left (Outcome), once all of it is complete; the last answer
#
# The end of the connection means that no one waits any more: the program keeps running, and its traces are completed
# all the same.


class LineStream(Protocol):
    """Lines to read, and bytes to write."""

    def __iter__(self) -> Iterator[bytes]:
        """The lines that come in."""

    def write(self, data: bytes, /) -> object:
        """Write data, which ``flush`` sends."""

    def flush(self) -> object:
        """Send what was written."""


def become_supervisor(connection: socket.socket, options: RunOptions, probes: Sequence[ChosenProbe]) -> NoReturn:
    """Hold a run in a process that was just forked, and end. The first answer describes the run, or why there is
    none.
    """
    try:
        leave_terminal()
        with connection.makefile("rwb") as stream:
            try:
                supervise(stream, options, probes)
            except ProbeError as error:
                answer(stream, error_answer(error))
    except OSError:
        pass  # no one listens any more
    finally:
        os._exit(0)


def leave_terminal() -> None:
    """A session of our own, and no stream that a terminal, or a pipe's reader, would wait for."""
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def error_answer(error: ProbeError) -> dict[str, Any]:
    """An error as an answer."""
    status = error.status if isinstance(error, TargetError) else None
    return {"error": type(error).__name__, "text": str(error), "status": status}


def supervise(stream: LineStream, options: RunOptions, probes: Sequence[ChosenProbe]) -> None:
    """Start the target, and answer until no one asks any more and it has ended."""
    with Session(options, probes, announce=lambda _: None) as session:
        target = DetachedTarget(session)
        answer(stream, description(target, session))
        released = threading.Event()
        asked_for_end: list[bool] = []

        def serve() -> None:
            asked_for_end.append(answer_questions(stream, target))
            released.set()

        threading.Thread(target=serve, name="questions", daemon=True).start()
        target.wait()
        for trace in target.trace_directories():  # its screen may stay open for long
            remember(trace)
        released.wait()  # the screen may still show what is in the spool
        outcome = session.outcome()
    if asked_for_end[0]:
        answer(stream, outcome.words())


def description(target: DetachedTarget, session: Session) -> dict[str, Any]:
    """Return the facts that do not change while it runs."""
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
    """Answer until the connection ends. Return True if the end of the run was requested."""
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
                    target.forward(question["number"])
                    answer(stream, {})
                case "group":
                    target.send_to_group(question["number"])
                    answer(stream, {})
    except OSError:
        pass
    return False


def answer(stream: LineStream, words: dict[str, Any]) -> None:
    """Write one line."""
    stream.write(json.dumps(words).encode() + b"\n")
    stream.flush()
