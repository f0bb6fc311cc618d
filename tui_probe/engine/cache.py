"""A cache on disk that processes share: its entries, and locks of their keys.

One file per entry: a magic line, the BLAKE2b digest of all that follows, a JSON line ``{name: bytes}``, the contents.
Entries are replaced in one step and checked when they are read, so no one sees half of one; what is damaged is
removed and counts as absent. The time of a file is that of its last use: when there is too much, the oldest go.

Of all threads and processes that want one kernel, a single one prepares it: a launch may want a kernel that is being
prepared ahead of it, and the processes of a parallel program want the same kernels at the same time. A lock is a byte
of one file, which the system frees where its holder dies.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import json
import os
import struct
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.engine.whole_files import read_file, write_file
from tui_probe.own_python import cache_home
from tui_probe.trace.plain_file import open_flags

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

EMPTY_KERNEL_DIRECTORY: Final = "empty"
"""Directory of the empty kernel: the engine fills it, the hook reads it."""
CACHE_LIMIT: Final = 1 << 30
"""Bytes that the cache may take."""
_MAGIC: Final = b"tui-probe cache 1\n"
_DIGEST_BYTES: Final = 32
_SUFFIX: Final = ".entry"
_UNFINISHED_SUFFIX: Final = ".unfinished"
_ABANDONED_SECONDS: Final = 3600.0  # seconds after which an unfinished file has no writer any more
_TRIMS_PER_LIMIT: Final = 16  # parts of the limit that may be written before the next look at the whole
_TRIMMED_FILE: Final = "trimmed"
"""Name of a file whose time is that of the folder after the last trim."""
_LOCK_FILE: Final = "locks"
_LOCK_FLAGS: Final = open_flags("O_RDWR", "O_CREAT", "O_NOFOLLOW", "O_CLOEXEC")
_LOCK_MODE: Final = 0o600
_LOCK_REQUEST: Final = struct.Struct("hhqqi4x")
"""``struct flock`` of Linux on 64 bits: type, whence, start, bytes, process."""
_LOCK_DIGITS: Final = 15
"""Hexadecimal digits of a key that choose its byte: other keys with the same one only wait for nothing."""
_LOCK_PAUSE: Final = 0.005
"""Seconds between two tries: with a time limit the system offers no other wait."""


def default_cache_directory(name: str = "kernels") -> Path | None:
    """Return ``$XDG_CACHE_HOME/tui-probe/NAME``, else below ``~/.cache``; None for a user without a cache directory."""
    home = cache_home()
    return None if home is None else Path(home) / name


class CacheUsage(NamedTuple):
    """Content of a cache: number of entries and their bytes."""

    entries: int
    size: int


class Cache:
    """The entries of one folder, which is made when the first one is put. Safe to use from several threads."""

    def __init__(self, folder: Path, limit: int = CACHE_LIMIT) -> None:
        self.folder = folder
        self.limit = limit
        self.run_id = os.urandom(8).hex()
        """Name of this run in entries, the same in processes that are forked from this one."""
        self._numbers = itertools.count()
        self._written_bytes = 0

    def get(self, key: str) -> dict[str, bytes] | None:
        """Return the files of an entry, or None if it is missing or damaged."""
        path = self.path(key)
        try:
            data = read_file(path)
        except OSError:
            return None
        files = _unpack(data)
        with contextlib.suppress(OSError):
            if files is None:
                path.unlink()
            else:
                os.utime(path)
        return files

    def put(self, key: str, files: Mapping[str, bytes]) -> None:
        """Keep files under a key, which is a file's name. Raises OSError where that is not possible."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished = self.folder / f"{os.getpid()}-{next(self._numbers)}{_UNFINISHED_SUFFIX}"
        data = _pack(files)
        try:
            write_file(unfinished, data)
            unfinished.replace(self.path(key))
        except OSError:
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise
        self._written_bytes += len(data)
        if self._written_bytes > self.limit // _TRIMS_PER_LIMIT:
            self.trim()

    def trim(self) -> None:
        """Remove the entries used longest ago until the limit holds, and what writers left behind that were killed."""
        self._written_bytes = 0
        for path, stat in self._files(_UNFINISHED_SUFFIX):
            if time.time() - stat.st_mtime > _ABANDONED_SECONDS:
                Path(path).unlink(missing_ok=True)
        entries = list(self._files(_SUFFIX))
        excess = sum(stat.st_size for _, stat in entries) - self.limit
        if excess <= 0:
            return
        entries.sort(key=lambda entry: entry[1].st_mtime_ns)
        for path, stat in entries:
            if excess <= 0:
                break
            Path(path).unlink(missing_ok=True)
            excess -= stat.st_size

    def trim_if_changed(self) -> None:
        """Trim, unless the folder is as the last call left it: a scan of thousands of entries would slow short runs.

        Raises OSError where that is not possible.
        """
        mark_file = self.folder / _TRIMMED_FILE
        if not self.folder.exists() or (
            mark_file.exists() and mark_file.stat().st_mtime_ns == self.folder.stat().st_mtime_ns
        ):
            return
        self.trim()
        mark_file.touch(_LOCK_MODE)
        trim_time = self.folder.stat().st_mtime_ns
        os.utime(mark_file, ns=(trim_time, trim_time))

    def usage(self) -> CacheUsage:
        """Count the present entries and their bytes."""
        sizes = [stat.st_size for _, stat in self._files(_SUFFIX)]
        return CacheUsage(len(sizes), sum(sizes))

    def clear(self) -> CacheUsage:
        """Remove all entries. Returns what there was. Raises OSError where they cannot be removed."""
        usage = self.usage()
        for path, _ in [*self._files(_SUFFIX), *self._files(_UNFINISHED_SUFFIX)]:
            Path(path).unlink(missing_ok=True)
        return usage

    def path(self, key: str) -> Path:
        """Return the path of a key's entry, if there is one."""
        return self.folder / f"{key}{_SUFFIX}"

    def _files(self, suffix: str) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the files with a suffix, with their status. A file that another process removes meanwhile is left out.

        Paths are strings: a cache has thousands of entries, and each run looks at all of them.
        """
        try:
            entries = list(os.scandir(self.folder))
        except OSError:
            return
        for entry in entries:
            if entry.name.endswith(suffix):
                with contextlib.suppress(OSError):
                    yield entry.path, entry.stat(follow_symlinks=False)


def digest(*parts: bytes | memoryview) -> str:
    """Return a name for contents. Other parts, or the same bytes divided at other places, have another name."""
    total = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        total.update(len(part).to_bytes(8, "little"))
        total.update(part)
    return total.hexdigest()


def _pack(files: Mapping[str, bytes]) -> bytes:
    head = json.dumps({name: len(content) for name, content in files.items()}).encode() + b"\n"
    body = b"".join([head, *files.values()])
    return b"".join([_MAGIC, hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest(), body])


def _unpack(data: bytes) -> dict[str, bytes] | None:
    """Return the files of an entry; None if it is damaged."""
    start = len(_MAGIC) + _DIGEST_BYTES
    body = memoryview(data)[start:]
    checksum = hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest()
    if not data.startswith(_MAGIC) or data[len(_MAGIC) : start] != checksum:
        return None
    offset = data.index(b"\n", start) + 1
    files = {}
    for name, size in json.loads(data[start:offset]).items():
        files[name] = data[offset : offset + size]
        offset += size
    return files


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

        The lock is None if it is still held after ``seconds``, or if the file system has no locks. The caller then
        continues without a lock.
        """
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._folder / _LOCK_FILE, _LOCK_FLAGS, _LOCK_MODE)
        except OSError:
            return None, False
        lock, was_held, deadline = KeyLock(descriptor), False, time.monotonic() + seconds
        try:
            while not _try_lock(descriptor, int(key[:_LOCK_DIGITS], 16)):
                was_held = True
                if time.monotonic() >= deadline:
                    lock.release()
                    return None, True
                time.sleep(_LOCK_PAUSE)
        except OSError:
            lock.release()
            return None, was_held
        return lock, was_held


def _try_lock(descriptor: int, offset: int) -> bool:
    """Lock a byte for this open file. False if another one has it. Raises OSError."""
    import fcntl  # doctor imports the engine on systems without it

    request = _LOCK_REQUEST.pack(fcntl.F_WRLCK, os.SEEK_SET, offset, 1, 0)
    with contextlib.suppress(InterruptedError):
        try:
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, request)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            return False
        return True
    return False
