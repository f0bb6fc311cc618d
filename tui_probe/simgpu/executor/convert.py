"""Conversions: ``cvt`` and ``cvt.pack`` (PTX ISA reference, section 9.7.9), also from and to numbers of eight bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.simgpu.executor.floating import flush_subnormals, saturate_to_unit
from tui_probe.simgpu.executor.rounding import directed_sum, from_bfloat16, odd_single, odd_sum, shorten, to_bfloat16
from tui_probe.simgpu.executor.scalars import (
    F16,
    F32,
    F64,
    S64,
    TYPES,
    U8,
    U16,
    U32,
    DType,
    ScalarType,
    Value,
    join_words,
    operands_of,
    split_words,
    types_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.ptx.tree import Instruction
    from tui_probe.simgpu.executor.operands import Binder
    from tui_probe.simgpu.executor.operations import Operation

# Floating-point numbers of eight bits, two in 16 bits: ``e4m3x2`` and ``e5m2x2`` (PTX ISA reference, section 5.2.3).
#
# ``e4m3`` has no infinity: the code of all ones is NaN, and 448 the largest number. ``e5m2`` is the upper half of a
# half-precision number, up to 57344. Conversion to either saturates to its largest number, as ``.satfinite`` asks.

_NAN: Final = np.uint8(0x7F)
_HALF_NAN: Final = np.uint16(0x7FFF)
_ROUND_TO_INTEGER: Final[dict[str, Callable[[Value], Any]]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}
_ROUNDINGS: Final = frozenset({"rn", "rz", "rm", "rp", "rna"})


class Fp8Format:
    """A format of ``fraction`` bits behind the point, whose smallest normal number is 2 to the ``min_exponent``."""

    def __init__(self, fraction: int, min_exponent: int, max_code: int, overflow_value: float) -> None:
        """``max_code`` is the code of the largest number, ``overflow_value`` what the code behind it stands for."""
        self._fraction = fraction
        self._min_exponent = min_exponent
        code = np.arange(max_code + 1)
        exponent = np.maximum(code >> fraction, 1) + min_exponent - 1
        leading_bit = np.where(code >> fraction, 1 << fraction, 0)
        self._numbers = np.ldexp(leading_bit + (code & (1 << fraction) - 1), exponent - fraction)
        self._values = np.full(128, np.nan)
        self._values[: max_code + 2] = np.append(self._numbers, overflow_value)

    def encode(self, value: Value) -> Value:
        """The code nearest to each number, of two the even one."""
        doubles = value.astype(F64)
        size = np.minimum(np.abs(doubles), self._numbers[-1])
        exponent = np.maximum(np.frexp(size)[1] - 1, self._min_exponent)
        rounded_size = np.ldexp(np.rint(np.ldexp(size, self._fraction - exponent)), exponent - self._fraction)
        codes = np.searchsorted(self._numbers, rounded_size).astype(U8) | np.where(
            np.signbit(doubles), U8.type(0x80), U8.type(0)
        )
        return np.where(np.isnan(doubles), _NAN, codes).astype(U8)

    def decode(self, codes: Value) -> Value:
        """The half-precision number of each code, which is exact."""
        size = self._values[(codes & U8.type(0x7F)).astype(np.intp)]
        numbers = np.where(codes >> U8.type(7), -size, size).astype(F16)
        return np.where(np.isnan(numbers), _HALF_NAN, numbers.view(U16)).view(F16)


FORMATS: Final = {"e4m3": Fp8Format(3, -6, 0x7E, np.nan), "e5m2": Fp8Format(2, -14, 0x7B, np.inf)}


def _relu(value: Value) -> Value:
    """Return 0 for negative numbers (``.relu``); NaN stays."""
    return np.where(value <= 0, value.dtype.type(0), value)  # of -0, too


def build_to_fp8(instruction: Instruction, result_kind: ScalarType, source_kind: ScalarType, bind: Binder) -> Operation:
    """``cvt.rn.satfinite{.relu}.e4m3x2.f32 d, a, b`` (a is the upper one), and of an ``.f16x2``."""
    if not {"rn", "satfinite"}.issubset(instruction.modifiers):
        return bind.unsupported()
    fp8_format = FORMATS[result_kind.name.removesuffix("x2")]
    prepare: Callable[[Value], Value] = _relu if "relu" in instruction.modifiers else lambda value: value

    def encode_pair(lower_value: Value, upper_value: Value) -> Value:
        return join_words([fp8_format.encode(prepare(lower_value)), fp8_format.encode(prepare(upper_value))], U16)

    if source_kind.name == "f16x2":
        target, source = operands_of(instruction, 2)
        return bind.build_pure(
            lambda pair: encode_pair(*split_words(pair, F16)),
            bind.target(target, result_kind),
            bind.source(source, source_kind),
        )
    if source_kind.name != "f32":
        return bind.unsupported()
    target, upper, lower = operands_of(instruction, 3)
    sources = (bind.source(upper, source_kind), bind.source(lower, source_kind))
    return bind.build_pure(lambda high, low: encode_pair(low, high), bind.target(target, result_kind), *sources)


def build_from_fp8(
    instruction: Instruction, result_kind: ScalarType, source_kind: ScalarType, bind: Binder
) -> Operation:
    """``cvt.rn{.relu}.f16x2.e4m3x2 d, a``."""
    if result_kind.name != "f16x2" or "rn" not in instruction.modifiers:
        return bind.unsupported()
    fp8_format = FORMATS[source_kind.name.removesuffix("x2")]
    finish: Callable[[Value], Value] = _relu if "relu" in instruction.modifiers else lambda value: value
    target, source = operands_of(instruction, 2)

    def convert(pair: Value) -> Value:
        return join_words([finish(fp8_format.decode(codes)) for codes in split_words(pair, U8)], U32)

    return bind.build_pure(convert, bind.target(target, result_kind), bind.source(source, source_kind))


def conversion(
    result_kind: ScalarType, source_kind: ScalarType, modifiers: tuple[str, ...]
) -> Callable[[Value], Value]:
    """Return the function from values of type ``source_kind`` to ``result_kind``.

    Raises KeyError for a form that does not exist here.
    """
    round_to_integer = next(
        (_ROUND_TO_INTEGER[modifier] for modifier in modifiers if modifier in _ROUND_TO_INTEGER), None
    )
    mode = next((modifier for modifier in modifiers if modifier in _ROUNDINGS), "rn")
    if source_kind.is_integer and result_kind.is_integer:
        return _between_integers(result_kind, "sat" in modifiers)
    if source_kind.is_integer:
        function = _from_integer(result_kind, mode)
    elif result_kind.is_integer:
        function = _to_integer(result_kind, source_kind, round_to_integer or np.trunc)
    else:
        function = _between_floats(result_kind, source_kind, round_to_integer, mode)
    if (
        "ftz" in modifiers and source_kind.name == "f32" and result_kind.name != "f16"
    ):  # there, a GPU rounds subnormal numbers
        function = _compose(flush_subnormals, function)
    if result_kind.name == "f32" and "ftz" in modifiers:
        function = _compose(function, flush_subnormals)
    if "satfinite" in modifiers:
        function = _compose(function, _FINITE_SATURATIONS[result_kind.name])
    if "sat" in modifiers and result_kind.kind == "f":
        function = _compose(function, saturate_to_unit)
    if "relu" in modifiers:
        if source_kind.kind != "f":
            raise KeyError("relu")
        function = _compose(_relu, function)
    return function


def _compose(inner: Callable[[Value], Value], outer: Callable[[Value], Value]) -> Callable[[Value], Value]:
    def compute(value: Value) -> Value:
        return outer(inner(value))

    return compute


def _between_integers(result_kind: ScalarType, saturates: bool) -> Callable[[Value], Value]:
    limits = np.iinfo(result_kind.dtype)

    def saturate(value: Value) -> Value:
        value_limits = np.iinfo(value.dtype)
        min_value, max_value = max(limits.min, value_limits.min), min(limits.max, value_limits.max)
        return np.clip(value, value.dtype.type(min_value), value.dtype.type(max_value)).astype(result_kind.dtype)

    def wrap(value: Value) -> Value:
        return value.astype(result_kind.dtype)

    return saturate if saturates else wrap


def _from_integer(result_kind: ScalarType, mode: str) -> Callable[[Value], Value]:
    if result_kind.kind == "bf":
        return lambda value: to_bfloat16(odd_single(_as_double(value)), mode)
    if mode == "rn":
        if result_kind.dtype == F16:
            return lambda value: value.astype(F64).astype(F16)
        return lambda value: value.astype(result_kind.dtype)
    if result_kind.dtype == F64:
        return lambda value: directed_sum(*_two_doubles(value), mode)
    return lambda value: shorten(_as_double(value), result_kind.dtype, mode)


def _as_double(value: Value) -> Value:
    """An integer as a double, rounded to odd if it has too many digits."""
    return value.astype(F64) if value.dtype.itemsize < 8 else odd_sum(*_two_doubles(value))


def _two_doubles(value: Value) -> tuple[Value, Value]:
    """Two doubles whose exact sum is the integer."""
    if value.dtype.itemsize < 8:
        return value.astype(F64), np.zeros(value.shape, F64)
    upper_bits = value >> value.dtype.type(32)
    lower_bits = value & value.dtype.type(0xFFFFFFFF)
    return upper_bits.astype(F64) * 2.0**32, lower_bits.astype(F64)


def _to_integer(
    result_kind: ScalarType, source_kind: ScalarType, round_to_integer: Callable[[Value], Any]
) -> Callable[[Value], Value]:
    """Return the conversion to an integer type. Out of range: its nearest integer. NaN: 0, or the top bit where doubles
    or 64 bits are involved.
    """
    limits = np.iinfo(result_kind.dtype)
    max_value = float(limits.max) + 1.0 if result_kind.bits == 64 else float(limits.max)
    has_top_bit = source_kind.name == "f64" or result_kind.bits == 64
    nan = (
        np.array(1 << (result_kind.bits - 1), np.uint64).astype(result_kind.dtype)
        if has_top_bit
        else result_kind.dtype.type(0)
    )

    def convert(value: Value) -> Value:
        numbers = from_bfloat16(value) if source_kind.kind == "bf" else value
        rounded_numbers = round_to_integer(numbers.astype(F64))
        is_too_large, is_too_small, is_nan = (
            rounded_numbers >= max_value,
            rounded_numbers < float(limits.min),
            np.isnan(rounded_numbers),
        )
        in_range = np.where(is_too_large | is_too_small | is_nan, 0.0, rounded_numbers)
        result = in_range.astype(result_kind.dtype)
        result = np.where(is_too_large, result_kind.dtype.type(limits.max), result)
        result = np.where(is_too_small, result_kind.dtype.type(limits.min), result)
        return np.where(is_nan, nan, result)

    return convert


def _between_floats(
    result_kind: ScalarType, source_kind: ScalarType, round_to_integer: Callable[[Value], Any] | None, mode: str
) -> Callable[[Value], Value]:
    if result_kind.name == "tf32":
        return _TO_TF32[mode]
    if result_kind.kind == "bf":
        return lambda value: to_bfloat16(value if value.dtype == F32 else odd_single(value.astype(F64)), mode)
    decode: Callable[[Value], Value] = from_bfloat16 if source_kind.kind == "bf" else lambda value: value
    if round_to_integer is not None:
        return lambda value: round_to_integer(decode(value)).astype(result_kind.dtype)
    if mode == "rn" or result_kind.bits >= source_kind.bits:
        return lambda value: decode(value).astype(result_kind.dtype)
    return lambda value: shorten(value, result_kind.dtype, mode)


def _to_tf32(mode: str) -> Callable[[Value], Value]:
    """Ten bits of fraction: to nearest, ties away from zero (``rna``) or to even (``rn``), or towards zero (``rz``)."""

    def convert(value: Value) -> Value:
        bits = value.view(U32)
        lowest_kept_bit = (bits >> np.uint32(13)) & np.uint32(1)
        addend: Any = {"rna": np.uint32(0x1000), "rn": lowest_kept_bit + np.uint32(0xFFF), "rz": np.uint32(0)}[mode]
        return np.where(np.isfinite(value), (bits + addend) & np.uint32(0xFFFFE000), bits).view(F32)

    return convert


_TO_TF32: Final = {mode: _to_tf32(mode) for mode in ("rna", "rn", "rz")}


def _finite_saturation(max_number: int, infinity: int, nan: int, dtype: DType) -> Callable[[Value], Value]:
    """``.satfinite``: the ``max_number`` number for an infinity, of either sign, and one code for NaN."""
    sign = dtype.type(1 << 8 * dtype.itemsize - 1)

    def saturate(value: Value) -> Value:
        bits = value.view(dtype)
        size = bits & ~sign
        finite_bits = np.where(size == dtype.type(infinity), dtype.type(max_number) | (bits & sign), bits)
        return np.where(size > dtype.type(infinity), dtype.type(nan), finite_bits).view(value.dtype)

    return saturate


_FINITE_SATURATIONS: Final = {
    "f16": _finite_saturation(0x7BFF, 0x7C00, 0x7FFF, U16),
    "bf16": _finite_saturation(0x7F7F, 0x7F80, 0x7FFF, U16),
    "tf32": _finite_saturation(0x7F7FE000, 0x7F800000, 0x7FFFFFFF, U32),
}


def _build_conversion(instruction: Instruction, bind: Binder) -> Operation:
    if instruction.modifiers[0] == "pack":
        return _build_pack(instruction, bind)
    result_kind, source_kind = types_of(instruction, 2)
    if result_kind.kind == "f8x2":
        return build_to_fp8(instruction, result_kind, source_kind, bind)
    if source_kind.kind == "f8x2":
        return build_from_fp8(instruction, result_kind, source_kind, bind)
    if source_kind.kind == "x2":
        bind.unsupported()
    if result_kind.kind == "x2":
        return _build_to_pair(instruction, result_kind, source_kind, bind)
    target, source = operands_of(instruction, 2)
    function = conversion(result_kind, source_kind, instruction.modifiers)
    return bind.build_pure(function, bind.target(target, result_kind), bind.source(source, source_kind))


def _build_to_pair(
    instruction: Instruction, result_kind: ScalarType, source_kind: ScalarType, bind: Binder
) -> Operation:
    """``cvt.rn.f16x2.f32 d, a, b``: a becomes the upper half, b the lower one."""
    target, upper, lower = operands_of(instruction, 3)
    element = TYPES[result_kind.name.removesuffix("x2")]
    function = conversion(element, source_kind, instruction.modifiers)

    def convert(a: Value, b: Value) -> Value:
        return join_words([function(b), function(a)], U32)

    return bind.build_pure(
        convert, bind.target(target, result_kind), bind.source(upper, source_kind), bind.source(lower, source_kind)
    )


def _build_pack(instruction: Instruction, bind: Binder) -> Operation:
    """``cvt.pack.sat.type.s32{.b32} d, a, b{, c}``: a and b saturated side by side, above them the low bits of c."""
    element = TYPES[instruction.modifiers[2]]
    target, a, b, *low_operands = operands_of(instruction, 3, 4)
    s32, u32 = TYPES["s32"], TYPES["u32"]
    saturate = _between_integers(element, saturates=True)
    bits = np.uint32(element.bits)
    mask = np.uint32((1 << element.bits) - 1)

    def pack(x: Value, y: Value, *upper_bits: Value) -> Value:
        pair = (saturate(y).astype(S64).astype(U32) & mask) | ((saturate(x).astype(S64).astype(U32) & mask) << bits)
        return pair if not upper_bits else pair | (upper_bits[0] << (bits + bits))

    sources = [bind.source(a, s32), bind.source(b, s32), *(bind.source(c, u32) for c in low_operands)]
    return bind.build_pure(pack, bind.target(target, u32), *sources)


BUILDERS: Final[dict[str, Callable[[Instruction, Binder], Operation]]] = {"cvt": _build_conversion}
