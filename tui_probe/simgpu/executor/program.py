"""A compiled kernel: basic blocks of operations, and the branches and exits that end them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from tui_probe.ptx.tree import Instruction, Operand, Symbol
from tui_probe.simgpu.executor.faults import TrapError
from tui_probe.simgpu.executor.scalars import TYPES, operands_of
from tui_probe.simgpu.executor.scope import LabelName
from tui_probe.simgpu.executor.threads import ThreadGroup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tui_probe.simgpu.executor.operands import Binder
    from tui_probe.simgpu.executor.operations import Operation, ResultOperand, SourceOperand
    from tui_probe.simgpu.executor.phase_waits import PhaseWaits
    from tui_probe.simgpu.executor.scalars import Value
    from tui_probe.simgpu.executor.threads import Batch
    from tui_probe.simgpu.executor.waiting_threads import Barriers

# What happens at the end of a block: the group that continues, or None if it waits, has ended, or was given back.
Finish: TypeAlias = "Callable[[ThreadGroup, Scheduling], ThreadGroup | None]"


class Scheduling(Protocol):
    """Requests of a finished basic block to the scheduler."""

    @property
    def program(self) -> Program: ...

    @property
    def barriers(self) -> Barriers: ...

    @property
    def phase_waits(self) -> PhaseWaits: ...

    def keep_ready(self, group: ThreadGroup, gives_way: bool = False) -> None:
        """Keep ``group`` for later; after all others, if it ``gives_way``."""

    def give_way(self, group: ThreadGroup) -> ThreadGroup | None:
        """Let all others go before ``group``, which waits for something in a loop."""


@dataclass(slots=True)
class BasicBlock:
    """A basic block. ``cycles`` is what a warp pays for it, ``length`` how many instructions it has.

    ``live_registers`` are the registers that the block or what follows it reads. ``members`` is the member mask of a
    warp-level operation at its start, for which lanes wait for each other; it ``orders_accesses`` their accesses if it
    is the kernel's own, not a probe's. ``successors`` are the blocks that may follow within the function. ``may_end``
    tells that threads may exit here, ``meets_block`` that threads wait for all others of their block at its end.
    ``lines`` are those of its operations, ``own_line`` the first one of the kernel's own, 0 for none.
    """

    line: int
    operations: tuple[Operation, ...]
    cycles: int
    length: int
    finish: Finish
    members: SourceOperand | None = None
    orders_accesses: bool = True
    may_end: bool = False
    meets_block: bool = False
    lines: tuple[int, ...] = ()
    own_line: int = 0
    successors: tuple[int, ...] = ()
    source_registers: frozenset[int] = frozenset()
    target_registers: frozenset[int] = frozenset()
    live_registers: tuple[int, ...] = ()


@dataclass(slots=True)
class FunctionCode:
    """Entry of a function, and the facts that its callers need.

    ``formals`` take the arguments, ``results`` give what comes back, both as the function declares them.
    ``undefined`` are registers that may be read before they are written; PTX leaves their value open, here it is 0.
    """

    entry: int = 0
    formals: tuple[ResultOperand, ...] = ()
    results: tuple[SourceOperand, ...] = ()
    local_bytes: int = 0
    undefined: tuple[tuple[int, Value | None], ...] = ()


@dataclass(slots=True)
class Program:
    """All blocks of a kernel and of the functions that it calls.

    ``reads_placement`` tells whether anything reads the clock or where a block runs. ``min_cycles`` is the fewest
    cycles in which a warp can get from the entry to an exit.
    """

    blocks: list[BasicBlock]
    functions: dict[str, FunctionCode]
    addresses: dict[int, str] = field(default_factory=dict)
    reads_placement: bool = False
    min_cycles: int = 0

    def live_registers(self) -> list[tuple[int, ...]]:
        """The registers that live at the start of each block, by its number."""
        return [block.live_registers for block in self.blocks]

    def first_group(self, batch: Batch, entry: str) -> ThreadGroup:
        """All threads of a batch, at the start of the kernel."""
        code = self.functions[entry]
        registers = batch.template.copy()
        for index, zero in code.undefined:
            registers[index] = zero
        return ThreadGroup(batch, batch.lanes, registers, code.entry, (), 0)


def compute_liveness(blocks: Sequence[BasicBlock]) -> None:
    """Set ``live_registers`` of each block, from ``source_registers``, ``target_registers`` and ``successors``."""
    source_bits = [_bits(block.source_registers) for block in blocks]
    kept_bits = [~_bits(block.target_registers) for block in blocks]
    live_bits = [0] * len(blocks)
    has_changed = True
    while has_changed:
        has_changed = False
        for index in reversed(range(len(blocks))):
            live_after = 0
            for successor in blocks[index].successors:
                live_after |= live_bits[successor]
            live_before = source_bits[index] | (live_after & kept_bits[index])
            if live_before != live_bits[index]:
                live_bits[index] = live_before
                has_changed = True
    for block, bits in zip(blocks, live_bits, strict=True):
        block.live_registers = tuple(_indices(bits))


def _bits(indices: Iterable[int]) -> int:
    bits = 0
    for index in indices:
        bits |= 1 << index
    return bits


def _indices(bits: int) -> Iterable[int]:
    while bits:
        lowest_bit = bits & -bits
        yield lowest_bit.bit_length() - 1
        bits ^= lowest_bit


def min_exit_cycles(blocks: Sequence[BasicBlock], entry: int) -> int:
    """The fewest cycles from ``entry`` to the end of a block where threads may exit."""
    distance = {entry: blocks[entry].cycles}
    open_blocks = [entry]
    end_distances = []
    while open_blocks:
        index = min(open_blocks, key=distance.__getitem__)
        open_blocks.remove(index)
        if blocks[index].may_end:
            end_distances.append(distance[index])
        for successor in blocks[index].successors:
            successor_distance = distance[index] + blocks[successor].cycles
            if successor_distance < distance.get(successor, successor_distance + 1):
                distance[successor] = successor_distance
                open_blocks.append(successor)
    return min(end_distances, default=0)


class Control(Protocol):
    """The end of a basic block. ``labels`` maps label keys to block indices, ``following`` is the next block."""

    may_end: bool

    def successors(self, labels: Mapping[int, int], following: int) -> Sequence[int]:
        """The blocks of the same function that may run next."""

    def finish(self, labels: Mapping[int, int], following: int, polls: bool) -> Finish:
        """Return the operation to run. ``polls``: it ends a loop in which threads may wait for others."""


@dataclass(slots=True)
class Branch:
    """``bra``: to ``label`` where ``condition`` holds (always, if it is None)."""

    label: int
    condition: SourceOperand | None = None
    may_end: bool = False

    def successors(self, labels: Mapping[int, int], following: int) -> Sequence[int]:
        target = labels[self.label]
        return (target,) if self.condition is None else (target, following)

    def finish(self, labels: Mapping[int, int], following: int, polls: bool) -> Finish:
        target, condition = labels[self.label], self.condition
        if condition is None:
            return _jump_to(target, polls)

        def finish(group: ThreadGroup, scheduler: Scheduling) -> ThreadGroup | None:
            is_taken = condition.read(group.registers)
            count = np.count_nonzero(is_taken) if is_taken.ndim else int(is_taken) * group.lanes.count
            group.block = following
            if count == 0:
                return group
            if count == group.lanes.count:
                group.block = target
                return scheduler.give_way(group) if polls else group
            jumping_group = group.branch(is_taken, target)
            scheduler.keep_ready(jumping_group, gives_way=polls)
            return group

        return finish


def _jump_to(target: int, polls: bool) -> Finish:
    def finish(group: ThreadGroup, scheduler: Scheduling) -> ThreadGroup | None:
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
        return _jump_to(following, polls=False)


@dataclass(slots=True)
class IndexedBranch:
    """``brx.idx``: to the label that ``index`` names."""

    labels: tuple[int, ...]
    index: SourceOperand
    may_end: bool = False

    def successors(self, labels: Mapping[int, int], following: int) -> Sequence[int]:  # noqa: ARG002
        return [labels[label] for label in self.labels]

    def finish(self, labels: Mapping[int, int], following: int, polls: bool) -> Finish:  # noqa: ARG002
        table = np.array([labels[label] for label in self.labels], np.intp)
        index = self.index

        def finish(group: ThreadGroup, scheduler: Scheduling) -> ThreadGroup | None:
            label_index = np.minimum(index.read(group.registers), len(table) - 1)
            targets = table[group.lanes.spread(label_index)]
            live_registers = group.batch.live
            parts = [
                group.select(np.flatnonzero(targets == target), target, live_registers[target])
                for target in np.unique(targets).tolist()
            ]
            for part in parts[1:]:
                scheduler.keep_ready(part)
            return scheduler.give_way(parts[0]) if polls else parts[0]

        return finish


@dataclass(slots=True)
class FunctionEnd:
    """``exit``, or ``ret`` (``returns``), which ends the threads of a kernel and goes back from a function."""

    returns: bool
    may_end: bool = True

    def successors(self, labels: Mapping[int, int], following: int) -> Sequence[int]:  # noqa: ARG002
        return ()

    def finish(self, labels: Mapping[int, int], following: int, polls: bool) -> Finish:  # noqa: ARG002
        returns = self.returns

        def finish(group: ThreadGroup, scheduler: Scheduling) -> ThreadGroup | None:  # noqa: ARG001
            if returns and group.frames:
                _return_to_caller(group)
                return group
            if group.batch.checks is not None:
                group.batch.checks.retire_lanes(group.lanes)
            group.batch.retire_lanes(group.lanes)
            return None

        return finish


def _return_to_caller(group: ThreadGroup) -> None:
    *outer_frames, frame = group.frames
    registers = group.batch.template.copy()
    for index, value in frame.saved_registers:
        registers[index] = value
    frame.hand_back(group.registers, registers)
    group.registers = registers
    group.frames = tuple(outer_frames)
    group.local_base = frame.local_base
    group.block = frame.resume


def build_branch(instruction: Instruction, bind: Binder) -> Branch:
    """``bra LABEL``."""
    return Branch(_label_name(instruction.operands[0], bind).key)


def build_indexed_branch(instruction: Instruction, bind: Binder) -> Control:
    """``brx.idx %r, TARGETS``."""
    index, targets = operands_of(instruction, 2)
    names = re.findall(r"[\w$%]+", _label_name(targets, bind).declaration.replace(".branchtargets", ""))
    labels = tuple(_label_name(Symbol(name), bind).key for name in names)
    return IndexedBranch(labels, bind.source(index, TYPES["u32"]))


def _label_name(operand: Operand, bind: Binder) -> LabelName:
    if isinstance(operand, Symbol):
        entity = bind.entity(operand.name)
        if isinstance(entity, LabelName):
            return entity
    return bind.unsupported()


def build_trap(instruction: Instruction, bind: Binder) -> Operation:
    """``trap`` and ``brkpt`` end the kernel with an error."""
    opcode, line = instruction.opcode, bind.line

    def run(group: ThreadGroup) -> None:
        location = group.batch.describe(group.lanes, 0)
        raise TrapError(f"{opcode} at line {line}, {location}", f"the kernel executed {opcode}")

    return run
