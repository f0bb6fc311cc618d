"""Loads and stores of PTX: of scalars, vectors, parameters of kernels, and bytes in registers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.errors import PtxError, SimulationError
from tui_probe.ptx.tree import Memory, Operand, Symbol, Vector
from tui_probe.simgpu.executor.addressing import STATE_SPACES, Access, state_space
from tui_probe.simgpu.executor.checks.accesses import STORE, AccessKind, hexadecimal, load_kind, store_kind
from tui_probe.simgpu.executor.faults import MemoryFaultError
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
    from collections.abc import Callable

    from tui_probe.ptx.tree import Instruction
    from tui_probe.simgpu.executor.operands import Binder
    from tui_probe.simgpu.executor.operations import Operation, ResultOperand
    from tui_probe.simgpu.executor.threads import ThreadGroup

_MODIFIERS: Final = STATE_SPACES | {
    "weak", "volatile", "relaxed", "acquire", "release", "mmio", "cta", "cluster", "gpu", "sys", "ca", "cg", "cs", "lu",
    "cv", "wb", "wt", "nc", "unified", "v2", "v4", "v8",
}  # fmt: skip
_POLLING_MODIFIERS: Final = frozenset({"volatile", "relaxed", "acquire", "mmio"})
"""Modifiers of loads that may wait for the store of another thread."""


def refuse_unknown_modifiers(instruction: Instruction, bind: Binder) -> None:
    """Refuse a load or store with an unknown modifier. Cache hints contain ``::`` and are ignored."""
    is_known = (name in _MODIFIERS or name in TYPES or "::" in name for name in instruction.modifiers)
    if not all(is_known):
        bind.unsupported()


def whole_type(size: int) -> DType:
    """Return a NumPy type that moves ``size`` bytes unchanged."""
    if size == 16:
        return B128
    return UNSIGNED[8 * size] if size <= 8 else np.dtype(f"V{size}")


def _vector_elements(operand: Operand) -> tuple[Operand, ...]:
    return operand.elements if isinstance(operand, Vector) else (operand,)


def _build_load(instruction: Instruction, bind: Binder) -> Operation:
    refuse_unknown_modifiers(instruction, bind)
    kind = last_type(instruction)
    space = state_space(instruction)
    destination, address = operands_of(instruction, 2, 4)[:2]
    elements = _vector_elements(destination)
    bind.effects.polls = not _POLLING_MODIFIERS.isdisjoint(instruction.modifiers)
    access = load_kind(instruction.modifiers)
    if space == "param" and isinstance(address, Memory) and isinstance(address.base, Symbol):
        return _build_parameter_load(elements, kind, address.base, address.offset, bind)
    if len(elements) == 1:
        return _build_single_load(elements[0], kind, Access(address, space, kind.bytes, bind, access), bind)
    vector = Access(address, space, kind.bytes * len(elements), bind, access)
    return _build_vector_load(elements, kind, vector, bind)


def _build_single_load(destination: Operand, kind: ScalarType, access: Access, bind: Binder) -> Operation:
    kind = bind.stored_kind(destination, kind)
    target, dtype = bind.target(destination, kind), kind.dtype

    def run(group: ThreadGroup) -> None:
        target.write(group.registers, _load_values(access, group, dtype))

    return run


def _load_values(access: Access, group: ThreadGroup, dtype: DType) -> Value:
    """Return the values that the lanes of a group read: one ``dtype`` element per lane, or one for all of them."""
    common_access = access.single_part(group)
    if common_access is not None:
        access.check(group, common_access)
        return common_access.view(dtype)[common_access.element]
    value = np.empty(group.lanes.count, dtype)
    for part in access.parts(group):
        access.check(group, part)
        value[part.positions] = part.view(dtype)[part.element]
    return value


def _build_vector_load(elements: tuple[Operand, ...], kind: ScalarType, access: Access, bind: Binder) -> Operation:
    targets = [bind.target(element, kind) for element in elements]
    dtype = whole_type(kind.bytes * len(elements))

    def run(group: ThreadGroup) -> None:
        values = _load_values(access, group, dtype)
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
    first_offset = entity.offset + offset
    sources = [_launch_parameter(first_offset + number * kind.bytes, kind, bind) for number in range(len(elements))]
    bind.effects.is_pure = True

    def run(group: ThreadGroup) -> None:
        registers = group.registers
        for target, source in zip(targets, sources, strict=True):
            target.write(registers, registers[source])

    return run


def _launch_parameter(offset: int, kind: ScalarType, bind: Binder) -> int:
    """Return the index of the launch constant that a load from the kernel's parameters reads."""

    def value(launch: Launch) -> Value:
        if offset < 0 or offset + kind.bytes > len(launch.parameters):
            passed_bytes = len(launch.parameters)
            end = offset + kind.bytes
            message = f"the kernel reads bytes {offset} to {end} of its parameters, but only {passed_bytes} were passed"
            raise SimulationError(message)
        result: Value = np.frombuffer(launch.parameters, kind.dtype, 1, offset)[0]
        return result

    return bind.layout.launch_value_index(("parameter", offset, kind.dtype), value)


def _build_bytes_load(
    targets: list[ResultOperand], kind: ScalarType, entity: BytesName, offset: int, bind: Binder
) -> Operation:
    """Build a load from a parameter of a device function or of a call."""
    bind.effects.source_registers.add(entity.index)
    size = kind.bytes
    _check_bounds(entity, offset, size * len(targets), bind)

    def run(group: ThreadGroup) -> None:
        registers = group.registers
        parameter_bytes = registers[entity.index]
        if parameter_bytes is None:
            parameter_bytes = np.zeros((group.lanes.count, entity.size), U8)
        for number, target in enumerate(targets):
            start = offset + number * size
            target.write(
                registers, np.ascontiguousarray(parameter_bytes[:, start : start + size]).view(kind.dtype)[:, 0]
            )

    return run


def _check_bounds(entity: BytesName, offset: int, size: int, bind: Binder) -> None:
    if offset < 0 or offset + size > entity.size:
        raise PtxError(
            f"bytes {offset} to {offset + size} are outside of a parameter of {entity.size} bytes", bind.line
        )


def build_store(instruction: Instruction, bind: Binder) -> Operation:
    """Build a ``st``, except ``st.async``."""
    address, value = operands_of(instruction, 2, 4)[:2]
    refuse_unknown_modifiers(instruction, bind)
    access = store_kind(instruction.modifiers)
    return build_store_of(address, value, last_type(instruction), state_space(instruction), bind, access)


def build_store_of(
    address: Operand, value: Operand, kind: ScalarType, space: str, bind: Binder, access_kind: AccessKind = STORE
) -> Operation:
    """Build a store of ``value``, a number or a vector of numbers of type ``kind``."""
    elements = _vector_elements(value)
    if space == "param":
        return _build_bytes_store(address, elements, kind, bind)
    if len(elements) == 1:
        kind = bind.stored_kind(elements[0], kind)
    sources = [bind.source(element, kind) for element in elements]
    size = kind.bytes * len(elements)
    access = Access(address, space, size, bind, access_kind)
    access_type = whole_type(size)

    def run(group: ThreadGroup) -> None:
        registers = group.registers
        values = [source.read(registers) for source in sources]
        store(access, group, values[0] if len(values) == 1 else join_words(values, access_type))

    return run


def store(access: Access, group: ThreadGroup, value: Value) -> None:
    """Write ``value``. If lanes write to the same address, the last lane's value stays. Raises MemoryFaultError."""
    try:
        _store_values(access, group, value)
    except MemoryFaultError as error:
        note_value(error, group, value)
        raise


def note_value(error: MemoryFaultError, group: ThreadGroup, value: Value) -> None:
    """Add what the lane at fault would have stored, one of the values of all lanes."""
    if error.place is not None:
        position = int(np.searchsorted(group.lanes.places, error.place))
        error.value = hexadecimal(value[position] if value.ndim else value)


def _store_values(access: Access, group: ThreadGroup, value: Value) -> None:
    common_access = access.single_part(group)
    if common_access is not None:
        access.check(group, common_access, value)
        common_access.view(value.dtype)[common_access.element] = (
            value[-1] if value.ndim and not common_access.element.ndim else value
        )
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
    _check_bounds(entity, offset, kind.bytes * len(elements), bind)
    sources = [bind.source(element, kind) for element in elements]
    # The bytes around stay as they are, so they are read, too.
    bind.effects.source_registers.add(entity.index)
    bind.effects.target_registers.add(entity.index)

    def run(group: ThreadGroup) -> None:
        registers = group.registers
        parameter_bytes = registers[entity.index]
        count = group.lanes.count
        parameter_bytes = np.zeros((count, entity.size), U8) if parameter_bytes is None else parameter_bytes.copy()
        for number, source in enumerate(sources):
            value = np.ascontiguousarray(group.lanes.spread(source.read(registers)))
            start = offset + number * kind.bytes
            parameter_bytes[:, start : start + kind.bytes] = value.view(U8).reshape(count, kind.bytes)
        registers[entity.index] = parameter_bytes

    return run


BUILDERS: Final[dict[str, Callable[[Instruction, Binder], Operation]]] = {
    "ld": _build_load,
    "ldu": _build_load,
}
