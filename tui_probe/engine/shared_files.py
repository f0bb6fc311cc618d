"""Files that several threads may put to the same place at once, for it is the same file: each appears whole."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from tui_probe.engine.files import NEW, open_file, write_all, write_file

if TYPE_CHECKING:
    from pathlib import Path


def put(path: Path, content: bytes) -> None:
    """Write a file in the place of what is there. Raises OSError."""
    try:
        descriptor = open_file(path, NEW | os.O_EXCL)
    except FileExistsError:
        _put_over(path, content)
        return
    try:
        write_all(descriptor, content)
    finally:
        os.close(descriptor)


def _put_over(path: Path, content: bytes) -> None:
    """Another thread may be writing it: what that one has is replaced when this one is whole."""
    unfinished = _unfinished(path)
    try:
        write_file(unfinished, content)
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise


def link_to(existing: Path, path: Path) -> bool:
    """Put a link to a file in the place of what is there; False where none can be made."""
    try:
        os.link(existing, path)
    except FileExistsError:
        return _replaced(existing, path)
    except OSError:
        return False
    return True


def _replaced(existing: Path, path: Path) -> bool:
    unfinished = _unfinished(path)
    try:
        os.link(existing, unfinished)
        unfinished.replace(path)
    except OSError:
        return False
    finally:
        unfinished.unlink(missing_ok=True)  # still there where both were links to one file already
    return True


def _unfinished(path: Path) -> Path:
    return path.with_name(f".{path.name}.{threading.get_native_id()}")
