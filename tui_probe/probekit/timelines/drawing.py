"""Drawing of a timeline: a window of time and rows. A row shows its utilization per cell, or, if there is room, each
block as a bar with its number::

    ▁▂▃▄▅▆▇█     share of a cell's cycles in which the slots of the row ran a block; blank: no cycle
    ┣12━━━━┫     one block (or warp) from start to end; ``12!`` is flagged by its length
    ─ ━ ═        less than 0.9 times the median, about as long, more than 1.1 times
    ! –          next to the name of a row: it has a flagged block; it ran nothing

If the launch used few SMs, each row is several cells high, with a blank line between rows.
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
"""Minimum height of a row whose last line is blank."""
_MIN_CELLS_PER_BAR: Final = 3
"""Minimum mean cells per interval of a row that is drawn as bars."""


@dataclass(slots=True)
class Window:
    """Visible part of time 0 to ``span`` and of ``lines`` lines, in ``cells`` × ``height`` cells.

    Times are cycles. ``time`` and ``line`` are the cursor, which is always inside.
    """

    span: float
    lines: int
    cells: int = 60
    height: int = 16
    start: float = 0.0
    width: float = 0.0
    top: int = 0
    time: float = 0.0
    line: int = 0
    min_width: float = 0.0
    """Minimum width in cycles of a window that shows everything, e.g. that of the window next to this one."""

    def __post_init__(self) -> None:
        self.width = self.width or self.full_width

    @property
    def full_width(self) -> float:
        """Width in cycles that shows everything; at least one cycle per cell."""
        return max(self.span, self.min_width, float(self.cells))

    def set_min_width(self, cycles: float) -> None:
        """Set the minimum width, and show everything."""
        self.min_width = cycles
        self.show_all()

    @property
    def end(self) -> float:
        return self.start + self.width

    def resize(self, cells: int, height: int) -> None:
        """Set the size in cells; a window that shows everything still does."""
        everything = self.width >= self.full_width
        self.cells, self.height = max(cells, 1), max(height, 1)
        if everything:
            self.start, self.width = 0.0, self.full_width
        self._settle()

    def take_over(self, previous: Window) -> None:
        """Take over size, visible time and cursor of a window; if that showed everything, so does this one."""
        self.cells, self.height = previous.cells, previous.height
        self.width = previous.width if previous.width < previous.full_width else self.full_width
        self.start, self.time = previous.start, previous.time
        self._settle()

    def edges(self) -> NDArray[np.int64]:
        """Return the cycles (i8) at the edges of the cells, shape (cells + 1,)."""
        times = self.start + self.width * np.arange(self.cells + 1) / self.cells
        return np.floor(times).astype(np.int64)

    def column(self, time: float) -> int:
        """Return the cell of a time; it is outside the window if the time is."""
        return int((time - self.start) / self.width * self.cells // 1)

    def show_all(self) -> None:
        """Show everything."""
        self.start, self.width, self.top = 0.0, self.full_width, 0

    def zoom(self, factor: float) -> bool:
        """Make the window ``factor`` times as wide about the cursor. False if it is as wide as possible."""
        width = min(max(self.width * factor, float(self.cells)), self.full_width)
        if width == self.width:
            return False
        self.start = self.time - (self.time - self.start) * (width / self.width)
        self.width = width
        self._settle()
        return True

    def move(self, cells: int) -> None:
        """Move the cursor along time, and the window if the cursor would leave it."""
        self.move_to(self.time + cells * self.width / self.cells)

    def move_to(self, time: float) -> None:
        """Move the cursor to a time, and the window so that it is visible."""
        self.time = min(max(time, 0.0), self.span)
        cell = self.width / self.cells
        self.start = max(min(self.start, self.time), self.time - self.width + cell)
        self._settle()

    def move_to_cell(self, cell: int) -> None:
        """Move the cursor to the middle of a cell of the window."""
        self.move_to(self.start + (cell + 0.5) * self.width / self.cells)

    def move_pages(self, pages: int) -> None:
        """Move the window by pages along time, and the cursor with it."""
        self.start += pages * self.width
        self.time += pages * self.width
        self._settle()

    def move_lines(self, lines: int) -> None:
        """Move the cursor across lines, and the window if the cursor would leave it."""
        self.line = min(max(self.line + lines, 0), self.lines - 1)
        self.top = min(self.line, max(self.top, self.line - self.height + 1))

    def set_lines(self, lines: int, line: int, lines_above: int | None = None) -> None:
        """Set the number of lines and the cursor's line, with ``lines_above`` lines visible above it; None: half of
        all.
        """
        self.lines, self.line = lines, 0
        self.top = max(line - (self.height // 2 if lines_above is None else lines_above), 0)
        self.line = line
        self._settle()

    def _settle(self) -> None:
        self.width = min(max(self.width, float(self.cells)), self.full_width)
        self.start = min(max(self.start, 0.0), self.full_width - self.width)
        self.time = min(max(self.time, self.start, 0.0), self.span, self.end - self.width / self.cells / 2)
        self.line = min(max(self.line, 0), self.lines - 1)
        self.top = min(max(self.top, 0), max(self.lines - self.height, 0))
        self.top = min(self.line, max(self.top, self.line - self.height + 1))


@dataclass(frozen=True, slots=True)
class DrawnStyles:
    """Styles of the drawn lines: some show ``bars``, some ``shares``."""

    bars: bool = False
    shares: bool = False

    def __or__(self, other: DrawnStyles) -> DrawnStyles:
        return DrawnStyles(self.bars or other.bars, self.shares or other.shares)


def gutter_width(rows: TimelineRows) -> int:
    """Return the cells left of the drawing: cursor, name, flag, and a blank."""
    return 4 + max(width(rows.label(line)) for line in _sample_lines(rows.lines))


def _sample_lines(lines: int) -> list[int]:
    """Return the lines whose names are measured: the first and last ones, which have the longest numbers."""
    return list(range(min(lines, 400))) + list(range(max(lines - 400, 400), lines))


def row_height(rows: TimelineRows, available_lines: int) -> int:
    """Return the height of each row in cells: more than one if all rows fit into the available lines."""
    return min(max(available_lines // rows.lines, 1), _MAX_ROW_HEIGHT)


def draw_rows(
    canvas: Canvas, x: int, y: int, rows: TimelineRows, window: Window, lengths: LengthGrades, height: int = 1
) -> DrawnStyles:
    """Draw the visible rows, each ``height`` cells high, the first at (``x``, ``y``), with names to the left."""
    count = min(window.height, rows.lines - window.top)
    body_height = height - 1 if height >= _HEIGHT_WITH_GAP else height
    edges = window.edges()
    by_length = rows.busy_cycles.covered_cycles(window.top, count, edges)
    covered = by_length.sum(axis=0)
    capacity = rows.capacity[window.top : window.top + count, np.newaxis]
    share = covered / np.maximum(capacity * np.diff(edges), 1)
    steps = len(LEVELS) - 1
    grade = np.where(covered > 0, np.clip(np.ceil(share * steps * body_height), 1, steps * body_height), 0)
    role_numbers = np.array([canvas.role(role) for role in _ROLES], dtype=np.uint16)
    roles = np.where(covered > 0, role_numbers[by_length.argmax(axis=0)], 0).astype(np.uint16)
    levels = np.clip(grade[:, np.newaxis] - steps * np.arange(body_height - 1, -1, -1)[:, np.newaxis], 0, steps)
    for i in range(count):
        canvas.paint(x, y + i * height, shaded(levels[i].astype(np.uint8), LEVELS), np.tile(roles[i], (body_height, 1)))
    interval_counts = rows.busy_cycles.count_touching(window.top, count, int(edges[0]), int(edges[-1]))
    drawn_styles = DrawnStyles()
    for i in range(count):
        line = window.top + i
        top = y + i * height
        _draw_name(canvas, top, x, rows, line, body_height if line == window.line else 0, (body_height - 1) // 2)
        as_bars = bool(rows.capacity[line] == 1 and 0 < interval_counts[i] * _MIN_CELLS_PER_BAR <= window.cells)
        drawn_styles |= DrawnStyles(as_bars, not as_bars and bool(interval_counts[i]))
        if as_bars:
            _draw_bars(canvas, x, top, rows, line, window, lengths, body_height)
    return drawn_styles


def _draw_name(
    canvas: Canvas, y: int, gutter_cells: int, rows: TimelineRows, line: int, cursor_height: int, text_line: int
) -> None:
    """The name of a line ``text_line`` lines below its first; ``cursor_height``: lines of the cursor, which is 0
    elsewhere.
    """
    line_rows = rows.rows_of_line(line)
    is_flagged = bool(rows.is_flagged[line_rows.start : line_rows.stop].any())
    is_idle = all(rows.is_empty(row) for row in line_rows)
    for i in range(cursor_height):
        canvas.text(0, y + i, "▌", "accent")
    y += text_line
    canvas.text(1, y, pad(rows.label(line), gutter_cells - 4), "title" if cursor_height else "dim")
    canvas.text(gutter_cells - 2, y, "!" if is_flagged else "–" if is_idle else " ", "bad" if is_flagged else "dim")


def _draw_bars(
    canvas: Canvas, x: int, y: int, rows: TimelineRows, line: int, window: Window, lengths: LengthGrades, height: int
) -> None:
    """Draw the intervals of one line as bars."""
    signs = [[" "] * window.cells for _ in range(height)]
    roles = np.zeros(window.cells, dtype=np.uint16)
    first_interval, end_interval = rows.interval_bounds(line)
    start, end = rows.intervals.start[first_interval:end_interval], rows.intervals.end[first_interval:end_interval]
    grades = lengths.grades(end - start)
    for i in np.flatnonzero((end > window.start) & (start < window.end)).tolist():
        left = window.column(float(start[i]))
        right = max(window.column(float(end[i]) - 1e-6), left)
        grade = int(grades[i])
        label = f"{rows.intervals.block[first_interval + i]}{'!' if grade == OUTLIER_GRADE else ''}"
        first_cell = max(left, 0)
        texts = _bar_lines(label, left, right, window.cells, _STROKES[grade], height)
        for text, line_signs in zip(texts, signs, strict=True):
            line_signs[first_cell : first_cell + len(text)] = text
        roles[first_cell : first_cell + len(texts[0])] = canvas.role(_ROLES[grade])
    codes = np.frombuffer("".join(map("".join, signs)).encode("utf-32-le"), dtype="<u4").reshape(height, window.cells)
    canvas.paint(x, y, codes, np.tile(roles, (height, 1)))


def _bar_lines(label: str, left: int, right: int, cells: int, stroke: str, height: int) -> list[str]:
    """Return the lines of a bar from cell ``left`` to ``right``, clipped to ``cells``; a bar of several lines is a
    frame.
    """
    length = min(right, cells - 1) - max(left, 0) + 1
    if length == 1:
        return ["┃"] * height
    inner_cells, has_start, has_end = length - 2, left >= 0, right < cells
    label = label if len(label) <= inner_cells else ""

    def line(head: str, text: str, fill: str, tail: str) -> str:
        return (head if has_start else fill) + text + fill * (inner_cells - len(text)) + (tail if has_end else fill)

    if height == 1:
        return [line("┣", label, stroke, "┫")]
    top_left, top_right, side, bottom_left, bottom_right = _CORNERS[stroke]
    has_inner_line = height > 2
    return [
        line(top_left, "" if has_inner_line else label, stroke, top_right),
        *(line(side, "" if i else label, " ", side) for i in range(height - 2)),
        line(bottom_left, "", stroke, bottom_right),
    ]


def length_legend(lengths: LengthGrades, cells: int, drawn_styles: DrawnStyles) -> Line:
    """Return the legend of heights and colors in one line, the longest that fits."""
    short_limit, long_limit, median = (
        f"{1 - MEDIAN_TOLERANCE:g}×",
        f"{1 + MEDIAN_TOLERANCE:g}×",
        units.count(round(lengths.median)),
    )
    lines = [
        _legend_line(
            drawn_styles,
            "share of busy block slots",
            (f"< {short_limit}", f"about {median} cycles, the median", f"> {long_limit}", "far more"),
        ),
        _legend_line(
            drawn_styles, "busy block slots", (f"< {short_limit}", f"median {median}", f"> {long_limit}", "far more")
        ),
        _legend_line(drawn_styles, "", (f"<{short_limit}", f"~{median}", f">{long_limit}", "far")),
    ]
    return next((line for line in lines if width(plain(line)) <= cells), lines[-1])


def _legend_line(drawn_styles: DrawnStyles, share_text: str, length_texts: Sequence[str]) -> Line:
    """Return a sample and its text for each grade of length; without the text on shares if it is ""."""
    parts = [(f" ▁ to █: {share_text} ", "dim")] if drawn_styles.shares and share_text else []
    for grade, (stroke, role, length_text) in enumerate(zip(_STROKES, _ROLES, length_texts, strict=True)):
        bar = f"┣{stroke}{'!' if grade == OUTLIER_GRADE else stroke}┫"
        parts += [
            (" ", ""),
            (bar if drawn_styles.bars else "█", role),
            (f" {length_text}{' ' if share_text else ''}", "dim"),
        ]
    return tuple(parts)


def draw_marks(canvas: Canvas, x: int, y: int, window: Window, marks: dict[str, float]) -> None:
    """Draw signs at times on the axis; a later sign replaces an earlier one."""
    for sign, time in marks.items():
        column = window.column(time)
        if 0 <= column < window.cells:
            canvas.text(x + column, y, sign, "accent" if sign == "▲" else "warn")
