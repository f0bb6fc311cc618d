"""Rows of the kernel table: searched text, order and filter, and export as text and data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tui_probe.draw.csv_output import as_csv
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
from tui_probe.verdicts.kernel_snapshot import KernelSnapshot

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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

    shown: Rows
    places: Mapping[int, int]
    filled: frozenset[str] | None


def row_text(row: KernelSnapshot) -> str:
    """Return the text that search and filter match."""
    return f"{row.demangled} {row.name} {status_text(row)} {row.reason or ''}"


def arranged(rows: Rows, order: RowOrder) -> ArrangedRows:
    """Filter and sort rows."""

    def keep(row: KernelSnapshot) -> bool:
        return (not order.status or row.status == order.status) and contains(row_text(row), order.text)

    plain = not order.text and not order.status
    column = order.column
    ranks = column is None and any(row.share is not None for row in rows)
    if column is None and (ranks or any(row.first for row in rows)):
        column = SHARE_POSITION if ranks else FINDING_POSITION
    value = None if column is None else COLUMNS[column].value
    if plain and value is None and not order.reverse:
        shown = rows
    else:
        places = arranged_positions(rows, None if plain else keep, value, reverse=order.reverse != ranks)
        shown = tuple(rows[place] for place in places)
    if order.column is None and not order.reverse and any(row.failures for row in shown):
        shown = tuple(sorted(shown, key=lambda row: not ended_context(row.failures)))
    return ArrangedRows(shown, {row.index: place for place, row in enumerate(shown)}, filled_columns(rows))


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
