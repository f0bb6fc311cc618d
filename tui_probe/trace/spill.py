"""A file without a name, for what would otherwise grow in memory for as long as a program runs."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Final

_ON_DISK: Final = "/var/tmp"
"""Before the system's folder for temporary files, which is often in memory."""


class Spill:
    """Pieces of bytes, kept in a file that is gone with the process. Where there is no room for it, in memory.

    One thread puts pieces in and changes them; any may read.
    """

    def __init__(self) -> None:
        self._file: int | None = None
        self._end = 0
        self._failed = False
        self._kept: dict[int, bytes] = {}

    def __del__(self) -> None:
        if self._file is not None:
            os.close(self._file)

    def put(self, piece: bytes) -> int:
        """Append a piece; where it stands."""
        place = self._end
        self._end += len(piece)
        if not self._write(piece, place):
            self._kept[place] = piece
        return place

    def change(self, place: int, piece: bytes) -> None:
        """Put another piece of the same size in the place of one."""
        if place in self._kept or not self._write(piece, place):
            self._kept[place] = piece

    def get(self, place: int, size: int) -> bytes:
        """The piece of this size that stands there."""
        kept = self._kept.get(place)
        if kept is not None:
            return kept
        assert self._file is not None
        parts, read = [], 0
        while read < size and (part := os.pread(self._file, size - read, place + read)):
            parts.append(part)
            read += len(part)
        return b"".join(parts)

    def _write(self, piece: bytes, place: int) -> bool:
        try:
            if self._file is None and not self._failed:
                self._file = _open()
            return self._file is not None and _write_whole(self._file, piece, place)
        except OSError:
            self._failed = True
            return False


def _open() -> int:
    """An empty file that nobody else can find. Raises OSError where there is no folder for one."""
    folders = [os.environ.get("TMPDIR"), _ON_DISK, tempfile.gettempdir()]
    for folder in filter(None, folders):
        with contextlib.suppress(OSError):
            descriptor, name = tempfile.mkstemp(prefix="tui-probe-", dir=folder)
            Path(name).unlink()
            return descriptor
    raise OSError(f"no folder for temporary files: {', '.join(filter(None, folders))}")


def _write_whole(file: int, piece: bytes, place: int) -> bool:
    view = memoryview(piece)
    while len(view):
        written = os.pwrite(file, view, place)
        view, place = view[written:], place + written
    return True
