"""Barrier waits: the cycles that warps spend at barriers.

    waited          sum over warps and barriers of (clock after - clock before)          SM clock cycles
    barriers        barriers that warps came through, each counted once a warp
    cycles a barrier = waited / barriers
    most of a warp  the largest ``waited`` of one warp

A warp that is last at every barrier waits little: what the others wait tells how uneven the work is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.analysis.counts import Figure, ratio, summed, warp_records

if TYPE_CHECKING:
    from tui_probe.trace.results import Result

_PROBE: Final = "barrier_wait"
RECORD: Final = np.dtype([("waited", "<u8"), ("barriers", "<u4"), ("threads", "<u4")])
"""What ``barrier_wait`` saves for each warp."""


@dataclass(frozen=True, slots=True)
class BarrierWaits:
    """Cycles and barriers of one launch. ``longest`` is the most that one warp waited in all."""

    waited: int
    barriers: int
    longest: int
    threads_missing: int

    @property
    def cycles_per_barrier(self) -> float | None:
        """Mean wait."""
        return ratio(self.waited, self.barriers)

    def figures(self) -> tuple[Figure, ...]:
        return (
            Figure("barriers", "barriers", self.barriers, ""),
            Figure("cycles_per_barrier", "cycles a barrier", self.cycles_per_barrier, ""),
            Figure("waited", "waited", self.waited, "cycles"),
            Figure("longest", "most of a warp", self.longest, "cycles"),
        )


def analyse(result: Result) -> BarrierWaits:
    """The waits of one launch; TraceError if map 0 holds no records of ``barrier_wait``."""
    sums = summed(result, RECORD, _PROBE)
    longest = int(warp_records(result, RECORD, _PROBE)["waited"].max())
    return BarrierWaits(**sums.totals, longest=longest, threads_missing=sums.threads_missing)
