"""Control flow of machine code: basic blocks, the edges between them, dominators and loops.

A block begins where something may lead: at the target of a branch, of a call within the kernel, behind a convergence
barrier that a ``BSSY`` names; and behind anything that may lead elsewhere or brings lanes together again. Each group of
lanes that comes to the first instruction issues all of them, once. A block that is cut in two without need does no
harm.

A branch is conditional if it has a guard, a second predicate (90:87), or its own condition: ``BRA.U``, ``BRA.DIV``,
``BRA.CONV``. Lanes that wait at ``BSYNC`` continue at the target of its ``BSSY``, which ptxas places behind the
``BSYNC``. A call within the kernel has an edge to the function and one behind the call, so the code of a function is
part of the graph. Its way back is not an edge, since that would join all its callers into loops: see ``returns``.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.sass.nv_info import BRANCH_TARGETS
from tui_probe.sass.words import (
    BRA,
    BRANCH_CONDITION,
    BSSY,
    BSSY_DISTANCE,
    BSYNC,
    CONVERGENCE_BARRIER,
    EXIT,
    PT,
    WORD_BYTES,
    branch_target,
    operation_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tui_probe.sass.target import GraftTarget
    from tui_probe.sass.words import Word

BSYNC_OPERATION: Final = operation_of(BSYNC)
BSSY_OPERATION: Final = operation_of(BSSY)
BRA_OPERATION: Final = operation_of(BRA)
CALL_OPERATION: Final = 0x144
WARPSYNC_OPERATION: Final = 0x148
INDIRECT_OPERATIONS: Final = frozenset({0x149, 0x14A, 0x14B, 0x158, 0x159})
"""BRX, JMP, JMX, BRXU, JMXU."""
_CALL_ABS, _RET, _KILL, _BPT = 0x143, 0x150, 0x15B, 0x15C
_EXIT: Final = operation_of(EXIT)
_JUMP_OPERATIONS: Final = frozenset({CALL_OPERATION, BRA_OPERATION, WARPSYNC_OPERATION})
"""Operations that name their target by its distance, in the field of ``BRA``."""
_BLOCK_ENDS: Final = frozenset(
    {*_JUMP_OPERATIONS, *INDIRECT_OPERATIONS, BSYNC_OPERATION, _CALL_ABS, _EXIT, _RET, _KILL, _BPT}
)
"""Operations that may branch or join lanes."""
_TABLE_HEAD: Final = 3
"""Numbers in front of the targets of an indirect branch: its offset, 0, and how many targets there are."""
_CODE_SYMBOLS: Final = frozenset({0, 2})
"""STT_NOTYPE and STT_FUNC: labels and functions."""
_JUMPS_ELSEWHERE: Final = frozenset({BRA_OPERATION, _EXIT, _RET, *INDIRECT_OPERATIONS})
"""Operations behind which a warp continues only if they are conditional."""
_SECOND_PREDICATE: Final = 87, 4


def basic_blocks(target: GraftTarget) -> list[range]:
    """Return the blocks of a kernel in the order of its code, as numbers of its instructions.

    The instructions behind the last one that does anything are among them. Raises UnsupportedKernelError for a branch
    through a register whose destination the file does not give.
    """
    size = len(target.words)
    borders = {0, size, *_symbol_offsets(target), *_table_targets(target)}
    for index, word in enumerate(target.words):
        if word.operation in _BLOCK_ENDS:
            borders.add(index + 1)
        borders.update(jump_targets(target.arch, index, word))
    ordered_borders = sorted(place for place in borders if 0 <= place <= size)
    return [range(start, end) for start, end in itertools.pairwise(ordered_borders)]


def jump_targets(arch: int, index: int, word: Word) -> Iterator[int]:
    """Yield the instruction that a branch, call or convergence barrier at ``index`` names."""
    offset = index * WORD_BYTES
    if word.operation in _JUMP_OPERATIONS:
        destination = branch_target(arch, offset, word)
    elif word.operation == BSSY_OPERATION:
        distance, bits = word.field(*BSSY_DISTANCE), BSSY_DISTANCE[1]
        destination = offset + WORD_BYTES + distance - ((distance >> bits - 1) << bits)
    else:
        return
    if not destination % WORD_BYTES:
        yield destination // WORD_BYTES


def _symbol_offsets(target: GraftTarget) -> Iterator[int]:
    """Return the offsets of symbols in the kernel's code: functions that ptxas put behind it."""
    for symbol in target.cubin.symbols:
        if symbol.section == target.code.number and symbol.kind in _CODE_SYMBOLS and not symbol.value % WORD_BYTES:
            yield symbol.value // WORD_BYTES


def _table_targets(target: GraftTarget) -> set[int]:
    """Return the targets of branches through registers."""
    tables = branch_tables(target)
    for index, word in enumerate(target.words):
        if word.operation in INDIRECT_OPERATIONS and not tables.get(index):
            raise UnsupportedKernelError(because("graft-branch", at=f"{index * WORD_BYTES:#06x}"))
    return {place for targets in tables.values() for place in targets}


def branch_tables(target: GraftTarget) -> dict[int, list[int]]:
    """Return the targets of each branch through registers, both as numbers of instructions."""
    targets: dict[int, list[int]] = {}
    for attribute in target.attributes:
        if attribute.number == BRANCH_TARGETS:
            table = attribute.words()
            while len(table) >= _TABLE_HEAD:
                offset, _, count = table[:_TABLE_HEAD]
                target_offsets = table[_TABLE_HEAD : _TABLE_HEAD + count]
                targets[offset // WORD_BYTES] = [place // WORD_BYTES for place in target_offsets]
                table = table[_TABLE_HEAD + count :]
    return targets


@dataclass(frozen=True, slots=True)
class Loop:
    """A natural loop: the numbers of its ``header`` and of all its blocks."""

    header: int
    blocks: frozenset[int]


@dataclass(frozen=True)
class FlowGraph:
    """Blocks of a kernel as ranges of instruction numbers, and the blocks that may follow each."""

    blocks: tuple[range, ...]
    successors: tuple[tuple[int, ...], ...]
    calls: Mapping[int, int] = field(default_factory=dict)
    """Blocks that end with a call of a function in the kernel, and the block at which it begins."""
    exits: frozenset[int] = frozenset()
    """Blocks that end with ``RET``."""

    @classmethod
    def from_target(cls, target: GraftTarget) -> FlowGraph:
        """Raise UnsupportedKernelError for a branch through a register without a table of targets."""
        blocks = [block for block in basic_blocks(target) if block]
        edges = _Edges(target, [block.start for block in blocks])
        last_operations = [target.words[block.stop - 1].operation for block in blocks]
        return cls(
            tuple(blocks),
            tuple(edges.successors(block) for block in blocks),
            {number: callee for number, block in enumerate(blocks) if (callee := edges.callee(block)) is not None},
            frozenset(number for number, operation in enumerate(last_operations) if operation == _RET),
        )

    def block_at(self, index: int) -> int:
        """Return the number of the block that contains an instruction."""
        return bisect_right(self._block_starts, index) - 1

    @cached_property
    def _block_starts(self) -> list[int]:
        return [block.start for block in self.blocks]

    @cached_property
    def predecessors(self) -> tuple[tuple[int, ...], ...]:
        """The blocks that each block may follow."""
        predecessors: list[list[int]] = [[] for _ in self.blocks]
        for block, successors in enumerate(self.successors):
            for successor in successors:
                predecessors[successor].append(block)
        return tuple(tuple(blocks) for blocks in predecessors)

    @cached_property
    def returns(self) -> Mapping[int, tuple[int, ...]]:
        """Blocks behind calls, and the blocks of the called function that return there."""
        returning = {entry: self._returning_blocks(entry) for entry in set(self.calls.values())}
        return {call + 1: returning[entry] for call, entry in self.calls.items()}

    def _returning_blocks(self, entry: int) -> tuple[int, ...]:
        """Return the blocks with a ``RET`` of the function that begins with block ``entry``."""
        visited, pending = {entry}, [entry]
        while pending:
            block = pending.pop()
            successors = {block + 1} if block in self.calls else {*self.successors[block]}
            pending += successors - visited
            visited |= successors
        return tuple(sorted(visited & self.exits))

    @cached_property
    def continuations(self) -> tuple[tuple[int, ...], ...]:
        """The blocks at which warps may continue behind each block: ``successors``, and those behind calls."""
        continuations: list[set[int]] = [{*following} for following in self.successors]
        for call_end, returning in self.returns.items():
            for block in returning:
                continuations[block].add(call_end)
        return tuple(tuple(sorted(following)) for following in continuations)

    @cached_property
    def dominators(self) -> dict[int, int]:
        """The immediate dominator of each block that the entry reaches; that of the entry is itself.

        Source: Cooper, Harvey, Kennedy, A Simple, Fast Dominance Algorithm.
        """
        order = self._reverse_postorder
        number = {block: index for index, block in enumerate(order)}
        immediate_dominators = {order[0]: order[0]}
        has_changed = True
        while has_changed:
            has_changed = False
            for block in order[1:]:
                processed = [
                    predecessor for predecessor in self.predecessors[block] if predecessor in immediate_dominators
                ]
                common = processed[0]
                for predecessor in processed[1:]:
                    common = _common_dominator(immediate_dominators, number, common, predecessor)
                if immediate_dominators.get(block) != common:
                    immediate_dominators[block] = common
                    has_changed = True
        return immediate_dominators

    def dominates(self, block: int, dominated: int) -> bool:
        """Return whether every way from the entry to ``dominated`` leads through ``block``."""
        while dominated in self.dominators:
            if dominated == block:
                return True
            if self.dominators[dominated] == dominated:
                return False
            dominated = self.dominators[dominated]
        return False

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """Natural loops, those with the same header as one. A loop with several entries is not among them."""
        bodies: dict[int, set[int]] = defaultdict(set)
        for block in self._reverse_postorder:
            for successor in self.successors[block]:
                if self.dominates(successor, block):
                    bodies[successor] |= self._loop_body(successor, block)
        return tuple(Loop(header, frozenset(body)) for header, body in sorted(bodies.items()))

    def loops_around(self, block: int) -> tuple[int, ...]:
        """Return the headers of the loops around a block, that of the innermost first."""
        loops = sorted((loop for loop in self.loops if block in loop.blocks), key=lambda loop: len(loop.blocks))
        return tuple(loop.header for loop in loops)

    def _loop_body(self, header: int, tail: int) -> set[int]:
        body, pending = {header}, [tail]
        while pending:
            block = pending.pop()
            if block not in body:
                body.add(block)
                pending += [predecessor for predecessor in self.predecessors[block] if predecessor in self.dominators]
        return body

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """Number of loops around each block."""
        depths = [0] * len(self.blocks)
        for loop in self.loops:
            for block in loop.blocks:
                depths[block] += 1
        return tuple(depths)

    @cached_property
    def _reverse_postorder(self) -> list[int]:
        visited, order = {0}, []
        pending: list[tuple[int, Iterator[int]]] = [(0, iter(self.successors[0]))]
        while pending:
            block, successors = pending[-1]
            successor = next((candidate for candidate in successors if candidate not in visited), None)
            if successor is None:
                order.append(block)
                pending.pop()
            else:
                visited.add(successor)
                pending.append((successor, iter(self.successors[successor])))
        return order[::-1]


def _common_dominator(
    immediate_dominators: dict[int, int], number: dict[int, int], block: int, other_block: int
) -> int:
    while block != other_block:
        while number[block] > number[other_block]:
            block = immediate_dominators[block]
        while number[other_block] > number[block]:
            other_block = immediate_dominators[other_block]
    return block


class _Edges:
    """Reads the successors of blocks, which begin at ``block_starts``."""

    def __init__(self, target: GraftTarget, block_starts: Sequence[int]) -> None:
        self._target = target
        self._numbers = {start: number for number, start in enumerate(block_starts)}
        self._tables = branch_tables(target)
        self._reconvergence_points: dict[int, set[int]] = defaultdict(set)
        for index, word in enumerate(target.words):
            if word.operation == BSSY_OPERATION:
                barrier = word.field(*CONVERGENCE_BARRIER)
                self._reconvergence_points[barrier].update(jump_targets(target.arch, index, word))

    def successors(self, block: range) -> tuple[int, ...]:
        """Return the numbers of the blocks that may follow ``block``."""
        index = block.stop - 1
        targets = self._targets(index, self._target.words[index])
        return tuple(sorted({self._numbers[place] for place in targets if place in self._numbers}))

    def callee(self, block: range) -> int | None:
        """Return the block at which the function begins that a block calls last; None for another end."""
        index = block.stop - 1
        word = self._target.words[index]
        if word.operation != CALL_OPERATION or word.never_runs or index + 1 not in self._numbers:
            return None
        return next(map(self._numbers.get, jump_targets(self._target.arch, index, word)), None)

    def _targets(self, index: int, word: Word) -> Iterator[int]:
        operation = word.operation
        if operation == BSYNC_OPERATION:
            reconvergence_points = self._reconvergence_points.get(word.field(*CONVERGENCE_BARRIER), set())
            yield from (
                {index + 1}
                if index + 1 in reconvergence_points or not reconvergence_points
                else {*reconvergence_points, index + 1}
            )
            return
        if word.never_runs:
            yield index + 1
            return
        if operation in (BRA_OPERATION, CALL_OPERATION, WARPSYNC_OPERATION):
            yield from jump_targets(self._target.arch, index, word)
        elif operation in INDIRECT_OPERATIONS:
            yield from self._tables.get(index, ())
        if operation not in _JUMPS_ELSEWHERE or is_conditional(word):
            yield index + 1


def is_conditional(word: Word) -> bool:
    """Return whether a branch, ``EXIT`` or ``RET`` may be passed by lanes that come to it."""
    return (
        not word.is_unconditional
        or word.field(*_SECOND_PREDICATE) != PT
        or (word.operation == BRA_OPERATION and bool(word.field(*BRANCH_CONDITION)))
    )
