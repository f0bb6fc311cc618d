"""What is known of the alignment of addresses: of each register, which power of two divides all that it holds.

Of a shared variable nothing needs to be known: the assembler places it, and as it suits its loads.
"""

from __future__ import annotations

from collections import defaultdict
from functools import reduce
from typing import TYPE_CHECKING, Final

from tui_probe.ptx.instructions import instructions_in
from tui_probe.ptx.operands import parse_integer
from tui_probe.ptx.tree import Immediate, Register, Sum, Symbol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tui_probe.ptx.tree import Function, Instruction, Operand

LARGEST: Final = 16
"""Bytes: the widest access. What is aligned more is said to be aligned so."""
_LEAST: Final = frozenset({"add", "sub", "or", "xor", "mov", "cvta", "cvt", "min", "max"})


def alignments(function: Function, symbols: Mapping[str, int]) -> dict[str, int]:
    """By the name of each register that instructions write what divides its values, from 1 to ``LARGEST``.

    ``symbols`` are the alignments of variables. What loops add to a register counts each time.
    """
    written: dict[str, list[Instruction]] = defaultdict(list)
    for instruction in instructions_in(function.body or ()):
        match instruction.operands:
            case (Register(name=name), *_) if instruction.opcode not in ("st", "red", "bra"):
                written[name].append(instruction)
    found = dict.fromkeys(written, LARGEST)

    def of(operand: Operand) -> int:
        match operand:
            case Register(name=name):
                return found.get(name, 1)
            case Symbol(name=name, offset=offset):
                return min(symbols.get(name, 1), _of_number(offset))
            case Sum(base=base, offset=offset):
                return min(of(base), _of_number(offset))
            case Immediate(text=text):
                return _of_number(parse_integer(text))
        return 1

    changed = True
    while changed:
        changed = False
        for name, writers in written.items():
            known = min(_result(writer, of) for writer in writers)
            changed |= known < found[name]
            found[name] = min(found[name], known)
    return found


def _of_number(number: int | None) -> int:
    if number is None:
        return 1
    return min(number & -number, LARGEST) if number else LARGEST


def _result(instruction: Instruction, of: Callable[[Operand], int]) -> int:
    """What divides what an instruction writes."""
    sources = instruction.operands[1:]
    match instruction.opcode, sources:
        case opcode, _ if opcode in _LEAST and sources:
            return min(map(of, sources))
        case "selp", (one, other, _):
            return min(of(one), of(other))
        case "and", (one, other):
            return max(of(one), of(other))
        case "shl", (one, Immediate(text=text)) if (bits := parse_integer(text)) is not None and 0 <= bits < 64:
            return min(of(one) << bits, LARGEST)
        case "mul", (one, other) if "hi" not in instruction.modifiers:
            return _product(of(one), of(other))
        case "mad", (one, other, third) if "hi" not in instruction.modifiers:
            return min(_product(of(one), of(other)), of(third))
    return 1


def _product(*factors: int) -> int:
    return min(reduce(lambda one, other: one * other, factors), LARGEST)
