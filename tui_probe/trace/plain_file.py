"""Ordinary files of a trace, read within limits.

A trace comes from elsewhere. Opening a pipe instead of a file would block; a device may be without end.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol

from tui_probe.trace.portable_files import open_flags

if TYPE_CHECKING:
    from tui_probe.input_limits import InputLimit

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
