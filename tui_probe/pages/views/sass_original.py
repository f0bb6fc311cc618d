"""The machine code of a kernel that was not probed, as the program loaded it, and instructions counted by class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tui_probe.analysis.sass import CLASSES, class_of_line
from tui_probe.draw.lazy import LazyLines
from tui_probe.draw.spans import pad
from tui_probe.draw.view import Document
from tui_probe.pages.source_text import coloured, drawn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.analysis.sass import Code
    from tui_probe.draw.spans import Line
    from tui_probe.trace.model import Kernel

_CLASS, _NUMBER = 14, 9
_SIDE: Final = "original"
_KEYS: Final = ("side", "address", "class", "source", "text")


class SassOriginal(Document):
    """The code of one kernel out of its image, with the source lines that it carries."""

    def __init__(self, kernel: Kernel, tool: str, code: Code) -> None:
        self.title = f"Machine code of {kernel.demangled}"
        self.tool, self.code = tool, code

    def lines(self, width: int) -> Sequence[Line]:
        """Counts by class, then code."""
        del width
        return LazyLines(len(self.code.lines), self._line, self._head())

    def begins(self, width: int) -> int:
        """Below the counts."""
        del width
        return len(self._head())

    def gutter(self, width: int) -> int:
        """Line numbers."""
        del width
        return 7

    def _line(self, number: int) -> Line:
        source = f"  // {self.code.sources[number]}" if self.code.sources[number] else ""
        return ((f"{number + 1:>5}  ", "dim"), *coloured(drawn(self.code.lines[number])), (source, "dim"))

    def _head(self) -> list[Line]:
        lines: list[Line] = [((" " + pad("instructions", _CLASS) + pad(_SIDE, _NUMBER, right=True), "head"),)]
        for name, number in self._counts().items():
            lines.append(((" " + pad(name, _CLASS), "dim"), (pad(str(number), _NUMBER, right=True), "")))
        return [*lines, ()]

    def _counts(self) -> dict[str, int]:
        counts = self.code.counts
        return {**{name: counts[name] for name in CLASSES if counts[name]}, "all": self.code.total}

    def status(self) -> list[str]:
        """Who made the text, and of which file."""
        return [self.tool, "original.bin, not probed"]

    def record(self) -> dict[str, Any]:
        """Counts by class, and the lines, as of a probed kernel; nothing was measured."""
        keys, *rows = self.cells()
        return {
            "tool": self.tool,
            "counts": {name: {_SIDE: number} for name, number in self._counts().items()},
            "measured": None,
            "lines": [dict(zip(map(str, keys), row, strict=True)) for row in rows],
        }

    def cells(self) -> Iterator[Sequence[object]]:
        """One row per line; a label has no address and no class."""
        yield _KEYS
        for text, address, source in zip(self.code.lines, self.code.addresses, self.code.sources, strict=True):
            at = None if address is None else f"{address:#06x}"
            yield (_SIDE, at, class_of_line(text), source or None, text.strip())
