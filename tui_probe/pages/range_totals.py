"""The kernels launched in one range of a trace and in its inner ranges: each once, with what its launches take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.analysis.range_tree import range_tree
from tui_probe.draw import units
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import Column
from tui_probe.pages.table_page import Only, TablePage, Words

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.analysis.range_tree import Launched, RangeNode
    from tui_probe.trace.model import Kernel, Trace

RangeKey = tuple[str, str | None, int | None, int, float | None]
"""Which range it is, while the trace grows: text, domain, thread, depth and start."""
ABOUT: Final = (
    "The kernels launched in the range and in its inner ranges, each once, the one that takes most time first. The time"
    " of a kernel is launches × its median, as it was timed anywhere in the run; the share is that of the time of all"
    " kernels of the range, – where one of them was not timed.",
    "Enter shows the launches of a kernel; q goes back to the ranges.",
)


@dataclass(frozen=True, slots=True)
class TotalLine:
    """A kernel in a range; ``kernel`` is None where the log does not name it, ``share`` where not all were timed."""

    launched: Launched
    kernel: Kernel | None
    share: float | None

    @property
    def name(self) -> str:
        return "kernels that the log does not name" if self.kernel is None else self.kernel.demangled

    @property
    def median_s(self) -> float | None:
        """Of one launch."""
        return None if self.launched.seconds is None else self.launched.seconds / self.launched.launches


def key_of(node: RangeNode) -> RangeKey:
    """By which it is found again."""
    return node.text, node.domain, node.thread, node.depth, node.start_s


def range_totals_page(trace: Trace, key: RangeKey, *, together: bool = False) -> TablePage[TotalLine]:
    """The kernels of a range of ``range_tree``; no rows where there is no such range."""
    nodes = (node for root in range_tree(trace, together=together) for node in root.walk())
    node = next((node for node in nodes if key_of(node) == key), None)
    rows = [] if node is None else _rows(trace, node)
    count = 0 if node is None else node.launches
    seen = f"{units.counted(len(rows), 'kernel')}, {units.counted(count, 'launch')}"

    def opens(line: TotalLine) -> tuple[Path, int] | None:
        return None if line.kernel is None else (trace.directory, line.kernel.index)

    words = Words([("range", key[0]), ("seen", seen)], about=ABOUT)
    only = Only("range", key[0])
    return TablePage("totals", "Kernels of a range", COLUMNS, rows, words, opens=opens, names=_names, only=only)


def _rows(trace: Trace, node: RangeNode) -> list[TotalLine]:
    whole = node.kernel_seconds
    rows = [
        TotalLine(each, trace.kernels.get(each.kernel), each.seconds / whole if whole and each.seconds else None)
        for each in node.everything
    ]
    return sorted(rows, key=lambda row: -(row.launched.seconds or 0.0))


def _names(line: TotalLine) -> tuple[str, ...]:
    return (line.name,)


COLUMNS: Final[tuple[Column[TotalLine], ...]] = (
    Column("share", lambda r: r.share, "share", lambda r: units.share(r.share)),
    Column("seconds", lambda r: r.launched.seconds, "total", lambda r: units.duration(r.launched.seconds)),
    Column("launches", lambda r: r.launched.launches, "launches", lambda r: units.count(r.launched.launches)),
    Column("probed", lambda r: r.launched.probed, "probed", lambda r: units.count(r.launched.probed), rank=2),
    Column("median_s", lambda r: r.median_s, "median", lambda r: units.duration(r.median_s), rank=1),
    Column("kernel", lambda r: r.launched.kernel if r.kernel else None, "#", lambda r: units.count(r.launched.kernel)),
    Column("demangled", lambda r: r.name, "kernel", lambda r: r.name, False, narrow=20, shorten=shorten),
)
