"""Pane: a window for one view, between the sides of its frame; bars of one line with titles and keys around panes.

The titles of pages are in the line above their panel: the digits, then the current further page or the key of their
list.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Literal, NamedTuple

from tui_probe.draw.spans import Line, Span, clip_line, spread, to_ascii
from tui_probe.draw.spans import width as cells_of
from tui_probe.probekit.page_kinds import MORE_PAGES_KEY, key_text
from tui_probe.ui.keys import Key, key_sign
from tui_probe.ui.widgets.lines import LinesWidget

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from textual import events

    from tui_probe.ui.views.view import PaneView

# Frames of panels: the line above with a title, the line below, and the sides.
#
# The panel with the keys has heavy lines, others thin ones, so that they differ without colours, too.

Edge = Literal["top", "middle", "bottom"]


class _FrameSigns(NamedTuple):
    """Signs of a frame; ``corners`` are the left and the right end of each edge."""

    horizontal: str
    vertical: str
    corners: Mapping[Edge, tuple[str, str]]


_THIN = _FrameSigns("─", "│", {"top": ("╭", "╮"), "middle": ("├", "┤"), "bottom": ("╰", "╯")})
_HEAVY = _FrameSigns("━", "┃", {"top": ("┏", "┓"), "middle": ("┣", "┫"), "bottom": ("┗", "┛")})
WHEEL_LINES = 3
"""Lines that the mouse wheel moves by."""


def frame_role(focused: bool) -> str:
    """Return the role of the lines of a frame."""
    return "accent" if focused else "rule"


def _signs(focused: bool) -> _FrameSigns:
    return _HEAVY if focused else _THIN


def side_span(focused: bool) -> Span:
    """Return the line at the left and at the right of a panel."""
    return _signs(focused).vertical, frame_role(focused)


def edge_line(left: Line, right: Line, cells: int, *, focused: bool, edge: Edge = "top") -> Line:
    """Return the line above or below a panel with texts at its left and right; ``left`` is cut to fit.

    "middle" is the line above a panel that is the end of the one before it, too.
    """
    signs, role = _signs(focused), frame_role(focused)
    line = signs.horizontal
    left_corner, right_corner = signs.corners[edge]
    end: Line = (*right, (line, role)) if right else ()
    room = cells - 2 - _cells(end)
    if room < 1:
        end, room = (), max(0, cells - 2)
    begin: Line = ((line, role), *left) if left and room > 1 else ()
    if _cells(begin) > room:
        begin = (*clip_line(begin, max(0, room - 1)), ("…", begin[-1][1]))
    return ((left_corner, role), *begin, (line * (room - _cells(begin)), role), *end, (right_corner, role))


def _cells(line: Iterable[Span]) -> int:
    return sum(cells_of(text) for text, _ in line)


class FrameEdge(LinesWidget):
    """The line above or below a panel."""

    DEFAULT_CSS = "FrameEdge { height: 1; }"

    def __init__(self, edge: Edge = "top", **options: str | None) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.edge: Edge = edge
        self.focused = False
        self.left: Line = ()
        self.right: Line = ()

    def show(self, left: Line, right: Line = (), *, focused: bool | None = None) -> None:
        """Show ``left`` at the start and ``right`` at the end, in the lines of the panel that has the keys or not."""
        self.left, self.right = left, right
        self.focused = self.focused if focused is None else focused
        self.redraw()

    @property
    def room(self) -> int:
        """Cells for texts."""
        return max(0, self.size.width - 4)

    def draw(self, width: int, height: int) -> list[Line]:
        """The line."""
        del height
        return [edge_line(self.left, self.right, width, focused=self.focused, edge=self.edge)]


class Pane(LinesWidget):
    """A window for one view at a time; changing the view sends only the cells that differ.

    ``heavy``: there are other panes, so the sides are heavy while this one has the keys.
    """

    def __init__(self, view: PaneView, *, heavy: bool = False, **options: str | None) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.view, self.heavy = view, heavy

    @property
    def inner(self) -> tuple[int, int]:
        """Columns and rows for the view."""
        columns, rows = self.size
        return max(0, columns - 2), rows

    def host(self, view: PaneView) -> None:
        """Show another view."""
        self.view = view
        self._resize_view()
        self.redraw()

    def draw(self, width: int, height: int) -> list[Line]:
        """Return the lines that the view draws."""
        size = max(0, width - 2), height
        if size != (self.view.width, self.view.height):
            self.view.resize(*size)
        return self.view.draw(*size)

    def finish(self, line: Line, cells: int) -> Line:
        """Put a line between the sides."""
        sign, role = side_span(self.heavy and self.view.focused)
        edge = (to_ascii(sign) if self.probe_app.ascii_only else sign, role)
        return (edge, *super().finish(line, max(0, cells - 2)), edge)

    def _resize_view(self) -> None:
        if self.size and self.inner != (self.view.width, self.view.height):
            self.view.resize(*self.inner)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel moves by three lines."""
        event.stop()
        self.view.move(WHEEL_LINES)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel moves by three lines."""
        event.stop()
        self.view.move(-WHEEL_LINES)

    def on_click(self, event: events.Click) -> None:
        """A click points at a cell."""
        self.view.click(event.y, max(0, event.x - 1))


PRIORITY_KEYS = frozenset({"help", "palette", "leave", "leave_home"})
"""Keys by which one finds all others, and the way back: named on every terminal."""
_NARROW_GAP, _WIDE_GAP = 2, 3
"""Cells between two keys, on narrow and on wide terminals."""
_WIDE_COLUMNS = 100
"""Columns of a wide terminal."""


class Bar(LinesWidget):
    """One line that is set from outside: what is left, and what is right."""

    DEFAULT_CSS = "Bar { height: 1; }"

    def __init__(self, role: str = "", **options: str | None) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.role = role
        self.left: Line = ()
        self.right: Line = ()

    def show(self, left: Line, right: Line = ()) -> None:
        """Show ``left`` at the start and ``right`` at the end; ``left`` is cut where they would meet."""
        self.left, self.right = left, right
        self.redraw()

    def draw(self, width: int, height: int) -> list[Line]:
        """Both parts on one ground."""
        del height
        line = spread(self.left, (*self.right, (" ", "")), width)
        return [tuple((text, f"{role}+{self.role}" if self.role else role) for text, role in line)]


def fit_parts(parts: Sequence[str], cells: int, leading_count: int = 0) -> str:
    """Join the first ``leading_count`` parts, and as many of the last ones as fit in ``cells`` cells, with dots."""
    for start in range(leading_count, len(parts) + 1):
        text = " · ".join((*parts[:leading_count], *parts[start:]))
        if cells_of(text) <= cells:
            return text
    return " · ".join(parts[:leading_count])


def key_line(keys: Sequence[Key], cells: int) -> Line:
    """Return the keys with their short texts, as many as fit, in the given order; ``KEPT`` ones always have room."""
    labels = [f"{key_sign(key.keys[0])} {key.footer}" if key.footer else "" for key in keys]
    fitting_places: list[int] = []
    room, gap = cells, _WIDE_GAP if cells >= _WIDE_COLUMNS else _NARROW_GAP
    for place in sorted(range(len(keys)), key=lambda place: keys[place].id not in PRIORITY_KEYS):
        size = cells_of(labels[place]) + (gap if fitting_places else 1)
        if not labels[place]:
            continue
        if size > room:
            break
        fitting_places.append(place)
        room -= size
    spans: list[Span] = []
    for place in sorted(fitting_places):
        sign = key_sign(keys[place].keys[0])
        spans += [(" " * gap if spans else " ", ""), (sign, "key"), (f" {keys[place].footer}", "dim")]
    return clip_line(tuple(spans), cells)


NOTE_CELLS = 22
"""Cells that long titles must leave for notes."""
_FILTER = "only "
"""Start of the note of a filter."""


@dataclass(frozen=True)
class Tab:
    """A page. ``title`` is for wide terminals, ``short`` for narrow ones; ``key`` is a digit, or a letter behind ``0``.

    A page with nothing to show is ``empty``, for the reason ``lack``; a run with ``option`` fills it, if one can.
    ``about`` describes it in the list.
    """

    id: str
    title: str
    short_title: str
    key: str = ""
    is_empty: bool = False
    option: str = ""
    description: str = ""
    missing_reason: str = "nothing recorded"

    @property
    def is_further(self) -> bool:
        """True if it is in the list behind ``0``."""
        return not self.key.isdigit()


def keys_of(tabs: Sequence[Tab]) -> dict[str, str]:
    """Return the keys of pages by name: ``8``, ``0 b``; none of a page without a key."""
    return {tab.id: key_text(tab.key) for tab in tabs if tab.key}


class TabBar(FrameEdge):
    """The line above the panel of a page; at the right what the page says about itself."""

    def __init__(self, tabs: Sequence[Tab], **options: str | None) -> None:
        super().__init__("top", **options)
        self.tabs = tabs
        self.current = tabs[0].id
        self.notes: Sequence[str] = ()
        self._shown_tabs: Sequence[Tab] = ()
        self._title_ends: list[int] = []

    def show_tabs(self, tabs: Sequence[Tab], current: str, notes: Sequence[str], *, focused: bool) -> None:
        """Mark the page ``current``; as many of the ``notes`` as fit stand at the right, the last ones first."""
        self.tabs, self.current, self.notes = tabs, current, notes
        self.focused = focused
        self.redraw()

    def draw(self, width: int, height: int) -> list[Line]:
        """The titles, as long as the width allows."""
        del height
        self._shown_tabs = shown_tabs(self.tabs, self.current)
        room, wide_room = width - 4, width - 4 - (NOTE_CELLS if self.notes else 0)
        if any(note.startswith(_FILTER) for note in self.notes):  # that something is left out must be seen
            room = wide_room = width - 7 - cells_of(" · ".join(self.notes))
        titles = _titles(self._shown_tabs, self.current, room, wide_room)
        self._title_ends = [2 + end for end in accumulate(map(len, titles))]
        spans: list[Span] = [(title, self._role(tab)) for tab, title in zip(self._shown_tabs, titles, strict=True)]
        note = fit_parts(self.notes, width - self._title_ends[-1] - 6)
        right: Line = ((f" {note} ", "dim"),) if note else ()
        return [edge_line((*spans, (" ", "")), right, width, focused=self.focused, edge=self.edge)]

    def _role(self, tab: Tab) -> str:
        if tab.id == self.current:
            return "tab" if self.focused else "tab_idle"
        return "rule" if tab.is_empty else "dim"

    async def on_click(self, event: events.Click) -> None:
        """A click on a title shows its page."""
        for tab, end in zip(self._shown_tabs, self._title_ends, strict=True):
            if event.x < end:
                await self.run_action("screen.more_pages" if tab.key == MORE_PAGES_KEY else f"screen.page({tab.id!r})")
                return


def shown_tabs(tabs: Sequence[Tab], current: str) -> list[Tab]:
    """Return the pages of the digits in order, then the current further page, or one for the list of them."""
    digits = sorted((tab for tab in tabs if not tab.is_further), key=lambda tab: tab.key)
    further = [tab for tab in tabs if tab.is_further]
    current_tab = next((tab for tab in further if tab.id == current), None)
    if current_tab is not None:
        return [*digits, current_tab]
    return [*digits, Tab("", "more", "more", MORE_PAGES_KEY)] if further else digits


def _titles(tabs: Sequence[Tab], current: str, room: int, wide_room: int) -> list[str]:
    """Return full titles if they fit in ``wide_room`` cells, else short ones, the digits, or the title of the page."""
    for form, limit in (
        (_full_title, wide_room),
        (_short_named_title, room),
        (_short_title, room),
        (_digit_title, room),
    ):
        titles = [form(tab, tab.id == current) for tab in tabs]
        if sum(map(len, titles)) <= limit:
            return titles
    return [_short_title(tab, True) if tab.id == current else "" for tab in tabs]


def _full_title(tab: Tab, _: bool) -> str:
    return f" {key_text(tab.key)} {f'({tab.title})' if tab.is_empty else tab.title} "


def _short_named_title(tab: Tab, _: bool) -> str:
    return f" {key_text(tab.key)} {f'({tab.short_title})' if tab.is_empty else tab.short_title}"


def _short_title(tab: Tab, is_current: bool) -> str:
    word = "" if tab.is_empty and not is_current else f" {tab.short_title}"
    return f" {key_text(tab.key)}{word}"


def _digit_title(tab: Tab, is_current: bool) -> str:
    return _short_title(tab, is_current) if is_current else f" {key_text(tab.key)}"
