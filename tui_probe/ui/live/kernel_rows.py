"""Rows of the kernel table: their order, filter and export, and the kernel that stays selected while rows move.

The selection is a kernel, not a place: it stays on its kernel while rows arrive, move and are filtered. Until the user
has selected one, it is the first row where rows are ranked.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tui_probe.draw.csv_table import as_csv
from tui_probe.draw.spans import pad, width
from tui_probe.draw.table import as_json, as_markdown, as_record
from tui_probe.trace.kernel_status import ended_context
from tui_probe.ui.export import write_lines
from tui_probe.ui.live.kernel_columns import (
    COLUMNS,
    DATA_COLUMNS,
    FINDING_POSITION,
    GAP,
    SHARE_POSITION,
    arranged_positions,
    filled_columns,
    status_text,
)
from tui_probe.ui.views.view import contains
from tui_probe.verdicts.kernel_snapshot import GPU_TIME, LAUNCH_CYCLES, KernelSnapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tui_probe.ui.export import Writer

Rows = tuple[KernelSnapshot, ...]


@dataclass(frozen=True)
class RowOrder:
    """Sort column and filter of the table. Without a column kernels that ended the GPU context come first, then those
    with the largest share, or where no kernel has one, those with the first findings of the report.
    """

    column: int | None = None
    reverse: bool = False
    text: str = ""
    status: str = ""


@dataclass(frozen=True)
class ArrangedRows:
    """Rows to show, the place of each kernel's index among them, and the columns with a value in some row, if known."""

    shown_rows: Rows
    places: Mapping[int, int]
    filled_keys: frozenset[str] | None
    rows: Rows = ()
    """All rows, also those that the filter leaves out."""


class StandIn(NamedTuple):
    """Indices of a kernel that the filter hides, and of the one that is selected in its place."""

    hidden_index: int
    selected_index: int


def row_text(row: KernelSnapshot) -> str:
    """Return the text that search and filter match."""
    return f"{row.demangled} {row.name} {status_text(row)} {row.reason or ''}"


def arrange_rows(rows: Rows, order: RowOrder) -> ArrangedRows:
    """Filter and sort rows."""

    def passes(row: KernelSnapshot) -> bool:
        return (not order.status or row.status == order.status) and contains(row_text(row), order.text)

    is_unfiltered = not order.text and not order.status
    column = order.column
    ranks = column is None and any(row.share is not None for row in rows)
    if column is None and (ranks or any(row.first for row in rows)):
        column = SHARE_POSITION if ranks else FINDING_POSITION
    value = None if column is None else COLUMNS[column].value
    if is_unfiltered and value is None and not order.reverse:
        shown_rows = rows
    else:
        places = arranged_positions(rows, None if is_unfiltered else passes, value, reverse=order.reverse != ranks)
        shown_rows = tuple(rows[place] for place in places)
    if order.column is None and not order.reverse and any(row.failures for row in shown_rows):
        shown_rows = tuple(sorted(shown_rows, key=lambda row: not ended_context(row.failures)))
    return ArrangedRows(
        shown_rows, {row.index: place for place, row in enumerate(shown_rows)}, filled_columns(rows), rows
    )


def table_text(rows: Rows) -> Iterator[str]:
    """Yield the lines of the table with columns as wide as they need."""
    cells = [[column.title for column in COLUMNS], *([column.cell(row) for column in COLUMNS] for row in rows)]
    widths = [max(map(width, texts)) for texts in zip(*cells, strict=True)]
    for texts in cells:
        parts = (pad(t, w, right=c.column.right) for t, w, c in zip(texts, widths, COLUMNS, strict=True))
        yield (" " * GAP).join(parts).rstrip()


def data_forms(rows: Rows) -> Mapping[str, Writer]:
    """Return the writers of rows as data, with the columns of the reports."""
    lines = {"CSV": as_csv, "Markdown": as_markdown}
    writers = {form: partial(write_lines, partial(lines_of, DATA_COLUMNS, rows)) for form, lines_of in lines.items()}
    return {**writers, "JSON": partial(write_lines, partial(_json, rows))}


def _json(rows: Rows) -> Iterator[str]:
    return as_json({"page": "kernels"}, "kernels", (as_record(DATA_COLUMNS, row) for row in rows))


class ArrangedKernels:
    """All kernels, those that are shown in ``order``, and the ``selected`` one, None without any."""

    def __init__(self) -> None:
        self.all_rows: Rows = ()
        self.order = RowOrder()
        self.selected_index: int | None = None
        self.is_held = False
        """True once the user has selected a kernel: rows that arrive do not select another."""
        self.is_arranged = False
        """False while the first rows have not been put in order."""
        self.unread = 0
        """Rows whose directories have not been read."""
        self.share_of = ""
        """Name of the total by whose shares the rows are in order, "" without any."""
        self._arranged = ArrangedRows((), {}, None)
        self._stand_in: StandIn | None = None
        """Kernel that is selected in place of one that the filter hides; None if no filter changed the selection."""
        self._flagged: int | None = None
        """The kernel to which ``!`` went last."""

    # -- rows and their order

    def replace(self, rows: Rows) -> None:
        """Take new rows; those that are shown stay until the new ones are arranged."""
        self.all_rows = rows

    def take(self, arranged: ArrangedRows) -> None:
        """Show rows in a new order, and select another kernel if the selected one is not among them."""
        place_before = self.place
        self._arranged, self.share_of = arranged, _share_of(arranged.rows)
        self.is_arranged = bool(self.all_rows)
        self.unread = sum(not row.read for row in self.all_rows)
        if not self.shown_rows:
            return
        if (self.is_ranked or self.ranks_findings) and not self.is_held:
            self.selected_index = self.shown_rows[0].index
        elif self.selected_index not in arranged.places:
            self._select_stand_in(min(place_before, len(self.shown_rows) - 1))

    def _select_stand_in(self, place: int) -> None:
        """Select another kernel, since the one that was is not shown; when the filter ends it is selected again."""
        previous_index, index = self.selected_index, self.shown_rows[place].index
        if previous_index is not None and (self.order.text or self.order.status):
            self._stand_in = StandIn(previous_index if self._stand_in is None else self._stand_in.hidden_index, index)
        self.selected_index = index

    @property
    def shown_rows(self) -> Rows:
        """The rows that pass the filter, in order."""
        return self._arranged.shown_rows

    @property
    def filled_keys(self) -> frozenset[str] | None:
        """Columns with a value in some row, if known."""
        return self._arranged.filled_keys

    @property
    def is_ranked(self) -> bool:
        """True if kernels have shares to rank by."""
        return bool(self.share_of)

    @property
    def ranks_findings(self) -> bool:
        """True if rows are in the order of their first findings, where none has a share."""
        return not self.is_ranked and any(row.first is not None for row in self._arranged.rows)

    @property
    def sort_position(self) -> int:
        """The position of the column by which rows are in order."""
        return self.default_position if self.order.column is None else self.order.column

    @property
    def default_position(self) -> int:
        """The position of the column by which rows are in order unless the user chooses another."""
        if self.is_ranked:
            return SHARE_POSITION
        return FINDING_POSITION if self.ranks_findings else 0

    # -- the selected kernel

    @property
    def place(self) -> int:
        """The place of the selected kernel among the shown ones, 0 if it is not shown."""
        return 0 if self.selected_index is None else self._arranged.places.get(self.selected_index, 0)

    @property
    def kernel(self) -> KernelSnapshot | None:
        """The selected kernel, None if none is shown."""
        if self.selected_index is None or self.selected_index not in self._arranged.places:
            return None
        return self.shown_rows[self._arranged.places[self.selected_index]]

    def select(self, index: int) -> None:
        """Select a kernel for the user, by its index."""
        self.is_held, self._stand_in = True, None
        self.selected_index = index

    def prefer_probed(self) -> bool:
        """Select the first kernel that failed or was probed, if nothing ranks them. False if nothing changed."""
        preferred_row = next((row for row in self.shown_rows if row.failures or row.status == "probed"), None)
        if self.is_ranked or self.ranks_findings or self.is_held or preferred_row is None:
            return False
        self.selected_index = preferred_row.index
        return True

    def reselect_filtered_out(self) -> None:
        """Select the kernel again that a filter left out, unless the user has selected another since."""
        if self._stand_in is not None and self.selected_index == self._stand_in.selected_index:
            self.selected_index = self._stand_in.hidden_index
        self._stand_in = None

    def select_flagged(self) -> str:
        """Select the kernel of the report's first finding; if that is selected the next flagged one, after the last
        the first. Return its finding, "" if none is flagged.
        """
        flagged = sorted((row for row in self.shown_rows if row.stands_out), key=lambda row: row.loss_order)
        if not flagged:
            return ""
        place = next((place for place, row in enumerate(flagged) if row.index == self._flagged), -1)
        place = (place + 1) % len(flagged) if self._flagged == self.selected_index else 0
        self._flagged = flagged[place].index
        self.select(self._flagged)
        row = flagged[place]
        finding = f"! {row.brief}" if row.brief else row.finding
        return f"flagged kernel {place + 1} of {len(flagged)}: {finding}"

    def find_from_selected(self, text: str) -> int | None:
        """Return the index of the first kernel that contains ``text``, from the selected one on and around the end."""
        return self._find(text, range(self.place, self.place + len(self.shown_rows)))

    def find_next(self, text: str, step: int) -> int | None:
        """Return the index of the next or previous kernel that contains ``text``, around the end."""
        return self._find(text, (self.place + step * distance for distance in range(1, len(self.shown_rows) + 1)))

    def _find(self, text: str, places: Iterable[int]) -> int | None:
        rows = (self.shown_rows[place % len(self.shown_rows)] for place in places)
        return next((row.index for row in rows if contains(row_text(row), text)), None)


def _share_of(rows: Rows) -> str:
    if any(row.time_share is not None for row in rows):
        return GPU_TIME
    return LAUNCH_CYCLES if any(row.share is not None for row in rows) else ""
