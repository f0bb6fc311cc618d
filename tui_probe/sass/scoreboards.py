"""Scoreboards in the code of a kernel: how much each is used, where it is pending, and what an instruction awaits.

An instruction waits for the scoreboards of its mask, no matter what its guard says. The producers of a scoreboard are
found by walking back over the blocks, on every way until an instruction that waited for the same scoreboard.
``DEPBAR`` and ``WARPGROUP.DEPBAR`` count groups, the oldest first: those that may stay pending are passed over.

A producer that sets no scoreboard itself is named where its queue ends in order, the last of the queue sets the
scoreboard, and the waiting instruction reads its register.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from tui_probe.sass.wait_classes import (
    OPERANDS,
    completes_groups,
    group_class,
    group_classes,
    group_end,
    in_order_queue,
    own_wait,
    pending_groups,
    produced_class,
    released_class,
    waits_for_all,
)
from tui_probe.sass.words import BARRIER_COUNT, NO_BARRIER, RZ, WORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

    from tui_probe.sass.flow import FlowGraph
    from tui_probe.sass.target import GraftTarget
    from tui_probe.sass.words import Word

_LATE_READERS: Final = frozenset(
    {0x044, 0x185, 0x186, 0x187, 0x188, 0x18A, 0x18B, 0x18C, 0x18D, 0x18E, 0x194, 0x195, 0x19C, 0x19D, 0x19E}
    | {0x1A1, 0x1A2, 0x1A3, 0x1A6, 0x1A8, 0x1A9, 0x1AE, 0x1BD, 0x1BE}
)
"""STSM, ST, STG, STL, STS, ATOM, ATOMS, RED, SUATOM, SUST, SURED, ATOMG, LDGSTS, STAS, REDAS: they do not wait until
their operands were read.
"""
_LDSM, _MUFU = 0x03B, 0x108
_MATRICES: Final = 72, 2
"""Bits of the number of matrices of LDSM: 1, 2 or 4, a register each."""
_SIZE: Final = 73, 3
_SIZE_REGISTERS: Final = {5: 2, 6: 4}
"""Registers of a result by value of the field; 1 for other values."""
_REGISTER_FORM: Final = 1
_State = TypeVar("_State")


def least_used_barriers(words: Iterable[Word]) -> tuple[int, ...]:
    """Return, for each barrier of a snippet, the kernel's barrier that stands for it: the least used first."""
    order = _barriers_by_use(words)
    # ptxas gives numbers from 0 on, and its operands wait for the last one here.
    return (*order[: BARRIER_COUNT - 1], order[0])


def with_read_barriers(words: Sequence[Word]) -> dict[int, Word]:
    """Return the stores and atomics that get a barrier for their operands, by byte offset, with it: the least used one.

    Where the code behind a store writes none of its operands, ptxas gives it no barrier that tells when they were read.
    Code grafted behind it does write them, and waits for this barrier.
    """
    barrier = _barriers_by_use(words)[0]
    return {
        index * WORD_BYTES: word.with_read_barrier(barrier)
        for index, word in enumerate(words)
        if word.operation in _LATE_READERS and word.read_barrier == NO_BARRIER and word.write_barrier == NO_BARRIER
    }


def _barriers_by_use(words: Iterable[Word]) -> list[int]:
    """Return the barriers, the least used first; of those used equally, ptxas takes the last one least often."""
    uses = Counter(chain.from_iterable([(word.write_barrier, word.read_barrier) for word in words]))
    return sorted(range(BARRIER_COUNT), key=lambda number: (uses[number], -number))


class PendingScoreboards(NamedTuple):
    """The scoreboards that may be set and not waited for, as masks by instruction."""

    before_wait: list[int]
    """Masks in front of each instruction, before it waits."""
    after_issue: list[int]
    """Masks when each instruction has been issued."""


def pending_scoreboards(words: Sequence[Word], graph: FlowGraph) -> PendingScoreboards:
    """Return the scoreboards that may be pending around each instruction, those of functions that returned included."""
    pending = PendingScoreboards([0] * len(words), [0] * len(words))
    block_masks = [0] * len(graph.blocks)
    blocks = list(range(len(graph.blocks)))
    while blocks:
        block = blocks.pop()
        mask = block_masks[block]
        for index in graph.blocks[block]:
            word = words[index]
            pending.before_wait[index] = mask
            mask &= ~word.wait_mask
            mask |= sum(1 << barrier for barrier in {word.write_barrier, word.read_barrier} if barrier < BARRIER_COUNT)
            pending.after_issue[index] = mask
        for successor in graph.continuations[block]:
            if mask & ~block_masks[successor]:
                block_masks[successor] |= mask
                blocks.append(successor)
    return pending


@dataclass(frozen=True, slots=True)
class Producer:
    """An instruction that a warp waits for."""

    index: int
    kind: str
    """The class of waits for it, one of ``WAIT_CLASSES``."""
    is_read: bool
    """True if the waiting instruction names a register that it writes, or if it is one of an awaited group, other than
    the last.
    """
    from_previous: bool
    """True if it is reached over the back edge of a loop only, so that it is one of an earlier iteration."""
    depth: int
    """Number of loops that it and the waiting instruction are in."""
    is_newest: bool = True
    """True if no later group is awaited."""

    @property
    def offset(self) -> int:
        """Byte offset in the kernel's code."""
        return self.index * WORD_BYTES


class _PassedInstruction(NamedTuple, Generic[_State]):
    """An instruction on the way back from another one, and the state of the search before it.

    ``is_previous``: all ways to it lead over a back edge of a loop.
    """

    number: int
    state: _State
    is_previous: bool


class _GroupCount(NamedTuple):
    """State of the way back from an instruction that waits for groups."""

    limit: int
    """Groups that it waits for or leaves pending, counted from the newest; fewer behind another wait for groups."""
    end_count: int = 0
    """Groups whose end was passed."""
    is_complete: bool = False
    """True where all earlier groups are complete."""


@dataclass(frozen=True)
class ProducerSearch:
    """Finds the instructions that others of a kernel wait for."""

    target: GraftTarget
    graph: FlowGraph

    def scoreboard_producers(self, index: int, barriers: Iterable[int]) -> dict[int, Producer]:
        """Return what sets scoreboards before instruction ``index`` waits for them. A producer may set two of them:
        its result comes after it has read its operands.
        """
        producers: dict[int, Producer] = {}
        for barrier in barriers:
            for producer in self._barrier_producers(index, barrier):
                if producers.get(producer.index, producer).kind in (OPERANDS, producer.kind):
                    producers[producer.index] = producer
        return producers

    def _barrier_producers(self, index: int, barrier: int) -> Iterator[Producer]:
        """Yield what sets a scoreboard before instruction ``index`` waits for it."""
        words, arch = self.target.words, self.target.arch

        def until_waited(number: int, has_waited: bool) -> bool | None:
            return None if has_waited else waits_for_all(words[number], barrier)

        path = self._walk_back(index, False, until_waited)
        queues = {
            in_order_queue(words[number], arch) for number, _, _ in path if words[number].write_barrier == barrier
        }
        for number, _, is_previous in path:
            word = words[number]
            if word.write_barrier == barrier:
                is_read = _reads_result(words[index], word)
                yield Producer(number, produced_class(word, arch), is_read, is_previous, self._depth(index, number))
            elif word.read_barrier == barrier:
                yield Producer(number, released_class(word, arch), False, is_previous, self._depth(index, number))
            elif self._is_of_queue(word, queues) and _reads_result(words[index], word):
                yield Producer(number, produced_class(word, arch), True, is_previous, self._depth(index, number))

    def _depth(self, index: int, producer: int) -> int:
        """Return the number of loops that two instructions are in."""
        loops, producer_loops = (self.graph.loops_around(self.graph.block_at(number)) for number in (index, producer))
        return len({*loops} & {*producer_loops})

    def _is_of_queue(self, word: Word, queues: Container[str | None]) -> bool:
        queue = in_order_queue(word, self.target.arch)
        return queue is not None and queue in queues and word.write_barrier == NO_BARRIER

    def group_producers(self, index: int) -> Iterator[Producer]:
        """Yield the instructions of the newest group that a ``DEPBAR`` or ``WARPGROUP.DEPBAR`` waits for.

        Products are computed one after the other: those of the group before it are awaited, too, unless an earlier
        instruction waited for them. A ``DEPBAR`` may also wait for another instruction that sets its scoreboard, such
        as a ``MEMBAR``: a group of its own.
        """
        words, arch = self.target.words, self.target.arch
        ends_group = group_end(words[index])
        if ends_group is None:
            return
        kinds, newest_group = group_classes(words[index]), pending_groups(words[index]) + 1

        def until_previous_group(number: int, count: _GroupCount) -> _GroupCount | None:
            if count.is_complete:
                return None
            limit, end_count = count.limit, count.end_count
            if own_wait(words[number]) == "wgmma":
                limit = min(limit, max(newest_group, end_count + pending_groups(words[number])))
            if ends_group(words[number]):
                end_count += 1
            if end_count > limit:
                return None
            return _GroupCount(limit, end_count, completes_groups(words[index], words[number]))

        start_count = _GroupCount(newest_group + 1 if kinds == {"wgmma"} else newest_group)
        path = [
            instruction
            for instruction in self._walk_back(index, start_count, until_previous_group)
            if instruction.state.end_count >= newest_group
        ]
        classes = {number: group_class(words[number], arch) for number, _, _ in path}
        has_copies = any(ends_group(words[number]) and classes[number] in kinds for number, _, _ in path)
        for number, count, is_previous in path:
            is_end = ends_group(words[number])
            if is_end or (has_copies and classes[number] in kinds and own_wait(words[number]) is None):
                depth, is_newest = self._depth(index, number), count.end_count == newest_group
                yield Producer(number, classes[number], not is_end, is_previous, depth, is_newest)

    def _walk_back(
        self, index: int, start_state: _State, rule: Callable[[int, _State], _State | None]
    ) -> list[_PassedInstruction[_State]]:
        """Walk back from instruction ``index`` on all ways, with the state ``start_state``.

        ``rule`` gets an instruction and the state behind it; it returns the state before it, or None to stop without
        it. Returns each instruction with each state before it.
        """
        instructions: dict[tuple[int, _State], bool] = {}
        visited: set[tuple[int, int, _State, bool]] = set()
        pending = [(self.graph.block_at(index), index, start_state, False)]
        back_edge_pending: list[tuple[int, int, _State, bool]] = []
        while pending or back_edge_pending:
            is_previous = not pending
            path = (pending or back_edge_pending).pop()
            if path in visited:
                continue
            visited.add(path)
            block, end, state, in_callee = path
            for number in range(end - 1, self.graph.blocks[block].start - 1, -1):
                earlier_state = rule(number, state)
                if earlier_state is None:
                    break
                state = earlier_state
                instructions.setdefault((number, state), is_previous)
            else:
                for predecessor, predecessor_in_callee in self._blocks_before(block, in_callee=in_callee):
                    is_back_edge = is_previous or self.graph.dominates(block, predecessor)
                    longer_path = predecessor, self.graph.blocks[predecessor].stop, state, predecessor_in_callee
                    (back_edge_pending if is_back_edge else pending).append(longer_path)
        return [_PassedInstruction(number, state, is_previous) for (number, state), is_previous in instructions.items()]

    def _blocks_before(self, block: int, *, in_callee: bool) -> Iterator[tuple[int, bool]]:
        """Yield the blocks before one, and whether they are of a function that has returned: the way through it ends at
        its first instruction, since another one leads around the call.
        """
        for predecessor in self.graph.predecessors[block]:
            if predecessor in self.graph.dominators and not (in_callee and self.graph.calls.get(predecessor) == block):
                yield predecessor, in_callee
        for predecessor in self.graph.returns.get(block, ()):
            if predecessor in self.graph.dominators:
                yield predecessor, True


def _reads_result(reader: Word, producer: Word) -> bool:
    """Return whether an instruction names a register that a producer writes: the first of those that it reads."""
    if producer.rd == RZ:
        return False
    width = _written_registers(producer)
    fields = [reader.ra, reader.field(64, 8), *([reader.rb] if reader.form == _REGISTER_FORM else [])]
    return any(producer.rd <= number < producer.rd + width for number in fields if number != RZ)


def _written_registers(producer: Word) -> int:
    """Return the number of registers that a producer writes."""
    if producer.operation == _LDSM:
        return int(1 << producer.field(*_MATRICES))
    if producer.operation == _MUFU:  # the function is in the bits that are the width of others
        return 1
    return _SIZE_REGISTERS.get(producer.field(*_SIZE), 1)
