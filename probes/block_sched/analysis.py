"""Block scheduling: how long the block slots of each SM ran a block, and how long they waited for the next one.

A warp's record is its first clock, the cycles until it left, and its SM. A block lasts from the first start to the last
end of its warps. Clocks of two SMs have nothing to do with each other, so everything is worked out one SM at a time.

**Slots.** An SM holds several blocks at the same time. ``slots`` is the largest number of blocks that were on it
together. Blocks take slots in order of their start; each takes the slot that was free for longest (first in, first
out), and a new slot only when none is free. So, with the ends of all blocks sorted, the k-th block that takes over a
slot follows the k-th end::

    gap(k) = start of the k-th block that takes over a slot - k-th smallest end

**Cycles of an SM**, each the mean over its slots (that is, sum over slots / ``slots``)::

    running    = sum of (end - start) of its blocks          / slots
    scheduling = sum of gap(k)                               / slots
    ramp       = sum of (first start in a slot - first start on the SM) / slots
    tail       = sum of (last end on the SM - last end in a slot)       / slots
    span       = last end - first start on the SM = running + scheduling + ramp + tail   (exactly)

So running + scheduling is the time from an SM's first to its last cycle, but for the filling at the start (``ramp``)
and the emptying at the end (``tail``). **Totals** are means over the SMs that ran a block.

The system that introduced this analysis printed the mean over SMs of the *sums* over slots, so its numbers are the
number of resident blocks times larger: 602241 + 87713 cycles for a fill of 32 MiB on 108 SMs with 16 blocks each is
43122 cycles per slot, which at 1.41 GHz is the 31 µs that such a fill takes. Ours compare with a kernel's duration.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn, TypeAlias

import numpy as np

from tui_probe.errors import TraceError
from tui_probe.probekit.timelines.launch import launch_timeline
from tui_probe.records import block_times
from tui_probe.records.block_times import slot_reuse
from tui_probe.records.sm_clocks import clock_domains, distinct_sms, shared_clock
from tui_probe.records.timeline import timeline, timeline_of_blocks
from tui_probe.trace.map_records import Reduced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from tui_probe.draw.view import Progress
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.probekit.timelines.launch import LaunchTimeline
    from tui_probe.records.block_times import BlockTimes
    from tui_probe.records.timeline import Timeline
    from tui_probe.trace.results import Result

RECORD: Final = np.dtype([("start", "<u8"), ("elapsed", "<u4"), ("sm", "<u4")])
"""Records of ``block_sched``: of each warp, and reduced to one per block: the first start, cycles from there to the
last end, the SM. ``elapsed`` is cycles modulo 2**32 (2 s at 2 GHz).
"""
_BlockColumns: TypeAlias = "tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint32]]"
"""Start, end and SM of some blocks."""
_MAX_BLOCKS_HELD: Final = 1 << 22
"""Blocks whose times are held in memory; a launch with more is computed in groups of SMs."""


@dataclass(frozen=True, slots=True)
class BlockSchedule:
    """Running and scheduling cycles. Arrays have one element per SM that ran a block, by ascending SM number.

    ``sm`` (u4) the SM, ``sm_blocks`` and ``sm_slots`` (i8) counts, the others (f8) cycles as the module defines them.
    """

    blocks: int
    """Blocks of the grid, whether or not they saved a record."""
    sm: NDArray[np.uint32]
    sm_blocks: NDArray[np.int64]
    sm_slots: NDArray[np.int64]
    sm_running: NDArray[np.float64]
    sm_scheduling: NDArray[np.float64]
    sm_ramp: NDArray[np.float64]
    sm_tail: NDArray[np.float64]
    warps_missing: int
    blocks_missing: int
    blocks_astray: int

    @property
    def sm_span(self) -> NDArray[np.float64]:
        """Cycles from the first start to the last end on each SM."""
        return self.sm_running + self.sm_scheduling + self.sm_ramp + self.sm_tail

    @property
    def is_one_wave(self) -> bool:
        """True if no slot ran a second block."""
        return bool((self.sm_blocks <= self.sm_slots).all())

    @property
    def running(self) -> float:
        """Running cycles, mean over SMs."""
        return float(self.sm_running.mean())

    @property
    def scheduling(self) -> float:
        """Scheduling cycles, mean over SMs."""
        return float(self.sm_scheduling.mean())

    @property
    def ramp(self) -> float:
        """Cycles until a slot was first filled, mean over SMs."""
        return float(self.sm_ramp.mean())

    @property
    def tail(self) -> float:
        """Cycles after a slot's last block, mean over SMs."""
        return float(self.sm_tail.mean())

    @property
    def span(self) -> float:
        """Cycles from first start to last end, mean over SMs."""
        return float(self.sm_span.mean())


def analyse(result: Result, map_index: int = 0) -> BlockSchedule:
    """Return the schedule of a launch. Raises TraceError if records, or those of some blocks, are missing."""
    if result.sample is not None:
        raise TraceError(
            f"{result.path}: only {len(result.blocks)} of {result.header.blocks} blocks were measured, but block_sched"
            f" needs all blocks. Run without --sample"
        )
    read_blocks = _reader(result, map_index)
    sms = _count_blocks(result, read_blocks())
    by_sm = [schedule for group in _sm_groups(sms) for schedule in _schedules(read_blocks(), group)]
    return BlockSchedule(
        blocks=result.header.blocks,
        sm=sms.numbers,
        sm_blocks=sms.blocks,
        sm_slots=np.array([schedule.slots for schedule in by_sm], np.int64),
        sm_running=np.array([schedule.running for schedule in by_sm], np.float64),
        sm_scheduling=np.array([schedule.scheduling for schedule in by_sm], np.float64),
        sm_ramp=np.array([schedule.ramp for schedule in by_sm], np.float64),
        sm_tail=np.array([schedule.tail for schedule in by_sm], np.float64),
        warps_missing=sms.warps_missing,
        blocks_missing=sms.blocks_missing,
        blocks_astray=sms.blocks_astray,
    )


def _reader(result: Result, map_index: int) -> Callable[[], Iterable[BlockTimes]]:
    """Return a function that yields the blocks in parts: it reads them anew where there are too many to be held."""
    if result.header.blocks > _MAX_BLOCKS_HELD:
        return lambda: block_times_in_parts(result, map_index)
    parts = list(block_times_in_parts(result, map_index))
    return lambda: parts


@dataclass(frozen=True, slots=True)
class _Sms:
    """The SMs that ran a block, ascending, the ``blocks`` of each, and what is left out."""

    numbers: NDArray[np.uint32]
    blocks: NDArray[np.int64]
    warps_missing: int
    blocks_missing: int
    blocks_astray: int


def _count_blocks(result: Result, parts: Iterable[BlockTimes]) -> _Sms:
    numbers, blocks = np.empty(0, "u4"), np.empty(0, "i8")
    left_out = np.zeros(3, "i8")
    for part in parts:
        part_sms = np.concatenate((numbers, part.sm[part.valid]))
        counts = np.concatenate((blocks, np.ones(len(part_sms) - len(numbers), "i8")))
        try:
            distinct, places = distinct_sms(part_sms)
        except TraceError as error:
            raise TraceError(f"{result.path}: {error}") from None
        numbers = distinct.astype("u4")
        blocks = np.bincount(places, weights=counts).astype("i8")
        left_out += (part.warps_missing, part.blocks_missing, part.blocks_astray)
    if not len(numbers):
        raise TraceError(f"{result.path}: no warp saved a record; the kernel was interrupted, or the probe did not run")
    return _Sms(numbers, blocks, *left_out.tolist())


def _sm_groups(sms: _Sms) -> list[NDArray[np.uint32]]:
    """Split the SMs into groups with so few blocks that they can be held; one SM at least."""
    groups = np.cumsum(sms.blocks) // _MAX_BLOCKS_HELD
    return np.split(sms.numbers, np.flatnonzero(np.diff(groups)) + 1)


class _SmSchedule(NamedTuple):
    """The slots of one SM, and cycles per slot as the module defines them."""

    slots: int
    running: float
    scheduling: float
    ramp: float
    tail: float


def _schedules(parts: Iterable[BlockTimes], sms: NDArray[np.uint32]) -> list[_SmSchedule]:
    """Return the schedule of each of these SMs, from all blocks of the launch."""
    of_parts = [_blocks_on_sms(part, sms) for part in parts]
    start, end, sm = (np.concatenate(columns) for columns in zip(*of_parts, strict=True))
    order = np.argsort(sm, kind="stable")
    bounds = np.append(np.searchsorted(sm[order], sms), len(sm))
    return [_schedule_of_blocks(start[order[a:b]], end[order[a:b]]) for a, b in pairwise(bounds)]


def _blocks_on_sms(part: BlockTimes, sms: NDArray[np.uint32]) -> _BlockColumns:
    """Return the blocks that ran on these SMs, which are neighbours in the list of all."""
    mask = part.valid & (part.sm >= sms[0]) & (part.sm <= sms[-1])
    return part.start[mask], part.end[mask], part.sm[mask]


def _cycles_since_start(
    start: NDArray[np.uint64], end: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Sort the blocks of one SM by start, then end, and convert to cycles since the first start."""
    order = np.lexsort((end, start))
    begin = start[order[0]]
    return start[order] - begin, end[order] - begin


def block_times_in_parts(result: Result, map_index: int = 0) -> Iterator[BlockTimes]:
    """Yield start, end and SM of each block, some blocks at a time. A record of zeros was never saved: it is left out
    and counted.
    """
    reduced = result.reduced(map_index, RECORD) if result.maps else _no_maps(result)
    if reduced is not None:
        return block_times.reduced_block_times_in_batches(_require_per_block(result, reduced))
    records = result.one_record(map_index, RECORD)
    return block_times.warp_block_times_in_batches(records["start"], records["elapsed"], records["sm"])


def reduced_block_times(result: Result, reduced: Reduced) -> BlockTimes:
    """Return start, end and SM of each block where one record per block was kept, as probe.toml says."""
    return block_times.block_times_from_reduced(_require_per_block(result, reduced))


def _require_per_block(result: Result, reduced: Reduced) -> Reduced:
    """Return the reduced records. Raises TraceError unless there is one per block."""
    if reduced.group != "block":
        raise TraceError(
            f"{result.path}: the file has one record per {reduced.group}, but block_sched needs one record per block"
        )
    return reduced


def _no_maps(result: Result) -> NoReturn:
    raise TraceError(f"{result.path}: the file has no map, so it has no records of block_sched")


def _schedule_of_blocks(start: NDArray[np.uint64], end: NDArray[np.uint64]) -> _SmSchedule:
    """Return the schedule of one SM: of a single block, as in most small grids, without 20 operations on arrays."""
    if len(start) == 1:
        return _SmSchedule(1, float(end[0] - start[0]), 0.0, 0.0, 0.0)
    return _schedule_of_sm(*_cycles_since_start(start, end))


def _schedule_of_sm(start: NDArray[np.uint64], end: NDArray[np.uint64]) -> _SmSchedule:
    """Return the schedule of one SM: ``start`` and ``end`` are cycles since the first start, sorted by start and then
    end.
    """
    sorted_ends = np.sort(end)
    takes_over = slot_reuse(start, end, sorted_ends)
    reuses = int(takes_over.sum())
    slots = len(start) - reuses
    gaps = start[takes_over].sum(dtype=np.float64) - sorted_ends[:reuses].sum(dtype=np.float64)
    tails = float(slots) * float(sorted_ends[-1]) - sorted_ends[reuses:].sum(dtype=np.float64)
    return _SmSchedule(
        slots=slots,
        running=float((end - start).sum(dtype=np.float64)) / slots,
        scheduling=float(gaps) / slots,
        ramp=float(start[~takes_over].sum(dtype=np.float64)) / slots,
        tail=float(tails) / slots,
    )


def timeline_of(result: Result, *, device_sms: int | None = None, has_shared_clock: bool = False) -> Timeline:
    """Return the timeline of a ``block_sched`` result. Raises TraceError if the result holds nothing of that probe.

    ``device_sms`` is the number of SMs of the device, None if unknown; ``has_shared_clock`` if all SMs have one clock,
    as on the simulated GPU.
    """
    if not result.maps:
        raise TraceError(f"{result.path}: the file has no map, so it has no records of block_sched")
    records = result.reduced(0, RECORD) or result.one_record(0, RECORD)
    clocks = shared_clock if has_shared_clock else clock_domains
    try:
        if isinstance(records, Reduced):
            return timeline_of_blocks(
                reduced_block_times(result, records), clocks, device_sms=device_sms, sample=result.sample
            )
        return timeline(
            records["start"], records["elapsed"], records["sm"], clocks, device_sms=device_sms, sample=result.sample
        )
    except TraceError as error:
        raise TraceError(f"{result.path}: {error}") from error


def of_launch(probe_result: ProbeResult, progress: Progress) -> LaunchTimeline:
    """Return the timeline of a launch with the facts that its page shows."""
    progress(0.0)
    return launch_timeline(
        probe_result,
        timeline_of(probe_result.result, device_sms=probe_result.sms, has_shared_clock=probe_result.simulated),
    )
