"""The columns of the kernel table on screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.render import units
from tui_probe.render.units import NOT_MEASURED
from tui_probe.ui.arrange import Column

if TYPE_CHECKING:
    from tui_probe.render.kernel_row import KernelRow

GLYPHS = {"probed": "✔", "skipped": "–", "failed": "✘", "filtered": "·", "pending": "◌"}
STATUSES = ("probed", "skipped", "failed", "filtered")


TIMED = ("slowdown", "time")
"""Columns that only a benchmark fills."""


def status_text(row: KernelRow) -> str:
    """The status as a glyph and a word."""
    return f"{GLYPHS.get(row.status, ' ')} {row.status}"


def _size(dim: tuple[int, int, int] | None, *, varies: bool) -> str:
    return units.extent(dim) + ("*" if varies else "")


def _change(before: int | None, after: int | None) -> str:
    """``18→24``; only ``18`` for a kernel that was not probed."""
    if after is None:
        return NOT_MEASURED if before is None else str(before)
    return f"{NOT_MEASURED if before is None else before}→{after}"


def _slowdown(row: KernelRow) -> str:
    return NOT_MEASURED if row.slowdown is None else f"{row.slowdown:.2f}×"


def _time(row: KernelRow) -> str:
    return NOT_MEASURED if row.time_ms is None else units.duration(row.time_ms / 1e3)


def _threads(dim: tuple[int, int, int] | None) -> int | None:
    return None if dim is None else dim[0] * dim[1] * dim[2]


COLUMNS: tuple[Column[KernelRow], ...] = (
    Column("index", "#", lambda r: str(r.index), lambda r: r.index, 0, 1, 6),
    Column("name", "kernel", lambda r: r.demangled, lambda r: r.demangled.lower(), 0, 32, 64,
           right=False, elastic=True),
    Column("status", "status", status_text, lambda r: r.status, 0, 10, 10, right=False),
    Column("launches", "launches", lambda r: units.count(r.launches), lambda r: r.launches, 1, 8, 13),
    Column("grid", "grid", lambda r: _size(r.grid, varies=r.grid_varies), lambda r: _threads(r.grid), 5, 5, 16),
    Column("block", "block", lambda r: _size(r.block, varies=r.block_varies), lambda r: _threads(r.block), 6, 5, 12),
    Column("registers", "registers", lambda r: _change(r.registers_pruned, r.registers_probed),
           lambda r: r.registers_probed or r.registers_pruned, 2, 9, 9),
    Column("spills", "spills", lambda r: _change(r.spills_pruned, r.spills_probed),
           lambda r: r.spills_probed, 7, 6, 11),
    Column("slowdown", "slowdown", _slowdown, lambda r: r.slowdown, 3, 8, 8),
    Column("time", "time", _time, lambda r: r.time_ms, 4, 7, 8),
    Column("probe_bytes", "probe mem", lambda r: units.size(r.probe_bytes), lambda r: r.probe_bytes, 8, 9, 9),
    Column("reason", "reason", lambda r: r.reason or "", lambda r: r.reason, 9, 24, 60, right=False, elastic=True),
)  # fmt: skip
