"""Loops that no count ends, in which a thread may stay for ever.

A count ends a loop if one of its exits is tested in each iteration, and integers decide it that the loop computes from
registers and numbers only: nothing that comes from memory, other lanes, clocks or calls takes part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.ptx.control_flow import Flow, loop_heads, natural_loops
from tui_probe.ptx.instruction_facts import class_of
from tui_probe.ptx.waiting import depending_on, operand_registers

if TYPE_CHECKING:
    from tui_probe.ptx.control_flow import Block
    from tui_probe.ptx.tree import Function, Instruction

_COPIES: Final = frozenset({"mov", "cvt", "cvta", "selp", "slct", "bra"})
_CLOCKS: Final = ("%clock", "%globaltimer")


def unbounded_loop_heads(function: Function) -> list[Instruction]:
    """The first instruction of each loop that no count ends, in source order."""
    flow = Flow.of(function)
    loops = natural_loops([flow.successors(index) for index in range(len(flow.blocks))])
    numbers = {id(block[0]): index for index, block in enumerate(flow.blocks)}
    heads = {id(first): numbers[id(first)] for first in loop_heads(function, flow)}
    return [flow.blocks[head][0] for head in heads.values() if not _is_counted(flow, head, loops.get(head, set()))]


def _is_counted(flow: Flow, head: int, inside: set[int]) -> bool:
    """Return whether a count ends the loop; ``inside`` are its blocks, none of a loop with several entries."""
    code = [instruction for index in sorted(inside) for instruction in flow.blocks[index]]
    outer = depending_on([instruction for instruction in code if not _is_computed(instruction)], code)
    computed = {name for instruction in code for name in operand_registers(instruction.operands[:1])} - outer
    return any(
        _leaves_by(flow, index, inside, computed) and not _can_skip(flow, index, head, inside) for index in inside
    )


def _is_computed(instruction: Instruction) -> bool:
    if instruction.opcode in _COPIES:
        return not any(name.startswith(_CLOCKS) for name in operand_registers(instruction.operands[1:]))
    return class_of(instruction) == "integer"


def _leaves_by(flow: Flow, index: int, inside: set[int], computed: set[str]) -> bool:
    """Return whether one of the ``computed`` registers decides if a block leaves the loop."""
    last: Block = flow.blocks[index][-1:]
    leaves = any(following not in inside for following in flow.successors(index)) or last[0].opcode in ("ret", "exit")
    return leaves and last[0].predicate is not None and last[0].predicate.name in computed


def _can_skip(flow: Flow, index: int, head: int, inside: set[int]) -> bool:
    """Return whether an iteration may pass by a block."""
    if index == head:
        return False
    seen, waiting = {head}, [head]
    while waiting:
        following = set(flow.successors(waiting.pop())) & inside - {index}
        if head in following:
            return True
        waiting += following - seen
        seen |= following
    return False
