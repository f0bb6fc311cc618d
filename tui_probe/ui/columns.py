"""The columns of the kernel table on screen: those of the reports, with what only a screen needs.

Where there is no room for all of them, columns leave in this order: probe memory, time, spills, block, grid, trend,
way, p99, slowdown, registers, median, launches, finding, share. Number, kernel and status stay. What stays gets shorter
first: the share has a bar from 100 columns on, and ``12 of 6 060`` becomes ``12/6.1k``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from tui_probe.draw.sparkline import column_chart
from tui_probe.draw.table import Column
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.pages.kernel_report import FAILED, KERNEL_COLUMNS
from tui_probe.pages.kernel_row import TREND
from tui_probe.pages.launch_counts import probed_of_short
from tui_probe.ui.arrange import Shown

if TYPE_CHECKING:
    from tui_probe.pages.kernel_row import KernelRow
    from tui_probe.trace.shapes import Dim3

GLYPHS = {"probed": "✔", "skipped": "–", "failed": "✘", "excluded": "·", "pending": "◌"}
STATUSES = ("probed", "skipped", "failed", "excluded")
TIMED = ("slowdown", "time_ms")
"""Columns that only a benchmark fills, unless launches were timed."""
RANKED = ("share", "median", "p99", "trend")
"""Columns that sampled times of launches fill."""
UNREAD = "…"
BAR_CELLS = 6
_BARS_FROM = 100


def status_text(row: KernelRow) -> str:
    """The status as a glyph and a word."""
    return f"{FAILED if row.failures else GLYPHS.get(row.status, ' ')} {row.status}"


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


def bar(share: float, cells: int) -> str:
    """A part of 1 as a bar in ``cells`` cells, in halves; whatever is more than nothing has a half."""
    halves = max(1, round(2 * cells * min(share, 1.0))) if share > 0 else 0
    return ("█" * (halves // 2) + "▌" * (halves % 2)).ljust(cells)


def _short_share(row: KernelRow) -> str:
    return NOT_MEASURED if row.time_share is None else f"{row.time_share:.1%}"


def _share(row: KernelRow) -> str:
    told = _column("share").text
    text = told(row) if told is not None else ""
    return text if row.time_share is None else f"{bar(row.time_share, BAR_CELLS)} {text:>11}"


def _trend(row: KernelRow) -> str:
    """Newest right, as parts of the longest: whatever stays the same is flat."""
    return column_chart(row.trend, TREND, high=max(row.trend))[0] if row.trend else NOT_MEASURED


def _rise(row: KernelRow) -> float | None:
    """The last time over the mean of those before it; None where there is nothing to compare."""
    *before, last = row.trend or (0.0,)
    return last * len(before) / sum(before) if sum(before) > 0 else None


def _more(before: int | None, after: int | None) -> int | None:
    """What a column that shows both is sorted by: how much the probe adds."""
    return None if before is None or after is None else after - before


def _finding(row: KernelRow) -> str:
    """What was found, else why there is nothing: the reason why it is not probed, or what the engine remarks."""
    if row.failures:
        return f"{FAILED} {row.failures[0]}"
    return row.finding or row.reason or ""


def _ranked(column: Column[KernelRow], rank: int, **changes: Any) -> Column[KernelRow]:
    return replace(column, rank=rank, **changes)


COLUMNS: tuple[Shown[KernelRow], ...] = (
    Shown(_column("index"), lambda r: r.index, 1, 6),
    Shown(_ranked(_column("demangled"), 0, narrow=20), lambda r: r.demangled.lower(), 20, 48),
    Shown(replace(_column("status"), text=status_text), lambda r: r.status, 10, 10),
    Shown(_ranked(_column("way"), 8), lambda r: r.way, 5, 5),
    Shown(_ranked(_column("share"), 1, text=_share), lambda r: r.time_share, 6, 18, _short_share),
    Shown(
        _ranked(_column("launches"), 3),
        lambda r: r.launches, 8, 18, lambda r: probed_of_short(r.launches, r.launches_probed),
    ),
    Shown(_ranked(_column("median"), 4), lambda r: r.gpu_time and r.gpu_time.shown.median_ns, 8, 8),
    Shown(_ranked(_column("p99"), 7), lambda r: r.gpu_time and r.gpu_time.shown.p99_ns, 8, 8),
    Shown(Column("trend", None, "trend", _trend, True, 8), _rise, TREND, TREND),
    Shown(_ranked(_of_folder("registers"), 5), lambda r: _more(r.registers_pruned, r.registers_probed), 9, 9),
    Shown(_ranked(_of_folder("spills"), 11), lambda r: _more(r.spills_pruned, r.spills_probed), 6, 11),
    Shown(_ranked(_column("grid"), 9), lambda r: _extent(r.grid), 5, 16),
    Shown(_ranked(_column("block"), 10), lambda r: _extent(r.block), 5, 12),
    Shown(_ranked(_column("slowdown"), 6), lambda r: r.slowdown, 8, 8),
    Shown(_ranked(_column("time_ms"), 12), lambda r: r.time_ms, 7, 8),
    Shown(_ranked(_column("probe_bytes"), 13), lambda r: r.probe_bytes, 9, 9),
    Shown(
        Column("finding", None, "finding", _finding, False, 2, 22),
        lambda r: _finding(r).lstrip("! ").lower() or None, 22, 160,
    ),
)  # fmt: skip
PLACES: Final = {column.key: place for place, column in enumerate(COLUMNS)}
RANK: Final = PLACES["share"]


def columns_of(*, timed: bool, ranked: bool, cells: int, grafted: bool = False) -> list[Shown[KernelRow]]:
    """Those for rows of which some are ``ranked`` by times of launches, ``timed`` by a benchmark, or ``grafted``.

    A wide table has more room for what was found before it has more columns.
    """
    left_out = {*(() if ranked else RANKED), *(("time_ms",) if ranked else () if timed else TIMED)}
    left_out |= set() if grafted else {"way"}
    return [_in(cells, column) for column in COLUMNS if column.key not in left_out]


def _in(cells: int, column: Shown[KernelRow]) -> Shown[KernelRow]:
    if column.key == "share" and cells >= _BARS_FROM:
        return replace(column, short=None)
    if column.key == "finding":
        return replace(column, narrow=column.narrow + max(0, cells - 80) // 10 + max(0, cells - 120) // 4)
    return column


DATA_COLUMNS: tuple[Column[KernelRow], ...] = tuple(
    replace(column, value=lambda row: row.results) if column.key == "results" else column
    for column in cast("tuple[Column[KernelRow], ...]", KERNEL_COLUMNS)
)
"""The columns of the reports for data. A row has the number of its result files, not the list."""
