"""Finding the lines of a block of bytes that hold a text or match a pattern."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Needle:
    """A text (of which ASCII letters may match either case), or a pattern, which may not reach over a line's end."""

    text: bytes = b""
    ignore_case: bool = True
    pattern: re.Pattern[bytes] | None = None

    @classmethod
    def of(cls, what: str | re.Pattern[bytes], *, ignore_case: bool = True) -> Needle:
        if isinstance(what, re.Pattern):
            return cls(pattern=what)
        text = what.encode()
        return cls(text.lower() if ignore_case else text, ignore_case)

    def lines(self, data: bytes) -> Iterator[int]:
        """Offsets in ``data`` of the lines that are hit, ascending."""
        return self._pattern_lines(self.pattern, data) if self.pattern is not None else self._text_lines(data)

    def _text_lines(self, data: bytes) -> Iterator[int]:
        if b"\n" in self.text:
            return
        hay = data.lower() if self.ignore_case else data
        hit = hay.find(self.text)
        while hit >= 0:
            yield hay.rfind(b"\n", 0, hit) + 1
            end = hay.find(b"\n", hit)
            if end < 0 or end + 1 == len(hay):
                return
            hit = hay.find(self.text, end + 1)

    @staticmethod
    def _pattern_lines(pattern: re.Pattern[bytes], data: bytes) -> Iterator[int]:
        position = 0
        while match := pattern.search(data, position):
            start = data.rfind(b"\n", 0, match.start()) + 1
            end = data.find(b"\n", match.start())
            end = len(data) if end < 0 else end
            if match.end() <= end or pattern.search(data[start:end]):
                yield start
            if end + 1 >= len(data):
                return
            position = end + 1
