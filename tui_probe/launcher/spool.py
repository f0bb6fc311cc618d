"""Where a run's files are until trace directories appear that they belong to."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from pathlib import Path

from tui_probe.errors import LaunchError
from tui_probe.trace.trace_folder import TraceFolder

from .leftovers import mark, start_of, sweep
from .trace_root import look_at_root

NAME = ".run-"
_START = "start"
_NOTES = "notes"
NO_WRITING = frozenset({errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT, errno.ENOENT})


def living_runs(trace_root: Path) -> list[int]:
    """The process ids of launchers whose runs go on in a folder of traces, whether there is a trace of them or not."""
    try:
        names = [path.name for path in trace_root.iterdir()]
    except OSError:
        return []
    pids = [int(number) for name in names if (number := name.removeprefix(NAME)) != name and number.isdecimal()]
    return [pid for pid in pids if _is_alive(trace_root / f"{NAME}{pid}", pid)]


def _is_alive(folder: Path, pid: int) -> bool:
    """Whether the launcher that made a folder runs: a process of its number may be another one by now."""
    now = start_of(pid)
    if now is None:
        return False
    try:
        return (folder / _START).read_text() in (now, "")
    except OSError:
        return True  # it is being made


def start_notes(path: Path) -> None:
    """Make the file of notes with a block of its own, so that hooks can note that the disk is full."""
    path.touch(0o600)
    path.write_bytes(b"\n")


class Spool:
    """A hidden folder in the trace root, thus on its file system, so that logs can be hard-linked into traces."""

    def __init__(self, trace_root: Path) -> None:
        self._root = trace_root
        self._root_is_new = False
        self.problem: str | None = None
        """Why there will be no trace: nothing can be written there. The program runs all the same."""
        self.folder = trace_root / f"{NAME}{os.getpid()}"
        try:
            self._root_is_new = not trace_root.exists()
            trace_root.mkdir(parents=True, exist_ok=True)
            look_at_root(trace_root)
            sweep(trace_root, NAME)
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(mode=0o700)
            (self.folder / _START).write_text(start_of(os.getpid()) or "")
            start_notes(self.folder / _NOTES)
        except OSError as error:
            self.problem = f"{trace_root}: {error.strerror}; choose another place with --tracedir"
            if error.errno not in NO_WRITING:
                raise LaunchError(self.problem) from error
            self.folder = Path(tempfile.mkdtemp(prefix="tui-probe-"))
            start_notes(self.folder / _NOTES)
        mark(self.folder)
        self.stdout = self.folder / "stdout.log"
        self.stderr = self.folder / "stderr.log"
        self.engine_log = self.folder / "engine.log"
        self.ending = self.folder / "ending"
        self.beside = self.folder / "beside"
        self.notes = self.folder / _NOTES

    def link_into(self, trace: Path) -> None:
        """Let a trace directory have the target's output as it grows, where links can be made."""
        with TraceFolder(trace) as folder:
            for log in (self.stdout, self.stderr):
                with contextlib.suppress(OSError):
                    folder.link(log, log.name)

    def copy_into(self, trace: Path) -> None:
        """At the end of the run: whole copies where ``link_into`` could make no link."""
        with TraceFolder(trace) as folder:
            for log in (self.stdout, self.stderr):
                if not folder.has(log.name):
                    folder.copy(log, log.name)

    def remove(self) -> None:
        """Remove the folder, and the trace root too if this run made it and nothing is in it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._root_is_new:
            with contextlib.suppress(OSError):
                self._root.rmdir()
