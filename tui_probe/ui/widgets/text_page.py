"""A page of ready lines: scrolls both ways, searches, filters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.render.spans import Line, clip_line, plain
from tui_probe.ui import keys
from tui_probe.ui.widgets.lines import Lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from textual import events


class TextPage(Lines, can_focus=True):
    """Lines that someone else made. ``show`` replaces them and keeps the place."""

    BINDINGS = keys.bindings("move")
    SIDE_STEP = 8

    def __init__(self, empty: str = "", **options: str | None) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.empty = empty
        self.lines: Sequence[Line] = ()
        self.filtered = ""
        self.searched = ""
        self.top = 0
        self.left = 0
        self.match: int | None = None

    def show(self, lines: Sequence[Line]) -> None:
        """Show these lines; those that stay the same are not sent again."""
        self.lines = lines
        self.redraw()

    def draw(self, width: int, height: int) -> list[Line]:
        """The lines in the window, searched words marked."""
        shown = self.shown_lines()
        if not shown:
            return [((" " + (f"no line contains “{self.filtered}”" if self.filtered else self.empty), "dim"),)]
        self.top = max(0, min(self.top, len(shown) - height))
        window = shown[self.top : self.top + height]
        return [self._marked(self.top + y, clip_line(line, width, skip=self.left)) for y, line in enumerate(window)]

    def shown_lines(self) -> Sequence[Line]:
        """All lines that pass the filter."""
        if not self.filtered:
            return self.lines
        return [line for line in self.lines if contains(plain(line), self.filtered)]

    def status(self) -> Line:
        """Where the window is, for the tab bar."""
        total = len(self.shown_lines())
        if total <= self.size.height:
            return ()
        return ((f"{self.top + 1}–{min(total, self.top + self.size.height)} of {total}", "dim"),)

    def search(self, text: str) -> None:
        """Go to the first line at or after the window's start that contains ``text``."""
        self.searched, self.match = text, None
        self.action_next_match(1)

    def set_filter(self, text: str) -> None:
        """Show only lines that contain ``text``; all lines for an empty one."""
        self.filtered, self.top, self.match = text, 0, None
        self.redraw()

    def clear_search(self) -> bool:
        """Forget search and filter. False if there was neither."""
        had = bool(self.searched or self.filtered)
        self.searched, self.filtered, self.match = "", "", None
        self.redraw()
        return had

    def copied(self) -> str:
        """What is in sight."""
        return self.text()

    def exported(self) -> Callable[[], Iterable[str]]:
        """All lines that pass the filter."""
        lines = list(self.shown_lines())
        return lambda: (plain(line) for line in lines)

    def action_next_match(self, step: int) -> None:
        """To the next (1) or previous (-1) line that contains the searched text, around the end."""
        lines = self.shown_lines()
        if not self.searched or not lines:
            return
        start = self.top - step if self.match is None else self.match
        order = [(start + step * i) % len(lines) for i in range(1, len(lines) + 1)]
        self.match = next((i for i in order if contains(plain(lines[i]), self.searched)), None)
        if self.match is None:
            self.probe_app.notice(f"“{self.searched}” is not on this page")
        elif not self.top <= self.match < self.top + self.size.height:
            self.top = max(0, self.match - self.size.height // 3)
        self.redraw()

    def action_move(self, step: int) -> None:
        """Scroll by lines."""
        self._scroll(self.top + step)

    def action_move_page(self, step: int) -> None:
        """Scroll by pages."""
        self._scroll(self.top + step * max(1, self.size.height - 1))

    def action_move_to(self, end: int) -> None:
        """To the start (0) or the end (-1)."""
        self._scroll(len(self.shown_lines()) if end else 0)

    def action_shift(self, step: int) -> None:
        """Scroll sideways."""
        self.left = max(0, self.left + step * self.SIDE_STEP)
        self.redraw()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel scrolls by three lines."""
        event.stop()
        self.action_move(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel scrolls by three lines."""
        event.stop()
        self.action_move(-3)

    def _scroll(self, top: int) -> None:
        self.top = max(0, min(top, len(self.shown_lines()) - self.size.height))
        self.redraw()
        self.probe_app.page_changed()

    def _marked(self, index: int, line: Line) -> Line:
        if not self.searched:
            return line
        return mark(line, self.searched, "match" if index == self.match else "match_other")


def contains(text: str, wanted: str) -> bool:
    """Is ``wanted`` in ``text``? Lower case in ``wanted`` matches both cases, as in less and vim."""
    return wanted in (text if wanted != wanted.lower() else text.lower())


def mark(line: Line, wanted: str, role: str) -> Line:
    """``line`` with every occurrence of ``wanted`` in ``role``."""
    words = plain(line)
    hay = words if wanted != wanted.lower() else words.lower()
    if len(hay) != len(words) or wanted not in hay:
        return line
    marked = bytearray(len(words))
    start = hay.find(wanted)
    while start >= 0:
        marked[start : start + len(wanted)] = b"\1" * len(wanted)
        start = hay.find(wanted, start + len(wanted))
    spans: list[tuple[str, str]] = []
    position = 0
    for text, own in line:
        for offset, character in enumerate(text):
            now = role if marked[position + offset] else own
            if spans and spans[-1][1] == now:
                spans[-1] = (spans[-1][0] + character, now)
            else:
                spans.append((character, now))
        position += len(text)
    return tuple(spans)
