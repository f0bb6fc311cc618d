"""Checks of kernels while they run: each access against the allocations of its memory.

A ``Checker`` belongs to a process, a ``LaunchChecks`` to a launch, a ``BatchChecks`` to the blocks that run together.
Checks change nothing that a kernel sees: an access that they report is executed as without them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.simgpu.executor.checks.access_order import (
    MAX_THREADS,
    TIME_BITS,
    TRACKED,
    BatchOrder,
    LaunchClock,
    Stamps,
)
from tui_probe.simgpu.executor.checks.accesses import ACCESS_NAMES, CheckedAccess
from tui_probe.simgpu.executor.checks.byte_states import (
    ALLOCATED,
    INITIALISED,
    READABLE,
    ByteStates,
    GlobalStates,
    whole_word,
)
from tui_probe.simgpu.executor.checks.findings import (
    MAX_FINDINGS,
    AccessPlace,
    Coordinates,
    Fault,
    SiteTable,
    finding_text,
    place_in,
)
from tui_probe.simgpu.executor.checks.races import Race, RaceSearch
from tui_probe.simgpu.executor.faults import DeadlockError, MemoryFaultError, MisalignedAddressError
from tui_probe.simgpu.executor.memory import DeviceMemory
from tui_probe.simgpu.executor.scalars import U8, U64

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from tui_probe.errors import SimulationError
    from tui_probe.ptx.tree import Module
    from tui_probe.simgpu.executor.memory import Space
    from tui_probe.simgpu.executor.scalars import Value
    from tui_probe.simgpu.executor.scope import Launch


_MAX_GRANULE: Final = 4
"""Bytes with one stamp, of kernels that access no fewer."""
_MAX_TIME: Final = 1 << 31


class Checker:
    """The checks of a process. ``memory`` is its device memory."""

    def __init__(self, memory: DeviceMemory) -> None:
        self.states = GlobalStates(memory.base, memory.limit)
        self._reported: set[tuple[object, ...]] = set()
        self._faults: dict[tuple[object, ...], Fault] = {}
        self._memory_bytes = memory.limit
        self._stamps: Stamps | None = None
        self._time = 0

    def begin(self, granule: int, blocks: int) -> tuple[LaunchClock, Stamps]:
        """The clock of a launch of so many blocks, and the stamps of device memory. Raises OSError."""
        if self._stamps is None or self._stamps.granule > granule or self._time > _MAX_TIME:
            self._stamps, self._time = Stamps.of_device(self._memory_bytes, granule), 0
        return LaunchClock(self._time, blocks), self._stamps

    def end(self, clock: LaunchClock) -> None:
        """A launch ended: all of its accesses happen before those of the next one."""
        self._time = clock.now

    def apply(self, changes: Iterable[tuple[int, int, int]]) -> None:
        """Take changes of device memory since the last launch into account: kind, address, bytes."""
        self.states.apply(changes)

    def add(self, kernel: str, fault: Fault) -> None:
        """Keep a fault; one of the same kind at the same instructions counts with the first."""
        key = (kernel, fault.kind, fault.space, fault.place.line, fault.other.line if fault.other else 0)
        if key in self._faults:
            known = self._faults[key]
            self._faults[key] = replace(known, count=known.count + fault.count)
        elif key not in self._reported and len(self._reported) < MAX_FINDINGS:
            self._reported.add(key)
            self._faults[key] = fault

    def take_faults(self) -> list[Fault]:
        """The new faults since the last call."""
        faults = list(self._faults.values())
        self._faults.clear()
        return faults

    def take_texts(self, kernel: str, module: Module) -> tuple[str, ...]:
        """Take the faults of a launch of ``kernel`` as JSON texts."""
        faults = self.take_faults()
        if not faults:
            return ()
        sites = SiteTable(module)
        return tuple(finding_text(kernel, fault, sites) for fault in faults)


class LaunchChecks:
    """The checks of one launch of ``kernel``."""

    def __init__(self, checker: Checker, kernel: str, shape: Launch, least_access: int) -> None:
        self.checker = checker
        self._kernel = kernel
        self.granule = min(least_access, _MAX_GRANULE)
        blocks = shape.grid[0] * shape.grid[1] * shape.grid[2]
        self.clock, self.stamps = checker.begin(self.granule, blocks)
        threads = shape.block[0] * shape.block[1] * shape.block[2]
        self.has_races = blocks * threads <= MAX_THREADS

    def end(self) -> None:
        """The launch ended."""
        self.checker.end(self.clock)

    def report(self, fault: Fault) -> None:
        """Report a fault of this launch."""
        self.checker.add(self._kernel, fault)

    def failed(self, error: SimulationError) -> None:
        """Report the fault that ended the launch, if it is one of the kernel."""
        text = str(error)
        if isinstance(error, MemoryFaultError):
            kind = "misaligned" if isinstance(error, MisalignedAddressError) else "out_of_bounds"
            detail = self._detail(error.space, error.address) if kind == "out_of_bounds" else ""
            self.report(Fault(kind, place_in(text), error.space, error.size, error.address, detail=detail))
        elif isinstance(error, DeadlockError):
            self.report(Fault("deadlock", place_in(text), detail=text))

    def _detail(self, space: str, address: int) -> str:
        return self.checker.states.describe(address) if space == "global" else ""


class BatchChecks:
    """The checks of a batch of blocks: ``blocks`` are their linear indices in the grid of ``shape``."""

    def __init__(self, launch: LaunchChecks, shape: Launch, blocks: NDArray[np.int64]) -> None:
        self._launch = launch
        self._shape = shape
        self._blocks = blocks
        self._states: dict[int, tuple[Space, ByteStates]] = {}
        self.order = BatchOrder(launch.clock, shape, blocks)
        self._shared_stamps: Stamps | None = None

    def access(self, access: CheckedAccess) -> None:
        """Check an access that is about to be executed."""
        if access.space.name == "param":
            return
        states = self._states_of(access.space)
        words = states.words(access.size)
        found = words[access.elements]
        wrong = found != whole_word(access.size, READABLE)
        if wrong.any():
            self._check_states(access, states, found)
        if access.space.name in ("global", "shared") and self._launch.has_races:
            self._check_order(access)

    def _check_order(self, access: CheckedAccess) -> None:
        order, kind = self.order, access.kind
        time = order.clock.tick(access.line, kind.code)
        is_global = access.space.name == "global"
        search = RaceSearch(
            access, order, self._launch.stamps if is_global else self._shared(access.space),
            order.clock.begin if is_global else order.floor, time,
        )  # fmt: skip
        for race in search.races():
            self._report_race(access, race)
        if kind.flag == TRACKED:
            order.copy_made()
        if kind.releases:
            order.release(access.lanes)
        if kind.acquires:
            order.acquire(access.lanes)

    def _shared(self, space: Space) -> Stamps:
        if self._shared_stamps is None:
            self._shared_stamps = Stamps.of_blocks(len(space.view(U8)), self._launch.granule)
        return self._shared_stamps

    def _report_race(self, access: CheckedAccess, race: Race) -> None:
        line, code = self.order.clock.access_at(race.stamp >> TIME_BITS)
        block, thread = self.order.place(race.stamp)
        other = AccessPlace(
            line, ACCESS_NAMES[code], _coordinates(block, self._shape.grid), _coordinates(thread, self._shape.block)
        )
        self._report("race", access, race.number, race.lanes, other=other)

    def _states_of(self, space: Space) -> ByteStates:
        if space.name == "global":
            return self._launch.checker.states
        known = self._states.get(id(space))
        if known is None:
            states = ByteStates.uninitialised(len(space.view(U8)))
            if any(other.name == space.name for other, _ in self._states.values()):
                states.fill(
                    0, len(states.states), INITIALISED
                )  # recursion made it larger: it has what was there before
            known = self._states[id(space)] = (space, states)
        return known[1]

    def _check_states(self, access: CheckedAccess, states: ByteStates, found: Value) -> None:
        """``found`` are the states of the bytes of each lane, some of which are not readable."""
        allocated = whole_word(access.size, ALLOCATED)
        outside = _any_word((found & allocated) != allocated, access)
        if outside.any():
            self._report_outside(access, outside)
        if access.kind.reads:
            initialised = whole_word(access.size, INITIALISED)
            missing = _every_word((found & initialised) == 0, access) & ~outside
            if missing.any():
                self._report("uninitialized", access, int(np.argmax(missing)), _count(missing, access))
        if access.kind.writes:
            inside = access.elements[~outside] if access.elements.ndim else access.elements
            if access.elements.ndim or not outside:
                states.words(access.size)[inside] |= whole_word(access.size, INITIALISED)

    def _report_outside(self, access: CheckedAccess, outside: Value) -> None:
        number = int(np.argmax(outside))
        base = access.space.base if isinstance(access.space, DeviceMemory) else 0
        detail = self._launch.checker.states.describe(access.element(number) * access.size + base)
        kind = "use_after_free" if "freed" in detail else "out_of_bounds"
        self._report(kind, access, number, _count(outside, access), detail)

    def _report(
        self,
        kind: str,
        access: CheckedAccess,
        number: int,
        count: int,
        detail: str = "",
        other: AccessPlace | None = None,
    ) -> None:
        space, start = access.space, access.element(number) * access.size
        address = start + space.base if isinstance(space, DeviceMemory) else start % space.stride
        fault = Fault(
            kind, self._place(access, number), space.name, access.size, address, access.value_text(number), count,
            detail, other,
        )  # fmt: skip
        self._launch.report(fault)

    def _place(self, access: CheckedAccess, number: int) -> AccessPlace:
        position = access.position(number)
        lanes, shape = access.lanes, self._shape
        block, thread = int(self._blocks[lanes.block[position]]), int(lanes.thread[position])
        return AccessPlace(
            access.line, access.kind.name, _coordinates(block, shape.grid), _coordinates(thread, shape.block)
        )


def _any_word(flags: Value, access: CheckedAccess) -> Value:
    """One flag per lane, of accesses whose states are several words."""
    return np.asarray(flags.any(axis=-1) if access.size > U64.itemsize else flags)


def _every_word(flags: Value, access: CheckedAccess) -> Value:
    return np.asarray(flags.all(axis=-1) if access.size > U64.itemsize else flags)


def _count(flags: Value, access: CheckedAccess) -> int:
    """The lanes of an access for which a flag holds, which may be one for all."""
    if flags.ndim:
        return int(np.count_nonzero(flags))
    return access.lanes.count if access.positions is None else len(access.positions)


def _coordinates(linear: int, size: Coordinates) -> Coordinates:
    return linear % size[0], linear // size[0] % size[1], linear // (size[0] * size[1])
