"""The blocks that run at the same time, with their memory, clocks and living threads."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tui_probe.simgpu.executor.copy_groups import CopyGroups
from tui_probe.simgpu.executor.lanes import ALL_WARPS, Lanes, Places, warp_bits
from tui_probe.simgpu.executor.mbarrier_words import MBarriers
from tui_probe.simgpu.executor.memory import ClusterMemory, DeviceMemory, LocalMemory, ParameterMemory, SharedMemory
from tui_probe.simgpu.executor.model import WARP_SIZE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tui_probe.simgpu.executor.located import Located
    from tui_probe.simgpu.executor.model import Machine, Placement
    from tui_probe.simgpu.executor.scalars import Registers, Value
    from tui_probe.simgpu.executor.scope import Launch


class Batch:
    """Blocks ``placements``, whole clusters of them, of a launch of a program whose registers ``live`` are read
    from each basic block on.

    ``counters`` (int64, one per warp) are cycles since the start of the warp's block, ``starts`` (int64,
    one per block) the absolute cycle of that start. ``template`` holds constants by register index.
    """

    def __init__(
        self,
        live: Sequence[Sequence[int]],
        template: Registers,
        launch: Launch,
        machine: Machine,
        memory: DeviceMemory,
        parameters: ParameterMemory,
        placements: Sequence[Placement],
        start_cycle: int,
        local_bytes: int,
    ) -> None:
        self.live = live
        self.template = template
        self.launch = launch
        self.machine = machine
        self.block_count = len(placements)
        self.threads = launch.block[0] * launch.block[1] * launch.block[2]
        self.warps_per_block = -(-self.threads // WARP_SIZE)
        self.block_indices = np.array([placement.block for placement in placements], np.int64)
        self.sms = np.array([placement.sm for placement in placements], np.uint32)
        self.slots = np.array([placement.slot for placement in placements], np.int64)
        self.starts = np.array([placement.start for placement in placements], np.int64) + start_cycle
        self.counters = np.zeros(self.block_count * self.warps_per_block, np.int64)
        self.instructions = 0
        self.printed: list[bytes] = []
        self.lanes = self._all_lanes()
        self.alive = np.zeros(self.lanes.place_count, np.bool_)
        self.alive[self.lanes.places] = True
        self.alive_count = self.lanes.count
        self.alive_in_block = np.full(self.block_count, self.threads, np.int64)
        self._alive_bits: NDArray[np.uint32] | None = None
        self.memory = memory
        self.parameters = parameters
        self.shared = (
            SharedMemory(self.block_count, launch.shared_bytes)
            if launch.cluster_size == 1
            else ClusterMemory(self.block_count, launch.shared_bytes, launch.cluster_size)
        )
        self.local = LocalMemory(self.lanes.place_count, local_bytes)
        self.mbarriers = MBarriers(self.shared)
        # Where the addresses in registers lead; see ``access``.
        self.located: dict[tuple[str, int, int], Located] = {}

    def _all_lanes(self) -> Lanes:
        places_per_block = self.warps_per_block * WARP_SIZE
        blocks = np.arange(self.block_count, dtype=np.intp)[:, None] * places_per_block
        return Lanes((blocks + np.arange(self.threads)).reshape(-1), places_per_block, self.block_count)

    @cached_property
    def copies(self) -> CopyGroups:
        """The ``cp.async`` of all threads."""
        return CopyGroups(self.lanes.place_count)

    @cached_property
    def bulk_writes(self) -> CopyGroups:
        """The ``cp.async.bulk`` out of shared memory of all threads."""
        return CopyGroups(self.lanes.place_count)

    @cached_property
    def bulk_reads(self) -> CopyGroups:
        """The same copies, until their sources are read."""
        return CopyGroups(self.lanes.place_count)

    def lanes_of(self, places: Places) -> Lanes:
        """The set of ``places``, which are ascending; the known one if that is all threads."""
        if len(places) == self.lanes.count:
            return self.lanes
        return Lanes(places, self.lanes.places_per_block, self.block_count)

    def reserve_local(self, limit: int) -> None:
        """Makes room for ``limit`` bytes of local memory per thread."""
        if limit > self.local.limit:
            self.local = self.local.grown(limit)
            self.located.clear()

    def charge(self, lanes: Lanes, cycles: int, instructions: int) -> None:
        """The warps of ``lanes`` executed ``instructions`` that take ``cycles``."""
        if lanes.warps is ALL_WARPS:
            self.counters += cycles
        else:
            self.counters[lanes.warps] += cycles
        self.instructions += instructions * lanes.warp_count

    def retire(self, lanes: Lanes) -> None:
        """The threads of ``lanes`` exit."""
        self.alive[lanes.places] = False
        self.alive_count -= lanes.count
        self.alive_in_block -= np.bincount(lanes.block, minlength=self.block_count)
        self._alive_bits = None

    @property
    def alive_bits(self) -> NDArray[np.uint32]:
        """The threads of each warp that have not exited, lane 0 in bit 0."""
        if self._alive_bits is None:
            self._alive_bits = warp_bits(self.alive)
        return self._alive_bits

    def missing_members(
        self, members: Value, lanes: Lanes, here: NDArray[np.uint32] | None = None
    ) -> NDArray[np.uint32]:
        """For each lane, the living threads that its mask names and that are not in ``here`` (or in ``lanes``)."""
        absent = self.alive_bits & ~(lanes.active_bits if here is None else here)
        missing: NDArray[np.uint32] = members & absent[lanes.warp]
        return missing

    def durations(self) -> list[int]:
        """Cycles from the start of each block to the exit of its last warp."""
        cycles: list[int] = self.counters.reshape(self.block_count, -1).max(axis=1).tolist()
        return cycles

    def describe(self, lanes: Lanes, position: int) -> str:
        """The block and thread of a lane, for messages."""
        block = self.block_indices[lanes.block[position]]
        thread = int(lanes.thread[position])
        return f"block {_coordinates(int(block), self.launch.grid)}, thread {_coordinates(thread, self.launch.block)}"


def _coordinates(linear: int, size: tuple[int, int, int]) -> str:
    x, y, z = linear % size[0], linear // size[0] % size[1], linear // (size[0] * size[1])
    return f"({x}, {y}, {z})"
