"""A timeline drawn: how busy each row was in each cell, or, where there is room, every block as a bar with its number.

▁▂▃▄▅▆▇█   share of a cell's cycles in which the slots of the row ran a block; a blank is no cycle at all
┣12━━━━┫   one block (or warp) from start to end; ``12!`` stands out by its length
─ ━ ═      it took less than 0.9 times the median, about as long, more than 1.1 times
!  –       beside the name of a row: it holds a block that stands out; it ran nothing
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.canvas import Canvas, shaded
from tui_probe.draw.spans import pad, plain, width
from tui_probe.probekit.timelines.lengths import NEAR, ROLES, STANDS_OUT, STROKES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.probekit.timelines.lengths import Lengths
    from tui_probe.probekit.timelines.rows import Rows
    from tui_probe.probekit.timelines.window import Window

LEVELS: Final = " ▁▂▃▄▅▆▇█"
_CELLS_A_BAR: Final = 3
"""Rows are drawn as bars where these have as many cells on average."""


@dataclass(frozen=True, slots=True)
class Strokes:
    """What lines are drawn as: whether some are ``bars``, and some ``shares``."""

    bars: bool = False
    shares: bool = False

    def __or__(self, other: Strokes) -> Strokes:
        return Strokes(self.bars or other.bars, self.shares or other.shares)


def gutter(rows: Rows) -> int:
    """Cells left of the picture: cursor, name, mark, and a blank."""
    return 4 + max(width(rows.label(line)) for line in _sample(rows.lines))


def _sample(lines: int) -> list[int]:
    """Lines whose names are looked at: the first and last ones, which hold the longest numbers."""
    return list(range(min(lines, 400))) + list(range(max(lines - 400, 400), lines))


def draw_rows(canvas: Canvas, x: int, y: int, rows: Rows, window: Window, lengths: Lengths) -> Strokes:
    """The lines that the window shows, the first at (``x``, ``y``), names to the left of it."""
    count = min(window.height, rows.lines - window.top)
    edges = window.edges()
    by_length = rows.busy.covered(window.top, count, edges)
    covered = by_length.sum(axis=0)
    capacity = rows.capacity[window.top : window.top + count, np.newaxis]
    share = covered / np.maximum(capacity * np.diff(edges), 1)
    grade = np.where(covered > 0, np.clip(np.ceil(share * (len(LEVELS) - 1)), 1, len(LEVELS) - 1), 0).astype(np.uint8)
    roles = np.array([canvas.role(role) for role in ROLES], dtype=np.uint16)
    canvas.paint(x, y, shaded(grade, LEVELS), roles[by_length.argmax(axis=0)] * (covered > 0))
    shown = rows.busy.touching(window.top, count, int(edges[0]), int(edges[-1]))
    drawn = Strokes()
    for i in range(count):
        line = window.top + i
        _name(canvas, y + i, x, rows, line, cursor=line == window.line)
        as_bars = bool(rows.capacity[line] == 1 and 0 < shown[i] * _CELLS_A_BAR <= window.cells)
        drawn |= Strokes(as_bars, not as_bars and bool(shown[i]))
        if as_bars:
            _bars(canvas, x, y + i, rows, line, window, lengths)
    return drawn


def _name(canvas: Canvas, y: int, cells: int, rows: Rows, line: int, *, cursor: bool) -> None:
    of_line = rows.of_line(line)
    marked = bool(rows.marked[of_line.start : of_line.stop].any())
    idle = all(rows.empty(row) for row in of_line)
    canvas.text(0, y, "▌" if cursor else " ", "accent")
    canvas.text(1, y, pad(rows.label(line), cells - 4), "title" if cursor else "dim")
    canvas.text(cells - 2, y, "!" if marked else "–" if idle else " ", "bad" if marked else "dim")


def _bars(canvas: Canvas, x: int, y: int, rows: Rows, line: int, window: Window, lengths: Lengths) -> None:
    """The intervals of one line, one after another."""
    signs, roles = [" "] * window.cells, np.zeros(window.cells, dtype=np.uint16)
    first, last = rows.bounds(line)
    start, end = rows.intervals.start[first:last], rows.intervals.end[first:last]
    grades = lengths.grades(end - start)
    for i in np.flatnonzero((end > window.begin) & (start < window.end)).tolist():
        left = window.column(float(start[i]))
        right = max(window.column(float(end[i]) - 1e-6), left)
        grade = int(grades[i])
        label = f"{rows.intervals.block[first + i]}{'!' if grade == STANDS_OUT else ''}"
        text, begin = _bar(label, left, right, window.cells, STROKES[grade])
        signs[begin : begin + len(text)] = text
        roles[begin : begin + len(text)] = canvas.role(ROLES[grade])
    codes = np.frombuffer("".join(signs).encode("utf-32-le"), dtype="<u4")
    canvas.paint(x, y, codes[np.newaxis], roles[np.newaxis])


def _bar(label: str, left: int, right: int, cells: int, stroke: str) -> tuple[str, int]:
    """A bar from cell ``left`` to ``right`` as it is seen in a window of ``cells``, and where it begins there."""
    begin, end = max(left, 0), min(right, cells - 1)
    length = end - begin + 1
    if length == 1:
        return "┃", begin
    head, tail = "┣" if left >= 0 else stroke, "┫" if right < cells else stroke
    inside = length - 2
    body = label + stroke * (inside - len(label)) if len(label) <= inside else stroke * inside
    return head + body + tail, begin


def legend(lengths: Lengths, cells: int, drawn: Strokes) -> Line:
    """What height and colour mean, in one line: with as many words as there is room for."""
    less, more, median = f"{1 - NEAR:g}×", f"{1 + NEAR:g}×", units.count(round(lengths.median))
    lines = [
        _legend(
            drawn, "share of slots busy", (f"< {less}", f"about {median} cycles, the median", f"> {more}", "far more")
        ),
        _legend(drawn, "slots busy", (f"< {less}", f"median {median}", f"> {more}", "far more")),
        _legend(drawn, "", (f"<{less}", f"~{median}", f">{more}", "far")),
    ]
    return next((line for line in lines if width(plain(line)) <= cells), lines[-1])


def _legend(drawn: Strokes, share: str, words: Sequence[str]) -> Line:
    """A sample and its words for each grade of length; without words for shares in few cells."""
    parts = [(f" ▁ to █: {share} ", "dim")] if drawn.shares and share else []
    for grade, (stroke, role, each) in enumerate(zip(STROKES, ROLES, words, strict=True)):
        bar = f"┣{stroke}{'!' if grade == STANDS_OUT else stroke}┫"
        parts += [(" ", ""), (bar if drawn.bars else "█", role), (f" {each}{' ' if share else ''}", "dim")]
    return tuple(parts)


def draw_marks(canvas: Canvas, x: int, y: int, window: Window, marks: dict[str, float]) -> None:
    """Signs at times, on the row of the axis; a later one hides an earlier one."""
    for sign, time in marks.items():
        column = window.column(time)
        if 0 <= column < window.cells:
            canvas.text(x + column, y, sign, "accent" if sign == "▲" else "warn")
