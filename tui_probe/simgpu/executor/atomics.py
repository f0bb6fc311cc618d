"""Atomic operations: ``atom`` and ``red`` (PTX ISA reference, section 9.7.13).

Lanes that execute one together act in the order of their blocks and threads, each on what the one before it left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.ptx.tree import Vector
from tui_probe.simgpu.executor.addressing import Access, state_space
from tui_probe.simgpu.executor.checks.accesses import atomic_kind
from tui_probe.simgpu.executor.faults import MemoryFaultError
from tui_probe.simgpu.executor.floating import arithmetic
from tui_probe.simgpu.executor.loads_and_stores import note_value
from tui_probe.simgpu.executor.scalars import choose, last_type, operands_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.ptx.tree import Instruction, Operand
    from tui_probe.simgpu.executor.operands import Binder
    from tui_probe.simgpu.executor.operations import Operation
    from tui_probe.simgpu.executor.scalars import ScalarType, Value
    from tui_probe.simgpu.executor.threads import ThreadGroup


_UFUNCS: Final[dict[str, np.ufunc]] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def _increment(old_value: Value, limit: Value) -> Value:
    return choose(old_value >= limit, old_value.dtype.type(0), old_value + old_value.dtype.type(1))


def _decrement(old_value: Value, limit: Value) -> Value:
    return np.where((old_value == 0) | (old_value > limit), limit, old_value - old_value.dtype.type(1))


def _exchange(old_value: Value, value: Value) -> Value:  # noqa: ARG001
    return value


def _compare_and_swap(old_value: Value, expected_value: Value, value: Value) -> Value:
    return np.where(old_value == expected_value, value, old_value)


_UPDATES: Final[dict[str, Callable[..., Value]]] = {
    "inc": _increment,
    "dec": _decrement,
    "exch": _exchange,
    "cas": _compare_and_swap,
}


def _build(instruction: Instruction, bind: Binder) -> Operation:
    """``atom{.semantics}{.scope}{.space}.op{.noftz}.type d, [a], b{, c}``; ``red`` has no d."""
    kind = last_type(instruction)
    name = next((part for part in instruction.modifiers if part in _UFUNCS or part in _UPDATES), "")
    if not name or "async" in instruction.modifiers:
        bind.unsupported()
    if any(part in ("v2", "v4", "v8") for part in instruction.modifiers):
        return _build_vector(instruction, kind, name, bind)
    has_result = instruction.opcode == "atom"
    count = 2 if name == "cas" else 1
    min_operands = count + (2 if has_result else 1)
    operands = list(operands_of(instruction, min_operands, min_operands + 1))  # a cache policy may come last
    target = bind.target(operands.pop(0), kind) if has_result else None
    access_kind = atomic_kind(instruction.opcode, instruction.modifiers)
    access = Access(operands[0], state_space(instruction), kind.bytes, bind, access_kind)
    sources = [bind.source(operand, kind) for operand in operands[1 : 1 + count]]
    ufunc, update = _semantics(name, kind)
    bind.effects.polls = has_result
    total = ufunc if not has_result and kind.is_integer else None

    def run(group: ThreadGroup) -> None:
        values = [group.lanes.spread(source.read(group.registers)) for source in sources]
        try:
            old_values = apply_to_memory(group, values)
        except MemoryFaultError as error:
            note_value(error, group, values[-1])
            raise
        if target is not None:
            target.write(group.registers, old_values)

    def apply_to_memory(group: ThreadGroup, values: list[Value]) -> Value:
        old_values = np.empty(group.lanes.count, kind.dtype)
        for part in access.parts(group):
            access.check(group, part)
            positions = slice(None) if part.positions is None else part.positions
            part_values = [value[positions] for value in values]
            index = np.broadcast_to(part.element, part_values[0].shape)
            if total is not None:
                _apply_totals(part.view(kind.dtype), index, part_values[0], total)
            else:
                old_values[positions] = apply_atomic(part.view(kind.dtype), index, part_values, ufunc, update)
        return old_values

    return run


def _build_vector(instruction: Instruction, kind: ScalarType, name: str, bind: Binder) -> Operation:
    """``atom….v2.f32 {d, …}, [a], {b, …}``; an operation for each element; it is aligned as a whole."""
    has_result = instruction.opcode == "atom"
    min_operands = 3 if has_result else 2
    operands = list(operands_of(instruction, min_operands, min_operands + 1))
    targets = [bind.target(element, kind) for element in _vector_elements(operands.pop(0), bind)] if has_result else []
    sources = [bind.source(element, kind) for element in _vector_elements(operands[1], bind)]
    space = state_space(instruction)
    vector = Access(operands[0], space, kind.bytes * len(sources), bind)
    access_kind = atomic_kind(instruction.opcode, instruction.modifiers)
    access = Access(operands[0], space, kind.bytes, bind, access_kind)
    ufunc, update = _semantics(name, kind)
    bind.effects.polls = has_result

    def run(group: ThreadGroup) -> None:
        for _ in vector.parts(group):
            pass  # the check of its bounds and alignment
        vector_addresses = group.lanes.spread(access.address(group))
        for number, source in enumerate(sources):
            value = group.lanes.spread(source.read(group.registers))
            old_values = np.empty(group.lanes.count, kind.dtype)
            for part in access.parts_at(group, vector_addresses + vector_addresses.dtype.type(number * kind.bytes)):
                access.check(group, part)
                positions = slice(None) if part.positions is None else part.positions
                index = np.broadcast_to(part.element, value[positions].shape)
                old_values[positions] = apply_atomic(part.view(kind.dtype), index, [value[positions]], ufunc, update)
            if targets:
                targets[number].write(group.registers, old_values)

    return run


def _vector_elements(operand: Operand, bind: Binder) -> tuple[Operand, ...]:
    return operand.elements if isinstance(operand, Vector) else bind.unsupported()


def _semantics(name: str, kind: ScalarType) -> tuple[np.ufunc | None, Callable[..., Value]]:
    """The NumPy function that accumulates, if one does, and the update of one element."""
    if name in _UPDATES:
        return None, _UPDATES[name]
    if kind.is_integer or kind.name in ("f32", "f64"):
        return _UFUNCS[name], _UFUNCS[name]
    return None, arithmetic(name, kind, ())


def apply_atomic(
    memory: Value, index: Value, operands: list[Value], ufunc: np.ufunc | None, update: Callable[..., Value]
) -> Value:
    """Apply ``update`` at ``memory[index]``, one element after the other, and return what each found there.

    ``index`` and the operands have shape (lanes,). ``ufunc`` is the same as ``update``, where NumPy has it.
    """
    order = np.argsort(index, kind="stable")
    sorted_index = index[order]
    run_starts = np.flatnonzero(np.concatenate(([True], sorted_index[1:] != sorted_index[:-1])))
    if len(run_starts) == len(index):
        value: Value = memory[index]
        memory[index] = update(value, *operands)
        return value
    sizes = np.diff(np.append(run_starts, len(index)))
    values = [operand[order] for operand in operands]
    if ufunc is None or len(run_starts) > sizes.max():
        old_values = _update_in_rounds(memory, sorted_index, values, run_starts, sizes, update)
    else:
        old_values = _update_by_address(memory, sorted_index, values[0], run_starts, sizes, ufunc)
    result = np.empty_like(old_values)
    result[order] = old_values
    return result


def _apply_totals(memory: Value, index: Value, operand: Value, ufunc: np.ufunc) -> None:
    """``red`` of integers, whose order makes no difference: one update per address."""
    order = np.argsort(index, kind="stable")
    sorted_index = index[order]
    run_starts = np.flatnonzero(np.concatenate(([True], sorted_index[1:] != sorted_index[:-1])))
    places = sorted_index[run_starts]
    memory[places] = ufunc(memory[places], ufunc.reduceat(operand[order], run_starts, dtype=operand.dtype))


def _update_in_rounds(
    memory: Value, index: Value, values: list[Value], run_starts: Value, run_sizes: Value, update: Callable[..., Value]
) -> Value:
    """The first lane of each address, then the second one of each that has two, and so on."""
    old_values = np.empty(len(index), memory.dtype)
    for turn in range(int(run_sizes.max())):
        lanes = run_starts[run_sizes > turn] + turn
        turn_values = memory[index[lanes]]
        old_values[lanes] = turn_values
        memory[index[lanes]] = update(turn_values, *(value[lanes] for value in values))
    return old_values


def _update_by_address(
    memory: Value, index: Value, values: Value, run_starts: Value, run_sizes: Value, ufunc: np.ufunc
) -> Value:
    """All lanes of one address at a time, by accumulation."""
    old_values = np.empty(len(index), memory.dtype)
    for start, size in zip(run_starts.tolist(), run_sizes.tolist(), strict=True):
        place = index[start]
        history: Any = np.concatenate((memory[place : place + 1], values[start : start + size]))
        history = ufunc.accumulate(history)
        old_values[start : start + size] = history[:-1]
        memory[place] = history[-1]
    return old_values


BUILDERS: Final[dict[str, Callable[[Instruction, Binder], Operation]]] = {"atom": _build, "red": _build}
