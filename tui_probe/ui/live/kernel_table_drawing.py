"""Drawing of the kernel table: titles and rows in columns that grow with what they showed, and never shrink."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.draw.spans import width
from tui_probe.draw.table_content import heading
from tui_probe.ui.live.arranged_kernels import RowOrder
from tui_probe.ui.live.kernel_columns import (
    BAR_CELLS,
    COLUMN_POSITIONS,
    COLUMNS,
    FINDING_POSITION,
    GAP,
    UNREAD,
    columns_of,
    fit_columns,
)
from tui_probe.ui.views.view import cursor_role, cursor_sign, mark
from tui_probe.verdicts.kernel_snapshot import GPU_TIME

if TYPE_CHECKING:
    from tui_probe.draw.spans import Line, Span
    from tui_probe.ui.live.arranged_kernels import ArrangedKernels, Rows
    from tui_probe.ui.live.kernel_columns import ScreenColumn
    from tui_probe.verdicts.kernel_snapshot import KernelSnapshot

    Layout = list[tuple[ScreenColumn[KernelSnapshot], int]]
    """The columns that are shown, each with its cells."""


class KernelTableDrawing:
    """Draws rows of kernels; ``has_times``: with columns for times."""

    def __init__(self, kernels: ArrangedKernels) -> None:
        self._kernels = kernels
        self.has_times = True
        self._natural: dict[str, int] = {}
        self._short: dict[str, int] = {}

    def lines(self, window: Rows, cells: int, *, searched: str, focused: bool) -> list[Line]:
        """Return the titles and these rows, ``cells`` wide."""
        self._measure(window)
        layout = self.layout(cells)
        return [self._titles(layout), *(self._row(row, layout, cells, searched, focused) for row in window)]

    def layout(self, cells: int) -> Layout:
        """Return the columns that fit in this many cells."""
        columns = columns_of(
            timed=self.has_times,
            ranked=self._kernels.share_of == GPU_TIME,
            shared=self._kernels.is_ranked,
            cells=cells,
            filled=self._kernels.filled,
        )
        return fit_columns(columns, self._natural, self._short, cells - 2)

    def _measure(self, window: Rows) -> None:
        """Widen columns to the contents of these rows: columns that shrank would move while rows change."""
        for column in COLUMNS:
            widest = max((width(column.cell(row)) for row in window), default=0)
            self._natural[column.key] = max(self._natural.get(column.key, 0), widest)
            if column.short is not None:
                widest = max((width(column.short(row)) for row in window), default=0)
                self._short[column.key] = max(self._short.get(column.key, 0), widest)

    def _titles(self, layout: Layout) -> Line:
        order, sorted_by = self._kernels.order, self._kernels.sort_position
        largest_first = sorted_by == FINDING_POSITION or (self._kernels.is_ranked and order.column is None)
        falls = order.reverse != largest_first
        spans: list[Span] = [(" ", "")]
        for column, cells in layout:
            sorts = COLUMN_POSITIONS[column.key] == sorted_by and (sorted_by or order != RowOrder())
            arrow = ("↓" if falls else "↑") if sorts else ""
            title = heading(column.title, cells, arrow, right=column.column.right)
            spans.append((title, "head+accent" if sorts else "head"))
        return tuple(spans)

    def _row(self, row: KernelSnapshot, layout: Layout, cells: int, searched: str, focused: bool) -> Line:
        is_selected = row.index == self._kernels.selected
        spans: list[Span] = [(cursor_sign(focused) if is_selected else " ", "accent" if is_selected else "")]
        for column, size in layout:
            spans += _cell(row, column, size)
            spans.append((" " * GAP, ""))
        line: Line = tuple(spans)
        if searched:
            line = mark(line, searched, "match")
        if not is_selected:
            return line
        ground = cursor_role(focused)
        used = sum(width(text) for text, _ in line)
        return (
            *((text, f"{role}+{ground}" if role else ground) for text, role in line),
            (" " * (cells - used), ground),
        )


def _cell(row: KernelSnapshot, column: ScreenColumn[KernelSnapshot], size: int) -> list[Span]:
    text, role = column.fitted(row, size), cell_role(row, column)
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
    return "dim" if column.cell(row) in ("–", UNREAD) or column.key == "index" else ""
