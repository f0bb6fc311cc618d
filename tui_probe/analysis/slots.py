"""Blocks of a launch from the records of its warps, and the slots of an SM that they take one after another.

An SM holds several blocks at once. Blocks take slots in order of their start; each takes the slot that was free for
longest (first in, first out), and a new slot only when none is free.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.trace.result_reduced import Reduced

_PART: Final = 1 << 16
"""Blocks that are looked at together."""


@dataclass(frozen=True, slots=True)
class BlockTimes:
    """When and where each block ran. Arrays have one element per block of the grid.

    ``start`` and ``end`` (u8) are cycles of the SM's own clock, ``sm`` (u4) is the SM; they mean something only where
    ``valid`` (bool) is set.
    """

    start: NDArray[np.uint64]
    end: NDArray[np.uint64]
    sm: NDArray[np.uint32]
    valid: NDArray[np.bool_]
    warps_missing: int
    """Warps that saved no record, in blocks of which another warp did."""
    blocks_missing: int
    """Blocks of which no warp saved a record."""
    blocks_astray: int
    """Blocks whose warps name different SMs (moved by a context switch): left out, since clocks differ."""


def times_of(start: NDArray[np.uint64], elapsed: NDArray[np.uint32], sm: NDArray[np.uint32]) -> BlockTimes:
    """Start, end and SM of each block from those of its warps, arrays of shape (blocks, warps per block).

    Blocks are gone through in parts, so that files larger than memory need what their blocks need, not their warps.
    """
    blocks = len(start)
    whole = BlockTimes(
        np.empty(blocks, "u8"), np.empty(blocks, "u8"), np.empty(blocks, "u4"), np.empty(blocks, np.bool_), 0, 0, 0
    )
    for begin in range(0, blocks, _PART):
        place = slice(begin, begin + _PART)
        part = _times_of_part(start[place], elapsed[place], sm[place])
        for name in ("start", "end", "sm", "valid"):
            getattr(whole, name)[place] = getattr(part, name)
        whole = replace(
            whole,
            warps_missing=whole.warps_missing + part.warps_missing,
            blocks_missing=whole.blocks_missing + part.blocks_missing,
            blocks_astray=whole.blocks_astray + part.blocks_astray,
        )
    return whole


def _times_of_part(start: NDArray[np.uint64], elapsed: NDArray[np.uint32], sm: NDArray[np.uint32]) -> BlockTimes:
    saved = (start != 0) | (elapsed != 0) | (sm != 0)
    any_saved = saved.any(axis=1)
    block_sm = sm[np.arange(len(sm)), saved.argmax(axis=1)]
    astray = ((sm != block_sm[:, np.newaxis]) & saved).any(axis=1)
    return BlockTimes(
        start=np.min(start, axis=1, where=saved, initial=np.iinfo(np.uint64).max),
        end=np.max(start + elapsed, axis=1, where=saved, initial=0),
        sm=block_sm,
        valid=any_saved & ~astray,
        warps_missing=int((~saved[any_saved]).sum()),
        blocks_missing=int((~any_saved).sum()),
        blocks_astray=int(astray.sum()),
    )


def times_of_blocks(reduced: Reduced) -> BlockTimes:
    """The same from what is left of a map that is reduced to a record ``start``, ``elapsed``, ``sm`` per block."""
    start, elapsed, sm = (reduced.records[name][:, 0] for name in ("start", "elapsed", "sm"))
    saved, mixed = reduced.saved[:, 0], reduced.mixed[:, 0]
    return BlockTimes(
        start=start,
        end=start + elapsed,
        sm=sm,
        valid=saved & ~mixed,
        warps_missing=reduced.missing,
        blocks_missing=int((~saved).sum()),
        blocks_astray=int(mixed.sum()),
    )


def slot_reuse(start: NDArray[np.uint64], end: NDArray[np.uint64], ends: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which blocks of one SM take over a slot; the others are the first in theirs.

    ``start`` and ``end`` (integers, cycles) are sorted by start and then end, ``ends`` is ``end`` sorted. Let e(i) be
    how many of the blocks before block i have ended when it starts, and r(i) how many of them took over a slot. Block i
    takes one over if r(i) < e(i), so r(i+1) = min(r(i) + 1, e(i)), which unrolls to
    i + 1 + min(0, min over j <= i of e(j) - j - 1).
    """
    before = np.arange(len(start))
    ended = np.searchsorted(ends, start, side="right") - _empty_from_here(start, end)
    taken = before + 1 + np.minimum.accumulate(np.minimum(ended - before - 1, 0))
    takes_over: NDArray[np.bool_] = np.diff(taken, prepend=0) == 1
    return takes_over


def _empty_from_here(start: NDArray[np.uint64], end: NDArray[np.uint64]) -> NDArray[np.int64]:
    """For each block, how many from it on start with it and last no cycle: they have ended, but not before it."""
    empty = np.concatenate(([0], np.cumsum(start == end)))
    return empty[np.searchsorted(start, start, side="right")] - empty[:-1]
