"""Basic blocks: runs of instructions that are entered at the first and left after the last.

A label ends a block and begins the next, and so does whatever may branch or leave. Each execution of the first
instruction is one of all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.engine.walk import statements
from tui_probe.ptx.tree import Instruction, Label

if TYPE_CHECKING:
    from tui_probe.ptx.tree import Function

_LEAVES: Final = frozenset({"bra", "brx", "ret", "exit", "trap"})


def basic_blocks(function: Function) -> list[list[Instruction]]:
    """The blocks of a function in source order, none of them empty."""
    blocks: list[list[Instruction]] = [[]]
    for node in statements(function.body or ()):
        if isinstance(node, Label):
            blocks.append([])
        elif isinstance(node, Instruction):
            blocks[-1].append(node)
            if node.opcode in _LEAVES:
                blocks.append([])
    return [block for block in blocks if block]
