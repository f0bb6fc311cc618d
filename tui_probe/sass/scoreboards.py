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

    ahead: list[int]
    """Masks in front of each instruction, before it waits."""
    behind: list[int]
    """Masks when each instruction has been issued."""


def pending_scoreboards(words: Sequence[Word], graph: FlowGraph) -> PendingScoreboards:
    """Return the scoreboards that may be pending around each instruction, those of functions that returned included."""
    pending = PendingScoreboards([0] * len(words), [0] * len(words))
    entering = [0] * len(graph.blocks)
    waiting = list(range(len(graph.blocks)))
    while waiting:
        block = waiting.pop()
        mask = entering[block]
        for index in graph.blocks[block]:
            word = words[index]
            pending.ahead[index] = mask
            mask &= ~word.wait_mask
            mask |= sum(1 << barrier for barrier in {word.write_barrier, word.read_barrier} if barrier < BARRIER_COUNT)
            pending.behind[index] = mask
        for following in graph.continuations[block]:
            if mask & ~entering[following]:
                entering[following] |= mask
                waiting.append(following)
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
    def at(self) -> int:
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
    ended: int = 0
    """Groups whose end was passed."""
    is_complete: bool = False
    """True where all earlier groups are complete."""


@dataclass(frozen=True)
class ProducerSearch:
    """Finds the instructions that others of a kernel wait for."""

    target: GraftTarget
    graph: FlowGraph

    def of_masks(self, index: int, barriers: Iterable[int]) -> dict[int, Producer]:
        """Return what sets scoreboards before instruction ``index`` waits for them. A producer may set two of them:
        its result comes after it has read its operands.
        """
        producers: dict[int, Producer] = {}
        for barrier in barriers:
            for producer in self.of_mask(index, barrier):
                if producers.get(producer.index, producer).kind in (OPERANDS, producer.kind):
                    producers[producer.index] = producer
        return producers

    def of_mask(self, index: int, barrier: int) -> Iterator[Producer]:
        """Yield what sets a scoreboard before instruction ``index`` waits for it."""
        words, arch = self.target.words, self.target.arch

        def until_waited(at: int, has_waited: bool) -> bool | None:
            return None if has_waited else waits_for_all(words[at], barrier)

        passed = self._walk_back(index, False, until_waited)
        queues = {in_order_queue(words[at], arch) for at, _, _ in passed if words[at].write_barrier == barrier}
        for at, _, is_previous in passed:
            word = words[at]
            if word.write_barrier == barrier:
                is_read = _reads_result(words[index], word)
                yield Producer(at, produced_class(word, arch), is_read, is_previous, self._depth(index, at))
            elif word.read_barrier == barrier:
                yield Producer(at, released_class(word, arch), False, is_previous, self._depth(index, at))
            elif self._is_of_queue(word, queues) and _reads_result(words[index], word):
                yield Producer(at, produced_class(word, arch), True, is_previous, self._depth(index, at))

    def _depth(self, index: int, producer: int) -> int:
        """Return the number of loops that two instructions are in."""
        around, of_producer = (self.graph.loops_around(self.graph.block_at(at)) for at in (index, producer))
        return len({*around} & {*of_producer})

    def _is_of_queue(self, word: Word, queues: Container[str | None]) -> bool:
        queue = in_order_queue(word, self.target.arch)
        return queue is not None and queue in queues and word.write_barrier == NO_BARRIER

    def of_groups(self, index: int) -> Iterator[Producer]:
        """Yield the instructions of the newest group that a ``DEPBAR`` or ``WARPGROUP.DEPBAR`` waits for.

        Products are computed one after the other: those of the group before it are awaited, too, unless an earlier
        instruction waited for them. A ``DEPBAR`` may also wait for another instruction that sets its scoreboard, such
        as a ``MEMBAR``: a group of its own.
        """
        words, arch = self.target.words, self.target.arch
        ends_group = group_end(words[index])
        if ends_group is None:
            return
        kinds, newest = group_classes(words[index]), pending_groups(words[index]) + 1

        def until_previous_group(at: int, count: _GroupCount) -> _GroupCount | None:
            if count.is_complete:
                return None
            limit, ended = count.limit, count.ended
            if own_wait(words[at]) == "wgmma":
                limit = min(limit, max(newest, ended + pending_groups(words[at])))
            if ends_group(words[at]):
                ended += 1
            if ended > limit:
                return None
            return _GroupCount(limit, ended, completes_groups(words[index], words[at]))

        first = _GroupCount(newest + 1 if kinds == {"wgmma"} else newest)
        passed = [way for way in self._walk_back(index, first, until_previous_group) if way.state.ended >= newest]
        classes = {at: group_class(words[at], arch) for at, _, _ in passed}
        has_copies = any(ends_group(words[at]) and classes[at] in kinds for at, _, _ in passed)
        for at, count, is_previous in passed:
            is_end = ends_group(words[at])
            if is_end or (has_copies and classes[at] in kinds and own_wait(words[at]) is None):
                depth, is_newest = self._depth(index, at), count.ended == newest
                yield Producer(at, classes[at], not is_end, is_previous, depth, is_newest)

    def _walk_back(
        self, index: int, first: _State, rule: Callable[[int, _State], _State | None]
    ) -> list[_PassedInstruction[_State]]:
        """Walk back from instruction ``index`` on all ways, with the state ``first``.

        ``rule`` gets an instruction and the state behind it; it returns the state before it, or None to stop without
        it. Returns each instruction with each state before it.
        """
        passed: dict[tuple[int, _State], bool] = {}
        seen: set[tuple[int, int, _State, bool]] = set()
        ways = [(self.graph.block_at(index), index, first, False)]
        ways_over_back_edges: list[tuple[int, int, _State, bool]] = []
        while ways or ways_over_back_edges:
            is_previous = not ways
            way = (ways or ways_over_back_edges).pop()
            if way in seen:
                continue
            seen.add(way)
            block, end, state, in_called = way
            for at in range(end - 1, self.graph.blocks[block].start - 1, -1):
                following = rule(at, state)
                if following is None:
                    break
                state = following
                passed.setdefault((at, state), is_previous)
            else:
                for before, is_in_called in self._blocks_before(block, in_called=in_called):
                    is_back_edge = is_previous or self.graph.dominates(block, before)
                    following_way = before, self.graph.blocks[before].stop, state, is_in_called
                    (ways_over_back_edges if is_back_edge else ways).append(following_way)
        return [_PassedInstruction(at, state, is_previous) for (at, state), is_previous in passed.items()]

    def _blocks_before(self, block: int, *, in_called: bool) -> Iterator[tuple[int, bool]]:
        """Yield the blocks before one, and whether they are of a function that has returned: the way through it ends at
        its first instruction, since another one leads around the call.
        """
        for before in self.graph.predecessors[block]:
            if before in self.graph.dominators and not (in_called and self.graph.calls.get(before) == block):
                yield before, in_called
        for before in self.graph.returns.get(block, ()):
            if before in self.graph.dominators:
                yield before, True


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
