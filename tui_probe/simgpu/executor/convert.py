"""Conversions: ``cvt`` and ``cvt.pack`` (PTX ISA reference, section 9.7.9), also from and to numbers of eight bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.simgpu.executor.floating import flushed, saturated
from tui_probe.simgpu.executor.rounding import directed_sum, from_bfloat16, odd_single, odd_sum, shortened, to_bfloat16
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
    """A format of ``fraction`` bits behind the point, whose smallest normal number is 2 to the ``lowest``."""

    def __init__(self, fraction: int, lowest: int, largest: int, above: float) -> None:
        """``largest`` is the code of the largest number, ``above`` what the code behind it stands for."""
        self._fraction = fraction
        self._lowest = lowest
        code = np.arange(largest + 1)
        exponent = np.maximum(code >> fraction, 1) + lowest - 1
        leading = np.where(code >> fraction, 1 << fraction, 0)
        self._numbers = np.ldexp(leading + (code & (1 << fraction) - 1), exponent - fraction)
        self._decoded = np.full(128, np.nan)
        self._decoded[: largest + 2] = np.append(self._numbers, above)

    def encoded(self, value: Value) -> Value:
        """The code nearest to each number, of two the even one."""
        wide = value.astype(F64)
        size = np.minimum(np.abs(wide), self._numbers[-1])
        exponent = np.maximum(np.frexp(size)[1] - 1, self._lowest)
        rounded = np.ldexp(np.rint(np.ldexp(size, self._fraction - exponent)), exponent - self._fraction)
        codes = np.searchsorted(self._numbers, rounded).astype(U8) | np.where(
            np.signbit(wide), U8.type(0x80), U8.type(0)
        )
        return np.where(np.isnan(wide), _NAN, codes).astype(U8)

    def decoded(self, codes: Value) -> Value:
        """The half-precision number of each code, which is exact."""
        size = self._decoded[(codes & U8.type(0x7F)).astype(np.intp)]
        signed = np.where(codes >> U8.type(7), -size, size).astype(F16)
        return np.where(np.isnan(signed), _HALF_NAN, signed.view(U16)).view(F16)


FORMATS: Final = {"e4m3": Fp8Format(3, -6, 0x7E, np.nan), "e5m2": Fp8Format(2, -14, 0x7B, np.inf)}


def _positive(value: Value) -> Value:
    """Return 0 for negative numbers (``.relu``); NaN stays."""
    return np.where(value <= 0, value.dtype.type(0), value)  # of -0, too


def build_to_fp8(instruction: Instruction, written: ScalarType, read: ScalarType, bind: Binder) -> Operation:
    """``cvt.rn.satfinite{.relu}.e4m3x2.f32 d, a, b`` (a is the upper one), and of an ``.f16x2``."""
    if not {"rn", "satfinite"}.issubset(instruction.modifiers):
        return bind.unsupported()
    number = FORMATS[written.name.removesuffix("x2")]
    prepared: Callable[[Value], Value] = _positive if "relu" in instruction.modifiers else lambda value: value

    def joined(low: Value, high: Value) -> Value:
        return join_words([number.encoded(prepared(low)), number.encoded(prepared(high))], U16)

    if read.name == "f16x2":
        target, source = operands_of(instruction, 2)
        return bind.pure(
            lambda pair: joined(*split_words(pair, F16)), bind.target(target, written), bind.source(source, read)
        )
    if read.name != "f32":
        return bind.unsupported()
    target, upper, lower = operands_of(instruction, 3)
    sources = (bind.source(upper, read), bind.source(lower, read))
    return bind.pure(lambda high, low: joined(low, high), bind.target(target, written), *sources)


def build_from_fp8(instruction: Instruction, written: ScalarType, read: ScalarType, bind: Binder) -> Operation:
    """``cvt.rn{.relu}.f16x2.e4m3x2 d, a``."""
    if written.name != "f16x2" or "rn" not in instruction.modifiers:
        return bind.unsupported()
    number = FORMATS[read.name.removesuffix("x2")]
    finished: Callable[[Value], Value] = _positive if "relu" in instruction.modifiers else lambda value: value
    target, source = operands_of(instruction, 2)

    def convert(pair: Value) -> Value:
        return join_words([finished(number.decoded(codes)) for codes in split_words(pair, U8)], U32)

    return bind.pure(convert, bind.target(target, written), bind.source(source, read))


def conversion(written: ScalarType, read: ScalarType, modifiers: tuple[str, ...]) -> Callable[[Value], Value]:
    """The function from values of type ``read`` to ``written``. Raises KeyError for a form that does not exist here."""
    integral = next((_ROUND_TO_INTEGER[modifier] for modifier in modifiers if modifier in _ROUND_TO_INTEGER), None)
    mode = next((modifier for modifier in modifiers if modifier in _ROUNDINGS), "rn")
    if read.is_integer and written.is_integer:
        return _between_integers(written, "sat" in modifiers)
    if read.is_integer:
        function = _from_integer(written, mode)
    elif written.is_integer:
        function = _to_integer(written, read, integral or np.trunc)
    else:
        function = _between_floats(written, read, integral, mode)
    if "ftz" in modifiers and read.name == "f32" and written.name != "f16":  # there, a GPU rounds subnormal numbers
        function = _after(flushed, function)
    if written.name == "f32" and "ftz" in modifiers:
        function = _after(function, flushed)
    if "satfinite" in modifiers:
        function = _after(function, _FINITE[written.name])
    if "sat" in modifiers and written.kind == "f":
        function = _after(function, saturated)
    if "relu" in modifiers:
        if read.kind != "f":
            raise KeyError("relu")
        function = _after(_positive, function)
    return function


def _after(first: Callable[[Value], Value], last: Callable[[Value], Value]) -> Callable[[Value], Value]:
    def compute(value: Value) -> Value:
        return last(first(value))

    return compute


def _between_integers(written: ScalarType, saturates: bool) -> Callable[[Value], Value]:
    limits = np.iinfo(written.dtype)

    def saturate(value: Value) -> Value:
        own = np.iinfo(value.dtype)
        low, high = max(limits.min, own.min), min(limits.max, own.max)
        return np.clip(value, value.dtype.type(low), value.dtype.type(high)).astype(written.dtype)

    def wrap(value: Value) -> Value:
        return value.astype(written.dtype)

    return saturate if saturates else wrap


def _from_integer(written: ScalarType, mode: str) -> Callable[[Value], Value]:
    if written.kind == "bf":
        return lambda value: to_bfloat16(odd_single(_exact(value)), mode)
    if mode == "rn":
        if written.dtype == F16:
            return lambda value: value.astype(F64).astype(F16)
        return lambda value: value.astype(written.dtype)
    if written.dtype == F64:
        return lambda value: directed_sum(*_parts(value), mode)
    return lambda value: shortened(_exact(value), written.dtype, mode)


def _exact(value: Value) -> Value:
    """An integer as a double, rounded to odd if it has too many digits."""
    return value.astype(F64) if value.dtype.itemsize < 8 else odd_sum(*_parts(value))


def _parts(value: Value) -> tuple[Value, Value]:
    """Two doubles whose exact sum is the integer."""
    if value.dtype.itemsize < 8:
        return value.astype(F64), np.zeros(value.shape, F64)
    high = value >> value.dtype.type(32)
    low = value & value.dtype.type(0xFFFFFFFF)
    return high.astype(F64) * 2.0**32, low.astype(F64)


def _to_integer(written: ScalarType, read: ScalarType, integral: Callable[[Value], Any]) -> Callable[[Value], Value]:
    """Return the conversion to an integer type. Out of range: its nearest integer. NaN: 0, or the top bit where doubles
    or 64 bits are involved.
    """
    limits = np.iinfo(written.dtype)
    above = float(limits.max) + 1.0 if written.bits == 64 else float(limits.max)
    has_top_bit = read.name == "f64" or written.bits == 64
    nan = np.array(1 << (written.bits - 1), np.uint64).astype(written.dtype) if has_top_bit else written.dtype.type(0)

    def convert(value: Value) -> Value:
        exact = from_bfloat16(value) if read.kind == "bf" else value
        rounded = integral(exact.astype(F64))
        too_large, too_small, bad = rounded >= above, rounded < float(limits.min), np.isnan(rounded)
        inside = np.where(too_large | too_small | bad, 0.0, rounded)
        result = inside.astype(written.dtype)
        result = np.where(too_large, written.dtype.type(limits.max), result)
        result = np.where(too_small, written.dtype.type(limits.min), result)
        return np.where(bad, nan, result)

    return convert


def _between_floats(
    written: ScalarType, read: ScalarType, integral: Callable[[Value], Any] | None, mode: str
) -> Callable[[Value], Value]:
    if written.name == "tf32":
        return _TO_TF32[mode]
    if written.kind == "bf":
        return lambda value: to_bfloat16(value if value.dtype == F32 else odd_single(value.astype(F64)), mode)
    decode: Callable[[Value], Value] = from_bfloat16 if read.kind == "bf" else lambda value: value
    if integral is not None:
        return lambda value: integral(decode(value)).astype(written.dtype)
    if mode == "rn" or written.bits >= read.bits:
        return lambda value: decode(value).astype(written.dtype)
    return lambda value: shortened(value, written.dtype, mode)


def _to_tf32(mode: str) -> Callable[[Value], Value]:
    """Ten bits of fraction: to nearest, ties away from zero (``rna``) or to even (``rn``), or towards zero (``rz``)."""

    def convert(value: Value) -> Value:
        bits = value.view(U32)
        odd = (bits >> np.uint32(13)) & np.uint32(1)
        added: Any = {"rna": np.uint32(0x1000), "rn": odd + np.uint32(0xFFF), "rz": np.uint32(0)}[mode]
        return np.where(np.isfinite(value), (bits + added) & np.uint32(0xFFFFE000), bits).view(F32)

    return convert


_TO_TF32: Final = {mode: _to_tf32(mode) for mode in ("rna", "rn", "rz")}


def _finite(largest: int, infinity: int, nan: int, dtype: DType) -> Callable[[Value], Value]:
    """``.satfinite``: the ``largest`` number for an infinity, of either sign, and one code for NaN."""
    sign = dtype.type(1 << 8 * dtype.itemsize - 1)

    def saturate(value: Value) -> Value:
        bits = value.view(dtype)
        size = bits & ~sign
        saturated = np.where(size == dtype.type(infinity), dtype.type(largest) | (bits & sign), bits)
        return np.where(size > dtype.type(infinity), dtype.type(nan), saturated).view(value.dtype)

    return saturate


_FINITE: Final = {
    "f16": _finite(0x7BFF, 0x7C00, 0x7FFF, U16),
    "bf16": _finite(0x7F7F, 0x7F80, 0x7FFF, U16),
    "tf32": _finite(0x7F7FE000, 0x7F800000, 0x7FFFFFFF, U32),
}


def _build(instruction: Instruction, bind: Binder) -> Operation:
    if instruction.modifiers[0] == "pack":
        return _build_pack(instruction, bind)
    written, read = types_of(instruction, 2)
    if written.kind == "f8x2":
        return build_to_fp8(instruction, written, read, bind)
    if read.kind == "f8x2":
        return build_from_fp8(instruction, written, read, bind)
    if read.kind == "x2":
        bind.unsupported()
    if written.kind == "x2":
        return _build_to_pair(instruction, written, read, bind)
    target, source = operands_of(instruction, 2)
    function = conversion(written, read, instruction.modifiers)
    return bind.pure(function, bind.target(target, written), bind.source(source, read))


def _build_to_pair(instruction: Instruction, written: ScalarType, read: ScalarType, bind: Binder) -> Operation:
    """``cvt.rn.f16x2.f32 d, a, b``: a becomes the upper half, b the lower one."""
    target, upper, lower = operands_of(instruction, 3)
    element = TYPES[written.name.removesuffix("x2")]
    function = conversion(element, read, instruction.modifiers)

    def convert(a: Value, b: Value) -> Value:
        return join_words([function(b), function(a)], U32)

    return bind.pure(convert, bind.target(target, written), bind.source(upper, read), bind.source(lower, read))


def _build_pack(instruction: Instruction, bind: Binder) -> Operation:
    """``cvt.pack.sat.type.s32{.b32} d, a, b{, c}``: a and b saturated side by side, above them the low bits of c."""
    element = TYPES[instruction.modifiers[2]]
    target, a, b, *optional = operands_of(instruction, 3, 4)
    s32, u32 = TYPES["s32"], TYPES["u32"]
    saturate = _between_integers(element, saturates=True)
    bits = np.uint32(element.bits)
    mask = np.uint32((1 << element.bits) - 1)

    def pack(x: Value, y: Value, *above: Value) -> Value:
        low = (saturate(y).astype(S64).astype(U32) & mask) | ((saturate(x).astype(S64).astype(U32) & mask) << bits)
        return low if not above else low | (above[0] << (bits + bits))

    sources = [bind.source(a, s32), bind.source(b, s32), *(bind.source(c, u32) for c in optional)]
    return bind.pure(pack, bind.target(target, u32), *sources)


BUILDERS: Final[dict[str, Callable[[Instruction, Binder], Operation]]] = {"cvt": _build}
