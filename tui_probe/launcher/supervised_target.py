"""A program under the screen, owned by a supervisor process, so that it survives the screen, shell and terminal.

The supervisor is forked into a session of its own. It answers questions of the screen on a socket until the program
has ended, and completes the trace if the screen ends early.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

from tui_probe.errors import LaunchError, NoDriverError, ProbeError, TargetError
from tui_probe.trace.recent import remember

from . import signals
from .run_traces import Outcome
from .session import Session
from .target import SignalScope, StandardStreams, TargetProcess

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
        limit = session.options.output_limit()
        self._output_logs = [OutputLog(log, limit) for log in (self.stdout_path, self.stderr_path)]
        self._target = self._start()

    def _start(self) -> TargetProcess:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        stdin = os.open(os.devnull, os.O_RDONLY)
        ends = [stdin, *(log.target_end for log in self._output_logs)]
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
        with self._lock:  # any thread may ask, and the session ends once
            returncode = self._target.poll()
            if returncode is None:
                self._session.poll()
            elif not self._finished:
                self._finished = True
                complete = [log.finish(OUTPUT_SECONDS) for log in self._output_logs]
                cut = any(log.cut for log in self._output_logs)
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


_LOST: Final = -int(signal.SIGKILL)
"""Return code of a target whose supervisor was killed."""


class SupervisedTarget:
    """A target, started away from our terminal. Every method may be called from any thread.

    Raises LaunchError and its kind if it cannot be started.
    """

    def __init__(self, options: RunOptions, probes: Sequence[ChosenProbe]) -> None:
        self.command: Sequence[str] = options.command
        self.outcome = Outcome()
        """Outcome of the run, after ``wait``."""
        self.is_complete = False
        """True once it has ended and all of the run is written."""
        self.returncode = 0
        """Exit status as in Popen, after ``wait``."""
        self.runs = True
        """True if it ran at the last ``poll``."""
        self.is_left = False
        """True if it will continue without us."""
        self.root = options.trace_root
        """Directory of its traces, as the user named it."""
        self._lock = threading.Lock()
        self._traces: list[Path] = []
        ours, theirs = socket.socketpair()
        self._supervisor = os.fork()
        if not self._supervisor:
            ours.close()
            become_supervisor(theirs, options, probes)
        theirs.close()
        self._stream = ours.makefile("rwb")
        ours.close()
        about = self._first_answer()
        self.pid: int = about["pid"]
        self.simulated: bool = about["simulated"]
        self.started: float = about["started"]
        self.stdout_path, self.stderr_path = Path(about["stdout"]), Path(about["stderr"])
        self.first_trace = Path(about["first_trace"])
        self.no_trace: str | None = about["no_trace"]
        """Reason why nothing is recorded; None if it can be."""

    def _first_answer(self) -> dict[str, Any]:
        line = self._stream.readline()
        words: dict[str, Any] = json.loads(line) if line else {"error": "", "text": self._supervisor_lost_text()}
        if "error" not in words:
            return words
        self._let_go()
        if words["error"] == TargetError.__name__:
            raise TargetError(words["text"], words["status"])
        raise (NoDriverError if words["error"] == NoDriverError.__name__ else LaunchError)(words["text"])

    def _ask(self, what: str, **more: int) -> dict[str, Any] | None:
        """The answer; None if the supervisor is gone."""
        with self._lock:  # an answer belongs to the question before it
            try:
                self._stream.write(json.dumps({"do": what, **more}).encode() + b"\n")
                self._stream.flush()
                line = self._stream.readline()
            except (OSError, ValueError):  # ValueError: we have let go of it
                return None
        return json.loads(line) if line else None

    def _supervisor_lost_text(self) -> str:
        return f"the supervisor process of the run was killed ({self._supervisor}), so the trace is incomplete"

    def _let_go(self) -> None:
        """The supervisor has ended, or is about to."""
        self.detach()
        os.waitpid(self._supervisor, 0)

    def poll(self) -> int | None:
        """None while it runs, then its exit status, or minus the number of the signal that ended it."""
        state = self._ask("poll")
        self.runs = state is not None and state["returncode"] is None
        if state is None:
            return _LOST
        self._traces = [Path(trace) for trace in state["traces"]]
        returncode: int | None = state["returncode"]
        return returncode

    def wait(self, received: int = 0) -> None:
        """Forward ``received``, a signal that ended the screen (0: none), and wait until all is complete.

        Raises LaunchError if the supervisor is gone.
        """
        with signals.noted() as numbers, signals.held_back():
            numbers += [received] if received else []
            while (returncode := self.poll()) is None:
                signal_info = signal.sigtimedwait(signals.FORWARDED, 0 if numbers else signals.INTERVAL)
                numbers += [signal_info.si_signo] if signal_info else []
                while numbers:
                    self._forward(numbers.pop(0))
            left = self._ask("end")
            self._let_go()
            if left is None:
                raise LaunchError(self._supervisor_lost_text())
            self.outcome, self.returncode = Outcome.from_words(left), returncode
            self.is_complete = True

    def _forward(self, number: int) -> None:
        """Give the target a signal that reached us."""
        self._ask("forward", number=number)
        if number == signal.SIGTSTP:
            signals.stop_as_anyone_would()

    def detach(self) -> None:
        """Let it continue without us."""
        with contextlib.suppress(OSError):  # a question that could not be asked any more
            self._stream.close()

    def trace_directories(self) -> list[Path]:
        """The trace directories that its processes had made when ``poll`` was called last, the oldest first."""
        return list(self._traces)

    def trace_paths(self) -> list[Path]:
        """Paths of the traces, relative as the user named their root."""
        return [self.root / trace.name for trace in self._traces]

    def interrupt(self) -> None:
        """Send SIGINT to its process group, as a terminal does on ctrl+c."""
        self._ask("group", number=signal.SIGINT)

    def terminate(self) -> None:
        """Send SIGTERM to its process group."""
        self._ask("group", number=signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL to its process group."""
        self._ask("group", number=signal.SIGKILL)

    def leave(self) -> None:
        """Let it continue when the screen ends."""
        self.is_left = True
