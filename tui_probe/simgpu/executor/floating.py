"""Floating-point arithmetic (PTX ISA reference, sections 9.7.3 and 9.7.4).

Single and double precision round as the instruction says. The ``.approx`` and ``.full`` forms, which on a device
may be off by some units in the last place, give the correctly rounded or nearly correctly rounded result.
Half precision and bfloat16 are computed exactly and rounded once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.simgpu.executor.rounding import DIRECTED_OPCODES as OPCODES_OF_DIRECTED
from tui_probe.simgpu.executor.rounding import (
    directed,
    fma32,
    fma64,
    fma_odd,
    from_bfloat16,
    odd_single,
    odd_sum,
    to_bfloat16,
    to_single,
)
from tui_probe.simgpu.executor.scalars import (
    F16,
    F64,
    PREDICATE,
    TYPES,
    U32,
    ScalarType,
    Value,
    choose,
    join_pairs,
    last_type,
    operands_of,
    split_pairs,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.ptx.tree import Instruction
    from tui_probe.simgpu.executor.operands import Binder
    from tui_probe.simgpu.executor.operations import Operation

DIRECTED: Final = frozenset({"rz", "rm", "rp"})
# How many operands an instruction has, the target included, if not three.
_OPERAND_COUNTS: Final = dict.fromkeys(
    ("neg", "abs", "sqrt", "rcp", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh"), 2
) | {"fma": 4}
_TESTS: Final[dict[str, Callable[[Value], Any]]] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": lambda value: ~np.isnan(value),
    "notanumber": np.isnan,
    "normal": lambda value: np.isfinite(value) & (np.abs(value) >= np.finfo(value.dtype).tiny),
    "subnormal": lambda value: (value != 0) & (np.abs(value) < np.finfo(value.dtype).tiny),
}


def _minimum(a: Value, b: Value) -> Value:
    result = np.fmin(a, b)
    # -0 is less than +0.
    return np.where((a == 0) & (b == 0), np.where(np.signbit(a), a, b), result) if (result == 0).any() else result


def _maximum(a: Value, b: Value) -> Value:
    result = np.fmax(a, b)
    return np.where((a == 0) & (b == 0), np.where(np.signbit(a), b, a), result) if (result == 0).any() else result


def _compute_in_double(function: Callable[[Value], Value]) -> Callable[[Value], Value]:
    """``function`` computed in double precision, rounded to the type of its operand."""

    def compute(value: Value) -> Value:
        return function(value.astype(F64)).astype(value.dtype)

    return compute


def _reciprocal_root(value: Value) -> Value:
    result: Value = 1.0 / np.sqrt(value)
    return result


def _reciprocal(value: Value) -> Value:
    result: Value = value.dtype.type(1) / value
    return result


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "abs": np.abs,
    "min": _minimum,
    "max": _maximum,
    "sqrt": np.sqrt,
    "rcp": _reciprocal,
    "rsqrt": _compute_in_double(_reciprocal_root),
    "ex2": _compute_in_double(np.exp2),
    "lg2": _compute_in_double(np.log2),
    "sin": _compute_in_double(np.sin),
    "cos": _compute_in_double(np.cos),
    "tanh": _compute_in_double(np.tanh),
    "copysign": lambda sign, size: np.copysign(size, sign),
}


def flush_subnormals(value: Value) -> Value:
    """Subnormal numbers as zeros of the same sign (``.ftz``)."""
    tiny = np.finfo(value.dtype).tiny
    return np.where(np.abs(value) < tiny, np.copysign(value.dtype.type(0), value), value)


def saturate_to_unit(value: Value) -> Value:
    """Clamped to [0, 1], NaN as 0 (``.sat``)."""
    return choose(value > 0, np.minimum(value, value.dtype.type(1)), value.dtype.type(0))


def _relu(value: Value) -> Value:
    """Negative numbers, and -0, as 0 (``.relu``); NaN stays."""
    return np.where(value <= 0, value.dtype.type(0), value)


def _relu_bits(bits: Value) -> Value:
    """Return the bits of bfloat16 numbers with 0 for negative ones."""
    return np.where(from_bfloat16(bits) <= 0, np.uint16(0), bits)


def _round_sum(a: Value, b: Value, mode: str) -> Value:
    """a + b as float32; terms that cancel give -0 when rounding down."""
    total = to_single(odd_sum(a, b), mode)
    is_cancelled = (total == 0) & (np.signbit(a) != np.signbit(b)) & (a + b == 0)
    return np.where(is_cancelled, -np.abs(total), total) if mode == "rm" else total


def _directed_function(opcode: str, kind: str, mode: str) -> Callable[..., Value]:
    """Arithmetic of one of ``kind`` with a rounding mode other than nearest even."""
    if kind == "f64" or opcode not in ("add", "sub", "mul", "fma"):
        if opcode not in OPCODES_OF_DIRECTED or kind not in ("f32", "f64"):
            raise KeyError(opcode)
        return directed(opcode, mode, fma64 if opcode == "fma" else _FUNCTIONS[opcode])

    def compute(a: Value, b: Value, *addend: Value) -> Value:
        x, y = a.astype(F64), b.astype(F64)
        if opcode == "mul":
            return to_single(x * y, mode)
        if opcode == "fma":
            return _round_sum(x * y, addend[0].astype(F64), mode)
        return _round_sum(x, y if opcode == "add" else -y, mode)

    if kind != "f32":
        raise KeyError(kind)
    return compute


def _fma16(a: Value, b: Value, c: Value) -> Value:
    return fma_odd(a, b, c).astype(F16)


def _bfloat16_function(opcode: str, modifiers: tuple[str, ...]) -> Callable[..., Value]:
    """A function of float32 for one of bfloat16 bits."""
    if opcode == "fma":
        return lambda *bits: to_bfloat16(odd_single(fma_odd(*(from_bfloat16(operand) for operand in bits))))
    if opcode == "neg":
        return lambda bits: bits ^ np.uint16(0x8000)
    if opcode == "abs":
        return lambda bits: bits & np.uint16(0x7FFF)
    function = _extreme_function(opcode, modifiers) if opcode in ("min", "max") else _FUNCTIONS[opcode]
    return lambda *bits: to_bfloat16(function(*(from_bfloat16(operand) for operand in bits)))


_FMA: Final[dict[str, Callable[..., Value]]] = {"f32": fma32, "f64": fma64, "f16": _fma16}


def _scalar_function(opcode: str, kind: str, modifiers: tuple[str, ...]) -> Callable[..., Value]:
    """The function for scalars of type ``kind``, rounding included."""
    mode = next((modifier for modifier in modifiers if modifier in DIRECTED), "")
    if mode:
        return _directed_function(opcode, kind, mode)
    if kind == "bf16":
        return _bfloat16_function(opcode, modifiers)
    if opcode == "fma":
        return _FMA[kind]
    return _extreme_function(opcode, modifiers) if opcode in ("min", "max") else _FUNCTIONS[opcode]


def _extreme_function(opcode: str, modifiers: tuple[str, ...]) -> Callable[..., Value]:
    """``min`` and ``max``: NaN of two only, or with ``.NaN`` of one; ``.xorsign.abs``: of sizes, with both signs."""
    function: Callable[..., Value] = _FUNCTIONS[opcode]
    if "NaN" in modifiers:
        function = _or_nan(function)
    if "xorsign" not in modifiers:
        return function

    def compute(a: Value, b: Value) -> Value:
        size = function(np.abs(a), np.abs(b))
        return choose(np.signbit(a) != np.signbit(b), -size, size)

    return compute


def _or_nan(function: Callable[..., Value]) -> Callable[..., Value]:
    def compute(a: Value, b: Value) -> Value:
        return choose(np.isnan(a) | np.isnan(b), np.array(np.nan, a.dtype), function(a, b))

    return compute


def arithmetic(opcode: str, kind: ScalarType, modifiers: tuple[str, ...]) -> Callable[..., Value]:
    """The function of an instruction, with all its modifiers. Raises KeyError for a form that does not exist here."""
    if kind.kind == "x2":
        return _pair_function(opcode, kind, modifiers)
    function = _scalar_function(opcode, kind.name, modifiers)
    if "oob" in modifiers:
        raise KeyError("oob")
    if "ftz" in modifiers and kind.name in ("f32", "f16"):
        function = _flush_operands(function)
    if "sat" in modifiers:
        function = _compose(function, saturate_to_unit)
    if "relu" in modifiers:
        function = _compose(function, _relu if kind.kind == "f" else _relu_bits)
    return function


def _flush_operands(function: Callable[..., Value]) -> Callable[..., Value]:
    def compute(*operands: Value) -> Value:
        return flush_subnormals(function(*(flush_subnormals(operand) for operand in operands)))

    return compute


def _compose(function: Callable[..., Value], following: Callable[[Value], Value]) -> Callable[..., Value]:
    def compute(*operands: Value) -> Value:
        return following(function(*operands))

    return compute


def _pair_function(opcode: str, kind: ScalarType, modifiers: tuple[str, ...]) -> Callable[..., Value]:
    element = TYPES[kind.name.removesuffix("x2")]
    function = arithmetic(opcode, element, modifiers)

    def compute(*operands: Value) -> Value:
        return join_pairs(function(*(split_pairs(operand, element.dtype) for operand in operands)), U32)

    return compute


def build(instruction: Instruction, bind: Binder) -> Operation:
    """``add|sub|mul|fma|…{.rounding}{.ftz}{.sat}.type d, a, …``."""
    kind = last_type(instruction)
    opcode = "fma" if instruction.opcode == "mad" else instruction.opcode
    target, *sources = operands_of(instruction, _OPERAND_COUNTS.get(opcode, 3))
    function = arithmetic(opcode, kind, instruction.modifiers)
    return bind.build_pure(function, bind.target(target, kind), *(bind.source(source, kind) for source in sources))


def _build_test(instruction: Instruction, bind: Binder) -> Operation:
    """``testp.property.type p, a``."""
    kind = last_type(instruction)
    target, source = operands_of(instruction, 2)
    return bind.build_pure(_TESTS[instruction.modifiers[0]], bind.target(target, PREDICATE), bind.source(source, kind))


OPCODES: Final = frozenset({*_FUNCTIONS, "fma", "mad"})
BUILDERS: Final[dict[str, Callable[[Instruction, Binder], Operation]]] = {
    **dict.fromkeys(OPCODES, build),
    "testp": _build_test,
}
