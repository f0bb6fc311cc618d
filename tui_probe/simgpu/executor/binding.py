"""From the instructions of a function to bound steps: operations, and controls that end a basic block."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from tui_probe.ptx.tree import Element, Immediate, Instruction, Operand, Register, Symbol, Vector
from tui_probe.ptx.tree import Group as Parenthesised
from tui_probe.simgpu.executor.async_copy import build_copy_wait
from tui_probe.simgpu.executor.barrier_instructions import build_barrier, is_barrier
from tui_probe.simgpu.executor.calls import build_call
from tui_probe.simgpu.executor.control import Branch, Control, End, build_branch, build_indexed_branch
from tui_probe.simgpu.executor.device_calls import build_device_call
from tui_probe.simgpu.executor.faults import UnsupportedInstructionError
from tui_probe.simgpu.executor.forms import UnsupportedFormError
from tui_probe.simgpu.executor.guard import guarded
from tui_probe.simgpu.executor.instructions import BUILDERS
from tui_probe.simgpu.executor.mbarrier_waits import build_try
from tui_probe.simgpu.executor.model import instruction_cost
from tui_probe.simgpu.executor.operands import Binder, Effects, Operation, Source
from tui_probe.simgpu.executor.scalars import PREDICATE
from tui_probe.simgpu.executor.special import SPECIAL_REGISTERS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tui_probe.simgpu.executor.group import Group
    from tui_probe.simgpu.executor.program import FunctionCode
    from tui_probe.simgpu.executor.scope import Names


_OF_TEXTURES: Final = frozenset({"tex", "tld4", "txq", "suld", "sust", "sured", "suq", "istypep"})
_COLOURS: Final = dict(zip("rgba", "xyzw", strict=True))


@dataclass(frozen=True, slots=True)
class Mark:
    """A label, by its key."""

    key: int


@dataclass(frozen=True, slots=True)
class Written:
    """An instruction as written, with the names that it sees."""

    instruction: Instruction
    names: Names


@dataclass(frozen=True, slots=True)
class Step:
    """A bound instruction: an ``operation``, or a ``control`` that ends its block (after ``operation``, if both)."""

    operation: Operation | None
    control: Control | None
    effects: Effects
    line: int
    cycles: int
    length: int = 1


Part: TypeAlias = "Mark | Step"


def bind_function(items: Iterable[Mark | Written], code: FunctionCode, binder: Binder) -> list[Part]:
    """Binds all instructions of a function whose code is ``code``."""
    parts: list[Part] = []
    for item in items:
        if isinstance(item, Mark):
            parts.append(item)
        else:
            parts.extend(_bind(item, code, binder))
    return parts


def _bind(item: Written, code: FunctionCode, binder: Binder) -> list[Part]:
    instruction = _plain(item.instruction, item.names)
    binder.begin(item.names, instruction.span.line)
    guard = _guard(instruction, binder)
    if isinstance(guard, Source) and instruction.opcode == "bra":
        return [_guarded_branch(instruction, guard, binder)]
    step = _step(instruction, code, binder)
    if guard is None:
        return [step]
    if step.control is None and step.effects.members is None and step.operation is not None:
        step.effects.reads.add(guard.index)
        operation = guarded(step.operation, guard, step.effects)
        step.effects.reads.update(step.effects.writes)
        return [Step(operation, None, step.effects, step.line, step.cycles)]
    return _skipped_around(step, guard, instruction, binder)


def _plain(instruction: Instruction, names: Names) -> Instruction:
    """The instruction with its operands in the forms that the builders know."""
    operands = tuple(_plain_operand(operand, names) for operand in instruction.operands)
    return instruction if operands == instruction.operands else replace(instruction, operands=operands)


def _plain_operand(operand: Operand, names: Names) -> Operand:
    """A register that is a vector (``.reg .v2 .u32 v``, ``%tid``) as its parts, ``table[0]`` as ``table``."""
    match operand:
        case Register():
            parts = _parts(operand, names)
            return Vector(parts) if parts else _by_coordinate(operand, names)
        case Vector():
            return Vector(tuple(_plain_operand(element, names) for element in operand.elements))
        case Parenthesised():
            return Parenthesised(tuple(_plain_operand(element, names) for element in operand.elements))
        case Element(name, Immediate("0")):
            return Symbol(name)
    return operand


def _parts(operand: Register, names: Names) -> tuple[Register, ...]:
    if operand.selector or names.find(operand.name) is not None:
        return ()
    parts = [Register(operand.name, part) for part in "xyzw"]
    return tuple(part for part in parts if names.find(str(part)) is not None or str(part) in SPECIAL_REGISTERS)


def _by_coordinate(operand: Register, names: Names) -> Register:
    """``v.r`` as ``v.x``: the parts of a vector have two names each."""
    if operand.selector not in _COLOURS or names.find(str(operand)) is not None:
        return operand
    return Register(operand.name, _COLOURS[operand.selector])


def _guard(instruction: Instruction, binder: Binder) -> Source | None:
    """The guard predicate."""
    if instruction.predicate is None:
        return None
    source = binder.source(instruction.predicate, PREDICATE)
    return source.inverted() if instruction.predicate_negated else source


def _guarded_branch(instruction: Instruction, guard: Source, binder: Binder) -> Step:
    branch = build_branch(instruction, binder)
    branch.condition = guard
    return Step(None, branch, binder.effects, binder.line, instruction_cost("bra", ()))


def _skipped_around(step: Step, guard: Source, instruction: Instruction, binder: Binder) -> list[Part]:
    """A guarded instruction that lanes wait at or end with: the others branch around it.

    The branch has its cost, so that a warp pays for it, whether its guard holds or not, and once.
    """
    after = binder.layout.label(instruction)
    skip = Step(None, Branch(after, guard.inverted()), Effects(reads={guard.index}), step.line, step.cycles)
    return [skip, replace(step, cycles=0, length=0), Mark(after)]


def _step(instruction: Instruction, code: FunctionCode, binder: Binder) -> Step:
    opcode = instruction.opcode
    cycles = instruction_cost(opcode, instruction.modifiers)
    operation: Operation | None = None
    control: Control | None = None
    try:
        if instruction.opcode == "call":
            operation = build_device_call(instruction, binder)
        if operation is None:
            control = _control(instruction, code, binder)
        if operation is None and control is None:
            operation = _operation(instruction, binder)
    except UnsupportedFormError:
        operation = _unsupported(instruction)
    if binder.effects.prelude:
        operation = _chained(binder.effects.prelude, operation)
    return Step(operation, control, binder.effects, binder.line, cycles)


def _control(instruction: Instruction, code: FunctionCode, binder: Binder) -> Control | None:
    match instruction.opcode:
        case "bra":
            return build_branch(instruction, binder)
        case "brx":
            return build_indexed_branch(instruction, binder)
        case "ret" | "exit":
            return End(returns=instruction.opcode == "ret")
        case "call":
            return build_call(instruction, binder, code)
        case "cp":
            return build_copy_wait(instruction, binder)
        case "mbarrier":
            return build_try(instruction, binder)
    return build_barrier(instruction, binder) if is_barrier(instruction) else None


def _operation(instruction: Instruction, binder: Binder) -> Operation:
    build = BUILDERS.get(instruction.opcode)
    if build is None:
        return binder.unsupported()
    try:
        return build(instruction, binder)
    except KeyError:
        # A modifier that is in none of the tables.
        return binder.unsupported()


def _chained(prelude: list[Operation], operation: Operation | None) -> Operation:
    operations = (*prelude, operation) if operation else tuple(prelude)

    def run(group: Group) -> None:
        for part in operations:
            part(group)

    return run


def _reason(instruction: Instruction) -> str:
    if instruction.opcode in _OF_TEXTURES:
        return "texture-instruction"
    return "tensor-map-instruction" if "tensor" in instruction.modifiers else "unsupported-instruction"


def _unsupported(instruction: Instruction) -> Operation:
    text = ".".join((instruction.opcode, *instruction.modifiers))
    if instruction.opcode == "call":
        text += "".join(f" {operand.name}" for operand in instruction.operands if isinstance(operand, Symbol))
    line = instruction.span.line
    reason = _reason(instruction)

    def run(group: Group) -> None:  # noqa: ARG001
        raise UnsupportedInstructionError(text, line, reason)

    return run
