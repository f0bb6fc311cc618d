"""What a probe found of single lines of PTX: rows of a table, for each probe that tells lines apart."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from tui_probe.analysis import (
    barrier_wait,
    divergence,
    dmat,
    gmem_bytes,
    gmem_sectors,
    inst_mix,
    nan_check,
    program_progress,
    smem_conflicts,
    tensorop_count,
    warp_progress,
)
from tui_probe.analysis.accesses import read_accesses
from tui_probe.analysis.counts import ratio
from tui_probe.analysis.known_sites import sites_of
from tui_probe.render.kept import sampled_words
from tui_probe.render.units import NOT_MEASURED
from tui_probe.trace.allocations import LaunchMemory
from tui_probe.trace.results import WARP_SIZE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tui_probe.render.probe_results import ProbeResult
    from tui_probe.trace.source_lines import SourceLine

Value = int | float | str | None
LOWEST_IS_WORST: Final = ("lanes an execution",)
"""The columns in which the smallest number is the one to look at."""


@dataclass(frozen=True, slots=True)
class LineRow:
    """A line of pruned.ptx, 0 if the row is of none, its source, and what was found of it by the column's name."""

    line: int
    source: SourceLine | None
    found: dict[str, Value]


@dataclass(frozen=True, slots=True)
class LineRows:
    """The rows in the order in which they matter, and what must be said of all of them.

    ``measure`` is the column that says most of a line. ``silent`` are lines that were certainly not executed.
    """

    rows: list[LineRow]
    measure: str
    notes: list[str] = field(default_factory=list)
    silent: tuple[int, ...] = ()


def _of_dmat(of: ProbeResult, folder: Path | None) -> LineRows:
    accesses = read_accesses(of.result, compact=False, memory=LaunchMemory(), simulated=of.simulated)
    found = dmat.by_line(accesses, folder)
    rows = [
        LineRow(
            each.line,
            each.code.source if each.code else None,
            {
                "requests": each.requests,
                "sectors": each.sectors,
                "sectors a request": each.sectors_per_request,
                "used": None if each.used is None else f"{each.used:.0%}",
                "accesses": each.accesses,
                "bytes": each.bytes,
            },
        )
        for each in found.rows
    ]
    notes = ["used: bytes asked for, of the 32 bytes of each sector that was moved"]
    if found.kept != found.accesses:
        notes.append(f"of the first {accesses.capacity} accesses of each thread only")
    return LineRows(rows, "sectors a request", notes, found.silent)


def _of_program(of: ProbeResult, folder: Path | None) -> LineRows:
    found = program_progress.analyse(of.result, of.clock_khz, folder)
    rows = [
        LineRow(
            each.line,
            each.source,
            {
                "share": _share(each.cycles, found.cycles),
                "cycles": each.cycles,
                "visits": each.visits,
                "cycles a visit": each.cycles_per_visit,
                "warps": each.warps,
            },
        )
        for each in found.blocks
    ]
    notes = ["a basic block from its first line on; cycles of all warps together"]
    if found.unknown:
        notes.append(f"{_share(found.unknown, found.cycles)} of the time is not known: more blocks than a warp keeps")
    return LineRows(rows, "cycles", notes)


def _of_loops(of: ProbeResult, folder: Path | None) -> LineRows:
    found = warp_progress.analyse(of.result, of.clock_khz)
    known = sites_of(folder)
    rows = [
        LineRow(
            each.line,
            known.following(each.line),
            {
                "iterations": each.iterations,
                "cycles an iteration": each.cycles_per_iteration,
                "cycles": each.cycles,
                "warps": each.warps,
            },
        )
        for each in sorted(found.loops, key=lambda loop: -loop.cycles)
    ]
    return LineRows(rows, "cycles", ["loops, by the line of their first instruction"])


def _of_nan_check(of: ProbeResult, folder: Path | None) -> LineRows:
    found = nan_check.analyse(of.result, folder)
    rows = [
        LineRow(
            each.line,
            each.source,
            {
                "value": each.words,
                "block": ",".join(map(str, each.block)),
                "thread": ",".join(map(str, each.thread)),
                "address": f"{each.address:#x}",
            },
        )
        for each in found.found
    ]
    rows += [LineRow(each.line, each.source, {"value": "not looked at"}) for each in found.unchecked]
    return LineRows(rows, "value", [f"stores of NaN or infinity: {found.stores}; the first of each warp, by time"])


def _sites(of: ProbeResult) -> tuple[int, ...]:
    return of.kernel.info.sites.get(0, ()) if of.kernel.info else ()


def _of_bytes(of: ProbeResult, folder: Path | None) -> LineRows:
    lines = gmem_bytes.analyse_lines(of.result, _sites(of), folder).lines
    found = [(line, gmem_bytes.bytes_of(line)) for line in lines]
    known = [moved for _, moved in found if moved is not None]
    whole = sum(known) if len(known) == len(found) else None
    rows = []
    for line, moved in sorted(found, key=lambda pair: -(pair[1] or 0)):
        share = None if moved is None or whole is None else _share(moved, whole)
        rows.append(LineRow(line.line, line.source, {"share": share, "bytes": moved}))
    return LineRows(rows, "bytes", [] if whole is not None else [f"{NOT_MEASURED}: copies by tensor map name no size"])


def _of_sectors(of: ProbeResult, folder: Path | None) -> LineRows:
    found = gmem_sectors.analyse_lines(of.result, _sites(of), folder).lines
    rows = []
    for each in sorted(found, key=lambda line: -gmem_sectors.requests_and_sectors(line)[1]):
        requests, sectors = gmem_sectors.requests_and_sectors(each)
        values: dict[str, Value] = {
            "sectors a request": gmem_sectors.sectors_per_request(each),
            "requests": requests,
            "sectors": sectors,
        }
        if not gmem_sectors.is_counted(each):
            values = dict.fromkeys(values)
        rows.append(LineRow(each.line, each.source, values))
    known = all(map(gmem_sectors.is_counted, found))
    return LineRows(
        rows, "sectors a request", [] if known else [f"{NOT_MEASURED}: wmma and generic accesses are not counted"]
    )


def _of_conflicts(of: ProbeResult, folder: Path | None) -> LineRows:
    lines = smem_conflicts.analyse_lines(of.result, _sites(of), folder).lines
    found = [(line, smem_conflicts.of_line(line)) for line in lines]
    rows = [
        LineRow(
            line.line,
            line.source,
            {
                "degree": each.degree,
                "conflicts": each.conflicts,
                "accesses": each.accesses,
                "passes an access": each.passes_per_access,
                "passes": each.passes,
            },
        )
        for line, each in sorted(found, key=lambda pair: (-pair[1].conflicts, -pair[1].passes))
    ]
    return LineRows(
        rows, "conflicts", ["conflicts: passes beyond the fewest possible; degree: passes over the fewest possible"]
    )


def _of_divergence(of: ProbeResult, folder: Path | None) -> LineRows:
    rows = []
    for each in divergence.analyse_lines(of.result, _sites(of), folder).lines:
        executions, lanes = divergence.executions_and_lanes(each)
        found: dict[str, Value] = {
            "lanes an execution": divergence.lanes_per_execution(each),
            "executions": executions,
            "idle lanes": WARP_SIZE * executions - lanes,
            "lanes": lanes,
        }
        rows.append((lanes - WARP_SIZE * executions, LineRow(each.line, each.source, found)))
    rows.sort(key=lambda pair: pair[0])
    notes = ["idle lanes: those of 32 that were not active, of all executions"]
    return LineRows([row for _, row in rows], "lanes an execution", notes)


def _of_matrices(of: ProbeResult, folder: Path | None) -> LineRows:
    lines = tensorop_count.analyse_lines(of.result, _sites(of), folder).lines
    whole = sum(map(tensorop_count.multiply_adds_of, lines))
    rows = [
        LineRow(
            line.line,
            line.source,
            {
                "share": _share(tensorop_count.multiply_adds_of(line), whole),
                "multiply-adds": tensorop_count.multiply_adds_of(line),
                "instructions": tensorop_count.instructions_of(line),
            },
        )
        for line in sorted(lines, key=lambda line: -tensorop_count.multiply_adds_of(line))
    ]
    notes = ["instructions: of a warp, wgmma of four warps; a multiply-add is two operations"]
    return LineRows(rows, "multiply-adds", notes)


def _of_barriers(of: ProbeResult, folder: Path | None) -> LineRows:
    lines = barrier_wait.analyse_lines(of.result, _sites(of), folder).lines
    found = [(line, barrier_wait.of_line(line)) for line in lines]
    whole = sum(each.waited for _, each in found)
    rows = [
        LineRow(
            line.line,
            line.source,
            {
                "share": _share(each.waited, whole),
                "cycles": each.waited,
                "waits": each.barriers,
                "cycles a wait": each.cycles_per_barrier,
            },
        )
        for line, each in sorted(found, key=lambda pair: -pair[1].waited)
    ]
    notes = ["cycles of all warps together, from reaching a barrier to coming through"]
    return LineRows(rows, "cycles", notes)


def _of_mix(of: ProbeResult, folder: Path | None) -> LineRows:
    lines = inst_mix.analyse_lines(of.result, _sites(of), folder).lines
    whole = sum(map(inst_mix.executions_of, lines))
    rows = [
        LineRow(
            line.line,
            line.source,
            {
                "share": _share(inst_mix.executions_of(line), whole),
                "executed": inst_mix.executions_of(line),
                "class": inst_mix.classes_of(line) or None,
            },
        )
        for line in sorted(lines, key=lambda line: -inst_mix.executions_of(line))
    ]
    return LineRows(rows, "executed", ["executed: once for each warp that reaches the line, or group of its lanes"])


def _share(part: int, whole: int) -> str | None:
    share = ratio(part, whole)
    return None if share is None else f"{share:.1%}"


PROBES: Final[dict[str, Callable[[ProbeResult, Path | None], LineRows]]] = {
    "barrier_wait_by_line": _of_barriers,
    "divergence_by_line": _of_divergence,
    "dmat": _of_dmat,
    "gmem_bytes_by_line": _of_bytes,
    "gmem_sectors_by_line": _of_sectors,
    "inst_mix_by_line": _of_mix,
    "nan_check": _of_nan_check,
    "program_progress": _of_program,
    "smem_conflicts_by_line": _of_conflicts,
    "tensorop_count_by_line": _of_matrices,
    "warp_progress": _of_loops,
}
"""The probes that tell lines apart."""


def line_rows(of: ProbeResult) -> LineRows:
    """What was found of each line in one result. Raises TraceError if the result is not of that probe."""
    found = PROBES[of.probe](of, of.kernel.folder)
    if of.result.sample is not None:
        notes = [*found.notes, f"{sampled_words(of.result.sample)}: all numbers are of these alone"]
        return replace(found, notes=notes, silent=())
    return found
