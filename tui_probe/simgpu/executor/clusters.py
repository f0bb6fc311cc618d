"""Clusters of blocks: their order, shared memory and barriers (sm_90 on a GPU).

In ``.shared::cluster``, as in generic addresses, a window of ``CTA_BYTES`` belongs to each block: the first to the one
that asks, the following ones to the blocks of its cluster in order of their rank.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.errors import SimulationError
from tui_probe.simgpu.executor.faults import DeadlockError
from tui_probe.simgpu.executor.memory import CTA_BYTES, SHARED_WINDOW
from tui_probe.simgpu.executor.scalars import TYPES, U32, last_type, operands_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.ptx.tree import Instruction
    from tui_probe.simgpu.executor.lanes import Places
    from tui_probe.simgpu.executor.operands import Binder
    from tui_probe.simgpu.executor.operations import Operation
    from tui_probe.simgpu.executor.scalars import Value
    from tui_probe.simgpu.executor.threads import Batch, ThreadGroup

MAX_BLOCKS: Final = 16
"""Blocks of a cluster of non-portable size, as on sm_90; each device with clusters allows 8."""

Extents = tuple[int, int, int]


def checked_cluster(kernel: str, cluster: Extents, grid: Extents) -> None:
    """Raise SimulationError unless ``grid`` is made of whole clusters of at most ``MAX_BLOCKS`` blocks."""
    blocks = prod(cluster)
    if not 1 <= blocks <= MAX_BLOCKS or any(extent % part for extent, part in zip(grid, cluster, strict=True)):
        message = (
            f"{kernel}: grid {grid}, cluster {cluster}; a cluster has 1 to {MAX_BLOCKS} blocks and divides the grid"
        )
        raise SimulationError(message)


def blocks_in_order(grid: Extents, cluster: Extents) -> Places:
    """Linear indices of all blocks, cluster after cluster, in each in order of rank."""
    (gx, gy, gz), (cx, cy, cz) = grid, cluster
    blocks = np.arange(gx * gy * gz, dtype=np.intp).reshape(gz // cz, cz, gy // cy, cy, gx // cx, cx)
    return blocks.transpose(0, 2, 4, 1, 3, 5).reshape(-1)


def at_rank(address: Value, rank: int, group: ThreadGroup) -> Value:
    """The address in ``.shared::cluster`` at which the block of a rank has what ``address`` names in some block."""
    dtype = address.dtype.type
    offset: Value = address & dtype(CTA_BYTES - 1)
    return offset if group.batch.launch.cluster_size == 1 else offset + dtype((rank + 1) * CTA_BYTES)


def own_rank(group: ThreadGroup) -> Places:
    """The rank in its cluster of each lane's block."""
    return group.lanes.block % group.batch.launch.cluster_size


def _window(instruction: Instruction) -> int:
    return 0 if "shared::cluster" in instruction.modifiers else SHARED_WINDOW


def _build_map(instruction: Instruction, bind: Binder) -> Operation:
    """``mapa{.shared::cluster}.type d, a, b``: where the block of rank b has what a names in the own block."""
    kind = last_type(instruction)
    target, address, rank = operands_of(instruction, 3)
    result, source, rank_source = bind.target(target, kind), bind.source(address, kind), bind.source(rank, TYPES["u32"])
    window, line = kind.dtype.type(_window(instruction)), bind.line

    def run(group: ThreadGroup) -> None:
        ranks = rank_source.read(group.registers)
        if (ranks >= group.batch.launch.cluster_size).any():
            raise SimulationError(f"mapa at line {line} names a block outside of its cluster")
        offset = (source.read(group.registers) - window) & kind.dtype.type(CTA_BYTES - 1)
        if group.batch.launch.cluster_size > 1:
            offset = offset + (ranks.astype(kind.dtype) + kind.dtype.type(1)) * kind.dtype.type(CTA_BYTES)
        result.write(group.registers, offset + window)

    return run


def _build_rank(instruction: Instruction, bind: Binder) -> Operation:
    """``getctarank{.shared::cluster}.type d, a``: the rank of the block whose shared memory a names."""
    kind = last_type(instruction)
    target, address = operands_of(instruction, 2)
    result, source = bind.target(target, TYPES["u32"]), bind.source(address, kind)
    window = kind.dtype.type(_window(instruction))

    def run(group: ThreadGroup) -> None:
        window_number = ((source.read(group.registers) - window) // kind.dtype.type(CTA_BYTES)).astype(np.int64)
        result.write(group.registers, np.where(window_number > 0, window_number - 1, own_rank(group)).astype(U32))

    return run


BUILDERS: Final[dict[str, Callable[[Instruction, Binder], Operation]]] = {"mapa": _build_map, "getctarank": _build_rank}


# ``barrier.cluster``: threads arrive, and later wait until all threads of their cluster that have not exited have.
#
# A phase ends with the last arrival. What waits continues at the time of the latest of them, if that is later.


class ClusterBarriers:
    """The barriers of all clusters of a batch."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._cluster_count = batch.block_count // batch.launch.cluster_size
        # By place: whether a thread has arrived in the phase that continues, and in which phase it arrived last.
        self._has_arrived = np.zeros(len(batch.is_alive), np.bool_)
        self._arrival_phases = np.zeros(len(batch.is_alive), np.int64)
        # By cluster: the phase that continues, its latest arrival so far, and that of the one before.
        self._current_phases = np.zeros(self._cluster_count, np.int64)
        self._latest_arrivals = np.zeros(self._cluster_count, np.int64)
        self._phase_ends = np.zeros(self._cluster_count, np.int64)
        self._waiting_groups: list[tuple[ThreadGroup, int]] = []

    @property
    def has_waiting(self) -> bool:
        """True if threads wait."""
        return bool(self._waiting_groups)

    def _cluster_indices(self, group: ThreadGroup) -> Places:
        return group.lanes.block // self._batch.launch.cluster_size

    def arrive(self, group: ThreadGroup) -> ThreadGroup:
        """Let ``group`` arrive. Return it, because it continues."""
        cluster, places = self._cluster_indices(group), group.lanes.places
        self._has_arrived[places] = True
        self._arrival_phases[places] = self._current_phases[cluster]
        np.maximum.at(self._latest_arrivals, cluster, self._batch.counters[group.lanes.warp])
        if self._batch.checks is not None:
            self._batch.checks.order.arrive("cluster", cluster, group.lanes)
        return group

    def wait(self, group: ThreadGroup, line: int) -> None:
        """Let ``group`` wait for the end of the phase in which it arrived."""
        self._waiting_groups.append((group, line))

    def release(self) -> list[ThreadGroup]:
        """Return the groups whose phase has ended."""
        if not self._waiting_groups:
            return []
        self._end_phases()
        released_groups, remaining_groups = [], []
        for group, line in self._waiting_groups:
            is_over = self._current_phases[self._cluster_indices(group)] > self._arrival_phases[group.lanes.places]
            if not is_over.any():
                remaining_groups.append((group, line))
                continue
            leaving_group = group if is_over.all() else group.split_off(is_over, group.block)
            if leaving_group is not group:
                remaining_groups.append((group, line))
            counters, warps = self._batch.counters, leaving_group.lanes.warp
            counters[warps] = np.maximum(counters[warps], self._phase_ends[self._cluster_indices(leaving_group)])
            if self._batch.checks is not None:
                self._batch.checks.order.leave("cluster", self._cluster_indices(leaving_group), leaving_group.lanes)
            released_groups.append(leaving_group)
        self._waiting_groups = remaining_groups
        return released_groups

    def _end_phases(self) -> None:
        has_arrived = self._has_arrived.reshape(self._cluster_count, -1)
        is_missing = self._batch.is_alive.reshape(self._cluster_count, -1) & ~has_arrived
        is_ended = has_arrived.any(axis=1) & ~is_missing.any(axis=1)
        self._current_phases[is_ended] += 1
        self._phase_ends[is_ended] = self._latest_arrivals[is_ended]
        self._latest_arrivals[is_ended] = 0
        has_arrived[is_ended] = False

    def check_deadlock(self) -> None:
        """Raise DeadlockError if threads wait."""
        for group, line in self._waiting_groups:
            cluster = int(self._cluster_indices(group)[0])
            is_alive = self._batch.is_alive.reshape(self._cluster_count, -1)[cluster]
            arrived_count = np.count_nonzero(is_alive & self._has_arrived.reshape(self._cluster_count, -1)[cluster])
            detail = f"{arrived_count} of {np.count_nonzero(is_alive)} threads of the cluster have arrived"
            raise DeadlockError("barrier.cluster.wait", line, self._batch.describe(group.lanes, 0), detail)
