"""Directory of a trace while launcher and engine write to it: by its descriptor, and through no link.

Where others may write, the directory that was looked at and the one that is written to by its name may be two, and
a name in it may be that of a link to a file of the user's.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from typing import TYPE_CHECKING, Final, Self

from tui_probe.trace.plain_file import open_flags

if TYPE_CHECKING:
    from pathlib import Path

_DIRECTORY: Final = open_flags("O_RDONLY", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC")
_CREATE_FLAGS: Final = open_flags("O_WRONLY", "O_CREAT", "O_EXCL", "O_NOFOLLOW", "O_CLOEXEC")
_EXISTING_FLAGS: Final = open_flags("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC")
"""Flags to open an existing file. A FIFO opens immediately; ``_regular`` then refuses it."""


class TraceDirectory:
    """A directory of a trace, with plain names in it. All methods raise OSError, also for links and special files."""

    def __init__(self, path: Path, *folders: str) -> None:
        """The directory itself, or one in it. OSError if any of these is a link or is not there."""
        self._descriptor = os.open(path, _DIRECTORY)
        for name in folders:
            parent = self._descriptor
            try:
                self._descriptor = os.open(name, _DIRECTORY, dir_fd=parent)
            finally:
                os.close(parent)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def contains(self, name: str) -> bool:
        """True if an entry has this name, a link without a target included."""
        try:
            os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def make(self, name: str) -> None:
        """Make a directory, if nothing has this name."""
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=self._descriptor)

    def write(self, name: str, data: bytes, mode: int = 0o666) -> None:
        """Make a file in one step: a reader sees the old one or the new one, whole.

        On a full disk the new one goes to the place of the old, which has about its size. OSError all the same.
        """
        temporary = f".{name}.tmp"
        try:
            self._make(temporary, data, mode)
            os.replace(temporary, name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        except OSError:
            with contextlib.suppress(OSError):
                self._remove(temporary)
                self._write_over(name, data)
            raise

    def read(self, name: str) -> bytes:
        """All of a file."""
        with os.fdopen(self._open_file(name, os.O_RDONLY), "rb") as file:
            return file.read()

    def append(self, name: str, data: bytes) -> None:
        """Add to the end of a file that is there."""
        with os.fdopen(self._open_file(name, os.O_WRONLY | os.O_APPEND), "ab") as file:
            file.write(data)

    def link(self, file: Path, name: str) -> None:
        """Give a file another name, too, in this directory."""
        os.link(file, name, dst_dir_fd=self._descriptor, follow_symlinks=False)

    def copy(self, file: Path, name: str) -> None:
        """Copy a file into this directory, under a name that nothing has."""
        with file.open("rb") as source, os.fdopen(self._create(name, 0o666), "wb") as target:
            shutil.copyfileobj(source, target)

    def _create(self, name: str, mode: int) -> int:
        return os.open(name, _CREATE_FLAGS, mode, dir_fd=self._descriptor)

    def _make(self, name: str, data: bytes, mode: int) -> None:
        self._remove(name)  # one that a launcher before us left, or that someone planted
        with os.fdopen(self._create(name, mode), "wb") as file:
            file.write(data)

    def _remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._descriptor)

    def _write_over(self, name: str, data: bytes) -> None:
        with os.fdopen(self._open_file(name, os.O_RDWR), "r+b") as file:
            file.write(data)
            file.truncate()

    def _open_file(self, name: str, flags: int) -> int:
        descriptor = os.open(name, flags | _EXISTING_FLAGS, dir_fd=self._descriptor)
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            return descriptor
        os.close(descriptor)
        raise OSError(f"{name}: not a regular file")
