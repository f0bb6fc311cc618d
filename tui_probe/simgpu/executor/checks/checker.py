"""Checks of kernels while they run: each access against the allocations of its memory.

A ``Checker`` belongs to a process, a ``LaunchChecks`` to a launch, a ``BatchChecks`` to the blocks that run together.
Checks change nothing that a kernel sees: an access that they report is executed as without them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.ptx.tree import inserted_lines
from tui_probe.simgpu.executor.checks.access_clock import (
    BULK,
    FULL_MASK,
    MAX_THREADS,
    TIME_BITS,
    TRACKED,
    LaunchClock,
    contain_errors,
)
from tui_probe.simgpu.executor.checks.access_order import BatchOrder
from tui_probe.simgpu.executor.checks.accesses import (
    ACCESS_NAMES,
    MAX_FINDINGS,
    AccessPlace,
    CheckedAccess,
    Fault,
    SiteTable,
    coordinates,
    finding_text,
    gather,
    index_of,
    place_in,
    range_of,
)
from tui_probe.simgpu.executor.checks.byte_states import (
    ALLOCATED,
    INITIALISED,
    READABLE,
    ByteStates,
    GlobalStates,
    distance_after,
    whole_word,
)
from tui_probe.simgpu.executor.checks.races import AllocationUse, Race, RaceSearch, Stamps, UnstampedLoads
from tui_probe.simgpu.executor.checks.split_barriers import SplitBarrierSearch
from tui_probe.simgpu.executor.faults import AbortError, DeadlockError, MemoryFaultError, MisalignedAddressError
from tui_probe.simgpu.executor.memory import CTA_BYTES, DeviceMemory
from tui_probe.simgpu.executor.scalars import U8

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from tui_probe.errors import SimulationError
    from tui_probe.ptx.tree import Module
    from tui_probe.simgpu.executor.checks.byte_states import Allocation
    from tui_probe.simgpu.executor.checks.split_barriers import CodeBlock, SplitBarrier, WaitingLanes
    from tui_probe.simgpu.executor.lanes import Lanes
    from tui_probe.simgpu.executor.memory import Space
    from tui_probe.simgpu.executor.scalars import Value
    from tui_probe.simgpu.executor.scope import Launch


_MAX_GRANULE: Final = 4
"""Bytes with one stamp, of kernels that access no fewer."""
_MAX_TIME: Final = 1 << 31
"""Time from which on stamps begin anew: their upper 32 bits are the time, and the next launch has to fit."""
_SPACE_OWNERS: Final = {"shared": "the block", "local": "the thread"}


class Checker:
    """The checks of a process. ``memory`` is its device memory."""

    def __init__(self, memory: DeviceMemory) -> None:
        self.states = GlobalStates(memory.base, memory.limit)
        self._reported: set[tuple[object, ...]] = set()
        self._faults: dict[tuple[object, ...], Fault] = {}
        self._memory_bytes = memory.limit
        self._stamps: Stamps | None = None
        self._time = 0

    def begin_launch(
        self, kernel: str, shape: Launch, min_access_bytes: int, code: Sequence[CodeBlock]
    ) -> LaunchChecks | None:
        """Return the checks of a launch; None if there is no memory for them, which is reported as a fault."""
        try:
            return LaunchChecks(self, kernel, shape, min_access_bytes, code)
        except (OSError, MemoryError) as error:
            self.add_fault(kernel, Fault("unchecked", AccessPlace(0, "", None, None), detail=str(error)))
            return None

    def begin_clock(self, granule: int, blocks: int) -> tuple[LaunchClock, Stamps]:
        """Return the clock of a launch of this many blocks, and the stamps of device memory. Raises OSError."""
        self.states.begin_launch()
        if self._stamps is None or self._stamps.granule > granule or self._time > _MAX_TIME:
            self._stamps, self._time = Stamps.for_device(self._memory_bytes, granule), 0
        return LaunchClock(self._time, blocks), self._stamps

    def end_clock(self, clock: LaunchClock) -> None:
        """A launch ended: all of its accesses happen before those of the next one."""
        self._time = clock.time

    def apply_changes(self, changes: Iterable[tuple[int, int, int]]) -> None:
        """Take changes of device memory since the last launch into account: kind, address, bytes."""
        self.states.apply(changes)

    def add_fault(self, kernel: str, fault: Fault) -> None:
        """Keep a fault; one of the same kind at the same instructions counts with the first."""
        key = (kernel, fault.kind, fault.space, fault.place.line, fault.other.line if fault.other else 0)
        if key in self._faults:
            first_fault = self._faults[key]
            self._faults[key] = replace(first_fault, count=first_fault.count + fault.count)
        elif key not in self._reported and len(self._reported) < MAX_FINDINGS:
            self._reported.add(key)
            self._faults[key] = fault

    def take_faults(self) -> list[Fault]:
        """Return the new faults since the last call."""
        faults = list(self._faults.values())
        self._faults.clear()
        return faults

    def take_texts(self, kernel: str, module: Module) -> tuple[str, ...]:
        """Take the faults of a launch of ``kernel`` as JSON texts, without races of what probes inserted."""
        return fault_texts(self.take_faults(), kernel, module)

    def faults_so_far(self) -> list[Fault]:
        """Return the new faults without taking them. Any thread may call it: the dictionary is copied in one step."""
        return list(self._faults.values())


def fault_texts(faults: list[Fault], kernel: str, module: Module) -> tuple[str, ...]:
    """Return faults of a launch of ``kernel`` as JSON texts, without races of what probes inserted."""
    if not faults:
        return ()
    inserted, sites = inserted_lines(module.source), SiteTable(module)
    faults = [fault for fault in faults if fault.kind != "race" or fault.place.line not in inserted]
    return tuple(finding_text(kernel, fault, sites) for fault in faults)


class LaunchChecks:
    """The checks of one launch of ``kernel``."""

    def __init__(
        self, checker: Checker, kernel: str, shape: Launch, min_access_bytes: int, code: Sequence[CodeBlock]
    ) -> None:
        self.checker = checker
        self.code = code
        self._kernel = kernel
        self.granule = min(min_access_bytes, _MAX_GRANULE)
        blocks, threads = prod(shape.grid), prod(shape.block)
        self.clock, self.stamps = checker.begin_clock(self.granule, blocks)
        self._uses: dict[int, AllocationUse] = {}
        self._unallocated_use = AllocationUse()
        self.has_races = blocks * threads <= MAX_THREADS

    def end_launch(self) -> None:
        """The launch ended."""
        self.checker.end_clock(self.clock)
        if self.clock.failure:
            self.report(Fault("unchecked", AccessPlace(0, "", None, None), detail=self.clock.failure))

    def races(self, search: RaceSearch, allocation: Allocation | None, *, is_write: bool) -> Iterator[Race]:
        """Yield the races of an access to device memory. Loads of memory that no store reaches leave no stamps."""
        use = self._unallocated_use if allocation is None else self._uses.setdefault(allocation.start, AllocationUse())
        uses = list(self._uses.values()) if allocation is None else [use]
        is_stored = self._unallocated_use.is_stored or any(known_use.is_stored for known_use in uses)
        if is_stored:
            yield from search.races_with_stores()
        if not is_write and not is_stored and allocation is not None:
            use.loads.keep(search)
            return
        for known_use in uses:
            known_use.stamp_loads()
        if not is_write:
            use.is_loaded = True
            search.stamp_loads()
            return
        if self._unallocated_use.is_loaded or any(known_use.is_loaded for known_use in uses):
            yield from search.races_with_loads()
        use.is_stored = True
        yield from search.stamp_stores()

    def report(self, fault: Fault) -> None:
        """Report a fault of this launch."""
        self.checker.add_fault(self._kernel, fault)

    def report_error(self, error: SimulationError) -> None:
        """Report the fault that ended the launch, if it is one of the kernel."""
        text = str(error)
        if isinstance(error, MemoryFaultError):
            kind = "misaligned" if isinstance(error, MisalignedAddressError) else "out_of_bounds"
            detail = self._bounds_text(error) if kind == "out_of_bounds" else ""
            fault = Fault(kind, place_in(text), error.space, error.size, error.address, error.value, detail=detail)
            self.report(fault)
        elif isinstance(error, DeadlockError):
            waiting_place = replace(place_in(error.other_location), access="waits") if error.other_location else None
            self.report(Fault("deadlock", place_in(text), detail=error.detail, other=waiting_place))
        elif isinstance(error, AbortError):
            self.report(Fault(error.kind, place_in(text), detail=error.detail))

    def _bounds_text(self, error: MemoryFaultError) -> str:
        if error.space == "global":
            return self.checker.states.describe(error.address)
        owner = _SPACE_OWNERS.get(error.space) if error.limit <= CTA_BYTES else None  # of a cluster
        distance = error.address - error.limit
        relation = distance_after(distance) if 0 <= distance <= error.limit else "outside"
        return f"{relation} the {error.limit} bytes of {owner}" if owner else ""


class BatchChecks:
    """The checks of a batch of blocks: ``blocks`` are their linear indices in the grid of ``shape``."""

    def __init__(self, launch: LaunchChecks, shape: Launch, blocks: NDArray[np.int64]) -> None:
        self._launch = launch
        self.clock = launch.clock
        self._shape = shape
        self._blocks = blocks
        self._states: dict[int, tuple[Space, ByteStates]] = {}
        self.order = BatchOrder(launch.clock, shape, blocks)
        self._shared_stamps: Stamps | None = None
        self._shared_loads = UnstampedLoads()
        self._has_diverged = False

    @cached_property
    def _split_barriers(self) -> SplitBarrierSearch:
        return SplitBarrierSearch(self._launch.code, self.order.place_count)

    @contain_errors
    def check_mask(self, line: int, lanes: Lanes, members: Value) -> None:
        """Check that the mask of each lane, or one for all, names the lane that executes the instruction."""
        if (members == FULL_MASK).all():
            return
        masks = lanes.spread(members).astype(np.int64)
        is_outside = (masks >> lanes.lane & 1) == 0
        if is_outside.any():
            position = int(np.argmax(is_outside))
            detail = f"lane {int(lanes.lane[position])} is not in the mask {int(masks[position]):#x}"
            place = self._place_of(line, "", int(lanes.places[position]))
            self._launch.report(Fault("invalid_mask", place, count=int(np.count_nonzero(is_outside)), detail=detail))

    @contain_errors
    def enter_block(self, lanes: Lanes, block: int) -> None:
        """Record that lanes execute a basic block."""
        self._split_barriers.record_block(lanes, block)

    @contain_errors
    def retire_lanes(self, lanes: Lanes) -> None:
        """Record that lanes end."""
        self._split_barriers.record_exit(lanes)

    @contain_errors
    def bypass_barrier(self, line: int, lanes: Lanes, following: int) -> None:
        """Check a barrier of whole warps that all threads that have not ended pass together."""
        if lanes.count < self.order.thread_count:
            self._report_split(self._split_barriers.bypassed_barriers(line, lanes, following))

    @contain_errors
    def open_barriers(self, waits: Sequence[WaitingLanes], is_opening: NDArray[np.bool_]) -> None:
        """Check the barriers of ``is_opening``, which open. ``waits`` are all lanes at barriers of whole warps."""
        self._report_split(self._split_barriers.split_barriers(waits, is_opening))

    def _report_split(self, barriers: Iterator[SplitBarrier]) -> None:
        barrier = None if self._has_diverged else next(barriers, None)
        if barrier is not None:
            self._has_diverged = True  # later barriers of the same threads are a consequence
            other_access = "waits" if barrier.other_waits else "ends"
            place = self._place_of(barrier.line, "barrier", barrier.place)
            other_place = self._place_of(barrier.other_line, other_access, barrier.other_place)
            self._launch.report(Fault("divergent_barrier", place, other=other_place))

    def _place_of(self, line: int, check_access: str, place: int) -> AccessPlace:
        block, thread = self.order.place(int(self.order.thread_at(place)))
        return self._access_place(line, check_access, block, thread)

    def _access_place(self, line: int, check_access: str, block: int, thread: int) -> AccessPlace:
        """Return a place by the linear index of the block in the grid, and of the thread in its block."""
        shape = self._shape
        return AccessPlace(line, check_access, coordinates(block, shape.grid), coordinates(thread, shape.block))

    @contain_errors
    def access(self, access: CheckedAccess) -> None:
        """Check an access that is about to be executed."""
        space, elements = access.space.name, index_of(access.elements)
        if space == "global":
            self._check_global(access, elements)
        elif space == "shared" and self._launch.has_races:
            self._check_shared(access, elements)
        elif space != "param":
            self._check_states(access, elements, self._states_of(access.space))

    def _check_global(self, access: CheckedAccess, elements: slice | Value) -> None:
        states, launch = self._launch.checker.states, self._launch
        first_element, end_element = range_of(elements)
        allocation = states.find_allocation(first_element * access.size, end_element * access.size)
        if allocation is None or not states.is_readable(allocation):
            self._check_states(access, elements, states)
        if launch.has_races:
            search = self._race_search(access, elements, launch.stamps, self.order.clock.start_time)
            self._report_races(access, launch.races(search, allocation, is_write=access.kind.is_write))

    def _check_shared(self, access: CheckedAccess, elements: slice | Value) -> None:
        """Check memory whose bytes are initialised where a store has left a stamp."""
        search = self._race_search(access, elements, self._shared_memory_stamps(access.space), self.order.floor)
        if access.kind.is_read and (is_uninitialised := search.find_unstored()).any():
            self._report(
                "uninitialized", access, int(np.argmax(is_uninitialised)), _lane_count(is_uninitialised, access)
            )
        self._report_races(access, self._shared_races(search, is_write=access.kind.is_write))

    def _race_search(self, access: CheckedAccess, elements: slice | Value, stamps: Stamps, floor: int) -> RaceSearch:
        time = self.order.clock.tick(access.line, access.kind.code)
        return RaceSearch(access, elements, self.order, stamps, floor, time)

    def _shared_races(self, search: RaceSearch, *, is_write: bool) -> Iterator[Race]:
        yield from search.races_with_stores()
        if not is_write:
            self._shared_loads.keep(search)
            return
        for load in self._shared_loads.take():
            # Loads from before a barrier of all blocks are ordered, except copies.
            if load.time > self.order.floor or load.is_pending:
                load.stamp_loads()
        yield from search.races_with_loads()
        yield from search.stamp_stores()

    def _report_races(self, access: CheckedAccess, races: Iterable[Race]) -> None:
        for race in races:
            self._report_race(access, race)
        if access.kind.flag == TRACKED:
            self.order.copies.record_tracked_copy()
        if access.kind.flag == BULK:
            self.order.copies.record_bulk_access(is_read=access.kind.is_read)
        if access.kind.is_release:
            self.order.release(access.lanes, access.kind.scope)
        if access.kind.is_acquire:
            self.order.acquire(access.lanes, access.kind.scope)

    def _shared_memory_stamps(self, space: Space) -> Stamps:
        if self._shared_stamps is None:
            self._shared_stamps = Stamps.for_blocks(len(space.view(U8)), self._launch.granule)
        return self._shared_stamps

    def _report_race(self, access: CheckedAccess, race: Race) -> None:
        line, code = self.order.clock.access_at(race.stamp >> TIME_BITS)
        other_place = self._access_place(line, ACCESS_NAMES[code], *self.order.place(race.stamp))
        self._report("race", access, race.number, race.lanes, other_place=other_place)

    def _states_of(self, space: Space) -> ByteStates:
        """Return the states of memory that each batch has anew."""
        space_states = self._states.get(id(space))
        if space_states is None:
            states = ByteStates.uninitialised(len(space.view(U8)))
            if any(known_space.name == space.name for known_space, _ in self._states.values()):
                # Recursion made the stack larger: its bytes were copied, so they count as initialised.
                states.fill(0, len(states.states), INITIALISED)
            space_states = self._states[id(space)] = (space, states)
        return space_states[1]

    def _check_states(self, access: CheckedAccess, elements: slice | Value, states: ByteStates) -> None:
        states_of_words = gather(states.words(access.size), elements)
        if (states_of_words == whole_word(access.size, READABLE)).all():
            return
        allocated = whole_word(access.size, ALLOCATED)
        is_outside = ((states_of_words & allocated) != allocated).any(axis=1)
        if is_outside.any():
            self._report_outside(access, is_outside)
        if access.kind.is_read:
            initialised = whole_word(access.size, INITIALISED)
            is_uninitialised = ((states_of_words & initialised) == 0).all(axis=1) & ~is_outside
            if is_uninitialised.any():
                self._report(
                    "uninitialized", access, int(np.argmax(is_uninitialised)), _lane_count(is_uninitialised, access)
                )
        if access.kind.is_write:
            words_by_access = states.words(access.size)
            if is_outside.any():
                elements = np.atleast_1d(access.elements)[~is_outside]
            words_by_access[elements] |= whole_word(access.size, INITIALISED)

    def _report_outside(self, access: CheckedAccess, is_outside: Value) -> None:
        number = int(np.argmax(is_outside))
        base = access.space.base if isinstance(access.space, DeviceMemory) else 0
        detail = self._launch.checker.states.describe(access.element(number) * access.size + base)
        kind = "use_after_free" if "freed" in detail else "out_of_bounds"
        self._report(kind, access, number, _lane_count(is_outside, access), detail)

    def _report(
        self,
        kind: str,
        access: CheckedAccess,
        number: int,
        count: int,
        detail: str = "",
        other_place: AccessPlace | None = None,
    ) -> None:
        space, start = access.space, access.element(number) * access.size
        address = start + space.base if isinstance(space, DeviceMemory) else start % space.stride
        fault = Fault(
            kind,
            self._lane_place(access, number),
            space.name,
            size=access.size,
            address=address,
            value=access.value_text(number),
            count=count,
            detail=detail,
            other=other_place,
        )
        self._launch.report(fault)

    def _lane_place(self, access: CheckedAccess, number: int) -> AccessPlace:
        position, lanes = access.position(number), access.lanes
        block, thread = int(self._blocks[lanes.block[position]]), int(lanes.thread[position])
        return self._access_place(access.line, access.kind.name, block, thread)


def _lane_count(flags: Value, access: CheckedAccess) -> int:
    """Count the lanes of an access for which a flag is set; one flag may stand for all."""
    if access.elements.ndim:
        return int(np.count_nonzero(flags))
    return access.lanes.count if access.positions is None else len(access.positions)
