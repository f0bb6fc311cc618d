"""Divergence: how many lanes of a warp are active at its branches and its accesses to memory.

    branches, accesses    executed by a warp, once for each group of lanes that comes to it apart
    lanes per branch      sum of the active lanes / branches       32 where every warp is whole and stays together
    lanes per access      sum of the active lanes / accesses

Unit: lanes. The last warp of a block whose size is not a multiple of 32 has fewer from the start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.probekit.finding import Finding, Gain, brief_text, counted, derived, line_place, notable_lines
from tui_probe.probekit.lines import LineMeasure, LineRow, LineRows, LineSpec
from tui_probe.probekit.metric import Metric, metrics_by_line, never
from tui_probe.probekit.probe import Probe, Question, of_result, of_sites
from tui_probe.records.counter_sums import (
    CountsByLine,
    counts_by_line,
    line_sums,
    ratio,
    site_dtype,
    sum_records,
    sums_by_source,
)
from tui_probe.trace.launch_shape import WARP_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tui_probe.probekit.lines import LineValue
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.records.counter_sums import LineSums
    from tui_probe.trace.results import Result


RECORD: Final = np.dtype(
    {
        "names": ["branch_lanes", "access_lanes", "branches", "accesses", "threads"],
        "formats": ["<u8"] * 2 + ["<u4"] * 3,
        "offsets": [0, 8, 16, 20, 24],
        "itemsize": 32,
    }
)
"""Record of ``divergence`` per warp: sums over its lanes."""
SITE: Final = site_dtype("branches", "branch_lanes", "accesses", "access_lanes")
"""Record of ``divergence_by_line`` per instruction."""
METRICS: Final = (
    Metric("branches", "branches", standalone_title="branches of warps"),
    Metric("lanes_per_branch", "lanes per branch", better="higher", over_launches="mean", ideal=lambda _: WARP_SIZE),
    Metric("accesses", "accesses", standalone_title="memory accesses of warps"),
    Metric("lanes_per_access", "lanes per access", better="higher", over_launches="mean", ideal=lambda _: WARP_SIZE),
    Metric("branch_lanes", "lanes at branches", shown=never),
    Metric("access_lanes", "lanes at accesses", shown=never),
)
BY_LINE: Final = metrics_by_line(METRICS, "fewest lanes")
_FLAGGED_SHARE: Final = 0.1
"""The part of all lanes from which on idle ones stand out."""
_ADVICE: Final = "make all threads of a warp take the same branch: sort the work, or branch per warp"


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
    sums = sum_records(result, RECORD, "divergence")
    return Divergence(**sums.totals, threads_missing=sums.threads_missing)


def analyse_lines(result: Result, sites: Sequence[int], folder: Path | None = None) -> CountsByLine[Divergence]:
    """Return the counts by line of ``divergence_by_line``; see :func:`by_line.line_sums`. Raises TraceError."""
    lines = line_sums(result, SITE, "divergence_by_line", sites, folder)
    return counts_by_line(
        lines, SITE, lambda sums: Divergence(**sums, threads_missing=0), lanes_per_execution, lowest=True
    )


def executions_and_lanes(line: LineSums) -> tuple[int, int]:
    """Executions of a line by warps, and the sum of their active lanes."""
    return line.total("branches", "accesses"), line.total("branch_lanes", "access_lanes")


def lanes_per_execution(line: LineSums) -> float | None:
    """Mean number of active lanes of one line; None if it was never executed."""
    executions, lanes = executions_and_lanes(line)
    return ratio(lanes, executions)


def findings(of: ProbeResult, analysis: Divergence) -> Iterator[Finding]:
    """Yield the mean number of active lanes."""
    del of
    yield _active_lanes(analysis, "divergence")


def findings_by_line(of: ProbeResult, analysis: CountsByLine[Divergence]) -> Iterator[Finding]:
    """The worst lines of source, then all."""
    del of
    lanes = WARP_SIZE * (analysis.whole.branches + analysis.whole.accesses)
    lines = sums_by_source(analysis.lines, _idle_lanes)
    all_lines = _active_lanes(analysis.whole, "")
    yield from notable_lines(
        (_line_lanes(line, lanes) for line in lines if _idle_lanes(line)), much=all_lines.stands_out
    )
    yield all_lines


def _line_lanes(line: LineSums, lanes: int) -> Finding:
    """``lanes`` are those of all executions of the kernel."""
    idle, mean = _idle_lanes(line), lanes_per_execution(line)
    text = f"{line_place(line)}, {mean or 0:.1f} of {WARP_SIZE} lanes active"
    values = {"lanes_per_execution": derived(mean, "lanes", WARP_SIZE), "idle_lanes": counted(idle, "lanes", 0)}
    return Finding("worst_line", "idle lanes", text, "lines", line.line, idle > _FLAGGED_SHARE * lanes, values=values,
                   gain=Gain(idle, lanes, "lanes"), advice=_ADVICE,
                   brief=brief_text(line.opcode, f"{mean or 0:.1f} of {WARP_SIZE} lanes"))  # fmt: skip


def _idle_lanes(line: LineSums) -> int:
    executions, lanes = executions_and_lanes(line)
    return WARP_SIZE * executions - lanes


def _active_lanes(analysis: Divergence, asks: str) -> Finding:
    means = (("per branch", analysis.lanes_per_branch), ("per access", analysis.lanes_per_access))
    parts = [f"{mean:.1f} of {WARP_SIZE} {text}" for text, mean in means if mean is not None]
    executions, lanes = analysis.branches + analysis.accesses, analysis.branch_lanes + analysis.access_lanes
    much = lanes < (1 - _FLAGGED_SHARE) * WARP_SIZE * executions
    asks = asks if lanes < WARP_SIZE * executions else ""
    values = {
        "lanes_per_branch": derived(analysis.lanes_per_branch, "lanes", WARP_SIZE),
        "lanes_per_access": derived(analysis.lanes_per_access, "lanes", WARP_SIZE),
    }
    text = ", ".join(parts) or "no branch or memory access was executed"
    return Finding("lanes", "active lanes", text, stands_out=much, asks=asks, values=values)


def _rows(of: ProbeResult, counted: CountsByLine[Divergence]) -> LineRows:
    del of
    rows = []
    for line in counted.lines:
        executions, lanes = executions_and_lanes(line)
        values: dict[str, LineValue] = {
            "lanes per execution": lanes_per_execution(line),
            "executions": executions,
            "idle lanes": WARP_SIZE * executions - lanes,
            "lanes": lanes,
        }
        rows.append((lanes - WARP_SIZE * executions, LineRow(line.line, line.source, values)))
    rows.sort(key=lambda pair: pair[0])
    return LineRows([row for _, row in rows], ["idle lanes: inactive lanes of a warp, summed over all executions"])


LINES: Final = LineSpec(
    (
        LineMeasure("lanes per execution", "ratio", ("lanes", "executions"), better="higher"),
        LineMeasure("executions", "sum", better="neither"),
        LineMeasure("idle lanes", "sum"),
        LineMeasure("lanes", "sum", better="neither"),
    ),
    "lanes per execution",
    _rows,
)


PROBES: Final = (
    Probe(name="divergence", analyse=of_result(analyse), metrics=METRICS, findings=findings),
    Probe(
        name="divergence_by_line",
        analyse=of_sites(analyse_lines),
        metrics=BY_LINE,
        question=Question("divergence", "at which lines are lanes of a warp idle?", 70, r"@|\bbra\b"),
        findings=findings_by_line,
        lines=LINES,
    ),
)
