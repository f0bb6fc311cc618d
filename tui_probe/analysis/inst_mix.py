"""Instruction mix: PTX instructions that the warps of a launch executed, by class.

Each figure is a sum over the warps; an instruction counts once for a warp that reaches it, with however many lanes, and
once more for each group of lanes that reaches it apart. With ``total`` the sum over all classes::

    fp64 share   = fp64 / (fp32 + fp64 + fp16 + bf16)     None where there is no such arithmetic; others likewise
    tensor share = tensor / (tensor + fp32 + fp64 + fp16 + bf16)

The shares tell which type a kernel computes in, and whether the tensor cores do it. A matrix instruction does hundreds
of times the work of another, so a small tensor share is a large part of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.analysis.counts import Figure, ratio, summed

if TYPE_CHECKING:
    from tui_probe.trace.results import Result

CLASSES: Final = (
    "fp32", "fp64", "fp16", "bf16", "integer", "tensor", "load", "store", "atomic", "branch", "barrier", "other",
)  # fmt: skip
FLOATING: Final = CLASSES[:4]
"""The classes of floating-point arithmetic."""
RECORD: Final = np.dtype([(name, "<u4") for name in (*CLASSES, "threads")])
"""What ``inst_mix`` saves for each warp."""


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

    def figures(self) -> tuple[Figure, ...]:
        counts = (Figure(name, name, number, "", shown=number > 0) for name, number in self.executed.items())
        shares = (
            Figure(f"{name}_share", f"{name} share", self.share(name), "", shown=self.executed[name] > 0)
            for name in (*FLOATING, "tensor")
        )
        return (Figure("total", "instructions", self.total, ""), *counts, *shares)


def analyse(result: Result) -> InstructionMix:
    """The mix of one launch; TraceError if map 0 holds no records of ``inst_mix``."""
    sums = summed(result, RECORD, "inst_mix")
    return InstructionMix(sums.totals, sums.threads_missing)
