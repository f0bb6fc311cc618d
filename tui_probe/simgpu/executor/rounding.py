"""Rounding that NumPy does not have: fused multiply-add, directed rounding, bfloat16.

Sums are computed in double precision and *rounded to odd*: an inexact sum gets a last bit of one. Such a sum tells on
which side of every shorter number the exact one lies, so rounding it once more gives the correctly
rounded result (S. Boldo, G. Melquiond: Emulation of FMA and correctly rounded sums: proved algorithms using
rounding to odd, IEEE Transactions on Computers 57, 2008).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.simgpu.executor.scalars import F32, F64, S64, U16, U32, U64, DType, Value

if TYPE_CHECKING:
    from collections.abc import Callable

_HALFWAY_MASK: Final = np.uint64((1 << 29) - 1)
"""Bits that a float lacks of a double."""
_HALFWAY: Final = np.uint64(1 << 28)
"""Half of a float's last place, in these bits: of a tie the even neighbour is taken."""
_SPLITTER: Final = 2.0**27 + 1
"""Dekker's number: it splits a double into two parts of 26 bits, whose products are exact."""


def two_sum(a: Value, b: Value) -> tuple[Value, Value]:
    """The double nearest to a + b, and the exact rest."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: Value, b: Value) -> tuple[Value, Value]:
    """The double nearest to a · b, and the exact rest (T. J. Dekker, 1971)."""
    product = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def _halves(value: Value) -> tuple[Value, Value]:
    scaled_value = value * _SPLITTER
    upper = scaled_value - (scaled_value - value)
    return upper, value - upper


def odd_sum(a: Value, b: Value) -> Value:
    """a + b rounded to odd, in double precision."""
    total, error = two_sum(a, b)
    bits = total.view(S64)
    step = np.where((error > 0) == (total > 0), 1, -1)
    is_inexact = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    result: Value = np.where(is_inexact, bits + step, bits).view(F64)
    return result


def directed_sum(a: Value, b: Value, mode: str) -> Value:
    """a + b in double precision by rounding mode ``rz``, ``rm`` or ``rp``; neither may overflow."""
    total, error = two_sum(a, b)
    lower_neighbour, upper_neighbour = np.nextafter(total, -np.inf), np.nextafter(total, np.inf)
    if mode == "rz":
        return np.where(
            (error < 0) & (total > 0), lower_neighbour, np.where((error > 0) & (total < 0), upper_neighbour, total)
        )
    return np.where(error < 0, lower_neighbour, total) if mode == "rm" else np.where(error > 0, upper_neighbour, total)


def fma32(a: Value, b: Value, c: Value) -> Value:
    """a · b + c of float32, rounded once, to nearest even."""
    total = _apply_in_place(a.astype(F64), b.astype(F64), np.multiply)
    total = _apply_in_place(total, c.astype(F64), np.add)
    # Rounding twice is wrong only where the first rounding landed halfway between two singles, or where
    # singles are subnormal.
    try:
        with np.errstate(under="raise"):
            result: Value = total.astype(F32)
    except FloatingPointError:
        return fma_odd(a, b, c).astype(F32)
    bits = total.view(U64)
    bits &= _HALFWAY_MASK
    return fma_odd(a, b, c).astype(F32) if np.count_nonzero(bits == _HALFWAY) else result


def _apply_in_place(a: Value, b: Value, function: np.ufunc) -> Value:
    """``function`` of both, in the memory of ``a`` where the result fits into it."""
    result: Value = function(a, b, out=a) if a.ndim else function(a, b)
    return result


def fma_odd(a: Value, b: Value, c: Value) -> Value:
    """a · b + c of float32 or shorter numbers, as a double rounded to odd."""
    return odd_sum(a.astype(F64) * b.astype(F64), c.astype(F64))


def fma64(a: Value, b: Value, c: Value) -> Value:
    """a · b + c of float64, rounded once, to nearest even."""
    product, error = two_product(a, b)
    lower_sum, lowest_error = two_sum(c, error)
    upper_sum, middle_error = two_sum(product, lower_sum)
    result = upper_sum + odd_sum(middle_error, lowest_error)
    # Below 2**500 no product or sum overflows; above 2**-900 the errors, 106 bits smaller, are not subnormal.
    limit = 2.0**500
    is_safe = (np.abs(a) < limit) & (np.abs(b) < limit) & (np.abs(c) < limit)
    is_safe &= (np.abs(product) > 2.0**-900) & (np.abs(result) > 2.0**-900)
    if is_safe.all():
        return result
    # Overflow or underflow on the way, infinities, zeros: one by one, in rational numbers.
    operands = np.broadcast_arrays(a, b, c)
    result = np.array(np.broadcast_to(result, operands[0].shape))
    for index in np.argwhere(~np.broadcast_to(is_safe, operands[0].shape)):
        position = tuple(index)
        result[position] = _fma_exact(*(float(operand[position]) for operand in operands))
    return result


def _fma_exact(a: float, b: float, c: float) -> float:
    if not np.isfinite([a, b, c]).all():
        return float(np.float64(a) * np.float64(b) + np.float64(c))
    exact_result = Fraction(a) * Fraction(b) + Fraction(c)
    if not exact_result:
        # The sign of a zero is as of the unfused sum, unless that product underflowed.
        product = np.copysign(0.0, a) * np.copysign(1.0, b)
        return product + c if a == 0 or b == 0 else 0.0
    try:
        return exact_result.numerator / exact_result.denominator
    except OverflowError:
        return float("inf") if exact_result > 0 else float("-inf")


def to_single(value: Value, mode: str) -> Value:
    """A double that is rounded to odd, or exact, as a float32 by rounding mode ``rn``, ``rz``, ``rm`` or ``rp``."""
    return shorten(value, F32, mode)


def shorten(value: Value, dtype: DType, mode: str) -> Value:
    """Round to any shorter type; a number that is not a double is exact."""
    result: Value = value.astype(dtype)
    if mode == "rn":
        return result
    rounded_value, value = result.astype(F64), value.astype(F64)
    if mode == "rz":
        return np.where(np.abs(rounded_value) > np.abs(value), np.nextafter(result, dtype.type(0)), result)
    if mode == "rm":
        return np.where(rounded_value > value, np.nextafter(result, dtype.type("-inf")), result)
    return np.where(rounded_value < value, np.nextafter(result, dtype.type("inf")), result)


def from_bfloat16(bits: Value) -> Value:
    """bfloat16 (its bits, uint16) to float32."""
    result: Value = (bits.astype(U32) << np.uint32(16)).view(F32)
    return result


def to_bfloat16(value: Value, mode: str = "rn") -> Value:
    """float32 to the bits of bfloat16, rounding to nearest even (``rn``) or towards zero (``rz``)."""
    bits = value.view(U32)
    # Half of the last kept bit; a little less if that bit is zero, so that ties go to even.
    rounding_addend = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    rounded_bits = bits if mode == "rz" else bits + rounding_addend
    result: Value = np.where(np.isnan(value), np.uint32(0x7FFF0000), rounded_bits) >> np.uint32(16)
    return result.astype(U16)


def odd_single(value: Value) -> Value:
    """A double as a float32 rounded to odd."""
    truncated = to_single(value, "rz")
    is_inexact = truncated.astype(F64) != value
    return np.where(is_inexact & ~np.isnan(value), truncated.view(U32) | np.uint32(1), truncated.view(U32)).view(F32)


# Rounding towards zero, down or up, number by number in rational numbers: slow, and rare in kernels.
#
# The result to nearest is at hand. A directed one is that, or its neighbour on the side that the exact result asks
# for.

_EXACT_OPERATIONS: Final[dict[str, Callable[..., Fraction]]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "fma": lambda a, b, c: a * b + c,
    "div": lambda a, b: a / b,
    "rcp": lambda a: 1 / a,
}
DIRECTED_OPCODES: Final = frozenset({*_EXACT_OPERATIONS, "sqrt"})


def directed(opcode: str, mode: str, round_to_nearest: Callable[..., Value]) -> Callable[..., Value]:
    """Return the function of one of ``DIRECTED_OPCODES`` for rounding mode ``rz``, ``rm`` or ``rp``.

    ``round_to_nearest`` is the same function for mode ``rn``.
    """

    def compute(*operands: Value) -> Value:
        arrays = np.broadcast_arrays(*operands)
        result = np.array(round_to_nearest(*arrays))
        for index in np.ndindex(result.shape):
            values = [operand[index] for operand in arrays]
            if all(map(np.isfinite, values)) and not np.isnan(result[index]) and not _divides_by_zero(opcode, values):
                result[index] = _round_exactly(opcode, mode, values, result[index])
        return result

    return compute


def _divides_by_zero(opcode: str, operands: list[Any]) -> bool:
    return opcode in ("div", "rcp") and operands[-1] == 0


def _round_exactly(opcode: str, mode: str, operands: list[Any], nearest_value: Any) -> Any:
    side = _error_sign(opcode, operands, nearest_value)
    if not side:
        is_cancelled = (
            nearest_value == 0 and mode == "rm" and opcode in ("add", "sub", "fma") and _terms_cancel(opcode, operands)
        )
        return -np.abs(nearest_value) if is_cancelled else nearest_value
    if mode == "rz":
        return (
            np.nextafter(nearest_value, nearest_value.dtype.type(0))
            if (side > 0) == (nearest_value > 0)
            else nearest_value
        )
    wrong_side = 1 if mode == "rm" else -1
    return (
        np.nextafter(nearest_value, nearest_value.dtype.type(-wrong_side * np.inf))
        if side == wrong_side
        else nearest_value
    )


def _error_sign(opcode: str, operands: list[Any], nearest_value: Any) -> int:
    """1 where ``nearest_value`` is above the exact result, -1 below it, 0 where it is exact."""
    if np.isinf(nearest_value):
        return 1 if nearest_value > 0 else -1
    rounded_value = Fraction(float(nearest_value))
    if opcode == "sqrt":
        exact_result, rounded_value = Fraction(float(operands[0])), rounded_value * rounded_value
    else:
        exact_result = _EXACT_OPERATIONS[opcode](*(Fraction(float(operand)) for operand in operands))
    return (rounded_value > exact_result) - (rounded_value < exact_result)


def _terms_cancel(opcode: str, operands: list[Any]) -> bool:
    """Return True if two terms of different signs give this zero, which is -0 when rounding down."""
    if opcode == "fma":
        return bool(np.signbit(operands[0]) ^ np.signbit(operands[1]) != np.signbit(operands[2]))
    return bool(np.signbit(operands[0]) != (np.signbit(operands[1]) ^ (opcode == "sub")))
