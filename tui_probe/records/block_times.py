"""Start, end and SM of each block, and the slots of an SM that blocks take one after another.

An SM holds several blocks at the same time. Blocks take slots in order of their start; each takes the slot that was
free for longest (first in, first out), and a new slot only when none is free.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tui_probe.trace.map_records import Reduced

SLOT_TIME_LABELS: Final = {"running": "running", "scheduling": "gap", "ramp": "ramp-up", "tail": "ramp-down"}
"""Titles of the parts of a slot's cycles by their data keys; in titles, the tail is only the end of a launch."""
_BLOCKS_PER_BATCH: Final = 1 << 16
"""Blocks that are looked at together."""


@dataclass(frozen=True, slots=True)
class BlockTimes:
    """Time and position of each block. Arrays have one element per block of the grid.

    ``start`` and ``end`` (u8) are cycles of the SM's own clock, ``sm`` (u4) is the SM; they mean something only where
    ``valid`` (bool) is set.
    """

    start: NDArray[np.uint64]
    end: NDArray[np.uint64]
    sm: NDArray[np.uint32]
    valid: NDArray[np.bool_]
    warps_missing: int
    """Warps that saved no record, in blocks in which another warp did."""
    blocks_missing: int
    """Blocks in which no warp saved a record."""
    blocks_astray: int
    """Blocks whose warps name different SMs (moved by a context switch): left out, since clocks differ."""


def block_times_from_warps(
    start: NDArray[np.uint64], elapsed: NDArray[np.uint32], sm: NDArray[np.uint32]
) -> BlockTimes:
    """Start, end and SM of each block from those of its warps, arrays of shape (blocks, warps per block)."""
    batches = list(warp_block_times_in_batches(start, elapsed, sm))
    return BlockTimes(
        start=np.concatenate([part.start for part in batches]),
        end=np.concatenate([part.end for part in batches]),
        sm=np.concatenate([part.sm for part in batches]),
        valid=np.concatenate([part.valid for part in batches]),
        warps_missing=sum(part.warps_missing for part in batches),
        blocks_missing=sum(part.blocks_missing for part in batches),
        blocks_astray=sum(part.blocks_astray for part in batches),
    )


def warp_block_times_in_batches(
    start: NDArray[np.uint64], elapsed: NDArray[np.uint32], sm: NDArray[np.uint32]
) -> Iterator[BlockTimes]:
    """Yield the block times of warps in batches, so that a file larger than memory is never held whole."""
    for begin in range(0, max(len(start), 1), _BLOCKS_PER_BATCH):
        batch = slice(begin, begin + _BLOCKS_PER_BATCH)
        yield _batch_from_warps(start[batch], elapsed[batch], sm[batch])


def _batch_from_warps(start: NDArray[np.uint64], elapsed: NDArray[np.uint32], sm: NDArray[np.uint32]) -> BlockTimes:
    # a row per warp of a block: NumPy goes through long rows many times faster than through short ones
    start, elapsed = np.ascontiguousarray(start.T), np.ascontiguousarray(elapsed.T)
    sm = np.ascontiguousarray(sm.T)
    has_record = (start != 0) | (elapsed != 0) | (sm != 0)
    block_has_record = has_record.any(axis=0)
    block_sm = np.where(has_record, sm, 0).max(axis=0)
    is_astray = ((sm != block_sm) & has_record).any(axis=0)
    return BlockTimes(
        start=np.where(has_record, start, np.iinfo(np.uint64).max).min(axis=0),
        end=np.where(has_record, start + elapsed, 0).max(axis=0),
        sm=block_sm,
        valid=block_has_record & ~is_astray,
        warps_missing=int((~has_record & block_has_record).sum()),
        blocks_missing=int((~block_has_record).sum()),
        blocks_astray=int(is_astray.sum()),
    )


def block_times_from_reduced(reduced: Reduced) -> BlockTimes:
    """Return the block times of a map that was reduced to a record ``start``, ``elapsed``, ``sm`` per block."""
    return _batch_from_reduced(reduced, slice(None), reduced.missing_slots)


def reduced_block_times_in_batches(reduced: Reduced) -> Iterator[BlockTimes]:
    """Yield the block times of reduced records in batches; missing warps are reported with the first."""
    for begin in range(0, max(len(reduced.records), 1), _BLOCKS_PER_BATCH):
        yield _batch_from_reduced(
            reduced, slice(begin, begin + _BLOCKS_PER_BATCH), 0 if begin else reduced.missing_slots
        )


def _batch_from_reduced(reduced: Reduced, batch: slice, warps_missing: int) -> BlockTimes:
    start, elapsed, sm = (reduced.records[name][batch, 0] for name in ("start", "elapsed", "sm"))
    is_saved, is_mixed = reduced.saved[batch, 0], reduced.mixed[batch, 0]
    return BlockTimes(
        start=start,
        end=start + elapsed,
        sm=sm,
        valid=is_saved & ~is_mixed,
        warps_missing=warps_missing,
        blocks_missing=int((~is_saved).sum()),
        blocks_astray=int(is_mixed.sum()),
    )


def slot_reuse(
    start: NDArray[np.uint64], end: NDArray[np.uint64], sorted_ends: NDArray[np.uint64]
) -> NDArray[np.bool_]:
    """Return the mask of blocks of one SM that take over a slot; the others are the first in theirs.

    ``start`` and ``end`` (integers, cycles) are sorted by start and then end, ``sorted_ends`` is ``end`` sorted. Let
    e(i) be how many of the blocks before block i have ended when it starts, and r(i) how many of them took over a slot.
    Block i takes one over if r(i) < e(i), so r(i+1) = min(r(i) + 1, e(i)), which unrolls to
    i + 1 + min(0, min over j <= i of e(j) - j - 1).
    """
    earlier_blocks = np.arange(len(start))
    ended_blocks = np.searchsorted(sorted_ends, start, side="right") - _empty_run_lengths(start, end)
    reused_slots = earlier_blocks + 1 + np.minimum.accumulate(np.minimum(ended_blocks - earlier_blocks - 1, 0))
    takes_over: NDArray[np.bool_] = np.diff(reused_slots, prepend=0) == 1
    return takes_over


def _empty_run_lengths(start: NDArray[np.uint64], end: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return, per block, how many from it on start with it and last no cycle: they have ended, but not before it."""
    empty_before = np.concatenate(([0], np.cumsum(start == end)))
    return empty_before[np.searchsorted(start, start, side="right")] - empty_before[:-1]
