"""Loads and stores: ``ld``, ``ldu``, ``st``, ``cp.async``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.errors import PtxError, SimulationError
from tui_probe.ptx.tree import Memory, Operand, Symbol, Vector
from tui_probe.simgpu.executor.access import Access
from tui_probe.simgpu.executor.forms import last_type, operands_of
from tui_probe.simgpu.executor.scalars import B128, TYPES, U8, UNSIGNED, DType, ScalarType, Value
from tui_probe.simgpu.executor.scope import AddressName, BytesName, Launch
from tui_probe.simgpu.executor.words import join_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.ptx.tree import Instruction
    from tui_probe.simgpu.executor.group import Group
    from tui_probe.simgpu.executor.operands import Binder, Operation, Target

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
# What may wait for another thread's store.
_POLLING: Final = frozenset({"volatile", "relaxed", "acquire", "mmio"})


def state_space(instruction: Instruction) -> str:
    """The state space that the modifiers name, "" for generic addressing."""
    for modifier in instruction.modifiers:
        name = modifier.partition("::")[0]
        if name in STATE_SPACES:
            return name
    return ""


def refuse_unknown_modifiers(instruction: Instruction, bind: Binder) -> None:
    """Ends the building of a load or store with a modifier that none has; hints to caches have a ``::``."""
    known = (name in _MODIFIERS or name in TYPES or "::" in name for name in instruction.modifiers)
    if not all(known):
        bind.unsupported()


def whole_type(size: int) -> DType:
    """A NumPy type of ``size`` bytes that moves them as they are."""
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
    if space == "param" and isinstance(address, Memory) and isinstance(address.base, Symbol):
        return _build_parameter_load(elements, kind, address.base, address.offset, bind)
    bind.effects.pure = False
    if len(elements) == 1:
        return _build_single_load(elements[0], kind, address, space, bind)
    return _build_vector_load(elements, kind, address, space, bind)


def _build_single_load(written: Operand, kind: ScalarType, address: Operand, space: str, bind: Binder) -> Operation:
    kind = bind.kept_as(written, kind)
    target, dtype = bind.target(written, kind), kind.dtype
    access = Access(address, space, kind.bytes, bind)

    def run(group: Group) -> None:
        target.write(group.registers, _gathered(access, group, dtype))

    return run


def _gathered(access: Access, group: Group, dtype: DType) -> Value:
    """What the lanes of a group read: one element of ``dtype`` each, or one for all of them."""
    single = access.single(group)
    if single is not None:
        return single.view(dtype)[single.element]
    value = np.empty(group.lanes.count, dtype)
    for part in access.parts(group):
        value[part.positions] = part.view(dtype)[part.element]
    return value


def _build_vector_load(
    elements: tuple[Operand, ...], kind: ScalarType, address: Operand, space: str, bind: Binder
) -> Operation:
    targets = [bind.target(element, kind) for element in elements]
    size = kind.bytes * len(elements)
    dtype = whole_type(size)
    access = Access(address, space, size, bind)

    def run(group: Group) -> None:
        whole = _gathered(access, group, dtype)
        # One copy brings each element's lanes together.
        columns = np.ascontiguousarray(np.atleast_1d(whole).view(kind.dtype).reshape(*whole.shape, -1).T)
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

    def run(group: Group) -> None:
        registers = group.registers
        for target, source in zip(targets, sources, strict=True):
            target.write(registers, registers[source])

    return run


def _launch_parameter(offset: int, kind: ScalarType, bind: Binder) -> int:
    """The index of the constant that a load from the kernel's parameters gives."""

    def value(launch: Launch) -> Value:
        if offset < 0 or offset + kind.bytes > len(launch.parameters):
            message = f"the kernel reads parameter bytes {offset} to {offset + kind.bytes} of {len(launch.parameters)}"
            raise SimulationError(message)
        result: Value = np.frombuffer(launch.parameters, kind.dtype, 1, offset)[0]
        return result

    return bind.layout.launch_value(("parameter", offset, kind.dtype), value)


def _build_bytes_load(
    targets: list[Target], kind: ScalarType, entity: BytesName, offset: int, bind: Binder
) -> Operation:
    """From a parameter of a device function or of a call."""
    bind.effects.reads.add(entity.index)
    size = kind.bytes
    _check_inside(entity, offset, size * len(targets), bind)

    def run(group: Group) -> None:
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
        raise PtxError(f"bytes {offset} to {offset + size} of a parameter of {entity.size} bytes", bind.line)


def build_store(instruction: Instruction, bind: Binder) -> Operation:
    """``st`` but for ``st.async``."""
    address, stored = operands_of(instruction, 2, 4)[:2]
    refuse_unknown_modifiers(instruction, bind)
    return build_store_of(address, stored, last_type(instruction), state_space(instruction), bind)


def build_store_of(address: Operand, stored: Operand, kind: ScalarType, space: str, bind: Binder) -> Operation:
    """A store of ``stored``, one number or a vector of them, of type ``kind``."""
    elements = _elements(stored)
    if space == "param":
        return _build_bytes_store(address, elements, kind, bind)
    if len(elements) == 1:
        kind = bind.kept_as(elements[0], kind)
    sources = [bind.source(element, kind) for element in elements]
    size = kind.bytes * len(elements)
    access = Access(address, space, size, bind)
    whole = whole_type(size)

    def run(group: Group) -> None:
        registers = group.registers
        values = [source.read(registers) for source in sources]
        store(access, group, values[0] if len(values) == 1 else join_words(values, whole))

    return run


def store(access: Access, group: Group, value: Value) -> None:
    """Writes ``value``. Where lanes write to the same address, the last lane's value stays."""
    single = access.single(group)
    if single is not None:
        single.view(value.dtype)[single.element] = value[-1] if value.ndim and not single.element.ndim else value
        return
    value = group.lanes.spread(value)
    for part in access.parts(group):
        part.view(value.dtype)[part.element] = value[part.positions]


def _build_bytes_store(address: Operand, elements: tuple[Operand, ...], kind: ScalarType, bind: Binder) -> Operation:
    """Into a parameter of a call, or a result of a device function."""
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

    def run(group: Group) -> None:
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
