"""Runs that were started from the home screen, and go on while other things are looked at."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Self

from tui_probe.launcher.screened import ScreenedTarget
from tui_probe.launcher.session import Session
from tui_probe.trace.recent import remember

from .output import inform, let_go_of_lost_terminal, warn
from .run import tell_what_failed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui_probe.launcher.options import RunOptions
    from tui_probe.probe_files.choices import ChosenProbe

INTERVAL = 0.5


class HeldRuns:
    """A context manager, which ends the engines of all runs. A thread looks after targets that no screen shows."""

    def __init__(self) -> None:
        self._runs: list[tuple[Session, ScreenedTarget]] = []
        self._stack = contextlib.ExitStack()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._look_after, name="tui-probe-runs", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()
        self._stack.close()

    def start(self, options: RunOptions, probes: Sequence[ChosenProbe]) -> ScreenedTarget:
        """Start a program. Raises LaunchError and its kind."""
        session = self._stack.enter_context(Session(options, probes, announce=lambda _: None))
        target = ScreenedTarget(session)
        self._runs.append((session, target))
        return target

    def target_of(self, trace: Path) -> ScreenedTarget | None:
        """The target that made a trace, if it was started here."""
        for session, target in self._runs:
            if trace.absolute() in session.traces:
                return target
        return None

    def wait(self, received: int) -> None:
        """Wait for the end of those that still run, after forwarding the signal that was ``received``; tell of all."""
        for session, target in self._runs:
            if target.poll() is None:
                warn(f"waiting for {session.options.command[0]} (process {target.pid}) to end")
            target.wait(received)
            let_go_of_lost_terminal()
            for trace in session.trace_paths():
                remember(trace)
                inform(f"trace in {trace}")
            tell_what_failed(session)

    def _look_after(self) -> None:
        """Poll: new traces get their record, and ended targets are completed."""
        while not self._ending.wait(INTERVAL):
            for _, target in list(self._runs):
                target.poll()
