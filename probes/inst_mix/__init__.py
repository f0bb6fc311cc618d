"""Instruction mix: PTX instructions that the warps of a launch executed, by class.

Each value is a sum over the warps; an instruction counts once for a warp that reaches it, with however many lanes,
and once more for each group of lanes that reaches it apart. With ``total`` the sum over all classes::

    fp64 share   = fp64 / (fp32 + fp64 + fp16 + bf16)     None where there is no such arithmetic; others likewise
    tensor share = tensor / (tensor + fp32 + fp64 + fp16 + bf16)

The shares tell which type a kernel computes in, and whether the tensor cores do it. A matrix instruction does
hundreds of times the work of another, so a small tensor share is a large part of it.

``inst_mix_by_line`` keeps how often warps entered each basic block: each entry executes all of its instructions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from tui_probe.draw import units
from tui_probe.errors import TraceError
from tui_probe.probekit.finding import SHARE, Finding, counted, derived, percent, place
from tui_probe.probekit.lines import LineMeasure, LineRows, LineSpec, ranked_rows
from tui_probe.probekit.metric import Metric, metrics_by_line, show_nonzero
from tui_probe.probekit.probe import Probe, Question, analysis_of_result, analysis_of_sites
from tui_probe.ptx.instruction_facts import CLASSES
from tui_probe.records.counter_sums import (
    CountsByLine,
    LineSums,
    ratio,
    site_dtype,
    site_records,
    sum_records,
    worst_line,
)
from tui_probe.records.probed_sites import probed_sites

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tui_probe.probekit.metric import Quantity
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.trace.results import Result


FLOATING: Final = CLASSES[:4]
"""The classes of floating-point arithmetic."""
RECORD: Final = np.dtype([(name, "<u4") for name in (*CLASSES, "threads")])
"""Record of ``inst_mix`` per warp."""
SITE: Final = site_dtype("entered")
"""Record of ``inst_mix_by_line`` per basic block."""
_NAMED_CLASSES: Final = 4


@dataclass(frozen=True, slots=True)
class InstructionMix:
    """Instructions of one launch: ``executed`` by class."""

    executed: dict[str, int]
    threads_missing: int

    @property
    def total(self) -> int:
        """All instructions."""
        return sum(self.executed.values())

    def share(self, name: str) -> float | None:
        """The part of the floating-point arithmetic that is of a class; ``tensor``: of that and the matrix ones."""
        total = sum(self.executed[kind] for kind in FLOATING)
        return ratio(self.executed[name], total + (self.executed[name] if name not in FLOATING else 0))


def analyse(result: Result) -> InstructionMix:
    """The mix of one launch; TraceError if map 0 holds no records of ``inst_mix``."""
    sums = sum_records(result, RECORD, "inst_mix")
    return InstructionMix(sums.totals, sums.threads_missing)


def analyse_lines(result: Result, sites: Sequence[int], folder: Path | None = None) -> CountsByLine[InstructionMix]:
    """Return the counts by line of ``inst_mix_by_line``: the ``sums`` of a line are executions by class.

    ``sites`` are the lines of the blocks, from ``kernel.info``, ``folder`` the kernel's in the trace. Raises
    TraceError, also where nothing tells the instructions of the blocks.
    """
    records = site_records(result, SITE, "inst_mix_by_line", sites)
    blocks = probed_sites(folder).blocks(sites)
    if len(blocks) != len(sites):
        raise TraceError(
            f"{result.path}: the records do not match the basic blocks in {folder or 'the trace'}/pruned.ptx"
        )
    sums: dict[int, LineSums] = {}
    for block, entries in zip(blocks, records["entered"].tolist(), strict=True):
        for instruction in block:
            row = LineSums(instruction.line, instruction.opcode, instruction.source, dict.fromkeys(CLASSES, 0))
            sums.setdefault(instruction.line, row).sums[instruction.work] += entries
    lines = tuple(sums[line] for line in sorted(sums))
    executed = {name: sum(line.sums[name] for line in lines) for name in CLASSES}
    worst = worst_line(lines, lambda line: executions_of(line) or None)
    return CountsByLine(InstructionMix(executed, threads_missing=0), lines, worst)


def executions_of(line: LineSums) -> int:
    """Instructions of one line that warps executed."""
    return line.total(*CLASSES)


def classes_of(line: LineSums) -> str:
    """The classes of the instructions of a line that were executed, ``integer``; several of a line with several."""
    return ", ".join(name for name in CLASSES if line.sums[name])


def _count_metric(name: str) -> Metric:
    def class_count(analysis: InstructionMix) -> int:
        return analysis.executed[name]

    quantity = cast("Quantity", f"{name} instructions" if name in FLOATING else "")
    title = f"{name} instructions"
    return Metric(name, name, quantity=quantity, read=class_count, is_shown=show_nonzero, standalone_title=title)


def _share_metric(name: str) -> Metric:
    def class_share(analysis: InstructionMix) -> float | None:
        return analysis.share(name)

    return Metric(
        f"{name}_share", f"{name} share", over_launches="mean", read=class_share, is_shown=_where_executed(name)
    )


def _where_executed(name: str) -> Callable[[Any, Any], bool]:
    def is_executed(analysis: InstructionMix, value: Any) -> bool:
        del value
        return analysis.executed[name] > 0

    return is_executed


METRICS: Final = (
    Metric("total", "instructions", better="lower", standalone_title="executed instructions", of_work=True),
    *map(_count_metric, CLASSES),
    *map(_share_metric, (*FLOATING, "tensor")),
)
BY_LINE: Final = metrics_by_line(METRICS, "executed most")


def findings(probe_result: ProbeResult, analysis: InstructionMix) -> Iterator[Finding]:
    """Classes and arithmetic."""
    del probe_result
    yield from _mix_findings(analysis)


def findings_by_line(probe_result: ProbeResult, analysis: CountsByLine[InstructionMix]) -> Iterator[Finding]:
    """Yield the findings, then the line that is executed most."""
    del probe_result
    totals = analysis.analysis
    yield from _mix_findings(totals)
    kinds = ("fp64",) if totals.executed["fp64"] else CLASSES
    line = max(analysis.lines, key=lambda candidate: candidate.total(*kinds), default=None)
    if line is not None and line.total(*kinds):
        part = percent(line.total(*kinds), sum(totals.executed[kind] for kind in kinds))
        noun = "fp64 instructions" if len(kinds) == 1 else "instructions"
        text = f"{place(line.line, line.source, line.opcode)}, {part} of all {noun}"
        values = {"executed": counted(line.total(*kinds))}
        yield Finding("most_executed", "executed most", text, "lines", line.line, values=values)


def _mix_findings(analysis: InstructionMix) -> Iterator[Finding]:
    main_classes = sorted(analysis.executed.items(), key=lambda pair: -pair[1])[:_NAMED_CLASSES]
    parts = ", ".join(f"{name} {percent(number, analysis.total)}" for name, number in main_classes if number)
    text = f"{units.counted(analysis.total, 'warp instruction')}: {parts}"
    values = {name: counted(number) for name, number in {"total": analysis.total, **analysis.executed}.items()}
    yield Finding("mix", "instructions", text, values=values)
    arithmetic = [f"{name} {part:.0%}" for name in FLOATING if (part := analysis.share(name))]
    if arithmetic:
        doubles = analysis.share("fp64") or 0.0
        question = "tensor cores" if analysis.executed["tensor"] and not doubles else ""
        values = {f"{name}_share": derived(analysis.share(name), SHARE) for name in (*FLOATING, "tensor")}
        text = f"{', '.join(arithmetic)} of the floating-point arithmetic"
        yield Finding("arithmetic", "arithmetic", text, stands_out=doubles > 0, next_question=question, values=values)


def _line_rows(probe_result: ProbeResult, analysis: CountsByLine[InstructionMix]) -> LineRows:
    del probe_result
    rows = ranked_rows(
        analysis.lines,
        executions_of,
        lambda line: {"executed": executions_of(line), "class": classes_of(line) or None},
    )
    return LineRows(
        rows, ["executed: one count per warp that executes the line; after divergence, one count per group of lanes"]
    )


LINES: Final = LineSpec((LineMeasure("share"), LineMeasure("executed"), LineMeasure("class")), "executed", _line_rows)


PROBES: Final = (
    Probe(
        name="inst_mix",
        analyse=analysis_of_result(analyse),
        metrics=METRICS,
        question=Question("mix", "which classes of instructions are executed?", 100),
        findings=findings,
    ),
    Probe(
        name="inst_mix_by_line",
        analyse=analysis_of_sites(analyse_lines),
        metrics=BY_LINE,
        answers=("mix",),
        findings=findings_by_line,
        lines=LINES,
    ),
)
