"""The kernels of a trace as columns: what became of each, and what probing costs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import Column
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.pages.launch_counts import probed_of

if TYPE_CHECKING:
    from tui_probe.trace.event_types import Dim3
    from tui_probe.trace.model import Kernel


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


KERNEL_COLUMNS: Final[tuple[Column[Kernel], ...]] = (
    Column("index", lambda k: k.index, "#", lambda k: str(k.index)),
    Column("name", lambda k: k.name),
    Column("demangled", lambda k: k.demangled, "kernel", lambda k: k.demangled, False, 0, 24, shorten),
    Column("status", lambda k: k.status, "status", lambda k: k.status, False),
    Column("launches", lambda k: k.launches, "launches", lambda k: probed_of(k.launches, k.launches_probed), rank=1),
    Column("launches_probed", lambda k: k.launches_probed),
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
)
"""JSON and CSV have the fields of the report schema; grids and blocks are [x, y, z], times milliseconds."""
