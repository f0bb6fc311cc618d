"""The run's file of notes: lines that the hooks of all its processes append for the launcher."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tui_probe.trace.plain_file import open_plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MOST_BYTES = 16 << 20
"""Of the file that are read: the program may write to it, too."""


@dataclass
class RunNotes:
    """What was read of the file so far. Each line is "PID WORD TEXT"; hook/src/log/run_notes.h lists the words."""

    path: Path
    _read: int = 0
    failures: dict[str, list[int]] = field(default_factory=dict)
    """Why processes that launch kernels have no trace, and which processes."""
    unanswered: list[int] = field(default_factory=list)
    """Processes whose first message the probe engine did not answer."""

    def new_traces(self) -> list[str]:
        """The names of trace directories that were made since the last call, in their order."""
        names = []
        for pid, word, text in self._new_lines():
            if word == "trace":
                names.append(text)
            elif word == "no-trace":
                self.failures.setdefault(text, []).append(pid)
            elif word == "no-engine":
                self.unanswered.append(pid)
        return names

    def _new_lines(self) -> Iterator[tuple[int, str, str]]:
        try:
            with open_plain(self.path) as file:
                file.seek(self._read)
                whole = file.read(MOST_BYTES - self._read).rpartition(b"\n")[0]
        except OSError:
            return
        self._read += len(whole) + 1 if whole else 0
        for line in whole.decode(errors="surrogateescape").split("\n"):
            match line.split(" ", 2):
                case [pid, word, text] if pid.isdecimal():
                    yield int(pid), word, text
