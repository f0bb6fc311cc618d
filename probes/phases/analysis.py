"""Analysis of phases: the spans of all warps of a launch, the role of each warp, and iterations of loops.

A span lasts from the record of a phase to the next record of the warp, the last one to the warp's end. Warps of a block
run on one SM, so their clocks agree: times are cycles since the first warp of the block began. Of a warp with more
phases than were kept, the time behind the last record belongs to no phase, as that of iterations without records. Of a
warp that kept its last records, everything begins at the oldest kept record; the time before it is not counted.

Starts are 32-bit ``%clock`` values: the life of a warp must be below 2^32 cycles (about 2 s), else it is
reported modulo 2^32.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.errors import TraceError
from tui_probe.probekit.finding import percent
from tui_probe.trace.device_memory import parameter_names
from tui_probe.trace.sites import read_sites

from .kinds import Phase, number_loops, phases_of, roles_of
from .sampled_iterations import SampledIterations

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.trace.map_records import Sample
    from tui_probe.trace.results import Result
    from tui_probe.trace.sites import Site

WARP: Final = np.dtype(
    {"names": ["end", "time", "sm"], "formats": ["<u8", "<u8", "<u4"], "offsets": [0, 8, 16], "itemsize": 24}
)
"""The record of a warp at its last exit: ``%clock64``, ``%globaltimer`` in ns, and the number of its SM. Four bytes
behind it pad the record to a multiple of eight.
"""
START: Final = np.dtype([("clock", "<u4"), ("line", "<u4")])
"""The start of a phase: ``%clock``, and the line of the phase's first instruction in ``pruned.ptx``, from 1."""
_MAX_BLOCKS: Final = 64
"""Blocks that are examined one by one, at most."""
NOT_RECORDED: Final = -1
"""Phase of spans behind the last kept record, and of iterations that were not recorded."""
_MISSING_TIME: Final = np.iinfo(np.int64).max
"""Time of a record that is missing."""


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans sorted by warp and time. ``start`` and ``end`` are cycles since the block began (i8); ``warp``, ``phase``
    and ``site`` are numbers in ``warps``, ``phases`` and ``sites`` of ``LaunchPhases``.
    """

    warp: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    phase: NDArray[np.int64]
    site: NDArray[np.int64]

    def __len__(self) -> int:
        """The number of spans."""
        return len(self.warp)

    @property
    def cycles(self) -> NDArray[np.int64]:
        """The length of each span."""
        return self.end - self.start

    def select(self, mask: NDArray[Any] | slice) -> Spans:
        """Some of the spans, by a mask or by numbers."""
        columns = (self.warp, self.start, self.end, self.phase, self.site)
        return Spans(*(column[mask] for column in columns))


@dataclass(frozen=True, slots=True)
class Warps:
    """The warps that left a record, by block and warp (i8): start and end in cycles since the block began, ``role``.

    A warp that kept its last records starts at the oldest of them.
    """

    block: NDArray[np.int64]
    warp: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    role: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LaunchPhases:
    """One launch. ``roles`` are names; ``starts_seen`` phases were entered, ``starts_kept`` of them recorded."""

    phases: tuple[Phase, ...]
    sites: tuple[Site, ...]
    spans: Spans
    warps: Warps
    roles: tuple[str, ...]
    starts_seen: int
    starts_kept: int
    sample: Sample | None = None
    threads_missing: int = 0
    """Always 0: warps without a record are left out. ``Measured.threads_missing`` reads it."""
    phases_missing: int = 0
    """Starts of phases in the code that no instruction could record."""
    keeps_last: bool = False
    """True if a full warp kept its last starts, not its first."""
    sampled_iterations: SampledIterations | None = None
    """The loops that recorded every k-th iteration only, and their iterations; None if all iterations were recorded."""

    @property
    def kept_text(self) -> str:
        """``2048 of 2802 phase starts, the first of each warp``; "" if all were kept."""
        if self.starts_kept == self.starts_seen:
            return ""
        kept, total = units.count(self.starts_kept), units.count(self.starts_seen)
        return f"{kept} of {total} phase starts, the {'last' if self.keeps_last else 'first'} of each warp"

    @property
    def sampled_text(self) -> str:
        """``every 8th iteration …``, and what is estimated; "" if all iterations were recorded."""
        if not self.sampling_period:
            return ""
        share = percent(int(self.spans.cycles[self.is_skipped].sum()), self.life)
        return (
            f"every {units.ordinal(self.sampling_period)} iteration of innermost loops; {share} of warp life is in the"
            " other iterations (drawn as ?). Phases in these iterations are estimated from the recorded iterations of"
            " the same warp; medians, times, waits and arrivals use only recorded iterations"
        )

    @property
    def sampling_period(self) -> int:
        """K if the first of K iterations of an innermost loop is recorded; 0 if all are."""
        return self.sampled_iterations.period if self.sampled_iterations else 0

    @cached_property
    def is_skipped(self) -> NDArray[np.bool_]:
        """The spans that are iterations without records."""
        return self.sampled_iterations.is_skipped if self.sampled_iterations else np.zeros(len(self.spans), bool)

    @cached_property
    def weight(self) -> NDArray[np.float64]:
        """The time that each span stands for, as a multiple of its own: more than 1 where iterations are sampled."""
        if self.sampled_iterations is None:
            return np.ones(len(self.spans))
        return self.sampled_iterations.weights(self.spans.warp, self.spans.cycles)

    @cached_property
    def life(self) -> int:
        """Cycles of all warps."""
        return int((self.warps.end - self.warps.start).sum())

    @cached_property
    def unrecorded(self) -> int:
        """Cycles of all warps behind the last record that was kept."""
        return int(self.spans.cycles[(self.spans.phase == NOT_RECORDED) & ~self.is_skipped].sum())

    @cached_property
    def block_cycles(self) -> dict[int, int]:
        """The cycles of each block, from its first warp's start to its last warp's end."""
        blocks, block_index = np.unique(self.warps.block, return_inverse=True)
        block_ends = np.zeros(len(blocks), np.int64)
        np.maximum.at(block_ends, block_index, self.warps.end)
        return dict(zip(blocks.tolist(), block_ends.tolist(), strict=True))

    @property
    def median_block(self) -> int:
        """The block of median length."""
        ranked = sorted(self.block_cycles, key=lambda block: (self.block_cycles[block], block))
        return ranked[len(ranked) // 2]

    @cached_property
    def some_blocks(self) -> list[int]:
        """The blocks that are examined one by one: of many, some at even distances."""
        blocks = sorted(self.block_cycles)
        numbers = np.linspace(0, len(blocks) - 1, min(len(blocks), _MAX_BLOCKS)).astype(np.int64)
        return [blocks[number] for number in np.unique(numbers).tolist()]

    def span_numbers(self, role: int, phase: int) -> NDArray[np.int64]:
        """The numbers of the spans of a role in a phase."""
        order, group_starts = self._by_role_and_phase
        group = role * len(self.phases) + phase
        return order[group_starts[group] : group_starts[group + 1]]

    @cached_property
    def _by_role_and_phase(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Numbers of spans, sorted by role and phase, and where each role and phase begins; at last those of none."""
        count = len(self.roles) * len(self.phases)
        group = self.warps.role[self.spans.warp] * len(self.phases) + self.spans.phase
        group = np.where(self.spans.phase == NOT_RECORDED, count, group)
        group_ends = np.cumsum(np.bincount(group, minlength=count + 1))
        return np.argsort(group, kind="stable"), np.concatenate(([0], group_ends))

    def block_spans(self, block: int) -> slice:
        """The numbers of the spans of a block."""
        warps = np.searchsorted(self.warps.block, (block, block + 1))
        start, end = np.searchsorted(self.spans.warp, warps)
        return slice(int(start), int(end))

    def named_share(self) -> float | None:
        """Part of warp life in phases that have a name."""
        has_name = np.array([not phase.is_other for phase in self.phases], bool)
        is_recorded = self.spans.phase != NOT_RECORDED
        cycles, phases = (self.spans.cycles * self.weight)[is_recorded], self.spans.phase[is_recorded]
        return float(cycles[has_name[phases]].sum() / self.life) if self.life else None

    @cached_property
    def iteration(self) -> NDArray[np.int64]:
        """The iteration of the loop of its phase that each span is in, from 1; 0 outside of recorded loops."""
        numbers = self._all_iterations()
        if self.sampled_iterations is None:
            return numbers
        return np.maximum(numbers, self.sampled_iterations.overall_numbers(self.spans.warp))

    def _all_iterations(self) -> NDArray[np.int64]:
        """Return the iteration of each span: the starts at iterating sites of its loop, in its warp, up to it."""
        loops = np.array([phase.loop or 0 for phase in self.phases] + [0])[self.spans.phase]
        iterates = np.array([bool(site.phase and site.phase.iterates) for site in self.sites], bool)[self.spans.site]
        iterates &= self.spans.phase != NOT_RECORDED
        if self.sampled_iterations is not None:
            loops = np.where(self.sampled_iterations.loop > 0, 0, loops)
        warp_starts = np.flatnonzero(np.diff(self.spans.warp, prepend=-1))
        first_spans = np.repeat(warp_starts, np.diff(np.append(warp_starts, len(self.spans))))
        numbers = np.zeros(len(self.spans), np.int64)
        for loop in np.unique(loops[loops > 0]).tolist():
            own_sites = np.array([bool(site.phase and site.phase.loop == loop) for site in self.sites], bool)
            iteration_counts = np.concatenate(([0], np.cumsum(iterates & own_sites[self.spans.site])))
            loop_spans = np.flatnonzero(loops == loop)
            numbers[loop_spans] = iteration_counts[loop_spans + 1] - iteration_counts[first_spans[loop_spans]]
        return numbers


def analyse(result: Result, folder: Path | None) -> LaunchPhases:
    """The phases of one launch. TraceError if the records are not of this probe, or nothing names their phases."""
    sites, missing_sites = phase_sites(folder, result)
    records = _read_records(result)
    phases, phase_of_site = phases_of(sites)
    spans, begin, end = _spans(records, sites)
    spans = _join_spans(spans, phase_of_site, sites)
    sampled_iterations = SampledIterations.from_sites(spans.warp, spans.site, sites)
    numbers = _phase_numbers(spans, phase_of_site)
    numbers = numbers if sampled_iterations is None else np.where(sampled_iterations.is_skipped, NOT_RECORDED, numbers)
    spans = replace(spans, phase=numbers, site=np.maximum(spans.site, 0))
    role, names, loops = roles_of(spans.warp, spans.phase, phases, len(records.block))
    blocks = range(result.header.blocks) if result.sample is None else result.sample.blocks
    block = blocks.start + blocks.step * records.block
    return LaunchPhases(
        phases=number_loops(phases, loops),
        sites=sites,
        spans=spans,
        warps=Warps(block, records.warp, begin, end, role),
        roles=names,
        starts_seen=int(records.start_counts.sum()),
        starts_kept=int(records.kept_counts.sum()),
        sample=result.sample,
        phases_missing=missing_sites,
        keeps_last=bool(records.keeps_last.any()),
        sampled_iterations=sampled_iterations,
    )


def analyse_launch(probe_result: ProbeResult) -> LaunchPhases:
    """The phases of a result, with the names of the memory that they access. Raises TraceError."""
    launch = analyse(probe_result.result, probe_result.kernel.folder)
    if not any(phase.parameters for phase in launch.phases):
        return launch
    names = parameter_names(probe_result.kernel.trace, probe_result.launch)
    phases = (
        replace(phase, tensors=tuple(dict.fromkeys(names[number] for number in phase.parameters if number in names)))
        for phase in launch.phases
    )
    return replace(launch, phases=tuple(phases))


def phase_sites(folder: Path | None, result: Result) -> tuple[tuple[Site, ...], int]:
    """The sites of phases, and how many starts have none. TraceError if the kernel's folder does not name any."""
    probes = (read_sites(folder) if folder else None) or ()
    sites = tuple(site for probe in probes for site in probe.sites if site.phase is not None)
    if not sites:
        raise TraceError(f"{result.path}: sites.json of the kernel is missing or contains no phases")
    return sites, sum(probe.phases_missing for probe in probes)


def _join_spans(spans: Spans, phase_of_site: Sequence[int], sites: Sequence[Site]) -> Spans:
    """Join spans whose record may be inside of a phase with the span before, if this is of the same phase."""
    may_be_inside = np.array([bool(site.phase and site.phase.is_reentrant) for site in sites] + [False], bool)
    numbers = _phase_numbers(spans, phase_of_site)
    is_same_phase = (np.diff(spans.warp, prepend=-1) == 0) & (np.diff(numbers, prepend=NOT_RECORDED) == 0)
    is_first = ~(is_same_phase & may_be_inside[spans.site])
    last_spans = np.append(np.flatnonzero(is_first)[1:], len(spans)) - 1
    joined = spans.select(is_first)
    return replace(joined, end=spans.end[last_spans])


def _phase_numbers(spans: Spans, phase_of_site: Iterable[int]) -> NDArray[np.int64]:
    return np.array([*phase_of_site, NOT_RECORDED], np.int64)[spans.site]


@dataclass(frozen=True, slots=True)
class _Records:
    """The records of the warps that left some. ``start_records`` has shape (warps, records), from the oldest one on;
    ``end`` is the clock at the end of each warp, ``start_counts`` the phases that it entered. ``block`` is the number
    of its block among the measured ones, ``warp`` its number in that. ``keeps_last``: its last records were kept, not
    its first.
    """

    start_records: NDArray[Any]
    end: NDArray[np.uint64]
    start_counts: NDArray[np.int64]
    block: NDArray[np.int64]
    warp: NDArray[np.int64]
    keeps_last: NDArray[np.bool_]

    @property
    def kept_counts(self) -> NDArray[np.int64]:
        """Records of each warp."""
        return np.minimum(self.start_counts, self.start_records.shape[1])


def _read_records(result: Result) -> _Records:
    """Read the records of a launch. Raises TraceError if there are none, or not those of this probe."""
    warps, start_records = result.one_record(0, WARP), result.records(1, START)
    start_counts, is_written = result.attempts(1), result.written_mask(0)
    if start_counts is None or is_written is None:
        raise TraceError(f"{result.path}: the number of records is missing; another probe wrote the file")
    has_records = is_written[:, :, 0] & (start_counts > 0)
    if not has_records.any():
        raise TraceError(f"{result.path}: no warp saved a record; the kernel was interrupted, or the probe did not run")
    block, warp = np.nonzero(has_records)
    start_records, start_counts, end = start_records[has_records], start_counts[has_records], warps["end"][has_records]
    capacity, keeps_last = start_records.shape[1], _keeps_last(start_records, start_counts, end)
    oldest_slot = np.where(keeps_last, start_counts % capacity, 0)
    order = (oldest_slot[:, np.newaxis] + np.arange(capacity)) % capacity
    return _Records(
        np.take_along_axis(start_records, order, axis=1), end, start_counts, block, warp.astype(np.int64), keeps_last
    )


def _keeps_last(
    start_records: NDArray[Any], start_counts: NDArray[np.int64], end: NDArray[np.uint64]
) -> NDArray[np.bool_]:
    """Mask of the warps that kept their last records: their first slot does not hold the oldest one."""
    age = end.astype(np.uint32)[:, np.newaxis] - start_records["clock"]
    mask: NDArray[np.bool_] = (start_counts > start_records.shape[1]) & (age[:, 0] < age.max(axis=1))
    return mask


def _spans(records: _Records, sites: Sequence[Site]) -> tuple[Spans, NDArray[np.int64], NDArray[np.int64]]:
    """The spans of all warps, and their starts and ends; the site of a span is -1 if its phase was not kept."""
    slots = np.arange(records.start_records.shape[1])
    is_kept = slots < records.kept_counts[:, np.newaxis]
    first_clock = records.start_records["clock"][:, 0]
    life = (records.end.astype(np.uint32) - first_clock).astype(np.int64)
    since_first = (records.start_records["clock"] - first_clock[:, np.newaxis]).astype(np.int64)
    start = np.where(is_kept, np.minimum(since_first, life[:, np.newaxis]), _MISSING_TIME)
    next_start = np.concatenate((start[:, 1:], np.full((len(start), 1), _MISSING_TIME)), axis=1)
    end = np.minimum(next_start, life[:, np.newaxis])
    is_cut = (records.start_counts > records.kept_counts) & ~records.keeps_last
    is_last = (slots == records.kept_counts[:, np.newaxis] - 1) & is_cut[:, np.newaxis]
    site = np.where(is_last, -1, _sites_at(records.start_records["line"], sites))
    warp_starts = records.end - life.astype(np.uint64)
    offset = (warp_starts - _block_starts(records.block, warp_starts)).astype(np.int64)
    warp, _ = np.nonzero(is_kept)
    start, end = ((times + offset[:, np.newaxis])[is_kept] for times in (start, end))
    return Spans(warp, start, end, np.zeros(len(warp), np.int64), site[is_kept]), offset, offset + life


def _sites_at(lines: NDArray[np.uint32], sites: Sequence[Site]) -> NDArray[np.int64]:
    """The numbers of the sites at these lines; -1 for none."""
    site_lines = np.array([site.instruction.line for site in sites], np.int64)
    order = np.argsort(site_lines)
    positions = np.searchsorted(site_lines[order], lines).clip(max=len(sites) - 1)
    return np.where(site_lines[order][positions] == lines, order[positions], -1)


def _block_starts(block: NDArray[np.int64], begin: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The start of each warp's block: of its first warp."""
    _, block_index = np.unique(block, return_inverse=True)
    block_starts = np.full(block_index.max() + 1, np.iinfo(np.uint64).max, np.uint64)
    np.minimum.at(block_starts, block_index, begin)
    return block_starts[block_index]
