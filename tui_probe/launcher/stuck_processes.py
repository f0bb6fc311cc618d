"""Processes whose launches do not end, in a run with ``--watchdog`` and without a screen: they are ended."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_MIN_GRACE: Final = 1.0
"""Seconds in which other processes of the run find that they are stuck, too: ranks wait for each other."""
_LOOKS: Final = 4
"""The hook looks several times within the limit; this part of it is more than the time between two looks."""
_KILL_AFTER: Final = 10.0
"""Seconds that a process has to end by SIGTERM, in which its hook completes the trace."""
_MAX_GENERATIONS: Final = 64


class StuckProcesses:
    """Ends the processes that the hooks have noted. ``limit`` is that of the run, in seconds."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._first: float | None = None
        self._asked: dict[int, float] = {}
        self._killed: set[int] = set()

    def end(self, stuck: Mapping[int, str], now: float) -> list[str]:
        """End the processes of ``stuck``, launches by process, where it is time. Return messages for the user."""
        if not stuck:
            return []
        self._first = now if self._first is None else self._first
        if now < self._first + max(_MIN_GRACE, self._limit / _LOOKS):
            return []
        messages = []
        for process, launch in stuck.items():
            if process not in self._asked:
                self._asked[process] = now
                ended = _send(process, signal.SIGTERM)
                outcome = (
                    "the process was ended" if ended else "end this process yourself, since the run did not start it"
                )
                messages.append(
                    f"process {process}: launch {launch} ran longer than {self._limit:g} s; {outcome}; see"
                    " tui-probe show stuck"
                )
            elif now >= self._asked[process] + _KILL_AFTER and process not in self._killed:
                self._killed.add(process)
                _send(process, signal.SIGKILL)
        return messages


def _send(process: int, number: int) -> bool:
    """Send a signal to a process of this run; return whether it was sent.

    The number is that of the process's own PID namespace: in a container it may be that of any process out here.
    """
    if not _is_descendant(process):
        return False
    try:
        os.kill(process, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _is_descendant(process: int) -> bool:
    """Return whether this process started the process, or one of its ancestors."""
    for _ in range(_MAX_GENERATIONS):
        try:
            status = Path(f"/proc/{process}/stat").read_bytes()
        except OSError:
            return False
        process = int(status[status.rindex(b")") + 2 :].split()[1])  # behind the name, which may hold anything
        if process == os.getpid():
            return True
        if process <= 1:
            return False
    return False
