"""Trace directories of a run as they appear: notes of the hooks, names, and disk usage of the launcher's files."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tui_probe.trace.plain_file import open_plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

MAX_NOTE_BYTES = 16 << 20
"""Bytes of the file that are read: the program may write to it, too."""
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
TRACE_NAME = re.compile(rf"({'|'.join(MONTHS)})\d\d_\d{{6}}_(?P<pid>\d+)[\w.+-]*", re.ASCII)
BLOCK: Final = 512
"""Unit of ``st_blocks``, no matter what the file system's own block is."""
LAUNCHER_FILES: Final = ("run.json", "read.py", "tensor.trace")
SOURCE_FOLDER: Final = "source"


@dataclass
class RunNotes:
    """Notes of the run, read so far. Each line is "PID WORD TEXT"; hook/src/log/run_notes.h lists the words."""

    path: Path
    _read: int = 0
    failures: dict[str, list[int]] = field(default_factory=dict)
    """Processes that launch kernels and have no trace, by reason."""
    unanswered: list[int] = field(default_factory=list)
    """Processes whose first message the probe engine did not answer."""

    stuck: dict[int, str] = field(default_factory=dict)
    """Launches that do not end, the first of each process."""

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
            elif word == "stuck":
                self.stuck.setdefault(pid, text)
        return names

    def _new_lines(self) -> Iterator[tuple[int, str, str]]:
        try:
            with open_plain(self.path) as file:
                file.seek(self._read)
                complete_lines = file.read(MAX_NOTE_BYTES - self._read).rpartition(b"\n")[0]
        except OSError:
            return
        self._read += len(complete_lines) + 1 if complete_lines else 0
        for line in complete_lines.decode(errors="surrogateescape").split("\n"):
            match line.split(" ", 2):
                case [pid, word, text] if pid.isdecimal():
                    yield int(pid), word, text


def stamp_of(seconds: float) -> str:
    """``<Mon>DD_HHMMSS`` of a time since the epoch, local, in English in any locale."""
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
        """Set the name of the directory that the target's own process will have."""
        self._first = first

    def poll(self) -> list[Path]:
        """The directories that are new since the last call, the target's own before others."""
        names = dict.fromkeys(name for name in self._notes.new_traces() if TRACE_NAME.fullmatch(name))
        traces = [self._root / name for name in sorted(names, key=lambda name: name != self._first)]
        new = [trace for trace in traces if trace not in self.found]
        self.found += new
        return new


def disk_bytes(paths: Iterable[Path]) -> int:
    """Bytes of the blocks of these files; one that is not there takes none."""
    total = 0
    for path in paths:
        try:
            total += path.lstat().st_blocks * BLOCK
        except OSError:
            continue
    return total


def launcher_files(trace: Path) -> list[Path]:
    """The files of a trace that its hook has not written: ours, names of tensors, the engine's copies of sources."""
    try:
        sources = list((trace / SOURCE_FOLDER).iterdir())
    except OSError:
        sources = []
    return [*(trace / name for name in LAUNCHER_FILES), trace / SOURCE_FOLDER, *sources]
