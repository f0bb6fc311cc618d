"""Rounding towards zero, down or up, number by number in rational numbers: slow, and rare in kernels.

The result to nearest is at hand. A directed one is that, or its neighbour on the side that the exact result asks for.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.simgpu.executor.scalars import Value

_EXACT: Final[dict[str, Callable[..., Fraction]]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "fma": lambda a, b, c: a * b + c,
    "div": lambda a, b: a / b,
    "rcp": lambda a: 1 / a,
}
OPCODES: Final = frozenset({*_EXACT, "sqrt"})


def directed(opcode: str, mode: str, nearest: Callable[..., Value]) -> Callable[..., Value]:
    """The function of one of ``OPCODES`` by rounding mode ``rz``, ``rm`` or ``rp``; ``nearest`` rounds to nearest."""

    def compute(*operands: Value) -> Value:
        wide = np.broadcast_arrays(*operands)
        result = np.array(nearest(*wide))
        for index in np.ndindex(result.shape):
            given = [operand[index] for operand in wide]
            if all(map(np.isfinite, given)) and not np.isnan(result[index]) and not _divides_by_zero(opcode, given):
                result[index] = _rounded(opcode, mode, given, result[index])
        return result

    return compute


def _divides_by_zero(opcode: str, operands: list[Any]) -> bool:
    return opcode in ("div", "rcp") and operands[-1] == 0


def _rounded(opcode: str, mode: str, operands: list[Any], near: Any) -> Any:
    side = _side(opcode, operands, near)
    if not side:
        cancels = near == 0 and mode == "rm" and opcode in ("add", "sub", "fma") and _cancels(opcode, operands)
        return -np.abs(near) if cancels else near
    if mode == "rz":
        return np.nextafter(near, near.dtype.type(0)) if (side > 0) == (near > 0) else near
    wrong_side = 1 if mode == "rm" else -1
    return np.nextafter(near, near.dtype.type(-wrong_side * np.inf)) if side == wrong_side else near


def _side(opcode: str, operands: list[Any], near: Any) -> int:
    """1 where ``near`` is above the exact result, -1 below it, 0 where it is exact."""
    if np.isinf(near):
        return 1 if near > 0 else -1
    found = Fraction(float(near))
    if opcode == "sqrt":
        exact, found = Fraction(float(operands[0])), found * found
    else:
        exact = _EXACT[opcode](*(Fraction(float(operand)) for operand in operands))
    return (found > exact) - (found < exact)


def _cancels(opcode: str, operands: list[Any]) -> bool:
    """Whether two terms of different signs give this zero, which is -0 when rounding down."""
    if opcode == "fma":
        return bool(np.signbit(operands[0]) ^ np.signbit(operands[1]) != np.signbit(operands[2]))
    return bool(np.signbit(operands[0]) != (np.signbit(operands[1]) ^ (opcode == "sub")))
