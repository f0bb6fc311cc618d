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
from tui_probe.sass.target import MIN_REGISTERS, SET_REGISTERS
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
class _PendingAccesses:
    """Masks of the registers that pending instructions may read or write: by scoreboard, and of those without one."""

    scoreboards: tuple[int, ...] = (0,) * BARRIER_COUNT
    read_mask: int = 0
    write_mask: int = 0

    @property
    def all_registers(self) -> int:
        """All of them."""
        return reduce(or_, self.scoreboards, self.read_mask | self.write_mask)

    def join(self, alternative: _PendingAccesses) -> _PendingAccesses:
        """Return those of either way to an instruction."""
        pairs = zip(self.scoreboards, alternative.scoreboards, strict=True)
        return _PendingAccesses(
            tuple(mask | other_mask for mask, other_mask in pairs),
            self.read_mask | alternative.read_mask,
            self.write_mask | alternative.write_mask,
        )

    def after_issue(self, word: Word, operands: Operands) -> _PendingAccesses:
        """Return those when an instruction has been issued."""
        scoreboards = [
            0 if word.wait_mask >> number & 1 else mask & ~operands.kill_mask
            for number, mask in enumerate(self.scoreboards)
        ]
        pending_reads, pending_writes = (
            self.read_mask & ~operands.kill_mask,
            self.write_mask & ~(operands.kill_mask | operands.read_mask),
        )
        if word.operation not in _FIXED_LATENCY or word.operation in _VARIABLE_LATENCY:
            read_mask, write_mask = operands.read_mask, operands.write_mask
            if word.write_barrier != NO_BARRIER:  # a result comes when the operands were read
                scoreboards[word.write_barrier] |= read_mask | write_mask
            elif word.read_barrier != NO_BARRIER:
                scoreboards[word.read_barrier] |= read_mask
                pending_writes |= write_mask
            else:
                pending_reads, pending_writes = pending_reads | read_mask, pending_writes | write_mask
        return _PendingAccesses(tuple(scoreboards), pending_reads, pending_writes)


class RegisterRoom:
    """Room in a kernel, by instruction."""

    def __init__(self, target: GraftTarget, graph: FlowGraph) -> None:
        self._words, self._graph = target.words, graph
        self._operands = [operands_of(word, target.arch) for word in target.words]
        self._limits = _limits(target, graph)
        nothing = [_PendingAccesses() for _ in graph.blocks]
        self._live_after = _fixpoint([0] * len(graph.blocks), graph.predecessors, self._live_before, or_)
        self._products = _fixpoint([0] * len(graph.blocks), graph.continuations, self._products_after, or_)
        self._pending = _fixpoint(nothing, graph.continuations, self._pending_after, _PendingAccesses.join)

    def free(self, index: int) -> list[int]:
        """Return the registers that code at an instruction may use, also behind it."""
        block = self._graph.block_at(index)
        live = self._live(block, index)
        pending = self._pending[block]
        for preceding in range(self._graph.blocks[block].start, index):
            pending = pending.after_issue(self._words[preceding], self._operands[preceding])
        operands = self._operands[index]
        products = self._products_until(block, index, self._products[block])
        used_mask = live | pending.all_registers | operands.read_mask | operands.write_mask | products
        return [number for number in range(self.limit(index) - RESERVED) if not used_mask >> number & 1]

    def pairs(self, index: int) -> list[int]:
        """Return the even numbers of the pairs of registers that code at an instruction may use."""
        free = set(self.free(index))
        return [number for number in sorted(free) if not number % PAIR and number + 1 in free]

    def named_mask(self, index: int) -> int:
        """Return the mask of the registers that an instruction names or gives away."""
        operands, word = self._operands[index], self._words[index]
        released_mask = ALL_REGISTERS & ~((1 << _new_limit(word)) - 1) if word.operation == SET_REGISTERS else 0
        return operands.read_mask | operands.write_mask | released_mask

    def limit(self, index: int) -> int:
        """Return the smallest number of registers that a warp has at an instruction."""
        return self._limits[self._graph.block_at(index)]

    def _live_before(self, block: int, live_after: int) -> int:
        return self._live(block, self._graph.blocks[block].start, live_after)

    def _live(self, block: int, index: int, live_after: int | None = None) -> int:
        """Return the registers that are read from an instruction of a block on before they are written."""
        live = self._live_after[block] if live_after is None else live_after
        for number in range(self._graph.blocks[block].stop - 1, index - 1, -1):
            live = live & ~self._operands[number].kill_mask | self._operands[number].read_mask
        return live & ALL_REGISTERS

    def _products_after(self, block: int, product_mask: int) -> int:
        return self._products_until(block, self._graph.blocks[block].stop - 1, product_mask)

    def _products_until(self, block: int, index: int, product_mask: int) -> int:
        """Return the registers that products of a block up to an instruction, inclusive, name, besides those of
        products ``product_mask`` the block.
        """
        for number in range(self._graph.blocks[block].start, index + 1):
            if self._words[number].operation in WITHOUT_SCOREBOARD:
                product_mask |= self._operands[number].read_mask | self._operands[number].write_mask
        return product_mask

    def _pending_after(self, block: int, pending: _PendingAccesses) -> _PendingAccesses:
        for place in self._graph.blocks[block]:
            pending = pending.after_issue(self._words[place], self._operands[place])
        return pending


def _fixpoint(
    states: list[_State],
    edges: Sequence[Sequence[int]],
    step: Callable[[int, _State], _State],
    join: Callable[[_State, _State], _State],
) -> list[_State]:
    """Join what each block makes of its state into the states of those of ``edges``, until nothing changes."""
    pending = list(range(len(states)))
    while pending:
        block = pending.pop()
        next_state = step(block, states[block])
        for successor in edges[block]:
            joined_state = join(states[successor], next_state)
            if joined_state != states[successor]:
                states[successor] = joined_state
                pending.append(successor)
    return states


def _limits(target: GraftTarget, graph: FlowGraph) -> list[int]:
    """Return the smallest limit with which a warp is in each block, also before a change inside it."""
    code_words = [[target.words[index] for index in block] for block in graph.blocks]
    changes = [[_new_limit(word) for word in block if word.operation == SET_REGISTERS] for block in code_words]
    unreached = max(RZ, target.registers)
    block_minima = [min(block, default=unreached) for block in changes]
    entry_limits = [unreached] * len(graph.blocks)
    entry_limits[graph.block_at(0)] = target.registers
    pending = [graph.block_at(0)]
    visited = set(pending)
    while pending:
        block = pending.pop()
        exit_limit = changes[block][-1] if changes[block] else entry_limits[block]
        for successor in graph.successors[block]:
            if successor not in visited or exit_limit < entry_limits[successor]:
                visited.add(successor)
                entry_limits[successor] = min(entry_limits[successor], exit_limit)
                pending.append(successor)
    return [min(pair) for pair in zip(entry_limits, block_minima, strict=True)]


def _new_limit(word: Word) -> int:
    return word.field(32, 32) if word.form == _NUMBER_FORM else MIN_REGISTERS


@dataclass(frozen=True)
class RecordRoom:
    """Registers for records: above those of the kernel, or if it cannot have more, those free at an instruction."""

    target: GraftTarget
    graph: FlowGraph
    register_room: RegisterRoom | None

    @classmethod
    def from_target(cls, target: GraftTarget) -> RecordRoom:
        graph = FlowGraph.from_target(target)
        return cls(target, graph, None if cls.can_grow(target) else RegisterRoom(target, graph))

    @classmethod
    def can_grow(cls, target: GraftTarget) -> bool:
        """Return whether a kernel may have more registers."""
        return target.min_registers == target.registers and cls._end(target) <= MAX_REGISTERS

    @staticmethod
    def _end(target: GraftTarget) -> int:
        return align_register(target.registers - RESERVED) + 2 * PAIRS_OF_RECORD + RESERVED

    def pairs(self, index: int) -> list[int]:
        """Return the even numbers of pairs of registers for a record at an instruction."""
        if self.register_room is not None:
            return self.register_room.pairs(index)
        first_register = align_register(self.target.registers - RESERVED)
        return list(range(first_register, first_register + 2 * PAIRS_OF_RECORD, 2))

    def has_pairs(self, index: int) -> bool:
        """Return whether an instruction leaves enough."""
        return len(self.pairs(index)) >= PAIRS_OF_RECORD

    def cycles_after(self, index: int, records: Collection[int]) -> int:
        """Return the stall cycles from an instruction to the next one with a record, or to the end of its block."""
        block = self.graph.blocks[self.graph.block_at(index)]
        end = next((number for number in range(index + 1, block.stop) if number in records), block.stop)
        return sum(word.stall for word in self.target.words[index:end])

    def registers(self, needed_at_ends: int) -> int | None:
        """Return the registers that the kernel must request, with that many for its entry and exits; None if some warp
        has fewer there.
        """
        if self.register_room is None:
            needed_registers = max(needed_at_ends, self._end(self.target))
            return needed_registers if needed_registers <= MAX_REGISTERS else None
        limits = (self.register_room.limit(offset // WORD_BYTES) for offset in self.target.exits())
        return self.target.registers if needed_at_ends <= min(self.target.registers, *limits) else None

    def records(self, rewritten: Mapping[int, Word], places: Sequence[int]) -> list[tuple[list[int], OperandWait]]:
        """Return the pairs of registers and the waits of the record at each of some instructions, which are
        ``rewritten``.

        If no instruction from a record to those that may be the next ones names its registers, these records wait for
        its operands, so that nothing waits at the record itself. What the kernel has under way at a record is not
        waited for, if possible.
        """
        code_words = [rewritten.get(index * WORD_BYTES, word) for index, word in enumerate(self.target.words)]
        pending = pending_scoreboards(code_words, self.graph).before_wait
        pending_masks = {place: pending[place] & ~code_words[place].wait_mask for place in places}
        order = least_used_barriers(self.target.all_words())
        earlier_barriers, plans = dict.fromkeys(places, 0), []
        for place in places:
            named_mask, next_records = self._search_next_records(place, pending_masks.keys())
            pairs = sorted(self.pairs(place), key=lambda pair: named_mask >> pair & 0b11 != 0)[:PAIRS_OF_RECORD]
            own_barrier = next((number for number in order if not pending_masks[place] >> number & 1), order[0])
            later_barriers = [
                number
                for number in order
                if not any(pending_masks[record] >> number & 1 for record in (place, *next_records))
            ]
            waits_later = bool(later_barriers) and not any(named_mask >> pair & 0b11 for pair in pairs)
            barrier = later_barriers[0] if waits_later else own_barrier
            for record in next_records if waits_later else ():
                earlier_barriers[record] |= 1 << barrier
            plans.append((pairs, barrier, not waits_later))
        return [
            (pairs, OperandWait(barrier, earlier_barriers[place], waits_itself))
            for place, (pairs, barrier, waits_itself) in zip(places, plans, strict=True)
        ]

    def _search_next_records(self, place: int, records: Collection[int]) -> tuple[int, set[int]]:
        """Return the mask of the registers that are named or given away from a record to the next ones, and these."""
        named_mask, next_records = 0, set[int]()
        block = self.graph.block_at(place)
        pending, visited = [(block, range(place, self.graph.blocks[block].stop))], set[int]()
        while pending:
            block, code = pending.pop()
            for index in code:
                if index in records and (index != place or block in visited):
                    next_records.add(index)
                    break
                named_mask |= 0 if self.register_room is None else self.register_room.named_mask(index)
            else:
                unvisited = {*self.graph.continuations[block]} - visited
                visited |= unvisited
                pending += [(successor, self.graph.blocks[successor]) for successor in unvisited]
        return named_mask, next_records
