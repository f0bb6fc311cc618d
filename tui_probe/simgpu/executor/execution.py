"""Executing a launch: blocks in batches, as the model of time places them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.errors import SimulationError
from tui_probe.simgpu.executor.batch import Batch
from tui_probe.simgpu.executor.clusters import blocks_in_order, checked_cluster
from tui_probe.simgpu.executor.memory import ParameterMemory
from tui_probe.simgpu.executor.model import Machine, Placement, Schedule
from tui_probe.simgpu.executor.scheduler import Scheduler
from tui_probe.simgpu.executor.scope import Launch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tui_probe.simgpu.executor.kernel import Kernel
    from tui_probe.simgpu.executor.memory import DeviceMemory

MAX_THREADS: Final = 1024


@dataclass(frozen=True, slots=True)
class Execution:
    """What a launch took: ``cycles`` from its start to the end of its last block, ``instructions`` counted per warp.

    ``printed`` is what its threads printed.
    """

    cycles: int
    instructions: int
    printed: bytes = b""


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
) -> Execution:
    """Runs ``kernel`` on device ``memory``.

    ``grid`` and ``block`` are extents in x, y, z; ``parameters`` is the buffer that ``Kernel.parameters`` lays out;
    ``variables`` gives the device address of each module variable; ``start_cycle`` is the device's clock when
    the launch starts. ``cluster`` is the extent of a cluster in blocks, all 0 for none but the kernel's own;
    ``workspace`` the device address of 8 bytes for the barrier of a cooperative grid.
    Raises SimulationError; memory then holds what was written until then.
    """
    launch = _checked_launch(kernel, grid, block, dynamic_shared_bytes, parameters, variables)
    launch.workspace = workspace
    launch.cluster = cluster if any(cluster) else kernel.cluster
    if any(launch.cluster):
        checked_cluster(kernel.name, launch.cluster, grid)
    run = _Run(kernel, launch, machine, memory, start_cycle)
    with np.errstate(all="ignore"):
        return run.execute()


def _checked_launch(
    kernel: Kernel,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    dynamic_shared_bytes: int,
    parameters: bytes,
    variables: Mapping[str, int],
) -> Launch:
    threads = block[0] * block[1] * block[2]
    limit = kernel.max_threads or MAX_THREADS
    if min(*grid, *block) < 1 or threads > limit:
        raise SimulationError(f"{kernel.name}: grid {grid}, block {block}: a block may have 1 to {limit} threads")
    if len(parameters) < kernel.parameter_bytes:
        message = f"{kernel.name} takes {kernel.parameter_bytes} bytes of parameters, {len(parameters)} were given"
        raise SimulationError(message)
    return Launch(parameters, variables, dynamic_shared_bytes, kernel.layout.dynamic_start, grid, block)


class _Run:
    """One launch."""

    def __init__(self, kernel: Kernel, launch: Launch, machine: Machine, memory: DeviceMemory, start: int) -> None:
        self._kernel = kernel
        self._launch = launch
        self._machine = machine
        self._memory = memory
        self._start = start
        self._parameters = ParameterMemory(launch.parameters)
        self._template = kernel.layout.template.copy()
        for index, value in kernel.layout.launch_values:
            self._template[index] = value(launch)
        self._live = kernel.program.live()
        self._order = blocks_in_order(launch.grid, launch.cluster) if any(launch.cluster) else None
        self._instructions = 0
        self._printed: list[bytes] = []

    def execute(self) -> Execution:
        threads = self._launch.block[0] * self._launch.block[1] * self._launch.block[2]
        count = self._launch.grid[0] * self._launch.grid[1] * self._launch.grid[2]
        slots = self._machine.slots_per_sm(threads, self._launch.shared_bytes)
        together = self._launch.cluster_size
        size = slots * self._machine.sm_count // together * together
        if not size:
            raise SimulationError(f"a cluster of {together} blocks does not fit into the GPU")
        schedule = Schedule(self._machine, slots, count, self._kernel.program.shortest, together)
        if self._kernel.program.reads_placement:
            while placements := schedule.certain(count):
                self._finish(schedule, placements, self._run(placements))
        else:
            durations = self._all_durations(count, size)
            while placements := schedule.certain(count):
                self._finish(schedule, placements, [durations[placement.block] for placement in placements])
        return Execution(schedule.end, self._instructions, b"".join(self._printed))

    @staticmethod
    def _finish(schedule: Schedule, placements: Sequence[Placement], durations: Sequence[int]) -> None:
        for placement, cycles in zip(placements, durations, strict=True):
            schedule.finished(placement, cycles)

    def _all_durations(self, count: int, size: int) -> list[int]:
        """How long each block takes, where nothing depends on when or where it runs.

        As many blocks run together as the machine holds at a time, ``size``: such blocks may wait for each other.
        """
        durations: list[int] = []
        for first in range(0, count, size):
            blocks = range(first, min(first + size, count))
            durations += self._run([Placement(block, 0, 0, 0) for block in blocks])
        return durations

    def _run(self, placements: Sequence[Placement]) -> list[int]:
        """Runs blocks together; how many cycles each took."""
        kernel = self._kernel
        if self._order is not None:
            placements = [replace(placement, block=int(self._order[placement.block])) for placement in placements]
        batch = Batch(
            self._live,
            self._template,
            self._launch,
            self._machine,
            self._memory,
            self._parameters,
            placements,
            self._start,
            kernel.local_bytes,
        )
        try:
            Scheduler(kernel.program, batch).run(kernel.program.first_group(batch, kernel.name))
        except SimulationError as error:
            error.printed = b"".join(self._printed + batch.printed)
            raise
        self._instructions += batch.instructions
        self._printed += batch.printed
        return batch.durations()
