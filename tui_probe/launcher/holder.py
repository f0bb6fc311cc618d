"""A process of its own session that holds a run under the screen: it lives until the target has ended.

Whoever started the run asks it over a socket, one line of JSON for each question and answer:

    {"do": "poll"}                        {"returncode": null, "traces": [DIR...]}
    {"do": "forward", "number": 15}       {}      a signal that reached the launcher
    {"do": "group", "number": 2}          {}      a signal for every process of the target's group
    {"do": "end"}                         what the run left (Outcome), once all of it is complete; the last answer

The end of the connection means that nobody waits any more: the program keeps running, and its traces are completed all
the same.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from tui_probe.errors import ProbeError, TargetError
from tui_probe.trace.recent import remember

from .screened import ScreenedTarget
from .session import Session

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Sequence

    from tui_probe.probe_files.choices import ChosenProbe

    from .options import RunOptions


class Stream(Protocol):
    """Lines to read, and bytes to write."""

    def __iter__(self) -> Iterator[bytes]:
        """The lines that come in."""

    def write(self, data: bytes, /) -> object:
        """Say something, once flushed."""

    def flush(self) -> object:
        """Say it now."""


def become_holder(connection: socket.socket, options: RunOptions, probes: Sequence[ChosenProbe]) -> NoReturn:
    """In a process that was just forked: hold a run, and end. The first answer is what it is, or why there is none."""
    try:
        leave_terminal()
        with connection.makefile("rwb") as stream:
            try:
                hold(stream, options, probes)
            except ProbeError as error:
                answer(stream, problem_of(error))
    except OSError:
        pass  # nobody listens any more
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


def problem_of(error: ProbeError) -> dict[str, Any]:
    """An error as an answer."""
    status = error.status if isinstance(error, TargetError) else None
    return {"error": type(error).__name__, "text": str(error), "status": status}


def hold(stream: Stream, options: RunOptions, probes: Sequence[ChosenProbe]) -> None:
    """Start the target, and answer until nobody asks any more and it has ended."""
    with Session(options, probes, announce=lambda _: None) as session:
        target = ScreenedTarget(session)
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
        released.wait()  # the screen may still show what lies in the spool
        outcome = session.outcome()
    if asked_for_end[0]:
        answer(stream, outcome.words())


def description(target: ScreenedTarget, session: Session) -> dict[str, Any]:
    """What does not change while it runs."""
    return {
        "pid": target.pid,
        "simulated": target.simulated,
        "started": target.started,
        "stdout": str(target.stdout_path),
        "stderr": str(target.stderr_path),
        "first_trace": str(session.first_trace),
        "no_trace": session.spool.problem,
    }


def answer_questions(stream: Stream, target: ScreenedTarget) -> bool:
    """Until the connection ends, or somebody asks for the end of the run: True then."""
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


def answer(stream: Stream, words: dict[str, Any]) -> None:
    """One line."""
    stream.write(json.dumps(words).encode() + b"\n")
    stream.flush()
