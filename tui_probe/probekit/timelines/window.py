"""A window on a stretch of time and on some lines, with a cursor; pure arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(slots=True)
class Window:
    """What is seen of time 0 to ``span`` and of ``lines`` lines, in ``cells`` × ``height`` cells.

    Times are cycles. ``time`` and ``line`` are the cursor, which is always inside.
    """

    span: float
    lines: int
    cells: int = 60
    height: int = 16
    begin: float = 0.0
    width: float = 0.0
    top: int = 0
    time: float = 0.0
    line: int = 0
    least: float = 0.0
    """Cycles that everything is at least, such as those of another window beside this one."""

    def __post_init__(self) -> None:
        self.width = self.width or self.longest

    @property
    def longest(self) -> float:
        """The width that shows everything; at least one cycle per cell."""
        return max(self.span, self.least, float(self.cells))

    def stretch(self, cycles: float) -> None:
        """Show everything, and be at least so long."""
        self.least = cycles
        self.fit()

    @property
    def end(self) -> float:
        return self.begin + self.width

    def resize(self, cells: int, height: int) -> None:
        """The window is drawn in so many cells; a view of everything stays one."""
        everything = self.width >= self.longest
        self.cells, self.height = max(cells, 1), max(height, 1)
        if everything:
            self.begin, self.width = 0.0, self.longest
        self._settle()

    def take_over(self, before: Window) -> None:
        """The same stretch of time, unless that was everything, and the same place of the cursor in it."""
        self.cells, self.height = before.cells, before.height
        self.width = before.width if before.width < before.longest else self.longest
        self.begin, self.time = before.begin, before.time
        self._settle()

    def edges(self) -> NDArray[np.int64]:
        """The cycles (i8) between which each cell lies, cells + 1 of them."""
        times = self.begin + self.width * np.arange(self.cells + 1) / self.cells
        return np.floor(times).astype(np.int64)

    def column(self, time: float) -> int:
        """The cell of a time; outside the window, a cell outside."""
        return int((time - self.begin) / self.width * self.cells // 1)

    def fit(self) -> None:
        self.begin, self.width, self.top = 0.0, self.longest, 0

    def zoom(self, factor: float) -> bool:
        """Make the window ``factor`` times as wide about the cursor. False if it is as far as it goes."""
        width = min(max(self.width * factor, float(self.cells)), self.longest)
        if width == self.width:
            return False
        self.begin = self.time - (self.time - self.begin) * (width / self.width)
        self.width = width
        self._settle()
        return True

    def move(self, cells: int) -> None:
        """Move the cursor along time, and the window if the cursor would leave it."""
        self.to(self.time + cells * self.width / self.cells)

    def to(self, time: float) -> None:
        """Put the cursor at a time, in view."""
        self.time = min(max(time, 0.0), self.span)
        cell = self.width / self.cells
        self.begin = max(min(self.begin, self.time), self.time - self.width + cell)
        self._settle()

    def page(self, pages: int) -> None:
        """Move the window by pages along time, and the cursor with it."""
        self.begin += pages * self.width
        self.time += pages * self.width
        self._settle()

    def move_lines(self, lines: int) -> None:
        """Move the cursor across lines, and the window if the cursor would leave it."""
        self.line = min(max(self.line + lines, 0), self.lines - 1)
        self.top = min(self.line, max(self.top, self.line - self.height + 1))

    def set_lines(self, lines: int, line: int, above: int | None = None) -> None:
        """There are other lines now, and the cursor is on one of them, with so many visible above it: half of all."""
        self.lines, self.line = lines, 0
        self.top = max(line - (self.height // 2 if above is None else above), 0)
        self.line = line
        self._settle()

    def _settle(self) -> None:
        self.width = min(max(self.width, float(self.cells)), self.longest)
        self.begin = min(max(self.begin, 0.0), self.longest - self.width)
        self.time = min(max(self.time, self.begin, 0.0), self.span, self.end - self.width / self.cells / 2)
        self.line = min(max(self.line, 0), self.lines - 1)
        self.top = min(max(self.top, 0), max(self.lines - self.height, 0))
        self.top = min(self.line, max(self.top, self.line - self.height + 1))
