"""NVTX ranges of a trace on the screen: nested, each with the kernels that were launched in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tui_probe.analysis.range_tree import Launched, RangeNode, range_tree
from tui_probe.draw import units
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import Column
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.pages.table_page import TablePage, Words

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tui_probe.trace.model import Kernel, Trace

ABOUT: Final = (
    "Ranges that the program pushes (torch.cuda.nvtx.range_push, nvtx.annotate), with the kernels launched in them on"
    " the same thread; ranges with a start and an end take the launches of all threads. Below each range are the"
    " kernels launched in it, but in none of its inner ranges. A range that launched nothing has no row.",
    "Host time runs from push to pop: the time that the host needs to launch, not the time that the GPU needs to run."
    " “In kernels” is the time of the launches themselves: launches × median of the kernel, with --benchmark. o merges"
    " ranges of one name within the same outer range, so that a loop is one row; mean and p99 are then the time in"
    " kernels of one range, and the share is that of the time of all launches of the trace.",
    "Enter on a range shows its kernels, those of its inner ranges too, each once; Enter on a kernel goes to its"
    " screen.",
)
NONE: Final = "No NVTX range encloses a launch: push ranges in the program (torch.cuda.nvtx.range_push, nvtx.annotate)."
_DEEPEST: Final = 16
_NAME: Final = 60


@dataclass(frozen=True, slots=True)
class RangeLine:
    """A range, or below it one of the kernels launched in it (``kernel``, None where the log does not name it)."""

    node: RangeNode
    launched: Launched | None = None
    kernel: Kernel | None = None
    whole: float | None = None
    """Time of all launches of the trace, of which the row has a share; None where not all were timed."""

    @property
    def text(self) -> str:
        node = self.node
        if self.launched is None:
            times = f" × {units.count(node.times)}" if node.times > 1 else ""
            return "  " * min(node.depth, _DEEPEST) + node.text + times
        name = "kernels that the log does not name"
        if self.kernel is not None:
            name = f"#{self.launched.kernel} {shorten(self.kernel.demangled, _NAME)}"
        return "  " * min(node.depth + 1, _DEEPEST) + name

    @property
    def launches(self) -> int:
        return self.node.launches if self.launched is None else self.launched.launches

    @property
    def probed(self) -> int:
        return self.node.probed if self.launched is None else self.launched.probed

    @property
    def seconds(self) -> float | None:
        """Host time of a range."""
        return self.node.seconds if self.launched is None else None

    @property
    def kernel_seconds(self) -> float | None:
        return self.node.kernel_seconds if self.launched is None else self.launched.seconds

    @property
    def mean(self) -> float | None:
        """Time of the launches in one of the ranges that are merged."""
        return self.node.mean if self.launched is None and self.node.times > 1 else None

    @property
    def p99(self) -> float | None:
        return self.node.p99 if self.launched is None else None

    @property
    def share(self) -> float | None:
        time = self.kernel_seconds
        return time / self.whole if time is not None and self.whole else None

    @property
    def start_s(self) -> float | None:
        return self.node.start_s if self.launched is None else None


def range_page(trace: Trace, *, together: bool = False) -> TablePage[RangeLine]:
    """All ranges that enclose launches, and the kernels in them."""
    roots = range_tree(trace, together=together)
    whole = _whole(trace)
    rows = [line for root in roots for node in root.walk() for line in _lines(trace, node, whole)]
    count = sum(line.node.times for line in rows if line.launched is None)
    inside = sum(root.launches for root in roots)
    how = "merged by name, " if together else ""
    found = [f"{units.counted(count, 'range')}, {how}{units.counted(inside, 'launch')} in them"] if rows else []
    notes = [] if rows else [NONE]
    columns = [column if _has(rows, column) else replace(column, text=None) for column in COLUMNS]

    def opens(line: RangeLine) -> tuple[Path, int] | None:
        return _place(trace, line)

    return TablePage(
        "ranges",
        "NVTX ranges",
        columns,
        rows,
        Words((), found, notes, ABOUT),
        opens=opens if rows else None,
        names=_names,
    )


def range_sum_lines(trace: Trace, width: int) -> Iterator[str]:
    """Ranges merged by name, as text."""
    return range_page(trace, together=True).text(width)


def range_sum_rows(trace: Trace) -> Iterator[RangeLine]:
    return iter(range_page(trace, together=True).rows)


def _names(line: RangeLine) -> tuple[str, ...]:
    """The range, and of a kernel in it that."""
    return (line.node.text, *([] if line.kernel is None else [line.kernel.demangled]))


def _lines(trace: Trace, node: RangeNode, whole: float | None) -> Iterator[RangeLine]:
    yield RangeLine(node, whole=whole)
    for launched in node.own:
        yield RangeLine(node, launched, trace.kernels.get(launched.kernel), whole)


def _whole(trace: Trace) -> float | None:
    """Time of all launches, launches × median of each kernel; None where one was not timed."""
    times = [(kernel.launches, kernel.time_ms) for kernel in trace.kernels if kernel.launches]
    return None if any(time is None for _, time in times) else sum(count * (time or 0.0) for count, time in times) / 1e3


def _place(trace: Trace, line: RangeLine) -> tuple[Path, int] | None:
    """The kernel of a row; None for that of a range, which has several."""
    return None if line.kernel is None else (trace.directory, line.kernel.index)


def _has(rows: list[RangeLine], column: Column[RangeLine]) -> bool:
    """Whether a column that may be empty holds anything."""
    if column.key not in ("domain", "thread", "kernel_seconds", "mean_s", "p99_s", "share"):
        return True
    values = {None if column.value is None else column.value(row) for row in rows}
    return len(values) > 1 if column.key == "thread" else bool(values - {None})


def _role(line: RangeLine) -> str:
    return "range" if line.launched is None else "kernel"


COLUMNS: Final[tuple[Column[RangeLine], ...]] = (
    Column("kind", _role),
    Column("text", lambda r: r.text.strip(), "range and kernels", lambda r: r.text, False, narrow=24),
    Column("depth", lambda r: r.node.depth),
    Column("times", lambda r: r.node.times),
    Column("kernel", lambda r: None if r.launched is None else r.launched.kernel),
    Column(
        "domain", lambda r: r.node.domain, "domain", lambda r: "" if r.launched else r.node.domain or "", False, rank=4
    ),
    Column(
        "thread", lambda r: r.node.thread, "thread", lambda r: "" if r.launched else str(r.node.thread or "all"), rank=5
    ),
    Column("launches", lambda r: r.launches, "launches", lambda r: units.count(r.launches)),
    Column("probed", lambda r: r.probed, "probed", lambda r: units.count(r.probed), rank=2),
    Column("kernel_seconds", lambda r: r.kernel_seconds, "in kernels", lambda r: units.duration(r.kernel_seconds)),
    Column("seconds", lambda r: r.seconds, "host time", lambda r: "" if r.launched else units.duration(r.seconds)),
    Column("start_s", lambda r: r.start_s, "start (s)", lambda r: "" if r.launched else _start(r.start_s), rank=3),
    Column("mean_s", lambda r: r.mean, "mean", lambda r: "" if r.launched else units.duration(r.mean), rank=2),
    Column("p99_s", lambda r: r.p99, "p99", lambda r: "" if r.launched else units.duration(r.p99), rank=2),
    Column("share", lambda r: r.share, "share", lambda r: units.share(r.share), rank=1),
)
"""``seconds`` is host time between the calls, not kernel time; ``start_s`` is since the start of the process."""


def _start(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:.6f}"
