"""The kernels of a trace as columns: what became of each, and what probing costs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import wrap
from tui_probe.draw.table import Column, table
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.pages.covered import covered
from tui_probe.pages.failures import located_failures
from tui_probe.pages.launch_counts import probed_of
from tui_probe.pages.time_columns import TABLE_COLUMNS, TIME_COLUMNS, by_share, columns_for, time_notes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.trace.kernel_events import Way
    from tui_probe.trace.model import Kernel, Trace
    from tui_probe.trace.shapes import Dim3


FAILED: Final = "✘"
"""Marks a kernel with failures, beside its status."""


def shape(dim: Dim3 | None, *, varies: bool) -> str:
    """A grid or block; ``*`` if other launches differ."""
    return units.extent(dim) + ("*" if varies else "")


def change(before: int | None, after: int | None) -> str:
    """``18→24``; only ``18`` where there is nothing to compare with."""
    first = NOT_MEASURED if before is None else str(before)
    return first if after is None else f"{first}→{after}"


def times(ratio: float | None) -> str:
    return NOT_MEASURED if ratio is None else f"{ratio:.2f}×"


def milliseconds(value: float | None) -> str:
    return NOT_MEASURED if value is None else units.duration(value / 1e3)


def way_word(way: Way | None) -> str:
    """``PTX`` or ``graft``; a dash where there is no probe."""
    return {"ptx": "PTX", "graft": "graft", None: NOT_MEASURED}[way]


def probed_record(kernel: Kernel) -> dict[str, Any]:
    """A kernel as one of several probes had it, as data."""
    return {
        "probe": kernel.probe,
        "status": kernel.status,
        "registers_probed": kernel.registers_probed,
        "spills_probed": kernel.spills_probed,
        "slowdown": kernel.slowdown,
        "results": len(kernel.result_rows),
        "reason": kernel.reason,
        "reason_code": kernel.reason_code,
    }


def status_word(kernel: Kernel) -> str:
    """The status, marked where something went wrong with launches of the kernel."""
    return f"{kernel.status} {FAILED}" if kernel.failures else kernel.status


KERNEL_COLUMNS: Final[tuple[Column[Kernel], ...]] = (
    Column("index", lambda k: k.index, "#", lambda k: str(k.index)),
    Column("name", lambda k: k.name),
    Column("demangled", lambda k: k.demangled, "kernel", lambda k: k.demangled, False, 0, 24, shorten),
    Column("status", lambda k: k.status, "status", status_word, False),
    Column("way", lambda k: k.way, "way", lambda k: way_word(k.way), False, rank=4),
    Column("launches", lambda k: k.launches, "launches", lambda k: probed_of(k.launches, k.launches_probed), rank=1),
    Column("launches_probed", lambda k: k.launches_probed),
    *TABLE_COLUMNS,
    Column("grid", lambda k: k.grid, "grid", lambda k: shape(k.grid, varies=k.grid_varies), rank=4),
    Column("grid_varies", lambda k: k.grid_varies),
    Column("block", lambda k: k.block, "block", lambda k: shape(k.block, varies=k.block_varies), rank=4),
    Column("block_varies", lambda k: k.block_varies),
    Column("registers_pruned", lambda k: k.registers_pruned),
    Column("registers_probed", lambda k: k.registers_probed),
    Column("registers", None, "registers", lambda k: change(k.registers_pruned, k.registers_probed), rank=2),
    Column("spills_pruned", lambda k: k.spills_pruned),
    Column("spills_probed", lambda k: k.spills_probed),
    Column("spills", None, "spills", lambda k: change(k.spills_pruned, k.spills_probed), rank=6),
    Column("shared", lambda k: k.shared, "shared", lambda k: units.size(k.shared), rank=9),
    Column("blocks_per_sm", lambda k: k.blocks_per_sm),
    Column("blocks_per_sm_probed", lambda k: k.blocks_per_sm_probed),
    Column("blocks", None, "blocks/SM", lambda k: change(k.blocks_per_sm, k.blocks_per_sm_probed), rank=8),
    Column("slowdown", lambda k: k.slowdown, "slowdown", lambda k: times(k.slowdown), rank=3),
    Column("time_ms", lambda k: k.time_ms, "time", lambda k: milliseconds(k.time_ms), rank=5),
    Column("time_probed_ms", lambda k: k.time_probed_ms),
    Column("probe_bytes", lambda k: k.probe_bytes, "probe mem", lambda k: units.size(k.probe_bytes), rank=7),
    Column("results", lambda k: len(k.result_rows)),
    Column("reason", lambda k: k.reason, "reason", lambda k: k.reason or "", False, 10, 24),
    Column("reason_code", lambda k: k.reason_code),
    *TIME_COLUMNS,
    Column("failure", lambda k: "; ".join(located_failures(k)) or None),
    Column("probes", lambda k: [probed_record(one) for one in k.by_probe() if one.probe] or None, nested=True),
)
"""JSON and CSV have the fields of the report schema; grids and blocks are [x, y, z], times milliseconds.

``probes`` says what became of the kernel with each probe of a run with several, null where there was one; in JSON only.
"""


def kernel_columns(trace: Trace) -> list[Column[Kernel]]:
    """Those of a table of its kernels."""
    return columns_for(KERNEL_COLUMNS, trace.kernels)


def kernel_head(trace: Trace) -> dict[str, Any]:
    """How much was probed, as data; None where no kernel was launched."""
    part = covered(trace)
    return {"covered": None if part is None else part.record()}


def kernel_table(trace: Trace, width: int) -> Iterator[str]:
    """How much was probed, and the kernels as a table, those that take most of the GPU time first."""
    if (part := covered(trace)) is not None:
        yield from [*wrap(f"Probed kernels: {part.sentence}", width), ""]
    yield from table(kernel_columns(trace), by_share(trace.kernels), width)
    notes = time_notes(trace.kernels)
    yield from ["", *notes] if notes else []
