"""Columns of the kernel table: their widths, the order of rows, and the text of cells.

Where there is no room for all of them, columns leave in this order: probe memory, time, spills, block, grid, trend,
mode, p99, slowdown, registers, median, launches, limited by, share. Kernel, status and finding stay. What stays gets
shorter first: the status has its word and the share a long bar from 100 columns on, ``12 of 6 060`` becomes
``12/6.1k``, ``memory (L2) 83%`` becomes ``L2 83%``, and the finding its worst line only. A column without a value in
any row is left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Generic, TypeVar, cast

from tui_probe.draw.charts import column_chart, row_bar
from tui_probe.draw.spans import clip_clauses, pad, width
from tui_probe.draw.table import Column
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.probekit.lines import ShareValue
from tui_probe.probekit.record_counts import short_launch_count_text, status_word
from tui_probe.verdicts.kernel_columns import FAILURE_MARK, KERNEL_COLUMNS
from tui_probe.verdicts.kernel_snapshot import TREND_LAUNCHES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tui_probe.trace.launch_shape import Dim3
    from tui_probe.verdicts.kernel_snapshot import KernelSnapshot

Row = TypeVar("Row")
GAP = 2
"""Cells between two columns."""
GLYPHS = {"probed": "✔", "skipped": "–", "failed": "✘", "excluded": "·", "pending": "◌"}
STATUSES = ("probed", "skipped", "failed", "excluded")
BENCHMARK_KEYS = ("slowdown", "time_ms")
"""Columns that only a benchmark fills, unless launches were timed."""
SAMPLED_KEYS = ("share", "median", "p99", "trend")
"""Columns that sampled times of launches fill."""
UNREAD_TEXT = "…"
"""Cell of a value from the kernel's directory, until this has been read."""
BAR_CELLS = 6
"""Cells of the bar of a share."""
_LIMITER_CELLS = 10
"""Cells of the limiter in short."""
_LIMITER_FROM = 76
"""Columns of a table from which on the limiter has room next to the finding."""
_WORDS_FROM = 100
"""Columns of a table from which on a status has its word."""
_EMPTY_TEXTS = (NOT_MEASURED, "")
_MEMORY_LEVEL: Final = re.compile(r"memory \((.*)\)(.*)")
_REPORT_COLUMNS: Final = {column.key: column for column in cast("tuple[Column[KernelSnapshot], ...]", KERNEL_COLUMNS)}
"""Columns of the reports by key: a snapshot has the attributes of a kernel that they read."""
DATA_COLUMNS: tuple[Column[KernelSnapshot], ...] = tuple(
    replace(column, value=lambda row: row.results) if column.key == "results" else column
    for column in _REPORT_COLUMNS.values()
)
"""The columns of the reports for data. A row has the number of its result files, not the list."""


@dataclass(frozen=True)
class ScreenColumn(Generic[Row]):
    """A column of a table on screen.

    ``value`` is what the column sorts by, None if not measured (always last). It is at least ``min_cells`` cells wide,
    so that columns are still while rows change, and does not grow beyond ``max_cells``. A column that may be cut
    takes what the others leave, and so does one with a ``short`` form of its texts, for cells that the whole text does
    not fit.
    """

    column: Column[Row]
    value: Callable[[Row], object]
    min_cells: int
    max_cells: int
    short_text: Callable[[Row], str] | None = None

    @property
    def key(self) -> str:
        """The name of the column."""
        return self.column.key

    @property
    def title(self) -> str:
        """Heading of the column."""
        return self.column.title

    def cell(self, row: Row) -> str:
        """The text of a row."""
        return self.column.text(row) if self.column.text is not None else ""

    def fit_text(self, row: Row, cells: int) -> str:
        """The text of a row in exactly that many cells."""
        text = self.cell(row)
        if self.short_text is not None and width(text) > cells:
            text = self.short_text(row)
        if self.may_be_cut:
            text = self.column.shorten(text, cells)
        return pad(text, cells, right=self.column.right)

    @property
    def may_be_cut(self) -> bool:
        """True if its texts may be cut at any width."""
        return self.column.narrow is not None

    @property
    def is_flexible(self) -> bool:
        """True if it can be narrower than its contents."""
        return self.may_be_cut or self.short_text is not None

    def min_width(self, natural: int) -> int:
        """The cells that it needs, if its contents want ``natural`` cells."""
        title = width(self.title)
        want = max(title, min(natural, self.max_cells))
        return max(title, min(self.min_cells, want)) if self.is_flexible else max(self.min_cells, want)


def fit_columns(
    columns: Sequence[ScreenColumn[Row]], natural_widths: Mapping[str, int], short_widths: Mapping[str, int], cells: int
) -> list[tuple[ScreenColumn[Row], int]]:
    """Columns that fit in ``cells`` with their widths, in order.

    ``natural_widths`` are the widths that the contents of each column want, ``short_widths`` those of their short
    forms. Columns of the highest rank leave first, until the rest fits; those of rank 0 stay, and are cut if need be.
    Free cells go first to the finding, until its short form fits, then to columns whose whole texts fit instead of
    their short forms, then to what was cut.
    """
    sizes = {column.key: column.min_width(natural_widths.get(column.key, 0)) for column in columns}
    fitting = _without_last_ranks(columns, sizes, cells)
    free_cells = _free_cells(fitting, sizes, cells)
    for column, wanted_width in _width_wishes(fitting, natural_widths, short_widths):
        wish = max(0, min(wanted_width, column.max_cells) - sizes[column.key])
        grow = _growth(column, sizes[column.key], wish, free_cells)
        sizes[column.key] += grow
        free_cells -= grow
    return [(column, sizes[column.key]) for column in fitting]


def _free_cells(columns: Sequence[ScreenColumn[Row]], sizes: Mapping[str, int], cells: int) -> int:
    """Return the cells that columns of these sizes leave; negative if they do not fit."""
    return cells - sum(sizes[column.key] for column in columns) - GAP * (len(columns) - 1)


def _without_last_ranks(
    columns: Sequence[ScreenColumn[Row]], sizes: Mapping[str, int], cells: int
) -> list[ScreenColumn[Row]]:
    """Return the columns that fit, without those of the highest ranks; of one rank, the last column leaves first."""
    fitting = list(columns)
    while _free_cells(fitting, sizes, cells) < 0:
        _, dropped_column = max(enumerate(fitting), key=lambda item: (item[1].column.rank, item[0]))
        if dropped_column.column.rank == 0:
            break
        fitting.remove(dropped_column)
    return fitting


def _width_wishes(
    columns: Sequence[ScreenColumn[Row]], natural_widths: Mapping[str, int], short_widths: Mapping[str, int]
) -> list[tuple[ScreenColumn[Row], int]]:
    """Return columns that may grow and the widths that they want, in the order in which they get free cells.

    Of columns that may be cut the last one, the finding, has what it needs before names of kernels grow.
    """
    ranked = [column for _, column in sorted(enumerate(columns), key=lambda item: (item[1].column.rank, -item[0]))]
    cuttable_columns = [column for column in ranked if column.may_be_cut]
    abbreviated = [column for column in ranked if not column.may_be_cut and column.short_text is not None]
    wishes = [(column, short_widths.get(column.key, 0)) for column in cuttable_columns if column.short_text is not None]
    return wishes + [(column, natural_widths.get(column.key, 0)) for column in (*abbreviated, *cuttable_columns)]


def _growth(column: ScreenColumn[Row], size: int, wish: int, free_cells: int) -> int:
    """Return the cells by which a column grows; negative if it is cut since the columns do not fit.

    A column that is abbreviated needs all of its wish: a part would not show the whole text either.
    """
    if not column.may_be_cut:
        return wish if wish <= free_cells else 0
    return min(free_cells, wish) if free_cells >= 0 else max(free_cells, 1 - size)


def arranged_positions(
    rows: Sequence[Row], passes: Callable[[Row], bool] | None, value: Callable[[Row], object] | None, *, reverse: bool
) -> list[int]:
    """Positions of the rows to show, in order. Rows without a value come last in either direction; ties keep order."""
    positions = [i for i, row in enumerate(rows) if passes is None or passes(row)]
    if value is None:
        return positions[::-1] if reverse else positions
    values = {i: value(rows[i]) for i in positions}
    sorted_positions = [i for i in positions if values[i] is not None]
    sorted_positions.sort(key=lambda i: values[i], reverse=reverse)  # type: ignore[arg-type,return-value]
    return sorted_positions + [i for i in positions if values[i] is None]


def _status_word(row: KernelSnapshot) -> str:
    return status_word(row.status, row.launches, row.launches_probed, row.results)


def _status_glyph(row: KernelSnapshot) -> str:
    return FAILURE_MARK if row.failures else GLYPHS.get(_status_word(row), GLYPHS["pending"])


def status_text(row: KernelSnapshot) -> str:
    """The status as a glyph and a word."""
    return f"{_status_glyph(row)} {_status_word(row)}"


def _folder_column(key: str) -> Column[KernelSnapshot]:
    """Return the column of a value from the kernel's folder: unknown until that has been read."""
    column = _REPORT_COLUMNS[key]
    text_of_row = column.text

    def text(row: KernelSnapshot) -> str:
        return UNREAD_TEXT if not row.read or text_of_row is None else text_of_row(row)

    return replace(column, text=text)


def _volume(dim: Dim3 | None) -> int | None:
    return None if dim is None else dim[0] * dim[1] * dim[2]


def _short_share_text(row: KernelSnapshot) -> str:
    return NOT_MEASURED if row.share is None else f"{row_bar(row.share, BAR_CELLS)} {ShareValue(row.share).text:>4}"


def _share_text(row: KernelSnapshot) -> str:
    if row.time_share is None:
        return _short_share_text(row)
    text_of_row = _REPORT_COLUMNS["share"].text
    text = text_of_row(row) if text_of_row is not None else ""
    return f"{row_bar(row.time_share, BAR_CELLS)} {text:>11}"


def _trend_text(row: KernelSnapshot) -> str:
    """Newest right, as parts of the longest: constant values are flat."""
    return column_chart(row.trend, TREND_LAUNCHES, maximum=max(row.trend))[0] if row.trend else NOT_MEASURED


def _trend_rise(row: KernelSnapshot) -> float | None:
    """The last time over the mean of those before it; None where there is nothing to compare."""
    *earlier_times, last_time = row.trend or (0.0,)
    return last_time * len(earlier_times) / sum(earlier_times) if sum(earlier_times) > 0 else None


def _difference(pruned_value: int | None, probed_value: int | None) -> int | None:
    """Return the sort key of a column with two values; None if one was not measured."""
    return None if pruned_value is None or probed_value is None else probed_value - pruned_value


def _finding_text(row: KernelSnapshot) -> str:
    """Return the finding, else the reason why the kernel is not probed, or the engine's remark."""
    if row.shown_failure:
        return f"{FAILURE_MARK} {row.shown_failure}"
    return row.finding or row.reason or ""


def _short_limiter_text(row: KernelSnapshot) -> str:
    """``L2 83%`` of ``memory (L2) 83%``."""
    level = _MEMORY_LEVEL.fullmatch(row.limiter)
    return f"{level[1]}{level[2]}" if level else row.limiter


def _short_finding_text(row: KernelSnapshot) -> str:
    """Return the first finding in few words, if it is flagged."""
    return f"! {row.brief}" if row.brief and not row.shown_failure else _finding_text(row)


COLUMNS: tuple[ScreenColumn[KernelSnapshot], ...] = (
    ScreenColumn(replace(_REPORT_COLUMNS["index"], rank=0), lambda r: r.index, min_cells=1, max_cells=6),
    ScreenColumn(
        replace(_REPORT_COLUMNS["share"], rank=1, text=_share_text),
        lambda r: r.share,
        min_cells=BAR_CELLS + 5,
        max_cells=18,
        short_text=_short_share_text,
    ),
    ScreenColumn(
        replace(_REPORT_COLUMNS["demangled"], rank=0, narrow=16),
        lambda r: r.demangled.lower(),
        min_cells=16,
        max_cells=48,
    ),
    ScreenColumn(replace(_REPORT_COLUMNS["status"], text=status_text), lambda r: r.status, min_cells=10, max_cells=10),
    ScreenColumn(replace(_REPORT_COLUMNS["way"], rank=8), lambda r: r.mode, min_cells=5, max_cells=5),
    ScreenColumn(
        replace(_REPORT_COLUMNS["launches"], rank=3),
        lambda r: r.launches,
        min_cells=8,
        max_cells=18,
        short_text=lambda r: short_launch_count_text(r.launches, r.launches_probed),
    ),
    ScreenColumn(
        replace(_REPORT_COLUMNS["median"], rank=4),
        lambda r: r.gpu_time and r.gpu_time.preferred_variant.median_ns,
        min_cells=8,
        max_cells=8,
    ),
    ScreenColumn(
        replace(_REPORT_COLUMNS["p99"], rank=7),
        lambda r: r.gpu_time and r.gpu_time.preferred_variant.p99_ns,
        min_cells=8,
        max_cells=8,
    ),
    ScreenColumn(
        Column("trend", title="trend", text=_trend_text, rank=8),
        _trend_rise,
        min_cells=TREND_LAUNCHES,
        max_cells=TREND_LAUNCHES,
    ),
    ScreenColumn(
        replace(_folder_column("registers"), rank=5),
        lambda r: _difference(r.registers_pruned, r.registers_probed),
        min_cells=9,
        max_cells=9,
    ),
    ScreenColumn(
        replace(_folder_column("spills"), rank=11),
        lambda r: _difference(r.spills_pruned, r.spills_probed),
        min_cells=6,
        max_cells=11,
    ),
    ScreenColumn(replace(_REPORT_COLUMNS["grid"], rank=9), lambda r: _volume(r.grid), min_cells=5, max_cells=16),
    ScreenColumn(replace(_REPORT_COLUMNS["block"], rank=10), lambda r: _volume(r.block), min_cells=5, max_cells=12),
    ScreenColumn(replace(_REPORT_COLUMNS["slowdown"], rank=6), lambda r: r.slowdown, min_cells=8, max_cells=8),
    ScreenColumn(replace(_REPORT_COLUMNS["time_ms"], rank=12), lambda r: r.time_ms, min_cells=7, max_cells=8),
    ScreenColumn(replace(_REPORT_COLUMNS["probe_bytes"], rank=13), lambda r: r.probe_bytes, min_cells=9, max_cells=9),
    ScreenColumn(
        _REPORT_COLUMNS["limiter"],
        lambda r: r.limiter or None,
        min_cells=_LIMITER_CELLS,
        max_cells=20,
        short_text=_short_limiter_text,
    ),
    ScreenColumn(
        Column("finding", title="finding", text=_finding_text, right=False, rank=0, narrow=22, shorten=clip_clauses),
        lambda r: r.loss_order,
        min_cells=30,
        max_cells=160,
        short_text=_short_finding_text,
    ),
)
COLUMN_POSITIONS: Final = {column.key: place for place, column in enumerate(COLUMNS)}
SHARE_POSITION: Final = COLUMN_POSITIONS["share"]
FINDING_POSITION: Final = COLUMN_POSITIONS["finding"]


def filled_columns(rows: Sequence[KernelSnapshot]) -> frozenset[str]:
    """Return the keys of the columns that have a value in some row; the mode only if not all probes are in PTX.

    Takes a while for thousands of rows.
    """
    filled = {column.key for column in COLUMNS if any(column.cell(row).strip() not in _EMPTY_TEXTS for row in rows)}
    return frozenset(filled if any(row.mode == "graft" for row in rows) else filled - {"way"})


def columns_of(
    *,
    is_timed: bool,
    is_ranked: bool,
    cells: int,
    has_cycle_shares: bool = False,
    filled_keys: frozenset[str] | None = None,
) -> list[ScreenColumn[KernelSnapshot]]:
    """Return the columns of a table of ``cells`` cells.

    ``is_ranked``: rows have sampled times of launches. ``is_timed``: a benchmark timed them. ``has_cycle_shares``: rows
    have shares of cycles, where no launch was timed. ``filled_keys`` are the keys of columns with a value in some row;
    None: that is not known yet.
    """
    omitted = {"time_ms"} if is_ranked else set(SAMPLED_KEYS if is_timed else (*SAMPLED_KEYS, *BENCHMARK_KEYS))
    omitted -= {"share"} if has_cycle_shares else set()
    if filled_keys is not None:
        omitted |= {column.key for column in COLUMNS if column.key not in (*filled_keys, "index", "finding")}
    limiter_cells = _LIMITER_CELLS + GAP if filled_keys is not None and "limiter" in filled_keys else 0
    return [_column_for_width(cells, column, limiter_cells) for column in COLUMNS if column.key not in omitted]


def _column_for_width(
    cells: int, column: ScreenColumn[KernelSnapshot], limiter_cells: int
) -> ScreenColumn[KernelSnapshot]:
    if column.key == "share" and cells >= _WORDS_FROM:
        return replace(column, short_text=None)
    if column.key == "status" and cells < _WORDS_FROM:
        return replace(column, column=replace(column.column, title="st", text=_status_glyph), min_cells=2, max_cells=2)
    if column.key == "demangled":
        return replace(column, min_cells=column.min_cells + max(0, cells - 80) // 6)
    if column.key == "finding":
        reserved_cells = limiter_cells if _LIMITER_FROM <= cells < _WORDS_FROM else 0
        extra_cells = max(0, min(cells - 74, 6)) + max(0, cells - 80) // 4
        return replace(column, min_cells=column.min_cells + extra_cells - reserved_cells)
    return column
