"""The multiply-adds of matrix instructions, shared out among the threads that work on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.ptx.access import matrix_extents

if TYPE_CHECKING:
    from tui_probe.ptx.tree import Instruction

_WARP: Final = 32
_WARPGROUP: Final = 128


def multiply_adds(instruction: Instruction) -> int | None:
    """One thread's share of the m·n·k multiply-adds of ``mma``, ``wmma.mma`` or ``wgmma.mma_async``; None of others.

    A warp works on the first two, four warps on the last, which gives a whole number for every shape there is. A
    sparse instruction counts the multiply-adds with the zeros that it leaves out, as its shape does.
    ``mma.m8n8k4`` on f16 is four products, one by each eight lanes.
    """
    extents = matrix_extents(instruction)
    if extents is None or instruction.opcode not in ("mma", "wmma", "wgmma"):
        return None
    m, n, k = extents
    products = 4 if instruction.opcode == "mma" and extents == (8, 8, 4) and "f64" not in instruction.modifiers else 1
    return products * m * n * k // (_WARPGROUP if instruction.opcode == "wgmma" else _WARP)
