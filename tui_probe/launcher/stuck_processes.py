"""Ends processes whose launches do not complete, in a run without a screen: at the limit of ``--watchdog``, or at the
second interrupt.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MIN_GRACE: Final = 1.0
"""Seconds for other processes of the run to be noted as stuck, too: ranks wait for each other."""
_LIMIT_PARTS: Final = 4
"""The hook checks several times within the limit: a quarter of the limit exceeds the time between two checks."""
_KILL_AFTER: Final = 10.0
"""Seconds from SIGTERM to SIGKILL, in which the hook completes the trace."""
_MAX_GENERATIONS: Final = 64
"""Ancestors that are asked for: the table of processes may change meanwhile, so that the walk need not end."""
_TERM_REQUEST, _KILL_REQUEST = 2, 3
"""Requests to end, such as Ctrl-C, at which a process with a launch that is still running is ended."""


class StuckProcesses:
    """Ends the processes that the hooks have noted. ``limit`` is the value of ``--watchdog`` in seconds, 0
    without; ``notify`` writes a message to the user while the program runs.
    """

    def __init__(self, limit: float, notify: Callable[[str], object] = lambda _: None) -> None:
        self._limit = limit
        self._notify = notify
        self._first_noted: float | None = None
        self._terminated: dict[int, float] = {}
        """Time of SIGTERM by pid."""
        self._killed: set[int] = set()
        self._interrupted: dict[tuple[int, str], int] = {}
        """Last request to end by pid and launch."""

    def interrupt(self, interrupted: Mapping[tuple[int, str], int]) -> list[str]:
        """End the processes of ``interrupted``: by pid and running launch, the requests to end since it was made.

        The first request is the program's own: it may handle the signal. At the second, a process whose launch is still
        running gets SIGTERM, at the third SIGKILL. Return user messages.
        """
        new_requests: dict[int, tuple[int, str]] = {}
        for (pid, launch), request in interrupted.items():
            if self._interrupted.get((pid, launch)) != request:
                self._interrupted[pid, launch] = request
                new_requests[pid] = max(new_requests.get(pid, (0, "")), (request, launch), key=lambda pair: pair[0])
        messages = []
        for pid, (request, launch) in new_requests.items():
            if request < _TERM_REQUEST:
                self._notify(f"process {pid}: launch {launch} is still running; interrupt again to end the process")
            elif request >= _KILL_REQUEST:
                _send(pid, signal.SIGKILL)
            else:
                messages.append(self._terminate(pid, launch))
        return messages

    def _terminate(self, pid: int, launch: str) -> str:
        text = f"launch {launch} was still running at the second interrupt"
        message = _message(pid, text, _send(pid, signal.SIGTERM), has_places=bool(self._limit))
        return message if self._limit else f"{message}; to see where its warps are, run again with --watchdog 10s"

    def end(self, stuck: Mapping[int, str], now: float) -> list[str]:
        """Send SIGTERM, later SIGKILL, to the processes of ``stuck``: the stuck launch by pid, with the reason if it
        was not watched. Return user messages.
        """
        if not stuck:
            return []
        self._first_noted = now if self._first_noted is None else self._first_noted
        if now < self._first_noted + max(_MIN_GRACE, self._limit / _LIMIT_PARTS):
            return []
        messages = []
        for pid, launch in stuck.items():
            if pid not in self._terminated:
                self._terminated[pid] = now
                was_ended = _send(pid, signal.SIGTERM)
                number, _, reason = launch.partition(" ")
                cause = f"launch {number} ran longer than {self._limit:g} s"
                unwatched = f", and its warps were not watched: {reason}" if reason else ""
                messages.append(_message(pid, cause + unwatched, was_ended, has_places=not reason))
            elif now >= self._terminated[pid] + _KILL_AFTER and pid not in self._killed:
                self._killed.add(pid)
                _send(pid, signal.SIGKILL)
        return messages


def _message(pid: int, cause: str, was_ended: bool, *, has_places: bool = True) -> str:
    outcome = "the process was ended" if was_ended else "end this process yourself, because the run did not start it"
    return f"process {pid}: {cause}; {outcome}" + ("; see tui-probe show stuck" if has_places else "")


def _send(pid: int, signal_number: int) -> bool:
    """Send a signal to a process of this run; return whether it was sent.

    The hook noted ``pid`` in its own PID namespace. Outside a container the same number may be an unrelated process,
    so only descendants of this process get the signal.
    """
    if not _is_descendant(pid):
        return False
    try:
        os.kill(pid, signal_number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _is_descendant(pid: int) -> bool:
    """Return whether this process started the process ``pid`` or one of its ancestors."""
    for _ in range(_MAX_GENERATIONS):
        try:
            status = Path(f"/proc/{pid}/stat").read_bytes()
        except OSError:
            return False
        pid = int(status[status.rindex(b")") + 2 :].split()[1])  # the parent; the name before may contain anything
        if pid == os.getpid():
            return True
        if pid <= 1:
            return False
    return False
