"""Expressions of a probe function with the largest value of each, and the operators and their PTX."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_U64: Final = (1 << 64) - 1
MAX_U32: Final = (1 << 32) - 1
Bits: TypeAlias = Literal[32, 64]


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of two numbers.

    ``evaluate`` gives the result mod 2**64; ``bound`` the largest result if the operands are at most the two given.
    ``ptx`` is the instruction, without its width. ``low_bits_suffice`` tells that the low 32 bits of the result
    depend on nothing but the low 32 bits of the operands (of the left one, for shifts).
    """

    symbol: str
    ptx: str
    evaluate: Callable[[int, int], int]
    bound: Callable[[int, int], int]
    low_bits_suffice: bool = True

    @property
    def is_shift(self) -> bool:
        """Return whether the right operand is a number of bits."""
        return self.symbol in ("<<", ">>")


def _shift_left(left: int, right: int) -> int:
    return left << right & MAX_U64 if right < 64 else 0


def _shift_right(left: int, right: int) -> int:
    return left >> min(right, 64)


def _sum_bound(left: int, right: int) -> int:
    return min(left + right, MAX_U64)


def _product_bound(left: int, right: int) -> int:
    return min(left * right, MAX_U64)


def _union_bound(left: int, right: int) -> int:
    return (1 << max(left, right).bit_length()) - 1


def _any_bound(_left: int, _right: int) -> int:
    return MAX_U64


def _left_bound(left: int, _right: int) -> int:
    return left


def _remainder_bound(left: int, right: int) -> int:
    return min(left, max(right - 1, 0))


def _shifted_bound(left: int, right: int) -> int:
    return min(left << right, MAX_U64) if right < 64 else MAX_U64


BINARY: Final[dict[type[ast.operator], Operator]] = {
    ast.Add: Operator("+", "add.u", lambda a, b: (a + b) & MAX_U64, _sum_bound),
    ast.Sub: Operator("-", "sub.u", lambda a, b: (a - b) & MAX_U64, _any_bound),
    ast.Mult: Operator("*", "mul.lo.u", lambda a, b: (a * b) & MAX_U64, _product_bound),
    ast.FloorDiv: Operator("//", "div.u", lambda a, b: a // b, _left_bound, low_bits_suffice=False),
    ast.Mod: Operator("%", "rem.u", lambda a, b: a % b, _remainder_bound, low_bits_suffice=False),
    ast.LShift: Operator("<<", "shl.b", _shift_left, _shifted_bound),
    ast.RShift: Operator(">>", "shr.u", _shift_right, _left_bound, low_bits_suffice=False),
    ast.BitAnd: Operator("&", "and.b", lambda a, b: a & b, min),
    ast.BitOr: Operator("|", "or.b", lambda a, b: a | b, _union_bound),
    ast.BitXor: Operator("^", "xor.b", lambda a, b: a ^ b, _union_bound),
}

BITWISE_AND: Final = BINARY[ast.BitAnd]
SHIFT_RIGHT: Final = BINARY[ast.RShift]


@dataclass(frozen=True, slots=True)
class Relation:
    """A comparison of unsigned numbers; ``opposite`` is the PTX of what holds where this one does not."""

    ptx: str
    opposite: str
    evaluate: Callable[[int, int], bool]


COMPARISONS: Final[dict[type[ast.cmpop], Relation]] = {
    ast.Eq: Relation("eq", "ne", lambda a, b: a == b),
    ast.NotEq: Relation("ne", "eq", lambda a, b: a != b),
    ast.Lt: Relation("lt", "ge", lambda a, b: a < b),
    ast.LtE: Relation("le", "gt", lambda a, b: a <= b),
    ast.Gt: Relation("gt", "le", lambda a, b: a > b),
    ast.GtE: Relation("ge", "lt", lambda a, b: a >= b),
}
OPPOSITE: Final = {relation.ptx: relation.opposite for relation in COMPARISONS.values()}


@dataclass(frozen=True, slots=True)
class Number:
    """A constant below 2**64."""

    value: int

    @property
    def bound(self) -> int:
        """The largest value."""
        return self.value


@dataclass(frozen=True, slots=True)
class Variable:
    """A local, a loop variable or a register of the probe, by its name in the file."""

    name: str
    bits: Bits
    bound: int


@dataclass(frozen=True, slots=True)
class SpecialRegister:
    """A special register of PTX. A ``clock`` gives another value at each reading."""

    register: str
    bits: Bits
    bound: int
    is_clock: bool = False


@dataclass(frozen=True, slots=True)
class Operand:
    """A part of the probed instruction by its helper. ``bits`` is 0 where only the kernel tells."""

    helper: str
    bits: Literal[0, 32, 64]

    @property
    def bound(self) -> int:
        """The largest value."""
        return MAX_U32 if self.bits == 32 else MAX_U64


@dataclass(frozen=True, slots=True)
class BinaryOperation:
    """An operator applied to two numbers."""

    operator: Operator
    left: Expression
    right: Expression
    bound: int


@dataclass(frozen=True, slots=True)
class UnaryOperation:
    """``~x`` and ``-x``; ``ptx`` is ``not.b`` or ``neg.s``."""

    ptx: str
    operand: Expression
    bound: int = MAX_U64


@dataclass(frozen=True, slots=True)
class LowWord:
    """``u32(x)``."""

    operand: Expression
    bound: int = MAX_U32


@dataclass(frozen=True, slots=True)
class Conditional:
    """``chosen if condition else other``."""

    condition: Expression
    if_true: Expression
    if_false: Expression

    @property
    def bound(self) -> int:
        """The largest value."""
        return max(self.if_true.bound, self.if_false.bound)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison; ``relation`` is PTX's name of it."""

    relation: str
    left: Expression
    right: Expression
    bound: int = 1


@dataclass(frozen=True, slots=True)
class LogicOperation:
    """``and`` and ``or`` of two truths."""

    ptx: Literal["and", "or"]
    left: Expression
    right: Expression
    bound: int = 1


@dataclass(frozen=True, slots=True)
class Negation:
    """The opposite of a truth."""

    operand: Expression
    bound: int = 1


Expression: TypeAlias = (
    Number
    | Variable
    | SpecialRegister
    | Operand
    | BinaryOperation
    | UnaryOperation
    | LowWord
    | Conditional
    | Comparison
    | LogicOperation
    | Negation
)


def fits_32_bits(*expressions: Expression) -> bool:
    """Return whether all values are below 2**32 in any case."""
    return all(expression.bound <= MAX_U32 for expression in expressions)


def parts(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and all that it is made of."""
    yield expression
    for name in ("left", "right", "operand", "condition", "chosen", "other"):
        if (part := getattr(expression, name, None)) is not None:
            yield from parts(part)


def reads_clock(expression: Expression) -> bool:
    """Return whether it matters when the expression is computed."""
    return any(isinstance(part, SpecialRegister) and part.is_clock for part in parts(expression))
