"""The trace directories of a run, as they appear."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from .spool import living_runs

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
TRACE_NAME = re.compile(rf"({'|'.join(MONTHS)})\d\d_\d{{6}}_(?P<pid>\d+)")


def stamp_of(seconds: float) -> str:
    """``<Mon>DD_HHMMSS`` of a time since the epoch, local, in English whatever the locale."""
    moment = time.localtime(seconds)
    return f"{MONTHS[moment.tm_mon - 1]}{moment.tm_mday:02}_{moment.tm_hour:02}{moment.tm_min:02}{moment.tm_sec:02}"


class TraceWatch:
    """Finds the directories in ``root`` that the processes of this launcher's run make.

    Several launchers may share a root: a process's directory is ours if its environment names us; of a process that
    is gone, if nobody else is using the root.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._seen = self._names()
        self._first: str | None = None
        self.found: list[Path] = []

    def expect(self, first: str) -> None:
        """Tell the name of the directory that the target's own process will have."""
        self._first = first

    def poll(self) -> list[Path]:
        """The directories that are new since the last call, the target's own before others."""
        fresh = self._names() - self._seen
        self._seen |= fresh
        ours = [name for name in fresh if name == self._first or self._is_ours(name)]
        new = [self._root / name for name in sorted(ours, key=lambda name: (name != self._first, name))]
        self.found += new
        return new

    def _names(self) -> set[str]:
        """What is in the root; nothing if somebody has moved it away."""
        try:
            return {path.name for path in self._root.iterdir()}
        except OSError:
            return set()

    def _is_ours(self, name: str) -> bool:
        match = TRACE_NAME.fullmatch(name)
        if match is None:
            return False
        try:
            environment = Path(f"/proc/{match['pid']}/environ").read_bytes()
        except OSError:
            environment = b""
        if not environment:  # the process is gone
            return not self._is_shared()
        return f"TUI_PROBE_LAUNCHER={os.getpid()}".encode() in environment.split(b"\0")

    def _is_shared(self) -> bool:
        """Does the spool of another living launcher stand in the same root?"""
        return any(pid != os.getpid() for pid in living_runs(self._root))
