"""Table of kernels: the window on its rows, and the keys that select, sort, filter and search them.

Its columns grow with what they showed, and never shrink.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from tui_probe.draw import units
from tui_probe.draw.printable import printable
from tui_probe.draw.spans import width, wrap
from tui_probe.draw.table_content import heading
from tui_probe.ui.live.kernel_columns import (
    BAR_CELLS,
    COLUMN_POSITIONS,
    COLUMNS,
    FINDING_POSITION,
    GAP,
    STATUSES,
    UNREAD_TEXT,
    columns_of,
    fit_columns,
)
from tui_probe.ui.live.kernel_rows import ArrangedKernels, RowOrder, arrange_rows, data_forms, table_text
from tui_probe.ui.views.view import PaneView, ViewHost, cursor_role, cursor_sign, mark
from tui_probe.verdicts.kernel_snapshot import GPU_TIME, sorting_title

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tui_probe.draw.spans import Line, Span
    from tui_probe.ui.export import Writer
    from tui_probe.ui.live.kernel_columns import ScreenColumn
    from tui_probe.ui.live.kernel_rows import ArrangedRows, Rows
    from tui_probe.verdicts.kernel_snapshot import KernelSnapshot

    Layout = list[tuple[ScreenColumn[KernelSnapshot], int]]
    """The columns that are shown, each with its cells."""


class KernelTableDrawing:
    """Draws rows of kernels; ``has_times``: with columns for times."""

    def __init__(self, kernels: ArrangedKernels) -> None:
        self._kernels = kernels
        self.has_times = True
        self._natural_widths: dict[str, int] = {}
        self._short_widths: dict[str, int] = {}

    def lines(self, window: Rows, cells: int, *, search_text: str, focused: bool) -> list[Line]:
        """Return the titles and these rows, ``cells`` wide."""
        self._measure(window)
        layout = self.layout(cells)
        return [self._titles(layout), *(self._row(row, layout, cells, search_text, focused) for row in window)]

    def layout(self, cells: int) -> Layout:
        """Return the columns that fit in this many cells."""
        columns = columns_of(
            is_timed=self.has_times,
            is_ranked=self._kernels.share_of == GPU_TIME,
            has_cycle_shares=self._kernels.is_ranked,
            cells=cells,
            filled_keys=self._kernels.filled_keys,
        )
        return fit_columns(columns, self._natural_widths, self._short_widths, cells - 2)

    def _measure(self, window: Rows) -> None:
        """Widen columns to the contents of these rows: columns that shrank would move while rows change."""
        for column in COLUMNS:
            max_width = max((width(column.cell(row)) for row in window), default=0)
            self._natural_widths[column.key] = max(self._natural_widths.get(column.key, 0), max_width)
            if column.short_text is not None:
                max_width = max((width(column.short_text(row)) for row in window), default=0)
                self._short_widths[column.key] = max(self._short_widths.get(column.key, 0), max_width)

    def _titles(self, layout: Layout) -> Line:
        order, sorted_by = self._kernels.order, self._kernels.sort_position
        largest_first = sorted_by == FINDING_POSITION or (self._kernels.is_ranked and order.column is None)
        is_falling = order.reverse != largest_first
        spans: list[Span] = [(" ", "")]
        for column, cells in layout:
            is_sorted = COLUMN_POSITIONS[column.key] == sorted_by and (sorted_by or order != RowOrder())
            arrow = ("↓" if is_falling else "↑") if is_sorted else ""
            title = heading(column.title, cells, arrow, right=column.column.right)
            spans.append((title, "head+accent" if is_sorted else "head"))
        return tuple(spans)

    def _row(self, row: KernelSnapshot, layout: Layout, cells: int, search_text: str, focused: bool) -> Line:
        is_selected = row.index == self._kernels.selected_index
        spans: list[Span] = [(cursor_sign(focused) if is_selected else " ", "accent" if is_selected else "")]
        for column, size in layout:
            spans += _cell(row, column, size)
            spans.append((" " * GAP, ""))
        line: Line = tuple(spans)
        if search_text:
            line = mark(line, search_text, "match")
        if not is_selected:
            return line
        ground = cursor_role(focused)
        used_cells = sum(width(text) for text, _ in line)
        return (
            *((text, f"{role}+{ground}" if role else ground) for text, role in line),
            (" " * (cells - used_cells), ground),
        )


def _cell(row: KernelSnapshot, column: ScreenColumn[KernelSnapshot], size: int) -> list[Span]:
    text, role = column.fit_text(row, size), cell_role(row, column)
    if column.key == "share" and row.share is not None:
        return [(text[:BAR_CELLS], "ramp5"), (text[BAR_CELLS:], role)]
    return [(text, role)]


def cell_role(row: KernelSnapshot, column: ScreenColumn[KernelSnapshot]) -> str:
    """Return the role of the text in a cell."""
    if row.failures and column.key in ("status", "demangled"):
        return "bad"
    if column.key == "status":
        return row.status
    if column.key == "demangled":
        return "" if row.status == "probed" else "soft"
    if column.key == "finding":
        if row.finding and not row.shown_failure:
            return "warn" if row.stands_out else ""
        return "bad" if row.shown_failure or row.status == "failed" else "dim"
    if column.key == "spills" and row.spills_probed and row.spills_probed > (row.spills_pruned or 0):
        return "warn"
    return "dim" if column.cell(row) in ("–", UNREAD_TEXT) or column.key == "index" else ""


class KernelNames(Protocol):
    """A kernel, or a row of one."""

    @property
    def name(self) -> str: ...
    @property
    def demangled(self) -> str: ...


class KernelTable(PaneView):
    """Rows of kernels under one line of titles; only the visible ones are drawn.

    ``selected_changed`` is called when another kernel is selected, or the selected one has new numbers.
    """

    key_scope = "table"

    def __init__(self, view_host: ViewHost, name: str, selected_changed: Callable[[], None]) -> None:
        super().__init__(view_host, name)
        self.selected_changed = selected_changed
        self.kernels = ArrangedKernels()
        self.drawing = KernelTableDrawing(self.kernels)
        self.search_text = ""
        self._top = 0
        """Place of the first visible row."""
        self._simulated = False
        self._empty_text = "reading the trace"

    # -- what is shown

    def show(self, rows: Rows, *, timed: bool = True, simulated: bool = False) -> None:
        """Show these kernels, with columns for times if ``timed``; nothing happens if they are the ones shown."""
        self._simulated = simulated
        if rows is not self.kernels.all_rows or timed != self.drawing.has_times:
            self.drawing.has_times = timed
            self.kernels.replace(rows)
            self._arrange()

    def set_empty_text(self, text: str) -> None:
        """Set the text of an empty table."""
        previous_text, self._empty_text = self._empty_text, text
        if text != previous_text and not self.kernels.all_rows:
            self.request_redraw()

    def _arrange(self) -> None:
        job = partial(arrange_rows, self.kernels.all_rows, self.kernels.order)
        self.view_host.tables.submit((self, "order"), job, self._take)

    def _take(self, rows: ArrangedRows) -> None:
        self.kernels.take(rows)
        self._show_selected()  # also the same one: its numbers may have changed

    @property
    def shown_rows(self) -> Rows:
        """The rows that pass the filter, in order."""
        return self.kernels.shown_rows

    @property
    def selected_index(self) -> int | None:
        """The index of the selected kernel, None without any."""
        return self.kernels.selected_index

    @property
    def kernel(self) -> KernelSnapshot | None:
        """The selected kernel, None if none is shown."""
        return self.kernels.kernel

    @property
    def is_waiting(self) -> bool:
        """True if there are kernels that have not been put in order yet."""
        return bool(self.kernels.all_rows) and not self.kernels.is_arranged

    def unread_in_sight(self) -> tuple[int, ...]:
        """Return the visible kernels whose directories have not been read."""
        return tuple(row.index for row in self._window(self.height) if not row.read)

    # -- the selection

    def select(self, index: int) -> None:
        """Select a kernel by its index, and stay there."""
        self.kernels.select(index)
        self._show_selected()

    def prefer_probed(self) -> None:
        """Select the first kernel that failed or was probed, if no times rank them."""
        if self.kernels.prefer_probed():
            self._show_selected()

    def forget(self) -> None:
        """Select no kernel, since those of another process come."""
        self.kernels.selected_index, self.kernels.is_held = None, False

    def hold(self) -> None:
        """Keep the selection on its kernel once the user has pressed a key, also when another takes more time."""
        self.kernels.is_held = self.kernels.is_held or self.kernels.selected_index is not None

    @property
    def is_held(self) -> bool:
        """True once the user has selected a kernel."""
        return self.kernels.is_held

    def step(self, step: int) -> None:
        """Select the kernel ``step`` places further."""
        if self.shown_rows:
            place = max(0, min(self.kernels.place + step, len(self.shown_rows) - 1))
            self.select(self.shown_rows[place].index)

    def next_flagged(self) -> str:
        """Select the next flagged kernel, and return its finding, "" if none is flagged."""
        text = self.kernels.select_flagged()
        if text:
            self._show_selected()
        return text

    def _show_selected(self) -> None:
        self._keep_in_sight()
        self.request_redraw()
        self.selected_changed()

    def _keep_in_sight(self) -> None:
        height = max(1, self.height - 1)
        place = self.kernels.place
        self._top = max(min(self._top, place), place - height + 1)
        self._top = max(0, min(self._top, len(self.shown_rows) - height))

    # -- the window

    def resize(self, width: int, height: int) -> None:
        """The selected row stays visible."""
        super().resize(width, height)
        self._keep_in_sight()

    def _window(self, height: int) -> Rows:
        """The rows below the titles in a window of this height."""
        return self.shown_rows[self._top : self._top + height - 1]

    def draw(self, width: int, height: int) -> list[Line]:
        """Titles, then the visible rows."""
        window = self._window(height)
        lines = self.drawing.lines(window, width, search_text=self.search_text, focused=self.focused)
        if not window:
            lines += [((f" {part}", "dim"),) for part in wrap(self._no_rows_text(), width - 2)]
        return lines

    def _no_rows_text(self) -> str:
        if not self.kernels.all_rows:
            return self._empty_text
        return "no kernel passes the filter: press Esc to see all" if self.kernels.is_arranged else "reading the trace"

    def status(self) -> list[str]:
        """Describe sort column and filter for the title bar."""
        order, unread, total = self.kernels.order, self.kernels.unread, len(self.kernels.all_rows)
        parts = [f"only {order.status}"] if order.status else []
        if order.text:
            parts.append(f"only “{order.text}”")
        if text := self._order_text():
            parts.append(text)
        if unread:
            parts.append(f"{units.count(total - unread)} of {units.counted(total, 'kernel')} read")
        if total:
            number = self.kernels.place + 1 if self.shown_rows else 0
            parts.append(f"kernel {units.count(number)} of {units.count(len(self.shown_rows))}")
        return parts

    def _order_text(self) -> str:
        """``by share of GPU time``, ``flagged first``, ``sorted by registers, reversed``."""
        order, position = self.kernels.order, self.kernels.sort_position
        is_default, reverse = order.column is None, ", reversed" if order.reverse else ""
        if is_default and position != 0:
            return sorting_title(self.kernels.share_of, simulated=self._simulated) + reverse
        return f"sorted by {COLUMNS[position].title}{reverse}" if not is_default or reverse else ""

    # -- keys

    def move(self, step: int) -> None:
        """One row up or down."""
        self.step(step)

    def move_page(self, step: int) -> None:
        """One page up or down."""
        self.step(step * max(1, self.height - 2))

    def move_to(self, end: int) -> None:
        """Move to the first (0) or last (-1) row."""
        self.step(len(self.shown_rows) if end else -len(self.shown_rows))

    def shift(self, step: int) -> None:
        """Sideways in a table is the next column to sort by."""
        self.sort(step)

    def click(self, row: int, column: int = 0) -> None:
        """Select the kernel in a row of the window."""
        del column
        place = self._top + row - 1
        if row >= 1 and place < len(self.shown_rows):
            self.select(self.shown_rows[place].index)

    # -- order and filter

    def sort(self, step: int) -> None:
        """Sort by the next or previous column that is shown."""
        positions = [COLUMN_POSITIONS[column.key] for column, _ in self.drawing.layout(self.width)]
        current = self.kernels.sort_position
        place = positions.index(current) if current in positions else 0
        position = positions[(place + step) % len(positions)]
        self._reorder(column=None if position == self.kernels.default_position else position, reverse=False)

    def sortable(self) -> dict[str, str]:
        """Return the titles of the columns that are shown, by key; not cut as those of a narrow table are."""
        titles = {column.key: column.title or column.key for column in COLUMNS}
        return {column.key: titles[column.key] for column, _ in self.drawing.layout(self.width)}

    @property
    def sorted_column(self) -> str:
        """The key of the column by which rows are in order."""
        return COLUMNS[self.kernels.sort_position].key

    @property
    def sorting(self) -> tuple[str, bool]:
        """The key of the column that was chosen to sort by, "" for none, and whether the order is reversed."""
        column = self.kernels.order.column
        return "" if column is None else COLUMNS[column].key, self.kernels.order.reverse

    def sort_by(self, key: str, *, reverse: bool | None = None) -> None:
        """Sort by a column, by none where there is none of that key; the same one again reverses the rows."""
        order, column = self.kernels.order, COLUMN_POSITIONS.get(key)
        if reverse is None:
            reverse = column == order.column and not order.reverse
        self._reorder(column=column, reverse=reverse)

    def reverse(self) -> None:
        """Reverse the order."""
        self._reorder(reverse=not self.kernels.order.reverse)

    def next_status(self) -> None:
        """Only kernels of the next status, in the end all again."""
        states = ("", *STATUSES)
        self._reorder(status=states[(states.index(self.kernels.order.status) + 1) % len(states)])

    @property
    def filter_text(self) -> str:
        """Text that shown kernels must contain."""
        return self.kernels.order.text

    def set_filter(self, text: str) -> None:
        """Only kernels whose name, status or reason contains ``text``."""
        self._reorder(text=text)

    def _reorder(self, **changes: Any) -> None:
        self.kernels.order = replace(self.kernels.order, **changes)
        self._arrange()

    # -- search

    def search(self, text: str) -> None:
        """Go to the first kernel from the selected one on that contains ``text``."""
        self.search_text = text
        if text or self.shown_rows:
            self._go_to_match(self.kernels.find_from_selected(text))

    def next_match(self, step: int) -> None:
        """Go to the next or previous kernel that contains the searched text, around the end."""
        if self.search_text:
            self._go_to_match(self.kernels.find_next(self.search_text, step))

    def _go_to_match(self, index: int | None) -> None:
        if index is not None:
            self.select(index)
            return
        self.view_host.notice(f"no kernel contains “{self.search_text}”")
        self.request_redraw()

    def clear_search(self) -> bool:
        """End the search; without one the filter; without both the choice of a status. False if there was none."""
        if self.search_text:
            self.search_text = ""
            self.request_redraw()
        elif self.kernels.order.text:
            self._unfilter(text="")
        elif self.kernels.order.status:
            self._unfilter(status="")
        else:
            return False
        return True

    def _unfilter(self, **changes: str) -> None:
        """Show more kernels; the one that was selected before the filter is selected again."""
        self.kernels.reselect_filtered_out()
        self._reorder(**changes)
        self.request_redraw()

    # -- names and export

    def text_to_copy(self) -> str:
        """The names of the selected kernel."""
        return "\n".join(map(printable, self.full_names()))

    def full_names(self) -> Sequence[str]:
        """Return the names of the selected kernel, one after the other; none without a selection."""
        return () if self.kernel is None else names_of(self.kernel)

    def line_exporter(self) -> Callable[[], Iterable[str]]:
        """The kernels that are shown, with all columns and whole names."""
        return partial(table_text, self.shown_rows)

    def export_writers(self) -> Mapping[str, Writer]:
        """Return the visible rows as text and as data, with the columns of the reports."""
        return {**super().export_writers(), **data_forms(self.shown_rows)}


def names_of(kernel: KernelNames) -> Sequence[str]:
    """Return its demangled name, and the mangled one if that is another."""
    return tuple(dict.fromkeys((kernel.demangled, kernel.name)))
