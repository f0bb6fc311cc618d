"""Checks of kernels while they run: each access against the allocations of its memory.

A ``Checker`` belongs to a process, a ``LaunchChecks`` to a launch, a ``BatchChecks`` to the blocks that run together.
Checks change nothing that a kernel sees: an access that they report is executed as without them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tui_probe.simgpu.executor.byte_states import ALLOCATED, INITIALISED, READABLE, ByteStates, GlobalStates, whole_word
from tui_probe.simgpu.executor.check_findings import (
    MAX_FINDINGS,
    AccessPlace,
    Coordinates,
    Fault,
    SiteTable,
    finding_text,
    place_in,
)
from tui_probe.simgpu.executor.faults import DeadlockError, MemoryFaultError, MisalignedAddressError
from tui_probe.simgpu.executor.scalars import U8, U64

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from tui_probe.errors import SimulationError
    from tui_probe.ptx.tree import Module
    from tui_probe.simgpu.executor.lanes import Lanes, Places
    from tui_probe.simgpu.executor.memory import DeviceMemory, Space
    from tui_probe.simgpu.executor.scalars import Value
    from tui_probe.simgpu.executor.scope import Launch


class AccessKind(NamedTuple):
    """What an instruction does with the memory that it accesses."""

    name: str
    reads: bool
    writes: bool


LOAD: Final = AccessKind("load", reads=True, writes=False)
STORE: Final = AccessKind("store", reads=False, writes=True)
ATOMIC: Final = AccessKind("atomic", reads=True, writes=True)


class CheckedAccess(NamedTuple):
    """An executed access: ``elements`` are numbers of elements of ``size`` bytes from the start of ``space``.

    ``positions`` are those of its lanes among ``lanes``, None for all; ``value`` is what is stored, if that is known.
    """

    kind: AccessKind
    line: int
    size: int
    space: Space
    elements: Value
    lanes: Lanes
    positions: Places | None = None
    value: Value | None = None

    def position(self, number: int) -> int:
        """The position among ``lanes`` of one of its own."""
        return number if self.positions is None else int(self.positions[number])

    def element(self, number: int) -> int:
        """The index of one of its lanes."""
        return int(self.elements[number] if self.elements.ndim else self.elements)

    def value_text(self, number: int) -> str | None:
        """The value that one of its lanes stores or finds, as a hexadecimal number."""
        if self.value is None:
            start = self.element(number) * self.size
            raw = self.space.view(U8)[start : start + self.size].tobytes()
        else:
            raw = (self.value[self.position(number)] if self.value.ndim else self.value).tobytes()
        return f"{int.from_bytes(raw, 'little'):#x}"


class Checker:
    """The checks of a process. ``memory`` is its device memory."""

    def __init__(self, memory: DeviceMemory) -> None:
        self.states = GlobalStates(memory.base, memory.limit)
        self._reported: set[tuple[object, ...]] = set()
        self._faults: dict[tuple[object, ...], Fault] = {}

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
        """The same of a launch of ``kernel``, as JSON."""
        faults = self.take_faults()
        if not faults:
            return ()
        sites = SiteTable(module)
        return tuple(finding_text(kernel, fault, sites) for fault in faults)


class LaunchChecks:
    """The checks of one launch of ``kernel``."""

    def __init__(self, checker: Checker, kernel: str) -> None:
        self.checker = checker
        self._kernel = kernel

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

    def _states_of(self, space: Space) -> ByteStates:
        if space.name == "global":
            return self._launch.checker.states
        known = self._states.get(id(space))
        if known is None:
            known = self._states[id(space)] = (space, ByteStates.uninitialised(len(space.view(U8))))
        return known[1]

    def _check_states(self, access: CheckedAccess, states: ByteStates, found: Value) -> None:
        """``found`` are the states of the bytes of each lane, some of which are not readable."""
        allocated = whole_word(access.size, ALLOCATED)
        outside = _any_word((found & allocated) != allocated, access)
        if outside.any():
            self._report_outside(access, outside)
        if access.kind.writes:
            inside = access.elements[~outside] if access.elements.ndim else access.elements
            if access.elements.ndim or not outside:
                states.words(access.size)[inside] |= whole_word(access.size, INITIALISED)

    def _report_outside(self, access: CheckedAccess, outside: Value) -> None:
        number = int(np.argmax(outside))
        address = access.element(number) * access.size + getattr(access.space, "base", 0)
        detail = self._launch.checker.states.describe(address)
        kind = "use_after_free" if "freed" in detail else "out_of_bounds"
        self._report(kind, access, number, outside, address, detail)

    def _report(
        self, kind: str, access: CheckedAccess, number: int, lanes: Value, address: int, detail: str = ""
    ) -> None:
        count = int(np.count_nonzero(lanes)) if lanes.ndim else access.lanes.count
        fault = Fault(
            kind, self._place(access, number), access.space.name, access.size, address, access.value_text(number),
            count, detail,
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
    lanes: Value = flags.any(axis=-1) if access.size > U64.itemsize else np.asarray(flags)
    return lanes


def _coordinates(linear: int, size: Coordinates) -> Coordinates:
    return linear % size[0], linear // size[0] % size[1], linear // (size[0] * size[1])
