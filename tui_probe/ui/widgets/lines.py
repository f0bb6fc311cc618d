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
    _drawn_lines: list[Line] | None = None
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
            self._drawn_lines = None  # its first frame holds all widgets
            self.refresh()
            return
        if self.app.screen is not screen:
            self._drawn_lines = (
                None  # Textual would send the whole screen in front of it; drawn when it is in front again
            )
            return
        previous_lines, size = self._drawn_lines, self._drawn_size
        lines = self._draw_all()
        if previous_lines is None or size != self._drawn_size:
            self.refresh()
            return
        regions = []
        for y, (old_line, new_line) in enumerate(zip_longest(previous_lines, lines, fillvalue=())):
            if old_line != new_line:
                regions += [Region(start, y, end - start, 1) for start, end in changed_columns(old_line, new_line)]
        if regions:
            self.refresh(*regions)

    def catch_up(self) -> None:
        """The screen is in front again: what has changed behind another one is drawn."""
        if self._drawn_lines is None:
            self.refresh()

    def forget(self) -> None:
        """Draw everything anew: the colours or glyphs changed."""
        self._drawn_lines = None
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
        if self._drawn_lines is None or self._drawn_size != self.size:
            self._draw_all()
        style = self.probe_app.palette.style
        cells, _ = self._drawn_size
        line = (
            self._drawn_lines[y]
            if self._drawn_lines is not None and y < len(self._drawn_lines)
            else ((" " * cells, ""),)
        )
        return _strip(line, cells, style)

    def _draw_all(self) -> list[Line]:
        cells, rows = self.size
        lines = [self.finish(line, cells) for line, _ in zip(self.draw(cells, rows), range(rows), strict=False)]
        lines.extend([self.finish((), cells)] * (rows - len(lines)))
        self._drawn_lines, self._drawn_size = lines, (cells, rows)
        return lines

    def finish(self, line: Line, cells: int) -> Line:
        """Return a line of :meth:`draw` as it is shown."""
        return _finish_line(line, cells, ascii_only=self.probe_app.ascii_only)


@lru_cache(maxsize=2048)
def _strip(line: Line, cells: int, style: Callable[[str], Style]) -> Strip:
    """A line as Textual needs it, with styles of a palette."""
    return Strip(merge_segments((text, style(role)) for text, role in line), cells)


@lru_cache(maxsize=2048)
def _finish_line(line: Line, cells: int, *, ascii_only: bool) -> Line:
    """``line`` in exactly ``cells`` cells, spans of one role joined, in ASCII if the application asks for it.

    Text comes from traces, so it may hold anything: what a terminal would obey is taken out here, for all widgets. Most
    lines of a redrawn widget are the same as before, so they are remembered.
    """
    safe_spans = ((printable(text), role) for text, role in line)
    spans: list[tuple[str, str]] = []
    used_cells = 0
    for piece, role in clip_line(tuple((to_ascii(t) if ascii_only else t, role) for t, role in safe_spans), cells):
        used_cells += width(piece)
        if spans and spans[-1][1] == role:
            spans[-1] = (spans[-1][0] + piece, role)
        elif piece:
            spans.append((piece, role))
    if used_cells < cells:
        ground = spans[-1][1] if spans and spans[-1][1].endswith(("select", "idle", "bar")) else ""
        spans.append((" " * (cells - used_cells), ground))
    return tuple(spans)


def merge_segments(pieces: Iterable[tuple[str, Style]]) -> list[Segment]:
    """Segments of as few styles as look the same: blanks take the colours of what is next to them."""
    segments: list[tuple[str, Style]] = []
    for text, style in pieces:
        if segments:
            previous_text, previous_style = segments[-1]
            if previous_style == style or (text.isspace() and _same_ground(previous_style, style)):
                segments[-1] = (previous_text + text, previous_style)
                continue
            if previous_text.isspace() and _same_ground(previous_style, style):
                segments[-1] = (previous_text + text, style)
                continue
        segments.append((text, style))
    return [Segment(text, style) for text, style in segments]


def _same_ground(style: Style, other_style: Style) -> bool:
    """Return whether blanks look the same in both styles."""
    lines = style.underline or style.reverse or other_style.underline or other_style.reverse
    return not lines and style.bgcolor == other_style.bgcolor


def changed_columns(old_line: Line, new_line: Line) -> list[tuple[int, int]]:
    """First and one past the last cell of each part in which two lines of equal width differ, from left to right.

    Parts with fewer than ``MAX_GAP_CELLS`` equal cells between them are one. A part may end with cells that are equal.
    """
    leading, trailing = _common_spans(old_line, new_line)
    start = sum(width(text) for text, _ in old_line[:leading])
    old_line, new_line = old_line[leading : len(old_line) - trailing], new_line[leading : len(new_line) - trailing]
    all_narrow = all(is_narrow(text) for text, _ in (*old_line, *new_line))
    parts: list[tuple[int, int]] = []
    for cell, end in (_narrow_changes if all_narrow else _character_changes)(old_line, new_line, start):
        if parts and cell - parts[-1][1] < MAX_GAP_CELLS:
            parts[-1] = (parts[-1][0], max(end, parts[-1][1]))
        else:
            parts.append((cell, end))
    return parts


def _narrow_changes(old_line: Line, new_line: Line, start: int) -> list[tuple[int, int]]:
    """Return the first and one past the last cell of each changed character, where each takes one cell.

    A page that takes the place of another changes most characters of a screen.
    """
    texts = ("".join(text for text, _ in line) for line in (old_line, new_line))
    roles = ([role for text, role in line for _ in text] for line in (old_line, new_line))
    cells = zip_longest(*texts, *roles)
    return [
        (cell, cell + 1)
        for cell, (old_text, new_text, old_role, new_role) in enumerate(cells, start)
        if old_text != new_text or old_role != new_role
    ]


def _character_changes(old_line: Line, new_line: Line, start: int) -> list[tuple[int, int]]:
    """Return the first and one past the last cell of each changed character."""
    old_characters, new_characters = _characters_by_cell(old_line, start), _characters_by_cell(new_line, start)
    common_cells = old_characters.keys() & new_characters.keys()
    changed_cells = [
        cell
        for cell, character in new_characters.items()
        if cell not in common_cells or old_characters[cell] != character
    ]
    changed_cells += old_characters.keys() - common_cells
    columns = []
    for cell in sorted(changed_cells):
        old_text, new_text = old_characters.get(cell, _NO_SPAN)[0], new_characters.get(cell, _NO_SPAN)[0]
        columns.append((cell, cell + max(width(old_text), width(new_text))))
    return columns


def _common_spans(old_line: Line, new_line: Line) -> tuple[int, int]:
    """Return how many spans at the beginnings and at the ends of two lines of equal width are the same.

    The last of those at the beginning is not counted: a combining character may follow it.
    """
    spans = min(len(old_line), len(new_line))
    leading = next((number for number in range(spans) if old_line[number] != new_line[number]), spans)
    trailing = next(
        (number for number in range(spans - leading) if old_line[-1 - number] != new_line[-1 - number]), spans - leading
    )
    return max(leading - 1, 0), trailing


def _characters_by_cell(line: Line, end: int) -> dict[int, tuple[str, str]]:
    """Each character of a line from cell ``end`` on with its role, by its first cell; a combining one goes with the one
    before.
    """
    characters: dict[int, tuple[str, str]] = {}
    start = end
    for text, role in line:
        if text and is_narrow(text):
            characters.update(zip(range(end, end + len(text)), ((character, role) for character in text), strict=True))
            end += len(text)
            start = end - 1
            continue
        for character in text:
            cells = width(character)
            if cells or not characters:
                start, characters[end] = end, (character, role)
                end += cells
            else:
                characters[start] = (characters[start][0] + character, characters[start][1])
    return characters
