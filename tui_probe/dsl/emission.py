"""Emit PTX for expressions, and name the registers of variables and intermediate values."""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from tui_probe.dsl.expressions import (
    BinaryOperation,
    Bits,
    Comparison,
    Conditional,
    Expression,
    LogicOperation,
    LowWord,
    Negation,
    Number,
    Operand,
    SpecialRegister,
    UnaryOperation,
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
        self._register_names: dict[str, str] = {}

    def declare(self, variable: str, bits: Bits) -> None:
        """Give a register of the probe a name that no local gets."""
        name = next(name for name in _name_candidates(variable) if name not in self._kinds)
        self._kinds[name] = register_kind(bits)
        self._register_names[variable] = name

    def register_name(self, variable: str) -> str | None:
        """Return the name of a register of the probe, None for any other variable."""
        return self._register_names.get(variable)

    def name_local(self, variable: str, kind: RegisterKind, used_names: set[str]) -> str:
        """Return a name for a local of one snippet, in which those of ``used_names`` are used already."""
        used_names = used_names | set(self._register_names.values())
        name = next(
            name
            for name in _name_candidates(variable)
            if name not in used_names and self._kinds.get(name, kind) == kind
        )
        self._kinds[name] = kind
        return name

    def kind(self, name: str) -> RegisterKind:
        """Return the type of a register that was given a name here."""
        return self._kinds[name]


class SnippetRegisters:
    """The registers that one snippet uses, in the order of their first use."""

    def __init__(self, probe: ProbeRegisters) -> None:
        self._probe = probe
        self._locals: dict[tuple[str, RegisterKind], str] = {}
        self._used_kinds: dict[str, RegisterKind] = {}
        self._temporaries: dict[RegisterKind, int] = {}

    def variable(self, name: str, bits: Bits) -> str:
        """Return the register of a variable."""
        register = self._probe.register_name(name)
        if register is None:
            key = (name, register_kind(bits))
            if key not in self._locals:
                self._locals[key] = self._probe.name_local(name, key[1], set(self._locals.values()))
            register = self._locals[key]
        self._used_kinds[register] = self._probe.kind(register)
        return register

    def temporary(self, kind: RegisterKind) -> str:
        """Return a register that no other part of the statement uses."""
        number = self._temporaries.get(kind, 0)
        self._temporaries[kind] = number + 1
        register = f"{_TEMPORARY_PREFIXES[kind]}{number}"
        self._used_kinds[register] = kind
        return register

    def next_statement(self) -> None:
        """Free the temporary registers of the statement before."""
        self._temporaries.clear()

    def declarations(self) -> list[str]:
        """Return ``.reg`` lines for all registers used, one for each type."""
        lines = []
        for kind in _TEMPORARY_PREFIXES:
            names = [name for name, used_kind in self._used_kinds.items() if used_kind == kind]
            if names:
                lines.append(f".reg .{kind} {', '.join(names)};")
        return lines


def register_kind(bits: Bits) -> RegisterKind:
    """Return the type of a register for a value."""
    return "b64" if bits == 64 else "b32"


def _name_candidates(variable: str) -> Iterator[str]:
    """Yield ``%name``, ``%name_2``, …, without names that PTX or temporaries have."""
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
        """Return a register that no other part of the statement uses."""
        return self._registers.temporary(register_kind(bits))

    def value(self, expression: Expression, bits: Bits, destination: str = "") -> str:
        """Return the low ``bits`` of a value: a number or a register, ``destination`` if that is given."""
        match expression:
            case Number(value):
                number = str(value % (1 << bits))
                return self._move(number, bits, destination) if destination else number
            case Variable(name=name, bits=source_bits):
                return self._resize(self._registers.variable(name, source_bits), source_bits, bits, destination)
            case SpecialRegister(register=register, bits=source_bits):
                return self._copy(f"mov.u{source_bits}", register, source_bits, bits, destination)
            case Operand(helper=helper, bits=source_bits):
                return self._copy(f"mov.b{source_bits or 64}", helper, source_bits or 64, bits, destination)
            case BinaryOperation():
                return self._emit_binary(expression, bits, destination)
            case UnaryOperation(ptx=ptx, operand=operand):
                return self._emit(f"{ptx}{bits}", [self.value(operand, bits)], bits, destination)
            case LowWord(operand=operand):
                if bits == 32:
                    return self.value(operand, 32, destination)
                return self._resize(self.value(operand, 32), 32, 64, destination)
            case Conditional(condition=condition, if_true=chosen, if_false=other):
                test = self.predicate(condition)
                values = [self.value(chosen, bits), self.value(other, bits), test]
                return self._emit(f"selp.b{bits}", values, bits, destination)
            case Comparison() | LogicOperation() | Negation():
                return self._emit(f"selp.b{bits}", ["1", "0", self.predicate(expression)], bits, destination)

    def predicate(self, expression: Expression) -> str:
        """Return a predicate register that holds a truth, which is not a constant."""
        match expression:
            case LogicOperation(ptx=ptx, left=left, right=right):
                return self._emit_predicate(f"{ptx}.pred", [self.predicate(left), self.predicate(right)])
            case Negation(operand=operand):
                return self._emit_predicate("not.pred", [self.predicate(operand)])
            case Comparison(relation=relation, left=left, right=right):
                bits: Bits = 32 if fits_32_bits(left, right) else 64
                return self._emit_predicate(
                    f"setp.{relation}.u{bits}", [self.value(left, bits), self.value(right, bits)]
                )
        raise AssertionError(f"{expression} is not a condition")

    def _emit_binary(self, expression: BinaryOperation, bits: Bits, destination: str) -> str:
        operator, left, right = expression.operator, expression.left, expression.right
        operation_bits: Bits = bits
        if operator.low_bits_suffice:
            if fits_32_bits(expression, left, right):
                operation_bits = 32
        else:
            operation_bits = 32 if fits_32_bits(left) and (operator.is_shift or fits_32_bits(right)) else 64
        left_operand = self.value(left, operation_bits)
        right_operand = self._shift_amount(right) if operator.is_shift else self.value(right, operation_bits)
        opcode = f"{operator.ptx}{operation_bits}"
        if operation_bits == bits:
            return self._emit(opcode, [left_operand, right_operand], bits, destination)
        return self._resize(
            self._emit(opcode, [left_operand, right_operand], operation_bits, ""), operation_bits, bits, destination
        )

    def _shift_amount(self, amount: Expression) -> str:
        """Return a number of bits, as 32 bits; any that is larger shifts everything out."""
        if isinstance(amount, Number):
            return str(min(amount.value, 64))
        if fits_32_bits(amount):
            return self.value(amount, 32)
        limited = self._emit("min.u64", [self.value(amount, 64), "64"], 64, "")
        return self._resize(limited, 64, 32, "")

    def _emit(self, opcode: str, sources: list[str], bits: Bits, destination: str) -> str:
        target = destination or self._registers.temporary(register_kind(bits))
        self.lines.append(f"{opcode} {', '.join([target, *sources])};")
        return target

    def _emit_predicate(self, opcode: str, sources: list[str]) -> str:
        target = self._registers.temporary("pred")
        self.lines.append(f"{opcode} {', '.join([target, *sources])};")
        return target

    def _move(self, operand: str, bits: Bits, destination: str) -> str:
        return self._emit(f"mov.b{bits}", [operand], bits, destination)

    def _copy(self, opcode: str, operand: str, source_bits: Bits, bits: Bits, destination: str) -> str:
        """Copy an operand that only ``mov`` reads (special register, part of the instruction) to a register."""
        if source_bits == bits:
            return self._emit(opcode, [operand], bits, destination)
        return self._resize(self._emit(opcode, [operand], source_bits, ""), source_bits, bits, destination)

    def _resize(self, register: str, source_bits: Bits, bits: Bits, destination: str) -> str:
        if source_bits == bits:
            return self._move(register, bits, destination) if destination else register
        return self._emit(f"cvt.u{bits}.u{source_bits}", [register], bits, destination)
