"""Binding the instructions of a function: operations, guards, and controls that end a basic block."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from operator import is_
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from tui_probe.ptx.tree import Element, Immediate, Instruction, Operand, Register, Symbol, Vector
from tui_probe.ptx.tree import OperandList as Parenthesised
from tui_probe.simgpu.executor import (
    async_copy,
    atomics,
    barrier_instructions,
    bits,
    clusters,
    convert,
    floating,
    integer,
    loads_and_stores,
    matrix,
    program,
    selection,
    tensor_copies,
    warp,
    warpgroups,
    wmma,
)
from tui_probe.simgpu.executor.async_copy import build_copy_wait
from tui_probe.simgpu.executor.barrier_instructions import build_barrier, build_try_wait, is_barrier
from tui_probe.simgpu.executor.calls import build_call
from tui_probe.simgpu.executor.device_calls import build_device_call
from tui_probe.simgpu.executor.faults import UnsupportedInstructionError
from tui_probe.simgpu.executor.model import instruction_cost
from tui_probe.simgpu.executor.operands import Binder, Effects
from tui_probe.simgpu.executor.operations import Operation, SourceOperand
from tui_probe.simgpu.executor.program import Branch, Control, FunctionEnd, build_branch, build_indexed_branch
from tui_probe.simgpu.executor.scalars import PREDICATE, TYPES, UnsupportedFormError, last_type
from tui_probe.simgpu.executor.scope import RegisterName
from tui_probe.simgpu.executor.special import SPECIAL_REGISTERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tui_probe.simgpu.executor.lanes import Places
    from tui_probe.simgpu.executor.program import FunctionCode
    from tui_probe.simgpu.executor.scalars import DType, Value
    from tui_probe.simgpu.executor.scope import Names
    from tui_probe.simgpu.executor.threads import ThreadGroup

Build: TypeAlias = "Callable[[Instruction, Binder], Operation]"

_INTEGER_PAIRS: Final = frozenset({"u16x2", "s16x2"})
_TEXTURE_OPCODES: Final = frozenset({"tex", "tld4", "txq", "suld", "sust", "sured", "suq", "istypep"})
_COLOR_SELECTORS: Final = dict(zip("rgba", "xyzw", strict=True))
BoundItem: TypeAlias = "LabelMark | BoundStep"


def _arithmetic_builder(opcode: str) -> Build:
    """Integer or floating-point arithmetic, which share their opcodes."""

    def build(instruction: Instruction, bind: Binder) -> Operation:
        kind = last_type(instruction)
        if not kind.is_integer and kind.name not in _INTEGER_PAIRS:
            return floating.BUILDERS[opcode](instruction, bind)
        name = f"{opcode}.cc" if "cc" in instruction.modifiers and f"{opcode}.cc" in integer.BUILDERS else opcode
        return integer.BUILDERS[name](instruction, bind)

    return build


INSTRUCTION_BUILDERS: Final[dict[str, Build]] = {
    **selection.MOVE_BUILDERS,
    **bits.BUILDERS,
    **integer.BUILDERS,
    **floating.BUILDERS,
    **{opcode: _arithmetic_builder(opcode) for opcode in integer.BUILDERS if opcode in floating.BUILDERS},
    **selection.COMPARISON_BUILDERS,
    **convert.BUILDERS,
    **loads_and_stores.BUILDERS,
    **async_copy.BUILDERS,
    "st": async_copy.build_any_store,
    **atomics.BUILDERS,
    **barrier_instructions.MBARRIER_BUILDERS,
    **clusters.BUILDERS,
    **tensor_copies.BUILDERS,
    **warp.BUILDERS,
    **matrix.BUILDERS,
    **wmma.BUILDERS,
    **warpgroups.BUILDERS,
    "trap": program.build_trap,
    "brkpt": program.build_trap,
}


def guard_operation(operation: Operation, predicate: SourceOperand, effects: Effects) -> Operation:
    """Return ``operation`` under a guard. Its targets count as read too: other lanes keep their values."""
    target_registers = tuple(sorted(effects.target_registers))
    if effects.is_pure:
        return _guard_pure(operation, predicate, target_registers)
    return _guard_by_subset(operation, predicate, tuple(sorted(effects.source_registers)), target_registers)


def _guard_pure(operation: Operation, predicate: SourceOperand, target_registers: tuple[int, ...]) -> Operation:
    def run(group: ThreadGroup) -> None:
        registers = group.registers
        is_active = predicate.read(registers)
        if not is_active.ndim:
            if is_active:
                operation(group)
            return
        old_values = [registers[index] for index in target_registers]
        operation(group)
        for index, old_value in zip(target_registers, old_values, strict=True):
            registers[index] = np.where(is_active, registers[index], old_value)

    return run


def _guard_by_subset(
    operation: Operation, predicate: SourceOperand, source_registers: tuple[int, ...], target_registers: tuple[int, ...]
) -> Operation:
    def run(group: ThreadGroup) -> None:
        is_active = predicate.read(group.registers)
        count = np.count_nonzero(is_active) if is_active.ndim else int(is_active) * group.lanes.count
        if count == group.lanes.count:
            operation(group)
        elif count:
            positions = np.flatnonzero(is_active)
            active_group = group.select(positions, group.block, source_registers)
            operation(active_group)
            for index in target_registers:
                group.registers[index] = _merge_lanes(
                    group, positions, group.registers[index], active_group.registers[index]
                )

    return run


def _merge_lanes(group: ThreadGroup, positions: Places, old_value: Value | None, new_value: Value) -> Value:
    """``old_value``, with ``new_value`` at the positions ``positions``."""
    shape = (group.lanes.count, *new_value.shape[1:])
    result = np.zeros(shape, new_value.dtype) if old_value is None else np.array(np.broadcast_to(old_value, shape))
    result[positions] = new_value
    return result


@dataclass(frozen=True, slots=True)
class LabelMark:
    """A label, by its key."""

    key: int


@dataclass(frozen=True, slots=True)
class NamedInstruction:
    """An instruction as written, with the names that it sees."""

    instruction: Instruction
    names: Names


@dataclass(frozen=True, slots=True)
class BoundStep:
    """A bound instruction: an ``operation``, or a ``control`` that ends its block (after ``operation``, if both)."""

    operation: Operation | None
    control: Control | None
    effects: Effects
    line: int
    cycles: int
    length: int = 1


def common_types(items: Iterable[LabelMark | NamedInstruction]) -> dict[int, DType]:
    """The type of most instructions that name a register, by register: kept as this type, it needs few conversions."""
    votes: defaultdict[int, Counter[DType]] = defaultdict(Counter)
    for item in items:
        if isinstance(item, LabelMark):
            continue
        kind = next((TYPES[part] for part in reversed(item.instruction.modifiers) if part in TYPES), PREDICATE)
        if not kind.is_number:
            continue
        for operand in item.instruction.operands:
            entity = item.names.find(operand.name) if isinstance(operand, Register) else None
            if isinstance(entity, RegisterName) and entity.type.bits == kind.bits:
                votes[entity.index][kind.dtype] += 1
    return {index: counts.most_common(1)[0][0] for index, counts in votes.items()}


def bind_function(items: Iterable[LabelMark | NamedInstruction], code: FunctionCode, binder: Binder) -> list[BoundItem]:
    """Bind all instructions of a function whose code is ``code``."""
    parts: list[BoundItem] = []
    for item in items:
        parts.extend([item] if isinstance(item, LabelMark) else _bind_instruction(item, code, binder))
    return parts


def _bind_instruction(item: NamedInstruction, code: FunctionCode, binder: Binder) -> list[BoundItem]:
    instruction = _normalise(item.instruction, item.names)
    binder.begin(item.names, instruction.span.line)
    guard = _guard_predicate(instruction, binder)
    if isinstance(guard, SourceOperand) and instruction.opcode == "bra":
        return [_bind_guarded_branch(instruction, guard, binder)]
    step = _bind_step(instruction, code, binder)
    if guard is None:
        return [step]
    if step.control is None and step.effects.members is None and step.operation is not None:
        step.effects.source_registers.add(guard.index)
        operation = guard_operation(step.operation, guard, step.effects)
        step.effects.source_registers.update(step.effects.target_registers)
        return [BoundStep(operation, None, step.effects, step.line, step.cycles)]
    return _branch_around(step, guard, binder)


def _normalise(instruction: Instruction, names: Names) -> Instruction:
    """The instruction with its operands in the forms that the builders know."""
    operands = _normalise_operands(instruction.operands, names)
    return instruction if operands is instruction.operands else replace(instruction, operands=operands)


def _normalise_operands(operands: tuple[Operand, ...], names: Names) -> tuple[Operand, ...]:
    """Return plain operands: the same tuple where all are plain, as nearly always."""
    normal_operands = tuple([_normalise_operand(operand, names) for operand in operands])
    return operands if all(map(is_, normal_operands, operands)) else normal_operands


def _normalise_operand(operand: Operand, names: Names) -> Operand:
    """A register that is a vector (``.reg .v2 .u32 v``, ``%tid``) as its parts, ``table[0]`` as ``table``."""
    match operand:
        case Register():
            if not operand.selector and names.find(operand.name) is not None:
                return operand
            parts = _vector_parts(operand, names)
            return Vector(parts) if parts else _coordinate_register(operand, names)
        case Vector():
            elements = _normalise_operands(operand.elements, names)
            return operand if elements is operand.elements else Vector(elements)
        case Parenthesised():
            return Parenthesised(tuple(_normalise_operand(element, names) for element in operand.elements))
        case Element(name, Immediate("0")):
            return Symbol(name)
    return operand


def _vector_parts(operand: Register, names: Names) -> tuple[Register, ...]:
    if operand.selector:
        return ()
    parts = [Register(operand.name, part) for part in "xyzw"]
    return tuple(part for part in parts if names.find(str(part)) is not None or str(part) in SPECIAL_REGISTERS)


def _coordinate_register(operand: Register, names: Names) -> Register:
    """``v.r`` as ``v.x``: the parts of a vector have two names each."""
    if operand.selector not in _COLOR_SELECTORS or names.find(str(operand)) is not None:
        return operand
    return Register(operand.name, _COLOR_SELECTORS[operand.selector])


def _guard_predicate(instruction: Instruction, binder: Binder) -> SourceOperand | None:
    """The guard predicate."""
    if instruction.predicate is None:
        return None
    source = binder.source(instruction.predicate, PREDICATE)
    return source.inverse() if instruction.predicate_negated else source


def _bind_guarded_branch(instruction: Instruction, guard: SourceOperand, binder: Binder) -> BoundStep:
    branch = build_branch(instruction, binder)
    branch.condition = guard
    return BoundStep(None, branch, binder.effects, binder.line, instruction_cost("bra", ()))


def _branch_around(step: BoundStep, guard: SourceOperand, binder: Binder) -> list[BoundItem]:
    """A guarded instruction that lanes wait at or end with: the others branch around it.

    The branch has its cost, so that a warp pays for it, whether its guard holds or not, and once.
    """
    skip_label = binder.layout.new_label()
    branch_step = BoundStep(
        None, Branch(skip_label, guard.inverse()), Effects(source_registers={guard.index}), step.line, step.cycles
    )
    return [branch_step, replace(step, cycles=0, length=0), LabelMark(skip_label)]


def _bind_step(instruction: Instruction, code: FunctionCode, binder: Binder) -> BoundStep:
    opcode = instruction.opcode
    cycles = instruction_cost(opcode, instruction.modifiers)
    operation: Operation | None = None
    control: Control | None = None
    try:
        if instruction.opcode == "call":
            operation = build_device_call(instruction, binder)
        if operation is None:
            control = _bind_control(instruction, code, binder)
        if operation is None and control is None:
            operation = _bind_operation(instruction, binder)
    except UnsupportedFormError:
        operation = _raise_unsupported(instruction)
    if binder.effects.prelude:
        operation = _chain(binder.effects.prelude, operation)
    return BoundStep(operation, control, binder.effects, binder.line, cycles)


def _bind_control(instruction: Instruction, code: FunctionCode, binder: Binder) -> Control | None:
    match instruction.opcode:
        case "bra":
            return build_branch(instruction, binder)
        case "brx":
            return build_indexed_branch(instruction, binder)
        case "ret" | "exit":
            return FunctionEnd(returns=instruction.opcode == "ret")
        case "call":
            return build_call(instruction, binder, code)
        case "cp":
            return build_copy_wait(instruction, binder)
        case "mbarrier":
            return build_try_wait(instruction, binder)
    return build_barrier(instruction, binder) if is_barrier(instruction) else None


def _bind_operation(instruction: Instruction, binder: Binder) -> Operation:
    build = INSTRUCTION_BUILDERS.get(instruction.opcode)
    if build is None:
        return binder.unsupported()
    try:
        return build(instruction, binder)
    except KeyError:
        # A modifier that is in none of the tables.
        return binder.unsupported()


def _chain(prelude: list[Operation], operation: Operation | None) -> Operation:
    operations = (*prelude, operation) if operation else tuple(prelude)

    def run(group: ThreadGroup) -> None:
        for part in operations:
            part(group)

    return run


def _unsupported_reason(instruction: Instruction) -> str:
    if instruction.opcode in _TEXTURE_OPCODES:
        return "texture-instruction"
    return "tensor-map-instruction" if "tensor" in instruction.modifiers else "unsupported-instruction"


def _raise_unsupported(instruction: Instruction) -> Operation:
    text = ".".join((instruction.opcode, *instruction.modifiers))
    if instruction.opcode == "call":
        text += "".join(f" {operand.name}" for operand in instruction.operands if isinstance(operand, Symbol))
    line = instruction.span.line
    reason = _unsupported_reason(instruction)

    def run(group: ThreadGroup) -> None:  # noqa: ARG001
        raise UnsupportedInstructionError(text, line, reason)

    return run
