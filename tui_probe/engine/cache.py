"""A cache on disk: small sets of files by key, for several processes at once, never larger than its limit for long.

One file per entry: a magic line, the BLAKE2b digest of all that follows, a JSON line ``{name: bytes}``, the contents.
Entries are replaced in one step and checked when they are read, so nobody sees half of one; what is damaged is
removed and counts as absent. The time of a file is that of its last use: when there is too much, the oldest go.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.engine.files import read_file, write_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LIMIT: Final = 1 << 30
"""Bytes that the cache may take."""

_MAGIC: Final = b"tui-probe cache 1\n"
_DIGEST_BYTES: Final = 32
_SUFFIX: Final = ".entry"
_UNFINISHED: Final = ".unfinished"
_ABANDONED: Final = 3600.0  # seconds after which an unfinished file has no writer any more
_TRIM_EVERY: Final = 16  # parts of the limit that may be written before the next look at the whole


@dataclass(frozen=True, slots=True)
class Usage:
    """What a cache holds: the number of its entries and their bytes."""

    entries: int
    size: int


class Cache:
    """The entries of one folder, which is made when the first one is put. Safe to use from several threads."""

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self.folder = folder
        self.limit = limit
        self._numbers = itertools.count()
        self._written = 0

    def get(self, key: str) -> dict[str, bytes] | None:
        """The files of an entry, or None if there is none that is whole."""
        path = self.path(key)
        try:
            data = read_file(path)
        except OSError:
            return None
        files = _unpacked(data)
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
        data = _packed(files)
        try:
            write_file(unfinished, data)
            unfinished.replace(self.path(key))
        except OSError:
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise
        self._written += len(data)
        if self._written > self.limit // _TRIM_EVERY:
            self.trim()

    def trim(self) -> None:
        """Remove the entries used longest ago until the limit holds, and what writers left behind that were killed."""
        self._written = 0
        for path, stat in self._files(_UNFINISHED):
            if time.time() - stat.st_mtime > _ABANDONED:
                path.unlink(missing_ok=True)
        entries = sorted(self._files(_SUFFIX), key=lambda entry: entry[1].st_mtime_ns)
        excess = sum(stat.st_size for _, stat in entries) - self.limit
        for path, stat in entries:
            if excess <= 0:
                break
            path.unlink(missing_ok=True)
            excess -= stat.st_size

    def usage(self) -> Usage:
        """What the cache holds now."""
        sizes = [stat.st_size for _, stat in self._files(_SUFFIX)]
        return Usage(len(sizes), sum(sizes))

    def clear(self) -> Usage:
        """Remove all entries. Returns what there was. Raises OSError where they cannot be removed."""
        usage = self.usage()
        for path, _ in [*self._files(_SUFFIX), *self._files(_UNFINISHED)]:
            path.unlink(missing_ok=True)
        return usage

    def path(self, key: str) -> Path:
        """Where the entry of a key lies, if there is one."""
        return self.folder / f"{key}{_SUFFIX}"

    def _files(self, suffix: str) -> Iterator[tuple[Path, os.stat_result]]:
        """The files of a kind. One that another process removes at this moment is left out."""
        try:
            found = list(os.scandir(self.folder))
        except OSError:
            return
        for entry in found:
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


def _packed(files: Mapping[str, bytes]) -> bytes:
    head = json.dumps({name: len(content) for name, content in files.items()}).encode() + b"\n"
    body = b"".join([head, *files.values()])
    return b"".join([_MAGIC, hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest(), body])


def _unpacked(data: bytes) -> dict[str, bytes] | None:
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
