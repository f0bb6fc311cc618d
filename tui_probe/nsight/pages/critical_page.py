"""Page of the critical kernel of each program, with the evidence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.shorten import cut_middle, shorten
from tui_probe.draw.table import Column
from tui_probe.draw.table_content import PageTexts
from tui_probe.nsight.analysis.critical import (
    CriticalKernel,
    ExpectedTensor,
    bound_of,
    compare_sectors,
    data_type,
    find_critical,
    operations_per_byte,
)
from tui_probe.nsight.analysis.kernel_groups import match_kernels
from tui_probe.nsight.analysis.kernel_metrics import KernelMetrics, differing_counts, metrics_of
from tui_probe.nsight.analysis.launch_means import durations
from tui_probe.nsight.analysis.launch_selection import AUTOMATIC, IterationPlan, iterated_shapes, select_launches
from tui_probe.nsight.pages.cells import decimal, mean_count, percent, shape_columns, short_names, shorten_names, stem
from tui_probe.nsight.pages.explanations import EXPLANATIONS
from tui_probe.pages.table_page import TablePage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.nsight.importers.ncu_table import NcuTable

_OPTIONAL_COLUMNS: Final = {
    **{
        name: name
        for name in ("verdict", "compute", "memory", "bound", "issued", "dram_bytes_per_second", "operations_per_byte")
    },
    "compared": "differences",
}
"""Columns that are left out of tables in which they would be empty, and whose values tell that."""
PROBES: Final = "probes"
_BOUND_METRICS: Final = {
    "compute": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "memory": "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
}
"""Metrics without which there is no bound."""
_TYPE_ADVICE: Final = "collect regex:sm__ops_path_tensor_src.*, or add a trace of a probe that counts tensor operations"


@dataclass(frozen=True, slots=True)
class CriticalRow:
    """A kernel of a program, as one tool saw it; ``other_tool`` is the same kernel as the other tool saw it."""

    program: str
    metrics: KernelMetrics
    is_critical: bool
    tensor: ExpectedTensor | None
    other_tool: KernelMetrics | None = None

    @property
    def type_name(self) -> str | None:
        inferred = data_type(self.metrics)
        return None if inferred is None else inferred.name

    @property
    def type_evidence(self) -> str | None:
        inferred = data_type(self.metrics)
        return None if inferred is None else inferred.evidence

    @property
    def differences(self) -> list[str] | None:
        """Names of values in which the two tools differ; None if there is nothing to compare."""
        if self.other_tool is None:
            return None
        counts = differing_counts(self.metrics, self.other_tool)
        types = [None if kind is None else kind.name for kind in map(data_type, (self.metrics, self.other_tool))]
        tensor = [self.metrics.uses_tensor_cores, self.other_tool.uses_tensor_cores]
        pairs: dict[str, list[Any]] = {"type": types, "tensor cores": tensor}
        differs = {name: pair[0] != pair[1] for name, pair in pairs.items() if None not in pair}
        if counts is None and not differs:
            return None
        return [
            *(name.replace("_", " ") for name in counts or ()),
            *(name for name, is_different in differs.items() if is_different),
        ]


def columns_of(rows: Sequence[CriticalRow], *, has_programs: bool) -> list[Column[CriticalRow]]:
    """The columns, in tables without those that hold nothing; of several programs each row names its own."""
    values = {column.key: column.value for column in CRITICAL_COLUMNS if column.value is not None}
    columns = []
    for column in CRITICAL_COLUMNS:
        value = values.get(_OPTIONAL_COLUMNS.get(column.key, ""))
        if value is not None and rows and all(value(row) in (None, "") for row in rows):
            column = replace(column, text=None)
        if column.key == "program":
            column = replace(column, rank=0) if has_programs else replace(column, text=None)
        columns.append(column)
    return columns


def _comparison_text(row: CriticalRow) -> str:
    """Name the differences from the other tool's counts of the same kernel."""
    differences = row.differences
    if differences is None or row.other_tool is None:
        return ""
    return f"≠ {row.other_tool.tool}: {', '.join(differences)}" if differences else f"= {row.other_tool.tool}"


def _rate(row: CriticalRow) -> str:
    return units.NOT_MEASURED if row.metrics.dram_rate is None else f"{units.size(row.metrics.dram_rate)}/s"


def _intensity(row: CriticalRow) -> str:
    value = operations_per_byte(row.metrics)
    return units.NOT_MEASURED if value is None else f"{value:.1f}"


def _tensor_text(row: CriticalRow) -> str:
    if row.metrics.tensor_operations is not None:
        return f"{mean_count(row.metrics.tensor_operations)} ops"
    return percent(row.metrics.tensor_activity)


CRITICAL_COLUMNS: Final[tuple[Column[CriticalRow], ...]] = (
    Column("critical", lambda r: r.is_critical, "", lambda r: "▶" if r.is_critical else ""),
    Column(
        "program", lambda r: r.program, "program", lambda r: stem(r.program), right=False, rank=4, narrow=12,
        shorten=cut_middle,
    ),
    Column(
        "kernel", lambda r: r.metrics.shape.kernel, "kernel", lambda r: r.metrics.shape.kernel, right=False,
        narrow=22, shorten=shorten,
    ),
    Column("tool", lambda r: r.metrics.tool),
    Column("grid", lambda r: r.metrics.shape.grid, "grid",
        lambda r: units.extent(r.metrics.shape.grid), rank=5),
    Column("block", lambda r: r.metrics.shape.block, "block",
        lambda r: units.extent(r.metrics.shape.block), rank=5),
    Column("launches", lambda r: r.metrics.launches, "launches",
        lambda r: units.count(r.metrics.launches), rank=3),
    Column("tensor_activity", lambda r: r.metrics.tensor_activity),
    Column("tensor_operations", lambda r: r.metrics.tensor_operations),
    Column("tensor", title="tensor", text=_tensor_text),
    Column(
        "store_sectors", lambda r: r.metrics.store_sectors, "stored",
        lambda r: mean_count(r.metrics.store_sectors),
        rank=2,
    ),
    Column(
        "verdict", lambda r: compare_sectors(r.metrics.store_sectors, r.tensor), "expected",
        lambda r: compare_sectors(r.metrics.store_sectors, r.tensor) or "", right=False, rank=2,
    ),
    Column("share_of_time", lambda r: r.metrics.share, "share", lambda r: units.share(r.metrics.share)),
    Column("type", lambda r: r.type_name, "type", lambda r: r.type_name or units.NOT_MEASURED, right=False, rank=1),
    Column("type_evidence", lambda r: r.type_evidence),
    Column("compute", lambda r: r.metrics.compute, "compute",
        lambda r: percent(r.metrics.compute), rank=3),
    Column("memory", lambda r: r.metrics.memory, "memory", lambda r: percent(r.metrics.memory), rank=3),
    Column(
        "bound", lambda r: bound_of(r.metrics), "bound",
        lambda r: bound_of(r.metrics) or units.NOT_MEASURED, right=False,
        rank=1,
    ),
    Column("issued", lambda r: r.metrics.issued, "inst/cycle",
        lambda r: decimal(r.metrics.issued), rank=4),
    Column("dram_bytes_per_second", lambda r: r.metrics.dram_rate, "DRAM", _rate, rank=4),
    Column("operations_per_byte", lambda r: operations_per_byte(r.metrics), "op/B", _intensity, rank=4),
    Column("differences", lambda r: r.differences, nested=True),
    Column("compared", title="other tool", text=_comparison_text, right=False, narrow=12, rank=1),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Program:
    name: str
    critical: CriticalKernel


def critical_page(
    table: NcuTable | None,
    head: Sequence[tuple[str, str]],
    notes: Sequence[str] = (),
    probe_metrics: Sequence[KernelMetrics] = (),
    tensor: ExpectedTensor | None = None,
    plan: IterationPlan = AUTOMATIC,
) -> TablePage[CriticalRow]:
    """The kernels of every file, and of the traces together, the one with the most tensor work first."""
    programs = [] if table is None else _programs(table, tensor, plan)
    probes = _Program(PROBES, find_critical(probe_metrics, tensor)) if probe_metrics else None
    rows = _rows(programs, probes, tensor)
    all_programs = [*programs, *([] if probes is None else [probes])]
    results = [_critical_line(program) for program in all_programs]
    results += [] if probes is None else _agreement(rows, programs, probes)
    evidence = [line for program in all_programs for line in _evidence(program)]
    texts = PageTexts(head, results, [*_missing_metrics(rows), *notes], EXPLANATIONS["critical"], evidence)
    names = (row.metrics.shape.kernel for row in rows)
    shapes = ((row.program, row.metrics.shape) for row in rows)
    columns = shorten_names(shape_columns(columns_of(rows, has_programs=len(all_programs) > 1), shapes), names, 1 / 4)
    return TablePage("critical", "Critical kernel", columns, rows, texts, {"steps": _steps(all_programs)})


def _rows(programs: Sequence[_Program], probes: _Program | None, tensor: ExpectedTensor | None) -> list[CriticalRow]:
    """The kernels of every file, each with what the probes saw of it below; then those that only the probes saw."""
    probe_kernels = [] if probes is None else list(probes.critical.ranking)
    ncu_kernels = [kernel for program in programs for kernel in program.critical.ranking]
    pairs = match_kernels(ncu_kernels, probe_kernels, lambda metrics: metrics.shape)
    probe_kernel_of = {id(kernel): other for kernel, other in pairs if kernel is not None}
    rows = []
    for program in programs:
        for kernel in program.critical.ranking:
            other = probe_kernel_of[id(kernel)]
            rows.append(CriticalRow(program.name, kernel, kernel is program.critical.kernel, tensor, other))
            if other is not None and probes is not None:
                rows.append(CriticalRow(PROBES, other, other is probes.critical.kernel, tensor, kernel))
    unpaired = [other for kernel, other in pairs if kernel is None and other is not None]
    critical_of_probes = None if probes is None else probes.critical.kernel
    return rows + [CriticalRow(PROBES, kernel, kernel is critical_of_probes, tensor) for kernel in unpaired]


def _agreement(rows: Sequence[CriticalRow], programs: Sequence[_Program], probes: _Program) -> list[str]:
    """Return whether the probes name the same kernel as ncu, for each file."""
    agreements = []
    for program in programs:
        critical_row = next((row for row in rows if row.is_critical and row.program == program.name), None)
        if critical_row is None or probes.critical.kernel is None:
            continue
        kernels = (
            "the same critical kernel"
            if critical_row.other_tool is probes.critical.kernel
            else "different critical kernels"
        )
        agreements.append(f"{stem(program.name)} and the probes find {kernels}")
    return agreements


def _missing_metrics(rows: Sequence[CriticalRow]) -> list[str]:
    """Return how to collect the metrics that are missing."""
    ncu_metrics = [row.metrics for row in rows if row.metrics.tool == "ncu"]
    if ncu_metrics and all(bound_of(metrics) is None for metrics in ncu_metrics):
        metric_names = ",".join(_BOUND_METRICS.values())
        return [f"the bound is unknown; to collect the metrics for it, use ncu --metrics {metric_names}"]
    return []


def _programs(table: NcuTable, tensor: ExpectedTensor | None, plan: IterationPlan) -> list[_Program]:
    """Return the program of each file."""
    choice = select_launches(table, plan)
    shapes = iterated_shapes(table, choice, durations(table), plan)
    metrics = metrics_of(table, () if shapes is None else choice.measured_launches)
    names = short_names([file.name for file in table.files])
    programs = []
    for name, file in zip(names, table.files, strict=True):
        file_metrics = [value for value in metrics if value.origin == file.name]
        programs.append(_Program(name, find_critical(file_metrics, tensor, shapes)))
    return programs


def _critical_line(program: _Program) -> str:
    """The critical kernel of a program, and what is known of it first."""
    kernel = program.critical.kernel
    if kernel is None:
        return f"{stem(program.name)}: no critical kernel found"
    kind, bound = data_type(kernel), bound_of(kernel)
    facts = [*([] if kind is None else [kind.name]), *([] if bound is None else [f"bound by {bound}"])]
    return f"{stem(program.name)}: {shorten(kernel.shape.kernel, 48)}" + (f" ({', '.join(facts)})" if facts else "")


def _evidence(program: _Program) -> list[str]:
    """Return each question and its answer, then the facts."""
    kernel = program.critical.kernel
    lines = [f"selection steps for {stem(program.name)}:"]
    lines += [f"  {step.question}: {step.answer}" for step in program.critical.steps]
    if kernel is not None:
        lines += [f"  {text}" for text in _facts(kernel)]
    return lines


def _facts(kernel: KernelMetrics) -> list[str]:
    """Return further facts of the critical kernel: type, bound, rates."""
    facts = []
    inferred = data_type(kernel)
    if inferred is not None:
        facts.append(f"type: {inferred.name} ({inferred.evidence})")
    elif kernel.uses_tensor_cores:
        facts.append(f"type not in the kernel's name; {_TYPE_ADVICE}")
    bound = bound_of(kernel)
    if bound is not None:
        utilization = f"compute {percent(kernel.compute)}, memory {percent(kernel.memory)} of peak"
        facts.append(f"bound by: {bound} ({utilization})")
    if kernel.issued is not None:
        facts.append(f"instructions per active SM cycle: {decimal(kernel.issued)}")
    if kernel.dram_rate is not None:
        facts.append(f"DRAM: {units.size(kernel.dram_rate)}/s")
    if kernel.dram_channel is not None:
        facts.append(f"per DRAM channel: {units.size(kernel.dram_channel)}/s")
    intensity = operations_per_byte(kernel)
    if intensity is not None:
        facts.append(f"tensor operations per loaded or stored byte: {intensity:.1f}")
    return facts


def _steps(programs: Sequence[_Program]) -> list[dict[str, Any]]:
    return [
        {
            "program": program.name,
            "critical": None if program.critical.kernel is None else program.critical.kernel.shape.kernel,
            "steps": [{"question": step.question, "answer": step.answer} for step in program.critical.steps],
        }
        for program in programs
    ]
