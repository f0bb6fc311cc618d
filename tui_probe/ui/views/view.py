"""Base of all views, requests of a view to its screen, and views of ready lines."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

from tui_probe.draw import units
from tui_probe.draw.spans import Line, clip_line, plain, wrap
from tui_probe.draw.view import Spot
from tui_probe.ui.export import write_text

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from tui_probe.ui.export import Writer

SIDE_STEP = 8
"""Cells by which a key scrolls sideways."""


def cursor_sign(focused: bool) -> str:
    """Return the start of the cursor's line: a bar in the pane with the keys, a thin one in any other."""
    return "▌" if focused else "│"


def edge_sign(focused: bool) -> str:
    """Return the end of the cursor's line at the right edge, where its background does not reach so far."""
    return "▐" if focused else "│"


def cursor_role(focused: bool) -> str:
    """The role of the ground of the line of the cursor."""
    return "select" if focused else "idle"


class Worker(Protocol):
    """Runs the newest job of each key outside the event loop."""

    def submit(self, key: Hashable, job: Callable[[], Any], on_result: Callable[[Any], None]) -> None:
        """Run ``job()`` in the background, then ``on_result(result)`` on the event loop."""


class ViewHost(Protocol):
    """Surroundings of a view: queues, frames, messages."""

    @property
    def tables(self) -> Worker:
        """Sorts and filters tables."""

    @property
    def logs(self) -> Worker:
        """Reads logs, and nothing else does: readers belong to one thread."""

    @property
    def analyses(self) -> Worker:
        """Reads and analyses results."""

    def redraw(self, view: PaneView) -> None:
        """The view changed."""

    def notice(self, text: str) -> None:
        """Say something for some seconds."""


class PaneView:
    """A window on something. Its size is set by the pane that shows it; 0 × 0 means that none does yet.

    Subclasses say what there is to see (``draw``, ``status``) and what keys do. A key that means nothing to a view does
    nothing.
    """

    key_scope = ""
    """Scope of the keys that only such a view has, one of ``keys.SCOPES``; "" if it has none of its own."""
    searches: bool = True
    """True if it has lines or names to search."""
    filters: bool = True
    """True if it has lines to filter."""
    search_hides_others: bool = False
    """True if a search leaves out the other lines, as a filter does."""
    search_text: str = ""
    """Text of the last search; "" without a search."""

    def __init__(self, view_host: ViewHost, name: str) -> None:
        self.view_host = view_host
        self.name = name
        self.width = self.height = 0
        self.focused = False

    def draw(self, width: int, height: int) -> list[Line]:
        """The lines of the window; missing ones are blank."""
        del width, height
        return []

    def status(self) -> list[str]:
        """Describe the visible part, in parts of a few words; the last ones matter most."""
        return []

    def pinned_parts(self) -> int:
        """Return the number of leading parts that are never left out."""
        return 0

    def resize(self, width: int, height: int) -> None:
        """The window has a new size."""
        self.width, self.height = width, height

    def request_redraw(self) -> None:
        """Request a redraw."""
        self.view_host.redraw(self)

    def move(self, step: int) -> None:
        """Move down by lines or rows; up if negative."""

    def move_page(self, step: int) -> None:
        """Move down by pages; up if negative."""
        self.move(step * max(1, self.height - 1))

    def move_to(self, end: int) -> None:
        """Move to the start (0) or the end (-1)."""

    def shift(self, step: int) -> None:
        """Right; left if negative."""

    def search(self, text: str) -> None:
        """Go to the first line from here on that contains ``text``."""

    def next_match(self, step: int) -> None:
        """Go to the next (1) or previous (-1) line that contains the searched text."""

    @property
    def filter_text(self) -> str:
        """Text that shown lines must contain."""
        return ""

    def set_filter(self, text: str) -> None:
        """Show only what contains ``text``; everything if empty."""

    def clear_search(self) -> bool:
        """End the search, or without one the filter. False if there was neither."""
        return False

    def sortable(self) -> Mapping[str, str]:
        """Return the titles of the columns to sort by, by key; empty for no such columns."""
        return {}

    @property
    def sorted_column(self) -> str:
        """The key of the column by which rows are sorted; "" where no one chose a column."""
        return ""

    def sort_by(self, key: str) -> None:
        """Sort the rows by a column; the same one again reverses them."""

    def explanation(self) -> Sequence[str]:
        """Return how to read the view, as paragraphs."""
        from tui_probe.pages.page_registry import explanation  # brings all pages

        return explanation(self.name)

    def commands(self) -> Mapping[str, str]:
        """The commands of ``draw.view`` that mean something now, and what they do."""
        return {}

    def command(self, command: str) -> None:
        """Run a command."""

    def marked_option(self) -> str:
        """Return the option of ``tui-probe run`` that measures what is marked; "" without a mark."""
        return ""

    def target_view(self) -> str:
        """Return the page that Enter opens, "" for none."""
        return ""

    def target(self) -> Spot | None:
        """Return the spot that it shows for the cursor; None for none."""
        return None

    def no_target_reason(self) -> str:
        """Return why the cursor's line has no target, and what has one; "" where no line ever has."""
        return ""

    def part_at_cursor(self) -> tuple[str, Any] | None:
        """Return the page that Enter opens from the cursor, and its part; None for none."""
        return None

    def select_part(self, part: Any) -> bool:
        """Show a part, or all again with None. Return whether that changed anything."""
        del part
        return False

    def launch_at_cursor(self) -> int | None:
        """Return the row of the launch that Enter selects; None for none."""
        return None

    def kernel_target(self) -> tuple[Path, int] | None:
        """Return trace and index of the kernel that Enter opens from the cursor; None for none."""
        return None

    def state(self) -> object:
        """Return the state that ``restore`` restores."""
        return None

    def restore(self, state: object) -> None:
        """Restore the visible part and the cursor."""

    def spot(self) -> Spot:
        """Return the cursor's position in the launch; none of a cursor that was not moved."""
        return Spot()

    def go_to_spot(self, spot: Spot, *, exactly: bool = False) -> bool:
        """Move the cursor to a spot, unless it is there already. Return False if the spot is not shown.

        ``exactly``: to the first line of it, and what hides it is undone: a filter, another text.
        """
        del spot, exactly
        return False

    def missing_reason(self, spot: Spot) -> str:
        """Return why a spot that belongs to this view is not shown; "" if the spot does not belong to it."""
        del spot
        return ""

    def go_to_marked_line(self) -> str:
        """Move to the line that is marked as the most or fewest. Return its text, "" without one."""
        return ""

    def click(self, row: int, column: int = 0) -> None:
        """Handle a click on a cell of the window."""

    def full_names(self) -> Sequence[str]:
        """Return the selection, with names in full that may be cut; none without a selection."""
        return ()

    def text_to_copy(self) -> str:
        """Return the text to copy: by default all that is visible."""
        lines = ("".join(text for text, _ in line).rstrip() for line in self.draw(self.width, self.height))
        return "\n".join(lines).rstrip("\n")

    def line_exporter(self) -> Callable[[], Iterable[str]]:
        """Return a function that yields all lines, not only the visible ones.

        That function runs in the background, so it must not read the view.
        """
        return lambda: ()

    def export_writers(self) -> Mapping[str, Writer]:
        """Return the writer of each export format."""
        return {"text": partial(write_text, self.line_exporter())}


class TextView(PaneView):
    """Lines that someone else made. ``show`` replaces them and keeps the place."""

    def __init__(self, view_host: ViewHost, name: str, empty_text: str = "") -> None:
        super().__init__(view_host, name)
        self.empty_text = empty_text
        self.lines: Sequence[Line] = ()
        self.search_text = ""
        self._filter = ""
        self.top = self._top_before = 0
        self.left = 0
        self.match: int | None = None

    def show(self, lines: Sequence[Line]) -> None:
        """Show these lines."""
        self.lines = lines
        self.request_redraw()

    def draw(self, width: int, height: int) -> list[Line]:
        """The lines in the window, searched words marked."""
        lines = self.shown_lines()
        if not lines:
            message = f"no line contains “{self._filter}”" if self._filter else self.empty_text
            return [((f" {part}", "dim"),) for part in wrap(message, width - 2)]
        self.top = max(0, min(self.top, len(lines) - height))
        window = lines[self.top : self.top + height]
        return [self._mark_match(self.top + y, clip_line(line, width, skip=self.left)) for y, line in enumerate(window)]

    def shown_lines(self) -> Sequence[Line]:
        """All lines that pass the filter."""
        if not self._filter:
            return self.lines
        return [line for line in self.lines if contains(plain(line), self._filter)]

    def status(self) -> list[str]:
        """Return the range of visible lines."""
        total = len(self.shown_lines())
        parts = [f"only “{self._filter}”"] if self._filter else []
        if total > self.height:
            parts.append(units.position(self.top + 1, min(total, self.top + self.height), total))
        return parts

    def move(self, step: int) -> None:
        """Scroll by lines."""
        self._scroll(self.top + step)

    def move_to(self, end: int) -> None:
        """Move to the start (0) or the end (-1)."""
        self._scroll(len(self.shown_lines()) if end else 0)

    def shift(self, step: int) -> None:
        """Scroll sideways."""
        self.left = max(0, self.left + step * SIDE_STEP)
        self.request_redraw()

    def _scroll(self, top: int) -> None:
        self.top = max(0, min(top, len(self.shown_lines()) - self.height))
        self.request_redraw()

    def search(self, text: str) -> None:
        """Search from the first visible line on."""
        self.search_text, self.match = text, None
        self.next_match(1)

    def next_match(self, step: int) -> None:
        """Go to the next or previous match, around the end."""
        lines = self.shown_lines()
        if not self.search_text or not lines:
            return
        start = self.top - step if self.match is None else self.match
        order = ((start + step * i) % len(lines) for i in range(1, len(lines) + 1))
        self.match = next((i for i in order if contains(plain(lines[i]), self.search_text)), None)
        if self.match is None:
            self.view_host.notice(f"“{self.search_text}” is not on this page")
        elif not self.top <= self.match < self.top + self.height:
            self.top = max(0, self.match - self.height // 3)
        self.request_redraw()

    @property
    def filter_text(self) -> str:
        """Text that shown lines must contain."""
        return self._filter

    def set_filter(self, text: str) -> None:
        """Only lines that contain ``text``."""
        if not self._filter:
            self._top_before = self.top
        self._filter, self.match = text, None
        self.top = 0 if text else self._top_before
        self.request_redraw()

    def clear_search(self) -> bool:
        """End the search, or without one the filter, and return to the line shown before filtering unless scrolled."""
        if not self.search_text and not self._filter:
            return False
        if not self.search_text:
            self.top = self.top or self._top_before
            self._filter = ""
        self.search_text, self.match = "", None
        self.request_redraw()
        return True

    def line_exporter(self) -> Callable[[], Iterable[str]]:
        """Return a function that yields all lines that pass the filter."""
        lines = list(self.shown_lines())
        return lambda: (plain(line) for line in lines)

    def _mark_match(self, index: int, line: Line) -> Line:
        if not self.search_text:
            return line
        return mark(line, self.search_text, "match" if index == self.match else "match_other")


def contains(text: str, search_text: str) -> bool:
    """Return whether ``search_text`` is in ``text``. Lower case matches both cases, as in less and vim."""
    return search_text in (text if search_text != search_text.lower() else text.lower())


def mark(line: Line, search_text: str, role: str) -> Line:
    """``line`` with every occurrence of ``search_text`` in ``role``."""
    whole_text = plain(line)
    hay = whole_text if search_text != search_text.lower() else whole_text.lower()
    if len(hay) != len(whole_text) or search_text not in hay:
        return line
    match_flags = bytearray(len(whole_text))
    start = hay.find(search_text)
    while start >= 0:
        match_flags[start : start + len(search_text)] = b"\1" * len(search_text)
        start = hay.find(search_text, start + len(search_text))
    spans: list[tuple[str, str]] = []
    position = 0
    for text, own_role in line:
        for offset, character in enumerate(text):
            span_role = role if match_flags[position + offset] else own_role
            if spans and spans[-1][1] == span_role:
                spans[-1] = (spans[-1][0] + character, span_role)
            else:
                spans.append((character, span_role))
        position += len(text)
    return tuple(spans)
