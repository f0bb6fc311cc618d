"""Opening files of a trace: ordinary ones alone.

A trace comes from elsewhere. A pipe in the place of a file would hold up whoever opens it, a device may be without end.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, BinaryIO, Final

if TYPE_CHECKING:
    from tui_probe.input_limits import InputLimit

_HOW: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
"""Of a pipe the open ends at once, whether or not anybody writes to it."""


def open_plain(path: str | os.PathLike[str]) -> BinaryIO:
    """A file for reading bytes; OSError for all that is no ordinary file, and as ``open`` does."""
    return os.fdopen(plain_descriptor(path), "rb")


def plain_descriptor(path: str | os.PathLike[str]) -> int:
    """The same as a descriptor."""
    descriptor = os.open(path, _HOW)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "not an ordinary file, but a pipe, a device or a folder", str(path))


def read_plain(path: str | os.PathLike[str], most: int = -1) -> bytes:
    """The first ``most`` bytes of an ordinary file, or all of it. OSError as ``open_plain``."""
    with open_plain(path) as file:
        return file.read(most)


def read_within(path: str | os.PathLike[str], limit: InputLimit) -> bytes:
    """All of an ordinary file. OSError as ``open_plain``, and if it is larger than the limit."""
    data = read_plain(path, limit.most + 1)
    if len(data) > limit.most:
        raise OSError(errno.EFBIG, f"larger than {limit.size}, the limit for {limit.subject}", str(path))
    return data
