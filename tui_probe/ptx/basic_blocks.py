"""Basic blocks: runs of instructions that are entered at the first and left after the last; and heads of loops.

A label ends a block and begins the next, and so does whatever may branch or leave. Each execution of the first
instruction is one of all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.ptx.instructions import statements_in
from tui_probe.ptx.references import names_in
from tui_probe.ptx.tree import Instruction, Label, Symbol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.ptx.tree import Function

_LEAVES: Final = frozenset({"bra", "brx", "ret", "exit", "trap"})

Block = list[Instruction]


def basic_blocks(function: Function) -> list[Block]:
    """The blocks of a function in source order, none of them empty."""
    return _blocks_and_labels(function)[0]


def loop_heads(function: Function) -> list[Instruction]:
    """The first instruction of each loop, in source order.

    A loop's first block is one that a block at or below it branches to, where that block can be reached from it
    again without anything above it: so each iteration passes it once, and code that was merely moved up is no loop.
    """
    blocks, labels = _blocks_and_labels(function)
    leads_to = [sorted(_successors(blocks, index, labels)) for index in range(len(blocks))]
    backward = {(target, index) for index, targets in enumerate(leads_to) for target in targets if target <= index}
    heads = {head for head, last in backward if last in _reached_below(head, leads_to)}
    return [blocks[head][0] for head in sorted(heads)]


def _blocks_and_labels(function: Function) -> tuple[list[Block], dict[str, tuple[int, ...]]]:
    """The blocks, and for each label the numbers of the blocks that a branch to it may lead to."""
    blocks: list[Block] = [[]]
    places: dict[str, int] = {}
    lists: dict[str, set[str]] = {}
    for node in statements_in(function.body or ()):
        if isinstance(node, Label):
            if blocks[-1]:
                blocks.append([])
            if node.declaration:
                lists[node.name] = names_in(node.declaration)
            else:
                places[node.name] = len(blocks) - 1
        elif isinstance(node, Instruction):
            blocks[-1].append(node)
            if node.opcode in _LEAVES:
                blocks.append([])
    if not blocks[-1]:
        blocks.pop()
    labels: dict[str, tuple[int, ...]] = {name: (place,) for name, place in places.items() if place < len(blocks)}
    for name, named in lists.items():
        labels[name] = tuple(place for each in named for place in labels.get(each, ()))
    return blocks, labels


def _successors(blocks: Sequence[Block], index: int, labels: dict[str, tuple[int, ...]]) -> set[int]:
    """The blocks that may run after one."""
    last = blocks[index][-1]
    found: set[int] = set()
    if last.opcode in ("bra", "brx"):
        names = (operand.name for operand in last.operands if isinstance(operand, Symbol))
        found.update(place for name in names for place in labels.get(name, ()))
    falls_through = last.opcode not in _LEAVES or last.predicate is not None
    return found | ({index + 1} if falls_through and index + 1 < len(blocks) else set())


def _reached_below(head: int, leads_to: Sequence[Sequence[int]]) -> set[int]:
    """The blocks that can be reached from ``head``, itself included, through none that stands above it."""
    seen, waiting = {head}, [head]
    while waiting:
        fresh = [target for target in leads_to[waiting.pop()] if target >= head and target not in seen]
        seen.update(fresh)
        waiting += fresh
    return seen
