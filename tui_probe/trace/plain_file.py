"""Ordinary files of a trace: read within limits, written through no link; and calls in which systems differ.

A trace comes from elsewhere. Opening a pipe instead of a file would block; a device may be without end. Windows has no
call that reads at an offset. There a lock keeps the position from changing between seeking and reading: threads of a
screen share descriptors.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import threading
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol, Self

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.input_limits import InputLimit

_SEEKING: Final = threading.Lock()


def open_flags(*names: str) -> int:
    """Return the flags of these names that this system has, and the one that keeps bytes as they are on Windows."""
    flags = 0
    for name in (*names, "O_BINARY"):
        flags |= getattr(os, name, 0)
    return flags


if hasattr(os, "preadv"):

    def read_at(descriptor: int, size: int, offset: int) -> bytes:
        """Return at most ``size`` bytes from ``offset`` on; none at the end of the file."""
        return os.pread(descriptor, size, offset)

    def read_into(descriptor: int, buffer: memoryview, offset: int) -> int:
        """Fill the start of ``buffer`` from ``offset`` on, and return the number of bytes; 0 at the end of the file."""
        return os.preadv(descriptor, [buffer], offset)

else:

    def read_at(descriptor: int, size: int, offset: int) -> bytes:
        """Return at most ``size`` bytes from ``offset`` on; none at the end of the file."""
        with _SEEKING:
            os.lseek(descriptor, offset, os.SEEK_SET)
            return os.read(descriptor, size)

    def read_into(descriptor: int, buffer: memoryview, offset: int) -> int:
        """Fill the start of ``buffer`` from ``offset`` on, and return the number of bytes; 0 at the end of the file."""
        content = read_at(descriptor, len(buffer), offset)
        buffer[: len(content)] = content
        return len(content)


_HOW: Final = open_flags("O_RDONLY", "O_NONBLOCK", "O_CLOEXEC")
"""Flags to open a file. A pipe opens immediately, whether or not it has a writer."""

_PART: Final = 1 << 20


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def open_plain(path: str | os.PathLike[str]) -> BinaryIO:
    """A file for reading bytes; OSError for all that is not an ordinary file, and as ``open`` does."""
    return os.fdopen(plain_descriptor(path), "rb")


def plain_descriptor(path: str | os.PathLike[str]) -> int:
    """Open a plain file and return its descriptor. Raises OSError."""
    descriptor = os.open(path, _HOW)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "not a regular file but a pipe, a device or a directory", str(path))


def read_plain(path: str | os.PathLike[str], most: int) -> bytes:
    """The first ``most`` bytes of an ordinary file. OSError as ``open_plain``."""
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size  # a reader reserves memory for all that it is asked for
        return file.read(min(size, most))


def read_start(path: str | os.PathLike[str], limit: InputLimit) -> bytes:
    """An ordinary file up to a limit. OSError as ``open_plain``."""
    return read_plain(path, limit.most)


def read_within(path: str | os.PathLike[str], limit: InputLimit) -> bytes:
    """All of an ordinary file. OSError as ``open_plain``, and if it is larger than the limit."""
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(size + 1) if size <= limit.most else b""
    if max(size, len(data)) > limit.most:
        raise _too_large(path, limit)
    return data


def read_unpacked(path: str | os.PathLike[str], limit: InputLimit) -> bytes:
    """All of an ordinary file, unpacked if its name ends in ``.gz``. OSError as ``read_within``; EOFError and
    ``zlib.error`` if it is damaged.
    """
    if not os.fspath(path).endswith(".gz"):
        return read_within(path, limit)
    import gzip  # few files are packed

    with open_plain(path) as raw, gzip.GzipFile(fileobj=raw) as file:
        return read_stream(file, path, limit)


def read_stream(file: _Readable, path: str | os.PathLike[str], limit: InputLimit) -> bytes:
    """The rest of a stream, whose size is not known. OSError above the limit, which names ``path``."""
    data = bytearray()
    while part := file.read(_PART):
        data += part
        if len(data) > limit.most:
            raise _too_large(path, limit)
    return bytes(data)


def _too_large(path: str | os.PathLike[str], limit: InputLimit) -> OSError:
    remedy = f"; {limit.remedy}" if limit.remedy else ""
    return OSError(errno.EFBIG, f"larger than {limit.size}, the limit for {limit.subject}{remedy}", os.fspath(path))


def text_of(data: bytes) -> str:
    """Bytes of a trace as text that can always be encoded again, printed and put into JSON."""
    return data.decode("utf-8", "backslashreplace")


# A trace directory while launcher and engine write to it: by its descriptor, and through no link.
#
# Where others may write, the directory that was looked at and the one that is written to by its name may be two, and
# a name in it may be that of a link to a file of the user's.

_DIRECTORY: Final = open_flags("O_RDONLY", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC")
_NEW: Final = open_flags("O_WRONLY", "O_CREAT", "O_EXCL", "O_NOFOLLOW", "O_CLOEXEC")
_OLD: Final = open_flags("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC")
"""Flags to open an existing file. A FIFO opens immediately; ``_regular`` then refuses it."""


class TraceFolder:
    """Names in it are plain ones. All methods raise OSError, of links and special files, too."""

    def __init__(self, path: Path, *folders: str) -> None:
        """The directory itself, or one in it. OSError if any of these is a link or is not there."""
        self._descriptor = os.open(path, _DIRECTORY)
        for name in folders:
            above = self._descriptor
            try:
                self._descriptor = os.open(name, _DIRECTORY, dir_fd=above)
            finally:
                os.close(above)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def has(self, name: str) -> bool:
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

    def put(self, name: str, data: bytes, mode: int = 0o666) -> None:
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
        with os.fdopen(self._open(name, os.O_RDONLY), "rb") as file:
            return file.read()

    def append(self, name: str, data: bytes) -> None:
        """Add to the end of a file that is there."""
        with os.fdopen(self._open(name, os.O_WRONLY | os.O_APPEND), "ab") as file:
            file.write(data)

    def link(self, file: Path, name: str) -> None:
        """Give a file another name, too, in this directory."""
        os.link(file, name, dst_dir_fd=self._descriptor, follow_symlinks=False)

    def copy(self, file: Path, name: str) -> None:
        """Copy a file into this directory, under a name that nothing has."""
        with file.open("rb") as source, os.fdopen(self._create(name, 0o666), "wb") as target:
            shutil.copyfileobj(source, target)

    def _create(self, name: str, mode: int) -> int:
        return os.open(name, _NEW, mode, dir_fd=self._descriptor)

    def _make(self, name: str, data: bytes, mode: int) -> None:
        self._remove(name)  # one that a launcher before us left, or that someone planted
        with os.fdopen(self._create(name, mode), "wb") as file:
            file.write(data)

    def _remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._descriptor)

    def _write_over(self, name: str, data: bytes) -> None:
        with os.fdopen(self._open(name, os.O_RDWR), "r+b") as file:
            file.write(data)
            file.truncate()

    def _open(self, name: str, how: int) -> int:
        descriptor = os.open(name, how | _OLD, dir_fd=self._descriptor)
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            return descriptor
        os.close(descriptor)
        raise OSError(f"{name}: not a regular file")
