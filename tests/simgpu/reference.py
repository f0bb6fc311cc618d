"""PTX semantics in Python integers and rational numbers, and values to try them on."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st

from tests.simgpu.device import evaluate

if TYPE_CHECKING:
    from collections.abc import Callable

DTYPES: dict[str, np.dtype[Any]] = {
    **{f"u{bits}": np.dtype(f"u{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"s{bits}": np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"f{bits}": np.dtype(f"f{bits // 8}") for bits in (16, 32, 64)},
    "pred": np.dtype(np.bool_),
}


@dataclass(frozen=True)
class Case:
    """An instruction, the types of its operands, of its result, and what it should give."""

    instruction: str
    inputs: str
    output: str
    expected: Callable[..., Any]

    def __str__(self) -> str:
        return self.instruction.split()[0]


def bits_of(kind: str) -> int:
    return int(kind.lstrip("usf"))


def wrap(value: int, kind: str) -> int:
    """``value`` modulo the width of ``kind``."""
    bits = bits_of(kind)
    value &= (1 << bits) - 1
    return value - (1 << bits) if kind[0] == "s" and value >> (bits - 1) else value


def limits(kind: str) -> tuple[int, int]:
    bits = bits_of(kind)
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)


def clamp(value: int, kind: str) -> int:
    low, high = limits(kind)
    return max(low, min(high, value))


def values(kind: str) -> st.SearchStrategy[Any]:
    """Values of a type, its edges often."""
    if kind == "pred":
        return st.booleans()
    if kind == "f16":
        return st.integers(0, 0xFFFF).map(lambda bits: float(np.array(bits, np.uint16).view(np.float16)))
    if kind[0] == "f":
        return st.floats(width=bits_of(kind))  # type: ignore[arg-type]
    low, high = limits(kind)
    edges = sorted({low, low + 1, -1, 0, 1, 2, 31, 32, 33, high - 1, high, high // 2})
    return st.sampled_from([edge for edge in edges if low <= edge <= high]) | st.integers(low, high)


def rows(inputs: str) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    """Operands for some threads: a tuple for each, of the types named in ``inputs``."""
    return st.lists(st.tuples(*(values(kind) for kind in inputs.split())), min_size=1, max_size=12)


def check(case: Case, operands: list[tuple[Any, ...]]) -> None:
    """The executor gives what the case expects, for all operands."""
    _check(case, operands, "")


def check_uniform(case: Case) -> None:
    """The same where some or all operands are one value for all threads, which the executor keeps as a scalar."""
    chooser = random.Random(1)
    operands = [tuple(_some_value(kind, chooser) for kind in case.inputs.split()) for _ in range(8)]
    first = operands[0]
    _check(case, [first], "abcef")
    if len(first) > 1:
        _check(case, [(first[0], *row[1:]) for row in operands], "a")
        _check(case, [(row[0], *first[1:]) for row in operands], "bcef")


def _some_value(kind: str, chooser: random.Random) -> Any:
    if kind == "pred":
        return chooser.random() < 0.5
    if kind[0] == "f":
        return float(DTYPES[kind].type(chooser.gauss(0, 2)))
    low, high = limits(kind)
    return chooser.choice([low, 1, 2, high - 1, high, 33])


def _check(case: Case, operands: list[tuple[Any, ...]], uniform: str) -> None:
    kinds = case.inputs.split()
    columns = [np.array(column, DTYPES[kind]) for column, kind in zip(zip(*operands, strict=True), kinds, strict=True)]
    with np.errstate(all="ignore"):
        wanted = np.array([case.expected(*row) for row in operands], DTYPES[case.output])
        result = evaluate(case.instruction, columns, DTYPES[case.output], uniform)
    # Or NaN, which is not equal to itself.
    same = (result == wanted) | ((result != result) & (wanted != wanted))
    for row, good, given, expected in zip(operands, same, result, wanted, strict=True):
        assert good, f"{case.instruction} of {row} gave {given}, not {expected} (uniform: {uniform or 'none'})"


# Bits of the significand, exponent of the smallest number, exponent of the largest number's leading bit.
FORMATS = {"f16": (11, -24, 15), "bf16": (8, -133, 127), "f32": (24, -149, 127), "f64": (53, -1074, 1023)}


def rounded(exact: Fraction, kind: str, mode: str = "rn") -> float:
    """A rational number in a floating-point format, by IEEE 754. The result is exact in a double."""
    precision, smallest, largest = FORMATS[kind]
    if not exact:
        return 0.0
    size, sign = abs(exact), 1.0 if exact > 0 else -1.0
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    unit = Fraction(2) ** max(exponent - precision + 1, smallest)
    units, remainder = divmod(size, unit)
    up = {
        "rn": remainder * 2 > unit or (remainder * 2 == unit and units % 2 == 1),
        "rz": False,
        "rm": exact < 0 and remainder > 0,
        "rp": exact > 0 and remainder > 0,
    }[mode]
    result = (units + up) * unit
    limit = (2 - Fraction(2) ** (1 - precision)) * Fraction(2) ** largest
    if result > limit:
        stays = mode == "rz" or (mode == "rm" and exact > 0) or (mode == "rp" and exact < 0)
        return math.copysign(float(limit) if stays else math.inf, sign)
    return math.copysign(float(result), sign)


def rational(value: float) -> Fraction:
    return Fraction(float(value))
