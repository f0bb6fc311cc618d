"""Shared memory bank conflicts: the passes that loads and stores need, by the rule of 32 banks of 4-byte words.

    passes of an access     max over banks of the distinct 4-byte words that its active lanes touch in the bank
    fewest passes           distinct words / 32, rounded up
    conflicts               passes - fewest passes
    passes per access        sum of passes / accesses: 1 at best for 4 bytes per lane, 2 for 8, 4 for 16
    conflict degree         passes / (passes - conflicts): how many times slower than without conflicts

Unit: passes, which hardware counters call wavefronts. The same word in several lanes is no conflict.
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

RECORD: Final = np.dtype([(name, "<u4") for name in ("accesses", "passes", "conflicts", "threads")])
"""What ``smem_conflicts`` saves for each warp."""
SITE: Final = record_of("accesses", "passes", "conflicts")
"""What ``smem_conflicts_by_line`` keeps for each instruction."""


@dataclass(frozen=True, slots=True)
class BankConflicts:
    """Accesses, passes and conflicts of one launch."""

    accesses: int
    passes: int
    conflicts: int
    threads_missing: int

    @property
    def passes_per_access(self) -> float | None:
        """Mean passes of an access."""
        return ratio(self.passes, self.accesses)

    @property
    def degree(self) -> float | None:
        """Passes over the fewest possible."""
        return ratio(self.passes, self.passes - self.conflicts)


def analyse(result: Result) -> BankConflicts:
    """The conflicts of one launch; TraceError if map 0 holds no records of ``smem_conflicts``."""
    sums = summed(result, RECORD, "smem_conflicts")
    return BankConflicts(**sums.totals, threads_missing=sums.threads_missing)


def analyse_lines(result: Result, sites: Sequence[int], folder: Path | None = None) -> CountsByLine[BankConflicts]:
    """The same by line, of ``smem_conflicts_by_line``; see :func:`by_line.line_sums`. Raises TraceError."""
    lines = line_sums(result, SITE, "smem_conflicts_by_line", sites, folder)
    whole = BankConflicts(**totals(lines, SITE), threads_missing=0)
    return CountsByLine(whole, lines, worst_of(lines, lambda line: of_line(line).degree))


def of_line(line: LineSums) -> BankConflicts:
    """The conflicts of one line."""
    return BankConflicts(**line.sums, threads_missing=0)
