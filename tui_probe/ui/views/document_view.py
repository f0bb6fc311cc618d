"""Document in a pane: its window, search, filter, commands, jumps and export."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.spans import wrap
from tui_probe.draw.view import Spot
from tui_probe.ui.export import document_forms
from tui_probe.ui.views.document_window import DocumentSearch, LineWindow, plain_lines
from tui_probe.ui.views.view import SIDE_STEP, PaneView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Document
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.ui.export import Writer
    from tui_probe.ui.views.document_window import SearchState
    from tui_probe.ui.views.view import ViewHost


MARK: Final = "mark"
"""Command that marks a line of source, for ``run --between``."""
_MIN_CELLS: Final = 20
"""Cells for which lines are formatted at least."""


@dataclass(frozen=True)
class DocumentState:
    """Visible part of a document in ``cells`` columns and its cursor, to be restored."""

    cells: int
    top: int
    cursor: int
    left: int
    search: SearchState
    choices: Mapping[str, Any]
    spot: Spot
    was_moved: bool


class DocumentView(PaneView):
    """A document in a pane: a window on its lines, search, commands, jumps from and to other pages, and export."""

    key_scope = "drawing"

    def __init__(self, view_host: ViewHost, name: str, document: Document, source: ViewSource | None) -> None:
        super().__init__(view_host, name)
        self.source = source
        self.window = LineWindow(document)
        self.lookup = DocumentSearch(self.window, view_host, self._note_move, self.request_redraw)
        self.was_moved = False
        """True once the cursor was moved, so that other pages may continue there."""
        self._is_at_start = True
        """True until the cursor is put at the start of the document, once there are lines."""
        self._keys: Mapping[str, str] = {}
        self._hidden_spot: Spot | None = None
        """Spot of the cursor that the shown text lacks. The cursor goes there in the next text that has it, unless the
        user moves it before.
        """
        self._pending_spot: Spot | None = None
        """Spot of the cursor as soon as there are lines."""
        self._pending_state: DocumentState | None = None
        """State to restore as soon as there are lines."""

    @property
    def search_text(self) -> str:  # type: ignore[override]  # the search alone sets it
        """Text that was searched for last; "" without a search."""
        return self.lookup.search_text

    @property
    def match(self) -> int | None:
        """Line of the last match; None without one."""
        return self.lookup.match

    @property
    def document(self) -> Document:
        """The shown document."""
        return self.window.document

    @property
    def cursor(self) -> int:
        """Line of the cursor in the document, or the first visible one."""
        return self.window.cursor

    @property
    def count(self) -> int:
        """Number of lines that pass the filter, without pinned ones."""
        return self.window.count

    # -- lines

    def replace(self, document: Document, source: ViewSource | None) -> None:
        """Show a newer state of the same; place, search and filter stay."""
        document.take_over(self.document)
        document.name_keys(self._keys)
        self.source = source
        self._show(document)

    def _show(self, document: Document) -> None:
        self.window.document = document
        self._lay_out()

    def name_keys(self, keys: Mapping[str, str]) -> None:
        """Take the keys of pages, which the document may name."""
        self._keys = keys
        self.document.name_keys(keys)
        if self.width:
            self._lay_out()

    def resize(self, width: int, height: int) -> None:
        """Format the lines for another width."""
        super().resize(width, height)
        self._lay_out()

    def _lay_out(self) -> None:
        window = self.window
        if self._pending_state is not None and self.width:
            self._restore_text(self._pending_state)
        window.lay_out(self._cells, self.height)
        if self._is_at_start and self.width:
            self._is_at_start, window.place.cursor = False, self.document.begins(self._cells) - window.pinned
        if self.lookup.filter_text:
            self.lookup.set_filter(self.lookup.filter_text, keep=True)
        window.place.follow(window.count, window.room)
        self._restore_pending()
        self.request_redraw()

    @property
    def _cells(self) -> int:
        """Cells of a line: a narrower pane shows a part of it."""
        return max(_MIN_CELLS, self.width)

    def draw(self, width: int, height: int) -> list[Line]:
        """Return the visible lines, or the notice that none passes the filter."""
        if not self.count and self.lookup.filter_text:
            notice = f"no line contains “{self.lookup.filter_text}”: press Esc to see all"
            return [((f" {part}", "dim"),) for part in wrap(notice, width - 2)]
        return self.window.draw(width, self.lookup.search_text, self.lookup.match, focused=self.focused)[:height]

    def _set_cursor(self, place: int) -> None:
        self.window.go_to(place)
        self._note_move()

    def _note_move(self) -> None:
        self.was_moved, self._hidden_spot = True, None
        self.request_redraw()

    def move(self, step: int) -> None:
        """Move by lines."""
        self.window.place.step(step, self.count, self.window.room)
        self._note_move()

    def move_page(self, step: int) -> None:
        """Move by windows."""
        self.window.place.page(step, self.count, self.window.room)
        self._note_move()

    def move_to(self, end: int) -> None:
        """Move to the start (0) or the end (-1)."""
        self._set_cursor(self.count - 1 if end else 0)

    def shift(self, step: int) -> None:
        """Scroll sideways."""
        self.window.left = max(0, self.window.left + step * SIDE_STEP)
        self.request_redraw()

    def click(self, row: int, column: int = 0) -> None:
        """Move the cursor to the clicked line."""
        del column
        if self.window.click(row):
            self._note_move()

    # -- what is shown

    def resume(self, previous_view: PaneView) -> None:
        """Take over cursor, search and filter of the page of another kernel or launch that was here before.

        A text without a cursor, such as the summary, begins at its first line for another kernel.
        """
        if isinstance(previous_view, DocumentView):
            self.document.take_over(previous_view.document)
            if previous_view.window.gutter or self._is_of_kernel(previous_view.source):
                self._is_at_start = self.document.launch_row != previous_view.document.launch_row
                self.window.place.top, self.window.place.cursor = (
                    previous_view.window.place.top,
                    previous_view.window.place.cursor,
                )
            self.lookup.resume(previous_view.lookup)

    def _is_of_kernel(self, source: ViewSource | None) -> bool:
        if source is None or self.source is None:
            return source is self.source
        return source.kernel.kernel is self.source.kernel.kernel

    def status(self) -> list[str]:
        """Return the filter, the document's own state, the facts about the line at the cursor, and the position."""
        parts = [f"only “{self.lookup.filter_text}”"] if self.lookup.filter_text else []
        parts += self.document.status()
        if self.window.gutter and self.count:
            facts, pinned = self.document.line_facts(self.cursor, self._cells), self._pinned_facts
            return [*facts[:pinned], *parts, *facts[pinned:], *self._cursor_position()]
        if self.count > self.window.room:
            last_line = min(self.count, self.window.top + self.window.room)
            parts.append(units.position(self.window.top + 1, last_line, self.count))
        return parts

    def _cursor_position(self) -> list[str]:
        """Return ``row 3 of 12``; nothing for a line that is none of those that the document counts."""
        noun, count = self.document.row_noun, self.document.row_count()
        if self.lookup.filter_text:
            noun, count = "row", self.count
        elif count is None:
            count = self.count
        place = self.window.place.cursor
        return [f"{noun} {units.count(place + 1)} of {units.count(count)}"] if place < count else []

    def pinned_parts(self) -> int:
        """Count the filter, which is always shown: without it lines seem to be missing."""
        return self._pinned_facts + (1 if self.lookup.filter_text else self.document.pinned_parts())

    @property
    def _pinned_facts(self) -> int:
        has_cursor = bool(self.window.gutter and self.count)
        return self.document.pinned_facts(self.cursor, self._cells) if has_cursor else 0

    # -- search and filter

    def search(self, text: str) -> None:
        """Search from the cursor on."""
        self.lookup.search(text)

    def next_match(self, step: int) -> None:
        """Go to the next or previous match, around the end, in the background."""
        self.lookup.next_match(step)

    @property
    def filter_text(self) -> str:
        """Text that shown lines must contain."""
        return self.lookup.filter_text

    def set_filter(self, text: str) -> None:
        """Show only lines that contain ``text``; they are found in the background."""
        self.lookup.set_filter(text)

    def clear_search(self) -> bool:
        """End the search, or without one the filter."""
        return self.lookup.clear()

    def sortable(self) -> Mapping[str, str]:
        """Return the columns of the document to sort by."""
        return self.document.sortable()

    @property
    def sorted_column(self) -> str:
        """The key of the column by which its rows are sorted."""
        return self.document.sorted_column

    def sort_by(self, key: str) -> None:
        """Sort its rows; the cursor stays at its line of PTX, where there is one."""
        self._keep_line(partial(self.document.sort_by, key))

    # -- keys

    def commands(self) -> Mapping[str, str]:
        """Return the document's commands, stepping between changes, and going to the hotspot."""
        commands = dict(self.document.commands())
        if self.window.matches is None and self.document.anchors(self._cells):
            noun = self.document.anchor_noun()
            commands |= {"next": f"go to the next {noun}", "previous": f"go to the previous {noun}"}
        if self.window.matches is None and (worst := self.document.worst()) is not None:
            commands["worst"] = worst[1]
        return commands

    def command(self, command: str) -> None:
        """Run a command."""
        if command in ("next", "previous"):
            self._to_anchor(1 if command == "next" else -1)
            return
        if command == "worst" and (worst := self.document.worst()) is not None:
            line, message = worst
            self._set_cursor(line - self.window.pinned)
            self.view_host.notice(message)
            return
        if command == MARK:
            self.view_host.notice(self.document.mark(self.cursor, self._cells) if self.count else "")
            self.request_redraw()
            return
        self._keep_line(partial(self._press, command))

    def _press(self, command: str) -> None:
        if message := self.document.press(command):
            self.view_host.notice(message)

    def _keep_line(self, change: Callable[[], None]) -> None:
        """Change what the document shows; the cursor stays at its line of PTX, where there is one."""
        spot, ptx_line, row = self._spot(), self._ptx_line(), self.window.place.cursor - self.window.top
        if self._hidden_spot is not None:
            spot, ptx_line = self._hidden_spot, None
        change()
        self._lay_out()
        line = self.document.place_of_spot(spot, self._cells)
        if line is None and (reason := self.document.missing_reason(spot)):
            self.view_host.notice(reason)
        if line is None and ptx_line is not None:
            line = self.document.place_of(ptx_line, self._cells)
        self._hidden_spot = spot if line is None and spot else None
        if line is not None and self.window.matches is None:
            self.window.place.cursor = line - self.window.pinned
            self.window.place.top = self.window.place.cursor - row
            self.window.clamp()
            self.request_redraw()

    def _spot(self) -> Spot:
        """Return the target of the line at the cursor."""
        return self.document.spot(self.cursor, self._cells) if self.count else Spot()

    def _ptx_line(self) -> int | None:
        """Return the line of ``pruned.ptx`` at the cursor, or the last visible one above it."""
        window = self.window
        places = range(window.place.cursor, window.top - 1, -1) if window.count else ()
        numbers = map(window.number, places)
        lines = (self.document.ptx_line(number, self._cells) for number in numbers)
        return next((line for line in lines if line is not None), None)

    def _to_anchor(self, step: int) -> None:
        """Move the cursor to the next or previous anchor."""
        anchors = self.document.anchors(self._cells)
        place = bisect_right(anchors, self.cursor) if step > 0 else bisect_left(anchors, self.cursor) - 1
        noun = self.document.anchor_noun()
        if not 0 <= place < len(anchors):
            self.view_host.notice(f"no further {noun}" if step > 0 else f"no {noun} before this one")
            return
        self._set_cursor(anchors[place] - self.window.pinned)
        self.view_host.notice(f"{noun} {units.count(place + 1)} of {units.count(len(anchors))}")

    def marked_option(self) -> str:
        """Return the line or range that the document can have measured."""
        return self.document.marked_option()

    # -- to and from other pages

    def target_view(self) -> str:
        """Return the page that Enter opens."""
        return self.document.target_view_at(self.cursor, self._cells)

    def target(self) -> Spot | None:
        """Return the spot that it shows; None without lines."""
        return self.document.target(self.cursor, self._cells) if self.count else None

    def launch_at_cursor(self) -> int | None:
        """Return the launch of the line at the cursor."""
        return self.document.launch_at(self.cursor) if self.count else None

    def no_target_reason(self) -> str:
        """Return the document's reason why the line at the cursor has no target."""
        return self.document.no_target_reason(self.cursor, self._cells) if self.count else ""

    def full_names(self) -> Sequence[str]:
        """Return the full names at the cursor."""
        return self.document.full_names(self.cursor) if self.count else ()

    def part_at_cursor(self) -> tuple[str, Any] | None:
        """Return the page and the part to which the line at the cursor leads; None if there is none."""
        return self.document.part_at(self.cursor) if self.count else None

    def select_part(self, part: Any) -> bool:
        """Limit the document to a part (None: all); return whether it changed. The cursor goes to its beginning."""
        has_changed = self.document.select_part(part)
        if has_changed:
            self.lookup.clear_all()
            self._is_at_start = True
            self._lay_out()
        return has_changed

    def state(self) -> object:
        """Return the state that ``restore`` restores."""
        choices, place = self.document.choices(), self.window.place
        search = self.lookup.state()
        return DocumentState(
            self._cells, place.top, place.cursor, self.window.left, search, choices, self._spot(), self.was_moved
        )

    def restore(self, state: object) -> None:
        """Restore text, lines and cursor; in another width the same spot."""
        if isinstance(state, DocumentState) and self.width:
            self._restore_text(state)
            self._lay_out()
            self._place(state)
        elif isinstance(state, DocumentState):
            self._pending_state = state

    def _restore_text(self, state: DocumentState) -> None:
        """Restore what decides on the lines."""
        if state.choices:
            self.document.choose(state.choices)
        self.window.left = state.left
        self.lookup.restore(state.search)
        self.was_moved = state.was_moved

    def _place(self, state: DocumentState) -> None:
        """Restore the position in the lines."""
        if self.window.matches is not None:
            lines = len(self.window.lines)  # there may be fewer now
            self.window.matches = [number for number in self.window.matches if number < lines]
        if self._cells == state.cells:
            self.window.place.top, self.window.place.cursor = state.top, state.cursor
            self.window.clamp()
            self.request_redraw()
        else:
            self.go_to_spot(state.spot)

    def spot(self) -> Spot:
        """Return the spot of the line at the cursor, if the user put it there."""
        return self._spot() if self.was_moved or self.document.tells_at_once else Spot()

    def go_to_spot(self, spot: Spot, *, exactly: bool = False) -> bool:
        """Move the cursor to a spot, as soon as there are lines."""
        if not self.width:
            self._pending_spot = spot
            return True
        if not exactly and self._spot().shares_code(spot):
            return True
        if exactly and self.document.turn_to(spot):
            self._lay_out()
        number = self.document.place_of_spot(spot, self._cells)
        if number is None or (self.window.is_hidden(number) and not exactly):
            return False
        if self.window.is_hidden(number):
            self.lookup.clear_all()
        self._set_cursor(self.window.place_of(number))
        return True

    def _restore_pending(self) -> None:
        if not self.width:
            return
        if self._pending_state is not None:
            state, self._pending_state = self._pending_state, None
            self._place(state)
        if self._pending_spot is None:
            return
        spot, self._pending_spot = self._pending_spot, None
        if not self.go_to_spot(spot, exactly=True) and (reason := self.document.missing_reason(spot)):
            self.view_host.notice(reason)

    def missing_reason(self, spot: Spot) -> str:
        """Return why a spot is not shown: hidden by the filter, or not in the document."""
        if self.document.place_of_spot(spot, self._cells) is not None and self.lookup.filter_text:
            return f"the filter “{self.lookup.filter_text}” hides this line: press Esc to see all"
        return self.document.missing_reason(spot)

    def go_to_marked_line(self) -> str:
        """Move the cursor to the line that is marked in the visible value. Return its text, "" without one."""
        marked_line = self.document.marked_line()
        return (
            marked_line[1]
            if marked_line is not None and self.go_to_spot(Spot.of_line(marked_line[0]), exactly=True)
            else ""
        )

    # -- out of the screen

    def text_to_copy(self) -> str:
        """Return all that is visible, with suggested commands whole."""
        return "\n".join(self.document.unbroken(super().text_to_copy().split("\n")))

    def line_exporter(self) -> Callable[[], Iterable[str]]:
        """Return a function that yields all lines that pass the filter."""
        lines, numbers = self.window.lines, [*range(self.window.pinned), *map(self.window.number, range(self.count))]
        return partial(plain_lines, lines, numbers)

    def explanation(self) -> Sequence[str]:
        """Return the document's explanation, or that of its view."""
        return self.document.explanation() or super().explanation()

    def export_writers(self) -> Mapping[str, Writer]:
        """Return the writers of text, data and pictures."""
        return {**super().export_writers(), **document_forms(self.name, self.document, self.source, self._cells)}
