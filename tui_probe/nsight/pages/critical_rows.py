"""Rows and columns of the page about critical kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.shorten import cut_middle, shorten
from tui_probe.draw.table import Column
from tui_probe.nsight.analysis.critical import bound_of, data_type, operations_per_byte
from tui_probe.nsight.analysis.kernel_figures import KernelFigures, counts_that_differ
from tui_probe.nsight.analysis.sectors import Tensor, verdict_of
from tui_probe.nsight.pages.figures import decimal, mean_count, percent, stem

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class CriticalRow:
    """A kernel of a program, as one tool saw it; ``other`` is the same kernel as the other tool saw it."""

    program: str
    figures: KernelFigures
    is_critical: bool
    tensor: Tensor | None
    other: KernelFigures | None = None

    @property
    def type_name(self) -> str | None:
        found = data_type(self.figures)
        return None if found is None else found.name

    @property
    def type_evidence(self) -> str | None:
        found = data_type(self.figures)
        return None if found is None else found.evidence

    @property
    def differences(self) -> list[str] | None:
        """In what the two tools differ; None where there is nothing to compare."""
        if self.other is None:
            return None
        counts = counts_that_differ(self.figures, self.other)
        types = [None if kind is None else kind.name for kind in map(data_type, (self.figures, self.other))]
        tensor = [self.figures.uses_tensor_cores, self.other.uses_tensor_cores]
        known: dict[str, list[Any]] = {"type": types, "tensor cores": tensor}
        compared = {name: pair[0] != pair[1] for name, pair in known.items() if None not in pair}
        if counts is None and not compared:
            return None
        return [
            *(name.replace("_", " ") for name in counts or ()),
            *(name for name, unlike in compared.items() if unlike),
        ]


def columns_of(rows: Sequence[CriticalRow], *, several: bool) -> list[Column[CriticalRow]]:
    """The columns, in tables without those that hold nothing; of several programs each row names its own."""
    values = {column.key: column.value for column in CRITICAL_COLUMNS if column.value is not None}
    columns = []
    for column in CRITICAL_COLUMNS:
        value = values.get(_MAY_LACK.get(column.key, ""))
        if value is not None and rows and all(value(row) in (None, "") for row in rows):
            column = replace(column, text=None)
        if column.key == "program":
            column = replace(column, rank=0) if several else replace(column, text=None)
        columns.append(column)
    return columns


def _compared(row: CriticalRow) -> str:
    """What the other tool says of the same kernel."""
    differences = row.differences
    if differences is None or row.other is None:
        return ""
    return f"≠ {row.other.tool}: {', '.join(differences)}" if differences else f"= {row.other.tool}"


def _rate(row: CriticalRow) -> str:
    return units.NOT_MEASURED if row.figures.dram_rate is None else f"{units.size(row.figures.dram_rate)}/s"


def _intensity(row: CriticalRow) -> str:
    value = operations_per_byte(row.figures)
    return units.NOT_MEASURED if value is None else f"{value:.1f}"


_MAY_LACK: Final = {
    **{
        name: name
        for name in ("verdict", "compute", "memory", "bound", "issued", "dram_bytes_per_second", "operations_per_byte")
    },
    "compared": "differences",
}
"""Columns that are left out of tables in which they would be empty, and whose values tell that."""


def _tensor_text(row: CriticalRow) -> str:
    if row.figures.tensor_operations is not None:
        return f"{mean_count(row.figures.tensor_operations)} ops"
    return percent(row.figures.tensor_activity)


CRITICAL_COLUMNS: Final[tuple[Column[CriticalRow], ...]] = (
    Column("critical", lambda r: r.is_critical, "", lambda r: "▶" if r.is_critical else ""),
    Column(
        "program", lambda r: r.program, "program", lambda r: stem(r.program), False, rank=4, narrow=12,
        shorten=cut_middle,
    ),
    Column(
        "kernel", lambda r: r.figures.shape.kernel, "kernel", lambda r: r.figures.shape.kernel, False,
        narrow=22, shorten=shorten,
    ),
    Column("tool", lambda r: r.figures.tool),
    Column("grid", lambda r: r.figures.shape.grid, "grid", lambda r: units.extent(r.figures.shape.grid), rank=5),
    Column("block", lambda r: r.figures.shape.block, "block", lambda r: units.extent(r.figures.shape.block), rank=5),
    Column("launches", lambda r: r.figures.launches, "launches", lambda r: units.count(r.figures.launches), rank=3),
    Column("tensor_activity", lambda r: r.figures.tensor_activity),
    Column("tensor_operations", lambda r: r.figures.tensor_operations),
    Column("tensor", title="tensor", text=_tensor_text),
    Column(
        "store_sectors", lambda r: r.figures.store_sectors, "stored", lambda r: mean_count(r.figures.store_sectors),
        rank=2,
    ),
    Column(
        "verdict", lambda r: verdict_of(r.figures.store_sectors, r.tensor), "expected",
        lambda r: verdict_of(r.figures.store_sectors, r.tensor) or "", False, rank=2,
    ),
    Column("share_of_time", lambda r: r.figures.share, "share", lambda r: units.share(r.figures.share)),
    Column("type", lambda r: r.type_name, "type", lambda r: r.type_name or units.NOT_MEASURED, False, rank=1),
    Column("type_evidence", lambda r: r.type_evidence),
    Column("compute", lambda r: r.figures.compute, "compute", lambda r: percent(r.figures.compute), rank=3),
    Column("memory", lambda r: r.figures.memory, "memory", lambda r: percent(r.figures.memory), rank=3),
    Column(
        "bound", lambda r: bound_of(r.figures), "bound", lambda r: bound_of(r.figures) or units.NOT_MEASURED, False,
        rank=1,
    ),
    Column("issued", lambda r: r.figures.issued, "inst/cycle", lambda r: decimal(r.figures.issued), rank=4),
    Column("dram_bytes_per_second", lambda r: r.figures.dram_rate, "DRAM", _rate, rank=4),
    Column("operations_per_byte", lambda r: operations_per_byte(r.figures), "op/B", _intensity, rank=4),
    Column("differences", lambda r: r.differences, nested=True),
    Column("compared", title="other tool", text=_compared, right=False, narrow=12, rank=1),
)  # fmt: skip
