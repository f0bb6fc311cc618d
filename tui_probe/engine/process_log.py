"""``process.log`` of a kernel: what the engine did, for a person to read."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Self

from tui_probe.engine.files import APPENDED, NEW, open_file, write_all

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType


class ProcessLog:
    """Appends whole pieces of text, so that what two threads write does not mix. A new log replaces an old one.

    As a context manager it keeps the file open: up to the end of the block, in which the launch waits. What is written
    later opens it again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._descriptor: int | None = open_file(path, NEW)

    def write(self, text: str) -> None:
        """Append text and a newline. It is in the file when this returns. Raises OSError."""
        data = (text.rstrip("\n") + "\n").encode("utf-8", "replace")
        with self._lock:
            if self._descriptor is not None:
                write_all(self._descriptor, data)
                return
            descriptor = open_file(self._path, APPENDED)
            try:
                write_all(descriptor, data)
            finally:
                os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None
