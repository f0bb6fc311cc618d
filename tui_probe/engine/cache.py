"""A cache on disk that processes share, and files that are written whole with few system calls.

One file per entry: a magic line, the BLAKE2b digest of all that follows, a JSON line ``{name: bytes}``, the contents.
Entries are replaced in one step and checked when they are read, so no one sees half of one; what is damaged is
removed and counts as absent. The time of a file is that of its last use: when there is too much, the oldest go.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.own_python import cache_home
from tui_probe.trace.portable_files import open_flags

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NEW_FILE: Final = open_flags("O_WRONLY", "O_CREAT", "O_TRUNC", "O_NOFOLLOW", "O_CLOEXEC")
APPENDED_FILE: Final = open_flags("O_WRONLY", "O_CREAT", "O_APPEND", "O_NOFOLLOW", "O_CLOEXEC")
_MODE: Final = 0o666
EMPTY_KERNEL_DIRECTORY: Final = "empty"
"""Directory of the empty kernel: the engine fills it, the hook reads it."""
CACHE_LIMIT: Final = 1 << 30
"""Bytes that the cache may take."""
_MAGIC: Final = b"tui-probe cache 1\n"
_DIGEST_BYTES: Final = 32
_SUFFIX: Final = ".entry"
_UNFINISHED: Final = ".unfinished"
_ABANDONED_SECONDS: Final = 3600.0  # seconds after which an unfinished file has no writer any more
_TRIMS_PER_LIMIT: Final = 16  # parts of the limit that may be written before the next look at the whole


def open_file(path: Path, how: int) -> int:
    """The descriptor of a file to be written, ``NEW_FILE`` or ``APPENDED_FILE``. OSError; ValueError for a 0 in its
    name."""
    return os.open(path, how, _MODE)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of the bytes. Raises OSError."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def write_file(path: Path, data: bytes) -> None:
    """Make a file of these bytes, instead of one that is there. Raises OSError."""
    descriptor = open_file(path, NEW_FILE)
    try:
        write_all(descriptor, data)
    finally:
        os.close(descriptor)


def read_file(path: Path) -> bytes:
    """All bytes of a file that no one writes to any more. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        left = os.fstat(descriptor).st_size
        pieces = []
        while left > 0 and (piece := os.read(descriptor, left)):
            pieces.append(piece)
            left -= len(piece)
    finally:
        os.close(descriptor)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def put_file(path: Path, content: bytes) -> None:
    """Write a file instead of what is there. Raises OSError."""
    try:
        descriptor = open_file(path, NEW_FILE | os.O_EXCL)
    except FileExistsError:
        _replace_file(path, content)
        return
    try:
        write_all(descriptor, content)
    finally:
        os.close(descriptor)


def _replace_file(path: Path, content: bytes) -> None:
    """Another thread may be writing it: what that one has is replaced when this one is whole."""
    unfinished = _unfinished_path(path)
    try:
        write_file(unfinished, content)
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise


def put_link(existing: Path, path: Path) -> bool:
    """Put a link to a file instead of what is there; False where none can be made."""
    try:
        os.link(existing, path)
    except FileExistsError:
        return _replace_with_link(existing, path)
    except OSError:
        return False
    return True


def _replace_with_link(existing: Path, path: Path) -> bool:
    unfinished = _unfinished_path(path)
    try:
        os.link(existing, unfinished)
        unfinished.replace(path)
    except OSError:
        return False
    finally:
        unfinished.unlink(missing_ok=True)  # still there where both were links to one file already
    return True


def _unfinished_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.{threading.get_native_id()}")


def default_cache_directory(what: str = "kernels") -> Path | None:
    """``$XDG_CACHE_HOME/tui-probe/WHAT``, else below ``~/.cache``; None where there is no home."""
    home = cache_home()
    return None if home is None else Path(home) / what


@dataclass(frozen=True, slots=True)
class CacheUsage:
    """Content of a cache: number of entries and their bytes."""

    entries: int
    size: int


class Cache:
    """The entries of one folder, which is made when the first one is put. Safe to use from several threads."""

    def __init__(self, folder: Path, limit: int = CACHE_LIMIT) -> None:
        self.folder = folder
        self.limit = limit
        self.run = os.urandom(8).hex()
        """Name of this run in entries, the same in processes that are forked from this one."""
        self._numbers = itertools.count()
        self._written = 0

    def get(self, key: str) -> dict[str, bytes] | None:
        """The files of an entry, or None if there is none that is whole."""
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
        unfinished = self.folder / f"{os.getpid()}-{next(self._numbers)}{_UNFINISHED}"
        data = _pack(files)
        try:
            write_file(unfinished, data)
            unfinished.replace(self.path(key))
        except OSError:
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise
        self._written += len(data)
        if self._written > self.limit // _TRIMS_PER_LIMIT:
            self.trim()

    def trim(self) -> None:
        """Remove the entries used longest ago until the limit holds, and what writers left behind that were killed."""
        self._written = 0
        for path, stat in self._files(_UNFINISHED):
            if time.time() - stat.st_mtime > _ABANDONED_SECONDS:
                path.unlink(missing_ok=True)
        entries = sorted(self._files(_SUFFIX), key=lambda entry: entry[1].st_mtime_ns)
        excess = sum(stat.st_size for _, stat in entries) - self.limit
        for path, stat in entries:
            if excess <= 0:
                break
            path.unlink(missing_ok=True)
            excess -= stat.st_size

    def usage(self) -> CacheUsage:
        """Count the present entries and their bytes."""
        sizes = [stat.st_size for _, stat in self._files(_SUFFIX)]
        return CacheUsage(len(sizes), sum(sizes))

    def clear(self) -> CacheUsage:
        """Remove all entries. Returns what there was. Raises OSError where they cannot be removed."""
        usage = self.usage()
        for path, _ in [*self._files(_SUFFIX), *self._files(_UNFINISHED)]:
            path.unlink(missing_ok=True)
        return usage

    def path(self, key: str) -> Path:
        """Return the path of a key's entry, if there is one."""
        return self.folder / f"{key}{_SUFFIX}"

    def _files(self, suffix: str) -> Iterator[tuple[Path, os.stat_result]]:
        """The files of a kind. One that another process removes at this moment is left out."""
        try:
            entries = list(os.scandir(self.folder))
        except OSError:
            return
        for entry in entries:
            if entry.name.endswith(suffix):
                with contextlib.suppress(OSError):
                    yield Path(entry.path), entry.stat(follow_symlinks=False)


def digest(*parts: bytes) -> str:
    """A name for contents: of other parts, or of the same ones cut elsewhere, it is another one."""
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
    """The files of an entry; None if a single bit of it is not as it was written."""
    start = len(_MAGIC) + _DIGEST_BYTES
    body = memoryview(data)[start:]
    expected = hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest()
    if not data.startswith(_MAGIC) or data[len(_MAGIC) : start] != expected:
        return None
    at = data.index(b"\n", start) + 1
    files = {}
    for name, size in json.loads(data[start:at]).items():
        files[name] = data[at : at + size]
        at += size
    return files
