"""Where one is in a text: the first visible line, and the line that the cursor is on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Place:
    """``top`` and ``cursor`` count the lines that pass the filter. A text without cursor has ``pointed`` unset.

    The cursor moves through a window that stands still, and at an edge the window moves by half of itself: scrolling
    by a line would send every line again. ``count`` is how many lines there are, ``room`` how many are visible.
    """

    top: int = 0
    cursor: int = 0
    pointed: bool = False

    def fit(self, count: int, room: int) -> None:
        """Both within the text, the cursor within the window."""
        self.top = max(0, min(self.top, count - room))
        self.cursor = max(self.top, min(self.cursor, self.top + room - 1, count - 1)) if self.pointed else self.top

    def follow(self, count: int, room: int) -> None:
        """The window has another size: it moves as little as it must, and the cursor stays on its line."""
        if self.pointed:
            self.cursor = max(0, min(self.cursor, count - 1))
            self.top = min(max(self.top, self.cursor - room + 1), self.cursor)
        self.fit(count, room)

    def step(self, step: int, count: int, room: int) -> None:
        """By lines."""
        if not self.pointed:
            self.top += step
        else:
            self.cursor = max(0, min(self.cursor + step, count - 1))
            half = max(1, room // 2)
            if self.cursor < self.top:
                self.top = min(self.cursor, self.top - half)
            elif self.cursor >= self.top + room:
                self.top = max(self.cursor - room + 1, self.top + half)
        self.fit(count, room)

    def page(self, step: int, count: int, room: int) -> None:
        """By windows. The cursor keeps its row; where there is no further window it goes to the end."""
        before, size = self.top, step * max(1, room - 1)
        self.top = max(0, min(self.top + size, count - room))
        self.cursor += self.top - before if self.top != before else size
        self.fit(count, room)

    def to(self, line: int, count: int, room: int, *, above: int = 3) -> None:
        """To a line. The window stays if the line and some after it are visible, else some lines are left above it."""
        if not self.top <= line < self.top + max(1, room - room // 4):
            self.top = line - min(above, room // 4)
        self.cursor = line
        self.fit(count, room)
