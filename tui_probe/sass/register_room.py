"""Room for registers at single instructions of a kernel: which hold nothing there, and how many a warp has.

A register is dead where on every way it is written before it may be read; a write under a guard ends nothing. Loads,
stores, and all else that takes a variable time, read and write registers after they were issued: until an instruction
waits for their scoreboard or, of one without, writes the register itself: ptxas lets it do so only when that is safe.
Products of warpgroups and tensor memory have no scoreboard: no register that they name counts as dead.

Warps of a kernel with ``setmaxnreg`` (``USETMAXREG``) exchange registers: each role has a limit of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final, TypeVar

from tui_probe.sass.operands import ALL_REGISTERS, operands_of
from tui_probe.sass.target import FEWEST_REGISTERS, SET_REGISTERS
from tui_probe.sass.words import BARRIER_COUNT, NO_BARRIER, RESERVED, RZ

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_probe.sass.flow import FlowGraph
    from tui_probe.sass.operands import Operands
    from tui_probe.sass.target import GraftTarget
    from tui_probe.sass.words import Word

State = TypeVar("State")
_NUMBER_FORM: Final = 4
_FIXED_LATENCY: Final = range(0x100)
_VARIABLE_LATENCY: Final = frozenset({0x028, 0x029, 0x02A, 0x02B, 0x03B, 0x03F, 0x044})
"""DMUL, DADD, DSETP, DFMA, LDSM, DMMA, STSM."""
_WITHOUT_SCOREBOARD: Final = range(0x1E0, 0x1F4)
"""Tensor memory, and HGMMA, IGMMA, BGMMA, QGMMA."""


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
        products = [word.operation in _WITHOUT_SCOREBOARD for word in target.words]
        named = (own.reads | own.writes for own, is_product in zip(self._operands, products, strict=True) if is_product)
        self._never = reduce(or_, named, 0)
        nothing = [_UnderWay() for _ in graph.blocks]
        self._live_behind = _fixpoint([0] * len(graph.blocks), graph.predecessors, self._live_before, or_)
        self._under_way = _fixpoint(nothing, graph.successors, self._under_way_behind, _UnderWay.joined)

    def free(self, index: int) -> list[int]:
        """Return the registers that code at an instruction may use, also behind it."""
        block = self._graph.block_at(index)
        live = self._live(block, index)
        under_way = self._under_way[block]
        for place in range(self._graph.blocks[block].start, index):
            under_way = under_way.behind(self._words[place], self._operands[place])
        own = self._operands[index]
        used = live | under_way.all | own.reads | own.writes | self._never
        return [number for number in range(self.limit(index) - RESERVED) if not used >> number & 1]

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

    def _under_way_behind(self, block: int, before: _UnderWay) -> _UnderWay:
        for place in self._graph.blocks[block]:
            before = before.behind(self._words[place], self._operands[place])
        return before


def _fixpoint(
    states: list[State],
    led_to: Sequence[Sequence[int]],
    step: Callable[[int, State], State],
    join: Callable[[State, State], State],
) -> list[State]:
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
