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
    contain_errors,
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
        self._block_threads = prod(shape.block)
        self._cluster_blocks = shape.cluster_size
        self._block_warps = -(-self._block_threads // WARP_SIZE)
        self._cluster_warps = self._cluster_blocks * self._block_warps
        warps = len(blocks) * self._block_warps
        self._cluster_warp = np.arange(warps) % self._cluster_warps
        """Number of each warp of the batch within its cluster."""
        self._warp_clocks = np.zeros((warps, self._cluster_warps), np.int64)
        """Clock of each warp: the time of each warp of its cluster that it knows."""
        numbers = (blocks * self._block_threads)[:, None] + np.arange(self._block_warps * WARP_SIZE)
        self._place_threads = numbers.reshape(-1).astype(U64)
        """Number in the grid of the thread at each place: a place per lane, of incomplete warps too."""
        self._batch_block = np.full(len(clock.release_times), -1, np.int64)
        """Number in the batch of each block of the grid, -1 for others."""
        self._batch_block[blocks] = np.arange(len(blocks))
        warp_threads = np.minimum(self._block_threads - np.arange(self._block_warps) * WARP_SIZE, WARP_SIZE)
        self._all_lanes = np.tile((1 << warp_threads) - 1, len(blocks))
        """Lanes of each warp that have a thread, as a mask."""
        self.floor = clock.start_time
        """Time until which all accesses within a block are ordered."""
        # Times of the last fence of each warp: row 0 of any scope, row 1 of those for a cluster or the GPU.
        self._release_times = np.zeros((2, warps), np.int64)
        self._acquire_times = np.zeros((2, warps), np.int64)
        self.copies = CopyOrder(clock, len(self._place_threads))
        self._lane_clocks: LaneClocks | None = None  # most kernels synchronise whole warps, and need neither
        self._meetings: LaneMeetings | None = None
        self.first_stamp = np.uint64(clock.start_time << TIME_BITS | (1 << TIME_BITS) - 1)
        """The greatest stamp before this launch: memory keeps stamps from one launch to the next."""
        # Clocks of barriers, joined of those that arrived, and their rows by kind and number of a barrier.
        self._barrier_clocks = np.zeros((0, self._cluster_warps), np.int64)
        self._barrier_rows: dict[tuple[str, int], int] = {}

    def grid_threads(self, lanes: Lanes) -> NDArray[np.uint64]:
        """Return the number in the grid of each lane's thread."""
        threads: NDArray[np.uint64] | None = lanes.cache.get("threads")
        if threads is None:
            is_complete = lanes.count == len(self._place_threads)
            threads = lanes.cache["threads"] = self._place_threads if is_complete else self._place_threads[lanes.places]
        return threads

    @property
    def thread_count(self) -> int:
        """Threads of the batch."""
        return len(self._blocks) * self._block_threads

    @property
    def place_count(self) -> int:
        """Places of the batch; see ``lanes``."""
        return len(self._place_threads)

    def thread_at(self, block_and_thread: int) -> int:
        """Return the number in the grid of the thread at a place."""
        return int(self._place_threads[block_and_thread])

    def place(self, stamp: int) -> tuple[int, int]:
        """Return the block of the grid and the thread of a stamp."""
        block, thread = divmod(stamp & int(THREAD_BITS), self._block_threads)
        return block, thread

    # -- synchronisation

    @contain_errors
    def sync_warps(self, lanes: Lanes, members: Value) -> None:
        """The lanes of each warp that ``members`` names have met: a mask per lane, or one for all."""
        time = self.clock.tick()
        self.copies.publish(lanes.places)
        is_full = members == FULL_MASK
        if is_full.all():
            warps = lanes.warps
            self._warp_clocks[np.arange(len(self._cluster_warp))[warps], self._cluster_warp[warps]] = time
            return
        masks, is_full = lanes.spread(members).astype(np.int64), lanes.spread(is_full)
        full_warps = lanes.warp[is_full]
        self._warp_clocks[full_warps, self._cluster_warp[full_warps]] = time
        _, group = np.unique(lanes.warp << WARP_SIZE | masks, return_inverse=True)
        met_lanes = np.zeros(lanes.count, np.int64)
        np.bitwise_or.at(met_lanes, group, masks | self._met_lanes(lanes))
        if self._meetings is None:
            self._meetings = LaneMeetings(self.place_count)
        self._meetings.meet(lanes.places, met_lanes[group], time)

    def _met_lanes(self, lanes: Lanes) -> NDArray[np.int64]:
        """Return the lanes, as a mask, that each lane has met since the last barrier of its warp."""
        if self._meetings is None:
            return np.zeros(lanes.count, np.int64)
        last_barrier = np.maximum(self._warp_clocks[lanes.warp, self._cluster_warp[lanes.warp]], self.floor)
        return self._meetings.met_lanes(lanes.places, last_barrier)

    @contain_errors
    def sync_blocks(self) -> None:
        """Record that all threads of each block have met."""
        self.floor = self.clock.tick()
        self.copies.publish(slice(None))

    @contain_errors
    def arrive(self, kind: str, barriers: Places, lanes: Lanes) -> None:
        """Each lane arrives at a barrier, given by number: what it did happens before what those who leave it do."""
        time = self.clock.tick()
        self.copies.publish(lanes.places)
        warps, numbers, pair = _warp_barriers(lanes.warp, barriers)
        clocks, rows = self._clocks_of_barriers(kind, numbers)
        warp_clocks = self._warp_clocks[warps]
        cluster_blocks = np.arange(self._cluster_warps) // self._block_warps
        in_block = self._cluster_warp[warps, None] // self._block_warps == cluster_blocks
        np.maximum.at(clocks, rows, np.where(in_block, np.maximum(warp_clocks, self.floor), warp_clocks))
        # At barriers of blocks and clusters (``bar``, ``barrier.cluster``) a warp counts as whole.
        arrived_lanes = np.zeros(len(warps), np.int64)
        np.bitwise_or.at(arrived_lanes, pair, 1 << lanes.lane)
        is_complete = (arrived_lanes == self._all_lanes[warps]) | (kind != "mbarrier")
        clocks[rows[is_complete], self._cluster_warp[warps[is_complete]]] = time
        if is_complete.all() and self._lane_clocks is None:
            return
        if self._lane_clocks is None:
            self._lane_clocks = LaneClocks(len(self._cluster_warp), self._cluster_warps)
        np.bitwise_or.at(arrived_lanes, pair, self._met_lanes(lanes))
        self._lane_clocks.arrive(rows, warps, self._cluster_warp[warps], np.where(is_complete, 0, arrived_lanes), time)

    @contain_errors
    def leave(self, kind: str, barriers: Places, lanes: Lanes) -> None:
        """Each lane continues behind a barrier."""
        warps, numbers, _ = _warp_barriers(lanes.warp, barriers)
        clocks, rows = self._clocks_of_barriers(kind, numbers)
        np.maximum.at(self._warp_clocks, warps, clocks[rows])
        if self._lane_clocks is not None:
            self._lane_clocks.leave(rows, warps)

    @contain_errors
    def leave_phase(self, words: Places, lanes: Lanes) -> None:
        """Each lane has waited for a phase of an mbarrier."""
        self.leave("mbarrier", words, lanes)
        self.copies.record_phase_waits(words)

    def _clocks_of_barriers(self, kind: str, numbers: Places) -> tuple[NDArray[np.int64], Places]:
        """The clocks of all barriers of a kind, and the rows of some of them."""
        rows = np.array(
            [self._barrier_rows.setdefault((kind, number), len(self._barrier_rows)) for number in numbers.tolist()],
            np.intp,
        )
        if len(self._barrier_rows) > len(self._barrier_clocks):
            larger_clocks = np.zeros((2 * len(self._barrier_rows), self._cluster_warps), np.int64)
            larger_clocks[: len(self._barrier_clocks)] = self._barrier_clocks
            self._barrier_clocks = larger_clocks
        return self._barrier_clocks, rows

    @contain_errors
    def release(self, lanes: Lanes, scope: int) -> None:
        """A fence or a release: accesses before it are visible to those in its scope who see what follows it."""
        self._set_fence_time(self._release_times, self.clock.release_times, lanes, scope)

    @contain_errors
    def acquire(self, lanes: Lanes, scope: int) -> None:
        """A fence, or what may see a flag of another thread in its scope."""
        self._set_fence_time(self._acquire_times, self.clock.acquire_times, lanes, scope)

    def _set_fence_time(
        self, warp_times: NDArray[np.int64], block_times: NDArray[np.int64], lanes: Lanes, scope: int
    ) -> None:
        time = self.clock.tick()
        warp_times[: 1 + (scope >= STRONG_CLUSTER), lanes.warp] = time
        if scope == STRONG:
            block_times[self._blocks[lanes.block]] = time

    # -- order

    def in_scope(
        self, stamps: NDArray[np.uint64], lanes: Lanes, positions: Places, scope: int | NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return, per stamp of a strong access and position of a lane, whether the scopes of both have both threads."""
        pairs = self._access_pairs(stamps, lanes, positions)
        is_same_block = pairs.other_block == pairs.block
        needed_scope = np.where(is_same_block, STRONG_BLOCK, np.where(pairs.in_cluster, STRONG_CLUSTER, STRONG))
        is_in_scope: NDArray[np.bool_] = (
            np.minimum((stamps & np.uint64(STRONG)).astype(np.int64), scope) >= needed_scope
        )
        return is_in_scope

    def is_unordered(self, stamps: NDArray[np.uint64], lanes: Lanes, positions: Places) -> NDArray[np.bool_]:
        """Return, per stamp and position of a lane, whether no order makes the access of the stamp happen first."""
        pairs = self._access_pairs(stamps, lanes, positions)
        is_own_thread = pairs.other_thread == self.grid_threads(lanes)[positions].astype(np.int64)
        is_ordered = (
            pairs.in_cluster & (pairs.time <= self._ordered_until(pairs))
            | self._are_ordered_by_fences(pairs)
            | is_own_thread
        )
        is_unordered: NDArray[np.bool_] = ~self.copies.are_complete(
            is_ordered, stamps, pairs.other_place, is_own_thread, pairs.in_cluster
        )
        return is_unordered

    def _access_pairs(self, stamps: NDArray[np.uint64], lanes: Lanes, positions: Places) -> AccessPairs:
        thread = (stamps & THREAD_BITS).astype(np.int64)
        grid_block, index = np.divmod(thread, self._block_threads)
        other_block, block = self._batch_block[grid_block], lanes.block[positions]
        in_cluster = (other_block >= 0) & (other_block // self._cluster_blocks == block // self._cluster_blocks)
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

    def _ordered_until(self, pairs: AccessPairs) -> NDArray[np.int64]:
        """Return the time until which barriers order what the warp of each stamp did before what the lane does now."""
        other_warp, other_lane = np.divmod(pairs.other_place, WARP_SIZE)
        other_cluster_warp = self._cluster_warp[other_warp]
        ordered_until = self._warp_clocks[pairs.warp, other_cluster_warp]
        ordered_until = np.where(pairs.other_block == pairs.block, np.maximum(ordered_until, self.floor), ordered_until)
        if self._lane_clocks is not None:
            ordered_until = np.maximum(
                ordered_until, self._lane_clocks.ordered_until(pairs.warp, other_cluster_warp, other_lane)
            )
        if self._meetings is not None:
            met_until = self._meetings.met_until(pairs.place, other_lane)
            ordered_until = np.where(other_warp == pairs.warp, np.maximum(ordered_until, met_until), ordered_until)
        return ordered_until

    def _are_ordered_by_fences(self, pairs: AccessPairs) -> NDArray[np.bool_]:
        """Return, per pair, whether a fence behind the earlier access and one before the later may order them."""
        other_warp = pairs.other_place // WARP_SIZE
        is_other_block = pairs.other_block != pairs.block
        scope = is_other_block.astype(np.intp)
        release_times, acquire_times = self._release_times[scope, other_warp], self._acquire_times[scope, pairs.warp]
        in_cluster: NDArray[np.bool_] = pairs.in_cluster & (release_times > pairs.time) & (acquire_times > pairs.time)
        release_times, acquire_times = (
            self.clock.release_times[pairs.other_grid_block],
            self.clock.acquire_times[self._blocks[pairs.block]],
        )
        in_gpu: NDArray[np.bool_] = is_other_block & (release_times > pairs.time) & (acquire_times > pairs.time)
        return np.logical_or(in_cluster, in_gpu)


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
        self._met_masks, self._meeting_times = np.zeros((2, place_count), np.int64)

    def meet(self, places: Places, met_lanes: NDArray[np.int64], time: int) -> None:
        """The lanes at these places meet those of the masks ``met_lanes``."""
        self._met_masks[places], self._meeting_times[places] = met_lanes, time

    def met_lanes(self, places: Places, earliest_time: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the lanes, as a mask, that the one at each place has met since a time."""
        return np.where(self._meeting_times[places] > earliest_time, self._met_masks[places], 0)

    def met_until(self, places: Places, other_lanes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the time of the last meeting of the lane at each place, 0 if it has not met the other lane."""
        has_met = self._met_masks[places] >> other_lanes & 1 > 0
        return np.where(has_met, self._meeting_times[places], 0)


class LaneClocks:
    """Order by arrivals of some lanes of a warp at mbarriers: what the other lanes did may happen later.

    By warp, or by barrier, and by warp of the cluster: lanes as a mask, and the time until which their accesses are
    ordered. Of several arrivals it has the lanes of all and the last time, which may be more order than there is.
    """

    def __init__(self, warps: int, width: int) -> None:
        self._ordered_lanes, self._order_times = np.zeros((2, warps, width), np.int64)
        self._arrived_lanes, self._arrival_times = np.zeros((2, 0, width), np.int64)

    def arrive(self, rows: Places, warps: Places, cluster_warps: Places, lanes: NDArray[np.int64], time: int) -> None:
        """These lanes of each warp, and all that it knows of others, arrive at the barrier of each row."""
        self._grow(int(rows.max(initial=-1)) + 1)
        np.bitwise_or.at(self._arrived_lanes, rows, self._ordered_lanes[warps])
        np.maximum.at(self._arrival_times, rows, self._order_times[warps])
        np.bitwise_or.at(self._arrived_lanes, (rows, cluster_warps), lanes)
        np.maximum.at(self._arrival_times, (rows, cluster_warps), np.where(lanes > 0, time, 0))

    def leave(self, rows: Places, warps: Places) -> None:
        """Each warp continues behind the barrier of its row."""
        self._grow(int(rows.max(initial=-1)) + 1)
        np.bitwise_or.at(self._ordered_lanes, warps, self._arrived_lanes[rows])
        np.maximum.at(self._order_times, warps, self._arrival_times[rows])

    def ordered_until(self, warps: Places, other_warps: Places, lanes: Places) -> NDArray[np.int64]:
        """The time until which accesses of a lane of another warp happen before what each warp does; 0 if none do."""
        has_arrived = (self._ordered_lanes[warps, other_warps] >> lanes & 1) > 0
        times: NDArray[np.int64] = np.where(has_arrived, self._order_times[warps, other_warps], 0)
        return times

    def _grow(self, rows: int) -> None:
        if rows > len(self._arrived_lanes):
            new_rows = np.zeros((2 * rows - len(self._arrived_lanes), self._arrived_lanes.shape[1]), np.int64)
            self._arrived_lanes = np.concatenate((self._arrived_lanes, new_rows))
            self._arrival_times = np.concatenate((self._arrival_times, new_rows))


def _warp_barriers(warps: Places, barriers: Places) -> tuple[Places, Places, Places]:
    """Each warp with each barrier of its lanes, without most repetitions, and the number of the pair of each lane.

    ``warps`` are ascending.
    """
    barriers = np.broadcast_to(barriers, warps.shape)
    is_first = np.ones(len(warps), np.bool_)
    is_first[1:] = (warps[1:] != warps[:-1]) | (barriers[1:] != barriers[:-1])
    return warps[is_first], barriers[is_first], np.cumsum(is_first) - 1
