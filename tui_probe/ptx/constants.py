"""Constant expressions of PTX: ``3 + 4``, ``(1 << 5) - 1``, ``1.0 / 3.0`` (PTX ISA reference, sections 4.5.4 to 4.5.6).

They are evaluated in 64 bits, signed unless an operand is unsigned, or in double precision. Where the reference leaves
a rule open, it is that of NVIDIA's assembler: ``%`` divides without sign, a shift counts modulo 64.
"""

from __future__ import annotations

import operator
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from tui_probe.ptx.lexer import TokenKind, tokenize

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_probe.ptx.lexer import Token

_MASK: Final = (1 << 64) - 1
_LIMIT: Final = 1 << 63
_MAX_DEPTH: Final = 32
"""Nested brackets that are read: a parser that calls itself must not run out of Python's stack."""
_LEVELS: Final[dict[str, int]] = {
    **dict.fromkeys(("||",), 1),
    **dict.fromkeys(("&&",), 2),
    **dict.fromkeys(("|",), 3),
    **dict.fromkeys(("^",), 4),
    **dict.fromkeys(("&",), 5),
    **dict.fromkeys(("==", "!="), 6),
    **dict.fromkeys(("<", ">", "<=", ">="), 7),
    **dict.fromkeys(("<<", ">>"), 8),
    **dict.fromkeys(("+", "-"), 9),
    **dict.fromkeys(("*", "/", "%"), 10),
}
_DOUBLE: Final = frozenset(sign for sign in _LEVELS if len(sign) == 2)
PRODUCT: Final = 10
"""The level of products: what binds closer than a sum."""
_COMPARISONS: Final[dict[str, Callable[[float, float], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_REALS: Final[dict[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


class NotConstantError(Exception):
    """The tokens at hand are not a constant expression."""


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer of 64 bits; ``is_unsigned`` tells its type, .u64 or .s64."""

    value: int
    is_unsigned: bool = False

    @classmethod
    def wrap(cls, value: int, is_unsigned: bool) -> Integer:
        """``value`` modulo 2**64, as one of the type."""
        low_bits = value & _MASK
        return cls(low_bits if is_unsigned or low_bits < _LIMIT else low_bits - (1 << 64), is_unsigned)


Constant: TypeAlias = Integer | float


def literal_text(constant: Constant) -> str:
    """Return the literal that stands for a constant."""
    if isinstance(constant, Integer):
        return str(constant.value)
    return "0d" + struct.pack(">d", constant).hex().upper()


def _divide_integers(a: int, b: int) -> int:
    if not b:
        raise NotConstantError
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_ARITHMETIC: Final[dict[str, Callable[[int, int], int]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide_integers,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}


def _apply_to_reals(sign: str, a: float, b: float) -> Constant:
    if sign in _COMPARISONS:
        return Integer(int(_COMPARISONS[sign](a, b)))
    if sign not in _REALS or (sign == "/" and not b):
        raise NotConstantError
    return _REALS[sign](a, b)


def _apply_to_integers(sign: str, a: Integer, b: Integer) -> Integer:
    if sign in ("&&", "||"):
        result = bool(a.value) and bool(b.value) if sign == "&&" else bool(a.value or b.value)
        return Integer(int(result))
    if sign in ("<<", ">>"):
        count = b.value % 64
        return Integer.wrap(a.value << count if sign == "<<" else a.value >> count, a.is_unsigned)
    if sign == "%":
        if not b.value:
            raise NotConstantError
        return Integer((a.value & _MASK) % (b.value & _MASK), is_unsigned=True)
    is_unsigned = a.is_unsigned or b.is_unsigned
    left, right = Integer.wrap(a.value, is_unsigned).value, Integer.wrap(b.value, is_unsigned).value
    if sign in _COMPARISONS:
        return Integer(int(_COMPARISONS[sign](left, right)))
    return Integer.wrap(_ARITHMETIC[sign](left, right), is_unsigned)


def _apply_binary(sign: str, a: Constant, b: Constant) -> Constant:
    if isinstance(a, Integer) and isinstance(b, Integer):
        return _apply_to_integers(sign, a, b)
    if isinstance(a, Integer) or isinstance(b, Integer):
        raise NotConstantError
    return _apply_to_reals(sign, a, b)


def _apply_unary(sign: str, a: Constant) -> Constant:
    if not isinstance(a, Integer):
        if sign not in "+-":
            raise NotConstantError
        return -a if sign == "-" else a
    if sign == "!":
        return Integer(int(not a.value))
    if sign == "~":
        return Integer.wrap(~a.value, is_unsigned=True)
    return Integer.wrap(-a.value, a.is_unsigned) if sign == "-" else a


def _parse_number(text: str) -> Constant:
    """Return the value of a literal. Raises NotConstantError for one of bits, ``0f3F800000``, as in any expression."""
    if text[:2] in ("0f", "0F", "0d", "0D"):
        raise NotConstantError
    if "." in text or ("e" in text.lower() and text[:2].lower() != "0x"):
        return float(text)
    digits = text.removesuffix("U")
    is_octal = len(digits) > 1 and digits[0] == "0" and digits.isdigit()
    try:
        value = int(digits, 8) if is_octal else int(digits, 0)
    except ValueError:
        raise NotConstantError from None
    return Integer.wrap(value, text.endswith("U") or value >= _LIMIT)


class ConstantReader:
    """Reads constant expressions out of ``tokens``, from ``position`` on. Raises NotConstantError."""

    def __init__(self, tokens: Sequence[Token], position: int = 0) -> None:
        self._tokens = tokens
        self.position = position
        self._depth = 0

    def expression(self) -> Constant:
        """Return the value of a whole expression, also of ``a ? b : c``."""
        condition = self.operation()
        if not self._accept("?"):
            return condition
        if not isinstance(condition, Integer):
            raise NotConstantError
        if_true = self.expression()
        if not self._accept(":"):
            raise NotConstantError
        if_false = self.expression()
        return if_true if condition.value else if_false

    def operation(self, level: int = 1) -> Constant:
        """Return the value of operands joined by operators that bind at least as close as ``level``."""
        left = self.operand()
        while _LEVELS.get(sign := self._operator(), 0) >= level:
            self.position += 2 if sign in _DOUBLE else 1
            left = _apply_binary(sign, left, self.operation(_LEVELS[sign] + 1))
        return left

    def operand(self) -> Constant:
        """Return the value of a literal, signed or cast, or of an expression in parentheses."""
        self._depth += 1
        if self._depth > _MAX_DEPTH or self.position >= len(self._tokens):
            raise NotConstantError
        token = self._tokens[self.position]
        self.position += 1
        if token.kind is TokenKind.NUMBER:
            value = _parse_number(token.text)
        elif token.text == "WARP_SZ":
            value = Integer(32)
        elif token.text in ("+", "-", "!", "~"):
            value = _apply_unary(token.text, self.operand())
        elif token.text == "(":
            value = self._parenthesised()
        else:
            raise NotConstantError
        self._depth -= 1
        return value

    def _parenthesised(self) -> Constant:
        """``(a)``, or a cast: ``(.u64) a``."""
        for cast in (".s64", ".u64"):
            if self._accept(cast):
                if not self._accept(")"):
                    raise NotConstantError
                value = self.operand()
                if not isinstance(value, Integer):
                    raise NotConstantError
                return Integer.wrap(value.value, cast == ".u64")
        inner = self.expression()
        if not self._accept(")"):
            raise NotConstantError
        return inner

    def _accept(self, text: str) -> bool:
        if self.position == len(self._tokens) or self._tokens[self.position].text != text:
            return False
        self.position += 1
        return True

    def _operator(self) -> str:
        """Return the operator here; those of two characters are two tokens without space between."""
        tokens = self._tokens[self.position : self.position + 2]
        if len(tokens) == 2 and tokens[0].end == tokens[1].start and tokens[0].text + tokens[1].text in _DOUBLE:
            return tokens[0].text + tokens[1].text
        return tokens[0].text if tokens else ""


def fold_constant(text: str) -> str:
    """``text`` as a literal if it is a constant expression of more than one, else as it is."""
    tokens = list(tokenize(text))
    if len(tokens) < 2:
        return text
    reader = ConstantReader(tokens)
    try:
        value = reader.expression()
    except NotConstantError:
        return text
    return literal_text(value) if reader.position == len(tokens) else text
