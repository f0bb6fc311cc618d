"""Waits for asynchronous work: the cycles that warps spend at each place where they wait for it.

    waited          sum over warps of (clock after - clock before)                       SM clock cycles
    waits           how often warps came through, each counted once per warp
    cycles per wait = waited / waits

What is waited for is told by the instruction: phases of an ``mbarrier``, groups of ``cp.async``, of ``cp.async.bulk``,
of ``wgmma``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.analysis.by_line import CountsByLine, line_sums, record_of, totals, worst_of
from tui_probe.analysis.counts import ratio

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui_probe.analysis.by_line import LineSums
    from tui_probe.trace.results import Result

SITE: Final = record_of("waited", "waits")
"""What ``async_wait`` keeps for each place."""
KINDS: Final = {"mbarrier": "mbarrier", "cp.async.bulk": "bulk", "cp.async": "cp_async", "wgmma": "wgmma"}
"""What is waited for, by how the opcode begins; the first that fits."""


@dataclass(frozen=True, slots=True)
class AsyncWaits:
    """Cycles and waits of one launch or place. ``by_kind`` has the cycles of each kind that the kernel waits for."""

    waited: int
    waits: int
    by_kind: dict[str, int]
    threads_missing: int = 0

    @property
    def cycles_per_wait(self) -> float | None:
        """Mean wait."""
        return ratio(self.waited, self.waits)


def kind_of(opcode: str | None) -> str | None:
    """What an instruction waits for, one of ``KINDS``; None if its opcode is not known."""
    return next((kind for begin, kind in KINDS.items() if f"{opcode}.".startswith(f"{begin}.")), None)


def analyse(result: Result, sites: Sequence[int], folder: Path | None = None) -> CountsByLine[AsyncWaits]:
    """The waits of a launch by line; see :func:`by_line.line_sums`. Raises TraceError."""
    lines = line_sums(result, SITE, "async_wait", sites, folder)
    by_kind: dict[str, int] = {}
    for line in lines:
        if (kind := kind_of(line.opcode)) is not None:
            by_kind[kind] = by_kind.get(kind, 0) + line.sums["waited"]
    whole = AsyncWaits(**totals(lines, SITE), by_kind=by_kind)
    return CountsByLine(whole, lines, worst_of(lines, lambda line: line.sums["waited"] or None))


def of_line(line: LineSums) -> AsyncWaits:
    """The waits at one place."""
    kind = kind_of(line.opcode)
    return AsyncWaits(**line.sums, by_kind={kind: line.sums["waited"]} if kind else {})
