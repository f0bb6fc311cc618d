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
        checks: LaunchChecks | None = None,
    ) -> None:
        self.live = live
        self.template = template
        self.launch = launch
        self.machine = machine
        self.block_count = len(placements)
        self.threads = prod(launch.block)
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
        self.checks = BatchChecks(checks, launch, self.block_indices) if checks is not None else None
        if self.checks is not None:
            self.mbarriers.watchers.append(self.checks.order.copies.phase_ended)
        # Where the addresses in registers lead; see ``access``.
        self.located: dict[tuple[str, int, int], LocatedAddress] = {}

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
        """Return, per lane, the living threads that its mask names and that are not in ``here`` (None: ``lanes``)."""
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
        return f"block {coordinates(int(block), self.launch.grid)}, thread {coordinates(thread, self.launch.block)}"


@dataclass(frozen=True, slots=True)
class CallFrame:
    """State that a caller keeps while it waits for its callee.

    ``saved`` are the registers that it still needs; ``hand_back`` takes results from the callee's registers to the
    caller's.
    """

    resume: int
    saved: tuple[tuple[int, Value], ...]
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

    def select(self, index: Places, block: int, live: Iterable[int]) -> ThreadGroup:
        """The lanes at positions ``index`` as a group at ``block``, with the registers ``live`` only."""
        registers = self.batch.template.copy()
        old = self.registers
        for register in live:
            registers[register] = pick(old[register], index)
        frames = tuple(
            CallFrame(
                frame.resume,
                tuple((register, pick(value, index)) for register, value in frame.saved),
                frame.hand_back,
                frame.local_base,
            )
            for frame in self.frames
        )
        return ThreadGroup(self.batch, self.lanes.select(index), registers, block, frames, self.local_base)

    def split(self, condition: Value, block: int) -> ThreadGroup:
        """Take the lanes for which ``condition`` (one boolean per lane) holds out of this group, to ``block``.

        The rest stays in this group, with the registers that are live at its own block.
        """
        live = self.batch.live
        taken = self.select(np.flatnonzero(condition), block, live[block])
        self._keep(np.flatnonzero(~condition))
        return taken

    def branch(self, condition: Value, block: int) -> ThreadGroup:
        """Split off a group that waits at ``block``; its registers are picked only if it runs by itself."""
        branch_split = BranchSplit(self, np.flatnonzero(condition), block)
        self._keep(np.flatnonzero(~condition))
        branch_split.set_running(self)
        return branch_split.waiting

    def _keep(self, index: Places) -> None:
        if self.branch_split is not None:
            self.branch_split.end()
        staying = self.select(index, self.block, self.batch.live[self.block])
        self.lanes, self.registers, self.frames = staying.lanes, staying.registers, staying.frames


class BranchSplit:
    """A group that a branch has divided: one part runs on, the other one waits until its registers are needed.

    Where the parts meet, most registers are those of before, since an instruction never changes an array in place.
    It ends when a part is divided again, so that a loop does not keep the registers of all its rounds.
    """

    __slots__ = ("_before", "_picked", "_positions", "_running", "_running_frames", "_running_lanes", "waiting")
    _running: ThreadGroup
    _running_lanes: Lanes
    _running_frames: tuple[CallFrame, ...]
    _picked: dict[int, Value | None]

    def __init__(self, group: ThreadGroup, positions: Places, block: int) -> None:
        self._before = ThreadGroup(group.batch, group.lanes, group.registers, block, group.frames, group.local_base)
        self._positions = positions
        lanes = group.lanes.select(positions)
        self.waiting = ThreadGroup(group.batch, lanes, group.registers, block, group.frames, group.local_base)
        self.waiting.branch_split = self

    def set_running(self, group: ThreadGroup) -> None:
        """State which group runs on, with the registers that are live in it."""
        self._running, self._running_lanes, self._running_frames = group, group.lanes, group.frames
        self._picked = {register: group.registers[register] for register in group.batch.live[group.block]}
        group.branch_split = self

    def end(self) -> None:
        """Pick the registers of the part that waits: the parts have no more to do with each other."""
        waiting, before = self.waiting, self._before
        picked = before.select(self._positions, waiting.block, waiting.batch.live[waiting.block])
        waiting.registers, waiting.frames = picked.registers, picked.frames
        waiting.branch_split = self._running.branch_split = None

    def rejoined(self) -> ThreadGroup | None:
        """The group of before with what the part that ran has changed; None if that part has other lanes or calls."""
        running, before = self._running, self._before
        if running.lanes is not self._running_lanes or running.frames is not self._running_frames:
            return None
        registers = before.batch.template.copy()
        positions: Places | None = None
        for register in before.batch.live[before.block]:
            old, new = before.registers[register], running.registers[register]
            if register in self._picked and new is self._picked[register]:
                registers[register] = old
                continue
            if positions is None:
                positions = np.flatnonzero(_absent(self._positions, before.lanes.count))
            registers[register] = _replaced(old, new, positions, before.lanes.count)
        return ThreadGroup(before.batch, before.lanes, registers, before.block, before.frames, before.local_base)


def _absent(positions: Places, count: int) -> NDArray[np.bool_]:
    absent = np.ones(count, np.bool_)
    absent[positions] = False
    return absent


def _replaced(old: Value | None, new: Value | None, positions: Places, count: int) -> Value | None:
    """``old`` with ``new`` for the lanes at ``positions``; 0 in lanes without a value."""
    if old is None or new is None:
        known = new if old is None else old
        if known is None:
            return None
    elif not old.ndim and not new.ndim and _same_bits(old, new):
        return old
    else:
        known = old if old.ndim else new
    result = np.zeros((count, *known.shape[1:]), known.dtype)
    if old is not None:
        result[:] = old
    result[positions] = 0 if new is None else new
    return result


def pick(value: Any, index: Places) -> Any:
    """``value`` for the lanes at ``index``. A scalar holds for all lanes."""
    return value if value is None or not value.ndim else value[index]


def merge(groups: Sequence[ThreadGroup]) -> ThreadGroup:
    """Merge ``groups``, which are at the same place, into one."""
    first, branch_split = groups[0], groups[-1].branch_split
    if len(groups) == 2 and branch_split is not None and first.branch_split is branch_split:
        joined = branch_split.rejoined()
        if joined is not None:
            return joined
    for group in groups:
        if group.branch_split is not None and (len(groups) > 1 or group is group.branch_split.waiting):
            group.branch_split.end()
    if len(groups) == 1:
        return first
    batch = first.batch
    places = np.concatenate([group.lanes.places for group in groups])
    order = np.argsort(places, kind="stable")
    lanes = batch.lanes_of(places[order])
    counts = [group.lanes.count for group in groups]

    def join(values: list[Value]) -> Value:
        return _join_values(values, counts, order)

    registers = batch.template.copy()
    for register in batch.live[first.block]:
        registers[register] = join([group.registers[register] for group in groups])
    frames = tuple(_merge_frames(frames, join) for frames in zip(*(group.frames for group in groups), strict=True))
    return ThreadGroup(batch, lanes, registers, first.block, frames, first.local_base)


def _merge_frames(frames: Sequence[CallFrame], join: Callable[[list[Value]], Value]) -> CallFrame:
    first = frames[0]
    saved = tuple(
        (register, join([frame.saved[position][1] for frame in frames]))
        for position, (register, _) in enumerate(first.saved)
    )
    return CallFrame(first.resume, saved, first.hand_back, first.local_base)


def _join_values(values: list[Value], counts: list[int], order: Places) -> Value:
    first = values[0]
    if (first is None or not first.ndim) and all(value is first for value in values):
        return first
    known = [value for value in values if value is not None]
    if not known:
        return first
    if not any(value.ndim for value in known) and all(
        value is not None and _same_bits(value, first) for value in values
    ):
        return first
    shape = next((value.shape[1:] for value in known if value.ndim), ())
    dtype = known[0].dtype
    parts = [
        value if value is not None and value.ndim else np.full((count, *shape), 0 if value is None else value, dtype)
        for value, count in zip(values, counts, strict=True)
    ]
    joined: Value = np.concatenate(parts)[order]
    return joined


def _same_bits(left: Value, right: Value) -> bool:
    # Bits, not numbers: NaN equals itself and 0.0 differs from -0.0.
    return left.tobytes() == right.tobytes()
