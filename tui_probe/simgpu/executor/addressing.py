"""Locations of accesses: the state space that an address of each lane refers to, and the element in it."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tui_probe.simgpu.executor.checks.accesses import LOAD, AccessKind, CheckedAccess
from tui_probe.simgpu.executor.memory import GLOBAL_START, WINDOW_BYTES, AccessFault, LocatedAddress, Space

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tui_probe.ptx.tree import Instruction, Operand
    from tui_probe.simgpu.executor.lanes import Lanes, Places
    from tui_probe.simgpu.executor.operands import Binder
    from tui_probe.simgpu.executor.scalars import (
        DType,
        Value,
    )
    from tui_probe.simgpu.executor.threads import Batch, ThreadGroup

_SPACES: Final[dict[str, Callable[[Batch], Space]]] = {
    "global": attrgetter("memory"),
    "const": attrgetter("memory"),
    "shared": attrgetter("shared_memory"),
    "local": attrgetter("local_memory"),
    "param": attrgetter("parameters"),
}
_WINDOW_SPACES: Final = {1: "shared", 2: "local", 3: "param"}
_GLOBAL_WINDOW: Final = GLOBAL_START // WINDOW_BYTES
"""Number of the window that global memory begins with; a generic address in a lower one is of ``_WINDOW_SPACES``."""
STATE_SPACES: Final = frozenset({"global", "shared", "local", "const", "param"})


class _Location(NamedTuple):
    """The location of each lane's access within a space."""

    offset: Value
    """Bytes from the start of the space as the lane addresses it, such as the shared memory of its block."""
    element: Value
    """Index into the view of the space, in units of the access size."""


class LaneAccess(NamedTuple):
    """An access of lanes whose addresses are in one space."""

    space: Space
    element: Value
    """The element of each lane, counted from ``first_element``."""
    first_element: int = 0
    positions: Places | None = None
    """Positions of the lanes in their group; None for all lanes."""

    def view(self, dtype: DType) -> Value:
        """Return the elements of the space from ``first_element`` on, which ``element`` indexes."""
        view = self.space.view(dtype)
        return view[self.first_element :] if self.first_element else view

    @property
    def elements(self) -> Value:
        """The element of each lane, counted from the start of the space."""
        return self.element + self.first_element if self.first_element else self.element


class PointerAccess:
    """Accesses of ``size`` bytes at computed addresses, in ``space`` ("" for generic addresses)."""

    def __init__(self, size: int, line: int, space: str = "", kind: AccessKind = LOAD) -> None:
        self._space = space
        self._size = size
        self._line = line
        self._kind = kind

    def check(self, group: ThreadGroup, part: LaneAccess, value: Value | None = None) -> None:
        """Check an access that is about to be executed; ``value`` is what all lanes of the group store."""
        checks = group.batch.checks
        if checks is not None:
            checks.access(
                CheckedAccess(
                    self._kind, self._line, self._size, part.space, part.elements, group.lanes, part.positions, value
                )
            )

    def parts_at(self, group: ThreadGroup, address: Value) -> Iterator[LaneAccess]:
        """Yield the accesses by space, for an address of each lane."""
        address = group.lanes.spread(address)
        if self._space:
            space = _SPACES[self._space](group.batch)
            yield LaneAccess(space, self._locate(space, group, group.lanes, address).element)
            return
        windows = np.minimum(address // WINDOW_BYTES, _GLOBAL_WINDOW)
        for window in np.unique(windows):
            positions = np.flatnonzero(windows == window)
            space = _SPACES[_WINDOW_SPACES.get(int(window), "global")](group.batch)
            part_addresses = address[positions]
            if space.name != "global":
                part_addresses = part_addresses % np.uint64(WINDOW_BYTES)
            lanes = group.lanes.select(positions)
            yield LaneAccess(space, self._locate(space, group, lanes, part_addresses).element, 0, positions)

    def gather(self, group: ThreadGroup, address: Value, dtype: DType) -> Value:
        """Return the value at each lane's address."""
        values = np.empty(group.lanes.count, dtype)
        for part in self.parts_at(group, address):
            self.check(group, part)
            positions = slice(None) if part.positions is None else part.positions
            values[positions] = part.view(dtype)[part.element]
        return values

    def scatter(self, group: ThreadGroup, address: Value, values: Value) -> None:
        """Write one of ``values`` to an address of each lane."""
        for part in self.parts_at(group, address):
            self.check(group, part, values)
            positions = slice(None) if part.positions is None else part.positions
            part.view(values.dtype)[part.element] = values[positions]

    def _locate(self, space: Space, group: ThreadGroup, lanes: Lanes, address: Value) -> _Location:
        """Return the location of an address of each lane in ``space``. Raises MemoryFaultError."""
        offset = space.offsets(address)
        try:
            space.check(offset, self._size)
        except AccessFault as fault:
            place = int(lanes.places[fault.position])
            raise fault.as_error(self._line, group.batch.describe(lanes, fault.position), place) from None
        return _Location(offset, space.indices(lanes, offset, self._size))


class Access(PointerAccess):
    """The address operand of an instruction that accesses ``size`` bytes in ``space`` ("" for generic addresses)."""

    def __init__(self, operand: Operand, space: str, size: int, bind: Binder, kind: AccessKind = LOAD) -> None:
        self._source, self._displacement = bind.address(operand)
        space = space or bind.named_space(operand)
        super().__init__(size, bind.line, space, kind)
        self._key = (space, size, self._source.index)
        bind.layout.min_access_bytes = min(bind.layout.min_access_bytes, size)

    def address(self, group: ThreadGroup) -> Value:
        """Return the unsigned address of each lane; a scalar if all lanes have the same."""
        address = self._source.read(group.registers)
        if not self._displacement:
            return address
        bits = 8 * address.dtype.itemsize
        total: Value = address + address.dtype.type(self._displacement & ((1 << bits) - 1))
        return total

    def single_part(self, group: ThreadGroup) -> LaneAccess | None:
        """Return the access of all lanes if they access the same space, else None.

        Unrolled loops access many offsets from one register. The location at the first of them is kept with the value
        of the register; others that differ by whole elements only move it.
        """
        register = group.registers[self._source.index]
        cached = group.batch.located_addresses.get(self._key)
        if cached is not None and cached.register is register and cached.lanes is group.lanes:
            distance = cached.element_distance(self._displacement, self._size)
            if distance is not None:
                return LaneAccess(cached.space, cached.index, distance)
        address = self.address(group)
        space = self._space
        if not space:
            if (int(address.min()) if address.ndim else int(address)) < GLOBAL_START:
                return None
            space = "global"
        memory = _SPACES[space](group.batch)
        location = self._locate(memory, group, group.lanes, address)
        if not memory.is_divided:
            group.batch.located_addresses[self._key] = LocatedAddress(
                register, group.lanes, self._displacement, memory, *location
            )
        return LaneAccess(memory, location.element)

    def parts(self, group: ThreadGroup) -> Iterator[LaneAccess]:
        """Yield the accesses of the lanes by space."""
        part = self.single_part(group)
        if part is not None:
            yield part
        else:
            yield from self.parts_at(group, self.address(group))


def state_space(instruction: Instruction) -> str:
    """Return the state space that the modifiers name; "" for generic addressing."""
    for modifier in instruction.modifiers:
        name = modifier.partition("::")[0]
        if name in STATE_SPACES:
            return name
    return ""
