"""Ready lines: scroll both ways, search, filter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.draw.spans import Line, clip_line, plain, wrap
from tui_probe.ui.views.view import Desk, View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

SIDE_STEP = 8


class TextView(View):
    """Lines that someone else made. ``show`` replaces them and keeps the place."""

    def __init__(self, desk: Desk, name: str, empty: str = "") -> None:
        super().__init__(desk, name)
        self.empty = empty
        self.lines: Sequence[Line] = ()
        self.searched = ""
        self.filtered = ""
        self.top = self._top_before = 0
        self.left = 0
        self.match: int | None = None

    def show(self, lines: Sequence[Line]) -> None:
        """Show these lines."""
        self.lines = lines
        self.changed()

    def draw(self, width: int, height: int) -> list[Line]:
        """The lines in the window, searched words marked."""
        shown = self.shown_lines()
        if not shown:
            why = f"no line contains “{self.filtered}”" if self.filtered else self.empty
            return [((f" {part}", "dim"),) for part in wrap(why, width - 2)]
        self.top = max(0, min(self.top, len(shown) - height))
        window = shown[self.top : self.top + height]
        return [self._marked(self.top + y, clip_line(line, width, skip=self.left)) for y, line in enumerate(window)]

    def shown_lines(self) -> Sequence[Line]:
        """All lines that pass the filter."""
        if not self.filtered:
            return self.lines
        return [line for line in self.lines if contains(plain(line), self.filtered)]

    def status(self) -> list[str]:
        """Which lines are visible."""
        total = len(self.shown_lines())
        parts = [f"only “{self.filtered}”"] if self.filtered else []
        if total > self.height:
            parts.append(f"{self.top + 1}–{min(total, self.top + self.height)} of {total}")
        return parts

    def move(self, step: int) -> None:
        """Scroll by lines."""
        self._scroll(self.top + step)

    def move_to(self, end: int) -> None:
        """To the start or the end."""
        self._scroll(len(self.shown_lines()) if end else 0)

    def shift(self, step: int) -> None:
        """Scroll sideways."""
        self.left = max(0, self.left + step * SIDE_STEP)
        self.changed()

    def _scroll(self, top: int) -> None:
        self.top = max(0, min(top, len(self.shown_lines()) - self.height))
        self.changed()

    def search(self, text: str) -> None:
        """From the first visible line on."""
        self.searched, self.match = text, None
        self.next_match(1)

    def next_match(self, step: int) -> None:
        """Around the end."""
        lines = self.shown_lines()
        if not self.searched or not lines:
            return
        start = self.top - step if self.match is None else self.match
        order = ((start + step * i) % len(lines) for i in range(1, len(lines) + 1))
        self.match = next((i for i in order if contains(plain(lines[i]), self.searched)), None)
        if self.match is None:
            self.desk.notice(f"“{self.searched}” is not on this page")
        elif not self.top <= self.match < self.top + self.height:
            self.top = max(0, self.match - self.height // 3)
        self.changed()

    @property
    def filter_text(self) -> str:
        """What shown lines must contain."""
        return self.filtered

    def set_filter(self, text: str) -> None:
        """Only lines that contain ``text``."""
        if not self.filtered:
            self._top_before = self.top
        self.filtered, self.match = text, None
        self.top = 0 if text else self._top_before
        self.changed()

    def clear_search(self) -> bool:
        """Forget search and filter; what was not scrolled meanwhile is where it was before."""
        had = bool(self.searched or self.filtered)
        if self.filtered and not self.top:
            self.top = self._top_before
        self.searched, self.filtered, self.match = "", "", None
        if had:
            self.changed()
        return had

    def exported(self) -> Callable[[], Iterable[str]]:
        """All lines that pass the filter."""
        lines = list(self.shown_lines())
        return lambda: (plain(line) for line in lines)

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
