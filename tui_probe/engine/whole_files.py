"""Files that are written and read whole, with few system calls: the engine writes a dozen for each kernel."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Final

from tui_probe.trace.plain_file import open_flags

if TYPE_CHECKING:
    from pathlib import Path

NEW_FILE: Final = open_flags("O_WRONLY", "O_CREAT", "O_TRUNC", "O_NOFOLLOW", "O_CLOEXEC")
APPENDED_FILE: Final = open_flags("O_WRONLY", "O_CREAT", "O_APPEND", "O_NOFOLLOW", "O_CLOEXEC")
_MODE: Final = 0o666


def open_file(path: Path, flags: int) -> int:
    """Open a file for writing, ``NEW_FILE`` or ``APPENDED_FILE``, and return its descriptor.

    Raises OSError, and ValueError for a 0 in its name.
    """
    return os.open(path, flags, _MODE)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of the bytes. Raises OSError."""
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]


def write_file(path: Path, data: bytes) -> None:
    """Write a file; one that is there is overwritten, and readers may see a part. Raises OSError."""
    descriptor = open_file(path, NEW_FILE)
    try:
        write_all(descriptor, data)
    finally:
        os.close(descriptor)


def read_file(path: Path) -> bytes:
    """Return all bytes of a file that no one writes to any more. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        remaining = os.fstat(descriptor).st_size
        pieces = []
        while remaining > 0 and (piece := os.read(descriptor, remaining)):
            pieces.append(piece)
            remaining -= len(piece)
    finally:
        os.close(descriptor)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def put_file(path: Path, content: bytes) -> None:
    """Write a new file; one that is there is replaced in one step. Raises OSError."""
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
    """Replace a file in one step when the new one is complete; another thread may be writing the old one."""
    unfinished = _unfinished_path(path)
    try:
        write_file(unfinished, content)
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise


def put_link(existing: Path, path: Path) -> bool:
    """Make ``path`` a link to an existing file, in place of what is there; False where that is not possible."""
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
