"""Divergence: how many lanes of a warp are active at its branches and its accesses to memory.

    branches, accesses    executed by a warp, once for each group of lanes that comes to it apart
    lanes per branch      sum of the active lanes / branches       32 where every warp is whole and stays together
    lanes per access      sum of the active lanes / accesses

Unit: lanes. The last warp of a block whose size is not a multiple of 32 has fewer from the start.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.errors import PtxError
from tui_probe.input_limits import PTX_TEXT
from tui_probe.probekit.finding import Finding, Gain, brief_text, counted, derived, line_place, notable_lines
from tui_probe.probekit.lines import LineMeasure, LineRow, LineRows, LineSpec
from tui_probe.probekit.metric import Metric, metrics_by_line, show_never
from tui_probe.probekit.probe import Probe, Question, analysis_of_result, analysis_of_sites
from tui_probe.ptx.control_flow import Flow, dominators_of, natural_loops
from tui_probe.ptx.parser import parse
from tui_probe.records.counter_sums import (
    CountsByLine,
    counts_by_line,
    line_sums,
    line_totals,
    ratio,
    site_dtype,
    sum_records,
    sums_by_source,
)
from tui_probe.trace.launch_shape import WARP_SIZE
from tui_probe.trace.plain_file import read_within

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from tui_probe.probekit.lines import LineValue
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.ptx.tree import Instruction
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
    Metric("branch_lanes", "lanes at branches", is_shown=show_never),
    Metric("access_lanes", "lanes at accesses", is_shown=show_never),
)
BY_LINE: Final = metrics_by_line(METRICS, "fewest lanes")
_FLAGGED_SHARE: Final = 0.1
"""The part of all lanes from which on idle ones stand out."""
_ISSUES: Final = {
    "cp": frozenset({"bulk"}),
    "mbarrier": frozenset({"init", "arrive", "arrive_drop", "expect_tx", "complete_tx"}),
    "tcgen05": frozenset({"mma", "cp", "commit"}),
    "clusterlaunchcontrol": frozenset({"try_cancel"}),
}
"""Modifiers with which an opcode starts asynchronous work, or signals it, for the whole warp."""
_ELECTED: Final = "code in which one lane issues asynchronous work"
_ADVICE: Final = "make all threads of a warp take the same branch: sort the work, or branch per warp"


@dataclass(frozen=True, slots=True)
class Divergence:
    """Executions and active lanes of one launch."""

    branch_lanes: int
    access_lanes: int
    branches: int
    accesses: int
    threads_missing: int
    elected: frozenset[int] = field(default=frozenset(), compare=False)
    """Lines of PTX that one lane executes to issue asynchronous work: its idle lanes are not avoidable."""

    @classmethod
    def of_sums(
        cls, sums: Mapping[str, int], threads_missing: int = 0, elected: frozenset[int] = frozenset()
    ) -> Divergence:
        """The counts of a launch from the sums of its records, by field."""
        branch_lanes, access_lanes = sums["branch_lanes"], sums["access_lanes"]
        return cls(branch_lanes, access_lanes, sums["branches"], sums["accesses"], threads_missing, elected)

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
    return Divergence.of_sums(sums.totals, sums.threads_missing)


def analyse_lines(result: Result, sites: Sequence[int], folder: Path | None = None) -> CountsByLine[Divergence]:
    """Counts by line of ``divergence_by_line``; see :func:`counter_sums.line_sums`. Raises TraceError."""
    lines = line_sums(result, SITE, "divergence_by_line", sites, folder)
    elected = elected_lines(folder, {line.line: executions_and_lanes(line) for line in lines})
    return counts_by_line(
        lines,
        SITE,
        partial(Divergence.of_sums, elected=elected),
        lanes_per_execution,
        worst_is_lowest=True,
    )


def executions_and_lanes(line: LineSums) -> tuple[int, int]:
    """Executions of a line by warps, and the sum of their active lanes."""
    return line.total("branches", "accesses"), line.total("branch_lanes", "access_lanes")


def lanes_per_execution(line: LineSums) -> float | None:
    """Mean number of active lanes of one line; None if it was never executed."""
    executions, lanes = executions_and_lanes(line)
    return ratio(lanes, executions)


def findings(probe_result: ProbeResult, analysis: Divergence) -> Iterator[Finding]:
    """Yield the mean number of active lanes."""
    del probe_result
    yield _active_lanes_finding(analysis, "divergence")


def findings_by_line(probe_result: ProbeResult, analysis: CountsByLine[Divergence]) -> Iterator[Finding]:
    """The worst lines of source, then all. Lanes that are idle while one lane issues copies are not avoidable."""
    del probe_result
    lanes = WARP_SIZE * (analysis.analysis.branches + analysis.analysis.accesses)
    avoidable_lines = _without_elected(analysis)
    lines = sums_by_source(avoidable_lines, _idle_lanes)
    all_lines = _active_lanes_finding(
        analysis.analysis, "", None if len(avoidable_lines) == len(analysis.lines) else _total(avoidable_lines)
    )
    yield from notable_lines(
        (_line_finding(line, lanes) for line in lines if _idle_lanes(line)), has_large_loss=all_lines.stands_out
    )
    yield all_lines


def _line_finding(line: LineSums, lanes: int) -> Finding:
    """``lanes`` are those of all executions of the kernel."""
    idle_lanes, mean = _idle_lanes(line), lanes_per_execution(line)
    text = f"{line_place(line)}, {mean or 0:.1f} of {WARP_SIZE} lanes active"
    values = {"lanes_per_execution": derived(mean, "lanes", WARP_SIZE), "idle_lanes": counted(idle_lanes, "lanes", 0)}
    return Finding(
        "worst_line",
        "idle lanes",
        text,
        "lines",
        line.line,
        stands_out=idle_lanes > _FLAGGED_SHARE * lanes,
        values=values,
        gain=Gain(idle_lanes, lanes, "lanes"),
        advice=_ADVICE,
        brief=brief_text(line.opcode, f"{mean or 0:.1f} of {WARP_SIZE} lanes"),
    )


def _idle_lanes(line: LineSums) -> int:
    executions, lanes = executions_and_lanes(line)
    return WARP_SIZE * executions - lanes


def _without_elected(analysis: CountsByLine[Divergence]) -> list[LineSums]:
    """The lines without those that one lane executes to issue asynchronous work."""
    return [line for line in analysis.lines if line.line not in analysis.analysis.elected]


def _total(lines: Sequence[LineSums]) -> Divergence:
    return Divergence.of_sums(line_totals(lines, SITE))


def _means_text(analysis: Divergence) -> str:
    """``32.0 of 32 per branch, 25.9 of 32 per access``; "" if nothing was executed."""
    lane_means = (("per branch", analysis.lanes_per_branch), ("per access", analysis.lanes_per_access))
    return ", ".join(f"{mean:.1f} of {WARP_SIZE} {text}" for text, mean in lane_means if mean is not None)


def _active_lanes_finding(analysis: Divergence, question: str, avoidable: Divergence | None = None) -> Finding:
    """``avoidable``: without code in which one lane issues asynchronous work, if there is any."""
    rated = avoidable or analysis
    executions, lanes = rated.branches + rated.accesses, rated.branch_lanes + rated.access_lanes
    is_flagged = lanes < (1 - _FLAGGED_SHARE) * WARP_SIZE * executions
    question = question if lanes < WARP_SIZE * executions else ""
    values = {
        "lanes_per_branch": derived(analysis.lanes_per_branch, "lanes", WARP_SIZE),
        "lanes_per_access": derived(analysis.lanes_per_access, "lanes", WARP_SIZE),
    }
    text = _means_text(analysis) or "no branch or memory access was executed"
    if avoidable is not None:
        text += f"; {_means_text(avoidable) or 'nothing else'} without {_ELECTED}"
    return Finding("lanes", "active lanes", text, stands_out=is_flagged, next_question=question, values=values)


def _line_rows(probe_result: ProbeResult, analysis: CountsByLine[Divergence]) -> LineRows:
    del probe_result
    rows = []
    for line in analysis.lines:
        executions, lanes = executions_and_lanes(line)
        values: dict[str, LineValue] = {
            "lanes per execution": lanes_per_execution(line),
            "executions": executions,
            "idle lanes": WARP_SIZE * executions - lanes,
            "lanes": lanes,
        }
        is_elected = line.line in analysis.analysis.elected
        rows.append(((is_elected, lanes - WARP_SIZE * executions), LineRow(line.line, line.source, values)))
    rows.sort(key=lambda pair: pair[0])
    notes = ["idle lanes: inactive lanes of a warp, summed over all executions"]
    if analysis.analysis.elected:
        lines = ", ".join(map(str, sorted(analysis.analysis.elected)))
        notes.append(f"last rows: {_ELECTED}, so idle lanes are not avoidable (PTX lines {lines})")
    return LineRows([row for _, row in rows], notes)


def elected_lines(folder: Path | None, counts: Mapping[int, tuple[int, int]]) -> frozenset[int]:
    """The lines of pruned.ptx in code that one lane runs to issue asynchronous work, such as the loop of a producer;
    none without that file. The other lanes have nothing to do, and no other order of the data makes them active.

    It is a loop with an issue in which every counted instruction had one active lane, code of one lane that is on all
    paths to an issue, and what only follows such code. ``counts`` are executions and the sum of active lanes by line.
    """
    one_lane_lines = {line for line, (executions, lanes) in counts.items() if 0 < executions == lanes}
    flow = _flow_in(folder) if folder is not None and one_lane_lines else None
    if flow is None:
        return frozenset()
    multi_lane_lines = {line for line, (executions, lanes) in counts.items() if lanes > executions}
    lines = [{instruction.span.line for instruction in block} for block in flow.blocks]
    one_lane_blocks = {
        number for number, block in enumerate(lines) if block & one_lane_lines and not block & multi_lane_lines
    }
    multi_lane_blocks = {number for number, block in enumerate(lines) if block & multi_lane_lines}
    elected = _elected_blocks(flow, one_lane_blocks, multi_lane_blocks)
    return frozenset(line for block in elected for line in lines[block] & one_lane_lines)


def _elected_blocks(flow: Flow, one_lane_blocks: Collection[int], multi_lane_blocks: Collection[int]) -> set[int]:
    """The blocks of one lane on all paths to an issue, in a loop of one lane with one, or behind only such blocks."""
    issues = {block for block, code in enumerate(flow.blocks) if any(map(_is_issue, code))} - set(multi_lane_blocks)
    successors = [flow.successors(block) for block in range(len(flow.blocks))]
    loops = natural_loops(successors).values()
    in_loops = (loop for loop in loops if loop & issues and not loop.intersection(multi_lane_blocks))
    elected = dominators_of(successors, issues).union(*in_loops).intersection(one_lane_blocks)
    for block in sorted(set(one_lane_blocks) - elected):  # what only follows such code, in the order of the text
        predecessors = {index for index, targets in enumerate(successors) if block in targets}
        elected |= {block} if predecessors and predecessors <= elected else set()
    return elected


def _is_issue(instruction: Instruction) -> bool:
    return bool(_ISSUES.get(instruction.opcode, frozenset()).intersection(instruction.modifiers))


def _flow_in(folder: Path) -> Flow | None:
    """The code of the kernel; None if it has no PTX, or the file is damaged."""
    try:
        entries = parse(read_within(folder / "pruned.ptx", PTX_TEXT).decode("utf-8", "replace")).entries()
        return Flow.from_function(entries[0]) if entries else None
    except (OSError, PtxError):
        return None


LINES: Final = LineSpec(
    (
        LineMeasure("lanes per execution", "ratio", ("lanes", "executions"), better="higher"),
        LineMeasure("executions", "sum", better="neither"),
        LineMeasure("idle lanes", "sum"),
        LineMeasure("lanes", "sum", better="neither"),
    ),
    "lanes per execution",
    _line_rows,
)


PROBES: Final = (
    Probe(name="divergence", analyse=analysis_of_result(analyse), metrics=METRICS, findings=findings),
    Probe(
        name="divergence_by_line",
        analyse=analysis_of_sites(analyse_lines),
        metrics=BY_LINE,
        question=Question("divergence", "at which lines are lanes of a warp idle?", 70, r"@|\bbra\b"),
        findings=findings_by_line,
        lines=LINES,
    ),
)
