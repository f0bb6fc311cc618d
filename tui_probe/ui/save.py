"""Text out of the screen: to the clipboard of the terminal, and to files."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.draw.printable import printable_text
from tui_probe.errors import ProbeError

if TYPE_CHECKING:
    from collections.abc import Callable

LARGEST_CLIPBOARD = 74_994
"""Bytes whose OSC 52 sequence is shorter than 100 000 bytes, the least that terminals are known to take."""


def copy_out(text: str) -> str:
    """Write a copied text to a file, since a terminal does not say whether it took it; returns what to tell."""
    text = printable_text(text)
    size = len(text.encode())
    how = "copied" if size <= LARGEST_CLIPBOARD else "too long for a terminal's clipboard;"
    return f"{how} {size} bytes, also in {_write_copy(text)}"


def _write_copy(text: str) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = cache / "tui-probe" / "copied.txt"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError:  # no home that can be written
        handle, name = tempfile.mkstemp(prefix="tui-probe-copied-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        return Path(name)
    return path


def export(what: str, suffix: str, write: Callable[[Path], None], folder: Path | None = None) -> str:
    """Have a new file written in ``folder`` (default: the current one); returns what to tell."""
    folder = folder or Path.cwd()
    stem = f"tui-probe-{what}-{time.strftime('%Y%m%d-%H%M%S')}"
    path = None
    try:
        path = _new_file(folder, stem, suffix)
        write(path)
    except OSError as error:
        return f"cannot write to {folder}: {error.strerror or error}"
    except ProbeError as error:
        if path is not None and not path.stat().st_size:
            path.unlink()
        return str(error)
    return f"written: {path.name} in {folder}"


def _new_file(folder: Path, stem: str, suffix: str) -> Path:
    number = 0
    while True:
        path = folder / (f"{stem}.{suffix}" if not number else f"{stem}-{number}.{suffix}")
        try:
            path.touch(exist_ok=False)
        except FileExistsError:
            number += 1
        else:
            return path
