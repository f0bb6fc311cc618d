"""Walks over the statements of a function body."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.ptx.instructions import instructions_in, statements_in
from tui_probe.ptx.tree import Variable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.ptx.tree import Function, Instruction


def instructions(function: Function) -> Iterator[Instruction]:
    """All instructions of a function in order, those of inner scopes included."""
    return instructions_in(function.body or ())


def register_types(function: Function) -> dict[str, str]:
    """The types of a function's registers; ``%r`` stands for all that ``.reg .b32 %r<9>`` declares."""
    return {
        node.name: node.type
        for node in statements_in(function.body or ())
        if isinstance(node, Variable) and node.space == "reg"
    }


def type_of(register: str, types: dict[str, str]) -> str:
    """The type of a register by its name, or "" if it is not declared."""
    return types.get(register) or types.get(register.rstrip("0123456789"), "")


def is_way_out(instruction: Instruction) -> bool:
    """Tell whether an instruction of a kernel ends the threads that execute it."""
    return instruction.opcode in ("ret", "exit")
