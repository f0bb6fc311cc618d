"""The NVTX ranges of a trace and the kernels launched in them, without another profiler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tui_probe.analysis.range_tree import numbered_launches
from tui_probe.draw import units
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import Column, safe, table
from tui_probe.draw.units import NOT_MEASURED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.trace.model import Trace
    from tui_probe.trace.ranges import Range


class KernelInRange(NamedTuple):
    """A kernel by its index and demangled name, its launches in the range, and launches × its median time, if known."""

    kernel: int
    name: str
    launches: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class RangeRow:
    """A range. Of its ``kernels`` the most launched comes first."""

    range: Range
    depth: int
    kernels: tuple[KernelInRange, ...]
    probed: int
    seconds: float | None
    """From the range's call to that which ended it, on the host; None if it did not end."""
    start_s: float | None
    """Since the start of the process."""


def range_rows(trace: Trace) -> Iterator[RangeRow]:
    """All ranges that enclose launches, by their start."""
    numbers, kernel, probed = numbered_launches(trace)
    epoch = trace.state.epoch_ns
    for one in trace.ranges:
        parts = [slice(*np.searchsorted(numbers, (first, last + 1))) for first, last in one.runs]
        indices, counts = np.unique(np.concatenate([kernel[part] for part in parts]), return_counts=True)
        launched = sorted(zip(indices.tolist(), counts.tolist(), strict=True), key=lambda pair: -pair[1])
        yield RangeRow(
            one,
            trace.ranges.depth(one),
            tuple(_kernel(trace, index, count) for index, count in launched),
            sum(int(probed[part].sum()) for part in parts),
            None if one.end_ns is None else (one.end_ns - one.start_ns) / 1e9,
            None if epoch is None else (one.start_ns - epoch) / 1e9,
        )


def _kernel(trace: Trace, index: int, launches: int) -> KernelInRange:
    kernel = trace.kernels.get(index)
    if kernel is None:
        return KernelInRange(index, "?", launches, None)
    seconds = None if kernel.time_ms is None else launches * kernel.time_ms / 1e3
    return KernelInRange(index, kernel.demangled, launches, seconds)


def _kernels_text(row: RangeRow) -> str:
    words = [f"{each.launches}× #{each.kernel} {shorten(safe(each.name), 32)}" for each in row.kernels[:2]]
    more = len(row.kernels) - len(words)
    return ", ".join(words) + (f" and {units.counted(more, 'more kernel')}" if more else "")


def _kernels_data(row: RangeRow) -> list[dict[str, Any]]:
    times = [each.seconds for each in row.kernels]
    whole = None if None in times else sum(each for each in times if each is not None)
    return [
        {
            "kernel": each.kernel,
            "demangled": each.name,
            "launches": each.launches,
            "seconds": each.seconds,
            "share": each.seconds / whole if whole and each.seconds is not None else None,
        }
        for each in row.kernels
    ]


RANGE_COLUMNS: Final[tuple[Column[RangeRow], ...]] = (
    Column("id", lambda r: r.range.id),
    Column("parent", lambda r: r.range.parent),
    Column("text", lambda r: r.range.text, "range", lambda r: "  " * r.depth + r.range.text, False, narrow=16),
    Column("domain", lambda r: r.range.domain, "domain", lambda r: r.range.domain or "", False, rank=4),
    Column("thread", lambda r: r.range.thread, "thread", lambda r: str(r.range.thread or "all"), rank=5),
    Column("start_s", lambda r: r.start_s, "start (s)", lambda r: _seconds(r.start_s), rank=3),
    Column("seconds", lambda r: r.seconds, "host time", lambda r: units.duration(r.seconds), rank=1),
    Column("launches", lambda r: r.range.launches, "launches", lambda r: units.count(r.range.launches)),
    Column("probed", lambda r: r.probed, "probed", lambda r: units.count(r.probed), rank=2),
    Column("runs", lambda r: [list(run) for run in r.range.runs], nested=True),
    Column("kernels", _kernels_data, "kernels", _kernels_text, False, narrow=20, nested=True),
)
"""``runs`` are pairs of first and last launch; ``seconds`` is host time between the calls, not kernel time."""


def _seconds(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:.6f}"


def range_lines(trace: Trace, cells: int) -> Iterator[str]:
    """The page as text."""
    if not len(trace.ranges):
        yield "No NVTX range encloses a launch: push ranges in the program (torch.cuda.nvtx.range_push, nvtx.annotate)."
        return
    yield from table(RANGE_COLUMNS, list(range_rows(trace)), cells)
