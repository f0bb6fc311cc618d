"""``BRA`` and ``EXIT``: the instructions that a graft is joined to a kernel with.

The offset of a branch is a number of 4-byte units from the next instruction on, signed: 48 bits in 81:34, and from
sm_90 on eight bits more below those, in 23:16. Bits 90:87 hold a second predicate, PT where there is none.
"""

from __future__ import annotations

from typing import Final

from tui_probe.sass.words import ALWAYS, NO_BARRIER, WORD_BYTES, Word

BRA: Final = 0x947
EXIT: Final = 0x94D
NOP: Final = 0x918
MOV: Final = 0x202

_UNIT: Final = 4
_OFFSET_AT: Final = 34
_OFFSET_BITS: Final = 48
_LOW_AT: Final = 16
_LOW_BITS: Final = 8
_SPLIT_FROM: Final = 90
"""The first architecture whose offset has bits in 23:16 as well."""
_SECOND_PREDICATE: Final = 87
_YIELD: Final = 109
_BRANCH_STALL: Final = 5
_MOVE_STALL: Final = 12
"""More than any fixed latency: what reads the register next may come from anywhere."""
_ALL_BYTES: Final = 0xF


def branch(arch: int, at: int, target: int, like: Word | None = None) -> Word:
    """A branch at byte offset ``at`` to ``target``, both in the same section, for an architecture (90).

    ``like`` lends it its guard and the barriers that it waits for; an ``EXIT`` its second predicate, too.
    """
    units = (target - at - WORD_BYTES) // _UNIT
    bits = _OFFSET_BITS + (_LOW_BITS if arch >= _SPLIT_FROM else 0)
    if not -(1 << bits - 1) <= units < 1 << bits - 1:
        raise ValueError(f"a branch from {at:#x} to {target:#x} is too far")
    word = _plain(BRA, _BRANCH_STALL).with_field(_YIELD, 1, 1).with_field(_SECOND_PREDICATE, 3, ALWAYS)
    if arch >= _SPLIT_FROM:
        word = word.with_field(_LOW_AT, _LOW_BITS, units & (1 << _LOW_BITS) - 1)
        units >>= _LOW_BITS
    word = word.with_field(_OFFSET_AT, _OFFSET_BITS, units & (1 << _OFFSET_BITS) - 1)
    if like is None:
        return word
    if like.operation == EXIT & 0x1FF:
        word = word.with_field(_SECOND_PREDICATE, 4, like.field(_SECOND_PREDICATE, 4))
    return word.with_field(12, 4, like.field(12, 4)).with_wait_mask(like.wait_mask)


def branch_target(arch: int, at: int, word: Word) -> int:
    """Where a ``BRA`` at byte offset ``at`` leads."""
    units, bits = word.field(_OFFSET_AT, _OFFSET_BITS), _OFFSET_BITS
    if arch >= _SPLIT_FROM:
        units, bits = units << _LOW_BITS | word.field(_LOW_AT, _LOW_BITS), bits + _LOW_BITS
    if units >= 1 << bits - 1:
        units -= 1 << bits
    return at + WORD_BYTES + units * _UNIT


def moved_branch(arch: int, word: Word, at: int, to: int) -> Word:
    """A ``BRA`` that stood at byte offset ``at``, as it must be at ``to`` to lead where it did."""
    other = branch(arch, to, branch_target(arch, at, word))
    fields = [(_OFFSET_AT, _OFFSET_BITS), *([(_LOW_AT, _LOW_BITS)] if arch >= _SPLIT_FROM else [])]
    for low, width in fields:
        word = word.with_field(low, width, other.field(low, width))
    return word


def unconditional(word: Word) -> Word:
    """An ``EXIT`` or a branch for all lanes that come there."""
    return word.guarded(ALWAYS).with_field(_SECOND_PREDICATE, 4, ALWAYS)


def nop() -> Word:
    """An instruction that does nothing, as padding behind code."""
    return _plain(NOP, 0)


def move(to: int, source: int) -> Word:
    """``MOV``: one register to another, done before the next instruction is issued."""
    word = _plain(MOV, _MOVE_STALL).with_field(16, 8, to).with_field(32, 8, source)
    return word.with_field(72, 4, _ALL_BYTES)


def _plain(opcode: int, stall: int) -> Word:
    word = Word(opcode).guarded(ALWAYS).with_stall(stall)
    return word.with_write_barrier(NO_BARRIER).with_read_barrier(NO_BARRIER)
