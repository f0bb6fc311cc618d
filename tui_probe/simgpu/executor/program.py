"""A compiled kernel: basic blocks of operations, and which registers live at the start of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

from tui_probe.simgpu.executor.group import Group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tui_probe.simgpu.executor.barriers import Barriers
    from tui_probe.simgpu.executor.batch import Batch
    from tui_probe.simgpu.executor.mbarrier_tries import Tries
    from tui_probe.simgpu.executor.operands import Operation, Source, Target
    from tui_probe.simgpu.executor.scalars import Value

# What happens at the end of a block: the group that continues, or None if it waits, has ended, or was given back.
Finish: TypeAlias = "Callable[[Group, Scheduling], Group | None]"


class Scheduling(Protocol):
    """What the end of a block may ask of the scheduler."""

    @property
    def program(self) -> Program: ...

    @property
    def barriers(self) -> Barriers: ...

    @property
    def tries(self) -> Tries: ...

    def put(self, group: Group, gives_way: bool = False) -> None:
        """Keeps ``group`` for later; after all others, if it ``gives_way``."""

    def give_way(self, group: Group) -> Group | None:
        """Lets all others go before ``group``, which waits for something in a loop."""


@dataclass(slots=True)
class Block:
    """A basic block. ``cycles`` is what a warp pays for it, ``length`` how many instructions it has.

    ``live`` are the registers that the block or what follows it reads. ``members`` is the member mask of a
    warp-level operation at its start, for which lanes wait for each other. ``successors`` are the
    blocks that may follow within the function. ``may_end`` tells that threads may exit here.
    """

    line: int
    operations: tuple[Operation, ...]
    cycles: int
    length: int
    finish: Finish
    members: Source | None = None
    may_end: bool = False
    successors: tuple[int, ...] = ()
    reads: frozenset[int] = frozenset()
    writes: frozenset[int] = frozenset()
    live: tuple[int, ...] = ()


@dataclass(slots=True)
class FunctionCode:
    """Where a function begins, and what its callers must know.

    ``formals`` take the arguments, ``results`` give what comes back, both as the function declares them.
    ``undefined`` are registers that may be read before they are written; PTX leaves their value open, here it is 0.
    """

    entry: int = 0
    formals: tuple[Target, ...] = ()
    results: tuple[Source, ...] = ()
    local_bytes: int = 0
    undefined: tuple[tuple[int, Value | None], ...] = ()


@dataclass(slots=True)
class Program:
    """All blocks of a kernel and of the functions that it calls.

    ``reads_placement`` tells whether anything reads the clock or where a block runs. ``shortest`` is the fewest
    cycles in which a warp can get from the entry to an exit.
    """

    blocks: list[Block]
    functions: dict[str, FunctionCode]
    addresses: dict[int, str] = field(default_factory=dict)
    reads_placement: bool = False
    shortest: int = 0

    def live(self) -> list[tuple[int, ...]]:
        """The registers that live at the start of each block, by its number."""
        return [block.live for block in self.blocks]

    def first_group(self, batch: Batch, entry: str) -> Group:
        """All threads of a batch, at the start of the kernel."""
        code = self.functions[entry]
        registers = batch.template.copy()
        for index, zero in code.undefined:
            registers[index] = zero
        return Group(batch, batch.lanes, registers, code.entry, (), 0)


def compute_liveness(blocks: Sequence[Block]) -> None:
    """Sets ``live`` of each block, from ``reads``, ``writes`` and ``successors``."""
    reads = [_bits(block.reads) for block in blocks]
    keeps = [~_bits(block.writes) for block in blocks]
    live = [0] * len(blocks)
    changed = True
    while changed:
        changed = False
        for index in range(len(blocks) - 1, -1, -1):
            after = 0
            for successor in blocks[index].successors:
                after |= live[successor]
            now = reads[index] | (after & keeps[index])
            if now != live[index]:
                live[index] = now
                changed = True
    for block, bits in zip(blocks, live, strict=True):
        block.live = tuple(_indices(bits))


def _bits(indices: Iterable[int]) -> int:
    bits = 0
    for index in indices:
        bits |= 1 << index
    return bits


def _indices(bits: int) -> Iterable[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def shortest_path(blocks: Sequence[Block], entry: int) -> int:
    """The fewest cycles from ``entry`` to the end of a block where threads may exit."""
    distance = {entry: blocks[entry].cycles}
    waiting = [entry]
    ends = []
    while waiting:
        index = min(waiting, key=distance.__getitem__)
        waiting.remove(index)
        if blocks[index].may_end:
            ends.append(distance[index])
        for successor in blocks[index].successors:
            reached = distance[index] + blocks[successor].cycles
            if reached < distance.get(successor, reached + 1):
                distance[successor] = reached
                waiting.append(successor)
    return min(ends, default=0)
