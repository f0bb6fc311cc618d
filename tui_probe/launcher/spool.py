"""Spool folder of a run, allowed trace roots, and cleanup after killed launchers."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import socket
import stat
import tempfile
from pathlib import Path
from typing import Final

from tui_probe.errors import LaunchError
from tui_probe.trace.trace_directory import TraceDirectory

_ELSEWHERE = "choose your own directory with --tracedir"
_OWNER: Final = "owner"
_FIRST_TRACE: Final = "first"
_START_FIELD: Final = 19
"""Index of the start time among the fields behind the name in ``/proc/PID/stat``: see proc(5)."""
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
NAME = ".run-"
PREFIX = "tui-probe-"
"""Prefix of the directories of engines."""
SOCKET_PATH_LIMIT = 107  # bytes in sockaddr_un, without the final NUL
_START = "start"
_NOTES = "notes"
NO_WRITING = frozenset({errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT, errno.ENOENT})


def check_trace_root(root: Path) -> None:
    """LaunchError if another user than root owns the folder, or all may take our files out of it.

    One that does not exist will be ours. In a folder such as ``/tmp``, open to all but with the sticky bit, no one
    takes away what others have made.
    """
    try:
        status = root.stat()
    except OSError:
        return
    if problem := root_problem(status, os.geteuid()):
        raise LaunchError(f"{root}: {problem}: {_ELSEWHERE}")


def root_problem(status: os.stat_result, user: int) -> str | None:
    """Return why ``user`` should make no traces in a folder; None if it may."""
    if status.st_uid not in (user, 0):
        return f"user {status.st_uid} owns the directory and could replace your files with links"
    if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
        return "all users may write to the directory and could replace your files with links"
    return None


def short_folder() -> str:
    """Return a folder in which a socket's path, also the temporary one, is short enough: the usual one, else /tmp."""
    folder = tempfile.gettempdir()
    name_bytes = len("/tui-probe-xxxxxxxx/.engine.4194304")
    return folder if len(os.fsencode(folder)) + name_bytes <= SOCKET_PATH_LIMIT else "/tmp"


def start_of(pid: int) -> str | None:
    """Return the start time of a process, in ticks since boot; None if there is no such process."""
    try:
        fields = Path("/proc", str(pid), "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return None
    return fields[_START_FIELD]


def mark_owner(folder: Path) -> None:
    """Write to a directory which process it belongs to."""
    pid = os.getpid()
    with contextlib.suppress(OSError):  # a full disk: then no one removes it
        (folder / _OWNER).write_text(f"{pid} {start_of(pid)} {' '.join(_pid_namespace())}")


def mark_first_trace(folder: Path, name: str) -> None:
    """Write which trace was made for the target, so that it is removed with the directory if it stays empty."""
    with contextlib.suppress(OSError):
        (folder / _FIRST_TRACE).write_text(name)


def remove_abandoned(parent: Path, prefix: str) -> None:
    """Remove the folders in ``parent`` whose names begin so and whose processes have ended."""
    with contextlib.suppress(OSError):  # what is taken away meanwhile
        for folder in [path for path in parent.iterdir() if path.name.startswith(prefix)]:
            if _is_abandoned(folder):
                _remove_first_trace(folder)
                shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: Path) -> bool:
    """Return whether a folder is of a launcher of this system that has ended."""
    try:
        if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
            return False
        pid, start, host, boot, namespace = (folder / _OWNER).read_text().split(" ")
    except (OSError, ValueError):
        return False
    own_host, own_boot, own_namespace = _pid_namespace()
    if host != own_host:
        return False  # a disk of several machines
    return boot != own_boot or (namespace == own_namespace and start_of(int(pid)) != start)


def _pid_namespace() -> tuple[str, str, str]:
    """The machine, its start, and the name space of process ids, in which a number means a process."""
    try:
        return socket.gethostname(), _BOOT.read_text().strip(), os.readlink("/proc/self/ns/pid")  # noqa: PTH115
    except OSError:
        return socket.gethostname(), "unknown", "unknown"


def _remove_first_trace(folder: Path) -> None:
    with contextlib.suppress(OSError):  # there is none, or it holds something
        name = (folder / _FIRST_TRACE).read_text()
        if "/" not in name:
            (folder.parent / name).rmdir()


def living_runs(trace_root: Path) -> list[int]:
    """Return the process ids of launchers whose runs continue in a folder of traces, also before the first trace."""
    try:
        names = [path.name for path in trace_root.iterdir()]
    except OSError:
        return []
    pids = [int(number) for name in names if (number := name.removeprefix(NAME)) != name and number.isdecimal()]
    return [pid for pid in pids if _is_alive(trace_root / f"{NAME}{pid}", pid)]


def _is_alive(folder: Path, pid: int) -> bool:
    """Return whether the launcher that made a folder runs: its pid may have been reused."""
    start = start_of(pid)
    if start is None:
        return False
    try:
        return (folder / _START).read_text() in (start, "")
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
        """Reason why there will be no trace: the folder is not writable. The program runs unprobed."""
        self.folder = trace_root / f"{NAME}{os.getpid()}"
        try:
            self._root_is_new = not trace_root.exists()
            trace_root.mkdir(parents=True, exist_ok=True)
            check_trace_root(trace_root)
            remove_abandoned(trace_root, NAME)
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
        mark_owner(self.folder)
        self.stdout = self.folder / "stdout.log"
        self.stderr = self.folder / "stderr.log"
        self.engine_log = self.folder / "engine.log"
        self.ending = self.folder / "ending"
        self.adjacent = self.folder / "adjacent"
        self.notes = self.folder / _NOTES

    def link_into(self, trace: Path) -> None:
        """Let a trace directory have the target's output as it grows, where links can be made."""
        with TraceDirectory(trace) as folder:
            for log in (self.stdout, self.stderr):
                with contextlib.suppress(OSError):
                    folder.link(log, log.name)

    def copy_into(self, trace: Path) -> None:
        """Copy the logs into the trace at the end of the run, where ``link_into`` could make no link."""
        with TraceDirectory(trace) as folder:
            for log in (self.stdout, self.stderr):
                if not folder.contains(log.name):
                    folder.copy(log, log.name)

    def remove(self) -> None:
        """Remove the folder, and the trace root too if this run made it and nothing is in it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._root_is_new:
            with contextlib.suppress(OSError):
                self._root.rmdir()
