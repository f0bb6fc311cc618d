"""Threads that wait at barriers of blocks and warps; those that wait for mbarriers are in ``phase_waits``.

A barrier is per thread, as on devices since sm_70: it opens when all threads of its block that have
not exited have arrived, or as many as it names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tui_probe.simgpu.executor.checks.split_barriers import WaitingLanes
from tui_probe.simgpu.executor.clusters import ClusterBarriers
from tui_probe.simgpu.executor.faults import DeadlockError
from tui_probe.simgpu.executor.lanes import Lanes, missing_lanes
from tui_probe.simgpu.executor.model import WARP_SIZE
from tui_probe.simgpu.executor.scalars import BOOL, U32, Value, scalar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tui_probe.simgpu.executor.lanes import Places
    from tui_probe.simgpu.executor.operations import ResultOperand, SourceOperand
    from tui_probe.simgpu.executor.threads import Batch, ThreadGroup

BARRIER_COUNT: Final = 16
"""Barriers of a block, by the PTX ISA."""


@dataclass(slots=True)
class Reduction:
    """Reductions of ``bar.red`` over the threads that arrive."""

    operation: str
    predicate: SourceOperand
    target: ResultOperand

    def result(self, arrived_count: NDArray[np.int64], true_count: NDArray[np.int64]) -> Value:
        """The result where ``true_count`` of ``arrived_count`` threads came with a true predicate."""
        if self.operation == "popc":
            return true_count.astype(U32)
        return true_count == arrived_count if self.operation == "and" else true_count > 0


@dataclass(frozen=True, slots=True)
class Barrier:
    """Barrier that an instruction names. ``count`` None: all threads of the block."""

    number: SourceOperand
    count: SourceOperand | None
    arrives_only: bool
    reduction: Reduction | None
    line: int
    is_aligned: bool = False


@dataclass(frozen=True, slots=True)
class WarpBarrier:
    """The threads named by ``members`` wait for each other, wherever in the program each does."""

    members: SourceOperand
    line: int


@dataclass(slots=True)
class _BarrierWait:
    """Lanes at a barrier.

    One per lane: ``slot`` is block × 16 + barrier number, ``predicate`` is the operand of a reduction, ``count`` the
    threads that must arrive, None for all threads of the block.
    """

    barrier: Barrier
    group: ThreadGroup
    slot: Places
    predicate: NDArray[np.bool_]
    count: NDArray[np.int64] | None

    def needed_count(self) -> NDArray[np.int64]:
        """Return the number of threads that must arrive, for each lane."""
        if self.count is not None:
            return self.count
        alive_count: NDArray[np.int64] = self.group.batch.alive_in_block[self.group.lanes.block]
        return alive_count

    def remove_lanes(self, has_left: NDArray[np.bool_]) -> _BarrierWait:
        """Return the group without the lanes ``has_left``."""
        count = None if self.count is None else self.count[~has_left]
        return _BarrierWait(self.barrier, self.group, self.slot[~has_left], self.predicate[~has_left], count)

    def waiting_lanes(self) -> WaitingLanes:
        """The lanes, as the search for split barriers takes them."""
        lanes, line = self.group.lanes, self.barrier.line
        return WaitingLanes(line, self.count is None, self.slot, lanes, self.group.block)


class _Arrivals(NamedTuple):
    """Arrivals at each barrier, by slot: threads, those with a true predicate, the latest counter of their warps."""

    threads: NDArray[np.int64]
    true_count: NDArray[np.int64]
    latest_counter: NDArray[np.int64]


class Barriers:
    """All threads of a batch that wait at barriers."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._block_waits: list[_BarrierWait] = []
        self._warp_waits: list[tuple[WarpBarrier, ThreadGroup]] = []
        slots = batch.block_count * BARRIER_COUNT
        # Threads that arrived without waiting (`bar.arrive`), and the latest of their warps' counters.
        self._arrived_count = np.zeros(slots, np.int64)
        self._latest_counter = np.zeros(slots, np.int64)
        self._has_arrivals = False
        self.cluster_barriers = ClusterBarriers(batch)

    @property
    def has_waiting(self) -> bool:
        """True if threads wait at a barrier."""
        return bool(self._block_waits or self._warp_waits or self.cluster_barriers.has_waiting)

    def arrive(self, barrier: Barrier, group: ThreadGroup) -> ThreadGroup | None:
        """Let ``group`` arrive at ``barrier``. Return it if it continues immediately."""
        checks = self._batch.checks
        if self._is_complete(barrier, group):
            self._pass_together(barrier, group)
            if checks is not None:
                if barrier.is_aligned:
                    checks.bypass_barrier(barrier.line, group.lanes, group.block)
                checks.order.sync_blocks()
            return group
        lanes = group.lanes
        number = barrier.number.read(group.registers)
        slot = lanes.block * BARRIER_COUNT + lanes.spread(number).astype(np.intp)
        if checks is not None:
            checks.order.arrive("bar", slot, lanes)
        if barrier.arrives_only:
            np.add.at(self._arrived_count, slot, 1)
            self._arrived_count += self._threadless_lanes([(slot, lanes)])
            np.maximum.at(self._latest_counter, slot, self._batch.counters[lanes.warp])
            self._has_arrivals = True
            return group
        reduction = barrier.reduction
        predicate = lanes.spread(reduction.predicate.read(group.registers) if reduction else scalar(0, BOOL))
        count = None if barrier.count is None else lanes.spread(barrier.count.read(group.registers)).astype(np.int64)
        self._block_waits.append(_BarrierWait(barrier, group, slot, predicate, count))
        return None

    def _is_complete(self, barrier: Barrier, group: ThreadGroup) -> bool:
        return (
            group.lanes.count == self._batch.alive_count
            and barrier.count is None
            and not barrier.arrives_only
            and not self._has_arrivals
            and not group.registers[barrier.number.index].ndim
        )

    def _pass_together(self, barrier: Barrier, group: ThreadGroup) -> None:
        batch, lanes = self._batch, group.lanes
        counters = batch.counters.reshape(batch.block_count, -1)
        counters[:] = counters.max(axis=1, keepdims=True)
        if barrier.reduction is not None:
            predicate = lanes.spread(barrier.reduction.predicate.read(group.registers))
            true_count = np.bincount(lanes.block, predicate, batch.block_count).astype(np.int64)
            result = barrier.reduction.result(batch.alive_in_block, true_count)[lanes.block]
            barrier.reduction.target.write(group.registers, result)

    def release(self) -> list[ThreadGroup]:
        """Open every barrier that all it waits for have reached, and return the groups that continue."""
        block_groups = self._release_blocks() if self._block_waits else []
        return self._release_warps() + block_groups + self.cluster_barriers.release()

    def _leave(self, barrier: Barrier, group: ThreadGroup, slot: Places, arrivals: _Arrivals) -> None:
        """Let threads leave their barriers, at the time of the last arrival and with the result of the reduction."""
        self._batch.counters[group.lanes.warp] = arrivals.latest_counter[slot]
        if barrier.reduction is not None:
            result = barrier.reduction.result(arrivals.threads[slot], arrivals.true_count[slot])
            barrier.reduction.target.write(group.registers, result)
        if self._batch.checks is not None:
            self._batch.checks.order.leave("bar", slot, group.lanes)

    def _release_blocks(self) -> list[ThreadGroup]:
        """Open the barriers of blocks that all threads they wait for have reached."""
        arrivals = self._count_arrivals()
        is_opening = np.zeros(len(arrivals.threads), np.bool_)
        complete_lanes = []
        for wait in self._block_waits:
            is_complete = arrivals.threads[wait.slot] >= wait.needed_count()
            is_opening[wait.slot[is_complete]] = True
            complete_lanes.append(is_complete)
        if not is_opening.any():
            return []
        if self._batch.checks is not None:
            aligned_lanes = [wait.waiting_lanes() for wait in self._block_waits if wait.barrier.is_aligned]
            self._batch.checks.open_barriers(aligned_lanes, is_opening)
        released_groups = []
        remaining_waits = []
        for wait, is_complete in zip(self._block_waits, complete_lanes, strict=True):
            if not is_complete.any():
                remaining_waits.append(wait)
                continue
            group, slot = wait.group, wait.slot[is_complete]
            if not is_complete.all():
                group = wait.group.split_off(is_complete, wait.group.block)
                remaining_waits.append(wait.remove_lanes(is_complete))
            self._leave(wait.barrier, group, slot, arrivals)
            released_groups.append(group)
        self._block_waits = remaining_waits
        self._arrived_count[is_opening] = 0
        self._latest_counter[is_opening] = 0
        self._has_arrivals = bool(self._arrived_count.any())
        return released_groups

    def _count_arrivals(self) -> _Arrivals:
        arrived_count, latest_counter = self._arrived_count.copy(), self._latest_counter.copy()
        true_count = np.zeros_like(arrived_count)
        counters = self._batch.counters
        block_ends = counters.reshape(self._batch.block_count, -1).max(axis=1)
        for wait in self._block_waits:
            lanes = wait.group.lanes
            arrived_count += np.bincount(wait.slot, minlength=len(arrived_count))
            true_count += np.bincount(wait.slot, wait.predicate, len(arrived_count)).astype(np.int64)
            # A barrier of the whole block waits for warps that exit, too.
            times = counters[lanes.warp] if wait.barrier.count is not None else block_ends[lanes.block]
            np.maximum.at(latest_counter, wait.slot, times)
        counted_lanes = [(wait.slot, wait.group.lanes) for wait in self._block_waits if wait.count is not None]
        return _Arrivals(arrived_count + self._threadless_lanes(counted_lanes), true_count, latest_counter)

    def _threadless_lanes(self, arrivals: Sequence[tuple[Places, Lanes]]) -> NDArray[np.int64]:
        """Return, by slot, the lanes that have no thread or have ended in warps that arrived there.

        Barriers count whole warps: a warp arrives when all of its threads that have not ended have (PTX ISA, barrier).
        """
        result = np.zeros(len(self._arrived_count), np.int64)
        if not arrivals:
            return result
        alive_threads = self._batch.is_alive.reshape(-1, WARP_SIZE).sum(axis=1)
        pairs = np.concatenate([slots * len(alive_threads) + lanes.warp for slots, lanes in arrivals])
        pairs, counts = np.unique(pairs, return_counts=True)
        slot, warp = np.divmod(pairs, len(alive_threads))
        is_complete = counts == alive_threads[warp]
        np.add.at(result, slot[is_complete], WARP_SIZE - counts[is_complete])
        return result

    def arrive_in_warp(self, barrier: WarpBarrier, group: ThreadGroup) -> ThreadGroup | None:
        """Let ``group`` arrive at a barrier of its warps. Return it if it continues immediately."""
        members = barrier.members.read(group.registers)
        if self._batch.checks is not None:
            self._batch.checks.check_mask(barrier.line, group.lanes, members)
        is_full = group.lanes.count == self._batch.alive_count
        if is_full or not self._batch.missing_members(members, group.lanes).any():
            if self._batch.checks is not None:
                self._batch.checks.order.sync_warps(group.lanes, members)
            return group
        self._warp_waits.append((barrier, group))
        return None

    def _release_warps(self) -> list[ThreadGroup]:
        if not self._warp_waits:
            return []
        present_bits = np.zeros_like(self._batch.alive_bits)
        for _, group in self._warp_waits:
            present_bits |= group.lanes.active_bits
        released_groups, members = [], []
        remaining_waits = []
        for barrier, group in self._warp_waits:
            is_complete = (
                self._batch.missing_members(barrier.members.read(group.registers), group.lanes, present_bits) == 0
            )
            masks = group.lanes.spread(barrier.members.read(group.registers))
            if is_complete.any():
                members.append(masks[is_complete])
            if is_complete.all():
                released_groups.append(group)
                continue
            if is_complete.any():
                # The mask is no longer live after the barrier; those who stay need it.
                released_groups.append(group.split_off(is_complete, group.block))
                group.registers[barrier.members.index] = masks[~is_complete]
            remaining_waits.append((barrier, group))
        self._warp_waits = remaining_waits
        if released_groups and self._batch.checks is not None:
            places = np.concatenate([group.lanes.places for group in released_groups])
            order = np.argsort(places)
            lanes = Lanes(places[order], group.lanes.places_per_block, group.lanes.block_count)
            self._batch.checks.order.sync_warps(lanes, np.concatenate(members)[order])
        return released_groups

    def check_deadlock(self) -> None:
        """Raise DeadlockError if threads wait."""
        self.cluster_barriers.check_deadlock()
        for wait in self._block_waits:
            lanes, slot, needed_count = wait.group.lanes, int(wait.slot[0]), int(wait.needed_count()[0])
            ended_threads = self._batch.threads - int(self._batch.alive_in_block[lanes.block[0]])
            ended_text = (
                f"; {ended_threads} threads of the block have ended" if ended_threads and wait.count is not None else ""
            )
            detail = f"{self._count_arrivals().threads[slot]} threads of {needed_count} arrived{ended_text}"
            location = self._batch.describe(lanes, 0)
            raise DeadlockError(f"barrier {slot % BARRIER_COUNT}", wait.barrier.line, location, detail)
        for barrier, group in self._warp_waits:
            members = int(group.lanes.spread(barrier.members.read(group.registers))[0])
            arrived_bits = sum(
                1 << lane
                for _, other_group in self._warp_waits
                for lane in other_group.lanes.lane[other_group.lanes.warp == group.lanes.warp[0]].tolist()
            )
            detail = missing_lanes(members, int(self._batch.alive_bits[group.lanes.warp[0]]) & ~arrived_bits)
            raise DeadlockError("bar.warp.sync", barrier.line, self._batch.describe(group.lanes, 0), detail)

    def waiting_lanes(self) -> Iterator[tuple[int, Lanes]]:
        """The line and the lanes of each group that waits at a barrier of its block or warp."""
        yield from ((wait.barrier.line, wait.group.lanes) for wait in self._block_waits)
        yield from ((barrier.line, group.lanes) for barrier, group in self._warp_waits)
