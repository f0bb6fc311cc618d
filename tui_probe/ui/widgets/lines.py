"""Widget of lines: draws lines from a state, sends only changed cells."""

from __future__ import annotations

from functools import lru_cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, cast

from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tui_probe.draw.printable import printable
from tui_probe.draw.spans import Line, clip_line, is_narrow, to_ascii, width
from tui_probe.ui.textual_private import OpenScreen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rich.style import Style

    from tui_probe.ui.application import Application

MAX_GAP_CELLS = 12
"""Equal cells that cost less to send than a move to what is behind them, with its colours."""

_NO_SPAN: Final = ("", "")


class LinesWidget(Widget):
    """A widget that draws lines of spans.

    Subclasses override :meth:`draw`, change their state freely and then call :meth:`redraw`. Textual re-sends every
    cell of a refreshed region, so the region asked for is the smallest that holds the difference.
    """

    DEFAULT_CSS = "LinesWidget { width: 1fr; height: 1fr; overflow: hidden; }"
    _drawn: list[Line] | None = None
    _drawn_size: tuple[int, int] = (-1, -1)

    def draw(self, width: int, height: int) -> Iterable[Line]:
        """The lines of a widget of ``width`` × ``height`` cells; missing lines are blank."""
        del width, height
        return ()

    @property
    def probe_app(self) -> Application:
        """The application, with its palette and its background workers."""
        return cast("Application", self.app)

    def redraw(self) -> None:
        """Draw again and refresh the cells that differ from what the terminal shows."""
        if not self.is_mounted or not self.size:
            return
        screen = self.screen
        if isinstance(screen, OpenScreen) and screen.held_back:
            self._drawn = None  # its first frame holds all widgets
            self.refresh()
            return
        if self.app.screen is not screen:
            self._drawn = None  # Textual would send the whole screen in front of it; drawn when it is in front again
            return
        before, size = self._drawn, self._drawn_size
        lines = self._draw_all()
        if before is None or size != self._drawn_size:
            self.refresh()
            return
        regions = []
        for y, (old, new) in enumerate(zip_longest(before, lines, fillvalue=())):
            if old != new:
                regions += [Region(start, y, end - start, 1) for start, end in changed_columns(old, new)]
        if regions:
            self.refresh(*regions)

    def catch_up(self) -> None:
        """The screen is in front again: what has changed behind another one is drawn."""
        if self._drawn is None:
            self.refresh()

    def forget(self) -> None:
        """Draw everything anew: the colours or glyphs changed."""
        self._drawn = None
        self.refresh()

    def text(self) -> str:
        """Return the widget's content as plain text."""
        return "\n".join("".join(text for text, _ in line).rstrip() for line in self._draw_all())

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the rows of a region. Textual's way adds borders and grounds, which no row with its own ground has.

        That takes longer than the rest of a frame.
        """
        if self.probe_app.palette.style("").bgcolor is None:
            return super().render_lines(crop)
        filters, (_, ground) = self.get_line_filters(), self.background_colors
        rows = [self.render_line(y) for y in crop.line_range]
        for line_filter in filters:
            rows = [row.apply_filter(line_filter, ground) for row in rows]
        return rows if crop.column_span == (0, self.size.width) else [row.crop(*crop.column_span) for row in rows]

    def render_line(self, y: int) -> Strip:
        """One line of the widget, from what :meth:`redraw` drew last."""
        if self._drawn is None or self._drawn_size != self.size:
            self._draw_all()
        style = self.probe_app.palette.style
        cells, _ = self._drawn_size
        line = self._drawn[y] if self._drawn is not None and y < len(self._drawn) else ((" " * cells, ""),)
        return _strip(line, cells, style)

    def _draw_all(self) -> list[Line]:
        cells, rows = self.size
        drawn = [self.finish(line, cells) for line, _ in zip(self.draw(cells, rows), range(rows), strict=False)]
        drawn.extend([self.finish((), cells)] * (rows - len(drawn)))
        self._drawn, self._drawn_size = drawn, (cells, rows)
        return drawn

    def finish(self, line: Line, cells: int) -> Line:
        """Return a line of :meth:`draw` as it is shown."""
        return _finished(line, cells, ascii_only=self.probe_app.ascii_only)


@lru_cache(maxsize=2048)
def _strip(line: Line, cells: int, style: Callable[[str], Style]) -> Strip:
    """A line as Textual needs it, with styles of a palette."""
    return Strip(merged((text, style(role)) for text, role in line), cells)


@lru_cache(maxsize=2048)
def _finished(line: Line, cells: int, *, ascii_only: bool) -> Line:
    """``line`` in exactly ``cells`` cells, spans of one role joined, in ASCII if the application asks for it.

    Text comes from traces, so it may hold anything: what a terminal would obey is taken out here, for all widgets. Most
    lines of a redrawn widget are the same as before, so they are remembered.
    """
    safely = ((printable(text), role) for text, role in line)
    spans: list[tuple[str, str]] = []
    used = 0
    for shown, role in clip_line(tuple((to_ascii(t) if ascii_only else t, role) for t, role in safely), cells):
        used += width(shown)
        if spans and spans[-1][1] == role:
            spans[-1] = (spans[-1][0] + shown, role)
        elif shown:
            spans.append((shown, role))
    if used < cells:
        ground = spans[-1][1] if spans and spans[-1][1].endswith(("select", "idle", "bar")) else ""
        spans.append((" " * (cells - used), ground))
    return tuple(spans)


def merged(pieces: Iterable[tuple[str, Style]]) -> list[Segment]:
    """Segments of as few styles as look the same: blanks take the colours of what is next to them."""
    segments: list[tuple[str, Style]] = []
    for text, style in pieces:
        if segments:
            before, last = segments[-1]
            if last == style or (text.isspace() and _same_ground(last, style)):
                segments[-1] = (before + text, last)
                continue
            if before.isspace() and _same_ground(last, style):
                segments[-1] = (before + text, style)
                continue
        segments.append((text, style))
    return [Segment(text, style) for text, style in segments]


def _same_ground(one: Style, other: Style) -> bool:
    """Return whether blanks look the same in both styles."""
    lines = one.underline or one.reverse or other.underline or other.reverse
    return not lines and one.bgcolor == other.bgcolor


def changed_columns(old: Line, new: Line) -> list[tuple[int, int]]:
    """First and one past the last cell of each part in which two lines of equal width differ, from left to right.

    Parts with fewer than ``MAX_GAP_CELLS`` equal cells between them are one. A part may end with cells that are equal.
    """
    first, last = _common_spans(old, new)
    start = sum(width(text) for text, _ in old[:first])
    old, new = old[first : len(old) - last], new[first : len(new) - last]
    narrow = all(is_narrow(text) for text, _ in (*old, *new))
    parts: list[tuple[int, int]] = []
    for cell, end in (_changed_narrow if narrow else _changed)(old, new, start):
        if parts and cell - parts[-1][1] < MAX_GAP_CELLS:
            parts[-1] = (parts[-1][0], max(end, parts[-1][1]))
        else:
            parts.append((cell, end))
    return parts


def _changed_narrow(old: Line, new: Line, start: int) -> list[tuple[int, int]]:
    """Return the first and one past the last cell of each changed character, where each takes one cell.

    A page that takes the place of another changes most characters of a screen.
    """
    texts = ("".join(text for text, _ in line) for line in (old, new))
    roles = ([role for text, role in line for _ in text] for line in (old, new))
    cells = zip_longest(*texts, *roles)
    return [
        (cell, cell + 1)
        for cell, (was, becomes, before, after) in enumerate(cells, start)
        if was != becomes or before != after
    ]


def _changed(old: Line, new: Line, start: int) -> list[tuple[int, int]]:
    """Return the first and one past the last cell of each changed character."""
    before, after = _placed(old, start), _placed(new, start)
    same = before.keys() & after.keys()
    changed = [cell for cell, shown in after.items() if cell not in same or before[cell] != shown]
    changed += before.keys() - same
    ends = []
    for cell in sorted(changed):
        was, becomes = before.get(cell, _NO_SPAN)[0], after.get(cell, _NO_SPAN)[0]
        ends.append((cell, cell + max(width(was), width(becomes))))
    return ends


def _common_spans(old: Line, new: Line) -> tuple[int, int]:
    """Return how many spans at the beginnings and at the ends of two lines of equal width are the same.

    The last of those at the beginning is not counted: a combining character may follow it.
    """
    spans = min(len(old), len(new))
    first = next((number for number in range(spans) if old[number] != new[number]), spans)
    last = next((number for number in range(spans - first) if old[-1 - number] != new[-1 - number]), spans - first)
    return max(first - 1, 0), last


def _placed(line: Line, end: int) -> dict[int, tuple[str, str]]:
    """Each character of a line from cell ``end`` on with its role, by its first cell; a combining one goes with the one
    before.
    """
    placed: dict[int, tuple[str, str]] = {}
    start = end
    for text, role in line:
        if text and is_narrow(text):
            placed.update(zip(range(end, end + len(text)), ((character, role) for character in text), strict=True))
            end += len(text)
            start = end - 1
            continue
        for character in text:
            cells = width(character)
            if cells or not placed:
                start, placed[end] = end, (character, role)
                end += cells
            else:
                placed[start] = (placed[start][0] + character, placed[start][1])
    return placed
