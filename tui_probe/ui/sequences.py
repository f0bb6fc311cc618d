"""What a terminal has to be sent of a frame: colours that it has already, and ends of rows before a move, are left out.

Rich gives each stretch of text all its attributes and takes them back behind it: twenty-five bytes around a digit that
changed. Here attributes stay until others are needed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_TOKEN: Final = re.compile(r"\x1b\[([0-9;]*)m|(\x1b\[\d+;\d+H)|(\n)|\x1b[^m\x1b]*|[^\x1b\n]+")
_COLOURS: Final = re.compile(r"(38;5;\d+)(?:;(48;5;\d+))?|(48;5;\d+)")
"""Attributes that are colours of the table alone: of these one can be changed without the other."""
_NONE: Final = ""


def shortened(frame: str) -> str:
    """A frame that shows the same, on a terminal without attributes, and leaves it without."""
    return "".join(_Writer().write(frame))


class _Writer:
    """``now`` are the attributes that the terminal has, ``wanted`` those of the next text."""

    def __init__(self) -> None:
        self.now = self.wanted = _NONE
        self.newline = False

    def write(self, frame: str) -> Iterable[str]:
        for token in _TOKEN.finditer(frame):
            attributes, move, newline = token.groups()
            if attributes is not None:
                self._want(attributes)
            elif newline:
                yield from self._end_row()
                self.newline = True
            else:
                if move is None:
                    yield from self._end_row()
                    yield self._change()
                self.newline = False
                yield token[0]
        self.wanted = _NONE
        yield self._change()
        yield from self._end_row()

    def _want(self, attributes: str) -> None:
        """Attributes add up, until they are taken back."""
        if attributes in ("", "0"):
            self.wanted = _NONE
        else:
            self.wanted = f"{self.wanted};{attributes}" if self.wanted else attributes

    def _end_row(self) -> Iterable[str]:
        """Nothing, where a move follows."""
        if self.newline:
            self.newline = False
            yield "\n"

    def _change(self) -> str:
        """To the attributes that are wanted."""
        if self.now == self.wanted:
            return ""
        before, after = _parts(self.now), _parts(self.wanted)
        self.now = self.wanted
        if not self.wanted:
            return "\x1b[0m"
        if before is None or after is None or any(was and not is_ for was, is_ in zip(before, after, strict=True)):
            return f"\x1b[{'0;' if before != ('', '') else ''}{self.wanted}m"
        return f"\x1b[{';'.join(is_ for was, is_ in zip(before, after, strict=True) if is_ != was)}m"


def _parts(attributes: str) -> tuple[str, str] | None:
    """Colour and ground, "" for none; None where there is more than these."""
    if not attributes:
        return "", ""
    found = _COLOURS.fullmatch(attributes)
    return None if found is None else (found[1] or "", found[2] or found[3] or "")
