"""Executing a launch: blocks in batches as the model of time places them, and groups of threads in turn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from tui_probe.errors import SimulationError
from tui_probe.simgpu.executor.checks.split_barriers import CodeBlock
from tui_probe.simgpu.executor.clusters import blocks_in_order, checked_cluster
from tui_probe.simgpu.executor.faults import DeadlockError
from tui_probe.simgpu.executor.lanes import missing_lanes
from tui_probe.simgpu.executor.memory import ParameterMemory
from tui_probe.simgpu.executor.model import WARP_SIZE, Machine, Placement, Schedule
from tui_probe.simgpu.executor.phase_waits import PhaseWaits
from tui_probe.simgpu.executor.scope import Launch
from tui_probe.simgpu.executor.threads import Batch, ThreadGroup, merge
from tui_probe.simgpu.executor.waiting_threads import Barriers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tui_probe.simgpu.executor.checks.checker import Checker, LaunchChecks
    from tui_probe.simgpu.executor.kernel import Kernel
    from tui_probe.simgpu.executor.memory import DeviceMemory
    from tui_probe.simgpu.executor.operations import SourceOperand
    from tui_probe.simgpu.executor.program import BasicBlock, Program

GroupPosition: TypeAlias = tuple[int, tuple[int, ...], int]
"""``ThreadGroup.place``: negative depth of calls, basic blocks to which they return, basic block."""

_MAX_POLL_ROUNDS: Final = 1000
"""Rounds of groups that poll in a loop while others try an mbarrier, before these give up."""
_STARVING_STEPS: Final = 1 << 12
"""Basic blocks that run before the warps that had no turn get one. The number doubles each time, so that a long loop
that waits for no other thread costs few merges.
"""
_STEPS_PER_STARVED_TURN: Final = 1 << 10
"""Basic blocks that such warps run."""
MAX_THREADS: Final = 1024
"""Threads per block that every device allows (CUDA C++ Programming Guide, compute capabilities)."""


class Scheduler:
    """Runs the threads of a batch through a program until all have exited.

    The group with the deepest call stack and the smallest basic block goes first, until it reaches a place where
    another one waits: then they are merged. Compilers lay out code so that paths meet further down, so this makes
    divergent paths meet early. A group that jumps back in a loop that may wait for another thread (it holds an atomic,
    a volatile load or the like) gives way to all others, so that every thread gets on. One that tries an mbarrier waits
    for the end of the phase, and gives up only where nothing else can continue.

    A loop that waits for no other thread gives way only after many basic blocks, and to other warps only: lanes of its
    own warps wait until they can be merged, as on a GPU.
    """

    def __init__(self, program: Program, batch: Batch) -> None:
        self.program = program
        self.batch = batch
        self.barriers = Barriers(batch)
        self.phase_waits = PhaseWaits(batch.mbarriers)
        self._ready_groups: dict[GroupPosition, list[ThreadGroup]] = {}
        # Groups that wait for lanes of their warps at a `.sync` instruction.
        self._incomplete_warps: dict[GroupPosition, ThreadGroup] = {}
        self._checks_barriers = batch.checks is not None and any(block.meets_block for block in program.blocks)
        # Turns given to groups that gave way; rounds of groups that poll while others try an mbarrier.
        self._turns = 0
        self._rounds = 0
        # Basic blocks that have run, and at how many the warps that had no turn get one.
        self._steps = 0
        self._max_steps = _STARVING_STEPS
        # Groups of warps that have run for long, set aside while others run.
        self._paused_groups: list[ThreadGroup] = []

    def keep_ready(self, group: ThreadGroup, gives_way: bool = False) -> None:
        """Keep ``group`` for later; after all others, if it ``gives_way``."""
        if gives_way:
            self._turns += 1
            group.turn = self._turns
        self._ready_groups.setdefault(group.place, []).append(group)

    def give_way(self, group: ThreadGroup) -> ThreadGroup | None:
        """Let all others go before ``group``, which waits for something in a loop."""
        if not (
            self._ready_groups or self._incomplete_warps or self.barriers.has_waiting or self.phase_waits.has_waiting
        ):
            return group
        self.keep_ready(group, gives_way=True)
        return None

    def run(self, group: ThreadGroup | None) -> None:
        """Run ``group`` and all that comes from it. Raises SimulationError."""
        try:
            while group is not None:
                self._advance(group)
                if self._steps >= self._max_steps:
                    self._run_starved(group)
                group = self._next_group()
            self._check_deadlock()
        except DeadlockError as error:
            error.other_location = self._other_wait_location(error)
            raise

    def _run_starved(self, group: ThreadGroup) -> None:
        """Let the other warps run until they wait, or for some steps, after ``group`` has run for many."""
        current: ThreadGroup | None = group
        while current is not None:
            self._paused_groups += self._take_warps(current)
            self._max_steps = self._steps + _STEPS_PER_STARVED_TURN
            current = self._next_group()
            while current is not None and self._steps < self._max_steps:
                self._advance(current)
                current = current if self._steps >= self._max_steps else self._next_group()
        for paused_group in self._paused_groups:
            self.keep_ready(paused_group)
        self._paused_groups = []
        self._max_steps = 2 * self._steps

    def _take_warps(self, group: ThreadGroup) -> list[ThreadGroup]:
        """Take all lanes of the warps of ``group`` out of the groups that can run."""
        is_warp_of_group = np.zeros(group.lanes.place_count // WARP_SIZE, np.bool_)
        is_warp_of_group[group.lanes.warp] = True
        candidates = [ready_group for groups in self._ready_groups.values() for ready_group in groups]
        self._ready_groups.clear()
        taken_groups = []
        for candidate in candidates:
            is_taken = is_warp_of_group[candidate.lanes.warp]
            if is_taken.all():
                taken_groups.append(candidate)
                continue
            if is_taken.any():
                part = merge([candidate]).split_off(is_taken, candidate.block)
                part.turn = candidate.turn
                taken_groups.append(part)
            self.keep_ready(candidate)
        return taken_groups

    def _check_deadlock(self) -> None:
        self.barriers.check_deadlock()
        for group in self._incomplete_warps.values():
            block, lanes = self.program.blocks[group.block], group.lanes
            if block.members is not None:
                mask, warp = int(lanes.spread(block.members.read(group.registers))[0]), lanes.warp[0]
                detail = missing_lanes(mask, int(self.batch.alive_bits[warp] & ~lanes.active_bits[warp]))
                raise DeadlockError("an exchange within a warp", block.line, self.batch.describe(lanes, 0), detail)

    def _other_wait_location(self, error: DeadlockError) -> str:
        """Return line, block and thread of a thread that waits in the same block at another line; "" for none."""
        exchanges = ((self.program.blocks[group.block].line, group.lanes) for group in self._incomplete_warps.values())
        for line, lanes in (*self.barriers.waiting_lanes(), *self.phase_waits.waiting_lanes(), *exchanges):
            for position in (0, lanes.count - 1):
                location = self.batch.describe(lanes, position)
                if line != error.line and location.partition(", thread")[0] == error.location.partition(", thread")[0]:
                    return f"line {line}, {location}"
        return ""

    def _advance(self, start: ThreadGroup) -> None:
        """Run a group until it waits, ends, or another one should go before it."""
        blocks, batch, ready_groups = self.program.blocks, self.batch, self._ready_groups
        group: ThreadGroup | None = start
        while group is not None:
            block = blocks[group.block]
            if block.members is not None and group.lanes.count != batch.alive_count:
                group = self._complete_warps(group, block)
                if group is None:
                    return
            if block.members is not None and block.orders_accesses and batch.checks is not None:
                members = block.members.read(group.registers)
                batch.checks.check_mask(block.line, group.lanes, members)
                batch.checks.order.sync_warps(group.lanes, members)
            if block.own_line and self._checks_barriers and batch.checks is not None:
                batch.checks.enter_block(group.lanes, group.block)
            for operation in block.operations:
                operation(group)
            batch.charge_cycles(group.lanes, block.cycles, block.length)
            group = block.finish(group, self)
            self._steps += 1
            if group is not None and (self._steps >= self._max_steps or (ready_groups and self._should_wait(group))):
                self.keep_ready(group)
                return

    def _should_wait(self, group: ThreadGroup) -> bool:
        place = group.place
        return any(
            ready_place <= place and not _first_turn(groups) for ready_place, groups in self._ready_groups.items()
        )

    def _next_group(self) -> ThreadGroup | None:
        """Return the next group to run, with all others at the same place; None if nothing can run."""
        if all(_first_turn(groups) for groups in self._ready_groups.values()):
            # All groups gave way or wait: look whether what they wait for has happened.
            self._release_waiting()
            if not self._paused_groups:
                self._give_up()
        if not self._ready_groups:
            return None
        place = min(self._ready_groups, key=lambda place: (_first_turn(self._ready_groups[place]), place))
        group = merge(self._ready_groups.pop(place))
        group.turn = 0
        return group

    def _release_waiting(self) -> None:
        for group in (*self.barriers.release(), *self.phase_waits.release()):
            self.keep_ready(group)
        for place, group in list(self._incomplete_warps.items()):
            # Others may have exited meanwhile.
            members = self.program.blocks[group.block].members
            if members is not None and (self._missing_members(members, group) == 0).any():
                del self._incomplete_warps[place]
                self.keep_ready(group)

    def _give_up(self) -> None:
        """Let those that try an mbarrier without success continue, where all others wait or ask for something in a
        loop.

        The others get many rounds first: the time that a try takes is exact only if the phase ends meanwhile.
        """
        if not self.phase_waits.has_waiting or not all(_first_turn(groups) for groups in self._ready_groups.values()):
            self._rounds = 0
            return
        self._rounds += 1
        if not self._ready_groups or self._rounds > _MAX_POLL_ROUNDS:
            self._rounds = 0
            for group in self.phase_waits.give_up():
                self.keep_ready(group)

    def _complete_warps(self, group: ThreadGroup, block: BasicBlock) -> ThreadGroup | None:
        """The lanes of ``group`` whose warps are complete for a warp-level operation; the others wait here."""
        place = group.place
        earlier_group = self._incomplete_warps.pop(place, None)
        if earlier_group is not None:
            group = merge([earlier_group, group])
        if block.members is None:
            return group
        is_complete = self._missing_members(block.members, group) == 0
        if is_complete.all():
            return group
        if not is_complete.any():
            self._incomplete_warps[place] = group
            return None
        self._incomplete_warps[place] = group.split_off(~np.asarray(is_complete), group.block)
        return group

    def _missing_members(self, members: SourceOperand, group: ThreadGroup) -> NDArray[np.uint32]:
        return self.batch.missing_members(members.read(group.registers), group.lanes)


def _first_turn(groups: list[ThreadGroup]) -> int:
    """Return the earliest turn; 0 if a group has not given way, so that it runs before all that have."""
    return min(group.turn for group in groups)


@dataclass(frozen=True, slots=True)
class Execution:
    """Cost of a launch: ``cycles`` from its start to the end of its last block, ``instructions`` counted per warp.

    ``printf_output`` is what its threads printed.
    """

    cycles: int
    instructions: int
    printf_output: bytes = b""


def execute(
    kernel: Kernel,
    *,
    memory: DeviceMemory,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    dynamic_shared_bytes: int,
    parameters: bytes,
    variables: Mapping[str, int],
    machine: Machine,
    start_cycle: int,
    cluster: tuple[int, int, int] = (0, 0, 0),
    workspace: int = 0,
    checker: Checker | None = None,
) -> Execution:
    """Run ``kernel`` on device ``memory``.

    ``grid`` and ``block`` are extents in x, y, z; ``parameters`` is the buffer that ``Kernel.parameters`` lays out;
    ``variables`` gives the device address of each module variable; ``start_cycle`` is the device's clock when
    the launch starts. ``cluster`` is the extent of a cluster in blocks, all 0 for none but the kernel's own;
    ``workspace`` the device address of 8 bytes for the barrier of a cooperative grid. ``checker`` gets its faults.
    Raises SimulationError; memory then holds what was written until then.
    """
    launch = _checked_launch(kernel, grid, block, dynamic_shared_bytes, parameters, variables)
    launch.workspace = workspace
    launch.cluster = cluster if any(cluster) else kernel.cluster
    if any(launch.cluster):
        checked_cluster(kernel.name, launch.cluster, grid)
    checks = (
        None
        if checker is None
        else checker.begin_launch(kernel.name, launch, kernel.layout.min_access_bytes, _checked_code(kernel.program))
    )
    launch_run = _LaunchRun(kernel, launch, machine, memory, start_cycle, checks)
    try:
        with np.errstate(all="ignore"):
            return launch_run.execute()
    except SimulationError as error:
        if checks is not None:
            checks.report_error(error)
        raise
    finally:
        if checks is not None:
            checks.end_launch()


def _checked_code(program: Program) -> list[CodeBlock]:
    return [CodeBlock(block.own_line, block.successors, block.meets_block) for block in program.blocks]


def _checked_launch(
    kernel: Kernel,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    dynamic_shared_bytes: int,
    parameters: bytes,
    variables: Mapping[str, int],
) -> Launch:
    threads = prod(block)
    limit = kernel.max_threads or MAX_THREADS
    if min(*grid, *block) < 1 or threads > limit:
        raise SimulationError(f"{kernel.name}: grid {grid}, block {block}: a block may have 1 to {limit} threads")
    if len(parameters) < kernel.parameter_bytes:
        message = f"{kernel.name} takes {kernel.parameter_bytes} bytes of parameters, not {len(parameters)}"
        raise SimulationError(message)
    return Launch(parameters, variables, dynamic_shared_bytes, kernel.layout.dynamic_start, grid, block)


class _LaunchRun:
    """Executes one launch: batches of blocks, at the places and times that the model of time gives them."""

    def __init__(
        self,
        kernel: Kernel,
        launch: Launch,
        machine: Machine,
        memory: DeviceMemory,
        start: int,
        checks: LaunchChecks | None,
    ) -> None:
        self._checks = checks
        self._kernel = kernel
        self._launch = launch
        self._machine = machine
        self._memory = memory
        self._start_cycle = start
        self._parameters = ParameterMemory(launch.parameters)
        self._template = kernel.layout.template.copy()
        for index, value in kernel.layout.launch_values:
            self._template[index] = value(launch)
        self._live_registers = kernel.program.live_registers()
        self._block_order = blocks_in_order(launch.grid, launch.cluster) if any(launch.cluster) else None
        self._instructions = 0
        self._printf_output: list[bytes] = []

    def execute(self) -> Execution:
        threads, count = prod(self._launch.block), prod(self._launch.grid)
        slots, cluster = self._machine.slots_per_sm(threads, self._launch.shared_bytes), self._launch.cluster_size
        resident = slots * self._machine.sm_count // cluster * cluster
        if not resident:
            raise SimulationError(f"a cluster of {cluster} blocks does not fit into the GPU")
        schedule = Schedule(self._machine, slots, count, self._kernel.program.min_cycles, cluster)
        if self._kernel.program.reads_placement:
            while placements := schedule.next_placements(count):
                self._finish_blocks(schedule, placements, self._run_blocks(placements))
        else:
            durations = self._all_durations(count, resident)
            while placements := schedule.next_placements(count):
                self._finish_blocks(schedule, placements, [durations[placement.block] for placement in placements])
        return Execution(schedule.end, self._instructions, b"".join(self._printf_output))

    @staticmethod
    def _finish_blocks(schedule: Schedule, placements: Sequence[Placement], durations: Sequence[int]) -> None:
        for placement, cycles in zip(placements, durations, strict=True):
            schedule.finish_block(placement, cycles)

    def _all_durations(self, count: int, resident: int) -> list[int]:
        """Return the duration of each block in cycles, independent of when and where it runs.

        As many blocks run together as the machine holds at a time, ``resident``: such blocks may wait for each other.
        """
        durations: list[int] = []
        for begin in range(0, count, resident):
            blocks = range(begin, min(begin + resident, count))
            durations += self._run_blocks([Placement(block, 0, 0, 0) for block in blocks])
        return durations

    def _run_blocks(self, placements: Sequence[Placement]) -> list[int]:
        """Run blocks together, and return how many cycles each took."""
        kernel = self._kernel
        if self._block_order is not None:
            placements = [replace(placement, block=int(self._block_order[placement.block])) for placement in placements]
        batch = Batch(
            self._live_registers,
            self._template,
            self._launch,
            self._machine,
            self._memory,
            self._parameters,
            placements,
            self._start_cycle,
            kernel.local_bytes,
            self._checks,
        )
        try:
            Scheduler(kernel.program, batch).run(kernel.program.first_group(batch, kernel.name))
        except SimulationError as error:
            error.printf_output = b"".join(self._printf_output + batch.printf_output)
            raise
        self._instructions += batch.instructions
        self._printf_output += batch.printf_output
        return batch.durations()
