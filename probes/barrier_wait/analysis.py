"""Barrier waits: the cycles that warps spend at barriers.

    waited          sum over warps and barriers of (clock after - clock before)          SM clock cycles
    barriers        barriers that warps came through, each counted once per warp
    cycles per barrier = waited / barriers
    most of a warp  the largest ``waited`` of one warp

A warp that is last at every barrier waits little: what the others wait tells how uneven the work is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.analysis.by_line import CountsByLine, line_sums, record_of, totals, worst_of
from tui_probe.analysis.counts import ratio, summed, sums_of, warp_records

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui_probe.analysis.by_line import LineSums
    from tui_probe.trace.results import Result

_PROBE: Final = "barrier_wait"
RECORD: Final = np.dtype([("waited", "<u8"), ("barriers", "<u4"), ("threads", "<u4")])
"""What ``barrier_wait`` saves for each warp."""
REDUCED: Final = sums_of(RECORD, "longest")
"""What is kept of a launch: sums, and the most that one warp waited."""
SITE: Final = record_of("waited", "barriers")
"""What ``barrier_wait_by_line`` keeps for each barrier."""


@dataclass(frozen=True, slots=True)
class BarrierWaits:
    """Cycles and barriers of one launch.

    ``longest`` is the most that one warp waited in all; None if it was counted by barrier and not by warp.
    """

    waited: int
    barriers: int
    longest: int | None
    threads_missing: int

    @property
    def cycles_per_barrier(self) -> float | None:
        """Mean wait."""
        return ratio(self.waited, self.barriers)


def analyse(result: Result) -> BarrierWaits:
    """The waits of one launch; TraceError if map 0 holds no records of ``barrier_wait``."""
    sums = summed(result, RECORD, _PROBE, REDUCED)
    left = result.reduced(0, REDUCED)
    by_warp = warp_records(result, RECORD, _PROBE)["waited"] if left is None else left.records["longest"]
    longest = int(by_warp.max())
    return BarrierWaits(**sums.totals, longest=longest, threads_missing=sums.threads_missing)


def analyse_lines(result: Result, sites: Sequence[int], folder: Path | None = None) -> CountsByLine[BarrierWaits]:
    """The same by line, of ``barrier_wait_by_line``; see :func:`by_line.line_sums`. Raises TraceError."""
    lines = line_sums(result, SITE, "barrier_wait_by_line", sites, folder)
    whole = BarrierWaits(**totals(lines, SITE), longest=None, threads_missing=0)
    return CountsByLine(whole, lines, worst_of(lines, lambda line: line.sums["waited"] or None))


def of_line(line: LineSums) -> BarrierWaits:
    """The waits at one barrier."""
    return BarrierWaits(**line.sums, longest=None, threads_missing=0)
