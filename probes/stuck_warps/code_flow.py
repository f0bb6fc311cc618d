"""Control flow of a kernel's functions: loops with the functions called in them, and exits that warps take.

Code is named by its lines in ``pruned.ptx``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.ptx.control_flow import Flow, natural_loops
from tui_probe.ptx.tree import Register, Symbol, instructions_in
from tui_probe.ptx.waiting import is_barrier

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from tui_probe.ptx.tree import Function, Instruction, Operand

_WAITS: Final = frozenset({"try_wait", "test_wait"})
_EXITS: Final = frozenset({"ret", "exit"})


@dataclass(frozen=True, slots=True)
class FunctionFlow:
    """A function, its basic blocks, the block of each line, and the blocks of each loop by its head."""

    function: Function
    flow: Flow
    block_of_line: Mapping[int, int]
    loop_blocks: Mapping[int, set[int]]

    @classmethod
    def from_function(cls, function: Function) -> FunctionFlow:
        """Cut a function into blocks, and find its loops."""
        flow = Flow.from_function(function)
        block_of_line = {
            instruction.span.line: index for index, block in enumerate(flow.blocks) for instruction in block
        }
        loop_blocks = natural_loops([flow.successors(index) for index in range(len(flow.blocks))])
        return cls(function, flow, block_of_line, loop_blocks)

    @property
    def instructions(self) -> list[Instruction]:
        """The instructions in source order."""
        return list(instructions_in(self.function.body or ()))

    def loops(self) -> dict[int, frozenset[int]]:
        """Return the lines of each loop, by the line of its first instruction."""
        blocks = self.flow.blocks
        return {
            blocks[head][0].span.line: frozenset(
                instruction.span.line for index in indices for instruction in blocks[index]
            )
            for head, indices in self.loop_blocks.items()
        }

    def endless_loops(self) -> Iterator[int]:
        """Yield the first lines of loops that no branch and no exit leaves."""
        for head, indices in self.loop_blocks.items():
            successors = {successor for index in indices for successor in self.flow.successors(index)}
            code = (instruction for index in indices for instruction in self.flow.blocks[index])
            if successors <= indices and not any(instruction.opcode in _EXITS for instruction in code):
                yield self.flow.blocks[head][0].span.line

    def lock_free_updates(self) -> Iterator[int]:
        """Yield the lines of compare-and-swaps in a loop that computes the value to compare."""
        code = self.instructions
        swaps = [instruction for instruction in code if instruction.opcode == "atom" and "cas" in instruction.modifiers]
        loops = self.loops() if swaps else {}
        for swap in swaps:
            loop_lines = innermost(loops, swap.span.line)
            in_loop = (instruction for instruction in code if instruction.span.line in loop_lines)
            if any(_computes(instruction, swap.operands[2]) for instruction in in_loop):
                yield swap.span.line

    def calls(self, function_names: Container[str]) -> Iterator[tuple[int, str]]:
        """Yield the line of each call of one of these functions, and the name of that."""
        for instruction in self.instructions:
            if instruction.opcode == "call":
                names = (operand.name for operand in instruction.operands if isinstance(operand, Register | Symbol))
                yield from ((instruction.span.line, name) for name in names if name in function_names)

    def exits_from(self, place: int) -> set[int]:
        """Return the exits that a warp may take from a place, 0 for the entry, without another wait.

        There are none if the place is in another function.
        """
        if place and place not in self.block_of_line:
            return set()
        start_block = self.block_of_line.get(place, 0)
        exits, visited, pending = set[int](), {start_block}, [(start_block, place)]
        while pending:
            index, after_line = pending.pop()
            code = (instruction for instruction in self.flow.blocks[index] if instruction.span.line > after_line)
            for instruction in code:
                if instruction.opcode in _EXITS:
                    exits.add(instruction.span.line)
                if _is_wait(instruction) or (instruction.opcode in _EXITS and instruction.predicate is None):
                    break
            else:
                successors = {*self.flow.successors(index)} - visited
                visited |= successors
                pending += [(successor, 0) for successor in successors]
        return exits


def loops_with_calls(flows: Sequence[FunctionFlow]) -> dict[int, frozenset[int]]:
    """Return the lines of each loop, with those of the functions that are called in it, by its first line."""
    lines_of = {flow.function.name: {instruction.span.line for instruction in flow.instructions} for flow in flows}
    calls = {flow.function.name: list(flow.calls(lines_of)) for flow in flows}
    loops = {}
    for flow in flows:
        for head, lines in flow.loops().items():
            callees = _called_functions({name for line, name in calls[flow.function.name] if line in lines}, calls)
            loops[head] = lines.union(*(lines_of[name] for name in callees))
    return loops


def _called_functions(names: Iterable[str], calls: Mapping[str, Sequence[tuple[int, str]]]) -> set[str]:
    """Return these functions, and all that they call, directly or not."""
    functions, pending = set[str](), [*names]
    while pending:
        name = pending.pop()
        if name not in functions:
            functions.add(name)
            pending += (callee for _, callee in calls[name])
    return functions


def exits_by_place(flows: Iterable[FunctionFlow], places: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield a place and the exit that a warp takes from it without another wait; none where it may take several."""
    for flow in flows:
        if flow.function.kind == "entry" and flow.function.body:
            for place in places:
                if len(exits := flow.exits_from(place)) == 1:
                    yield place, exits.pop()


def innermost(loops: Mapping[int, frozenset[int]], line: int) -> frozenset[int]:
    """Return the lines of the innermost loop around a line; none if there is no loop."""
    return min((lines for lines in loops.values() if line in lines), key=len, default=frozenset())


def _computes(instruction: Instruction, operand: Operand) -> bool:
    """Return whether an instruction writes a register, and not with a number."""
    match instruction.operands, operand:
        case (Register(name=result), *inputs), Register(name=name):
            return result == name and any(isinstance(operand, Register) for operand in inputs)
    return False


def _is_wait(instruction: Instruction) -> bool:
    """Return whether an instruction is a place that each warp records."""
    is_try = instruction.opcode == "mbarrier" and bool({*instruction.modifiers} & _WAITS)
    return is_try or is_barrier(instruction)
