"""The sizes that matrix instructions carry in their modifiers, shared out among the threads that work on them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tui_probe.ptx.tree import Instruction

_SHAPE: Final = re.compile(r"m(\d+)n(\d+)k(\d+)")
_WARP: Final = 32
_WARPGROUP: Final = 128
_ELEMENT_BITS: Final = {
    **dict.fromkeys(("f64",), 64),
    **dict.fromkeys(("f32", "s32", "tf32"), 32),
    **dict.fromkeys(("f16", "bf16"), 16),
    **dict.fromkeys(("s8", "u8"), 8),
    **dict.fromkeys(("s4", "u4"), 4),
    "b1": 1,
}


def multiply_adds(instruction: Instruction) -> int | None:
    """One thread's share of the m·n·k multiply-adds of ``mma``, ``wmma.mma`` or ``wgmma.mma_async``; None of others.

    A warp works on the first two, four warps on the last, which gives a whole number for every shape there is. A
    sparse instruction counts the multiply-adds with the zeros that it leaves out, as its shape does.
    ``mma.m8n8k4`` on f16 is four products, one by each eight lanes.
    """
    extents = _extents(instruction)
    if extents is None or instruction.opcode not in ("mma", "wmma", "wgmma"):
        return None
    m, n, k = extents
    products = 4 if instruction.opcode == "mma" and extents == (8, 8, 4) and "f64" not in instruction.modifiers else 1
    return products * m * n * k // (_WARPGROUP if instruction.opcode == "wgmma" else _WARP)


def fragment_bytes(instruction: Instruction) -> int | None:
    """One thread's share of the matrix that ``wmma.load`` or ``wmma.store`` moves; None of others."""
    extents, modifiers = _extents(instruction), instruction.modifiers
    kinds = [modifier for modifier in modifiers if modifier in _ELEMENT_BITS]
    if instruction.opcode != "wmma" or extents is None or not kinds or not {"load", "store"} & set(modifiers):
        return None
    m, n, k = extents
    elements = m * k if "a" in modifiers else k * n if "b" in modifiers else m * n
    return elements * _ELEMENT_BITS[kinds[-1]] // 8 // _WARP


def _extents(instruction: Instruction) -> tuple[int, int, int] | None:
    for modifier in instruction.modifiers:
        if match := _SHAPE.fullmatch(modifier):
            return int(match[1]), int(match[2]), int(match[3])
    return None
