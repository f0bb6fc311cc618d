"""Branches and ends of threads: what finishes a basic block. For calls, see ``calls``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tui_probe.ptx.tree import Instruction, Operand, Symbol
from tui_probe.simgpu.executor.faults import TrapError
from tui_probe.simgpu.executor.forms import operands_of
from tui_probe.simgpu.executor.scalars import TYPES
from tui_probe.simgpu.executor.scope import LabelName

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tui_probe.simgpu.executor.group import Group
    from tui_probe.simgpu.executor.operands import Binder, Operation, Source
    from tui_probe.simgpu.executor.program import Finish, Scheduling


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
    frame.hand_back(group.registers, registers)
    group.registers = registers
    group.frames = tuple(outer)
    group.local_base = frame.local_base
    group.block = frame.resume


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


def build_trap(instruction: Instruction, bind: Binder) -> Operation:
    """``trap`` and ``brkpt`` end the kernel with an error."""
    opcode, line = instruction.opcode, bind.line

    def run(group: Group) -> None:
        raise TrapError(f"{opcode} at line {line}, {group.batch.describe(group.lanes, 0)}")

    return run
