"""Table of kernels: keeps its selection while rows arrive, and draws only visible rows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

from tui_probe.draw import units
from tui_probe.draw.spans import Line, Span, width, wrap
from tui_probe.draw.table import safe
from tui_probe.draw.table_content import heading
from tui_probe.ui.live.kernel_columns import (
    BAR_CELLS,
    COLUMN_POSITIONS,
    COLUMNS,
    FINDING_POSITION,
    GAP,
    SHARE_POSITION,
    STATUSES,
    UNREAD,
    ScreenColumn,
    columns_of,
    fit_columns,
)
from tui_probe.ui.live.kernel_rows import RowOrder, Rows, arranged, data_forms, row_text, table_text
from tui_probe.ui.views.view import Desk, PaneView, contains, cursor_role, cursor_sign, mark
from tui_probe.verdicts.kernel_snapshot import GPU_TIME, LAUNCH_CYCLES, sorting_title

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tui_probe.ui.export import Writer
    from tui_probe.verdicts.kernel_snapshot import KernelSnapshot


class KernelNames(Protocol):
    """A kernel, or a row of one."""

    @property
    def name(self) -> str: ...
    @property
    def demangled(self) -> str: ...


class KernelTable(PaneView):
    """Rows of kernels under one line of titles. The selection is a kernel, not a place.

    ``selected_changed`` is called when another kernel is selected, or the selected one has new numbers.
    """

    kind = "table"

    def __init__(self, desk: Desk, name: str, selected_changed: Callable[[], None]) -> None:
        super().__init__(desk, name)
        self.selected_changed = selected_changed
        self.rows: Rows = ()
        self.shown: Rows = ()
        self.places: dict[int, int] = {}
        self.order = RowOrder()
        self.selected: int | None = None
        self.top = 0
        self.searched = ""
        self.empty = "reading the trace"
        self._arranged = False
        self._unread = 0
        self.timed = True
        self.ranked = False
        """True if kernels have shares to rank by."""
        self.simulated = False
        self.share_of = ""
        """Name of the total that shares are of, "" without any."""
        self._held = False
        self._led: tuple[int, int] | None = None
        """The kernel that was selected before a filter left it out, and the one that was selected for it."""
        self._flagged: int | None = None
        """The kernel to which ``!`` went last."""
        self._natural: dict[str, int] = {}
        self._short: dict[str, int] = {}
        self._filled: frozenset[str] | None = None
        """Columns with a value in some row, if known."""

    # -- what is shown

    def show(self, rows: Rows, *, timed: bool = True, simulated: bool = False) -> None:
        """Show these kernels, with columns for times if ``timed``; nothing happens if they are the ones shown."""
        self.simulated = simulated
        if rows is not self.rows or timed != self.timed:
            self.rows, self.timed = rows, timed
            self.share_of = _share_of(rows)
            self.ranked = bool(self.share_of)
            self._rearrange()

    def say_empty(self, words: str) -> None:
        """Set the text of an empty table."""
        before, self.empty = self.empty, words
        if words != before and not self.rows:
            self.changed()

    def _rearrange(self, order: RowOrder | None = None) -> None:
        self.order = order or self.order
        job = partial(arranged, self.rows, self.order)
        self.desk.tables.submit((self, "order"), job, self._take)

    def _take(self, result: tuple[Rows, dict[int, int], frozenset[str]]) -> None:
        at_end_before = self.place
        self.shown, self.places, self._filled = result
        self._arranged = bool(self.rows)
        self._unread = sum(not row.read for row in self.rows)
        if (self.ranked or self._ranks_findings) and not self._held and self.shown:
            self._select(self.shown[0].index)
        elif self.selected not in self.places and self.shown:
            self._select_near(min(at_end_before, len(self.shown) - 1))
        else:
            self._keep_in_sight()
            self.changed()
            self.selected_changed()  # its numbers may have changed

    def _select_near(self, place: int) -> None:
        """Select another kernel, since the one that was is not shown; when the filter ends it is selected again."""
        before, index = self.selected, self.shown[place].index
        if before is not None and (self.order.text or self.order.status):
            self._led = (before if self._led is None else self._led[0], index)
        self._select(index)

    @property
    def place(self) -> int:
        """The place of the selected kernel among the shown ones, 0 if it is not shown."""
        return 0 if self.selected is None else self.places.get(self.selected, 0)

    @property
    def kernel(self) -> KernelSnapshot | None:
        """The selected kernel, None if none is shown."""
        if self.selected is None or self.selected not in self.places:
            return None
        return self.shown[self.places[self.selected]]

    def select(self, index: int) -> None:
        """Select a kernel by its index, and stay there."""
        self._held, self._led = True, None
        self._select(index)

    def prefer_probed(self) -> None:
        """Select the first kernel that failed or was probed, if no times rank them."""
        probed = next((row for row in self.shown if row.failures or row.status == "probed"), None)
        if not self.ranked and not self._ranks_findings and not self._held and probed is not None:
            self._select(probed.index)

    def forget(self) -> None:
        """No kernel is selected: those of another process come."""
        self.selected, self._held = None, False

    def hold(self) -> None:
        """Someone is here: the selection stays on its kernel, also when another takes more time."""
        self._held = self._held or self.selected is not None

    @property
    def held(self) -> bool:
        """True once the user has selected a kernel."""
        return self._held

    def _select(self, index: int) -> None:
        self.selected = index
        self._keep_in_sight()
        self.changed()
        self.selected_changed()

    def step(self, step: int) -> None:
        """Select the kernel ``step`` places further."""
        if self.shown:
            place = max(0, min(self.place + step, len(self.shown) - 1))
            self.select(self.shown[place].index)

    def _keep_in_sight(self) -> None:
        height = max(1, self.height - 1)
        self.top = max(min(self.top, self.place), self.place - height + 1)
        self.top = max(0, min(self.top, len(self.shown) - height))

    def resize(self, width: int, height: int) -> None:
        """The selected row stays visible."""
        super().resize(width, height)
        self._keep_in_sight()

    @property
    def waits(self) -> bool:
        """True if there are kernels that have not been put in order yet."""
        return bool(self.rows) and not self._arranged

    def unread_in_sight(self) -> tuple[int, ...]:
        """The visible kernels whose folders have not been read."""
        window = self.shown[self.top : self.top + self.height - 1]
        return tuple(row.index for row in window if not row.read)

    # -- drawing

    def draw(self, width: int, height: int) -> list[Line]:
        """Titles, then the visible rows."""
        window = self.shown[self.top : self.top + height - 1]
        self._measure(window)
        layout = self._layout(width)
        lines = [self._titles(layout)]
        lines += [self._row(row, layout, width) for row in window]
        if not window:
            lines += [((f" {part}", "dim"),) for part in wrap(self._nothing(), width - 2)]
        return lines

    def _layout(self, width: int) -> list[tuple[ScreenColumn[KernelSnapshot], int]]:
        columns = columns_of(
            timed=self.timed,
            ranked=self.share_of == GPU_TIME,
            shared=self.ranked,
            cells=width,
            filled=self._filled,
        )
        return fit_columns(columns, self._natural, self._short, width - 2)

    @property
    def _sorted_by(self) -> int:
        """The place of the column by which rows are in order."""
        return self._default_column if self.order.column is None else self.order.column

    @property
    def _default_column(self) -> int:
        """The column by which rows are in order unless the user chooses another."""
        return SHARE_POSITION if self.ranked else FINDING_POSITION if self._ranks_findings else 0

    @property
    def _ranks_findings(self) -> bool:
        """True if rows are in the order of their first findings, where none has a share."""
        return not self.ranked and any(row.first is not None for row in self.rows)

    def _nothing(self) -> str:
        if not self.rows:
            return self.empty
        return "no kernel passes the filter: Esc shows all" if self._arranged else "reading the trace"

    def _measure(self, window: Rows) -> None:
        """Columns grow with what they showed, and never shrink: they be still while rows change."""
        for column in COLUMNS:
            widest = max((width(column.cell(row)) for row in window), default=0)
            self._natural[column.key] = max(self._natural.get(column.key, 0), widest)
            if column.short is not None:
                widest = max((width(column.short(row)) for row in window), default=0)
                self._short[column.key] = max(self._short.get(column.key, 0), widest)

    def _titles(self, layout: list[tuple[ScreenColumn[KernelSnapshot], int]]) -> Line:
        spans: list[Span] = [(" ", "")]
        for column, cells in layout:
            sorts = COLUMN_POSITIONS[column.key] == self._sorted_by and (self._sorted_by or self.order != RowOrder())
            largest_first = self._sorted_by == FINDING_POSITION or (self.ranked and self.order.column is None)
            falling = self.order.reverse != largest_first
            arrow = ("↓" if falling else "↑") if sorts else ""
            title = heading(column.title, cells, arrow, right=column.column.right)
            spans.append((title, "head+accent" if sorts else "head"))
        return tuple(spans)

    def _row(self, row: KernelSnapshot, layout: list[tuple[ScreenColumn[KernelSnapshot], int]], cells: int) -> Line:
        selected = row.index == self.selected
        spans: list[Span] = [(cursor_sign(self.focused) if selected else " ", "accent" if selected else "")]
        for column, size in layout:
            spans += self._cell(row, column, size)
            spans.append((" " * GAP, ""))
        line: Line = tuple(spans)
        if self.searched:
            line = mark(line, self.searched, "match")
        if not selected:
            return line
        ground = cursor_role(self.focused)
        used = sum(width(text) for text, _ in line)
        return (
            *((text, f"{role}+{ground}" if role else ground) for text, role in line),
            (" " * (cells - used), ground),
        )

    def _cell(self, row: KernelSnapshot, column: ScreenColumn[KernelSnapshot], size: int) -> list[Span]:
        text, role = column.fitted(row, size), self._role(row, column)
        if column.key == "share" and row.share is not None:
            return [(text[:BAR_CELLS], "ramp5"), (text[BAR_CELLS:], role)]
        return [(text, role)]

    @staticmethod
    def _role(row: KernelSnapshot, column: ScreenColumn[KernelSnapshot]) -> str:
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

    def status(self) -> list[str]:
        """Describe sort column and filter for the title bar."""
        order, parts = self.order, list[str]()
        if order.status:
            parts.append(f"only {order.status}")
        if order.text:
            parts.append(f"only “{order.text}”")
        if words := self._order_text():
            parts.append(words)
        if self._unread:
            parts.append(
                f"{units.count(len(self.rows) - self._unread)} of {units.counted(len(self.rows), 'kernel')} read"
            )
        if self.rows:
            parts.append(f"kernel {units.count(self.place + 1 if self.shown else 0)} of {units.count(len(self.shown))}")
        return parts

    def _order_text(self) -> str:
        """``by share of GPU time``, ``flagged first``, ``sorted by registers, reversed``."""
        default, reverse = self.order.column is None, ", reversed" if self.order.reverse else ""
        if default and self._sorted_by != 0:
            return sorting_title(self.share_of, simulated=self.simulated) + reverse
        title = COLUMNS[self._sorted_by].title
        return f"sorted by {title}{reverse}" if not default or reverse else ""

    # -- keys

    def move(self, step: int) -> None:
        """One row up or down."""
        self.step(step)

    def move_page(self, step: int) -> None:
        """One page up or down."""
        self.step(step * max(1, self.height - 2))

    def move_to(self, end: int) -> None:
        """Move to the first (0) or last (-1) row."""
        self.step(len(self.shown) if end else -len(self.shown))

    def shift(self, step: int) -> None:
        """Sideways in a table is the next column to sort by."""
        self.sort(step)

    def sort(self, step: int) -> None:
        """Sort by the next or previous column that is shown."""
        shown = [COLUMN_POSITIONS[column.key] for column, _ in self._layout(self.width)]
        place = shown.index(self._sorted_by) if self._sorted_by in shown else 0
        column = shown[(place + step) % len(shown)]
        self._change(column=None if column == self._default_column else column, reverse=False)

    def sortable(self) -> dict[str, str]:
        """Return the titles of the columns that are shown, by key."""
        return {column.key: column.title or column.key for column, _ in self._layout(self.width)}

    @property
    def sorted_column(self) -> str:
        """The key of the column by which rows are in order."""
        return COLUMNS[self._sorted_by].key

    @property
    def sorting(self) -> tuple[str, bool]:
        """The key of the column that was chosen to sort by, "" for none, and whether the order is reversed."""
        column = self.order.column
        return "" if column is None else COLUMNS[column].key, self.order.reverse

    def sort_by(self, key: str, *, reverse: bool | None = None) -> None:
        """Sort by a column, by none where there is none of that key; the same one again reverses the rows."""
        column = COLUMN_POSITIONS.get(key)
        if reverse is None:
            reverse = column == self.order.column and not self.order.reverse
        self._change(column=column, reverse=reverse)

    def reverse(self) -> None:
        """Reverse the order."""
        self._change(reverse=not self.order.reverse)

    def next_status(self) -> None:
        """Only kernels of the next status, in the end all again."""
        states = ("", *STATUSES)
        self._change(status=states[(states.index(self.order.status) + 1) % len(states)])

    @property
    def filter_text(self) -> str:
        """Text that shown kernels must contain."""
        return self.order.text

    def set_filter(self, text: str) -> None:
        """Only kernels whose name, status or reason contains ``text``."""
        self._change(text=text)

    def next_flagged(self) -> str:
        """Select the kernel of the report's first finding; if that is selected the next flagged one, after the last
        the first. Returns its finding, "" if none is flagged.
        """
        flagged = sorted((row for row in self.shown if row.stands_out), key=lambda row: row.loss_order)
        if not flagged:
            return ""
        place = next((place for place, row in enumerate(flagged) if row.index == self._flagged), -1)
        place = (place + 1) % len(flagged) if self._flagged == self.selected else 0
        self._flagged = flagged[place].index
        self.select(self._flagged)
        return f"flagged kernel {place + 1} of {len(flagged)}: {flagged[place].finding}"

    def _change(self, **changes: object) -> None:
        values = {**vars(self.order), **changes}
        self._rearrange(RowOrder(**values))

    def search(self, text: str) -> None:
        """Go to the first kernel from the selected one on that contains ``text``."""
        self.searched = text
        match = next((row for row in self.shown[self.place :] if contains(row_text(row), text)), None)
        if match:
            self.select(match.index)
        else:
            self.next_match(1)

    def next_match(self, step: int) -> None:
        """Go to the next or previous kernel that contains the searched text, around the end."""
        count = len(self.shown)
        if not self.searched:
            return
        for distance in range(1, count + 1):
            row = self.shown[(self.place + step * distance) % count]
            if contains(row_text(row), self.searched):
                self.select(row.index)
                return
        self.desk.notice(f"no kernel contains “{self.searched}”")
        self.changed()

    def copied(self) -> str:
        """The names of the selected kernel."""
        return "\n".join(map(safe, self.whole_names()))

    def whole_names(self) -> Sequence[str]:
        """Return the names of the selected kernel, one after the other; none without a selection."""
        return () if self.kernel is None else names_of(self.kernel)

    def exported(self) -> Callable[[], Iterable[str]]:
        """The kernels that are shown, with all columns and whole names."""
        shown = self.shown
        return lambda: table_text(shown)

    def clear_search(self) -> bool:
        """End the search; without one the filter; without both the choice of a status. False if there was none."""
        if self.searched:
            self.searched = ""
            self.changed()
        elif self.order.text:
            self._unfilter(text="")
        elif self.order.status:
            self._unfilter(status="")
        else:
            return False
        return True

    def _unfilter(self, **changes: str) -> None:
        """Show more kernels; the one that was selected before the filter is selected again."""
        if self._led is not None and self.selected == self._led[1]:
            self.selected = self._led[0]
        self._led = None
        self._change(**changes)
        self.changed()

    def forms(self) -> Mapping[str, Writer]:
        """Return the visible rows as text and as data, with the columns of the reports."""
        return {**super().forms(), **data_forms(self.shown)}

    def click(self, row: int, column: int = 0) -> None:
        """Select the kernel in a row of the window."""
        del column
        place = self.top + row - 1
        if row >= 1 and place < len(self.shown):
            self.select(self.shown[place].index)


def _share_of(rows: Rows) -> str:
    if any(row.time_share is not None for row in rows):
        return GPU_TIME
    return LAUNCH_CYCLES if any(row.share is not None for row in rows) else ""


def names_of(kernel: KernelNames) -> Sequence[str]:
    """Return its demangled name, and the mangled one if that is another."""
    return tuple(dict.fromkeys((kernel.demangled, kernel.name)))
