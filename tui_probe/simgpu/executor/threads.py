"""The blocks that run together, and the groups of their threads that are at the same instruction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tui_probe.simgpu.executor.async_state import CopyGroups, MBarriers
from tui_probe.simgpu.executor.checks.accesses import coordinates
from tui_probe.simgpu.executor.checks.checker import BatchChecks
from tui_probe.simgpu.executor.lanes import ALL_WARPS, Lanes, Places, warp_bits
from tui_probe.simgpu.executor.memory import ClusterMemory, DeviceMemory, LocalMemory, ParameterMemory, SharedMemory
from tui_probe.simgpu.executor.model import WARP_SIZE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from tui_probe.simgpu.executor.checks.checker import LaunchChecks
    from tui_probe.simgpu.executor.memory import LocatedAddress
    from tui_probe.simgpu.executor.model import Machine, Placement
    from tui_probe.simgpu.executor.scalars import Registers, Value
    from tui_probe.simgpu.executor.scope import Launch


class Batch:
    """Blocks ``placements``, whole clusters of them, of a launch. ``live_registers`` are those that the program reads
    from each basic block on.

    ``counters`` (int64, one per warp) are cycles since the start of the warp's block, ``start_cycles`` (int64,
    one per block) the absolute cycle of that start. ``template`` holds constants by register index.
    """

    def __init__(
        self,
        live_registers: Sequence[Sequence[int]],
        template: Registers,
        launch: Launch,
        machine: Machine,
        memory: DeviceMemory,
        parameters: ParameterMemory,
        placements: Sequence[Placement],
        start_cycle: int,
        local_bytes: int,
        checks: LaunchChecks | None = None,
    ) -> None:
        self.live = live_registers
        self.template = template
        self.launch = launch
        self.machine = machine
        self.block_count = len(placements)
        self.threads = prod(launch.block)
        self.warps_per_block = -(-self.threads // WARP_SIZE)
        self.block_indices = np.array([placement.block for placement in placements], np.int64)
        self.sms = np.array([placement.sm for placement in placements], np.uint32)
        self.slots = np.array([placement.slot for placement in placements], np.int64)
        self.start_cycles = np.array([placement.start for placement in placements], np.int64) + start_cycle
        self.counters = np.zeros(self.block_count * self.warps_per_block, np.int64)
        self.instructions = 0
        self.printf_output: list[bytes] = []
        self.lanes = self._all_lanes()
        self.is_alive = np.zeros(self.lanes.place_count, np.bool_)
        self.is_alive[self.lanes.places] = True
        self.alive_count = self.lanes.count
        self.alive_in_block = np.full(self.block_count, self.threads, np.int64)
        self._alive_bits: NDArray[np.uint32] | None = None
        self.memory = memory
        self.parameters = parameters
        self.shared_memory = (
            SharedMemory(self.block_count, launch.shared_bytes)
            if launch.cluster_size == 1
            else ClusterMemory(self.block_count, launch.shared_bytes, launch.cluster_size)
        )
        self.local_memory = LocalMemory(self.lanes.place_count, local_bytes)
        self.mbarriers = MBarriers(self.shared_memory)
        self.checks = BatchChecks(checks, launch, self.block_indices) if checks is not None else None
        if self.checks is not None:
            self.mbarriers.watchers.append(self.checks.order.copies.record_phase_end)
        # Where the addresses in registers lead; see ``access``.
        self.located_addresses: dict[tuple[str, int, int], LocatedAddress] = {}

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
        """Copies in progress whose sources are still to be read."""
        return CopyGroups(self.lanes.place_count)

    def lanes_of(self, places: Places) -> Lanes:
        """The set of ``places``, which are ascending; the known one if that is all threads."""
        if len(places) == self.lanes.count:
            return self.lanes
        return Lanes(places, self.lanes.places_per_block, self.block_count)

    def reserve_local(self, limit: int) -> None:
        """Make room for ``limit`` bytes of local memory per thread."""
        if limit > self.local_memory.limit:
            self.local_memory = self.local_memory.grow(limit)
            self.located_addresses.clear()

    def charge_cycles(self, lanes: Lanes, cycles: int, instructions: int) -> None:
        """The warps of ``lanes`` executed ``instructions`` that take ``cycles``."""
        if lanes.warps is ALL_WARPS:
            self.counters += cycles
        else:
            self.counters[lanes.warps] += cycles
        self.instructions += instructions * lanes.warp_count

    def retire_lanes(self, lanes: Lanes) -> None:
        """The threads of ``lanes`` exit."""
        self.is_alive[lanes.places] = False
        self.alive_count -= lanes.count
        self.alive_in_block -= np.bincount(lanes.block, minlength=self.block_count)
        self._alive_bits = None

    @property
    def alive_bits(self) -> NDArray[np.uint32]:
        """The threads of each warp that have not exited, lane 0 in bit 0."""
        if self._alive_bits is None:
            self._alive_bits = warp_bits(self.is_alive)
        return self._alive_bits

    def missing_members(
        self, members: Value, lanes: Lanes, present_bits: NDArray[np.uint32] | None = None
    ) -> NDArray[np.uint32]:
        """Return, per lane, the living threads that its mask names and ``present_bits`` lacks (None: ``lanes``)."""
        absent_bits = self.alive_bits & ~(lanes.active_bits if present_bits is None else present_bits)
        missing_bits: NDArray[np.uint32] = members & absent_bits[lanes.warp]
        return missing_bits

    def durations(self) -> list[int]:
        """Cycles from the start of each block to the exit of its last warp."""
        cycles: list[int] = self.counters.reshape(self.block_count, -1).max(axis=1).tolist()
        return cycles

    def describe(self, lanes: Lanes, position: int) -> str:
        """The block and thread of a lane, for messages."""
        block = self.block_indices[lanes.block[position]]
        thread = int(lanes.thread[position])
        return f"block {coordinates(int(block), self.launch.grid)}, thread {coordinates(thread, self.launch.block)}"


@dataclass(frozen=True, slots=True)
class CallFrame:
    """State that a caller keeps while it waits for its callee.

    ``saved_registers`` are the registers that it still needs; ``hand_back`` takes results from the callee's registers
    to the caller's.
    """

    resume: int
    saved_registers: tuple[tuple[int, Value], ...]
    hand_back: Callable[[Registers, Registers], None]
    local_base: int


class ThreadGroup:
    """Lanes at the start of basic block ``block``, with their registers.

    Threads of a kernel start as one group. A divergent branch splits a group; groups that meet at the same place with
    the same call stack are merged. So an instruction never sees a mask: it works on whole arrays, one element for each
    lane of its group.

    ``local_base`` is where the current function's local variables start. ``turn`` orders groups that wait
    for others in a loop; it is 0 for all others.
    """

    __slots__ = ("batch", "block", "branch_split", "frames", "lanes", "local_base", "registers", "turn")
    batch: Batch
    branch_split: BranchSplit | None
    lanes: Lanes

    def __init__(
        self,
        batch: Batch,
        lanes: Lanes,
        registers: Registers,
        block: int,
        frames: tuple[CallFrame, ...],
        local_base: int,
    ) -> None:
        self.batch = batch
        self.lanes = lanes
        self.registers = registers
        self.block = block
        self.frames = frames
        self.local_base = local_base
        self.turn = 0
        self.branch_split = None

    @property
    def place(self) -> tuple[int, tuple[int, ...], int]:
        """Groups with the same place can be merged. Deeper calls sort first, then smaller blocks."""
        return (-len(self.frames), tuple(frame.resume for frame in self.frames), self.block)

    def select(self, index: Places, block: int, live_registers: Iterable[int]) -> ThreadGroup:
        """The lanes at positions ``index`` as a group at ``block``, with the registers ``live_registers`` only."""
        registers = self.batch.template.copy()
        source_registers = self.registers
        for register in live_registers:
            registers[register] = pick_lanes(source_registers[register], index)
        frames = tuple(
            CallFrame(
                frame.resume,
                tuple((register, pick_lanes(value, index)) for register, value in frame.saved_registers),
                frame.hand_back,
                frame.local_base,
            )
            for frame in self.frames
        )
        return ThreadGroup(self.batch, self.lanes.select(index), registers, block, frames, self.local_base)

    def split_off(self, condition: Value, block: int) -> ThreadGroup:
        """Take the lanes for which ``condition`` (one boolean per lane) holds out of this group, to ``block``.

        The rest stays in this group, with the registers that are live at its own block.
        """
        live = self.batch.live
        part = self.select(np.flatnonzero(condition), block, live[block])
        self._keep_lanes(np.flatnonzero(~condition))
        return part

    def branch(self, condition: Value, block: int) -> ThreadGroup:
        """Split off a group that waits at ``block``; its registers are picked only if it runs by itself."""
        branch_split = BranchSplit(self, np.flatnonzero(condition), block)
        self._keep_lanes(np.flatnonzero(~condition))
        branch_split.set_running(self)
        return branch_split.waiting_group

    def _keep_lanes(self, index: Places) -> None:
        if self.branch_split is not None:
            self.branch_split.end()
        kept_group = self.select(index, self.block, self.batch.live[self.block])
        self.lanes, self.registers, self.frames = kept_group.lanes, kept_group.registers, kept_group.frames


class BranchSplit:
    """A group that a branch has divided: one part runs on, the other one waits until its registers are needed.

    Where the parts meet, most registers are those of before, since an instruction never changes an array in place.
    It ends when a part is divided again, so that a loop does not keep the registers of all its rounds.
    """

    __slots__ = (
        "_positions",
        "_running_frames",
        "_running_group",
        "_running_lanes",
        "_running_registers",
        "_whole_group",
        "waiting_group",
    )
    _running_group: ThreadGroup
    _running_lanes: Lanes
    _running_frames: tuple[CallFrame, ...]
    _running_registers: dict[int, Value | None]

    def __init__(self, group: ThreadGroup, positions: Places, block: int) -> None:
        self._whole_group = ThreadGroup(
            group.batch, group.lanes, group.registers, block, group.frames, group.local_base
        )
        self._positions = positions
        lanes = group.lanes.select(positions)
        self.waiting_group = ThreadGroup(group.batch, lanes, group.registers, block, group.frames, group.local_base)
        self.waiting_group.branch_split = self

    def set_running(self, group: ThreadGroup) -> None:
        """State which group runs on, with the registers that are live in it."""
        self._running_group, self._running_lanes, self._running_frames = group, group.lanes, group.frames
        self._running_registers = {register: group.registers[register] for register in group.batch.live[group.block]}
        group.branch_split = self

    def end(self) -> None:
        """Pick the registers of the part that waits: the parts have no more to do with each other."""
        waiting_group, whole_group = self.waiting_group, self._whole_group
        selected_group = whole_group.select(
            self._positions, waiting_group.block, waiting_group.batch.live[waiting_group.block]
        )
        waiting_group.registers, waiting_group.frames = selected_group.registers, selected_group.frames
        waiting_group.branch_split = self._running_group.branch_split = None

    def rejoin(self) -> ThreadGroup | None:
        """The group of before with what the part that ran has changed; None if that part has other lanes or calls."""
        running_group, whole_group = self._running_group, self._whole_group
        if running_group.lanes is not self._running_lanes or running_group.frames is not self._running_frames:
            return None
        registers = whole_group.batch.template.copy()
        positions: Places | None = None
        for register in whole_group.batch.live[whole_group.block]:
            split_value, running_value = whole_group.registers[register], running_group.registers[register]
            if register in self._running_registers and running_value is self._running_registers[register]:
                registers[register] = split_value
                continue
            if positions is None:
                positions = np.flatnonzero(_absence_mask(self._positions, whole_group.lanes.count))
            registers[register] = _joined_value(split_value, running_value, positions, whole_group.lanes.count)
        return ThreadGroup(
            whole_group.batch,
            whole_group.lanes,
            registers,
            whole_group.block,
            whole_group.frames,
            whole_group.local_base,
        )


def _absence_mask(positions: Places, count: int) -> NDArray[np.bool_]:
    is_absent = np.ones(count, np.bool_)
    is_absent[positions] = False
    return is_absent


def _joined_value(
    split_value: Value | None, running_value: Value | None, positions: Places, count: int
) -> Value | None:
    """``split_value`` with ``running_value`` for the lanes at ``positions``; 0 in lanes without a value."""
    if split_value is None or running_value is None:
        present_value = running_value if split_value is None else split_value
        if present_value is None:
            return None
    elif not split_value.ndim and not running_value.ndim and _has_same_bits(split_value, running_value):
        return split_value
    else:
        present_value = split_value if split_value.ndim else running_value
    result = np.zeros((count, *present_value.shape[1:]), present_value.dtype)
    if split_value is not None:
        result[:] = split_value
    result[positions] = 0 if running_value is None else running_value
    return result


def pick_lanes(value: Any, index: Places) -> Any:
    """``value`` for the lanes at ``index``. A scalar holds for all lanes."""
    return value if value is None or not value.ndim else value[index]


def merge(groups: Sequence[ThreadGroup]) -> ThreadGroup:
    """Merge ``groups``, which are at the same place, into one."""
    first_group, branch_split = groups[0], groups[-1].branch_split
    if len(groups) == 2 and branch_split is not None and first_group.branch_split is branch_split:
        joined_group = branch_split.rejoin()
        if joined_group is not None:
            return joined_group
    for group in groups:
        if group.branch_split is not None and (len(groups) > 1 or group is group.branch_split.waiting_group):
            group.branch_split.end()
    if len(groups) == 1:
        return first_group
    batch = first_group.batch
    places = np.concatenate([group.lanes.places for group in groups])
    order = np.argsort(places, kind="stable")
    lanes = batch.lanes_of(places[order])
    counts = [group.lanes.count for group in groups]

    def join(values: list[Value]) -> Value:
        return _join_values(values, counts, order)

    registers = batch.template.copy()
    for register in batch.live[first_group.block]:
        registers[register] = join([group.registers[register] for group in groups])
    frames = tuple(_merge_frames(frames, join) for frames in zip(*(group.frames for group in groups), strict=True))
    return ThreadGroup(batch, lanes, registers, first_group.block, frames, first_group.local_base)


def _merge_frames(frames: Sequence[CallFrame], join: Callable[[list[Value]], Value]) -> CallFrame:
    first_frame = frames[0]
    saved_registers = tuple(
        (register, join([frame.saved_registers[position][1] for frame in frames]))
        for position, (register, _) in enumerate(first_frame.saved_registers)
    )
    return CallFrame(first_frame.resume, saved_registers, first_frame.hand_back, first_frame.local_base)


def _join_values(values: list[Value], counts: list[int], order: Places) -> Value:
    first_value = values[0]
    if (first_value is None or not first_value.ndim) and all(value is first_value for value in values):
        return first_value
    present_values = [value for value in values if value is not None]
    if not present_values:
        return first_value
    if not any(value.ndim for value in present_values) and all(
        value is not None and _has_same_bits(value, first_value) for value in values
    ):
        return first_value
    shape = next((value.shape[1:] for value in present_values if value.ndim), ())
    dtype = present_values[0].dtype
    parts = [
        value if value is not None and value.ndim else np.full((count, *shape), 0 if value is None else value, dtype)
        for value, count in zip(values, counts, strict=True)
    ]
    joined_value: Value = np.concatenate(parts)[order]
    return joined_value


def _has_same_bits(left: Value, right: Value) -> bool:
    # Bits, not numbers: NaN equals itself and 0.0 differs from -0.0.
    return left.tobytes() == right.tobytes()
