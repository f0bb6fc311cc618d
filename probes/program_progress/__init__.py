"""Progress through the program: where the warps of a launch spent their time, and where they were at a given time.

    a step   from a warp's entering a basic block to its entering the next one; the last from there to its exit
    cycles   of a block: the sum of its steps over all warps, with all waits of the warp in it
    visits   how often warps entered it

A warp that entered more blocks than it kept is known up to the last one kept: the rest of its time is ``unknown``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.probekit.finding import SHARE, Finding, counted, percent, place, timed
from tui_probe.probekit.lines import LineMeasure, LineRow, LineRows, LineSpec, share_text
from tui_probe.probekit.metric import Metric, show_nonzero
from tui_probe.probekit.probe import Probe, Question, Stamps
from tui_probe.records import warp_pace
from tui_probe.records.counter_sums import ratio
from tui_probe.records.probed_sites import probed_sites
from tui_probe.records.warp_pace import launch_times

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.records.warp_pace import WarpProgress
    from tui_probe.trace.results import Result
    from tui_probe.trace.source_lines import SourceLine


@dataclass(frozen=True, slots=True)
class BlockTime:
    """Cycles of one basic block, whose first instruction is at ``line`` of pruned.ptx."""

    line: int
    source: SourceLine | None
    visits: int
    warps: int
    cycles: int

    @property
    def cycles_per_visit(self) -> float | None:
        return ratio(self.cycles, self.visits)


@dataclass(frozen=True, slots=True)
class ProgramProgress:
    """One launch. ``blocks`` by falling cycles; ``unknown`` cycles of warps that entered more blocks than they kept."""

    progress: WarpProgress
    blocks: tuple[BlockTime, ...]
    unknown: int
    threads_missing: int = 0

    @property
    def cycles(self) -> int:
        """Cycles of all warps together."""
        return self.unknown + sum(block.cycles for block in self.blocks)

    def where(self, cycles: int) -> NDArray[np.int64]:
        """The line of the block that each warp was in, ``cycles`` after its own start: shape (blocks, warps per block).

        0 before its first block, -1 after its end, -2 where it is not known.
        """
        progress = self.progress
        record_cycles = np.where(_recorded_mask(progress), _cycles_since_start(progress), np.iinfo(np.int64).max)
        record_number = (record_cycles <= cycles).sum(axis=2) - 1
        lines = np.take_along_axis(progress.pace["line"], np.maximum(record_number, 0)[..., np.newaxis], axis=2)[..., 0]
        line_at = np.where(record_number < 0, 0, lines.astype(np.int64))
        line_at[_cut_off_mask(progress) & (record_number == progress.recorded_arrivals - 1)] = -2
        line_at[cycles >= progress.warps["elapsed"].astype(np.int64)] = -1
        line_at[~progress.has_record] = -2
        return line_at


def analyse(result: Result, clock_khz: int | None = None, folder: Path | None = None) -> ProgramProgress:
    """The blocks of one launch; TraceError if the maps are not those of this probe.

    ``folder`` is that of the kernel in the trace, for the source lines.
    """
    progress = warp_pace.analyse(result, clock_khz)
    sites = probed_sites(folder)
    is_recorded, record_cycles = _recorded_mask(progress), _cycles_since_start(progress)
    next_cycles = np.concatenate((record_cycles[..., 1:], np.zeros_like(record_cycles[..., :1])), axis=-1)
    is_last = np.arange(is_recorded.shape[2]) == progress.recorded_arrivals[..., np.newaxis] - 1
    end_cycles = progress.warps["elapsed"].astype(np.int64)
    is_cut_off = _cut_off_mask(progress)
    step_cycles = np.where(is_last, end_cycles[..., np.newaxis], next_cycles) - record_cycles
    unknown = int(step_cycles[is_last & is_cut_off[..., np.newaxis]].sum())
    step_cycles[is_last & is_cut_off[..., np.newaxis]] = 0
    blocks = []
    for line in np.unique(progress.pace["line"][is_recorded]).tolist():
        is_block = is_recorded & (progress.pace["line"] == line)
        source = sites.following(line)
        blocks.append(
            BlockTime(
                line, source, int(is_block.sum()), int(is_block.any(axis=2).sum()), int(step_cycles[is_block].sum())
            )
        )
    blocks.sort(key=lambda block: (-block.cycles, block.line))
    return ProgramProgress(progress, tuple(blocks), unknown)


def _recorded_mask(progress: WarpProgress) -> NDArray[np.bool_]:
    mask: NDArray[Any] = np.arange(progress.pace.shape[2]) < progress.recorded_arrivals[..., np.newaxis]
    return mask


def _cut_off_mask(progress: WarpProgress) -> NDArray[np.bool_]:
    """Warps that entered more blocks than they kept, or whose number is not known."""
    mask: NDArray[np.bool_] = (progress.arrival_counts > progress.recorded_arrivals) | (progress.arrival_counts < 0)
    return mask


def _cycles_since_start(progress: WarpProgress) -> NDArray[np.int64]:
    """Cycles from the start of each warp to each of its records."""
    return warp_pace.cycles_since_start(progress.pace["clock"], progress.warps["start"].astype(np.uint32))


def _warp_count(analysis: ProgramProgress) -> int:
    return int(analysis.progress.has_record.sum())


def _blocks_entered(analysis: ProgramProgress) -> int:
    return int(np.maximum(analysis.progress.arrival_counts, 0).sum())


def _blocks_kept(analysis: ProgramProgress) -> int:
    return int(analysis.progress.recorded_arrivals.sum())


def _longest_line(analysis: ProgramProgress) -> int | None:
    return analysis.blocks[0].line if analysis.blocks else None


def _longest_share(analysis: ProgramProgress) -> float | None:
    return ratio(analysis.blocks[0].cycles, analysis.cycles) if analysis.blocks else None


def _cycles_per_visit(analysis: ProgramProgress) -> float | None:
    return analysis.blocks[0].cycles_per_visit if analysis.blocks else None


def _unknown_share(analysis: ProgramProgress) -> float | None:
    return ratio(analysis.unknown, analysis.cycles)


def _is_incomplete(analysis: ProgramProgress, value: Any) -> bool:
    del value
    return _blocks_kept(analysis) < _blocks_entered(analysis)


METRICS: Final = (
    Metric("warps", "warps", read=_warp_count),
    Metric("blocks_entered", "blocks entered", read=_blocks_entered),
    Metric("blocks_kept", "kept", read=_blocks_kept, is_shown=_is_incomplete),
    Metric("longest_line", "most time at PTX line", place=True, over_launches="none", read=_longest_line),
    Metric("longest_share", "share", over_launches="mean", read=_longest_share),
    Metric("cycles_per_visit", "per visit", "cycles", better="lower", over_launches="mean", read=_cycles_per_visit),
    Metric("unknown_share", "not known", over_launches="mean", read=_unknown_share, is_shown=show_nonzero),
)


def findings(probe_result: ProbeResult, analysis: ProgramProgress) -> Iterator[Finding]:
    """The hottest block, and the time that is not known."""
    del probe_result
    if analysis.blocks:
        hottest = analysis.blocks[0]
        text = f"basic block at {place(hottest.line, hottest.source)}"
        text += f", {percent(hottest.cycles, analysis.cycles)} of all warp cycles"
        text += f", {units.count(round(hottest.cycles_per_visit or 0))} cycles per visit"
        share = hottest.cycles / analysis.cycles if analysis.cycles else None
        values = {"share": timed(share, SHARE), "visits": counted(hottest.visits)}
        yield Finding("hottest", "most time", text, "lines", hottest.line, values=values)
    if analysis.unknown:
        text = (
            f"{percent(analysis.unknown, analysis.cycles)} of the time is unknown: warps entered more basic blocks than"
            f" were recorded"
        )
        yield Finding("unknown", "not known", text, "lines", values={"unknown": timed(analysis.unknown)})


def _line_rows(probe_result: ProbeResult, analysis: ProgramProgress) -> LineRows:
    del probe_result
    rows = [
        LineRow(
            block.line,
            block.source,
            {
                "share": share_text(block.cycles, analysis.cycles),
                "cycles": block.cycles,
                "visits": block.visits,
                "cycles per visit": block.cycles_per_visit,
                "warps": block.warps,
            },
        )
        for block in analysis.blocks
    ]
    notes = ["one row per basic block, at its first line; cycles are summed over all warps"]
    if analysis.unknown:
        part = share_text(analysis.unknown, analysis.cycles)
        notes.append(f"{part} of the time is unknown: warps entered more basic blocks than were recorded")
    return LineRows(rows, notes)


LINES: Final = LineSpec(
    (
        LineMeasure("share"),
        LineMeasure("cycles", "sum"),
        LineMeasure("visits", "sum", better="neither"),
        LineMeasure("cycles per visit", "ratio", ("cycles", "visits")),
        LineMeasure("warps", better="neither"),
    ),
    "cycles",
    _line_rows,
)


PROBES: Final = (
    Probe(
        name="program_progress",
        analyse=lambda probe_result: analyse(probe_result.result, probe_result.clock_khz, probe_result.kernel.folder),
        metrics=METRICS,
        question=Question("hot code", "which parts of the code take most time?", 30),
        findings=findings,
        lines=LINES,
        stamps=lambda probe_result: Stamps(*launch_times(probe_result.result, probe_result.clock_khz)),
    ),
)
