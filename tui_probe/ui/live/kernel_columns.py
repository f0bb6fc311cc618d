"""Columns of the kernel table: their widths, the order of rows, and the text of cells.

Where there is no room for all of them, columns leave in this order: probe memory, time, spills, block, grid, trend,
way, p99, slowdown, registers, median, launches, finding, share. Number, kernel and status stay. What stays gets
shorter first: the share has a bar from 100 columns on, and ``12 of 6 060`` becomes ``12/6.1k``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from tui_probe.draw.bar_chart import column_chart
from tui_probe.draw.spans import pad, width
from tui_probe.draw.table import Column
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.probekit.record_counts import short_launch_count_text
from tui_probe.verdicts.kernel_columns import FAILURE_MARK, KERNEL_COLUMNS
from tui_probe.verdicts.kernel_snapshot import TREND_LAUNCHES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tui_probe.trace.launch_shape import Dim3
    from tui_probe.verdicts.kernel_snapshot import KernelSnapshot

Row = TypeVar("Row")
GAP = 2


@dataclass(frozen=True)
class ScreenColumn(Generic[Row]):
    """A column of a table on screen.

    ``value`` is what the column sorts by, None if not measured (always last). It is at least ``narrow`` cells wide, so
    that columns stand still while rows change, and does not grow beyond ``wide``. A column that may be cut takes what
    the others leave, and so does one with a ``short`` form of its texts, for cells that the whole text does not fit.
    """

    column: Column[Row]
    value: Callable[[Row], object]
    narrow: int
    wide: int
    short: Callable[[Row], str] | None = None

    @property
    def key(self) -> str:
        """The name of the column."""
        return self.column.key

    @property
    def title(self) -> str:
        """Its heading."""
        return self.column.title

    def cell(self, row: Row) -> str:
        """The text of a row."""
        return self.column.text(row) if self.column.text is not None else ""

    def fitted(self, row: Row, cells: int) -> str:
        """The text of a row in exactly so many cells."""
        text = self.cell(row)
        if self.short is not None and width(text) > cells:
            text = self.short(row)
        if self.column.narrow is not None:
            text = self.column.shorten(text, cells)
        return pad(text, cells, right=self.column.right)

    @property
    def flexible(self) -> bool:
        """Can it do with less than its contents want?"""
        return self.column.narrow is not None or self.short is not None

    def least(self, natural: int) -> int:
        """The cells that it needs, if its contents want ``natural`` cells."""
        title = width(self.title)
        want = max(title, min(natural, self.wide))
        return max(title, min(self.narrow, want)) if self.flexible else max(self.narrow, want)


def fit_columns(
    columns: Sequence[ScreenColumn[Row]], natural: Mapping[str, int], cells: int
) -> list[tuple[ScreenColumn[Row], int]]:
    """Columns that fit in ``cells`` with their widths, in order.

    ``natural`` is the width that the contents of each column want. Columns of the highest rank leave first, until the
    rest fits; those of rank 0 stay, and are cut if need be. What is left goes to short forms first, if it is enough for
    the whole texts, then to what was cut.
    """
    fitting = list(columns)
    sizes = {shown.key: shown.least(natural.get(shown.key, 0)) for shown in fitting}
    while sum(sizes[shown.key] + GAP for shown in fitting) - GAP > cells:
        last = max(enumerate(fitting), key=lambda item: (item[1].column.rank, item[0]))[1]
        if last.column.rank == 0:
            break
        fitting.remove(last)
    left = cells - sum(sizes[shown.key] for shown in fitting) - GAP * (len(fitting) - 1)
    for shown in sorted(fitting, key=lambda shown: (shown.short is None, shown.column.rank)):
        wish = min(natural.get(shown.key, 0), shown.wide) - sizes[shown.key]
        if shown.short is not None and 0 < wish <= left:
            sizes[shown.key] += wish
            left -= wish
        elif shown.column.narrow is not None:
            grow = max(left, 1 - sizes[shown.key]) if left < 0 else min(left, max(0, wish))
            sizes[shown.key] += grow
            left -= grow
    return [(shown, sizes[shown.key]) for shown in fitting]


def arranged_positions(
    rows: Sequence[Row], keep: Callable[[Row], bool] | None, value: Callable[[Row], object] | None, *, reverse: bool
) -> list[int]:
    """Positions of the rows to show, in order. Rows without a value come last in either direction; ties keep order."""
    shown = [i for i, row in enumerate(rows) if keep is None or keep(row)]
    if value is None:
        return shown[::-1] if reverse else shown
    values = {i: value(rows[i]) for i in shown}
    known = [i for i in shown if values[i] is not None]
    known.sort(key=lambda i: values[i], reverse=reverse)  # type: ignore[arg-type,return-value]
    return known + [i for i in shown if values[i] is None]


GLYPHS = {"probed": "✔", "skipped": "–", "failed": "✘", "excluded": "·", "pending": "◌"}
STATUSES = ("probed", "skipped", "failed", "excluded")
TIMED = ("slowdown", "time_ms")
"""Columns that only a benchmark fills, unless launches were timed."""
SAMPLED = ("share", "median", "p99", "trend")
"""Columns that sampled times of launches fill."""
UNREAD = "…"
BAR_CELLS = 6
_BARS_FROM = 100


def status_text(row: KernelSnapshot) -> str:
    """The status as a glyph and a word."""
    return f"{FAILURE_MARK if row.failures else GLYPHS.get(row.status, ' ')} {row.status}"


def _column(key: str) -> Column[KernelSnapshot]:
    """A column of the reports. A row has the attributes of a kernel that columns ask for, and stays as it is."""
    column = next(column for column in KERNEL_COLUMNS if column.key == key)
    return cast("Column[KernelSnapshot]", column)


def _of_folder(key: str) -> Column[KernelSnapshot]:
    """The same of what stands in the folder of a kernel: not known until that has been read."""
    column = _column(key)
    text_of_row = column.text

    def text(row: KernelSnapshot) -> str:
        return UNREAD if not row.read or text_of_row is None else text_of_row(row)

    return replace(column, text=text)


def _extent(dim: Dim3 | None) -> int | None:
    return None if dim is None else dim[0] * dim[1] * dim[2]


def bar(share: float, cells: int) -> str:
    """A part of 1 as a bar in ``cells`` cells, in halves; whatever is more than nothing has a half."""
    halves = max(1, round(2 * cells * min(share, 1.0))) if share > 0 else 0
    return ("█" * (halves // 2) + "▌" * (halves % 2)).ljust(cells)


def _short_share(row: KernelSnapshot) -> str:
    return NOT_MEASURED if row.time_share is None else f"{row.time_share:.1%}"


def _share(row: KernelSnapshot) -> str:
    text_of_row = _column("share").text
    text = text_of_row(row) if text_of_row is not None else ""
    return text if row.time_share is None else f"{bar(row.time_share, BAR_CELLS)} {text:>11}"


def _trend(row: KernelSnapshot) -> str:
    """Newest right, as parts of the longest: whatever stays the same is flat."""
    return column_chart(row.trend, TREND_LAUNCHES, high=max(row.trend))[0] if row.trend else NOT_MEASURED


def _trend_rise(row: KernelSnapshot) -> float | None:
    """The last time over the mean of those before it; None where there is nothing to compare."""
    *before, last = row.trend or (0.0,)
    return last * len(before) / sum(before) if sum(before) > 0 else None


def _added(before: int | None, after: int | None) -> int | None:
    """Return the sort key of a column with two values: what the probe adds."""
    return None if before is None or after is None else after - before


def _finding(row: KernelSnapshot) -> str:
    """Return the finding, else the reason why the kernel is not probed, or the engine's remark."""
    if row.failures:
        return f"{FAILURE_MARK} {row.failures[0]}"
    return row.finding or row.reason or ""


def _ranked(column: Column[KernelSnapshot], rank: int, **changes: Any) -> Column[KernelSnapshot]:
    return replace(column, rank=rank, **changes)


COLUMNS: tuple[ScreenColumn[KernelSnapshot], ...] = (
    ScreenColumn(_column("index"), lambda r: r.index, 1, 6),
    ScreenColumn(_ranked(_column("demangled"), 0, narrow=20), lambda r: r.demangled.lower(), 20, 48),
    ScreenColumn(replace(_column("status"), text=status_text), lambda r: r.status, 10, 10),
    ScreenColumn(_ranked(_column("way"), 8), lambda r: r.way, 5, 5),
    ScreenColumn(_ranked(_column("share"), 1, text=_share), lambda r: r.time_share, 6, 18, _short_share),
    ScreenColumn(
        _ranked(_column("launches"), 3),
        lambda r: r.launches, 8, 18, lambda r: short_launch_count_text(r.launches, r.launches_probed),
    ),
    ScreenColumn(_ranked(_column("median"), 4), lambda r: r.gpu_time and r.gpu_time.shown.median_ns, 8, 8),
    ScreenColumn(_ranked(_column("p99"), 7), lambda r: r.gpu_time and r.gpu_time.shown.p99_ns, 8, 8),
    ScreenColumn(Column("trend", None, "trend", _trend, True, 8), _trend_rise, TREND_LAUNCHES, TREND_LAUNCHES),
    ScreenColumn(_ranked(_of_folder("registers"), 5), lambda r: _added(r.registers_pruned, r.registers_probed), 9, 9),
    ScreenColumn(_ranked(_of_folder("spills"), 11), lambda r: _added(r.spills_pruned, r.spills_probed), 6, 11),
    ScreenColumn(_ranked(_column("grid"), 9), lambda r: _extent(r.grid), 5, 16),
    ScreenColumn(_ranked(_column("block"), 10), lambda r: _extent(r.block), 5, 12),
    ScreenColumn(_ranked(_column("slowdown"), 6), lambda r: r.slowdown, 8, 8),
    ScreenColumn(_ranked(_column("time_ms"), 12), lambda r: r.time_ms, 7, 8),
    ScreenColumn(_ranked(_column("probe_bytes"), 13), lambda r: r.probe_bytes, 9, 9),
    ScreenColumn(
        Column("finding", None, "finding", _finding, False, 2, 22),
        lambda r: _finding(r).lstrip("! ").lower() or None, 22, 160,
    ),
)  # fmt: skip
COLUMN_POSITIONS: Final = {column.key: place for place, column in enumerate(COLUMNS)}
SHARE_POSITION: Final = COLUMN_POSITIONS["share"]


def columns_of(*, timed: bool, ranked: bool, cells: int, grafted: bool = False) -> list[ScreenColumn[KernelSnapshot]]:
    """Return the columns of rows of which some are ``ranked`` by launch times, ``timed`` by a benchmark or ``grafted``.

    A wide table has more room for what was found before it has more columns.
    """
    left_out = {*(() if ranked else SAMPLED), *(("time_ms",) if ranked else () if timed else TIMED)}
    left_out |= set() if grafted else {"way"}
    return [_for_width(cells, column) for column in COLUMNS if column.key not in left_out]


def _for_width(cells: int, column: ScreenColumn[KernelSnapshot]) -> ScreenColumn[KernelSnapshot]:
    if column.key == "share" and cells >= _BARS_FROM:
        return replace(column, short=None)
    if column.key == "finding":
        return replace(column, narrow=column.narrow + max(0, cells - 80) // 10 + max(0, cells - 120) // 4)
    return column


DATA_COLUMNS: tuple[Column[KernelSnapshot], ...] = tuple(
    replace(column, value=lambda row: row.results) if column.key == "results" else column
    for column in cast("tuple[Column[KernelSnapshot], ...]", KERNEL_COLUMNS)
)
"""The columns of the reports for data. A row has the number of its result files, not the list."""
