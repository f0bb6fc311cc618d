"""Which variables are text that is printed and nothing else."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from tui_probe.engine.walk import instructions
from tui_probe.ptx.references import direct_references
from tui_probe.ptx.tree import Element, Function, Instruction, Memory, Operand, Register, Symbol, Vector

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.engine.kernel import Kernel

_PRINTERS: Final = frozenset({"vprintf", "__assertfail"})


def is_only_printed(kernel: Kernel, name: str) -> bool:
    """Tell whether a variable's address goes nowhere but to ``vprintf`` and ``__assertfail``."""
    if any(name in direct_references(variable) for variable in kernel.variables):
        return False
    functions = (kernel.entry, *kernel.functions)
    return all(_only_printed_in(function, name) for function in functions if name in direct_references(function))


def _only_printed_in(function: Function, name: str) -> bool:
    """Follow the address through moves and conversions to the parameters of calls."""
    sequence = list(instructions(function))
    holders: set[str] = set()
    for index, instruction in enumerate(sequence):
        sources = set(_names(instruction.operands[1:]))
        if name in _names(instruction.operands[:1]):
            return False
        if name not in sources and not sources & holders:
            continue
        if instruction.opcode in ("mov", "cvta") and isinstance(instruction.operands[0], Register):
            holders.add(instruction.operands[0].name)
        elif not _is_for_printing(instruction, sequence[index + 1 :]):
            return False
    return True


def _is_for_printing(store: Instruction, following: Sequence[Instruction]) -> bool:
    """Tell whether a store passes an argument to the next call, directly or in ``vprintf``'s buffer."""
    if store.opcode != "st" or not {"param", "local"} & set(store.modifiers):
        return False
    calls = (instruction for instruction in following if instruction.opcode == "call")
    for call in islice(calls, 1):
        return bool(_PRINTERS.intersection(_names(call.operands)))
    return False


def _names(operands: Sequence[Operand]) -> Iterator[str]:
    """The registers and symbols in operands."""
    for operand in operands:
        match operand:
            case Register(name=name) | Symbol(name=name) | Memory(base=Register(name=name) | Symbol(name=name)):
                yield name
            case Element(name, index):
                yield name
                yield from _names((index,))
            case Vector(elements):
                yield from _names(elements)
