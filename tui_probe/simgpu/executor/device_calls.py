"""Functions that the driver has for kernels, and PTX only declares: printing, assertions, a heap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.ptx.tree import Group as Parenthesised
from tui_probe.ptx.tree import Symbol
from tui_probe.simgpu.executor.access import PointerAccess
from tui_probe.simgpu.executor.device_heap import HEAP, Heap
from tui_probe.simgpu.executor.faults import KernelAssertionError
from tui_probe.simgpu.executor.printf import count_of_arguments, formatted
from tui_probe.simgpu.executor.scalars import U8, U32, U64
from tui_probe.simgpu.executor.scope import BytesName, FunctionName

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from tui_probe.ptx.tree import Instruction, Operand
    from tui_probe.simgpu.executor.group import Group
    from tui_probe.simgpu.executor.operands import Binder, Operation
    from tui_probe.simgpu.executor.scalars import Value

    DeviceFunction: TypeAlias = Callable[[Group, "_Memory", list[Value]], Value | None]

_LONGEST: Final = 1 << 16
"""Bytes of a string, after which it is taken for none."""


class _Memory:
    """Bytes at generic addresses, as a thread sees them."""

    def __init__(self, line: int) -> None:
        self._access = PointerAccess(1, line)

    def bytes_at(self, group: Group, lane: int, address: int, size: int) -> bytes:
        """Raises MemoryFaultError."""
        own = group.select(np.array([lane]), group.block, ())
        addresses = np.uint64(address) + np.arange(size, dtype=U64)
        return b"".join(
            part.view(U8)[part.element].tobytes()
            for one in addresses
            for part in self._access.parts_at(own, one.reshape(1))
        )

    def string_at(self, group: Group, lane: int, address: int) -> bytes:
        """The bytes up to a NUL."""
        held = bytearray()
        while len(held) < _LONGEST and (byte := self.bytes_at(group, lane, address + len(held), 1)) != b"\0":
            held += byte
        return bytes(held)


def build_device_call(instruction: Instruction, bind: Binder) -> Operation | None:
    """The call of such a function; None for another one."""
    called = next((operand for operand in instruction.operands if isinstance(operand, Symbol)), None)
    entity = bind.names.find(called.name) if called is not None else None
    if called is None or called.name not in FUNCTIONS:
        return None
    if not isinstance(entity, FunctionName) or entity.function.body is not None:
        return None
    groups = [operand for operand in instruction.operands if isinstance(operand, Parenthesised)]
    has_result = isinstance(instruction.operands[0], Parenthesised)
    passed = [_bytes(element, bind) for group in groups[has_result:] for element in group.elements]
    result = _bytes(groups[0].elements[0], bind) if has_result else None
    bind.effects.reads.update(entity.index for entity in passed)
    if result is not None:
        bind.effects.writes.add(result.index)
    return _operation(FUNCTIONS[called.name], passed, result, bind.line)


def _bytes(operand: Operand, bind: Binder) -> BytesName:
    entity = bind.names.find(operand.name) if isinstance(operand, Symbol) else None
    return entity if isinstance(entity, BytesName) else bind.unsupported()


def _operation(function: DeviceFunction, passed: list[BytesName], result: BytesName | None, line: int) -> Operation:
    memory = _Memory(line)

    def run(group: Group) -> None:
        values = []
        for entity in passed:
            held = np.ascontiguousarray(group.registers[entity.index])
            values.append(held.view(U64 if entity.size == 8 else U32)[:, 0])
        given = function(group, memory, values)
        if result is not None:
            kind = U64 if result.size == 8 else U32
            value = np.zeros(group.lanes.count, kind) if given is None else given.astype(kind)
            group.registers[result.index] = value.reshape(-1, 1).view(U8)

    return run


def _print(group: Group, memory: _Memory, values: list[Value]) -> Value:
    """``vprintf(format, arguments)``: what each thread prints, lane after lane."""
    formats, lists = values
    texts: dict[int, bytes] = {}
    for lane in range(group.lanes.count):
        place, start = int(formats[lane]), int(lists[lane])
        if place not in texts:
            texts[place] = memory.string_at(group, lane, place)

        def read(offset: int, size: int, lane: int = lane, start: int = start) -> bytes:
            return memory.bytes_at(group, lane, start + offset, size)

        def string_at(address: int, lane: int = lane) -> bytes:
            return memory.string_at(group, lane, address)

        group.batch.printed.append(formatted(texts[place], read, string_at))
    return np.array([count_of_arguments(texts[int(place)]) for place in formats], U32)


def _fail(group: Group, memory: _Memory, values: list[Value]) -> Value | None:
    """``__assertfail(message, file, line, function, size of a character)``."""
    message, file, line, function = (int(value[0]) for value in values[:4])
    places = (message, file, function)
    what, where, who = (memory.string_at(group, 0, place).decode("utf-8", "replace") for place in places)
    thread = group.batch.describe(group.lanes, 0)
    raise KernelAssertionError(f"{where}:{line}: {who}: {thread}: assertion `{what}` failed")


def _allocate(group: Group, memory: _Memory, values: list[Value]) -> Value:  # noqa: ARG001
    """``malloc(size)``: lane after lane."""
    heap = Heap(group.batch.memory, group.batch.launch.address(HEAP))
    return np.array([heap.take(int(size)) for size in values[0]], U64)


def _free(group: Group, memory: _Memory, values: list[Value]) -> Value | None:  # noqa: ARG001
    """``free(address)``; of 0, nothing."""
    heap = Heap(group.batch.memory, group.batch.launch.address(HEAP))
    for address in values[0]:
        if address:
            heap.give(int(address))
    return None


FUNCTIONS: Final[dict[str, DeviceFunction]] = {
    "vprintf": _print,
    "__assertfail": _fail,
    "malloc": _allocate,
    "free": _free,
}
