"""Integer arithmetic (PTX ISA reference, section 9.7.1), and sums with carry (9.7.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.simgpu.executor.scalars import (
    BOOL,
    S64,
    SIGNED,
    TYPES,
    U32,
    U64,
    UNSIGNED,
    DType,
    ScalarType,
    Value,
    join_pairs,
    last_type,
    operands_of,
    split_pairs,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.ptx.tree import Instruction
    from tui_probe.simgpu.executor.operands import Binder
    from tui_probe.simgpu.executor.operations import Operation, ResultOperand, SourceOperand
    from tui_probe.simgpu.executor.threads import ThreadGroup

_HALF_BITS: Final = np.uint64(32)
_LOW_MASK: Final = np.uint64(0xFFFFFFFF)


def wide_type(kind: ScalarType) -> ScalarType:
    """The type of twice the width."""
    return TYPES[f"{kind.kind}{2 * kind.bits}"]


def high_product(a: Value, b: Value) -> Value:
    """The upper half of the product of two integers of the same type."""
    bits = 8 * a.dtype.itemsize
    if bits < 64:
        wide_dtype = (SIGNED if a.dtype.kind == "i" else UNSIGNED)[2 * bits]
        product: Value = (a.astype(wide_dtype) * b.astype(wide_dtype)) >> wide_dtype.type(bits)
        return product.astype(a.dtype)
    upper_half = _upper_product_half(a.view(U64), b.view(U64)).view(a.dtype)
    if a.dtype.kind == "i":
        # Two's complement: a negative factor stands for itself plus 2**64.
        upper_half = upper_half - np.where(a < 0, b, 0) - np.where(b < 0, a, 0)
    return upper_half.astype(a.dtype)


def _upper_product_half(a: Value, b: Value) -> Value:
    a_low, a_high, b_low, b_high = a & _LOW_MASK, a >> _HALF_BITS, b & _LOW_MASK, b >> _HALF_BITS
    middle = a_high * b_low + ((a_low * b_low) >> _HALF_BITS)
    lower_middle = a_low * b_high + (middle & _LOW_MASK)
    result: Value = a_high * b_high + (middle >> _HALF_BITS) + (lower_middle >> _HALF_BITS)
    return result


def _wide_multiplication(wide_dtype: DType) -> Callable[[Value, Value], Value]:
    def multiply(a: Value, b: Value) -> Value:
        product: Value = a.astype(wide_dtype) * b.astype(wide_dtype)
        return product

    return multiply


def divide(a: Value, b: Value) -> Value:
    """The quotient, towards zero. Of a division by zero, whose result PTX leaves open, all bits are ones."""
    is_zero = b == 0
    divisor = np.where(is_zero, b.dtype.type(1), b)
    if a.dtype.kind == "u":
        quotient = a // divisor
    else:
        unsigned = UNSIGNED[8 * a.dtype.itemsize]
        # Magnitudes are unsigned, as that of the most negative number needs all bits.
        size = np.abs(a).view(unsigned) // np.abs(divisor).view(unsigned)
        quotient = np.where((a < 0) != (divisor < 0), -size, size).view(a.dtype)
    all_ones = np.array(-1).astype(a.dtype)
    return np.where(is_zero, all_ones, quotient)


def remainder(a: Value, b: Value) -> Value:
    """Return the remainder of ``divide``, with the sign of ``a``; ``a`` itself for a division by zero."""
    zero = b == 0
    return np.where(zero, a, np.fmod(a, np.where(zero, b.dtype.type(1), b)))


def _saturated_function(function: Callable[..., Value]) -> Callable[..., Value]:
    """32-bit signed arithmetic that saturates (``.sat``)."""
    limits = np.iinfo(np.int32)

    def saturate(*operands: Value) -> Value:
        result = function(*(operand.astype(S64) for operand in operands))
        return np.clip(result, limits.min, limits.max).astype(np.int32)

    return saturate


def _low_24_bits(value: Value) -> Value:
    """The low 24 bits, sign-extended for a signed type."""
    shift = value.dtype.type(8)
    result: Value = (value << shift) >> shift
    return result


def _multiplication_24(part: str) -> Callable[[Value, Value], Value]:
    def multiply(a: Value, b: Value) -> Value:
        wide_dtype = S64 if a.dtype.kind == "i" else U64
        product = _low_24_bits(a).astype(wide_dtype) * _low_24_bits(b).astype(wide_dtype)
        return (product >> wide_dtype.type(16 if part == "hi" else 0)).astype(a.dtype)

    return multiply


def multiplication(part: str, kind: ScalarType) -> Callable[[Value, Value], Value]:
    """Multiplication that keeps the ``lo``, ``hi`` or ``wide`` part of the product."""
    if part == "lo":
        return np.multiply
    return high_product if part == "hi" else _wide_multiplication(wide_type(kind).dtype)


def _halfword_function(function: Callable[..., Value], kind: ScalarType) -> Callable[..., Value]:
    """``function`` on both halves of 32-bit registers (``.u16x2``, ``.s16x2``)."""
    dtype = TYPES[kind.name.removesuffix("x2")].dtype

    def apply_to_halves(*operands: Value) -> Value:
        return join_pairs(function(*(split_pairs(operand, dtype) for operand in operands)), U32)

    return apply_to_halves


def simple_builder(function: Callable[..., Any], count: int = 3) -> Callable[[Instruction, Binder], Operation]:
    """A builder for ``function`` of all sources, in the instruction's type. ``count`` is that of its operands."""

    def build(instruction: Instruction, bind: Binder) -> Operation:
        kind = last_type(instruction)
        typed_function: Callable[..., Value] = function
        if "sat" in instruction.modifiers:
            typed_function = _saturated_function(function)
        if kind.kind == "x2":
            typed_function = _halfword_function(function, kind)
        target, *sources = operands_of(instruction, count)
        return bind.build_pure(
            typed_function, bind.target(target, kind), *(bind.source(source, kind) for source in sources)
        )

    return build


def build_multiply(instruction: Instruction, bind: Binder) -> Operation:
    """``mul.lo|hi|wide.type d, a, b``."""
    part, kind = instruction.modifiers[0], last_type(instruction)
    target, a, b = operands_of(instruction, 3)
    result_kind = wide_type(kind) if part == "wide" else kind
    return bind.build_pure(
        multiplication(part, kind), bind.target(target, result_kind), bind.source(a, kind), bind.source(b, kind)
    )


def build_multiply_add(instruction: Instruction, bind: Binder) -> Operation:
    """``mad.lo|hi|wide.type d, a, b, c``."""
    part, kind = instruction.modifiers[0], last_type(instruction)
    if "cc" in instruction.modifiers:
        return _build_carry_product(instruction, bind, takes_carry=False)
    target, a, b, c = operands_of(instruction, 4)
    result_kind = wide_type(kind) if part == "wide" else kind
    multiply = multiplication(part, kind)

    def multiply_add(x: Value, y: Value, z: Value) -> Value:
        total: Value = multiply(x, y) + z
        return total

    typed_function = (
        _saturated_function(lambda x, y, z: ((x * y) >> 32) + z) if "sat" in instruction.modifiers else multiply_add
    )
    sources = (bind.source(a, kind), bind.source(b, kind), bind.source(c, result_kind))
    return bind.build_pure(typed_function, bind.target(target, result_kind), *sources)


def _build_product24(instruction: Instruction, bind: Binder) -> Operation:
    """``mul24.lo|hi`` and ``mad24.lo|hi``: products of the low 24 bits."""
    kind = last_type(instruction)
    multiply = _multiplication_24(instruction.modifiers[0])
    target, *operands = operands_of(instruction, 3 if instruction.opcode == "mul24" else 4)
    sources = [bind.source(operand, kind) for operand in operands]
    if instruction.opcode == "mul24":
        return bind.build_pure(multiply, bind.target(target, kind), *sources)
    return bind.build_pure(lambda a, b, c: multiply(a, b) + c, bind.target(target, kind), *sources)


def _absolute_difference(a: Value, b: Value, c: Value) -> Value:
    total: Value = np.where(a < b, b - a, a - b) + c
    return total


def _carry_register(bind: Binder) -> int:
    """The register that holds the carry of ``.cc`` instructions."""
    return bind.layout.flag_index("carry")


def carry_sum_builder(*, subtracts: bool, takes_carry: bool) -> Callable[[Instruction, Binder], Operation]:
    """``add.cc``, ``addc{.cc}``, ``sub.cc``, ``subc{.cc}``: ``takes_carry`` adds the carry of an earlier one."""

    def build(instruction: Instruction, bind: Binder) -> Operation:
        kind = TYPES[f"u{last_type(instruction).bits}"]
        target, a, b = operands_of(instruction, 3)
        sources = [bind.source(a, kind), bind.source(b, kind)]
        carry_in = None if takes_carry else subtracts
        return _build_with_carry(
            bind, bind.target(target, kind), sources, _carry_sum(subtracts=subtracts), instruction, carry_in
        )

    return build


def _carry_sum(*, subtracts: bool) -> Callable[[Value, Value, Value], tuple[Value, Value]]:
    """The sum or difference with a carry (0 or 1) coming in, and the one going out.

    A difference is a + ~b + carry, as the machine computes it: a carry of 0 is a borrow. Nothing else tells what
    ``addc`` finds after ``sub.cc``; for sm_80 ptxas makes of it the carry of ``IADD3 a, -b``.
    """

    def add(a: Value, b: Value, carry: Value) -> tuple[Value, Value]:
        total = a + b
        result = total + carry
        return result, (total < a) | (result < total)

    def subtract(a: Value, b: Value, carry: Value) -> tuple[Value, Value]:
        return add(a, ~b, carry)

    return subtract if subtracts else add


def _build_carry_product(instruction: Instruction, bind: Binder, *, takes_carry: bool) -> Operation:
    """``mad.lo|hi.cc``, ``madc.lo|hi{.cc}``: ``takes_carry`` adds the carry of an earlier instruction."""
    kind = last_type(instruction)
    unsigned = TYPES[f"u{kind.bits}"]
    target, a, b, c = operands_of(instruction, 4)
    multiply = multiplication(instruction.modifiers[0], kind)
    add = _carry_sum(subtracts=False)

    def multiply_add(x: Value, y: Value, z: Value, carry: Value) -> tuple[Value, Value]:
        return add(multiply(x, y).view(unsigned.dtype), z, carry)

    sources = [bind.source(a, kind), bind.source(b, kind), bind.source(c, unsigned)]
    return _build_with_carry(
        bind, bind.target(target, unsigned), sources, multiply_add, instruction, None if takes_carry else False
    )


def _build_with_carry(
    bind: Binder,
    target: ResultOperand,
    sources: list[SourceOperand],
    function: Callable[..., tuple[Value, Value]],
    instruction: Instruction,
    carry_in: bool | None,
) -> Operation:
    """Build an operation with a carry. ``carry_in`` is the one that it begins with, None for that of an earlier
    instruction.
    """
    flag = _carry_register(bind)
    writes_carry = "cc" in instruction.modifiers
    if carry_in is None:
        bind.effects.source_registers.add(flag)
    if writes_carry:
        bind.effects.target_registers.add(flag)
    bind.effects.is_pure = True

    def run(group: ThreadGroup) -> None:
        registers = group.registers
        values = [source.read(registers) for source in sources]
        carry_value = registers[flag] if carry_in is None else carry_in
        result, carry = function(*values, np.asarray(carry_value).astype(values[0].dtype))
        target.write(registers, result)
        if writes_carry:
            registers[flag] = np.asarray(carry, BOOL)

    return run


def _build_carry_multiply(instruction: Instruction, bind: Binder) -> Operation:
    return _build_carry_product(instruction, bind, takes_carry=True)


BUILDERS: Final[dict[str, Callable[[Instruction, Binder], Operation]]] = {
    "div": simple_builder(divide),
    "rem": simple_builder(remainder),
    "neg": simple_builder(np.negative, 2),
    "abs": simple_builder(np.abs, 2),
    "min": simple_builder(np.minimum),
    "max": simple_builder(np.maximum),
    "add": simple_builder(np.add),
    "sub": simple_builder(np.subtract),
    "sad": simple_builder(_absolute_difference, 4),
    "mul": build_multiply,
    "mad": build_multiply_add,
    "mul24": _build_product24,
    "mad24": _build_product24,
    "add.cc": carry_sum_builder(subtracts=False, takes_carry=False),
    "addc": carry_sum_builder(subtracts=False, takes_carry=True),
    "sub.cc": carry_sum_builder(subtracts=True, takes_carry=False),
    "subc": carry_sum_builder(subtracts=True, takes_carry=True),
    "madc": _build_carry_multiply,
}
