"""The table of instructions: how each opcode is built into an operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from tui_probe.simgpu.executor import (
    async_copy,
    async_store,
    atomics,
    bits,
    clusters,
    compare,
    control,
    convert,
    floating,
    integer,
    loads,
    matrix,
    mbarriers,
    movement,
    tensor_copies,
    warp,
    warpgroups,
    wmma,
)
from tui_probe.simgpu.executor.forms import last_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.ptx.tree import Instruction
    from tui_probe.simgpu.executor.operands import Binder, Operation

Build: TypeAlias = "Callable[[Instruction, Binder], Operation]"

_INTEGER_PAIRS: Final = frozenset({"u16x2", "s16x2"})


def _by_type(opcode: str) -> Build:
    """Integer or floating-point arithmetic, which share their opcodes."""

    def build(instruction: Instruction, bind: Binder) -> Operation:
        kind = last_type(instruction)
        if not kind.is_integer and kind.name not in _INTEGER_PAIRS:
            return floating.BUILDERS[opcode](instruction, bind)
        name = f"{opcode}.cc" if "cc" in instruction.modifiers and f"{opcode}.cc" in integer.BUILDERS else opcode
        return integer.BUILDERS[name](instruction, bind)

    return build


BUILDERS: Final[dict[str, Build]] = {
    **movement.BUILDERS,
    **bits.BUILDERS,
    **integer.BUILDERS,
    **floating.BUILDERS,
    **{opcode: _by_type(opcode) for opcode in integer.BUILDERS if opcode in floating.BUILDERS},
    **compare.BUILDERS,
    **convert.BUILDERS,
    **loads.BUILDERS,
    **async_copy.BUILDERS,
    "st": async_store.build_store,
    **atomics.BUILDERS,
    **mbarriers.BUILDERS,
    **clusters.BUILDERS,
    **tensor_copies.BUILDERS,
    **warp.BUILDERS,
    **matrix.BUILDERS,
    **wmma.BUILDERS,
    **warpgroups.BUILDERS,
    "trap": control.build_trap,
    "brkpt": control.build_trap,
}
