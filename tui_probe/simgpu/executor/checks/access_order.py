"""Order of accesses: which of two threads' accesses happens before the other.

A clock of a warp has, for each warp of its cluster, the time (see ``access_clock``) up to which everything that one did
happens before what this one does next: a vector clock. Barriers and mbarriers join clocks. Between blocks, and through
flags in memory, a fence after the one access and an atomic, a fence or a strong load after it in the other thread order
both: an order that may exist is assumed, so that a reported race is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tui_probe.simgpu.executor.checks.access_clock import (
    FULL_MASK,
    STRONG,
    STRONG_BLOCK,
    STRONG_CLUSTER,
    THREAD_BITS,
    TIME_BITS,
    harmless,
)
from tui_probe.simgpu.executor.checks.copy_order import CopyOrder
from tui_probe.simgpu.executor.model import WARP_SIZE
from tui_probe.simgpu.executor.scalars import U64, Value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.simgpu.executor.checks.access_clock import LaunchClock
    from tui_probe.simgpu.executor.lanes import Lanes, Places
    from tui_probe.simgpu.executor.scope import Launch


class BatchOrder:
    """Order of accesses of the blocks of a batch, ``blocks`` of the grid of ``shape``."""

    def __init__(self, clock: LaunchClock, shape: Launch, blocks: NDArray[np.int64]) -> None:
        self.clock = clock
        self._blocks = blocks
        self._threads = prod(shape.block)
        self._cluster = shape.cluster_size
        self._block_warps = -(-self._threads // WARP_SIZE)
        self._cluster_warps = self._cluster * self._block_warps
        warps = len(blocks) * self._block_warps
        self._cluster_warp = np.arange(warps) % self._cluster_warps
        """Number of each warp of the batch within its cluster."""
        self._known = np.zeros((warps, self._cluster_warps), np.int64)
        """Clock of each warp: the time of each warp of its cluster that it knows."""
        numbers = (blocks * self._threads)[:, None] + np.arange(self._block_warps * WARP_SIZE)
        self._thread_at = numbers.reshape(-1).astype(U64)
        """Number in the grid of the thread at each place: a place per lane, of incomplete warps too."""
        self._in_batch = np.full(len(clock.released), -1, np.int64)
        """Number in the batch of each block of the grid, -1 for others."""
        self._in_batch[blocks] = np.arange(len(blocks))
        warp_threads = np.minimum(self._threads - np.arange(self._block_warps) * WARP_SIZE, WARP_SIZE)
        self._all_lanes = np.tile((1 << warp_threads) - 1, len(blocks))
        """Lanes of each warp that have a thread, as a mask."""
        self.floor = clock.begin
        """Time until which all accesses within a block are ordered."""
        # Times of the last fence of each warp: row 0 of any scope, row 1 of those for a cluster or the GPU.
        self._released = np.zeros((2, warps), np.int64)
        self._acquired = np.zeros((2, warps), np.int64)
        self.copies = CopyOrder(clock, len(self._thread_at))
        self._lane_clocks: LaneClocks | None = None  # most kernels synchronise whole warps, and need neither
        self._meetings: LaneMeetings | None = None
        self.first_stamp = np.uint64(clock.begin << TIME_BITS | (1 << TIME_BITS) - 1)
        """The greatest stamp before this launch: memory keeps stamps from one launch to the next."""
        # Clocks of barriers, joined of those that arrived, and their rows by kind and number of a barrier.
        self._clocks = np.zeros((0, self._cluster_warps), np.int64)
        self._rows: dict[tuple[str, int], int] = {}

    def threads(self, lanes: Lanes) -> NDArray[np.uint64]:
        """Return the number in the grid of each lane's thread."""
        threads: NDArray[np.uint64] | None = lanes.cache.get("threads")
        if threads is None:
            is_complete = lanes.count == len(self._thread_at)
            threads = lanes.cache["threads"] = self._thread_at if is_complete else self._thread_at[lanes.places]
        return threads

    @property
    def thread_count(self) -> int:
        """Threads of the batch."""
        return len(self._blocks) * self._threads

    @property
    def place_count(self) -> int:
        """Places of the batch; see ``lanes``."""
        return len(self._thread_at)

    def thread_at(self, place: int) -> int:
        """Return the number in the grid of the thread at a place."""
        return int(self._thread_at[place])

    def place(self, stamp: int) -> tuple[int, int]:
        """Return the block of the grid and the thread of a stamp."""
        block, thread = divmod(stamp & int(THREAD_BITS), self._threads)
        return block, thread

    # -- synchronisation

    @harmless
    def sync_warps(self, lanes: Lanes, members: Value) -> None:
        """The lanes of each warp that ``members`` names have met: a mask per lane, or one for all."""
        now = self.clock.tick()
        self.copies.publish(lanes.places)
        is_full = members == FULL_MASK
        if is_full.all():
            warps = lanes.warps
            self._known[np.arange(len(self._cluster_warp))[warps], self._cluster_warp[warps]] = now
            return
        masks, is_full = lanes.spread(members).astype(np.int64), lanes.spread(is_full)
        full_warps = lanes.warp[is_full]
        self._known[full_warps, self._cluster_warp[full_warps]] = now
        _, group = np.unique(lanes.warp << WARP_SIZE | masks, return_inverse=True)
        met = np.zeros(lanes.count, np.int64)
        np.bitwise_or.at(met, group, masks | self._still_met(lanes))
        if self._meetings is None:
            self._meetings = LaneMeetings(self.place_count)
        self._meetings.meet(lanes.places, met[group], now)

    def _still_met(self, lanes: Lanes) -> NDArray[np.int64]:
        """Return the lanes, as a mask, that each lane has met since the last barrier of its warp."""
        if self._meetings is None:
            return np.zeros(lanes.count, np.int64)
        last_barrier = np.maximum(self._known[lanes.warp, self._cluster_warp[lanes.warp]], self.floor)
        return self._meetings.still_met(lanes.places, last_barrier)

    @harmless
    def sync_blocks(self) -> None:
        """All threads of all blocks have met, those of each block."""
        self.floor = self.clock.tick()
        self.copies.publish(slice(None))

    @harmless
    def arrive(self, kind: str, barriers: Places, lanes: Lanes) -> None:
        """Each lane arrives at a barrier, given by number: what it did happens before what those who leave it do."""
        now = self.clock.tick()
        self.copies.publish(lanes.places)
        warps, numbers, pair = _warp_barriers(lanes.warp, barriers)
        joined, rows = self._joined(kind, numbers)
        known = self._known[warps]
        cluster_blocks = np.arange(self._cluster_warps) // self._block_warps
        in_block = self._cluster_warp[warps, None] // self._block_warps == cluster_blocks
        np.maximum.at(joined, rows, np.where(in_block, np.maximum(known, self.floor), known))
        # At barriers of blocks and clusters (``bar``, ``barrier.cluster``) a warp counts as whole.
        arrived = np.zeros(len(warps), np.int64)
        np.bitwise_or.at(arrived, pair, 1 << lanes.lane)
        is_complete = (arrived == self._all_lanes[warps]) | (kind != "mbarrier")
        joined[rows[is_complete], self._cluster_warp[warps[is_complete]]] = now
        if is_complete.all() and self._lane_clocks is None:
            return
        if self._lane_clocks is None:
            self._lane_clocks = LaneClocks(len(self._cluster_warp), self._cluster_warps)
        np.bitwise_or.at(arrived, pair, self._still_met(lanes))
        self._lane_clocks.arrive(rows, warps, self._cluster_warp[warps], np.where(is_complete, 0, arrived), now)

    @harmless
    def leave(self, kind: str, barriers: Places, lanes: Lanes) -> None:
        """Each lane continues behind a barrier."""
        warps, numbers, _ = _warp_barriers(lanes.warp, barriers)
        joined, rows = self._joined(kind, numbers)
        np.maximum.at(self._known, warps, joined[rows])
        if self._lane_clocks is not None:
            self._lane_clocks.leave(rows, warps)

    @harmless
    def word_awaited(self, words: Places, lanes: Lanes) -> None:
        """Each lane has waited for a phase of an mbarrier."""
        self.leave("mbarrier", words, lanes)
        self.copies.phases_awaited(words)

    def _joined(self, kind: str, numbers: Places) -> tuple[NDArray[np.int64], Places]:
        """The clocks of all barriers of a kind, and the rows of some of them."""
        rows = np.array(
            [self._rows.setdefault((kind, number), len(self._rows)) for number in numbers.tolist()], np.intp
        )
        if len(self._rows) > len(self._clocks):
            larger = np.zeros((2 * len(self._rows), self._cluster_warps), np.int64)
            larger[: len(self._clocks)] = self._clocks
            self._clocks = larger
        return self._clocks, rows

    @harmless
    def release(self, lanes: Lanes, scope: int) -> None:
        """A fence or a release: accesses before it are visible to those in its scope who see what follows it."""
        self._note(self._released, self.clock.released, lanes, scope)

    @harmless
    def acquire(self, lanes: Lanes, scope: int) -> None:
        """A fence, or what may see a flag of another thread in its scope."""
        self._note(self._acquired, self.clock.acquired, lanes, scope)

    def _note(self, by_warp: NDArray[np.int64], by_block: NDArray[np.int64], lanes: Lanes, scope: int) -> None:
        now = self.clock.tick()
        by_warp[: 1 + (scope >= STRONG_CLUSTER), lanes.warp] = now
        if scope == STRONG:
            by_block[self._blocks[lanes.block]] = now

    # -- order

    def in_scope(
        self, stamps: NDArray[np.uint64], lanes: Lanes, positions: Places, scope: int | NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return, per stamp of a strong access and position of a lane, whether the scopes of both have both threads."""
        pairs = self._pairs(stamps, lanes, positions)
        is_same_block = pairs.other_block == pairs.block
        needed = np.where(is_same_block, STRONG_BLOCK, np.where(pairs.in_cluster, STRONG_CLUSTER, STRONG))
        within: NDArray[np.bool_] = np.minimum((stamps & np.uint64(STRONG)).astype(np.int64), scope) >= needed
        return within

    def is_unordered(self, stamps: NDArray[np.uint64], lanes: Lanes, positions: Places) -> NDArray[np.bool_]:
        """Return, per stamp and position of a lane, whether no order makes the access of the stamp happen first."""
        pairs = self._pairs(stamps, lanes, positions)
        own_thread = pairs.other_thread == self.threads(lanes)[positions].astype(np.int64)
        ordered = pairs.in_cluster & (pairs.time <= self._known_until(pairs)) | self._by_fences(pairs) | own_thread
        unordered: NDArray[np.bool_] = ~self.copies.are_complete(
            ordered, stamps, pairs.other_place, own_thread, pairs.in_cluster
        )
        return unordered

    def _pairs(self, stamps: NDArray[np.uint64], lanes: Lanes, positions: Places) -> AccessPairs:
        thread = (stamps & THREAD_BITS).astype(np.int64)
        grid_block, index = np.divmod(thread, self._threads)
        other_block, block = self._in_batch[grid_block], lanes.block[positions]
        in_cluster = (other_block >= 0) & (other_block // self._cluster == block // self._cluster)
        return AccessPairs(
            time=(stamps >> np.uint64(TIME_BITS)).astype(np.int64),
            other_thread=thread,
            other_grid_block=grid_block,
            other_block=other_block,
            other_place=np.where(in_cluster, other_block * self._block_warps * WARP_SIZE + index, 0),
            in_cluster=in_cluster,
            block=block,
            place=lanes.places[positions],
            warp=lanes.warp[positions],
        )

    def _known_until(self, pairs: AccessPairs) -> NDArray[np.int64]:
        """Return the time until which barriers order what the warp of each stamp did before what the lane does now."""
        other_warp, other_lane = np.divmod(pairs.other_place, WARP_SIZE)
        other = self._cluster_warp[other_warp]
        known = self._known[pairs.warp, other]
        known = np.where(pairs.other_block == pairs.block, np.maximum(known, self.floor), known)
        if self._lane_clocks is not None:
            known = np.maximum(known, self._lane_clocks.known(pairs.warp, other, other_lane))
        if self._meetings is not None:
            met_until = self._meetings.met_until(pairs.place, other_lane)
            known = np.where(other_warp == pairs.warp, np.maximum(known, met_until), known)
        return known

    def _by_fences(self, pairs: AccessPairs) -> NDArray[np.bool_]:
        """Return, per pair, whether a fence behind the earlier access and one before the later may order them."""
        other_warp = pairs.other_place // WARP_SIZE
        is_other_block = pairs.other_block != pairs.block
        scope = is_other_block.astype(np.intp)
        released, acquired = self._released[scope, other_warp], self._acquired[scope, pairs.warp]
        within_cluster: NDArray[np.bool_] = pairs.in_cluster & (released > pairs.time) & (acquired > pairs.time)
        released, acquired = self.clock.released[pairs.other_grid_block], self.clock.acquired[self._blocks[pairs.block]]
        within_gpu: NDArray[np.bool_] = is_other_block & (released > pairs.time) & (acquired > pairs.time)
        return np.logical_or(within_cluster, within_gpu)


@dataclass(frozen=True, slots=True)
class AccessPairs:
    """Pairs of an earlier access, known by its stamp, and a lane that accesses the same byte now: arrays of one length.

    Blocks and warps are numbered within the batch. ``other_block`` is -1 outside of it, ``other_place`` is 0 outside of
    the lane's cluster (see ``in_cluster``).
    """

    time: NDArray[np.int64]
    other_thread: NDArray[np.int64]
    other_grid_block: NDArray[np.int64]
    other_block: NDArray[np.int64]
    other_place: NDArray[np.int64]
    in_cluster: NDArray[np.bool_]
    block: NDArray[np.int64]
    place: Places
    warp: Places


class LaneMeetings:
    """Meetings of some lanes of a warp, which make no order for the others: ``bar.warp.sync`` with a part of the mask.

    By place: the lanes that a lane has met, directly or through others, as a mask, and the time of its last meeting.
    The order of their accesses until that meeting may be more than there is.
    """

    def __init__(self, place_count: int) -> None:
        self._lanes, self._until = np.zeros((2, place_count), np.int64)

    def meet(self, places: Places, met: NDArray[np.int64], now: int) -> None:
        """The lanes at these places meet those of the masks ``met``."""
        self._lanes[places], self._until[places] = met, now

    def still_met(self, places: Places, since: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the lanes, as a mask, that the one at each place has met since a time."""
        return np.where(self._until[places] > since, self._lanes[places], 0)

    def met_until(self, places: Places, other_lanes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the time of the last meeting of the lane at each place, 0 if it has not met the other lane."""
        has_met = self._lanes[places] >> other_lanes & 1 > 0
        return np.where(has_met, self._until[places], 0)


class LaneClocks:
    """Order by arrivals of some lanes of a warp at mbarriers: what the other lanes did may happen later.

    By warp, or by barrier, and by warp of the cluster: lanes as a mask, and the time until which their accesses are
    ordered. Of several arrivals it has the lanes of all and the last time, which may be more order than there is.
    """

    def __init__(self, warps: int, width: int) -> None:
        self._lanes, self._until = np.zeros((2, warps, width), np.int64)
        self._arrived, self._arrived_until = np.zeros((2, 0, width), np.int64)

    def arrive(self, rows: Places, warps: Places, own: Places, lanes: NDArray[np.int64], now: int) -> None:
        """These lanes of each warp, and all that it knows of others, arrive at the barrier of each row."""
        self._grow(int(rows.max(initial=-1)) + 1)
        np.bitwise_or.at(self._arrived, rows, self._lanes[warps])
        np.maximum.at(self._arrived_until, rows, self._until[warps])
        np.bitwise_or.at(self._arrived, (rows, own), lanes)
        np.maximum.at(self._arrived_until, (rows, own), np.where(lanes > 0, now, 0))

    def leave(self, rows: Places, warps: Places) -> None:
        """Each warp continues behind the barrier of its row."""
        self._grow(int(rows.max(initial=-1)) + 1)
        np.bitwise_or.at(self._lanes, warps, self._arrived[rows])
        np.maximum.at(self._until, warps, self._arrived_until[rows])

    def known(self, warps: Places, others: Places, lanes: Places) -> NDArray[np.int64]:
        """The time until which accesses of a lane of another warp happen before what each warp does; 0 if none do."""
        has_arrived = (self._lanes[warps, others] >> lanes & 1) > 0
        until: NDArray[np.int64] = np.where(has_arrived, self._until[warps, others], 0)
        return until

    def _grow(self, rows: int) -> None:
        if rows > len(self._arrived):
            more = np.zeros((2 * rows - len(self._arrived), self._arrived.shape[1]), np.int64)
            self._arrived = np.concatenate((self._arrived, more))
            self._arrived_until = np.concatenate((self._arrived_until, more))


def _warp_barriers(warps: Places, barriers: Places) -> tuple[Places, Places, Places]:
    """Each warp with each barrier of its lanes, without most repetitions, and the number of the pair of each lane.

    ``warps`` are ascending.
    """
    barriers = np.broadcast_to(barriers, warps.shape)
    first = np.ones(len(warps), np.bool_)
    first[1:] = (warps[1:] != warps[:-1]) | (barriers[1:] != barriers[:-1])
    return warps[first], barriers[first], np.cumsum(first) - 1
