"""Instruction mix: PTX instructions that the warps of a launch executed, by class.

Each figure is a sum over the warps; an instruction counts once for a warp that reaches it, with however many lanes, and
once more for each group of lanes that reaches it apart. With ``total`` the sum over all classes::

    fp64 share   = fp64 / (fp32 + fp64 + fp16 + bf16)     None where there is no such arithmetic; others likewise
    tensor share = tensor / (tensor + fp32 + fp64 + fp16 + bf16)

The shares tell which type a kernel computes in, and whether the tensor cores do it. A matrix instruction does hundreds
of times the work of another, so a small tensor share is a large part of it.

``inst_mix_by_line`` keeps how often warps entered each basic block: each entry executes all of its instructions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.analysis.by_line import CountsByLine, LineSums, record_of, site_records, worst_of
from tui_probe.analysis.counts import ratio, summed
from tui_probe.analysis.known_sites import sites_of
from tui_probe.errors import TraceError
from tui_probe.ptx.instruction_classes import CLASSES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui_probe.trace.results import Result

FLOATING: Final = CLASSES[:4]
"""The classes of floating-point arithmetic."""
RECORD: Final = np.dtype([(name, "<u4") for name in (*CLASSES, "threads")])
"""What ``inst_mix`` saves for each warp."""
SITE: Final = record_of("entered")
"""What ``inst_mix_by_line`` keeps for each basic block."""


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
        whole = sum(self.executed[kind] for kind in FLOATING)
        return ratio(self.executed[name], whole + (self.executed[name] if name not in FLOATING else 0))


def analyse(result: Result) -> InstructionMix:
    """The mix of one launch; TraceError if map 0 holds no records of ``inst_mix``."""
    sums = summed(result, RECORD, "inst_mix")
    return InstructionMix(sums.totals, sums.threads_missing)


def analyse_lines(result: Result, sites: Sequence[int], folder: Path | None = None) -> CountsByLine[InstructionMix]:
    """The same by line, of ``inst_mix_by_line``: the ``sums`` of a line are executions by class.

    ``sites`` are the lines of the blocks, from ``kernel.info``, ``folder`` the kernel's in the trace. Raises
    TraceError, also where nothing tells the instructions of the blocks.
    """
    records = site_records(result, SITE, "inst_mix_by_line", sites)
    blocks = sites_of(folder).blocks(sites)
    if len(blocks) != len(sites):
        raise TraceError(f"{result.path}: it does not fit the basic blocks in {folder or 'the trace'}/pruned.ptx")
    found: dict[int, LineSums] = {}
    for block, entered in zip(blocks, records["entered"].tolist(), strict=True):
        for one in block:
            row = LineSums(one.line, one.opcode, one.source, dict.fromkeys(CLASSES, 0))
            found.setdefault(one.line, row).sums[one.work] += entered
    lines = tuple(found[line] for line in sorted(found))
    executed = {name: sum(line.sums[name] for line in lines) for name in CLASSES}
    worst = worst_of(lines, lambda line: executions_of(line) or None)
    return CountsByLine(InstructionMix(executed, threads_missing=0), lines, worst)


def executions_of(line: LineSums) -> int:
    """Instructions of one line that warps executed."""
    return line.total(*CLASSES)


def classes_of(line: LineSums) -> str:
    """The classes of the instructions of a line that were executed, ``integer``; several of a line with several."""
    return ", ".join(name for name in CLASSES if line.sums[name])
