"""Scalar types of PTX: the NumPy types that hold them, words within values, and the types that an instruction names."""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.ptx.tree import Instruction, Operand

Value: TypeAlias = NDArray[Any]
"""The contents of a register: one element per lane, or a single scalar where all lanes hold the same."""
DType: TypeAlias = np.dtype[Any]
Registers: TypeAlias = "list[Any]"
"""Values by index, or None where one is not known and not needed. Values are never changed in place, so registers may
share them.
"""

BOOL: Final = np.dtype(np.bool_)
U8: Final = np.dtype(np.uint8)
U16: Final = np.dtype(np.uint16)
U32: Final = np.dtype(np.uint32)
U64: Final = np.dtype(np.uint64)
S64: Final = np.dtype(np.int64)
F16: Final = np.dtype(np.float16)
F32: Final = np.dtype(np.float32)
F64: Final = np.dtype(np.float64)
B128: Final = np.dtype(np.complex128)
"""Sixteen bytes that only move; NumPy copies a complex number bit by bit."""

UNSIGNED: Final[dict[int, DType]] = {8: U8, 16: U16, 32: U32, 64: U64, 128: B128}
SIGNED: Final[dict[int, DType]] = {bits: np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)}
FLOATS: Final[dict[int, DType]] = {16: F16, 32: F32, 64: F64}


@dataclass(frozen=True, slots=True)
class ScalarType:
    """A PTX type.

    ``kind`` is ``b`` (untyped), ``u``, ``s``, ``f`` (IEEE), ``bf`` (bfloat16, held as its bits), ``x2``
    (two 16-bit numbers, held as 32 bits), ``f8`` (8 bits, held as such), ``f8x2`` (two of them, held as 16 bits) or
    ``pred``. ``dtype`` is what operations on it compute with.
    """

    name: str
    kind: str
    bits: int
    dtype: DType

    @property
    def bytes(self) -> int:
        """Size in memory."""
        return max(self.bits // 8, 1)

    @property
    def is_number(self) -> bool:
        """True for the types of numbers that NumPy has; ``b`` types are only bits."""
        return self.kind in ("u", "s", "f")

    @property
    def is_integer(self) -> bool:
        """True if integer operations apply; ``b`` types count as unsigned."""
        return self.kind in "bus"


def _all_types() -> dict[str, ScalarType]:
    types = {"pred": ScalarType("pred", "pred", 1, BOOL), "b128": ScalarType("b128", "b", 128, B128)}
    for bits in (8, 16, 32, 64):
        types[f"b{bits}"] = ScalarType(f"b{bits}", "b", bits, UNSIGNED[bits])
        types[f"u{bits}"] = ScalarType(f"u{bits}", "u", bits, UNSIGNED[bits])
        types[f"s{bits}"] = ScalarType(f"s{bits}", "s", bits, SIGNED[bits])
    for bits, dtype in FLOATS.items():
        types[f"f{bits}"] = ScalarType(f"f{bits}", "f", bits, dtype)
    types["tf32"] = ScalarType("tf32", "f", 32, F32)
    types["bf16"] = ScalarType("bf16", "bf", 16, U16)
    for name in ("f16x2", "bf16x2", "u16x2", "s16x2"):
        types[name] = ScalarType(name, "x2", 32, U32)
    for name in ("e4m3x2", "e5m2x2"):
        types[name] = ScalarType(name, "f8x2", 16, U16)
    for name in ("e4m3", "e5m2"):
        types[name] = ScalarType(name, "f8", 8, U8)
    return types


TYPES: Final = _all_types()
PREDICATE: Final = TYPES["pred"]


def integer_literal(text: str) -> int:
    """The value of an integer literal: decimal, ``0x``, ``0b``, octal with a leading 0, a trailing ``U``."""
    if text == "WARP_SZ":
        return 32
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    digits = digits.rstrip("U")
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        return sign * int(digits, 8)
    return sign * int(digits, 0)


def _float_literal(text: str) -> float:
    sign, digits = (-1.0, text[1:]) if text.startswith("-") else (1.0, text)
    if digits[:2] in ("0f", "0F"):
        return sign * float(struct.unpack(">f", bytes.fromhex(digits[2:]))[0])
    if digits[:2] in ("0d", "0D"):
        return sign * float(struct.unpack(">d", bytes.fromhex(digits[2:]))[0])
    if digits[:2] in ("0x", "0X"):
        return float(int(text, 16))
    return float(text)


@functools.lru_cache(maxsize=4096)
def literal(text: str, kind: ScalarType) -> Value:
    """A literal operand of an instruction of type ``kind``, as a scalar of ``kind.dtype``.

    A float literal given to an untyped instruction (``mov.b32 %r1, 0f3F800000``) stands for its bits, and
    an integer given to a 16-bit float type stands for its bits too, as the assembler takes it.
    """
    if kind.kind == "pred":
        return scalar(integer_literal(text) != 0, BOOL)
    is_float = text.lstrip("-")[:2].lower() in ("0f", "0d") or (
        any(character in text for character in ".eE") and text.lstrip("-")[:2].lower() != "0x"
    )
    if kind.kind == "f":
        if not is_float and kind.bits == 16:
            return scalar(integer_literal(text) & 0xFFFF, U16).view(F16)
        return scalar(_float_literal(text) if is_float else integer_literal(text), kind.dtype)
    if is_float:
        return _float_bits(text, kind)
    return scalar(integer_literal(text) & ((1 << kind.bits) - 1), UNSIGNED[kind.bits]).view(kind.dtype)


def _float_bits(text: str, kind: ScalarType) -> Value:
    # A hexadecimal single literal keeps every bit, a signalling NaN's too.
    if text[:2].lower() == "0f" and kind.bits == 32:
        return scalar(int(text[2:], 16), U32).view(kind.dtype)
    if text[:2].lower() == "0d" and kind.bits == 64:
        return scalar(int(text[2:], 16), U64).view(kind.dtype)
    return scalar(_float_literal(text), FLOATS[kind.bits]).view(kind.dtype)


def scalar(value: float, dtype: DType) -> Value:
    """``value`` as a NumPy scalar of ``dtype``."""
    result: Value = dtype.type(value)
    return result


def choose(condition: Any, true_value: Any, false_value: Any) -> Value:
    """``true_value`` where ``condition`` holds, else ``false_value``."""
    result: Value = np.where(condition, true_value, false_value)
    return result


def split_words(value: Value, dtype: DType) -> list[Value]:
    """The parts of ``dtype`` that make up each element of ``value``."""
    parts = value.reshape((*value.shape, 1)).view(dtype)
    return [parts[..., index].copy() for index in range(parts.shape[-1])]


def join_words(parts: Sequence[Value], dtype: DType) -> Value:
    """Elements of ``dtype`` made up of ``parts``, which fill it. Scalars are repeated for all lanes."""
    result: Value = np.stack(np.broadcast_arrays(*parts), axis=-1).view(dtype)[..., 0]
    return result


def split_pairs(value: Value, dtype: DType) -> Value:
    """Two 16-bit elements of ``dtype`` for each 32-bit element, in a last axis of 2."""
    result: Value = value.reshape((*value.shape, 1)).view(dtype)
    return result


def join_pairs(value: Value, dtype: DType) -> Value:
    """32-bit elements from a last axis of two 16-bit ones."""
    result: Value = np.ascontiguousarray(value).view(dtype)[..., 0]
    return result


class UnsupportedFormError(Exception):
    """The instruction is one that the executor does not know; told to the user only if it executes."""


def operands_of(instruction: Instruction, min_count: int, max_count: int = 0) -> tuple[Operand, ...]:
    """The operands, ``min_count`` to ``max_count`` of them; exactly ``min_count`` where ``max_count`` is not given."""
    if not min_count <= len(instruction.operands) <= max(min_count, max_count):
        raise UnsupportedFormError
    return instruction.operands


CACHE_HINT: Final = "L2::cache_hint"


def operands_before_hint(instruction: Instruction, count: int) -> tuple[Operand, ...]:
    """The operands, exactly ``count`` of them besides the cache policy that comes last where there is a hint."""
    has_policy = CACHE_HINT in instruction.modifiers
    return operands_of(instruction, count + 1 if has_policy else count)[:count]


def last_type(instruction: Instruction) -> ScalarType:
    """The last type among the modifiers, which most instructions are of."""
    for modifier in reversed(instruction.modifiers):
        if modifier in TYPES:
            return TYPES[modifier]
    raise UnsupportedFormError


def types_of(instruction: Instruction, count: int) -> list[ScalarType]:
    """The types among the modifiers, in order, ``count`` of them: ``cvt.rzi.s32.f32`` has s32 and f32.

    0 stands for any number but none.
    """
    types = [TYPES[modifier] for modifier in instruction.modifiers if modifier in TYPES]
    if not types or (count and len(types) != count):
        raise UnsupportedFormError
    return types
