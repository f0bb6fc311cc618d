"""Ordinary files of a trace, read within limits, and the file calls in which systems differ.

A trace comes from elsewhere. Opening a pipe instead of a file would block; a device may be without end. Windows has no
call that reads at an offset: there a lock keeps the position from changing between seeking and reading, since threads
of a screen share descriptors.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol

if TYPE_CHECKING:
    from tui_probe.input_limits import InputLimit

_SEEKING: Final = threading.Lock()
"""Held where a read is two calls, since a descriptor has one position for all threads."""


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


_OPEN_FLAGS: Final = open_flags("O_RDONLY", "O_NONBLOCK", "O_CLOEXEC")
"""Flags to open a file. A pipe opens immediately, whether or not it has a writer."""
_PART_BYTES: Final = 1 << 20
"""Bytes that are read at a time: the size of a file that grows, or of a pipe, is not known."""


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def open_plain(path: str | os.PathLike[str]) -> BinaryIO:
    """A file for reading bytes; OSError for all that is not an ordinary file, and as ``open`` does."""
    return os.fdopen(plain_descriptor(path), "rb")


def plain_descriptor(path: str | os.PathLike[str]) -> int:
    """Open a plain file and return its descriptor. Raises OSError."""
    descriptor = os.open(path, _OPEN_FLAGS)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "not a regular file but a pipe, a device or a directory", str(path))


def read_plain(path: str | os.PathLike[str], max_bytes: int) -> bytes:
    """The first ``max_bytes`` bytes of an ordinary file. OSError as ``open_plain``."""
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size  # a reader reserves memory for all that it is asked for
        return file.read(min(size, max_bytes))


def read_start(path: str | os.PathLike[str], limit: InputLimit) -> bytes:
    """An ordinary file up to a limit. OSError as ``open_plain``."""
    return read_plain(path, limit.maximum)


def read_within(path: str | os.PathLike[str], limit: InputLimit) -> bytes:
    """All of an ordinary file. OSError as ``open_plain``, and if it is larger than the limit."""
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(size + 1) if size <= limit.maximum else b""
    if max(size, len(data)) > limit.maximum:
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
    while part := file.read(_PART_BYTES):
        data += part
        if len(data) > limit.maximum:
            raise _too_large(path, limit)
    return bytes(data)


def _too_large(path: str | os.PathLike[str], limit: InputLimit) -> OSError:
    remedy = f"; {limit.remedy}" if limit.remedy else ""
    return OSError(errno.EFBIG, f"larger than {limit.size}, the limit for {limit.subject}{remedy}", os.fspath(path))


def text_of(data: bytes) -> str:
    """Bytes of a trace as text that can always be encoded again, printed and put into JSON."""
    return data.decode("utf-8", "backslashreplace")
