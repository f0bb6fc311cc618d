"""Floating-point numbers of eight bits, two in 16 bits: ``e4m3x2`` and ``e5m2x2`` (PTX ISA reference, section 5.2.3).

``e4m3`` has no infinity: the code of all ones is NaN, and 448 the largest number. ``e5m2`` is the upper half of
a half-precision number, up to 57344. Conversion to either saturates to its largest number, as ``.satfinite`` asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.simgpu.executor.forms import operands_of
from tui_probe.simgpu.executor.scalars import F16, F64, U8, U16, U32, Value
from tui_probe.simgpu.executor.words import join_words, split_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.ptx.tree import Instruction
    from tui_probe.simgpu.executor.operands import Binder, Operation
    from tui_probe.simgpu.executor.scalars import ScalarType

_NAN: Final = np.uint8(0x7F)
_HALF_NAN: Final = np.uint16(0x7FFF)


class _Format:
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


FORMATS: Final = {"e4m3": _Format(3, -6, 0x7E, np.nan), "e5m2": _Format(2, -14, 0x7B, np.inf)}


def _positive(value: Value) -> Value:
    return np.where(value < 0, value.dtype.type(0), value)


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
