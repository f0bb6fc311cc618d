"""File calls in which systems differ: flags, and reads at an offset.

Windows has no call that reads at an offset. There a lock keeps the position from changing between seeking and reading:
threads of a screen share descriptors.
"""

from __future__ import annotations

import os
import threading
from typing import Final

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
