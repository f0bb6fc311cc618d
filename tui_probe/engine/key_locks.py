"""Locks of cache keys: of all threads and processes that want one kernel, a single one prepares it.

A launch may want a kernel that is being prepared ahead of it, and the processes of a parallel program want the same
kernels at the same time. A lock is a byte of one file, which the system frees where its holder dies.
"""

from __future__ import annotations

import contextlib
import errno
import os
import struct
import time
from typing import TYPE_CHECKING, Final

from tui_probe.trace.portable_files import open_flags

if TYPE_CHECKING:
    from pathlib import Path

_FILE: Final = "locks"
_OPENED: Final = open_flags("O_RDWR", "O_CREAT", "O_NOFOLLOW", "O_CLOEXEC")
_MODE: Final = 0o600
_REQUEST: Final = struct.Struct("hhqqi4x")
"""``struct flock`` of Linux on 64 bits: type, whence, start, bytes, process."""
_DIGITS: Final = 15
"""Hexadecimal digits of a key that choose its byte: other keys with the same one only wait for nothing."""
_PAUSE: Final = 0.005
"""Seconds between two tries: with a time limit the system offers no other wait."""


class KeyLock:
    """A lock of one key, which one holder takes and releases once."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        """Let the next one have it."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class KeyLocks:
    """The locks of a cache's folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def take(self, key: str, seconds: float) -> tuple[KeyLock | None, bool]:
        """Return the lock of ``key``, and whether another one held it meanwhile.

        The lock is None if it is still held after so many seconds, and where the file system has none: then the caller
        must do without.
        """
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._folder / _FILE, _OPENED, _MODE)
        except OSError:
            return None, False
        lock, was_held, deadline = KeyLock(descriptor), False, time.monotonic() + seconds
        try:
            while not _try_lock(descriptor, int(key[:_DIGITS], 16)):
                was_held = True
                if time.monotonic() >= deadline:
                    lock.release()
                    return None, True
                time.sleep(_PAUSE)
        except OSError:
            lock.release()
            return None, was_held
        return lock, was_held


def _try_lock(descriptor: int, place: int) -> bool:
    """Lock a byte for this open file. False if another one has it. Raises OSError."""
    import fcntl  # doctor imports the engine on systems without it

    request = _REQUEST.pack(fcntl.F_WRLCK, os.SEEK_SET, place, 1, 0)
    with contextlib.suppress(InterruptedError):
        try:
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, request)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            return False
        return True
    return False
