"""What an instruction that accesses memory does: load, store, or both, and of how many bytes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from tui_probe.ptx.operands import parse_integer
from tui_probe.ptx.tree import Immediate, Memory

if TYPE_CHECKING:
    from tui_probe.ptx.tree import Instruction

Kind = Literal["load", "store", "atomic", "copy"]

TYPE_BYTES: Final = {
    **dict.fromkeys(("b8", "u8", "s8"), 1),
    **dict.fromkeys(("b16", "u16", "s16", "f16", "bf16"), 2),
    **dict.fromkeys(("b32", "u32", "s32", "f32", "f16x2", "bf16x2"), 4),
    **dict.fromkeys(("b64", "u64", "s64", "f64"), 8),
    "b128": 16,
}
VECTORS: Final = {"v2": 2, "v4": 4, "v8": 8}
_KINDS: Final[dict[str, Kind]] = {
    "ld": "load", "ldu": "load", "st": "store", "atom": "atomic", "red": "atomic", "cp": "copy",
}  # fmt: skip
_SHAPE: Final = re.compile(r"m(\d{1,9})n(\d{1,9})k(\d{1,9})")
_WARP: Final = 32
_ELEMENT_BITS: Final = {
    **dict.fromkeys(("f64",), 64),
    **dict.fromkeys(("f32", "s32", "tf32"), 32),
    **dict.fromkeys(("f16", "bf16"), 16),
    **dict.fromkeys(("s8", "u8"), 8),
    **dict.fromkeys(("s4", "u4"), 4),
    "b1": 1,
}


def access_kind(instruction: Instruction) -> Kind | None:
    """``copy`` is ``cp.async``, from global to shared memory. None for what is no access."""
    return _KINDS.get(instruction.opcode)


def element_bytes(instruction: Instruction) -> int | None:
    """Bytes of an element: of the last type among the modifiers. None if there is none."""
    sizes = [TYPE_BYTES[modifier] for modifier in instruction.modifiers if modifier in TYPE_BYTES]
    return sizes[-1] if sizes else None


def access_bytes(instruction: Instruction) -> int | None:
    """Bytes that one thread accesses: all elements of a vector, the size that ``cp.async`` names."""
    if instruction.opcode == "cp":
        match instruction.operands:
            case (Memory(), Memory(), Immediate(text=text), *_):
                return parse_integer(text)
        return None
    size = element_bytes(instruction)
    vector = next((VECTORS[modifier] for modifier in instruction.modifiers if modifier in VECTORS), 1)
    return None if size is None else size * vector


def fragment_bytes(instruction: Instruction) -> int | None:
    """One thread's share of the matrix that ``wmma.load`` or ``wmma.store`` moves; None of others."""
    extents, modifiers = matrix_extents(instruction), instruction.modifiers
    kinds = [modifier for modifier in modifiers if modifier in _ELEMENT_BITS]
    if instruction.opcode != "wmma" or extents is None or not kinds or not {"load", "store"} & set(modifiers):
        return None
    m, n, k = extents
    elements = m * k if "a" in modifiers else k * n if "b" in modifiers else m * n
    return elements * _ELEMENT_BITS[kinds[-1]] // 8 // _WARP


def matrix_extents(instruction: Instruction) -> tuple[int, int, int] | None:
    """The m, n and k that a matrix instruction names: ``m16n8k16``; None of others."""
    for modifier in instruction.modifiers:
        if match := _SHAPE.fullmatch(modifier):
            return int(match[1]), int(match[2]), int(match[3])
    return None
