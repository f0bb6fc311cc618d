"""Build checked expressions and bounded loops from Python's syntax tree, with constants folded."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from tui_probe.dsl.expressions import (
    BINARY,
    BITWISE_AND,
    COMPARISONS,
    MAX_U32,
    MAX_U64,
    OPPOSITE,
    SHIFT_RIGHT,
    BinaryOperation,
    Comparison,
    Conditional,
    Expression,
    LogicOperation,
    LowWord,
    Negation,
    Number,
    Operator,
    SpecialRegister,
    UnaryOperation,
    fits_32_bits,
)
from tui_probe.dsl.program import ProbeSource, source_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tui_probe.dsl.expressions import Bits

REGISTER_FUNCTIONS: Final = {
    "clock": SpecialRegister("%clock64", 64, MAX_U64, is_clock=True),
    "clock32": SpecialRegister("%clock", 32, MAX_U32, is_clock=True),
    "time": SpecialRegister("%globaltimer", 64, MAX_U64, is_clock=True),
    "cuid": SpecialRegister("%smid", 32, MAX_U32),
    "lane": SpecialRegister("%laneid", 32, 31),
    "warp": SpecialRegister("%warpid", 32, MAX_U32),
}

_ALTERNATIVES: Final[dict[type[ast.AST], str]] = {
    ast.Div: "'/' divides real numbers; write '//'",
    ast.Pow: "'**' is not supported; write '<<' for a power of two, or multiply",
    ast.MatMult: "'@' multiplies matrices; write '*'",
}
_CALLS: Final = ", ".join(f"{name}()" for name in REGISTER_FUNCTIONS)
_ALLOWED_EXPRESSIONS: Final = (
    "an expression may contain numbers, names, operators, comparisons and the functions of the probe language"
)
MAX_ITERATIONS: Final = 1024
"""Maximum iterations of a loop, and of nested loops together: a probe runs at each of its positions in each thread."""


class ExpressionBuilder:
    """Builds expressions; ``resolve`` says what a name stands for, or raises ProbeFileError."""

    def __init__(self, source: ProbeSource, resolve: Callable[[ast.Name], Expression]) -> None:
        self._source = source
        self._resolve = resolve

    def build(self, node: ast.expr) -> Expression:
        """Return the expression of a syntax tree. Raises ProbeFileError."""
        match node:
            case ast.Constant():
                return self._number(node)
            case ast.Name():
                return self._resolve(node)
            case ast.BinOp():
                return self._binary(node)
            case ast.UnaryOp():
                return self._unary(node)
            case ast.Compare():
                return self._compare(node)
            case ast.BoolOp(op=op, values=values):
                return _combine_truths(
                    "and" if isinstance(op, ast.And) else "or", [as_truth(self.build(value)) for value in values]
                )
            case ast.IfExp(test=test, body=body, orelse=alternative):
                return _build_conditional(as_truth(self.build(test)), self.build(body), self.build(alternative))
            case ast.Call():
                return self._call(node)
        raise self._source.error(node, f"'{source_text(node)}' cannot be computed in a probe: {_ALLOWED_EXPRESSIONS}")

    def _number(self, node: ast.Constant) -> Number:
        if type(node.value) is not int:
            raise self._source.error(
                node, f"{source_text(node)} is not a whole number; write a number such as 4 or 0xff"
            )
        if node.value > MAX_U64:
            raise self._source.error(node, f"this number has {node.value.bit_length()} bits; it must be below 2**64")
        return Number(node.value)

    def _binary(self, node: ast.BinOp) -> Expression:
        operator = BINARY.get(type(node.op))
        if operator is None:
            raise self._source.error(node, f"in '{source_text(node)}' {_ALTERNATIVES[type(node.op)]}")
        left, right = self.build(node.left), self.build(node.right)
        if operator.symbol in ("//", "%") and right == Number(0):
            raise self._source.error(node, f"'{source_text(node)}' divides by 0")
        return _apply_operator(operator, left, right)

    def _unary(self, node: ast.UnaryOp) -> Expression:
        operand = self.build(node.operand)
        match node.op:
            case ast.Not():
                return negate(as_truth(operand))
            case ast.UAdd():
                return operand
            case ast.Invert():
                return (
                    Number(operand.value ^ MAX_U64) if isinstance(operand, Number) else UnaryOperation("not.b", operand)
                )
            case _:
                return (
                    Number(-operand.value & MAX_U64)
                    if isinstance(operand, Number)
                    else UnaryOperation("neg.s", operand)
                )

    def _compare(self, node: ast.Compare) -> Expression:
        if len(node.ops) > 1:
            raise self._source.error(node, f"in '{source_text(node)}' compare two values at a time: 'a < b and b < c'")
        relation = COMPARISONS.get(type(node.ops[0]))
        if relation is None:
            raise self._source.error(node, f"in '{source_text(node)}': only == != < <= > >= can compare numbers")
        left, right = self.build(node.left), self.build(node.comparators[0])
        if isinstance(left, Number) and isinstance(right, Number):
            return Number(int(relation.evaluate(left.value, right.value)))
        return Comparison(relation.ptx, left, right)

    def _call(self, node: ast.Call) -> Expression:
        match node:
            case ast.Call(func=ast.Name(id=name), args=[], keywords=[]) if name in REGISTER_FUNCTIONS:
                return REGISTER_FUNCTIONS[name]
            case ast.Call(func=ast.Name(id="u64"), args=[argument], keywords=[]):
                return self.build(argument)
            case ast.Call(func=ast.Name(id="u32"), args=[argument], keywords=[]):
                return _take_low_word(self.build(argument))
            case ast.Call(func=ast.Attribute(attr="save" | "add" | "locate")):
                raise self._source.error(node, f"'{source_text(node)}' gives no value; write it on a line of its own")
        raise self._source.error(
            node, f"'{source_text(node)}' is unknown: a probe can call {_CALLS}, u32(x) and u64(x)"
        )


def constant_value(node: ast.expr, constants: Mapping[str, int], source: ProbeSource) -> int:
    """Return the value below 2**64 of an expression of numbers and named constants. Raises ProbeFileError."""

    def resolve(name: ast.Name) -> Expression:
        if name.id not in constants:
            raise source.error(
                name, f"{name.id} is not a constant; assign a number before this line, e.g. {name.id} = 4"
            )
        return Number(constants[name.id])

    value = ExpressionBuilder(source, resolve).build(node)
    if not isinstance(value, Number):
        raise source.error(
            node, f"'{source_text(node)}' is not a constant; only numbers and named constants are allowed here"
        )
    return value.value


def as_truth(expression: Expression) -> Expression:
    """Return an expression as 1 or 0: any number but 0 is true."""
    match expression:
        case Number(value):
            return Number(int(value != 0))
        case Comparison() | LogicOperation() | Negation():
            return expression
    return Comparison("ne", expression, Number(0))


def negate(expression: Expression) -> Expression:
    """Return the truth that holds where another one does not."""
    match expression:
        case Number(value):
            return Number(1 - value)
        case Comparison(relation, left, right):
            return Comparison(OPPOSITE[relation], left, right)
        case Negation(operand):
            return operand
    return Negation(expression)


def _combine_truths(operation: Literal["and", "or"], truths: list[Expression]) -> Expression:
    """Combine truths from left to right, and leave out those that are constant."""
    neutral, absorbing = (Number(1), Number(0)) if operation == "and" else (Number(0), Number(1))
    result: Expression = neutral
    for truth in truths:
        if absorbing in (result, truth):
            result = absorbing
        elif result == neutral:
            result = truth
        elif truth != neutral:
            result = LogicOperation(operation, result, truth)
    return result


def _apply_operator(operator: Operator, left: Expression, right: Expression) -> Expression:
    if not isinstance(right, Number):
        return BinaryOperation(operator, left, right, operator.bound(left.bound, right.bound))
    if isinstance(left, Number):
        return Number(operator.evaluate(left.value, right.value))
    if operator.symbol in ("//", "%") and right.value.bit_count() == 1:
        return _apply_power_of_two(operator, left, right.value)
    if operator.symbol in ("//", ">>"):
        return BinaryOperation(operator, left, right, operator.evaluate(left.bound, right.value))
    return BinaryOperation(operator, left, right, operator.bound(left.bound, right.value))


def _apply_power_of_two(operator: Operator, left: Expression, divisor: int) -> Expression:
    """Divide by a power of two in one instruction: other divisions take tens of them."""
    if operator.symbol == "//":
        return _apply_operator(SHIFT_RIGHT, left, Number(divisor.bit_length() - 1))
    return _apply_operator(BITWISE_AND, left, Number(divisor - 1))


def _build_conditional(condition: Expression, if_true: Expression, if_false: Expression) -> Expression:
    if isinstance(condition, Number):
        return if_true if condition.value else if_false
    return Conditional(condition, if_true, if_false)


def _take_low_word(expression: Expression) -> Expression:
    if isinstance(expression, Number):
        return Number(expression.value & MAX_U32)
    return expression if fits_32_bits(expression) else LowWord(expression)


@dataclass(frozen=True, slots=True)
class Loop:
    """``for name in range(…)``: ``values`` are what the name takes on, at least one, none negative."""

    name: str
    values: range

    @property
    def bound(self) -> int:
        """The largest value."""
        return max(self.values[0], self.values[-1])

    @property
    def bits(self) -> Bits:
        """The width of the register that counts."""
        return 32 if self.bound < 1 << 32 else 64


def read_loop(node: ast.For, constants: Mapping[str, int], source: ProbeSource) -> Loop:
    """Return the loop of a ``for`` statement. Raises ProbeFileError."""
    match node:
        case ast.For(
            target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=bounds, keywords=[]), orelse=[]
        ) if 1 <= len(bounds) <= 3:
            numbers = [_signed_value(constant_value(bound, constants, source)) for bound in bounds]
        case _:
            raise source.error(
                node, f"'{source_text(node).partition(':')[0]}': write a loop as 'for i in range(4):', without else"
            )
    if len(numbers) == 3 and numbers[2] == 0:
        raise source.error(node, "the step of range is 0; it must be another number")
    values = range(*numbers)
    if not values:
        raise source.error(node, f"{values} is empty: the loop never runs; remove the loop")
    if values[0] < 0 or values[-1] < 0:
        raise source.error(
            node, f"{name} would be negative in {values}; numbers are unsigned, so use a range without negative values"
        )
    if len(values) > MAX_ITERATIONS:
        raise source.error(node, f"{values} has {len(values)} values; at most {MAX_ITERATIONS} are allowed")
    return Loop(name, values)


def _signed_value(number: int) -> int:
    """Return a bound of ``range`` with its sign, which may be negative: ``range(3, -1, -1)``."""
    return number - (MAX_U64 + 1) if number >> 63 else number
