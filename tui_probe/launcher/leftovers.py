"""Folders of launchers that were killed: the next run removes them, and nothing of a launcher that lives."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
from pathlib import Path
from typing import Final

_OWNER: Final = "owner"
_FIRST: Final = "first"
_START_FIELD: Final = 19
"""Among those behind the name in ``/proc/PID/stat``: see proc(5)."""
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


def start_of(pid: int) -> str | None:
    """When a process started, in ticks since the machine did; None if there is no such process."""
    try:
        fields = Path("/proc", str(pid), "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return None
    return fields[_START_FIELD]


def mark(folder: Path) -> None:
    """Say in a folder which process it belongs to."""
    pid = os.getpid()
    with contextlib.suppress(OSError):  # a full disk: then nobody removes it
        (folder / _OWNER).write_text(f"{pid} {start_of(pid)} {' '.join(_system())}")


def mark_first_trace(folder: Path, name: str) -> None:
    """Say which trace was made for the target, so that it is removed with the folder if it stays empty."""
    with contextlib.suppress(OSError):
        (folder / _FIRST).write_text(name)


def sweep(parent: Path, prefix: str) -> None:
    """Remove the folders in ``parent`` whose names begin so and whose processes have ended."""
    with contextlib.suppress(OSError):  # what is taken away meanwhile
        for folder in [path for path in parent.iterdir() if path.name.startswith(prefix)]:
            if _is_abandoned(folder):
                _remove_first_trace(folder)
                shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: Path) -> bool:
    """Whether a folder is ours and its process has ended, as far as this system can know."""
    try:
        if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
            return False
        pid, start, host, boot, namespace = (folder / _OWNER).read_text().split(" ")
    except (OSError, ValueError):
        return False
    own_host, own_boot, own_namespace = _system()
    if host != own_host:
        return False  # a disk of several machines
    return boot != own_boot or (namespace == own_namespace and start_of(int(pid)) != start)


def _system() -> tuple[str, str, str]:
    """The machine, its start, and the name space of process ids, in which a number means a process."""
    try:
        return socket.gethostname(), _BOOT.read_text().strip(), os.readlink("/proc/self/ns/pid")  # noqa: PTH115
    except OSError:
        return socket.gethostname(), "unknown", "unknown"


def _remove_first_trace(folder: Path) -> None:
    with contextlib.suppress(OSError):  # there is none, or it holds something
        name = (folder / _FIRST).read_text()
        if "/" not in name:
            (folder.parent / name).rmdir()
