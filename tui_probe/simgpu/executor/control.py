"""Branches, calls and ends of threads: what finishes a basic block."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tui_probe.errors import SimulationError
from tui_probe.ptx.tree import Function, Instruction, Operand, Register, Symbol
from tui_probe.ptx.tree import Group as Parenthesised
from tui_probe.simgpu.executor.faults import TrapError
from tui_probe.simgpu.executor.forms import operands_of
from tui_probe.simgpu.executor.group import Frame
from tui_probe.simgpu.executor.scalars import TYPES
from tui_probe.simgpu.executor.scope import BytesName, FunctionName, LabelName

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tui_probe.simgpu.executor.group import Group
    from tui_probe.simgpu.executor.operands import Binder, Operation, Source
    from tui_probe.simgpu.executor.program import Finish, FunctionCode, Program, Scheduling


class Control(Protocol):
    """The end of a basic block. ``labels`` maps label keys to block indices, ``following`` is the next block."""

    may_end: bool

    def successors(self, labels: Mapping[int, int], following: int) -> Sequence[int]:
        """The blocks of the same function that may run next."""

    def finish(self, labels: Mapping[int, int], following: int, polls: bool) -> Finish:
        """What to do at run time. ``polls``: it ends a loop in which threads may wait for others."""


@dataclass(slots=True)
class Branch:
    """``bra``: to ``label`` where ``condition`` holds (always, if it is None)."""

    label: int
    condition: Source | None = None
    may_end: bool = False

    def successors(self, labels: Mapping[int, int], following: int) -> Sequence[int]:
        target = labels[self.label]
        return (target,) if self.condition is None else (target, following)

    def finish(self, labels: Mapping[int, int], following: int, polls: bool) -> Finish:
        target, condition = labels[self.label], self.condition
        if condition is None:
            return _jump(target, polls)

        def finish(group: Group, scheduler: Scheduling) -> Group | None:
            taken = condition.read(group.registers)
            count = np.count_nonzero(taken) if taken.ndim else int(taken) * group.lanes.count
            group.block = following
            if count == 0:
                return group
            if count == group.lanes.count:
                group.block = target
                return scheduler.give_way(group) if polls else group
            jumping = group.split(taken, target)
            scheduler.put(jumping, gives_way=polls)
            return group

        return finish


def _jump(target: int, polls: bool) -> Finish:
    def finish(group: Group, scheduler: Scheduling) -> Group | None:
        group.block = target
        return scheduler.give_way(group) if polls else group

    return finish


@dataclass(slots=True)
class FallThrough:
    """The next block begins here, for it can be branched to or must begin anew."""

    may_end: bool = False

    def successors(self, labels: Mapping[int, int], following: int) -> Sequence[int]:  # noqa: ARG002
        return (following,)

    def finish(self, labels: Mapping[int, int], following: int, polls: bool) -> Finish:  # noqa: ARG002
        return _jump(following, polls=False)


@dataclass(slots=True)
class IndexedBranch:
    """``brx.idx``: to the label that ``index`` names."""

    labels: tuple[int, ...]
    index: Source
    may_end: bool = False

    def successors(self, labels: Mapping[int, int], following: int) -> Sequence[int]:  # noqa: ARG002
        return [labels[label] for label in self.labels]

    def finish(self, labels: Mapping[int, int], following: int, polls: bool) -> Finish:  # noqa: ARG002
        table = np.array([labels[label] for label in self.labels], np.intp)
        index = self.index

        def finish(group: Group, scheduler: Scheduling) -> Group | None:
            chosen = np.minimum(index.read(group.registers), len(table) - 1)
            targets = table[group.lanes.spread(chosen)]
            live = group.batch.live
            parts = [
                group.select(np.flatnonzero(targets == target), target, live[target])
                for target in np.unique(targets).tolist()
            ]
            for part in parts[1:]:
                scheduler.put(part)
            return scheduler.give_way(parts[0]) if polls else parts[0]

        return finish


@dataclass(slots=True)
class End:
    """``exit``, or ``ret`` (``returns``), which ends the threads of a kernel and goes back from a function."""

    returns: bool
    may_end: bool = True

    def successors(self, labels: Mapping[int, int], following: int) -> Sequence[int]:  # noqa: ARG002
        return ()

    def finish(self, labels: Mapping[int, int], following: int, polls: bool) -> Finish:  # noqa: ARG002
        returns = self.returns

        def finish(group: Group, scheduler: Scheduling) -> Group | None:  # noqa: ARG001
            if returns and group.frames:
                _return(group)
                return group
            group.batch.retire(group.lanes)
            return None

        return finish


def _return(group: Group) -> None:
    *outer, frame = group.frames
    registers = group.batch.template.copy()
    for index, value in frame.saved:
        registers[index] = value
    for formal, actual in frame.results:
        registers[actual] = group.registers[formal]
    group.registers = registers
    group.frames = tuple(outer)
    group.local_base = frame.local_base
    group.block = frame.resume


@dataclass(slots=True)
class Call:
    """``call``: of the function ``name``, or of the one whose address ``pointer`` holds."""

    name: str
    pointer: Source | None
    arguments: tuple[int, ...]
    results: tuple[int, ...]
    caller: FunctionCode
    line: int
    # A thread may exit in the callee.
    may_end: bool = True

    def successors(self, labels: Mapping[int, int], following: int) -> Sequence[int]:  # noqa: ARG002
        return (following,)

    def finish(self, labels: Mapping[int, int], following: int, polls: bool) -> Finish:  # noqa: ARG002
        def finish(group: Group, scheduler: Scheduling) -> Group | None:
            program = scheduler.program
            if self.pointer is None:
                self._enter(group, program.functions[self.name], following)
                return group
            addresses = group.lanes.spread(self.pointer.read(group.registers))
            group.block = following
            distinct = np.unique(addresses)
            for address in distinct[1:]:
                other = self._split(group, addresses == address)
                addresses = addresses[addresses != address]
                self._enter(other, self._target(program, int(address)), following)
                scheduler.put(other)
            self._enter(group, self._target(program, int(distinct[0])), following)
            return group

        return finish

    def _target(self, program: Program, address: int) -> FunctionCode:
        name = program.addresses.get(address)
        if name is None:
            raise SimulationError(f"call to {address:#x}, which is not a function of the module, at line {self.line}")
        return program.functions[name]

    def _split(self, group: Group, condition: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Group:
        # The arguments are needed once more, though no instruction of the caller reads them again.
        live = {*group.batch.live[group.block], *self.arguments} - set(self.results)
        taken = group.select(np.flatnonzero(condition), group.block, live)
        rest = group.select(np.flatnonzero(~condition), group.block, live)
        group.lanes, group.registers, group.frames = rest.lanes, rest.registers, rest.frames
        return taken

    def _enter(self, group: Group, callee: FunctionCode, following: int) -> None:
        old = group.registers
        live = group.batch.live[following]
        saved = tuple((index, old[index]) for index in live if index not in self.results)
        results = tuple(zip(callee.results, self.results, strict=False))
        group.frames = (*group.frames, Frame(following, saved, results, group.local_base))
        registers = group.batch.template.copy()
        for index, zero in callee.undefined:
            registers[index] = zero
        for formal, actual in zip(callee.formals, self.arguments, strict=False):
            registers[formal] = old[actual]
        group.registers = registers
        # Frames are aligned like the most aligned variable, a vector of 16 bytes.
        group.local_base += -(-self.caller.local_bytes // 16) * 16
        group.batch.reserve_local(group.local_base + callee.local_bytes)
        group.block = callee.entry


def build_branch(instruction: Instruction, bind: Binder) -> Branch:
    """``bra LABEL``."""
    return Branch(_label(instruction.operands[0], bind).key)


def build_indexed_branch(instruction: Instruction, bind: Binder) -> Control:
    """``brx.idx %r, TARGETS``."""
    index, targets = operands_of(instruction, 2)
    names = re.findall(r"[\w$%]+", _label(targets, bind).declaration.replace(".branchtargets", ""))
    labels = tuple(_label(Symbol(name), bind).key for name in names)
    return IndexedBranch(labels, bind.source(index, TYPES["u32"]))


def _label(operand: Operand, bind: Binder) -> LabelName:
    if isinstance(operand, Symbol):
        entity = bind.entity(operand.name)
        if isinstance(entity, LabelName):
            return entity
    return bind.unsupported()


def build_call(instruction: Instruction, bind: Binder, caller: FunctionCode) -> Call:
    """``call {(results),} function{, (arguments)};``; with a pointer in a register, a prototype follows."""
    operands = list(instruction.operands)
    results = operands.pop(0) if isinstance(operands[0], Parenthesised) else None
    called = operands[0]
    passed = operands[1] if len(operands) > 1 and isinstance(operands[1], Parenthesised) else None
    arguments = tuple(_passed(element, bind) for element in passed.elements) if passed else ()
    received = (
        tuple(_passed(element, bind) for element in results.elements) if isinstance(results, Parenthesised) else ()
    )
    bind.effects.reads.update(arguments)
    bind.effects.writes.update(received)
    name, pointer = "", None
    if isinstance(called, Register):
        pointer = bind.source(called, TYPES["u64"])
    else:
        name = called_function(called, bind).name
    return Call(name, pointer, arguments, received, caller, instruction.span.line)


def called_function(operand: Operand, bind: Binder) -> Function:
    """The function with a body that ``operand`` names."""
    entity = bind.entity(operand.name) if isinstance(operand, Symbol) else None
    if not isinstance(entity, FunctionName) or entity.function.body is None:
        return bind.unsupported()
    return entity.function


def _passed(operand: Operand, bind: Binder) -> int:
    entity = bind.names.find(operand.name) if isinstance(operand, Symbol) else None
    return entity.index if isinstance(entity, BytesName) else bind.unsupported()


def build_trap(instruction: Instruction, bind: Binder) -> Operation:
    """``trap`` and ``brkpt`` end the kernel with an error."""
    opcode, line = instruction.opcode, bind.line

    def run(group: Group) -> None:
        raise TrapError(f"{opcode} at line {line}, {group.batch.describe(group.lanes, 0)}")

    return run
