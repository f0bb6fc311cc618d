"""Where the address of an instruction leads: the state space, and the index into its bytes for each lane."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.simgpu.executor.memory import GLOBAL_START, WINDOW_BYTES, AccessFault, Space

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tui_probe.ptx.tree import Operand
    from tui_probe.simgpu.executor.batch import Batch
    from tui_probe.simgpu.executor.group import Group
    from tui_probe.simgpu.executor.lanes import Lanes, Places
    from tui_probe.simgpu.executor.operands import Binder
    from tui_probe.simgpu.executor.scalars import Value

_SPACES: Final[dict[str, Callable[[Batch], Space]]] = {
    "global": attrgetter("memory"),
    "const": attrgetter("memory"),
    "shared": attrgetter("shared"),
    "local": attrgetter("local"),
    "param": attrgetter("parameters"),
}
_WINDOW_SPACES: Final = {1: "shared", 2: "local", 3: "param"}
_GLOBAL_WINDOW: Final = GLOBAL_START // WINDOW_BYTES


@dataclass(frozen=True, slots=True)
class Part:
    """Lanes whose addresses lie in one space: ``positions`` in their group, None for all of them."""

    space: Space
    index: Value
    positions: Places | None


class Access:
    """The address operand of an instruction that accesses ``size`` bytes in ``space`` ("" for generic addresses)."""

    def __init__(self, operand: Operand, space: str, size: int, bind: Binder) -> None:
        self._source, offset = bind.address(operand)
        self._offset = offset
        self._space = space
        self._size = size
        self._line = bind.line

    def address(self, group: Group) -> Value:
        """The address for each lane, unsigned; a scalar if it is the same for all."""
        address = self._source.read(group.registers)
        if not self._offset:
            return address
        bits = 8 * address.dtype.itemsize
        total: Value = address + address.dtype.type(self._offset & ((1 << bits) - 1))
        return total

    def single(self, group: Group) -> tuple[Space, Value] | None:
        """The space and indices, if all lanes are in the same space."""
        address = self.address(group)
        space = self._space
        if not space:
            if (int(address.min()) if address.ndim else int(address)) < GLOBAL_START:
                return None
            space = "global"
        found = _SPACES[space](group.batch)
        return found, self._locate(found, group, group.lanes, address)

    def parts(self, group: Group) -> Iterator[Part]:
        """The lanes by space."""
        single = self.single(group)
        if single is not None:
            yield Part(*single, None)
            return
        address = group.lanes.spread(self.address(group))
        windows = np.minimum(address // WINDOW_BYTES, _GLOBAL_WINDOW)
        for window in np.unique(windows):
            positions = np.flatnonzero(windows == window)
            space = _SPACES[_WINDOW_SPACES.get(int(window), "global")](group.batch)
            inside = address[positions]
            if space.name != "global":
                inside = inside % np.uint64(WINDOW_BYTES)
            lanes = group.lanes.select(positions)
            yield Part(space, self._locate(space, group, lanes, inside), positions)

    def _locate(self, space: Space, group: Group, lanes: Lanes, address: Value) -> Value:
        try:
            return space.locate(lanes, address, self._size)
        except AccessFault as fault:
            raise fault.at(self._line, group.batch.describe(lanes, fault.position)) from None
