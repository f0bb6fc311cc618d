"""Calls of device functions: arguments, results and the frame of the caller.

A parameter of a function is bytes (``.param``) or a register (``.reg``, the older form), and so is what a caller passes
for it. Values go from one to the other as the function declares them: an array of bytes per lane, or a number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tui_probe.errors import SimulationError
from tui_probe.ptx.tree import Function, Instruction, Operand, Register, Symbol, Variable, Vector
from tui_probe.ptx.tree import OperandList as Parenthesised
from tui_probe.simgpu.executor.operations import ResultOperand, SourceOperand
from tui_probe.simgpu.executor.scalars import TYPES, U8, scalar
from tui_probe.simgpu.executor.scope import BytesName, FunctionName
from tui_probe.simgpu.executor.threads import CallFrame

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tui_probe.simgpu.executor.operands import Binder
    from tui_probe.simgpu.executor.program import Finish, FunctionCode, Program, Scheduling
    from tui_probe.simgpu.executor.scalars import Registers, ScalarType, Value
    from tui_probe.simgpu.executor.threads import ThreadGroup


@dataclass(frozen=True, slots=True)
class CallArgument:
    """An argument: where the caller has it, and how many bytes the function takes it as, 0 if it takes it as it is."""

    source: SourceOperand
    size: int = 0

    def value(self, group: ThreadGroup) -> Value:
        """Return the value of an argument for each lane."""
        value = self.source.read(group.registers)
        if not self.size:
            return value
        values = np.ascontiguousarray(group.lanes.spread(value))
        return values.view(U8).reshape(group.lanes.count, self.size)


@dataclass(frozen=True, slots=True)
class CallResult:
    """A result: where the caller wants it, and as which type if the function gives bytes for a register."""

    target: ResultOperand
    kind: ScalarType | None = None

    def store(self, registers: Registers, value: Value | None) -> None:
        """Set the caller's register. ``value`` is None for bytes that were never written."""
        kind = self.kind
        if kind is not None:
            value = scalar(0, kind.dtype) if value is None else np.ascontiguousarray(value).view(kind.dtype)[:, 0]
        registers[self.target.index] = value
        if value is not None:
            self.target.write(registers, value)


@dataclass(slots=True)
class Call:
    """``call``: of the function ``name``, or of the one whose address ``pointer`` holds."""

    name: str
    pointer: SourceOperand | None
    arguments: tuple[CallArgument, ...]
    results: tuple[CallResult, ...]
    caller: FunctionCode
    line: int
    # A thread may exit in the callee.
    may_end: bool = True

    def successors(self, labels: Mapping[int, int], following: int) -> Sequence[int]:  # noqa: ARG002
        return (following,)

    def finish(self, labels: Mapping[int, int], following: int, polls: bool) -> Finish:  # noqa: ARG002
        def finish(group: ThreadGroup, scheduler: Scheduling) -> ThreadGroup | None:
            program = scheduler.program
            if self.pointer is None:
                self._enter(group, program.functions[self.name], following)
                return group
            addresses = group.lanes.spread(self.pointer.read(group.registers))
            group.block = following
            distinct = np.unique(addresses)
            for address in distinct[1:]:
                part = self._split_group(group, addresses == address)
                addresses = addresses[addresses != address]
                self._enter(part, self._target(program, int(address)), following)
                scheduler.keep_ready(part)
            self._enter(group, self._target(program, int(distinct[0])), following)
            return group

        return finish

    def _target(self, program: Program, address: int) -> FunctionCode:
        name = program.addresses.get(address)
        if name is None:
            raise SimulationError(f"call to {address:#x}, which is not a function of the module, at line {self.line}")
        return program.functions[name]

    def _result_registers(self) -> set[int]:
        return {result.target.index for result in self.results}

    def _split_group(
        self, group: ThreadGroup, condition: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    ) -> ThreadGroup:
        # The arguments are needed once more, though no instruction of the caller reads them again.
        argument_registers = {argument.source.index for argument in self.arguments}
        live = ({*group.batch.live[group.block]} - self._result_registers()) | argument_registers
        part = group.select(np.flatnonzero(condition), group.block, live)
        remaining_group = group.select(np.flatnonzero(~condition), group.block, live)
        group.lanes, group.registers, group.frames = (
            remaining_group.lanes,
            remaining_group.registers,
            remaining_group.frames,
        )
        return part

    def _enter(self, group: ThreadGroup, callee: FunctionCode, following: int) -> None:
        caller_registers, result_registers = group.registers, self._result_registers()
        live = group.batch.live[following]
        saved_registers = tuple((index, caller_registers[index]) for index in live if index not in result_registers)
        returned_values, result_targets = callee.results, self.results

        def hand_back(callee_registers: Registers, resumed_registers: Registers) -> None:
            for source, result in zip(returned_values, result_targets, strict=False):
                result.store(resumed_registers, source.read(callee_registers))

        group.frames = (*group.frames, CallFrame(following, saved_registers, hand_back, group.local_base))
        registers = group.batch.template.copy()
        for index, zero in callee.undefined:
            registers[index] = zero
        for formal, argument in zip(callee.formals, self.arguments, strict=False):
            formal.write(registers, argument.value(group))
        group.registers = registers
        # Frames are aligned like the most aligned variable, a vector of 16 bytes.
        group.local_base += -(-self.caller.local_bytes // 16) * 16
        group.batch.reserve_local(group.local_base + callee.local_bytes)
        group.block = callee.entry


def build_call(instruction: Instruction, bind: Binder, caller: FunctionCode) -> Call:
    """``call {(results),} function{, (arguments)};``; with a pointer in a register, a prototype follows."""
    operands = list(instruction.operands)
    results = operands.pop(0) if isinstance(operands[0], Parenthesised) else None
    callee = operands[0]
    argument_list = operands[1] if len(operands) > 1 and isinstance(operands[1], Parenthesised) else None
    name, pointer, function = "", None, None
    if isinstance(callee, Register):
        pointer = bind.source(callee, TYPES["u64"])
    else:
        function = called_function(callee, bind)
        name = function.name
    argument_operands = argument_list.elements if argument_list else ()
    result_operands = results.elements if isinstance(results, Parenthesised) else ()
    arguments = tuple(
        _bind_argument(operand, kind, bind)
        for operand, kind in _match_parameters(argument_operands, function.parameters if function else None, bind)
    )
    call_results = tuple(
        _bind_result(operand, kind, bind)
        for operand, kind in _match_parameters(result_operands, function.returns if function else None, bind)
    )
    return Call(name, pointer, arguments, call_results, caller, instruction.span.line)


def called_function(operand: Operand, bind: Binder) -> Function:
    """The function with a body that ``operand`` names."""
    entity = bind.entity(operand.name) if isinstance(operand, Symbol) else None
    if not isinstance(entity, FunctionName) or entity.function.body is None:
        return bind.unsupported()
    return entity.function


def _match_parameters(
    operands: Sequence[Operand], formals: Sequence[Variable] | None, bind: Binder
) -> list[tuple[Operand, Variable | None]]:
    """Return each operand with the parameter that it is passed for, None for a call through a pointer."""
    if formals is None:
        return [(operand, None) for operand in operands]
    if len(operands) != len(formals):
        bind.unsupported()
    pairs: list[tuple[Operand, Variable | None]] = []
    for operand, formal in zip(operands, formals, strict=True):
        parts = operand.elements if isinstance(operand, Vector) and formal.space == "reg" else (operand,)
        if formal.space == "reg" and len(parts) != formal.vector:
            bind.unsupported()
        pairs += [(part, formal) for part in parts]
    return pairs


def _bind_argument(operand: Operand, formal: Variable | None, bind: Binder) -> CallArgument:
    bytes_name = _passed_bytes(operand, formal, bind)
    if bytes_name is not None:
        bind.effects.source_registers.add(bytes_name.index)
        return CallArgument(SourceOperand(bytes_name.index))
    kind = _scalar(formal, bind)
    return CallArgument(bind.source(operand, kind), kind.bytes if formal is not None and formal.space == "param" else 0)


def _bind_result(operand: Operand, formal: Variable | None, bind: Binder) -> CallResult:
    bytes_name = _passed_bytes(operand, formal, bind)
    if bytes_name is not None:
        bind.effects.target_registers.add(bytes_name.index)
        return CallResult(ResultOperand(bytes_name.index))
    kind = _scalar(formal, bind)
    return CallResult(bind.target(operand, kind), kind if formal is not None and formal.space == "param" else None)


def _passed_bytes(operand: Operand, formal: Variable | None, bind: Binder) -> BytesName | None:
    """The bytes that an operand names, which are passed for no register; None where it is a value."""
    entity = bind.names.find(operand.name) if isinstance(operand, Symbol) else None
    if not isinstance(entity, BytesName):
        return None
    if formal is not None and formal.space == "reg":
        bind.unsupported()
    return entity


def _scalar(formal: Variable | None, bind: Binder) -> ScalarType:
    """The type as which a register or a literal is passed for ``formal``."""
    kind = TYPES.get(formal.type) if formal is not None and not formal.is_array else None
    return kind or bind.unsupported()
