"""Intervals of blocks and warps on SMs, in slots, on one time axis.

**Time** is cycles from the first start of the launch. SMs count with different clocks, so that their times must be put
next to each other (see :mod:`tui_probe.records.sm_clocks`); how well that is known is ``Timeline.clocks``.

**Slots.** Blocks that are on an SM together are in different slots. As :mod:`tui_probe.records.block_times` says, a
block takes the slot that was free for longest, and a new one only where none is free. So what is empty in a slot
between two blocks is the cost of scheduling the later one. Hardware does not tell its own slots: these are equal to
them in number and in the sum of their gaps.

**Tail.** From the moment when the first SM has ended its last block to the end of the launch::

    idle share of the tail = sum over SMs of (end - last end on the SM) / (SMs that ran × length of the tail)
    lost                   = the same sum / (SMs that ran × length of the launch)

``lost_share`` is what the launch would gain if all SMs ended together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from tui_probe.errors import TraceError
from tui_probe.records.block_times import BlockTimes, block_times_from_warps, slot_reuse
from tui_probe.records.sm_clocks import distinct_sms

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tui_probe.records.sm_clocks import ClockAxis
    from tui_probe.trace.map_records import Sample

AxisFinder: TypeAlias = "Callable[[NDArray[np.int32], NDArray[np.uint64]], ClockAxis]"
WHOLE_BLOCK: Final = -1
"""``Intervals.warp`` of an interval that is a block's."""
_LARGEST_KEY: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Intervals:
    """Blocks, or warps, of a launch. Arrays have one element each.

    ``start`` and ``end`` (i8) are cycles on the axis of the timeline, ``sm``, ``slot`` and ``warp`` (i4) say where,
    ``block`` (i8) is the number of the block in the grid, x fastest. They are sorted by SM, slot, warp and start, and
    those of one SM, slot and warp do not overlap.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    sm: NDArray[np.int32]
    slot: NDArray[np.int32]
    warp: NDArray[np.int32]
    block: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.start)

    @property
    def duration(self) -> NDArray[np.int64]:
        """Cycles (i8)."""
        return self.end - self.start

    def take(self, selection: NDArray[Any]) -> Intervals:
        """Return the intervals that a mask or an array of indices selects."""
        names = ("start", "end", "sm", "slot", "warp", "block")
        return Intervals(*(getattr(self, name)[selection] for name in names))


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a launch, when some SMs have nothing left to run. Cycles, and shares from 0 to 1."""

    start: int
    end: int
    idle_share: float
    """Share of the SMs' cycles in the tail in which they had run out of blocks; 0 where the tail has no length."""
    lost_share: float
    """Lost cycles as a share of those of the whole launch."""
    last_sm: int
    """The SM that ended last."""
    last_block: int
    """The block that ended last, on that SM."""

    @property
    def cycles(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class Timeline:
    """One launch. ``sms`` (i4) are all SMs that have a row, those that ran nothing among them; ``slots`` (i4) of each.

    ``warps_missing``, ``blocks_missing`` and ``blocks_astray`` are as in ``BlockTimes``: left out, and counted. Of a
    launch of which only a ``sample`` of blocks was measured, what the others did is not known: neither its tail nor
    which SMs were idle.
    """

    blocks: Intervals
    make_warps: Callable[[], Intervals]
    sms: NDArray[np.int32]
    slots: NDArray[np.int32]
    span: int
    """Cycles from the first start to the last end."""
    clocks: ClockAxis
    grid_blocks: int
    warps_per_block: int
    warps_missing: int
    blocks_missing: int
    blocks_astray: int
    sample: Sample | None = None
    has_warps: bool = True
    """True if the times of each warp are known, not only those of blocks."""

    @cached_property
    def warps(self) -> Intervals:
        """The warps of the blocks: worked out when they are asked for first, since there are many.

        TraceError where they are not known.
        """
        return self.make_warps()

    @property
    def idle_sms(self) -> list[int]:
        """SMs of the device that ran no block; of a sample, none of its blocks."""
        return [int(sm) for sm in self.sms[self.slots == 0]]

    def tail(self) -> Tail | None:
        """The tail, as the module defines it; None of a sample."""
        if self.sample is not None:
            return None
        last_ends = np.full(len(self.sms), -1, dtype=np.int64)
        np.maximum.at(last_ends, np.searchsorted(self.sms, self.blocks.sm), self.blocks.end)
        sm_indices = np.flatnonzero(last_ends >= 0)
        sm_ends = last_ends[sm_indices]
        start, end = int(sm_ends.min()), int(sm_ends.max())
        last_sm = int(self.sms[sm_indices[int(sm_ends.argmax())]])
        is_last = (self.blocks.end == end) & (self.blocks.sm == last_sm)
        idle_cycles = float((end - sm_ends).sum())
        length = end - start
        return Tail(
            start=start,
            end=end,
            idle_share=idle_cycles / (len(sm_indices) * length) if length else 0.0,
            lost_share=idle_cycles / (len(sm_indices) * self.span) if self.span else 0.0,
            last_sm=last_sm,
            last_block=int(self.blocks.block[int(is_last.argmax())]),
        )


def timeline(
    start: NDArray[np.uint64],
    elapsed: NDArray[np.uint32],
    sm: NDArray[np.uint32],
    find_axis: AxisFinder,
    *,
    device_sms: int | None = None,
    sample: Sample | None = None,
) -> Timeline:
    """The timeline of warps: arrays of shape (measured blocks, warps per block), cycles of each SM's own clock.

    A warp whose three values are zero saved no record. ``find_axis`` takes the SMs that ran (ascending) and the first
    clock of each (u8), and returns their common axis. Raises TraceError if no warp saved a record.
    """
    return timeline_of_blocks(
        block_times_from_warps(start, elapsed, sm),
        find_axis,
        (start, elapsed, sm),
        device_sms=device_sms,
        sample=sample,
    )


def timeline_of_blocks(
    times: BlockTimes,
    find_axis: AxisFinder,
    warps: tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint32]] | None = None,
    *,
    device_sms: int | None = None,
    sample: Sample | None = None,
) -> Timeline:
    """The timeline of blocks; as :func:`timeline`, whose arguments ``warps`` are. None: what they did is not known."""
    block = np.flatnonzero(times.valid)
    if not len(block):
        raise TraceError("no warp saved a record; the kernel was interrupted, or the probe did not run")
    sm_numbers, sm_index = distinct_sms(times.sm[block])
    first_clocks = np.full(len(sm_numbers), np.iinfo(np.uint64).max, dtype=np.uint64)
    np.minimum.at(first_clocks, sm_index, times.start[block])
    axis = find_axis(sm_numbers.astype(np.int32), first_clocks)
    zero = first_clocks - axis.shift.view(np.uint64)
    blocks = _assign_slots(
        (times.start[block] - zero[sm_index]).view(np.int64),
        (times.end[block] - zero[sm_index]).view(np.int64),
        times.sm[block].astype(np.int32),
        block,
    )
    sms = np.union1d(np.arange(device_sms or 0, dtype=np.int32), sm_numbers.astype(np.int32))

    def make_warps() -> Intervals:
        if warps is None:
            raise TraceError("the trace keeps one record per block; run with --detail to see warps")
        return _with_grid_numbers(_warp_intervals(*warps, blocks, zero[np.searchsorted(sm_numbers, blocks.sm)]), sample)

    return Timeline(
        blocks=_with_grid_numbers(blocks, sample),
        make_warps=make_warps,
        sms=sms,
        slots=_slot_counts(blocks, sms),
        span=int(blocks.end.max()),
        clocks=axis,
        grid_blocks=len(times.valid) if sample is None else prod(sample.grid),
        warps_per_block=1 if warps is None else warps[0].shape[1],
        has_warps=warps is not None,
        warps_missing=times.warps_missing,
        blocks_missing=times.blocks_missing,
        blocks_astray=times.blocks_astray,
        sample=sample,
    )


def _slot_counts(blocks: Intervals, sms: NDArray[np.int32]) -> NDArray[np.int32]:
    """Count the slots of each SM that had a block."""
    slots = np.zeros(len(sms), dtype=np.int32)
    np.maximum.at(slots, np.searchsorted(sms, blocks.sm), blocks.slot + 1)
    return slots


def _with_grid_numbers(intervals: Intervals, sample: Sample | None) -> Intervals:
    """Return the intervals with block numbers of the grid, where they are positions in a sample of it."""
    if sample is None:
        return intervals
    return replace(intervals, block=sample.blocks.start + sample.blocks.step * intervals.block)


def _assign_slots(
    start: NDArray[np.int64], end: NDArray[np.int64], sm: NDArray[np.int32], block: NDArray[np.int64]
) -> Intervals:
    """Blocks with the slots that they take, an SM at a time."""
    order = order_by(sm, start)
    equals_next = (np.diff(sm[order]) == 0) & (np.diff(start[order]) == 0)
    tied_positions = np.flatnonzero(np.append(equals_next, False) | np.append(False, equals_next))
    tied_blocks = order[tied_positions]
    order[tied_positions] = tied_blocks[np.lexsort((end[tied_blocks], start[tied_blocks], sm[tied_blocks]))]
    start, end, sm, block = start[order], end[order], sm[order], block[order]
    bounds = np.append(np.flatnonzero(np.diff(sm, prepend=-1)), len(sm))
    slot = np.concatenate([_block_slots(start[a:b], end[a:b]) for a, b in pairwise(bounds)])
    intervals = Intervals(start, end, sm, slot, np.full(len(sm), WHOLE_BLOCK, dtype=np.int32), block)
    return intervals.take(order_by(sm, slot))


def order_by(group: NDArray[Any], value: NDArray[Any]) -> NDArray[np.intp]:
    """The order by ``group``, then ``value``, both integers from 0 on: one sort where a key can hold both."""
    span = int(value.max(initial=0)) + 1
    if (int(group.max(initial=0)) + 1) * span < _LARGEST_KEY:
        return np.argsort(group.astype(np.int64) * span + value, kind="stable")
    return np.lexsort((value, group))


def _block_slots(start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int32]:
    """The slot of each block of one SM, sorted by start and then end.

    The k-th block that takes over a slot follows the block with the k-th end, so a block's slot is that of the first
    in a chain of blocks. Chains are followed for all blocks at the same time, twice as far each time.
    """
    by_end = np.argsort(end, kind="stable")
    takes_over = slot_reuse(start.view(np.uint64), end.view(np.uint64), end[by_end].view(np.uint64))
    predecessor = np.arange(len(start))
    predecessor[takes_over] = by_end[: int(takes_over.sum())]
    while True:
        second_predecessor = predecessor[predecessor]
        if np.array_equal(second_predecessor, predecessor):
            break
        predecessor = second_predecessor
    slots: NDArray[np.int32] = (np.cumsum(~takes_over) - 1)[predecessor].astype(np.int32)
    return slots


def _warp_intervals(
    start: NDArray[np.uint64],
    elapsed: NDArray[np.uint32],
    sm: NDArray[np.uint32],
    blocks: Intervals,
    zero: NDArray[np.uint64],
) -> Intervals:
    """The warps of blocks, in the blocks' slots; ``zero`` (u8) is the clock of each block's SM at time 0."""
    start, elapsed, sm = start[blocks.block], elapsed[blocks.block], sm[blocks.block]
    block_index, warp = np.nonzero((start != 0) | (elapsed != 0) | (sm != 0))
    begin = (start[block_index, warp] - zero[block_index]).view(np.int64)
    intervals = Intervals(
        start=begin,
        end=begin + elapsed[block_index, warp],
        sm=blocks.sm[block_index],
        slot=blocks.slot[block_index],
        warp=warp.astype(np.int32),
        block=blocks.block[block_index],
    )
    slots = int(intervals.slot.max(initial=0)) + 1
    row = (intervals.sm.astype(np.int64) * slots + intervals.slot) * start.shape[1] + intervals.warp
    return intervals.take(order_by(row, intervals.start))
