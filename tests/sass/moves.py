"""An instruction for tests of code that is added to kernels."""

from __future__ import annotations

from tui_probe.sass.words import Word, nop_word

MOV = 0x202
STALL = 12
"""Cycles after which the next instruction may read the register."""


def move_word(to: int, source: int) -> Word:
    """``MOV``: copy one register to another."""
    word = nop_word().with_field(0, 12, MOV).with_stall(STALL)
    return word.with_field(16, 8, to).with_field(32, 8, source).with_field(72, 4, 0xF)
