"""Copies of the source files that a kernel came from, put into its trace: see ``trace/source_files``.

Only files that lines of the kernel name, that are text, that this user can read, and that may be copied: see
``source_policy``. What cannot be copied is left out and nothing is said: the line numbers are there all the same. A
copy can be read by whoever can read the file.
"""

from __future__ import annotations

import contextlib
import stat
import threading
from pathlib import Path
from typing import Final

from tui_probe.engine.source_policy import SourcePolicy
from tui_probe.input_limits import SOURCE_FILE
from tui_probe.trace.plain_file import read_within
from tui_probe.trace.source_files import FOLDER, copy_name
from tui_probe.trace.source_lines import files_of
from tui_probe.trace.trace_folder import TraceFolder

ROOM: Final = 16 << 20
"""Bytes."""
_READABLE: Final = 0o444


class SourceCopies:
    """Copies source files into traces, each file of a trace once. Safe to use from several threads."""

    def __init__(self, room: int = ROOM, policy: SourcePolicy | None = None) -> None:
        """``room``: bytes of all copies of a trace; files that would take more are left out."""
        self._most = room
        self._policy = policy or SourcePolicy()
        self._seen: set[tuple[Path, str]] = set()
        self._room: dict[Path, int] = {}
        self._lock = threading.Lock()

    def add(self, prepared: Path, kernel: Path | None = None) -> None:
        """Copy the files that the lines of a kernel name. ``prepared`` is the folder of its ``pruned.ptx``; its own,
        ``TRACE/kernel/NAME``, is ``kernel`` if that is another one.
        """
        trace = (kernel or prepared).parent.parent
        for path in files_of(prepared):
            with self._lock:
                new = (trace, path) not in self._seen
                self._seen.add((trace, path))
            if new:
                with contextlib.suppress(OSError):
                    self._copy(trace, path)

    def _copy(self, trace: Path, path: str) -> None:
        """Raises OSError."""
        text = readable_text(Path(path)) if self._policy.allows(Path(path)) else None
        if text is None or not self._takes(trace, len(text)):
            return
        mode = stat.S_IMODE(Path(path).stat().st_mode) & _READABLE
        with TraceFolder(trace) as folder:
            folder.make(FOLDER)
        with TraceFolder(trace, FOLDER) as folder:
            folder.put(copy_name(path), text, mode | stat.S_IWUSR)

    def _takes(self, trace: Path, size: int) -> bool:
        with self._lock:
            left = self._room.setdefault(trace, self._most)
            if size <= left:
                self._room[trace] = left - size
            return size <= left


def readable_text(path: Path) -> bytes | None:
    """The bytes of a text file of bearable size, None for anything else. Raises OSError."""
    if not path.is_file() or path.stat().st_size > SOURCE_FILE.most:
        return None
    data = read_within(path, SOURCE_FILE)
    return None if b"\0" in data else data
