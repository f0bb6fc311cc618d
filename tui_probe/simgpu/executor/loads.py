"""Loads and stores, and the location that an address operand refers to: a state space and an element of it."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tui_probe.errors import PtxError, SimulationError
from tui_probe.ptx.tree import Memory, Operand, Symbol, Vector
from tui_probe.simgpu.executor.checks.accesses import LOAD, STORE, STRONG_LOAD, AccessKind, CheckedAccess, store_kind
from tui_probe.simgpu.executor.memory import GLOBAL_START, WINDOW_BYTES, AccessFault, LocatedAddress, Space
from tui_probe.simgpu.executor.scalars import (
    B128,
    TYPES,
    U8,
    UNSIGNED,
    DType,
    ScalarType,
    Value,
    join_words,
    last_type,
    operands_of,
)
from tui_probe.simgpu.executor.scope import AddressName, BytesName, Launch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tui_probe.ptx.tree import Instruction
    from tui_probe.simgpu.executor.lanes import Lanes, Places
    from tui_probe.simgpu.executor.operands import Binder
    from tui_probe.simgpu.executor.operations import Operation, ResultOperand
    from tui_probe.simgpu.executor.threads import Batch, ThreadGroup

_SPACES: Final[dict[str, Callable[[Batch], Space]]] = {
    "global": attrgetter("memory"),
    "const": attrgetter("memory"),
    "shared": attrgetter("shared"),
    "local": attrgetter("local"),
    "param": attrgetter("parameters"),
}
_WINDOW_SPACES: Final = {1: "shared", 2: "local", 3: "param"}
_GLOBAL_WINDOW: Final = GLOBAL_START // WINDOW_BYTES
STATE_SPACES: Final = frozenset({"global", "shared", "local", "const", "param"})
_MODIFIERS: Final = STATE_SPACES | frozenset(
    [
        "weak",
        "volatile",
        "relaxed",
        "acquire",
        "release",
        "mmio",
        "cta",
        "cluster",
        "gpu",
        "sys",
        "ca",
        "cg",
        "cs",
        "lu",
        "cv",
        "wb",
        "wt",
        "nc",
        "unified",
        "v2",
        "v4",
        "v8",
    ]
)
_POLLING: Final = frozenset({"volatile", "relaxed", "acquire", "mmio"})
"""Modifiers of loads that may wait for the store of another thread."""


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
    """The element of each lane, counted from ``first``."""
    first: int = 0
    positions: Places | None = None
    """Positions of the lanes in their group; None for all lanes."""

    def view(self, dtype: DType) -> Value:
        """Return the elements of the space from ``first`` on, which ``element`` indexes."""
        view = self.space.view(dtype)
        return view[self.first :] if self.first else view

    @property
    def elements(self) -> Value:
        """The element of each lane, counted from the start of the space."""
        return self.element + self.first if self.first else self.element


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
            inside = address[positions]
            if space.name != "global":
                inside = inside % np.uint64(WINDOW_BYTES)
            lanes = group.lanes.select(positions)
            yield LaneAccess(space, self._locate(space, group, lanes, inside).element, 0, positions)

    def gathered(self, group: ThreadGroup, address: Value, dtype: DType) -> Value:
        """Return the value at each lane's address."""
        values = np.empty(group.lanes.count, dtype)
        for part in self.parts_at(group, address):
            self.check(group, part)
            chosen = slice(None) if part.positions is None else part.positions
            values[chosen] = part.view(dtype)[part.element]
        return values

    def scatter(self, group: ThreadGroup, address: Value, values: Value) -> None:
        """Write one of ``values`` to an address of each lane."""
        for part in self.parts_at(group, address):
            self.check(group, part, values)
            chosen = slice(None) if part.positions is None else part.positions
            part.view(values.dtype)[part.element] = values[chosen]

    def _locate(self, space: Space, group: ThreadGroup, lanes: Lanes, address: Value) -> _Location:
        """Return the location of an address of each lane in ``space``. Raises MemoryFaultError."""
        offset = space.offsets(address)
        try:
            space.check(offset, self._size)
        except AccessFault as fault:
            raise fault.at(self._line, group.batch.describe(lanes, fault.position)) from None
        return _Location(offset, space.indices(lanes, offset, self._size))


class Access(PointerAccess):
    """The address operand of an instruction that accesses ``size`` bytes in ``space`` ("" for generic addresses)."""

    def __init__(self, operand: Operand, space: str, size: int, bind: Binder, kind: AccessKind = LOAD) -> None:
        self._source, self._added = bind.address(operand)
        space = space or bind.named_space(operand)
        super().__init__(size, bind.line, space, kind)
        self._key = (space, size, self._source.index)
        bind.layout.least_access = min(bind.layout.least_access, size)

    def address(self, group: ThreadGroup) -> Value:
        """Return the unsigned address of each lane; a scalar if all lanes have the same."""
        address = self._source.read(group.registers)
        if not self._added:
            return address
        bits = 8 * address.dtype.itemsize
        total: Value = address + address.dtype.type(self._added & ((1 << bits) - 1))
        return total

    def single(self, group: ThreadGroup) -> LaneAccess | None:
        """Return the access of all lanes if they access the same space, else None.

        Unrolled loops access many offsets from one register. The location at the first of them is kept with the value
        of the register; others that differ by whole elements only move it.
        """
        register = group.registers[self._source.index]
        known = group.batch.located.get(self._key)
        if known is not None and known.register is register and known.lanes is group.lanes:
            steps = known.steps(self._added, self._size)
            if steps is not None:
                return LaneAccess(known.space, known.index, steps)
        address = self.address(group)
        space = self._space
        if not space:
            if (int(address.min()) if address.ndim else int(address)) < GLOBAL_START:
                return None
            space = "global"
        memory = _SPACES[space](group.batch)
        location = self._locate(memory, group, group.lanes, address)
        if not memory.is_divided:
            group.batch.located[self._key] = LocatedAddress(register, group.lanes, self._added, memory, *location)
        return LaneAccess(memory, location.element)

    def parts(self, group: ThreadGroup) -> Iterator[LaneAccess]:
        """Yield the accesses of the lanes by space."""
        single = self.single(group)
        if single is not None:
            yield single
        else:
            yield from self.parts_at(group, self.address(group))


def state_space(instruction: Instruction) -> str:
    """Return the state space that the modifiers name; "" for generic addressing."""
    for modifier in instruction.modifiers:
        name = modifier.partition("::")[0]
        if name in STATE_SPACES:
            return name
    return ""


def refuse_unknown_modifiers(instruction: Instruction, bind: Binder) -> None:
    """Refuse a load or store with an unknown modifier. Cache hints contain ``::`` and are ignored."""
    known = (name in _MODIFIERS or name in TYPES or "::" in name for name in instruction.modifiers)
    if not all(known):
        bind.unsupported()


def whole_type(size: int) -> DType:
    """Return a NumPy type that moves ``size`` bytes unchanged."""
    if size == 16:
        return B128
    return UNSIGNED[8 * size] if size <= 8 else np.dtype(f"V{size}")


def _elements(operand: Operand) -> tuple[Operand, ...]:
    return operand.elements if isinstance(operand, Vector) else (operand,)


def _build_load(instruction: Instruction, bind: Binder) -> Operation:
    refuse_unknown_modifiers(instruction, bind)
    kind = last_type(instruction)
    space = state_space(instruction)
    written, address = operands_of(instruction, 2, 4)[:2]
    elements = _elements(written)
    bind.effects.polls = not _POLLING.isdisjoint(instruction.modifiers)
    access = STRONG_LOAD if bind.effects.polls else LOAD
    if space == "param" and isinstance(address, Memory) and isinstance(address.base, Symbol):
        return _build_parameter_load(elements, kind, address.base, address.offset, bind)
    if len(elements) == 1:
        return _build_single_load(elements[0], kind, Access(address, space, kind.bytes, bind, access), bind)
    vector = Access(address, space, kind.bytes * len(elements), bind, access)
    return _build_vector_load(elements, kind, vector, bind)


def _build_single_load(written: Operand, kind: ScalarType, access: Access, bind: Binder) -> Operation:
    kind = bind.kept_as(written, kind)
    target, dtype = bind.target(written, kind), kind.dtype

    def run(group: ThreadGroup) -> None:
        target.write(group.registers, _gathered(access, group, dtype))

    return run


def _gathered(access: Access, group: ThreadGroup, dtype: DType) -> Value:
    """Return the values that the lanes of a group read: one ``dtype`` element per lane, or one for all of them."""
    single = access.single(group)
    if single is not None:
        access.check(group, single)
        return single.view(dtype)[single.element]
    value = np.empty(group.lanes.count, dtype)
    for part in access.parts(group):
        access.check(group, part)
        value[part.positions] = part.view(dtype)[part.element]
    return value


def _build_vector_load(elements: tuple[Operand, ...], kind: ScalarType, access: Access, bind: Binder) -> Operation:
    targets = [bind.target(element, kind) for element in elements]
    dtype = whole_type(kind.bytes * len(elements))

    def run(group: ThreadGroup) -> None:
        values = _gathered(access, group, dtype)
        # One copy brings each element's lanes together.
        columns = np.ascontiguousarray(np.atleast_1d(values).view(kind.dtype).reshape(*values.shape, -1).T)
        for target, column in zip(targets, columns, strict=True):
            target.write(group.registers, column)

    return run


def _build_parameter_load(
    elements: tuple[Operand, ...], kind: ScalarType, base: Symbol, offset: int, bind: Binder
) -> Operation:
    entity = bind.entity(base.name)
    targets = [bind.target(element, kind) for element in elements]
    offset += base.offset
    if isinstance(entity, BytesName):
        return _build_bytes_load(targets, kind, entity, offset, bind)
    if not isinstance(entity, AddressName) or entity.space != "param":
        bind.unsupported()
    first = entity.offset + offset
    sources = [_launch_parameter(first + number * kind.bytes, kind, bind) for number in range(len(elements))]
    bind.effects.pure = True

    def run(group: ThreadGroup) -> None:
        registers = group.registers
        for target, source in zip(targets, sources, strict=True):
            target.write(registers, registers[source])

    return run


def _launch_parameter(offset: int, kind: ScalarType, bind: Binder) -> int:
    """Return the index of the launch constant that a load from the kernel's parameters reads."""

    def value(launch: Launch) -> Value:
        if offset < 0 or offset + kind.bytes > len(launch.parameters):
            passed = len(launch.parameters)
            message = f"the kernel reads parameter bytes {offset} to {offset + kind.bytes}, but {passed} were passed"
            raise SimulationError(message)
        result: Value = np.frombuffer(launch.parameters, kind.dtype, 1, offset)[0]
        return result

    return bind.layout.launch_value(("parameter", offset, kind.dtype), value)


def _build_bytes_load(
    targets: list[ResultOperand], kind: ScalarType, entity: BytesName, offset: int, bind: Binder
) -> Operation:
    """Build a load from a parameter of a device function or of a call."""
    bind.effects.reads.add(entity.index)
    size = kind.bytes
    _check_inside(entity, offset, size * len(targets), bind)

    def run(group: ThreadGroup) -> None:
        registers = group.registers
        held = registers[entity.index]
        if held is None:
            held = np.zeros((group.lanes.count, entity.size), U8)
        for number, target in enumerate(targets):
            start = offset + number * size
            target.write(registers, np.ascontiguousarray(held[:, start : start + size]).view(kind.dtype)[:, 0])

    return run


def _check_inside(entity: BytesName, offset: int, size: int, bind: Binder) -> None:
    if offset < 0 or offset + size > entity.size:
        raise PtxError(
            f"bytes {offset} to {offset + size} are outside of a parameter of {entity.size} bytes", bind.line
        )


def build_store(instruction: Instruction, bind: Binder) -> Operation:
    """Build a ``st``, except ``st.async``."""
    address, stored = operands_of(instruction, 2, 4)[:2]
    refuse_unknown_modifiers(instruction, bind)
    access = store_kind(instruction.modifiers)
    return build_store_of(address, stored, last_type(instruction), state_space(instruction), bind, access)


def build_store_of(
    address: Operand, stored: Operand, kind: ScalarType, space: str, bind: Binder, access_kind: AccessKind = STORE
) -> Operation:
    """Build a store of ``stored``, a number or a vector of numbers of type ``kind``."""
    elements = _elements(stored)
    if space == "param":
        return _build_bytes_store(address, elements, kind, bind)
    if len(elements) == 1:
        kind = bind.kept_as(elements[0], kind)
    sources = [bind.source(element, kind) for element in elements]
    size = kind.bytes * len(elements)
    access = Access(address, space, size, bind, access_kind)
    unit = whole_type(size)

    def run(group: ThreadGroup) -> None:
        registers = group.registers
        values = [source.read(registers) for source in sources]
        store(access, group, values[0] if len(values) == 1 else join_words(values, unit))

    return run


def store(access: Access, group: ThreadGroup, value: Value) -> None:
    """Write ``value``. If lanes write to the same address, the last lane's value stays."""
    single = access.single(group)
    if single is not None:
        access.check(group, single, value)
        single.view(value.dtype)[single.element] = value[-1] if value.ndim and not single.element.ndim else value
        return
    value = group.lanes.spread(value)
    for part in access.parts(group):
        access.check(group, part, value)
        part.view(value.dtype)[part.element] = value[part.positions]


def _build_bytes_store(address: Operand, elements: tuple[Operand, ...], kind: ScalarType, bind: Binder) -> Operation:
    """Build a store into a parameter of a call, or into a result of a device function."""
    if not isinstance(address, Memory) or not isinstance(address.base, Symbol):
        bind.unsupported()
    entity = bind.entity(address.base.name)
    if not isinstance(entity, BytesName):
        bind.unsupported()
    offset = address.offset + address.base.offset
    _check_inside(entity, offset, kind.bytes * len(elements), bind)
    sources = [bind.source(element, kind) for element in elements]
    # The bytes around stay as they are, so they are read, too.
    bind.effects.reads.add(entity.index)
    bind.effects.writes.add(entity.index)

    def run(group: ThreadGroup) -> None:
        registers = group.registers
        held = registers[entity.index]
        count = group.lanes.count
        held = np.zeros((count, entity.size), U8) if held is None else held.copy()
        for number, source in enumerate(sources):
            value = np.ascontiguousarray(group.lanes.spread(source.read(registers)))
            start = offset + number * kind.bytes
            held[:, start : start + kind.bytes] = value.view(U8).reshape(count, kind.bytes)
        registers[entity.index] = held

    return run


BUILDERS: Final[dict[str, Callable[[Instruction, Binder], Operation]]] = {
    "ld": _build_load,
    "ldu": _build_load,
}
