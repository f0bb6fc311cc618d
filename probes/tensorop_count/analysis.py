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

from tui_probe.analysis.by_line import CountsByLine, line_sums, record_of, totals, worst_of
from tui_probe.analysis.counts import summed
from tui_probe.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui_probe.analysis.by_line import LineSums
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
SITE: Final = record_of("multiply_adds", "mma", "wmma", "wgmma")
"""What ``tensorop_count_by_line`` keeps for each instruction: sums over lanes."""
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


def analyse(result: Result) -> TensorOperations:
    """The operations of one launch; TraceError if map 0 holds no records of ``tensorop_count``."""
    sums = summed(result, RECORD, "tensorop_count")
    return _operations(result, sums.totals, sums.threads_missing)


def analyse_lines(result: Result, sites: Sequence[int], folder: Path | None = None) -> CountsByLine[TensorOperations]:
    """The same by line, of ``tensorop_count_by_line``; see :func:`by_line.line_sums`. Raises TraceError."""
    lines = line_sums(result, SITE, "tensorop_count_by_line", sites, folder)
    whole = _operations(result, totals(lines, SITE), 0)
    return CountsByLine(whole, lines, worst_of(lines, lambda line: multiply_adds_of(line) or None))


def instructions_of(line: LineSums) -> int:
    """How often one line was executed, by a warp or, if it is a wgmma, by four."""
    return sum(line.sums[name] // lanes for name, lanes in _LANES.items())


def multiply_adds_of(line: LineSums) -> int:
    """The multiply-adds of one line."""
    return line.sums["multiply_adds"]


def _operations(result: Result, sums: dict[str, int], threads_missing: int) -> TensorOperations:
    """From sums over lanes; TraceError if they make no whole instructions though no thread is missing."""
    counts = {}
    for name, lanes in _LANES.items():
        counts[name], rest = divmod(sums[name], lanes)
        if rest and not threads_missing:
            raise TraceError(f"{result.path}: {sums[name]} lanes executed {name}, no multiple of {lanes}")
    return TensorOperations(sums["multiply_adds"], **counts, threads_missing=threads_missing)
