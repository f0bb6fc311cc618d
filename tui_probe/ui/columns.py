"""The columns of the kernel table on screen: those of the reports, with what only a screen needs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from tui_probe.pages.kernel_report import KERNEL_COLUMNS
from tui_probe.ui.arrange import Shown

if TYPE_CHECKING:
    from tui_probe.draw.table import Column
    from tui_probe.pages.kernel_row import KernelRow
    from tui_probe.trace.event_types import Dim3

GLYPHS = {"probed": "✔", "skipped": "–", "failed": "✘", "excluded": "·", "pending": "◌"}
STATUSES = ("probed", "skipped", "failed", "excluded")
TIMED = ("slowdown", "time_ms")
"""Columns that only a benchmark fills."""
UNREAD = "…"


def status_text(row: KernelRow) -> str:
    """The status as a glyph and a word."""
    return f"{GLYPHS.get(row.status, ' ')} {row.status}"


def _column(key: str) -> Column[KernelRow]:
    """A column of the reports. A row has the attributes of a kernel that columns ask for, and stays as it is."""
    column = next(column for column in KERNEL_COLUMNS if column.key == key)
    return cast("Column[KernelRow]", column)


def _of_folder(key: str) -> Column[KernelRow]:
    """The same of what stands in the folder of a kernel: not known until that has been read."""
    column = _column(key)
    told = column.text

    def text(row: KernelRow) -> str:
        return UNREAD if not row.read or told is None else told(row)

    return replace(column, text=text)


def _extent(dim: Dim3 | None) -> int | None:
    return None if dim is None else dim[0] * dim[1] * dim[2]


COLUMNS: tuple[Shown[KernelRow], ...] = (
    Shown(_column("index"), lambda r: r.index, 1, 6),
    Shown(_column("demangled"), lambda r: r.demangled.lower(), 32, 64),
    Shown(replace(_column("status"), text=status_text), lambda r: r.status, 10, 10),
    Shown(_column("launches"), lambda r: r.launches, 8, 13),
    Shown(_column("grid"), lambda r: _extent(r.grid), 5, 16),
    Shown(_column("block"), lambda r: _extent(r.block), 5, 12),
    Shown(_of_folder("registers"), lambda r: r.registers_probed or r.registers_pruned, 9, 9),
    Shown(_of_folder("spills"), lambda r: r.spills_probed, 6, 11),
    Shown(_column("slowdown"), lambda r: r.slowdown, 8, 8),
    Shown(_column("time_ms"), lambda r: r.time_ms, 7, 8),
    Shown(_column("probe_bytes"), lambda r: r.probe_bytes, 9, 9),
    Shown(_column("reason"), lambda r: r.reason, 24, 60),
)

DATA_COLUMNS: tuple[Column[KernelRow], ...] = tuple(
    replace(column, value=lambda row: row.results) if column.key == "results" else column
    for column in cast("tuple[Column[KernelRow], ...]", KERNEL_COLUMNS)
)
"""The columns of the reports for data. A row has the number of its result files, not the list."""
