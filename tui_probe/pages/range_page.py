"""Page of NVTX ranges: nested ranges with their kernels, and the totals of one range."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import Column
from tui_probe.draw.table_content import PageTexts
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.pages.range_tree import KernelLaunches, RangeNode, range_tree
from tui_probe.pages.table_page import PagePart, TablePage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tui_probe.trace.model import Kernel, Trace


RANGES_EXPLANATION: Final = (
    "NVTX ranges of the program (torch.cuda.nvtx.range_push, nvtx.annotate). A range contains the kernels that its"
    " thread launched between the start and the end of the range. Ranges with explicit start and end include"
    " launches of all threads. A kernel is listed below its innermost range. Ranges without launches are not listed.",
    "Host time is the time from push to pop. Host time is not GPU time: a kernel that was launched in a range can"
    " run after the end of the range. “In kernels” is the time of the launches, computed as launches × median time"
    " of the kernel (needs --benchmark). Press o to merge ranges that have the same name in the same outer range,"
    " e.g. the iterations of a loop, into one row. In the merged row, mean and p99 are kernel times per range; the"
    " share is relative to the time of all launches in the trace.",
    "Press Enter on a range to see the kernels of the range and of its inner ranges, each kernel once. Press Enter on"
    " a kernel to open the kernel.",
)
NO_RANGES_TEXT: Final = (
    "No NVTX range contains a launch. Add ranges to the program (torch.cuda.nvtx.range_push, nvtx.annotate)."
)
_MAX_DEPTH: Final = 16
_NAME_WIDTH: Final = 60
_TEXT_COLUMN: Final[Column[RangeLine]] = Column(
    "text", lambda r: r.text.strip(), "range and kernels", lambda r: r.text, right=False, narrow=24
)
_DOMAIN_COLUMN: Final[Column[RangeLine]] = Column(
    "domain",
    lambda r: r.node.domain,
    "domain",
    lambda r: "" if r.launches_of_kernel else r.node.domain or "",
    right=False,
    rank=4,
)
_THREAD_COLUMN: Final[Column[RangeLine]] = Column(
    "thread",
    lambda r: r.node.thread,
    "thread",
    lambda r: "" if r.launches_of_kernel else str(r.node.thread or "all"),
    rank=5,
)
_LAUNCHES_COLUMN: Final[Column[RangeLine]] = Column(
    "launches", lambda r: r.launches, "launches", lambda r: units.count(r.launches)
)
_PROBED_COLUMN: Final[Column[RangeLine]] = Column(
    "probed", lambda r: r.probed_launches, "probed", lambda r: units.count(r.probed_launches), rank=2
)
_KERNEL_TIME_COLUMN: Final[Column[RangeLine]] = Column(
    "kernel_seconds", lambda r: r.kernel_seconds, "in kernels", lambda r: units.duration(r.kernel_seconds)
)
_HOST_TIME_COLUMN: Final[Column[RangeLine]] = Column(
    "seconds", lambda r: r.seconds, "host time", lambda r: "" if r.launches_of_kernel else units.duration(r.seconds)
)
_SHARE_COLUMN: Final[Column[RangeLine]] = Column(
    "share", lambda r: r.share, "share", lambda r: units.share(r.share), rank=1
)
RangeKey = tuple[str, str | None, int | None, int, float | None]
"""Identity of a range while the trace grows: text, domain, thread, depth and start."""
TOTALS_EXPLANATION: Final = (
    "The kernels launched in the range and in its inner ranges, each kernel once, sorted by time. The time of a"
    " kernel is the number of launches × the median launch time over the whole run. The share is relative to the"
    " time of all kernels of the range; “–” means that at least one of these kernels was not timed.",
    "Press Enter to see the launches of a kernel, and q to go back to the ranges.",
)
TOTALS_COLUMNS: Final[tuple[Column[KernelTotal], ...]] = (
    Column("share", lambda r: r.share, "share", lambda r: units.share(r.share)),
    Column("seconds", lambda r: r.launches.seconds, "total", lambda r: units.duration(r.launches.seconds)),
    Column("launches", lambda r: r.launches.launches, "launches", lambda r: units.count(r.launches.launches)),
    Column(
        "probed", lambda r: r.launches.probed_count, "probed", lambda r: units.count(r.launches.probed_count), rank=2
    ),
    Column("median_s", lambda r: r.median_s, "median", lambda r: units.duration(r.median_s), rank=1),
    Column("kernel", lambda r: r.launches.kernel if r.kernel else None, "#", lambda r: units.count(r.launches.kernel)),
    Column("demangled", lambda r: r.name, "kernel", lambda r: r.name, right=False, narrow=20, shorten=shorten),
)


@dataclass(frozen=True, slots=True)
class RangeLine:
    """A range, or below it one of the kernels launched in it (``kernel``, None where the log does not name it)."""

    node: RangeNode
    launches_of_kernel: KernelLaunches | None = None
    kernel: Kernel | None = None
    total_seconds: float | None = None
    """Seconds of all launches of the trace, for the share of the row; None if some launches were not timed."""

    @property
    def text(self) -> str:
        node = self.node
        if self.launches_of_kernel is None:
            times = f" × {units.count(node.range_count)}" if node.range_count > 1 else ""
            return "  " * min(node.depth, _MAX_DEPTH) + node.text + times
        name = "kernels that the log does not name"
        if self.kernel is not None:
            name = f"#{self.launches_of_kernel.kernel} {shorten(self.kernel.demangled, _NAME_WIDTH)}"
        return "  " * min(node.depth + 1, _MAX_DEPTH) + name

    @property
    def launches(self) -> int:
        return self.node.launches if self.launches_of_kernel is None else self.launches_of_kernel.launches

    @property
    def probed_launches(self) -> int:
        return self.node.probed_count if self.launches_of_kernel is None else self.launches_of_kernel.probed_count

    @property
    def seconds(self) -> float | None:
        """Host time of a range."""
        return self.node.seconds if self.launches_of_kernel is None else None

    @property
    def kernel_seconds(self) -> float | None:
        return self.node.kernel_seconds if self.launches_of_kernel is None else self.launches_of_kernel.seconds

    @property
    def mean_seconds(self) -> float | None:
        """Time of the launches in one of the ranges that are merged."""
        return self.node.mean_seconds if self.launches_of_kernel is None and self.node.range_count > 1 else None

    @property
    def p99(self) -> float | None:
        return self.node.p99_seconds if self.launches_of_kernel is None else None

    @property
    def share(self) -> float | None:
        time = self.kernel_seconds
        return time / self.total_seconds if time is not None and self.total_seconds else None

    @property
    def start_s(self) -> float | None:
        return self.node.start_s if self.launches_of_kernel is None else None


def range_page(trace: Trace, *, merged_by_name: bool = False) -> TablePage[RangeLine]:
    """Return all ranges that enclose launches, and the kernels in them; data has those as a field of their range."""
    roots = range_tree(trace, merge_runs=merged_by_name)
    total = _total_seconds(trace)
    rows = [line for root in roots for node in root.walk() for line in _range_lines(trace, node, total)]
    count = sum(line.node.range_count for line in rows if line.launches_of_kernel is None)
    launches = sum(root.launches for root in roots)
    merge_text = "merged by name, " if merged_by_name else ""
    summary = [f"{units.counted(count, 'range')}, {merge_text}with {units.counted(launches, 'launch')}"] if rows else []
    notes = [] if rows else [NO_RANGES_TEXT]
    columns = MERGED_RANGE_COLUMNS if merged_by_name else _range_columns(trace)

    def kernel_target(line: RangeLine) -> tuple[Path, int] | None:
        return _kernel_target(trace, line)

    return TablePage(
        "ranges",
        "NVTX ranges",
        [column if _has_values(rows, column) else replace(column, text=None) for column in columns],
        rows,
        PageTexts((), summary, notes, RANGES_EXPLANATION),
        data_rows=None if merged_by_name else _ranges_by_start(trace, rows),
        kernel_of_row=kernel_target if rows else None,
        names_of_row=_range_names,
    )


def _ranges_by_start(trace: Trace, rows: list[RangeLine]) -> list[RangeLine]:
    """Return the rows of ranges in the order of the trace; the table has those of other threads behind inner ones."""
    lines = {
        line.node.range.id: line for line in rows if line.node.range is not None and line.launches_of_kernel is None
    }
    return [lines[nvtx_range.id] for nvtx_range in trace.ranges if nvtx_range.id in lines]


def _range_names(line: RangeLine) -> tuple[str, ...]:
    """Return the range, and of a kernel in it that."""
    return (line.node.text, *([] if line.kernel is None else [line.kernel.demangled]))


def _range_lines(trace: Trace, node: RangeNode, total: float | None) -> Iterator[RangeLine]:
    yield RangeLine(node, total_seconds=total)
    for launches in node.direct_launches:
        yield RangeLine(node, launches, trace.kernels.get(launches.kernel), total)


def _total_seconds(trace: Trace) -> float | None:
    """Time of all launches, launches × median of each kernel; None where one was not timed."""
    times = [(kernel.launches, kernel.time_ms) for kernel in trace.kernels if kernel.launches]
    return (
        None
        if any(milliseconds is None for _, milliseconds in times)
        else sum(count * (time or 0.0) for count, time in times) / 1e3
    )


def _kernel_target(trace: Trace, line: RangeLine) -> tuple[Path, int] | None:
    """Return the kernel of a row; None for that of a range, which has several."""
    return None if line.kernel is None else (trace.directory, line.kernel.index)


def _has_values(rows: list[RangeLine], column: Column[RangeLine]) -> bool:
    """Return whether a column that may be empty has a value."""
    if column.text is None or column.key not in ("domain", "thread", "kernel_seconds", "mean_s", "p99_s", "share"):
        return True
    values = {None if column.value is None else column.value(row) for row in rows}
    return len(values) > 1 if column.key == "thread" else bool(values - {None})


def _row_kind(line: RangeLine) -> str:
    return "range" if line.launches_of_kernel is None else "kernel"


def _kernel_records(trace: Trace, node: RangeNode) -> list[dict[str, Any]]:
    """Return the kernels launched in a range and in its inner ones, as data."""
    total = node.kernel_seconds
    return [
        {
            "kernel": launches.kernel,
            "demangled": "?" if (kernel := trace.kernels.get(launches.kernel)) is None else kernel.demangled,
            "launches": launches.launches,
            "seconds": launches.seconds,
            "share": launches.seconds / total if total and launches.seconds is not None else None,
        }
        for launches in node.all_launches
    ]


_START_COLUMN: Final[Column[RangeLine]] = Column(
    "start_s",
    lambda r: r.start_s,
    "start (s)",
    lambda r: "" if r.launches_of_kernel else _start_text(r.start_s),
    rank=3,
)

MERGED_RANGE_COLUMNS: Final[tuple[Column[RangeLine], ...]] = (
    Column("kind", _row_kind),
    _TEXT_COLUMN,
    Column("depth", lambda r: r.node.depth),
    Column("times", lambda r: r.node.range_count),
    Column("kernel", lambda r: None if r.launches_of_kernel is None else r.launches_of_kernel.kernel),
    _DOMAIN_COLUMN,
    _THREAD_COLUMN,
    _LAUNCHES_COLUMN,
    _PROBED_COLUMN,
    _KERNEL_TIME_COLUMN,
    _HOST_TIME_COLUMN,
    _START_COLUMN,
    Column(
        "mean_s",
        lambda r: r.mean_seconds,
        "mean",
        lambda r: "" if r.launches_of_kernel else units.duration(r.mean_seconds),
        rank=2,
    ),
    Column("p99_s", lambda r: r.p99, "p99", lambda r: "" if r.launches_of_kernel else units.duration(r.p99), rank=2),
    _SHARE_COLUMN,
)
"""``seconds`` is host time between the calls, not kernel time; ``start_s`` is since the start of the process."""


def _range_columns(trace: Trace) -> tuple[Column[RangeLine], ...]:
    """Return the columns of single ranges, in the order of their data; ``runs`` are pairs of first and last launch."""
    return (
        Column("id", lambda r: r.node.range and r.node.range.id),
        Column("parent", lambda r: r.node.range and r.node.range.parent),
        replace(_TEXT_COLUMN, value=_name_as_recorded),
        _DOMAIN_COLUMN,
        _THREAD_COLUMN,
        _START_COLUMN,
        _HOST_TIME_COLUMN,
        _LAUNCHES_COLUMN,
        _PROBED_COLUMN,
        Column("runs", lambda r: r.node.range and [list(run) for run in r.node.range.runs], nested=True),
        Column("kernels", lambda r: _kernel_records(trace, r.node), nested=True),
        replace(_KERNEL_TIME_COLUMN, data=False),
        replace(_SHARE_COLUMN, data=False),
    )


def _name_as_recorded(line: RangeLine) -> str:
    return line.node.text if line.launches_of_kernel is None else line.text.strip()


def _start_text(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:.6f}"


@dataclass(frozen=True, slots=True)
class KernelTotal:
    """A kernel in a range; ``kernel`` is None where the log does not name it, ``share`` where not all were timed."""

    launches: KernelLaunches
    kernel: Kernel | None
    share: float | None

    @property
    def name(self) -> str:
        return "kernels that the log does not name" if self.kernel is None else self.kernel.demangled

    @property
    def median_s(self) -> float | None:
        """Time per launch in seconds; None if unknown."""
        return None if self.launches.seconds is None else self.launches.seconds / self.launches.launches


def range_key(node: RangeNode) -> RangeKey:
    """Return the key by which a range is found again."""
    return node.text, node.domain, node.thread, node.depth, node.start_s


def range_totals_page(trace: Trace, key: RangeKey, *, merged_by_name: bool = False) -> TablePage[KernelTotal]:
    """Return the kernels of a range of ``range_tree``; no rows where there is no such range."""
    nodes = (node for root in range_tree(trace, merge_runs=merged_by_name) for node in root.walk())
    node = next((node for node in nodes if range_key(node) == key), None)
    rows = [] if node is None else _total_rows(trace, node)
    count = 0 if node is None else node.launches
    totals_text = f"{units.counted(len(rows), 'kernel')}, {units.counted(count, 'launch')}"

    def kernel_target(line: KernelTotal) -> tuple[Path, int] | None:
        return None if line.kernel is None else (trace.directory, line.kernel.index)

    texts = PageTexts([("range", key[0]), ("seen", totals_text)], about=TOTALS_EXPLANATION)
    part = PagePart("range", key[0])
    return TablePage(
        "totals",
        "Kernels of a range",
        TOTALS_COLUMNS,
        rows,
        texts,
        kernel_of_row=kernel_target,
        names_of_row=_kernel_names,
        part=part,
    )


def _total_rows(trace: Trace, node: RangeNode) -> list[KernelTotal]:
    total = node.kernel_seconds
    rows = [
        KernelTotal(
            launches,
            trace.kernels.get(launches.kernel),
            launches.seconds / total if total and launches.seconds else None,
        )
        for launches in node.all_launches
    ]
    return sorted(rows, key=lambda row: -(row.launches.seconds or 0.0))


def _kernel_names(line: KernelTotal) -> tuple[str, ...]:
    return (line.name,)
