"""Whole files with no more calls to the system than they need: a launch waits for a kernel's files, and there are disks
on which every call takes its time.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
APPENDED: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_MODE: Final = 0o666


def open_file(path: Path, how: int) -> int:
    """The descriptor of a file to be written, ``NEW`` or ``APPENDED``. OSError; ValueError for a 0 in its name."""
    return os.open(path, how, _MODE)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of the bytes. Raises OSError."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def write_file(path: Path, data: bytes) -> None:
    """Make a file of these bytes, in the place of one that is there. Raises OSError."""
    descriptor = open_file(path, NEW)
    try:
        write_all(descriptor, data)
    finally:
        os.close(descriptor)


def read_file(path: Path) -> bytes:
    """All bytes of a file that nobody writes to any more. Raises OSError."""
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
