"""The form of an instruction: how many operands and which types it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.simgpu.executor.scalars import TYPES, ScalarType

if TYPE_CHECKING:
    from tui_probe.ptx.tree import Instruction, Operand


class UnsupportedFormError(Exception):
    """The instruction is one that the executor does not know; told to the user only if it executes."""


def operands_of(instruction: Instruction, least: int, most: int = 0) -> tuple[Operand, ...]:
    """The operands, ``least`` to ``most`` of them; exactly ``least`` where ``most`` is not given."""
    if not least <= len(instruction.operands) <= max(least, most):
        raise UnsupportedFormError
    return instruction.operands


def last_type(instruction: Instruction) -> ScalarType:
    """The last type among the modifiers, which most instructions are of."""
    return types_of(instruction, 0)[-1]


def types_of(instruction: Instruction, count: int) -> list[ScalarType]:
    """The types among the modifiers, in order, ``count`` of them: ``cvt.rzi.s32.f32`` has s32 and f32.

    0 stands for any number but none.
    """
    types = [TYPES[modifier] for modifier in instruction.modifiers if modifier in TYPES]
    if not types or (count and len(types) != count):
        raise UnsupportedFormError
    return types
