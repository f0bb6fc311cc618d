"""The critical kernel of each program, with the evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tui_probe.analysis.chosen_launches import FIND_OUT, Plan, choose, iterated_shapes
from tui_probe.analysis.critical import Critical, bound_of, critical, data_type, operations_per_byte
from tui_probe.analysis.kernel_figures import KernelFigures, figures_of
from tui_probe.analysis.sectors import Tensor, verdict_of
from tui_probe.analysis.traffic import durations
from tui_probe.render import units
from tui_probe.render.nsight.explanations import EXPLANATIONS
from tui_probe.render.nsight.figures import decimal, mean_count, percent, share, short_names
from tui_probe.render.nsight.page import TablePage, Words
from tui_probe.render.shorten import cut_middle, shorten
from tui_probe.render.table import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.importers.ncu_table import NcuTable


@dataclass(frozen=True, slots=True)
class CriticalRow:
    """A kernel of a program, as one tool saw it."""

    program: str
    figures: KernelFigures
    is_critical: bool
    tensor: Tensor | None

    @property
    def type_name(self) -> str | None:
        found = data_type(self.figures)
        return None if found is None else found.name

    @property
    def type_evidence(self) -> str | None:
        found = data_type(self.figures)
        return None if found is None else found.evidence


@dataclass(frozen=True, slots=True)
class _Program:
    name: str
    found: Critical


def critical_page(
    table: NcuTable | None,
    head: Sequence[tuple[str, str]],
    notes: Sequence[str] = (),
    probed: Sequence[KernelFigures] = (),
    tensor: Tensor | None = None,
    plan: Plan = FIND_OUT,
) -> TablePage[CriticalRow]:
    """The kernels of every file, and of the traces together, the one with the most tensor work first."""
    programs = [] if table is None else _programs(table, tensor, plan)
    if probed:
        programs.append(_Program("probes", critical(probed, tensor)))
    rows = [
        CriticalRow(program.name, kernel, kernel is program.found.kernel, tensor)
        for program in programs
        for kernel in program.found.ranked
    ]
    words = Words(head, [line for program in programs for line in _said(program)], notes, EXPLANATIONS["critical"])
    return TablePage("critical", "Critical kernel", CRITICAL_COLUMNS, rows, words, {"steps": _steps(programs)})


def _programs(table: NcuTable, tensor: Tensor | None, plan: Plan) -> list[_Program]:
    """Each file by itself."""
    iterated = iterated_shapes(table, choose(table, plan), durations(table), plan)
    figures = figures_of(table)
    names = short_names([file.name for file in table.files])
    found = []
    for name, file in zip(names, table.files, strict=True):
        own = [each for each in figures if each.origin == file.name]
        found.append(_Program(name, critical(own, tensor, iterated)))
    return found


def _said(program: _Program) -> list[str]:
    """The kernel, then each question and its answer."""
    kernel = program.found.kernel
    name = "no kernel stands out" if kernel is None else shorten(kernel.shape.kernel, 72)
    lines = [f"{program.name}: {name}"]
    lines += [f"  {step.question}: {step.answer}" for step in program.found.steps]
    if kernel is not None:
        lines += [f"  {words}" for words in _facts(kernel)]
    return lines


def _facts(kernel: KernelFigures) -> list[str]:
    """What is known of the critical kernel besides."""
    facts = []
    found = data_type(kernel)
    if found is not None:
        facts.append(f"type: {found.name} ({found.evidence})")
    bound = bound_of(kernel)
    if bound is not None:
        reached = f"compute {percent(kernel.compute)}, memory {percent(kernel.memory)} of the peak"
        facts.append(f"bound by: {bound} ({reached})")
    if kernel.issued is not None:
        facts.append(f"instructions an active cycle of an SM: {decimal(kernel.issued)}")
    if kernel.dram_rate is not None:
        facts.append(f"DRAM: {units.size(kernel.dram_rate)}/s")
    intensity = operations_per_byte(kernel)
    if intensity is not None:
        facts.append(f"tensor operations a byte of loads and stores: {intensity:.1f}")
    return facts


def _steps(programs: Sequence[_Program]) -> list[dict[str, Any]]:
    return [
        {
            "program": program.name,
            "critical": None if program.found.kernel is None else program.found.kernel.shape.kernel,
            "steps": [{"question": step.question, "answer": step.answer} for step in program.found.steps],
        }
        for program in programs
    ]


def _tensor_text(row: CriticalRow) -> str:
    if row.figures.tensor_operations is not None:
        return f"{mean_count(row.figures.tensor_operations)} ops"
    return percent(row.figures.tensor_activity)


CRITICAL_COLUMNS: Final[tuple[Column[CriticalRow], ...]] = (
    Column("critical", lambda r: r.is_critical, "", lambda r: "▶" if r.is_critical else ""),
    Column(
        "program", lambda r: r.program, "program", lambda r: r.program, False, rank=4, narrow=16, shorten=cut_middle
    ),
    Column(
        "kernel", lambda r: r.figures.shape.kernel, "kernel", lambda r: r.figures.shape.kernel, False,
        narrow=24, shorten=shorten,
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
    Column("share_of_time", lambda r: r.figures.share, "share", lambda r: share(r.figures.share)),
    Column("type", lambda r: r.type_name, "type", lambda r: r.type_name or units.NOT_MEASURED, False, rank=1),
    Column("type_evidence", lambda r: r.type_evidence),
    Column("compute", lambda r: r.figures.compute, "compute", lambda r: percent(r.figures.compute), rank=3),
    Column("memory", lambda r: r.figures.memory, "memory", lambda r: percent(r.figures.memory), rank=3),
    Column(
        "bound", lambda r: bound_of(r.figures), "bound", lambda r: bound_of(r.figures) or units.NOT_MEASURED, False,
        rank=1,
    ),
)  # fmt: skip
