"""Instructions and operands back to text, from their fields.

What was parsed is the source that its span covers. An instruction that was made up has an empty span (``MADE_UP``). To
change a parsed one, make up another: ``dataclasses.replace(node, operands=…, span=MADE_UP)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.ptx.lexer import tokenize
from tui_probe.ptx.tree import (
    Element,
    Immediate,
    Instruction,
    Memory,
    Negated,
    Operand,
    OperandList,
    Pair,
    Raw,
    Register,
    Span,
    Sum,
    Symbol,
    Vector,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

MADE_UP: Final = Span(0, 0, 0)


def tokens(source: str) -> list[str]:
    """The tokens of ``source`` as text, without white space and comments. Raises PtxError."""
    return [token.text for token in tokenize(source)]


def print_operand(operand: Operand) -> str:
    """Print an operand as PTX."""
    match operand:
        case Register():
            return str(operand)
        case Immediate(text) | Raw(text):
            return text
        case Symbol(name, offset):
            return f"{name}+{offset}" if offset else name
        case Sum(base, offset):
            return f"{base}+{offset}"
        case Element(name, index):
            return f"{name}[{print_operand(index)}]"
        case Memory():
            return _print_memory(operand)
        case Vector(elements):
            return "{" + _print_list(elements) + "}"
        case OperandList(elements):
            return "(" + _print_list(elements) + ")"
        case Pair(first, second):
            return f"{print_operand(first)}|{print_operand(second)}"
        case Negated(sign, inner):
            return sign + print_operand(inner)


def _print_list(operands: Iterable[Operand]) -> str:
    return ", ".join(map(print_operand, operands))


def _print_memory(memory: Memory) -> str:
    base = "" if memory.base is None else print_operand(memory.base)
    offset = str(memory.offset) if memory.offset or not base else ""
    address = "+".join(filter(None, (base, offset)))
    if memory.coordinates:
        address += ", {" + _print_list(memory.coordinates) + "}"
    return f"[{address}]"


def print_instruction(instruction: Instruction) -> str:
    """Print an instruction as PTX, from its fields, with guard and semicolon."""
    guard = ""
    if instruction.predicate is not None:
        guard = f"@{'!' if instruction.predicate_negated else ''}{instruction.predicate} "
    opcode = ".".join((instruction.opcode, *instruction.modifiers))
    operands = _print_list(instruction.operands)
    return f"{guard}{opcode} {operands}".rstrip() + ";"
