"""The trace directories of a run, as they appear."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from .notes import RunNotes

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
TRACE_NAME = re.compile(rf"({'|'.join(MONTHS)})\d\d_\d{{6}}_(?P<pid>\d+)[\w.+-]*", re.ASCII)


def stamp_of(seconds: float) -> str:
    """``<Mon>DD_HHMMSS`` of a time since the epoch, local, in English whatever the locale."""
    moment = time.localtime(seconds)
    return f"{MONTHS[moment.tm_mon - 1]}{moment.tm_mday:02}_{moment.tm_hour:02}{moment.tm_min:02}{moment.tm_sec:02}"


class TraceWatch:
    """Finds the directories in ``root`` that the processes of this launcher's run make, and have noted.

    Several runs may share a root, so a directory that this run's notes do not name belongs to another run.
    """

    def __init__(self, root: Path, notes: RunNotes) -> None:
        self._root = root
        self._notes = notes
        self._first: str | None = None
        self.found: list[Path] = []

    def expect(self, first: str) -> None:
        """Tell the name of the directory that the target's own process will have."""
        self._first = first

    def poll(self) -> list[Path]:
        """The directories that are new since the last call, the target's own before others."""
        names = dict.fromkeys(name for name in self._notes.new_traces() if TRACE_NAME.fullmatch(name))
        traces = [self._root / name for name in sorted(names, key=lambda name: name != self._first)]
        new = [trace for trace in traces if trace not in self.found]
        self.found += new
        return new
