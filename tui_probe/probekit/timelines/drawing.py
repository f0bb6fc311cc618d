"""Drawing of a timeline: the window on time and rows, and in it for each row, how busy it was in each cell, or, where
there is room, every block as a bar with its number::

    ▁▂▃▄▅▆▇█     share of a cell's cycles in which the slots of the row ran a block; blank: no cycle
    ┣12━━━━┫     one block (or warp) from start to end; ``12!`` is flagged by its length
    ─ ━ ═        less than 0.9 times the median, about as long, more than 1.1 times
    ! –          next to the name of a row: it has a flagged block; it ran nothing

A launch on few SMs leaves lines: then each row is several cells high, with a blank line between rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.canvas import Canvas, shaded
from tui_probe.draw.spans import pad, plain, width
from tui_probe.probekit.timelines.rows import MEDIAN_TOLERANCE, OUTLIER_GRADE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tui_probe.draw.spans import Line
    from tui_probe.probekit.timelines.rows import LengthGrades, TimelineRows

LEVELS: Final = " ▁▂▃▄▅▆▇█"
_ROLES: Final = ("soft", "hue0", "hue1", "bad")
"""Roles of durations by their grade."""
_STROKES: Final = "─━══"
"""Strokes of durations by their grade; flagged ones have a ``!``, too."""
_CORNERS: Final = {"─": tuple("┌┐│└┘"), "━": tuple("┏┓┃┗┛"), "═": tuple("╔╗║╚╝")}
"""Frame of a block by the stroke of its duration, where rows are several cells high."""
_MAX_ROW_HEIGHT: Final = 4
_HEIGHT_WITH_GAP: Final = 3
"""Height from which on the last line of a row is blank."""
_CELLS_A_BAR: Final = 3
"""Rows are drawn as bars where these have as many cells on average."""


@dataclass(slots=True)
class Window:
    """Visible part of time 0 to ``span`` and of ``lines`` lines, in ``cells`` × ``height`` cells.

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
    """Cycles that everything is at least, such as those of another window next to this one."""

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
        """The window is drawn in that many cells; a view of everything stays one."""
        everything = self.width >= self.longest
        self.cells, self.height = max(cells, 1), max(height, 1)
        if everything:
            self.begin, self.width = 0.0, self.longest
        self._settle()

    def take_over(self, before: Window) -> None:
        """Take over the stretch of time, unless that was everything, and the cursor's position in it."""
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
        """Make the window ``factor`` times as wide about the cursor. False if it is as wide as possible."""
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

    def to_cell(self, cell: int) -> None:
        """Put the cursor at the middle of a cell of the window."""
        self.to(self.begin + (cell + 0.5) * self.width / self.cells)

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
        """Set the number of lines and the cursor's line, with ``above`` lines visible above it; None: half of all."""
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


@dataclass(frozen=True, slots=True)
class Strokes:
    """Flags of the drawn lines: some are ``bars``, some are ``shares``."""

    bars: bool = False
    shares: bool = False

    def __or__(self, other: Strokes) -> Strokes:
        return Strokes(self.bars or other.bars, self.shares or other.shares)


def gutter(rows: TimelineRows) -> int:
    """Cells left of the picture: cursor, name, mark, and a blank."""
    return 4 + max(width(rows.label(line)) for line in _sample(rows.lines))


def _sample(lines: int) -> list[int]:
    """Lines whose names are looked at: the first and last ones, which hold the longest numbers."""
    return list(range(min(lines, 400))) + list(range(max(lines - 400, 400), lines))


def row_height(rows: TimelineRows, room: int) -> int:
    """Cells of height of each row in a room of as many lines: more than one if all rows fit."""
    return min(max(room // rows.lines, 1), _MAX_ROW_HEIGHT)


def draw_rows(
    canvas: Canvas, x: int, y: int, rows: TimelineRows, window: Window, lengths: LengthGrades, height: int = 1
) -> Strokes:
    """The rows that the window shows, each ``height`` cells high, the first at (``x``, ``y``), names to the left."""
    count = min(window.height, rows.lines - window.top)
    body = height - 1 if height >= _HEIGHT_WITH_GAP else height
    edges = window.edges()
    by_length = rows.busy.covered(window.top, count, edges)
    covered = by_length.sum(axis=0)
    capacity = rows.capacity[window.top : window.top + count, np.newaxis]
    share = covered / np.maximum(capacity * np.diff(edges), 1)
    steps = len(LEVELS) - 1
    grade = np.where(covered > 0, np.clip(np.ceil(share * steps * body), 1, steps * body), 0)
    role_numbers = np.array([canvas.role(role) for role in _ROLES], dtype=np.uint16)
    roles = np.where(covered > 0, role_numbers[by_length.argmax(axis=0)], 0).astype(np.uint16)
    filled = np.clip(grade[:, np.newaxis] - steps * np.arange(body - 1, -1, -1)[:, np.newaxis], 0, steps)
    for i in range(count):
        canvas.paint(x, y + i * height, shaded(filled[i].astype(np.uint8), LEVELS), np.tile(roles[i], (body, 1)))
    interval_counts = rows.busy.touching(window.top, count, int(edges[0]), int(edges[-1]))
    drawn = Strokes()
    for i in range(count):
        line = window.top + i
        top = y + i * height
        _name(canvas, top, x, rows, line, body if line == window.line else 0, (body - 1) // 2)
        as_bars = bool(rows.capacity[line] == 1 and 0 < interval_counts[i] * _CELLS_A_BAR <= window.cells)
        drawn |= Strokes(as_bars, not as_bars and bool(interval_counts[i]))
        if as_bars:
            _bars(canvas, x, top, rows, line, window, lengths, body)
    return drawn


def _name(canvas: Canvas, y: int, cells: int, rows: TimelineRows, line: int, cursor: int, at: int) -> None:
    """The name of a line ``at`` lines below its first; ``cursor``: lines of the cursor, which is 0 elsewhere."""
    of_line = rows.of_line(line)
    marked = bool(rows.marked[of_line.start : of_line.stop].any())
    idle = all(rows.empty(row) for row in of_line)
    for i in range(cursor):
        canvas.text(0, y + i, "▌", "accent")
    y += at
    canvas.text(1, y, pad(rows.label(line), cells - 4), "title" if cursor else "dim")
    canvas.text(cells - 2, y, "!" if marked else "–" if idle else " ", "bad" if marked else "dim")


def _bars(
    canvas: Canvas, x: int, y: int, rows: TimelineRows, line: int, window: Window, lengths: LengthGrades, height: int
) -> None:
    """The intervals of one line, one after another."""
    signs = [[" "] * window.cells for _ in range(height)]
    roles = np.zeros(window.cells, dtype=np.uint16)
    first, last = rows.bounds(line)
    start, end = rows.intervals.start[first:last], rows.intervals.end[first:last]
    grades = lengths.grades(end - start)
    for i in np.flatnonzero((end > window.begin) & (start < window.end)).tolist():
        left = window.column(float(start[i]))
        right = max(window.column(float(end[i]) - 1e-6), left)
        grade = int(grades[i])
        label = f"{rows.intervals.block[first + i]}{'!' if grade == OUTLIER_GRADE else ''}"
        begin = max(left, 0)
        texts = _bar(label, left, right, window.cells, _STROKES[grade], height)
        for text, of_line in zip(texts, signs, strict=True):
            of_line[begin : begin + len(text)] = text
        roles[begin : begin + len(texts[0])] = canvas.role(_ROLES[grade])
    codes = np.frombuffer("".join(map("".join, signs)).encode("utf-32-le"), dtype="<u4").reshape(height, window.cells)
    canvas.paint(x, y, codes, np.tile(roles, (height, 1)))


def _bar(label: str, left: int, right: int, cells: int, stroke: str, height: int) -> list[str]:
    """The lines of a bar from cell ``left`` to ``right`` as it is seen in a window of ``cells``; with some height, a
    frame.
    """
    length = min(right, cells - 1) - max(left, 0) + 1
    if length == 1:
        return ["┃"] * height
    inside, begins, ends = length - 2, left >= 0, right < cells
    label = label if len(label) <= inside else ""

    def line(head: str, text: str, fill: str, tail: str) -> str:
        return (head if begins else fill) + text + fill * (inside - len(text)) + (tail if ends else fill)

    if height == 1:
        return [line("┣", label, stroke, "┫")]
    top_left, top_right, side, low_left, low_right = _CORNERS[stroke]
    has_inner_line = height > 2
    return [
        line(top_left, "" if has_inner_line else label, stroke, top_right),
        *(line(side, "" if i else label, " ", side) for i in range(height - 2)),
        line(low_left, "", stroke, low_right),
    ]


def legend(lengths: LengthGrades, cells: int, drawn: Strokes) -> Line:
    """Legend of height and colour in one line, shortened to the room."""
    less, more, median = f"{1 - MEDIAN_TOLERANCE:g}×", f"{1 + MEDIAN_TOLERANCE:g}×", units.count(round(lengths.median))
    lines = [
        _legend(
            drawn,
            "share of busy block slots",
            (f"< {less}", f"about {median} cycles, the median", f"> {more}", "far more"),
        ),
        _legend(drawn, "busy block slots", (f"< {less}", f"median {median}", f"> {more}", "far more")),
        _legend(drawn, "", (f"<{less}", f"~{median}", f">{more}", "far")),
    ]
    return next((line for line in lines if width(plain(line)) <= cells), lines[-1])


def _legend(drawn: Strokes, share: str, words: Sequence[str]) -> Line:
    """A sample and its words for each grade of length; without words for shares in few cells."""
    parts = [(f" ▁ to █: {share} ", "dim")] if drawn.shares and share else []
    for grade, (stroke, role, word) in enumerate(zip(_STROKES, _ROLES, words, strict=True)):
        bar = f"┣{stroke}{'!' if grade == OUTLIER_GRADE else stroke}┫"
        parts += [(" ", ""), (bar if drawn.bars else "█", role), (f" {word}{' ' if share else ''}", "dim")]
    return tuple(parts)


def draw_marks(canvas: Canvas, x: int, y: int, window: Window, marks: dict[str, float]) -> None:
    """Signs at times, on the row of the axis; a later one hides an earlier one."""
    for sign, time in marks.items():
        column = window.column(time)
        if 0 <= column < window.cells:
            canvas.text(x + column, y, sign, "accent" if sign == "▲" else "warn")
