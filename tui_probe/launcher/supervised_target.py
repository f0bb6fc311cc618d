"""The screen's side of a program that a supervisor process owns (``supervisor.py``): starts it, asks it, detaches."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tui_probe.errors import LaunchError, NoDriverError, TargetError

from . import signals
from .run_traces import Outcome
from .supervisor import become_supervisor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.probe_files.choices import ChosenProbe

    from .options import RunOptions

_LOST_RETURNCODE: Final = -int(signal.SIGKILL)
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
        # A fork, not a new interpreter: the supervisor needs all that is loaded here, and the program starts sooner.
        ours, theirs = socket.socketpair()
        self._supervisor = os.fork()
        if not self._supervisor:
            ours.close()
            become_supervisor(theirs, options, probes)
        theirs.close()
        self._stream = ours.makefile("rwb")
        ours.close()
        facts = self._first_answer()
        self.pid: int = facts["pid"]
        self.simulated: bool = facts["simulated"]
        self.started: float = facts["started"]
        self.stdout_path, self.stderr_path = Path(facts["stdout"]), Path(facts["stderr"])
        self.first_trace = Path(facts["first_trace"])
        self.no_trace: str | None = facts["no_trace"]
        """Reason why nothing is recorded; None if it can be."""

    def _first_answer(self) -> dict[str, Any]:
        line = self._stream.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": "", "text": self._supervisor_lost_text()}
        if "error" not in answer:
            return answer
        self._let_go()
        if answer["error"] == TargetError.__name__:
            raise TargetError(answer["text"], answer["status"])
        raise (NoDriverError if answer["error"] == NoDriverError.__name__ else LaunchError)(answer["text"])

    def _ask(self, question: str, **arguments: int) -> dict[str, Any] | None:
        """Return the answer to a question; None if the supervisor is gone."""
        with self._lock:  # answers carry no number: each belongs to the question sent before it
            try:
                self._stream.write(json.dumps({"do": question, **arguments}).encode() + b"\n")
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
            return _LOST_RETURNCODE
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
                    self._forward_signal(numbers.pop(0))
            outcome = self._ask("end")
            self._let_go()
            if outcome is None:
                raise LaunchError(self._supervisor_lost_text())
            self.outcome, self.returncode = Outcome.from_json(outcome), returncode
            self.is_complete = True

    def _forward_signal(self, number: int) -> None:
        """Give the target a signal that reached us."""
        self._ask("forward", number=number)
        if number == signal.SIGTSTP:
            signals.stop_self()

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
