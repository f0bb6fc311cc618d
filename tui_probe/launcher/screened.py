"""A target away from any terminal: its streams go to files, and whoever holds it asks how it is doing."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

from . import signals
from .keeper import Keeper
from .target import Group, Standard, Target

if TYPE_CHECKING:
    from pathlib import Path

    from .session import Session


PATIENCE = 0.5
"""Seconds after the end of the target in which the last of its output is awaited."""


class ScreenedTarget:
    """The session's target, started away from our terminal. Every method may be called from any thread."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._finished = False
        self.simulated = session.driver.simulated
        self.started = session.started
        self.stdout_path = session.spool.stdout
        self.stderr_path = session.spool.stderr
        self._keepers = [Keeper(log, session.options.output_limit()) for log in (self.stdout_path, self.stderr_path)]
        self._target = self._start()

    def _start(self) -> Target:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        stdin = os.open(os.devnull, os.O_RDONLY)
        ends = [stdin, *(keeper.target_end for keeper in self._keepers)]
        try:
            return self._session.start(Standard(*ends), Group.SESSION, mask)
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
                whole = [keeper.finish(PATIENCE) for keeper in self._keepers]
                cut = any(keeper.cut for keeper in self._keepers)
                self._session.finish(returncode, output_kept=cut or all(whole), cut=cut)
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
