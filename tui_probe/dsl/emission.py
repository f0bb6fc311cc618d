"""Emit PTX for expressions, and name the registers of variables and intermediate values."""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from tui_probe.dsl.expressions import (
    Binary,
    Bits,
    Compare,
    Conditional,
    Expression,
    Inverse,
    Logic,
    LowWord,
    Not,
    Number,
    Operand,
    Special,
    Variable,
    fits_32_bits,
)
from tui_probe.engine.verify import SPECIAL_REGISTERS

if TYPE_CHECKING:
    from collections.abc import Iterator

RegisterKind: TypeAlias = Literal["b64", "b32", "pred"]

_TEMPORARY_PREFIXES: Final[dict[RegisterKind, str]] = {"b64": "%v", "b32": "%w", "pred": "%p"}
_TEMPORARY_NAME: Final = re.compile(r"%[vwp]\d+")


class ProbeRegisters:
    """The registers of a whole probe: snippets share a name only where it has the same type."""

    def __init__(self) -> None:
        self._kinds: dict[str, RegisterKind] = {}
        self._own: dict[str, str] = {}

    def declare(self, variable: str, bits: Bits) -> None:
        """Give a register of the probe a name that no local gets."""
        name = next(name for name in _name_candidates(variable) if name not in self._kinds)
        self._kinds[name] = register_kind(bits)
        self._own[variable] = name

    def own(self, variable: str) -> str | None:
        """The name of a register of the probe, None for any other variable."""
        return self._own.get(variable)

    def local(self, variable: str, kind: RegisterKind, taken: set[str]) -> str:
        """A name for a local of one snippet, in which those of ``taken`` are used already."""
        taken = taken | set(self._own.values())
        name = next(
            name for name in _name_candidates(variable) if name not in taken and self._kinds.get(name, kind) == kind
        )
        self._kinds[name] = kind
        return name

    def kind(self, name: str) -> RegisterKind:
        """The type of a register that was given a name here."""
        return self._kinds[name]


class SnippetRegisters:
    """The registers that one snippet uses, in the order of their first use."""

    def __init__(self, probe: ProbeRegisters) -> None:
        self._probe = probe
        self._locals: dict[tuple[str, RegisterKind], str] = {}
        self._used: dict[str, RegisterKind] = {}
        self._temporaries: dict[RegisterKind, int] = {}

    def variable(self, name: str, bits: Bits) -> str:
        """The register of a variable."""
        register = self._probe.own(name)
        if register is None:
            key = (name, register_kind(bits))
            if key not in self._locals:
                self._locals[key] = self._probe.local(name, key[1], set(self._locals.values()))
            register = self._locals[key]
        self._used[register] = self._probe.kind(register)
        return register

    def temporary(self, kind: RegisterKind) -> str:
        """A register that no other part of the statement uses."""
        number = self._temporaries.get(kind, 0)
        self._temporaries[kind] = number + 1
        register = f"{_TEMPORARY_PREFIXES[kind]}{number}"
        self._used[register] = kind
        return register

    def next_statement(self) -> None:
        """Nothing in between outlives a statement: its registers are free again."""
        self._temporaries.clear()

    def declarations(self) -> list[str]:
        """``.reg`` lines for all registers used, those of a type in one."""
        lines = []
        for kind in _TEMPORARY_PREFIXES:
            names = [name for name, used_kind in self._used.items() if used_kind == kind]
            if names:
                lines.append(f".reg .{kind} {', '.join(names)};")
        return lines


def register_kind(bits: Bits) -> RegisterKind:
    """The type of a register for a value."""
    return "b64" if bits == 64 else "b32"


def _name_candidates(variable: str) -> Iterator[str]:
    """``%name``, ``%name_2``, …, without names that PTX or temporaries have."""
    name = f"%{variable}"
    if name not in SPECIAL_REGISTERS and not _TEMPORARY_NAME.fullmatch(name):
        yield name
    yield from (f"%{variable}_{number}" for number in count(2))


class Emitter:
    """Writes PTX that computes expressions. ``lines`` grows."""

    def __init__(self, registers: SnippetRegisters) -> None:
        self._registers = registers
        self.lines: list[str] = []

    def temporary(self, bits: Bits) -> str:
        """A register that no other part of the statement uses."""
        return self._registers.temporary(register_kind(bits))

    def value(self, expression: Expression, bits: Bits, into: str = "") -> str:
        """The low ``bits`` of a value: a number or a register, ``into`` if that is given."""
        match expression:
            case Number(value):
                number = str(value % (1 << bits))
                return self._move(number, bits, into) if into else number
            case Variable(name=name, bits=own):
                return self._resized(self._registers.variable(name, own), own, bits, into)
            case Special(register=register, bits=own):
                return self._copy(f"mov.u{own}", register, own, bits, into)
            case Operand(helper=helper, bits=own):
                return self._copy(f"mov.b{own or 64}", helper, own or 64, bits, into)
            case Binary():
                return self._binary(expression, bits, into)
            case Inverse(ptx=ptx, operand=operand):
                return self._instruction(f"{ptx}{bits}", [self.value(operand, bits)], bits, into)
            case LowWord(operand=operand):
                if bits == 32:
                    return self.value(operand, 32, into)
                return self._resized(self.value(operand, 32), 32, 64, into)
            case Conditional(condition=condition, chosen=chosen, other=other):
                test = self.predicate(condition)
                values = [self.value(chosen, bits), self.value(other, bits), test]
                return self._instruction(f"selp.b{bits}", values, bits, into)
            case Compare() | Logic() | Not():
                return self._instruction(f"selp.b{bits}", ["1", "0", self.predicate(expression)], bits, into)

    def predicate(self, expression: Expression) -> str:
        """A predicate register that holds a truth, which is not a constant."""
        match expression:
            case Logic(ptx=ptx, left=left, right=right):
                return self._predicate(f"{ptx}.pred", [self.predicate(left), self.predicate(right)])
            case Not(operand=operand):
                return self._predicate("not.pred", [self.predicate(operand)])
            case Compare(relation=relation, left=left, right=right):
                bits: Bits = 32 if fits_32_bits(left, right) else 64
                return self._predicate(f"setp.{relation}.u{bits}", [self.value(left, bits), self.value(right, bits)])
        raise AssertionError(f"{expression} is not a condition")

    def _binary(self, expression: Binary, bits: Bits, into: str) -> str:
        operator, left, right = expression.operator, expression.left, expression.right
        computed: Bits = bits
        if operator.low_bits_suffice:
            if fits_32_bits(expression, left, right):
                computed = 32
        else:
            computed = 32 if fits_32_bits(left) and (operator.is_shift or fits_32_bits(right)) else 64
        first = self.value(left, computed)
        second = self._shift_amount(right) if operator.is_shift else self.value(right, computed)
        opcode = f"{operator.ptx}{computed}"
        if computed == bits:
            return self._instruction(opcode, [first, second], bits, into)
        return self._resized(self._instruction(opcode, [first, second], computed, ""), computed, bits, into)

    def _shift_amount(self, amount: Expression) -> str:
        """A number of bits, as 32 bits; any that is larger shifts everything out."""
        if isinstance(amount, Number):
            return str(min(amount.value, 64))
        if fits_32_bits(amount):
            return self.value(amount, 32)
        clamped = self._instruction("min.u64", [self.value(amount, 64), "64"], 64, "")
        return self._resized(clamped, 64, 32, "")

    def _instruction(self, opcode: str, sources: list[str], bits: Bits, into: str) -> str:
        target = into or self._registers.temporary(register_kind(bits))
        self.lines.append(f"{opcode} {', '.join([target, *sources])};")
        return target

    def _predicate(self, opcode: str, sources: list[str]) -> str:
        target = self._registers.temporary("pred")
        self.lines.append(f"{opcode} {', '.join([target, *sources])};")
        return target

    def _move(self, operand: str, bits: Bits, into: str) -> str:
        return self._instruction(f"mov.b{bits}", [operand], bits, into)

    def _copy(self, opcode: str, operand: str, own: Bits, bits: Bits, into: str) -> str:
        """Copy an operand that only ``mov`` reads (special register, part of the instruction) to a register."""
        if own == bits:
            return self._instruction(opcode, [operand], bits, into)
        return self._resized(self._instruction(opcode, [operand], own, ""), own, bits, into)

    def _resized(self, register: str, own: Bits, bits: Bits, into: str) -> str:
        if own == bits:
            return self._move(register, bits, into) if into else register
        return self._instruction(f"cvt.u{bits}.u{own}", [register], bits, into)
