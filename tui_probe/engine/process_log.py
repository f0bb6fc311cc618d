"""``process.log`` of a kernel: what the engine did, for a person to read."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class ProcessLog:
    """Appends whole pieces of text, so that what two threads write does not mix. A new log replaces an old one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        path.write_text("", encoding="utf-8")

    def write(self, text: str) -> None:
        """Append text and a newline. It is in the file when this returns."""
        with self._lock, self._path.open("a", encoding="utf-8", errors="replace") as file:
            file.write(text.rstrip("\n") + "\n")
