"""Expressions to PTX: in 32 bits wherever the result is the same, in as few registers as there are variables alive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.dsl.expressions import (
    Binary,
    Bits,
    Choice,
    Compare,
    Expression,
    Inverse,
    Logic,
    Low,
    Not,
    Number,
    Operand,
    Special,
    Variable,
    fits_32_bits,
)
from tui_probe.dsl.registers import kind_of

if TYPE_CHECKING:
    from tui_probe.dsl.registers import SnippetRegisters


class Emitter:
    """Writes PTX that computes expressions. ``lines`` grows."""

    def __init__(self, registers: SnippetRegisters) -> None:
        self._registers = registers
        self.lines: list[str] = []

    def temporary(self, bits: Bits) -> str:
        """A register that no other part of the statement uses."""
        return self._registers.temporary(kind_of(bits))

    def value(self, expression: Expression, bits: Bits, into: str = "") -> str:
        """The low ``bits`` of a value: a number or a register, ``into`` if that is given."""
        match expression:
            case Number(value):
                number = str(value % (1 << bits))
                return self._moved(number, bits, into) if into else number
            case Variable(name=name, bits=own):
                return self._resized(self._registers.variable(name, own), own, bits, into)
            case Special(register=register, bits=own):
                return self._copied(f"mov.u{own}", register, own, bits, into)
            case Operand(helper=helper, bits=own):
                return self._copied(f"mov.b{own or 64}", helper, own or 64, bits, into)
            case Binary():
                return self._binary(expression, bits, into)
            case Inverse(ptx=ptx, operand=operand):
                return self._instruction(f"{ptx}{bits}", [self.value(operand, bits)], bits, into)
            case Low(operand=operand):
                if bits == 32:
                    return self.value(operand, 32, into)
                return self._resized(self.value(operand, 32), 32, 64, into)
            case Choice(condition=condition, chosen=chosen, other=other):
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
        raise AssertionError(f"{expression} is no truth")

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
        target = into or self._registers.temporary(kind_of(bits))
        self.lines.append(f"{opcode} {', '.join([target, *sources])};")
        return target

    def _predicate(self, opcode: str, sources: list[str]) -> str:
        target = self._registers.temporary("pred")
        self.lines.append(f"{opcode} {', '.join([target, *sources])};")
        return target

    def _moved(self, operand: str, bits: Bits, into: str) -> str:
        return self._instruction(f"mov.b{bits}", [operand], bits, into)

    def _copied(self, opcode: str, operand: str, own: Bits, bits: Bits, into: str) -> str:
        """What only ``mov`` reads (a special register, a part of the instruction), in a register of its own."""
        if own == bits:
            return self._instruction(opcode, [operand], bits, into)
        return self._resized(self._instruction(opcode, [operand], own, ""), own, bits, into)

    def _resized(self, register: str, own: Bits, bits: Bits, into: str) -> str:
        if own == bits:
            return self._moved(register, bits, into) if into else register
        return self._instruction(f"cvt.u{bits}.u{own}", [register], bits, into)
