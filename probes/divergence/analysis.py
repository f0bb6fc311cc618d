"""Divergence: how many lanes of a warp are active at its branches and at its accesses to memory.

    branches, accesses    executed by a warp, once for each group of lanes that comes to it apart
    lanes per branch        sum of the active lanes / branches       32 where every warp is whole and stays together
    lanes per access       sum of the active lanes / accesses

Unit: lanes. The last warp of a block whose size is no multiple of 32 has fewer from the start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.analysis.by_line import CountsByLine, line_sums, record_of, totals, worst_of
from tui_probe.analysis.counts import ratio, summed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui_probe.analysis.by_line import LineSums
    from tui_probe.trace.results import Result

RECORD: Final = np.dtype(
    {
        "names": ["branch_lanes", "access_lanes", "branches", "accesses", "threads"],
        "formats": ["<u8"] * 2 + ["<u4"] * 3,
        "offsets": [0, 8, 16, 20, 24],
        "itemsize": 32,
    }
)
"""What ``divergence`` saves for each warp: sums over its lanes."""
SITE: Final = record_of("branches", "branch_lanes", "accesses", "access_lanes")
"""What ``divergence_by_line`` keeps for each instruction."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """Executions and active lanes of one launch."""

    branch_lanes: int
    access_lanes: int
    branches: int
    accesses: int
    threads_missing: int

    @property
    def lanes_per_branch(self) -> float | None:
        """Mean number of active lanes at a branch."""
        return ratio(self.branch_lanes, self.branches)

    @property
    def lanes_per_access(self) -> float | None:
        """Mean number of active lanes at an access."""
        return ratio(self.access_lanes, self.accesses)


def analyse(result: Result) -> Divergence:
    """The lanes of one launch; TraceError if map 0 holds no records of ``divergence``."""
    sums = summed(result, RECORD, "divergence")
    return Divergence(**sums.totals, threads_missing=sums.threads_missing)


def analyse_lines(result: Result, sites: Sequence[int], folder: Path | None = None) -> CountsByLine[Divergence]:
    """The same by line, of ``divergence_by_line``; see :func:`by_line.line_sums`. Raises TraceError."""
    lines = line_sums(result, SITE, "divergence_by_line", sites, folder)
    whole = Divergence(**totals(lines, SITE), threads_missing=0)
    return CountsByLine(whole, lines, worst_of(lines, lanes_per_execution, lowest=True))


def executions_and_lanes(line: LineSums) -> tuple[int, int]:
    """How often warps executed a line, and with how many active lanes in all."""
    return line.total("branches", "accesses"), line.total("branch_lanes", "access_lanes")


def lanes_per_execution(line: LineSums) -> float | None:
    """Mean number of active lanes of one line; None if it was never executed."""
    executions, lanes = executions_and_lanes(line)
    return ratio(lanes, executions)
