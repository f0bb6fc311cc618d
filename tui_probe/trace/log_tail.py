"""The lines that were appended to a file since the last look."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from tui_probe.errors import TraceError
from tui_probe.input_limits import LOG_LINE
from tui_probe.trace.plain_file import open_plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SLICE: Final = 2 << 20
"""Bytes read together: what is worked out of them stays in the caches of a processor."""


class LogTail:
    """Reads whole lines from a growing file, in slices; the beginning of an unfinished line is kept for later."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        self.start = 0
        """Where the slice that was yielded last begins."""
        self._rest = b""
        self._size = 0

    @property
    def share(self) -> float:
        """How much was read of what there was when reading began."""
        return min(1.0, self.offset / self._size) if self._size else 1.0

    def was_replaced(self) -> bool:
        """Whether the file is shorter than what was read of it; the next slices then begin at its start."""
        try:
            replaced = self.path.stat().st_size < self.offset
        except OSError:
            return False
        if replaced:
            self.offset, self._rest = 0, b""
        return replaced

    def slices(self) -> Iterator[bytes]:
        """Yield what was appended, each slice being one or more whole lines that end in a newline."""
        try:
            file = open_plain(self.path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise TraceError(f"{self.path}: {error.strerror or error}") from error
        with file:
            self._size = size = os.fstat(file.fileno()).st_size
            file.seek(self.offset)
            while self.offset < size and (data := file.read(min(SLICE, size - self.offset))):
                self.start = self.offset - len(self._rest)
                self.offset += len(data)
                lines = self._whole_lines(data)
                if lines:
                    yield lines

    def _whole_lines(self, data: bytes) -> bytes:
        end = data.rfind(b"\n") + 1
        lines = b"".join((self._rest, memoryview(data)[:end])) if end else b""
        self._rest = data[end:] if end else self._rest + data
        if len(self._rest) > LOG_LINE.most:
            lines, self._rest = lines + self._rest + b"\n", b""
        return lines
