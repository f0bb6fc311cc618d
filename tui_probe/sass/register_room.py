"""Free registers at single instructions of a kernel.

A register is dead where on every way it is written before it may be read; a write under a guard ends nothing. Loads,
stores, and all else that takes a variable time, read and write registers after they were issued: until an instruction
waits for their scoreboard or, of one without, writes the register itself: ptxas lets it do so only when that is safe.
Products of warpgroups and tensor memory have no scoreboard: no register that they name counts as dead behind them.

Warps of a kernel with ``setmaxnreg`` (``USETMAXREG``) exchange registers: each role has a limit of its own.

``RecordRoom`` has the registers and barriers for the shorter code of records, at each of their instructions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final, TypeVar

from tui_probe.sass.flow import FlowGraph
from tui_probe.sass.lane_registers import align_register
from tui_probe.sass.record_code import OperandWait
from tui_probe.sass.register_operands import ALL_REGISTERS, PAIR, WITHOUT_SCOREBOARD, operands_of
from tui_probe.sass.scoreboards import least_used_barriers, pending_scoreboards
from tui_probe.sass.target import FEWEST_REGISTERS, SET_REGISTERS
from tui_probe.sass.words import BARRIER_COUNT, MAX_REGISTERS, NO_BARRIER, RESERVED, RZ, WORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from tui_probe.sass.register_operands import Operands
    from tui_probe.sass.target import GraftTarget
    from tui_probe.sass.words import Word

PAIRS_OF_RECORD: Final = 2
"""Pairs of registers that the code of a record needs."""

_State = TypeVar("_State")
_NUMBER_FORM: Final = 4
"""Form of a ``USETMAXREG`` whose limit is a number, in bits 63:32; else it is in a uniform register."""
_FIXED_LATENCY: Final = range(0x100)
"""Operations of fixed latency, except the next ones: the stall cycles of the code cover them."""
_VARIABLE_LATENCY: Final = frozenset({0x028, 0x029, 0x02A, 0x02B, 0x03B, 0x03F, 0x044})
"""DMUL, DADD, DSETP, DFMA, LDSM, DMMA, STSM."""


@dataclass(frozen=True, slots=True)
class _UnderWay:
    """Registers that instructions under way may name, by scoreboard; ``read`` and ``written`` are without one."""

    scoreboards: tuple[int, ...] = (0,) * BARRIER_COUNT
    read: int = 0
    written: int = 0

    @property
    def all(self) -> int:
        """All of them."""
        return reduce(or_, self.scoreboards, self.read | self.written)

    def joined(self, other: _UnderWay) -> _UnderWay:
        """Return those of either way to an instruction."""
        pairs = zip(self.scoreboards, other.scoreboards, strict=True)
        return _UnderWay(tuple(one | two for one, two in pairs), self.read | other.read, self.written | other.written)

    def behind(self, word: Word, own: Operands) -> _UnderWay:
        """Return those when an instruction has been issued."""
        scoreboards = [
            0 if word.wait_mask >> number & 1 else mask & ~own.kills for number, mask in enumerate(self.scoreboards)
        ]
        read, written = self.read & ~own.kills, self.written & ~(own.kills | own.reads)
        if word.operation not in _FIXED_LATENCY or word.operation in _VARIABLE_LATENCY:
            reads, writes = own.reads, own.writes
            if word.write_barrier != NO_BARRIER:  # a result comes when the operands were read
                scoreboards[word.write_barrier] |= reads | writes
            elif word.read_barrier != NO_BARRIER:
                scoreboards[word.read_barrier] |= reads
                written |= writes
            else:
                read, written = read | reads, written | writes
        return _UnderWay(tuple(scoreboards), read, written)


class RegisterRoom:
    """Room in a kernel, by instruction."""

    def __init__(self, target: GraftTarget, graph: FlowGraph) -> None:
        self._words, self._graph = target.words, graph
        self._operands = [operands_of(word, target.arch) for word in target.words]
        self._limits = _limits(target, graph)
        nothing = [_UnderWay() for _ in graph.blocks]
        self._live_behind = _fixpoint([0] * len(graph.blocks), graph.predecessors, self._live_before, or_)
        self._products = _fixpoint([0] * len(graph.blocks), graph.continuations, self._products_behind, or_)
        self._under_way = _fixpoint(nothing, graph.continuations, self._under_way_behind, _UnderWay.joined)

    def free(self, index: int) -> list[int]:
        """Return the registers that code at an instruction may use, also behind it."""
        block = self._graph.block_at(index)
        live = self._live(block, index)
        under_way = self._under_way[block]
        for place in range(self._graph.blocks[block].start, index):
            under_way = under_way.behind(self._words[place], self._operands[place])
        operands = self._operands[index]
        products = self._products_until(block, index, self._products[block])
        used = live | under_way.all | operands.reads | operands.writes | products
        return [number for number in range(self.limit(index) - RESERVED) if not used >> number & 1]

    def pairs(self, index: int) -> list[int]:
        """Return the even numbers of the pairs of registers that code at an instruction may use."""
        free = set(self.free(index))
        return [number for number in sorted(free) if not number % PAIR and number + 1 in free]

    def named(self, index: int) -> int:
        """Return the mask of the registers that an instruction names or gives away."""
        operands, word = self._operands[index], self._words[index]
        given = ALL_REGISTERS & ~((1 << _new_limit(word)) - 1) if word.operation == SET_REGISTERS else 0
        return operands.reads | operands.writes | given

    def limit(self, index: int) -> int:
        """Return the smallest number of registers that a warp has at an instruction."""
        return self._limits[self._graph.block_at(index)]

    def _live_before(self, block: int, behind: int) -> int:
        return self._live(block, self._graph.blocks[block].start, behind)

    def _live(self, block: int, index: int, behind: int | None = None) -> int:
        """Return the registers that are read from an instruction of a block on before they are written."""
        live = self._live_behind[block] if behind is None else behind
        for place in range(self._graph.blocks[block].stop - 1, index - 1, -1):
            live = live & ~self._operands[place].kills | self._operands[place].reads
        return live & ALL_REGISTERS

    def _products_behind(self, block: int, before: int) -> int:
        return self._products_until(block, self._graph.blocks[block].stop - 1, before)

    def _products_until(self, block: int, index: int, before: int) -> int:
        """Return the registers that products of a block up to an instruction, inclusive, name, besides those of
        products ``before`` the block.
        """
        for place in range(self._graph.blocks[block].start, index + 1):
            if self._words[place].operation in WITHOUT_SCOREBOARD:
                before |= self._operands[place].reads | self._operands[place].writes
        return before

    def _under_way_behind(self, block: int, before: _UnderWay) -> _UnderWay:
        for place in self._graph.blocks[block]:
            before = before.behind(self._words[place], self._operands[place])
        return before


def _fixpoint(
    states: list[_State],
    led_to: Sequence[Sequence[int]],
    step: Callable[[int, _State], _State],
    join: Callable[[_State, _State], _State],
) -> list[_State]:
    """Join what each block makes of its state into the states of those of ``led_to``, until nothing changes."""
    pending = list(range(len(states)))
    while pending:
        block = pending.pop()
        following = step(block, states[block])
        for other in led_to[block]:
            joined = join(states[other], following)
            if joined != states[other]:
                states[other] = joined
                pending.append(other)
    return states


def _limits(target: GraftTarget, graph: FlowGraph) -> list[int]:
    """Return the smallest limit with which a warp is in each block, also before a change inside it."""
    code_words = [[target.words[at] for at in block] for block in graph.blocks]
    changes = [[_new_limit(word) for word in block if word.operation == SET_REGISTERS] for block in code_words]
    unreached = max(RZ, target.registers)
    inside = [min(block, default=unreached) for block in changes]
    entering = [unreached] * len(graph.blocks)
    entering[graph.block_at(0)] = target.registers
    pending = [graph.block_at(0)]
    seen = set(pending)
    while pending:
        block = pending.pop()
        leaving = changes[block][-1] if changes[block] else entering[block]
        for other in graph.successors[block]:
            if other not in seen or leaving < entering[other]:
                seen.add(other)
                entering[other] = min(entering[other], leaving)
                pending.append(other)
    return [min(pair) for pair in zip(entering, inside, strict=True)]


def _new_limit(word: Word) -> int:
    return word.field(32, 32) if word.form == _NUMBER_FORM else FEWEST_REGISTERS


@dataclass(frozen=True)
class RecordRoom:
    """Registers for records: above those of the kernel, or if it cannot have more, those free at an instruction."""

    target: GraftTarget
    graph: FlowGraph
    inside: RegisterRoom | None

    @classmethod
    def of(cls, target: GraftTarget) -> RecordRoom:
        graph = FlowGraph.of(target)
        return cls(target, graph, None if cls.grows(target) else RegisterRoom(target, graph))

    @classmethod
    def grows(cls, target: GraftTarget) -> bool:
        """Return whether a kernel may have more registers."""
        return target.fewest_registers == target.registers and cls._end(target) <= MAX_REGISTERS

    @staticmethod
    def _end(target: GraftTarget) -> int:
        return align_register(target.registers - RESERVED) + 2 * PAIRS_OF_RECORD + RESERVED

    def pairs(self, index: int) -> list[int]:
        """Return the even numbers of pairs of registers for a record at an instruction."""
        if self.inside is not None:
            return self.inside.pairs(index)
        first = align_register(self.target.registers - RESERVED)
        return list(range(first, first + 2 * PAIRS_OF_RECORD, 2))

    def has_pairs(self, index: int) -> bool:
        """Return whether an instruction leaves enough."""
        return len(self.pairs(index)) >= PAIRS_OF_RECORD

    def cycles_behind(self, index: int, records: Collection[int]) -> int:
        """Return the stall cycles from an instruction to the next one with a record, or to the end of its block."""
        block = self.graph.blocks[self.graph.block_at(index)]
        end = next((place for place in range(index + 1, block.stop) if place in records), block.stop)
        return sum(word.stall for word in self.target.words[index:end])

    def registers(self, around: int) -> int | None:
        """Return the registers that the kernel must request, with that many for its entry and exits; None if some warp
        has fewer there.
        """
        if self.inside is None:
            needed = max(around, self._end(self.target))
            return needed if needed <= MAX_REGISTERS else None
        limits = (self.inside.limit(at // WORD_BYTES) for at in self.target.exits())
        return self.target.registers if around <= min(self.target.registers, *limits) else None

    def records(self, rewritten: Mapping[int, Word], places: Sequence[int]) -> list[tuple[list[int], OperandWait]]:
        """Return the pairs of registers and the waits of the record at each of some instructions, which are
        ``rewritten``.

        If no instruction from a record to those that may be the next ones names its registers, these records wait for
        its operands, so that nothing waits at the record itself. What the kernel has under way at a record is not
        waited for, if possible.
        """
        code_words = [rewritten.get(index * WORD_BYTES, word) for index, word in enumerate(self.target.words)]
        pending = pending_scoreboards(code_words, self.graph).ahead
        held = {place: pending[place] & ~code_words[place].wait_mask for place in places}
        order = least_used_barriers(self.target.all_words())
        before, plans = dict.fromkeys(places, 0), []
        for place in places:
            named, following = self._up_to_records(place, held.keys())
            pairs = sorted(self.pairs(place), key=lambda pair: named >> pair & 0b11 != 0)[:PAIRS_OF_RECORD]
            own = next((number for number in order if not held[place] >> number & 1), order[0])
            later = [number for number in order if not any(held[at] >> number & 1 for at in (place, *following))]
            waits_later = bool(later) and not any(named >> pair & 0b11 for pair in pairs)
            barrier = later[0] if waits_later else own
            for at in following if waits_later else ():
                before[at] |= 1 << barrier
            plans.append((pairs, barrier, not waits_later))
        return [
            (pairs, OperandWait(barrier, before[place], behind))
            for place, (pairs, barrier, behind) in zip(places, plans, strict=True)
        ]

    def _up_to_records(self, place: int, records: Collection[int]) -> tuple[int, set[int]]:
        """Return the mask of the registers that are named or given away from a record to the next ones, and these."""
        named, following = 0, set[int]()
        block = self.graph.block_at(place)
        waiting, seen = [(block, range(place, self.graph.blocks[block].stop))], set[int]()
        while waiting:
            block, code = waiting.pop()
            for index in code:
                if index in records and (index != place or block in seen):
                    following.add(index)
                    break
                named |= 0 if self.inside is None else self.inside.named(index)
            else:
                fresh = {*self.graph.continuations[block]} - seen
                seen |= fresh
                waiting += [(other, self.graph.blocks[other]) for other in fresh]
        return named, following
