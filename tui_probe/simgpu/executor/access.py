"""Where the address of an instruction leads: the state space, and the index into its bytes for each lane.

Unrolled loops access many offsets from one register. What is found for the first of them is kept, together
with the value of the register: the others only move along by whole elements.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tui_probe.simgpu.executor.located import Located
from tui_probe.simgpu.executor.memory import GLOBAL_START, WINDOW_BYTES, AccessFault, Space

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tui_probe.ptx.tree import Operand
    from tui_probe.simgpu.executor.batch import Batch
    from tui_probe.simgpu.executor.group import Group
    from tui_probe.simgpu.executor.lanes import Lanes, Places
    from tui_probe.simgpu.executor.operands import Binder
    from tui_probe.simgpu.executor.scalars import DType, Value

_SPACES: Final[dict[str, Callable[[Batch], Space]]] = {
    "global": attrgetter("memory"),
    "const": attrgetter("memory"),
    "shared": attrgetter("shared"),
    "local": attrgetter("local"),
    "param": attrgetter("parameters"),
}
_WINDOW_SPACES: Final = {1: "shared", 2: "local", 3: "param"}
_GLOBAL_WINDOW: Final = GLOBAL_START // WINDOW_BYTES


class Part(NamedTuple):
    """Lanes whose addresses lie in one space.

    ``element`` counts from element ``first`` of the space on. ``positions`` are those of the lanes in their
    group, None for all of them.
    """

    space: Space
    element: Value
    first: int = 0
    positions: Places | None = None

    def view(self, dtype: DType) -> Value:
        """The elements that ``element`` counts."""
        view = self.space.view(dtype)
        return view[self.first :] if self.first else view


class Access:
    """The address operand of an instruction that accesses ``size`` bytes in ``space`` ("" for generic addresses)."""

    def __init__(self, operand: Operand, space: str, size: int, bind: Binder) -> None:
        self._source, self._added = bind.address(operand)
        space = space or bind.named_space(operand)
        self._space = space
        self._size = size
        self._line = bind.line
        self._key = (space, size, self._source.index)

    def address(self, group: Group) -> Value:
        """The address for each lane, unsigned; a scalar if it is the same for all."""
        address = self._source.read(group.registers)
        if not self._added:
            return address
        bits = 8 * address.dtype.itemsize
        total: Value = address + address.dtype.type(self._added & ((1 << bits) - 1))
        return total

    def single(self, group: Group) -> Part | None:
        """Where all lanes go, if that is the same space."""
        register = group.registers[self._source.index]
        known = group.batch.located.get(self._key)
        if known is not None and known.register is register and known.lanes is group.lanes:
            steps = known.steps(self._added, self._size)
            if steps is not None:
                return Part(known.space, known.index, steps)
        address = self.address(group)
        space = self._space
        if not space:
            if (int(address.min()) if address.ndim else int(address)) < GLOBAL_START:
                return None
            space = "global"
        found = _SPACES[space](group.batch)
        offset, index = self._locate(found, group, group.lanes, address)
        if not found.is_divided:
            group.batch.located[self._key] = Located(register, group.lanes, self._added, found, offset, index)
        return Part(found, index)

    def parts(self, group: Group) -> Iterator[Part]:
        """The lanes by space."""
        single = self.single(group)
        if single is not None:
            yield single
        else:
            yield from self.parts_at(group, self.address(group))

    def parts_at(self, group: Group, address: Value) -> Iterator[Part]:
        """The lanes by space, for other addresses than those of the operand."""
        address = group.lanes.spread(address)
        if self._space:
            space = _SPACES[self._space](group.batch)
            yield Part(space, self._locate(space, group, group.lanes, address)[1])
            return
        windows = np.minimum(address // WINDOW_BYTES, _GLOBAL_WINDOW)
        for window in np.unique(windows):
            positions = np.flatnonzero(windows == window)
            space = _SPACES[_WINDOW_SPACES.get(int(window), "global")](group.batch)
            inside = address[positions]
            if space.name != "global":
                inside = inside % np.uint64(WINDOW_BYTES)
            lanes = group.lanes.select(positions)
            yield Part(space, self._locate(space, group, lanes, inside)[1], 0, positions)

    def gathered(self, group: Group, address: Value, dtype: DType) -> Value:
        """What is at an address of each lane."""
        found = np.empty(group.lanes.count, dtype)
        for part in self.parts_at(group, address):
            chosen = slice(None) if part.positions is None else part.positions
            found[chosen] = part.view(dtype)[part.element]
        return found

    def scatter(self, group: Group, address: Value, values: Value) -> None:
        """Write one of ``values`` to an address of each lane."""
        for part in self.parts_at(group, address):
            chosen = slice(None) if part.positions is None else part.positions
            part.view(values.dtype)[part.element] = values[chosen]

    def _locate(self, space: Space, group: Group, lanes: Lanes, address: Value) -> tuple[Value, Value]:
        """Offsets in bytes, and indices. Raises MemoryFaultError."""
        offset = space.offsets(address)
        try:
            space.check(offset, self._size)
        except AccessFault as fault:
            raise fault.at(self._line, group.batch.describe(lanes, fault.position)) from None
        return offset, space.indices(lanes, offset, self._size)


class PointerAccess(Access):
    """Accesses of ``size`` bytes at addresses that are no operand, generic ones or in ``space``; for ``parts_at``."""

    def __init__(self, size: int, line: int, space: str = "") -> None:
        self._space = space
        self._size = size
        self._line = line
