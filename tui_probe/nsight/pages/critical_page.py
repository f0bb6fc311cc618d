"""The critical kernel of each program, with the evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.shorten import shorten
from tui_probe.nsight.analysis.chosen_launches import FIND_OUT, Plan, choose, iterated_shapes
from tui_probe.nsight.analysis.critical import Critical, bound_of, critical, data_type, operations_per_byte
from tui_probe.nsight.analysis.kernel_figures import KernelFigures, figures_of
from tui_probe.nsight.analysis.kernel_names import matched
from tui_probe.nsight.analysis.traffic import durations
from tui_probe.nsight.pages.critical_rows import CriticalRow, columns_of
from tui_probe.nsight.pages.explanations import EXPLANATIONS
from tui_probe.nsight.pages.figures import decimal, percent, short_names, stem
from tui_probe.nsight.pages.names import by_shape, names_told_apart
from tui_probe.pages.table_page import TablePage, Words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.nsight.analysis.sectors import Tensor
    from tui_probe.nsight.importers.ncu_table import NcuTable


PROBES: Final = "probes"
_NEEDED: Final = {
    "compute": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "memory": "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
}
"""Metrics without which there is no bound."""
_TYPE_FROM: Final = "collect regex:sm__ops_path_tensor_src.*, or add a trace with tensor operations counted"


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
    probes = _Program(PROBES, critical(probed, tensor)) if probed else None
    rows = _rows(programs, probes, tensor)
    everything = [*programs, *([] if probes is None else [probes])]
    found = [_named(program) for program in everything]
    found += [] if probes is None else _agreement(rows, programs, probes)
    evidence = [line for program in everything for line in _evidence(program)]
    words = Words(head, found, [*_lacking(rows), *notes], EXPLANATIONS["critical"], evidence)
    names = (row.figures.shape.kernel for row in rows)
    shapes = ((row.program, row.figures.shape) for row in rows)
    columns = names_told_apart(by_shape(columns_of(rows, several=len(everything) > 1), shapes), names)
    return TablePage("critical", "Critical kernel", columns, rows, words, {"steps": _steps(everything)})


def _rows(programs: Sequence[_Program], probes: _Program | None, tensor: Tensor | None) -> list[CriticalRow]:
    """The kernels of every file, each with what the probes saw of it below; then those that only the probes saw."""
    of_probes = [] if probes is None else list(probes.found.ranked)
    of_ncu = [kernel for program in programs for kernel in program.found.ranked]
    pairs = matched(of_ncu, of_probes, lambda figures: figures.shape)
    partner = {id(kernel): other for kernel, other in pairs if kernel is not None}
    rows = []
    for program in programs:
        for kernel in program.found.ranked:
            other = partner[id(kernel)]
            rows.append(CriticalRow(program.name, kernel, kernel is program.found.kernel, tensor, other))
            if other is not None and probes is not None:
                rows.append(CriticalRow(PROBES, other, other is probes.found.kernel, tensor, kernel))
    alone = [other for kernel, other in pairs if kernel is None and other is not None]
    best = None if probes is None else probes.found.kernel
    return rows + [CriticalRow(PROBES, kernel, kernel is best, tensor) for kernel in alone]


def _agreement(rows: Sequence[CriticalRow], programs: Sequence[_Program], probes: _Program) -> list[str]:
    """Whether the probes name the same kernel as ncu, for each file."""
    said = []
    for program in programs:
        own = next((row for row in rows if row.is_critical and row.program == program.name), None)
        if own is None or probes.found.kernel is None:
            continue
        same = own.other is probes.found.kernel
        said.append(
            f"{stem(program.name)} and probes: {'the same critical kernel' if same else 'not the same critical kernel'}"
        )
    return said


def _lacking(rows: Sequence[CriticalRow]) -> list[str]:
    """How to have what was not collected."""
    of_ncu = [row.figures for row in rows if row.figures.tool == "ncu"]
    if of_ncu and all(bound_of(figures) is None for figures in of_ncu):
        return [f"bound not known: collect it with ncu --metrics {','.join(_NEEDED.values())}"]
    return []


def _programs(table: NcuTable, tensor: Tensor | None, plan: Plan) -> list[_Program]:
    """Each file by itself."""
    choice = choose(table, plan)
    iterated = iterated_shapes(table, choice, durations(table), plan)
    figures = figures_of(table, () if iterated is None else choice.measured)
    names = short_names([file.name for file in table.files])
    found = []
    for name, file in zip(names, table.files, strict=True):
        own = [each for each in figures if each.origin == file.name]
        found.append(_Program(name, critical(own, tensor, iterated)))
    return found


def _named(program: _Program) -> str:
    """The critical kernel of a program, and what is known of it first."""
    kernel = program.found.kernel
    if kernel is None:
        return f"{stem(program.name)}: no kernel stands out"
    kind, bound = data_type(kernel), bound_of(kernel)
    facts = [*([] if kind is None else [kind.name]), *([] if bound is None else [f"bound by {bound}"])]
    return f"{stem(program.name)}: {shorten(kernel.shape.kernel, 48)}" + (f" ({', '.join(facts)})" if facts else "")


def _evidence(program: _Program) -> list[str]:
    """Each question and its answer, then the facts."""
    kernel = program.found.kernel
    lines = [f"why, of {stem(program.name)}:"]
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
    elif kernel.uses_tensor_cores:
        facts.append(f"type: its name does not tell; {_TYPE_FROM}")
    bound = bound_of(kernel)
    if bound is not None:
        reached = f"compute {percent(kernel.compute)}, memory {percent(kernel.memory)} of the peak"
        facts.append(f"bound by: {bound} ({reached})")
    if kernel.issued is not None:
        facts.append(f"instructions an active cycle of an SM: {decimal(kernel.issued)}")
    if kernel.dram_rate is not None:
        facts.append(f"DRAM: {units.size(kernel.dram_rate)}/s")
    if kernel.dram_channel is not None:
        facts.append(f"DRAM, a channel: {units.size(kernel.dram_channel)}/s")
    intensity = operations_per_byte(kernel)
    if intensity is not None:
        facts.append(f"tensor operations per byte of loads and stores: {intensity:.1f}")
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
