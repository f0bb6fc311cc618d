"""Expressions of a probe function, checked and with the largest value that each can have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from tui_probe.dsl.arithmetic import MAX_U32, MAX_U64, Operator

if TYPE_CHECKING:
    from collections.abc import Iterator

Bits: TypeAlias = Literal[32, 64]


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
class Special:
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
class Binary:
    """An operator applied to two numbers."""

    operator: Operator
    left: Expression
    right: Expression
    bound: int


@dataclass(frozen=True, slots=True)
class Inverse:
    """``~x`` and ``-x``; ``ptx`` is ``not.b`` or ``neg.s``."""

    ptx: str
    operand: Expression
    bound: int = MAX_U64


@dataclass(frozen=True, slots=True)
class Low:
    """``u32(x)``."""

    operand: Expression
    bound: int = MAX_U32


@dataclass(frozen=True, slots=True)
class Choice:
    """``chosen if condition else other``."""

    condition: Expression
    chosen: Expression
    other: Expression

    @property
    def bound(self) -> int:
        """The largest value."""
        return max(self.chosen.bound, self.other.bound)


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison; ``relation`` is PTX's name of it."""

    relation: str
    left: Expression
    right: Expression
    bound: int = 1


@dataclass(frozen=True, slots=True)
class Logic:
    """``and`` and ``or`` of two truths."""

    ptx: Literal["and", "or"]
    left: Expression
    right: Expression
    bound: int = 1


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of a truth."""

    operand: Expression
    bound: int = 1


Expression: TypeAlias = Number | Variable | Special | Operand | Binary | Inverse | Low | Choice | Compare | Logic | Not


def fits_32_bits(*expressions: Expression) -> bool:
    """Tell whether all values are below 2**32 whatever happens."""
    return all(expression.bound <= MAX_U32 for expression in expressions)


def parts(expression: Expression) -> Iterator[Expression]:
    """An expression and all that it is made of."""
    yield expression
    for name in ("left", "right", "operand", "condition", "chosen", "other"):
        if (part := getattr(expression, name, None)) is not None:
            yield from parts(part)


def reads_clock(expression: Expression) -> bool:
    """Tell whether it matters when the expression is computed."""
    return any(isinstance(part, Special) and part.is_clock for part in parts(expression))
