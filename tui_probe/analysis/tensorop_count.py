"""Tensor core operations: matrix instructions executed in a launch, and the multiply-adds in them.

Every lane counted its share. With the sums over all warps::

    mma, wmma      = counted / 32         instructions, each executed by a warp
    wgmma          = counted / 128        instructions, each executed by four warps
    multiply_adds  = sum of the shares    m · n · k of each instruction
    operations     = 2 · multiply_adds    as in 2·M·N·K of a matrix product

A product whose sides are no multiples of the tile computes more than 2·M·N·K: the padding is counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.analysis.counts import Figure, summed
from tui_probe.errors import TraceError

if TYPE_CHECKING:
    from tui_probe.trace.results import Result

RECORD: Final = np.dtype(
    {
        "names": ["multiply_adds", "mma", "wmma", "wgmma", "threads"],
        "formats": ["<u8"] * 4 + ["<u4"],
        "offsets": [0, 8, 16, 24, 32],
        "itemsize": 40,
    }
)
"""What ``tensorop_count`` saves for each warp: sums over its lanes."""
_LANES: Final = {"mma": 32, "wmma": 32, "wgmma": 128}


@dataclass(frozen=True, slots=True)
class TensorOperations:
    """Instructions and multiply-adds of one launch."""

    multiply_adds: int
    mma: int
    wmma: int
    wgmma: int
    threads_missing: int

    @property
    def operations(self) -> int:
        """Multiplications and additions."""
        return 2 * self.multiply_adds

    def figures(self) -> tuple[Figure, ...]:
        return (
            Figure("operations", "operations", self.operations, ""),
            Figure("multiply_adds", "multiply-adds", self.multiply_adds, ""),
            Figure("mma", "mma", self.mma, "", shown=self.mma > 0),
            Figure("wmma", "wmma", self.wmma, "", shown=self.wmma > 0),
            Figure("wgmma", "wgmma", self.wgmma, "", shown=self.wgmma > 0),
        )


def analyse(result: Result) -> TensorOperations:
    """The operations of one launch; TraceError if map 0 holds no records of ``tensorop_count``."""
    sums = summed(result, RECORD, "tensorop_count")
    counts = {}
    for name, lanes in _LANES.items():
        counts[name], rest = divmod(sums.totals[name], lanes)
        if rest and not sums.threads_missing:
            raise TraceError(f"{result.path}: {sums.totals[name]} lanes executed {name}, no multiple of {lanes}")
    return TensorOperations(sums.totals["multiply_adds"], **counts, threads_missing=sums.threads_missing)
