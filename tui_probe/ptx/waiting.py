"""Loops in which a thread waits, whether blocks wait for one another, and waits at which lanes of a warp part.

PTX orders memory with strong operations and fences (PTX ISA reference, "Memory Consistency Model"); loads that bypass
the caches of an SM (``.cg``, ``.cv``) are taken for such, since older code waits with them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from tui_probe.ptx.control_flow import Flow, natural_loops
from tui_probe.ptx.instruction_facts import class_of
from tui_probe.ptx.operands import parse_integer
from tui_probe.ptx.tree import (
    Element,
    Immediate,
    Instruction,
    Memory,
    Negated,
    Pair,
    Register,
    Sum,
    Vector,
    instructions_in,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    from tui_probe.ptx.control_flow import Block
    from tui_probe.ptx.tree import Function, Operand

# Loops in which a thread does nothing but try an instruction again, until it succeeds or the thread gives up.
#
#     again:                                                 again:
#     mbarrier.try_wait.parity.b64 p, [bar], phase;          mbarrier.try_wait.parity.b64 p, [bar], phase;
#     @p bra done;                                           @!p bra again;
#     bra again;
#     done:
#
# A first try in front of such a loop that leads to the same place when it succeeds, as ``cuda::barrier`` has it,
# belongs to the loop. Between tries a thread may compute, read clocks and sleep. A loop is none of these that does
# more (loads, stores, fences, products, calls), that is left no matter what the instruction says, or that is entered in
# several places.

EdgeSide: TypeAlias = Literal["before", "taken", "behind"]

_IDLE_OPCODES: Final = frozenset({"bra", "mov", "selp", "slct", "cvt", "nanosleep", "vote", "activemask"})
_STRONG_MODIFIERS: Final = frozenset({"volatile", "relaxed", "acquire", "mmio", "cg", "cv"})
_BLOCK_SPACES: Final = frozenset({"shared", "shared::cta", "shared::cluster", "local", "param", "const"})
_PROXY_MODIFIERS: Final = frozenset({"proxy", "mbarrier_init"})
"""Fences that order a block's own accesses of different kinds."""
_EXCHANGES: Final = frozenset({"shfl", "vote", "match", "redux", "elect"})
_BARRIERS: Final = frozenset({"bar", "barrier"})


class Edge(NamedTuple):
    """A way into a loop or out of it: ``before`` an instruction; where a branch is ``taken``; or ``behind`` one, where
    it is not taken.
    """

    instruction: Instruction
    side: EdgeSide


class WaitLoop(NamedTuple):
    """One wait: the instructions that are tried, in source order, and all ways in and out."""

    tries: tuple[Instruction, ...]
    entries: tuple[Edge, ...]
    exits: tuple[Edge, ...]


def wait_loops(function: Function, is_tried: Callable[[Instruction], bool]) -> list[WaitLoop]:
    """Return the loops that wait for instructions for which ``is_tried`` holds, in source order."""
    flow = Flow.from_function(function)
    search = _LoopSearch(flow, is_tried)
    heads = {head: None for index, block in enumerate(flow.blocks) if any(map(is_tried, block))
             for head in search.innermost_head(index)}  # fmt: skip
    loops = [loop for head in heads if (loop := search.wait_at(head)) is not None]
    return sorted(loops, key=lambda loop: loop.tries[0].span.start)


def retried_reads(function: Function) -> Iterator[Instruction]:
    """Yield the strong loads and atomics that a thread does nothing but try again, until one reads what it waits for.

    An atomic that adds or sets a number other than 0 is no such try: it takes an index, say. A loop of such tries may
    begin at the same block as a loop around it.
    """
    flow = Flow.from_function(function)
    loops = natural_loops([flow.successors(index) for index in range(len(flow.blocks))])
    for head, blocks in loops.items():
        for tail in (index for index in blocks if head in flow.successors(index)):
            code = [instruction for index in _blocks_between(flow, head, tail) for instruction in flow.blocks[index]]
            tries = [instruction for instruction in code if _is_strong_read(instruction)]
            if all(instruction in tries or _is_idle(instruction) for instruction in code):
                yield from tries


def _blocks_between(flow: Flow, head: int, tail: int) -> set[int]:
    """Return the blocks on ways from ``head`` to ``tail`` that do not come to ``head`` again."""
    blocks, pending = {head, tail}, [tail] if tail != head else []
    while pending:
        index = pending.pop()
        predecessors = {
            predecessor for predecessor in range(len(flow.blocks)) if index in flow.successors(predecessor)
        } - blocks
        blocks |= predecessors
        pending += predecessors
    return blocks


def _is_strong_read(instruction: Instruction) -> bool:
    if instruction.opcode == "atom":
        is_zero = isinstance(instruction.operands[-1], Immediate) and parse_integer(instruction.operands[-1].text) == 0
        return is_zero or {"add", "or", "xor", "inc", "dec"}.isdisjoint(instruction.modifiers)
    return instruction.opcode == "ld" and not _STRONG_MODIFIERS.isdisjoint(instruction.modifiers)


def _is_idle(instruction: Instruction) -> bool:
    return instruction.opcode in _IDLE_OPCODES or class_of(instruction) == "integer"


class _LoopSearch:
    """Looks for loops in the flow of one function."""

    def __init__(self, flow: Flow, is_tried: Callable[[Instruction], bool]) -> None:
        self._flow = flow
        self._is_tried = is_tried
        self._predecessors: list[list[int]] = [[] for _ in flow.blocks]
        for index in range(len(flow.blocks)):
            for successor in flow.successors(index):
                self._predecessors[successor].append(index)
        self._loops = natural_loops([flow.successors(index) for index in range(len(flow.blocks))])

    def innermost_head(self, index: int) -> list[int]:
        """Return the head of the innermost loop that a block is in; none if it is in no loop."""
        heads = [head for head, blocks in self._loops.items() if index in blocks]
        return sorted(heads, key=lambda head: len(self._loops[head]))[:1]

    def wait_at(self, head: int) -> WaitLoop | None:
        """Return the loop of a head, if all that it does is to wait."""
        blocks = self._loops[head]
        code = [instruction for index in sorted(blocks) for instruction in self._flow.blocks[index]]
        tries = tuple(filter(self._is_tried, code))
        entry_blocks = [index for index in self._predecessors[head] if index not in blocks]
        if not (all(map(self._only_waits, code)) and self._has_one_entry(head, blocks) and entry_blocks):
            return None
        exits = [
            (index, target)
            for index in sorted(blocks)
            for target in self._flow.successors(index)
            if target not in blocks
        ]
        answers = dependent_registers(tries, code)
        if not any(_is_asking(self._flow.blocks[index][-1], answers) for index, _ in exits):
            return None
        entries = tuple(edge for index in entry_blocks for edge in self._edges(index, head))
        loop = WaitLoop(tries, entries, tuple(edge for exit_ in exits for edge in self._edges(*exit_)))
        if any(edge.instruction.opcode == "brx" for edge in loop.entries):
            return None
        return self._with_first_try(loop, entry_blocks, {out for _, out in exits})

    def _only_waits(self, instruction: Instruction) -> bool:
        if self._is_tried(instruction):
            return instruction.predicate is None
        return _is_idle(instruction)

    def _has_one_entry(self, head: int, blocks: set[int]) -> bool:
        return head > 0 and all(
            predecessor in blocks for index in blocks - {head} for predecessor in self._predecessors[index]
        )

    def _edges(self, index: int, target: int) -> Iterator[Edge]:
        """Yield the ways from one block to another."""
        branch = self._flow.blocks[index][-1]
        if target in self._flow.jumps[index]:
            yield Edge(branch, "taken")
        if self._flow.falls_through[index] and target == index + 1:
            yield Edge(branch, "behind")

    def _with_first_try(self, loop: WaitLoop, entry_blocks: Sequence[int], exit_targets: set[int]) -> WaitLoop:
        """Return the loop together with a try in front of it that leads to where the loop ends, if there is one."""
        index = entry_blocks[0]
        while self._is_transparent(index):
            (index,) = self._predecessors[index]
        block = self._flow.blocks[index]
        tries = [number for number, instruction in enumerate(block) if self._is_tried(instruction)]
        targets = [target for target in self._flow.successors(index) if target in exit_targets]
        if len(entry_blocks) != 1 or len(exit_targets) != 1 or not tries or not targets:
            return loop
        following = block[tries[-1] :]
        if not (
            all(map(self._only_waits, following))
            and _is_asking(following[-1], dependent_registers(following[:1], following))
        ):
            return loop
        exits = (*self._edges(index, targets[0]), *loop.exits)
        return WaitLoop((following[0], *loop.tries), (Edge(following[0], "before"),), exits)

    def _is_transparent(self, index: int) -> bool:
        """Return whether a block between a first try and the loop does nothing of note."""
        block = self._flow.blocks[index]
        is_straight = len(self._predecessors[index]) == 1 and len(self._flow.successors(index)) == 1
        return is_straight and all(
            self._only_waits(instruction) and not self._is_tried(instruction) for instruction in block
        )


def _is_asking(branch: Instruction, answers: set[str]) -> bool:
    return branch.opcode == "bra" and branch.predicate is not None and branch.predicate.name in answers


def dependent_registers(tries: Sequence[Instruction], code: Block) -> set[str]:
    """Return the registers that have the results of the tries, or values computed from them."""
    answers = {name for attempt in tries for name in operand_registers(attempt.operands[:1])}
    count = -1
    while count != len(answers):
        count = len(answers)
        for instruction in code:
            sources = {
                *operand_registers(instruction.operands[1:]),
                *([instruction.predicate.name] if instruction.predicate else []),
            }
            if sources & answers and instruction.opcode != "bra":
                answers.update(operand_registers(instruction.operands[:1]))
    return answers


def operand_registers(operands: Iterable[Operand]) -> Iterator[str]:
    """Yield the registers in operands."""
    for operand in operands:
        match operand:
            case Register(name=name):
                yield name
            case Negated(operand=inner) | Sum(base=inner) | Memory(base=Register() as inner) | Element(index=inner):
                yield from operand_registers([inner])
            case Pair(first, second):
                yield from operand_registers([first, second])
            case Vector(elements):
                yield from operand_registers(elements)


def blocks_may_wait(functions: Iterable[Function]) -> bool:
    """Return whether anything in a kernel, or in the functions that it calls, tells a block what others do.

    A call through an address, or of a function that has no body, may.
    """
    kernel_functions = list(functions)
    bodies = {function.name for function in kernel_functions if function.body is not None}
    return any(
        _may_signal(instruction, bodies)
        for function in kernel_functions
        for instruction in instructions_in(function.body or ())
    )


def _may_signal(instruction: Instruction, bodies: set[str]) -> bool:
    modifiers = {*instruction.modifiers}
    match instruction.opcode:
        case "ld":
            return bool(modifiers & _STRONG_MODIFIERS) and not modifiers & _BLOCK_SPACES
        case "atom":
            return not modifiers & _BLOCK_SPACES
        case "membar" | "multimem":
            return True
        case "fence":
            return not any(part in _PROXY_MODIFIERS for modifier in modifiers for part in modifier.split("::"))
        case "call":
            return not any(getattr(operand, "name", None) in bodies for operand in instruction.operands)
    return False


# Waits of lanes that are not with the other lanes of their warp: those behind the last wait that all lanes passed.


def is_exchange(instruction: Instruction) -> bool:
    """Return whether lanes wait at an instruction for other lanes of their warp."""
    return instruction.opcode in _EXCHANGES or instruction.modifiers[:1] == ("warp",)


def is_barrier(instruction: Instruction) -> bool:
    """Return whether threads wait at an instruction for threads of other warps."""
    return instruction.opcode in _BARRIERS and not {"warp", "arrive"} & {*instruction.modifiers}


def _opcode(instruction: Instruction) -> str:
    return ".".join((instruction.opcode, *instruction.modifiers))


@dataclass(frozen=True, slots=True)
class LaneWaits:
    """Opcodes of ``exchanges`` and ``barriers`` by line. Those of ``joining`` wait for all lanes of a warp."""

    flows: tuple[Flow, ...] = ()
    exchanges: Mapping[int, str] = field(default_factory=dict)
    barriers: Mapping[int, str] = field(default_factory=dict)
    joining: frozenset[int] = frozenset()

    @classmethod
    def from_functions(cls, functions: Iterable[Function], partial: Container[int] = ()) -> LaneWaits:
        """Read it from functions. The masks of the exchanges at lines of ``partial`` do not have all lanes."""
        flows = tuple(Flow.from_function(function) for function in functions if function.body)
        code = [instruction for flow in flows for block in flow.blocks for instruction in block]
        waits = [instruction for instruction in code if is_exchange(instruction) or is_barrier(instruction)]
        return cls(
            flows,
            {wait.span.line: _opcode(wait) for wait in waits if is_exchange(wait)},
            {wait.span.line: _opcode(wait) for wait in waits if is_barrier(wait)},
            frozenset(wait.span.line for wait in waits if wait.predicate is None and wait.span.line not in partial),
        )

    def reachable_waits(self, line: int) -> list[int]:
        """Return the waits, ascending, that lanes may have reached while others of their warp are at ``line``.

        The lanes were together at the entry, or at the last wait that joins them. Behind that, the missing ones have
        passed no wait that joins them: it would have waited for the lanes at ``line``.
        """
        for flow in self.flows:
            paths = _Paths.from_flow(flow, self.joining)
            if line in paths.lines:
                reached_lines = {
                    paths.lines[place] for place in paths.reachable_from(paths.joined_points(paths.lines.index(line)))
                }
                return sorted((reached_lines & (self.exchanges.keys() | self.barriers.keys())) - {line})
        return []


class _Paths(NamedTuple):
    """The lines of the instructions of a function, and the numbers of those that may run after and before each."""

    lines: list[int]
    successors: list[list[int]]
    predecessors: list[list[int]]
    joins: list[bool]

    @classmethod
    def from_flow(cls, flow: Flow, joining: frozenset[int]) -> _Paths:
        lines = [instruction.span.line for block in flow.blocks for instruction in block]
        block_starts = [0, *accumulate(map(len, flow.blocks))]
        successors = [[number + 1] for number in range(len(lines))]
        for index in range(len(flow.blocks)):
            successors[block_starts[index + 1] - 1] = [block_starts[target] for target in flow.successors(index)]
        predecessors: list[list[int]] = [[] for _ in lines]
        for number, targets in enumerate(successors):
            for target in targets:
                predecessors[target].append(number)
        return cls(lines, successors, predecessors, [line in joining for line in lines])

    def joined_points(self, place: int) -> set[int]:
        """Return the last points before ``place`` at which all lanes were together: the entry, or behind a wait."""
        points, visited, pending = set[int](), {place}, [place]
        while pending:
            number = pending.pop()
            if not number:
                points.add(0)
            for predecessor in self.predecessors[number]:
                if self.joins[predecessor]:
                    points.update(self.successors[predecessor])
                elif predecessor not in visited:
                    visited.add(predecessor)
                    pending.append(predecessor)
        return points

    def reachable_from(self, points: set[int]) -> set[int]:
        """Return the instructions that lanes may reach from ``points`` without passing a wait that joins them."""
        visited, pending = {*points}, [*points]
        while pending:
            number = pending.pop()
            successors = set[int]() if self.joins[number] else {*self.successors[number]} - visited
            visited |= successors
            pending += successors
        return visited
