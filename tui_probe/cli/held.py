"""Runs that were started from the home screen, and go on while other things are looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.launcher.held_target import HeldTarget
from tui_probe.trace.recent import remember

from .profiling import leave_running, wait_for_end

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui_probe.launcher.options import RunOptions
    from tui_probe.probe_files.choices import ChosenProbe


class HeldRuns:
    """Targets, each of which a process of its own holds."""

    def __init__(self) -> None:
        self._targets: list[HeldTarget] = []

    def start(self, options: RunOptions, probes: Sequence[ChosenProbe]) -> HeldTarget:
        """Start a program. Raises LaunchError and its kind."""
        target = HeldTarget(options, probes)
        self._targets.append(target)
        return target

    def target_of(self, trace: Path) -> HeldTarget | None:
        """The target that made a trace, if it was started here."""
        for target in self._targets:
            target.poll()
            if trace.absolute() in target.trace_directories():
                return target
        return None

    def end(self, received: int) -> None:
        """At the end of the screens: those that were left go on. Wait for others, and tell of all.

        ``received`` is the signal that ended the last screen, which is forwarded; 0 for none.
        """
        for target in self._targets:
            if not received and leave_running(target):
                continue
            wait_for_end(target, received)
            for trace in target.outcome.traces:
                remember(trace)
