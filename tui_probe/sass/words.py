"""Instruction words of SASS: 128 bits from sm_70 on, their fields, and encodings of branches and constants.

Bits, low to high: opcode 11:0 (11:9 say what the second operand is), guard 15:12, Rd 23:16, Ra 31:24, Rb 39:32 or a
32-bit number 63:32, Rc 71:64, what is the instruction's own, then control: stall 108:105, yield 109, write barrier
112:110, read barrier 115:113, wait mask 121:116, reuse 125:122. No barrier is 7. Each barrier is a counter; an
instruction waits until those of its mask are 0.

Which fields an instruction uses is for those who know its opcode: see ``register_operands`` and
``uniform_registers``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

WORD_BYTES: Final = 16
_HALVES: Final = struct.Struct("<QQ")
NO_BARRIER: Final = 7
"""Value of a barrier field for no barrier: six barriers are numbered from 0."""
ALL_BARRIERS: Final = 0x3F
"""One bit per barrier."""
PT: Final = 7
"""The guard PT: all active lanes."""
_NOT_PT: Final = 0xF
"""The guard !PT: no lane."""
RZ: Final = 255
RESERVED: Final = 2
"""Registers that a kernel must have beyond the last one that it names; an instruction that names more is illegal."""
MAX_REGISTERS: Final = 255
"""R0 to R254: the number 255 is RZ."""
STACK_POINTER: Final = 1
"""R1 in functions that have a stack, by the ABI."""
BARRIER_COUNT: Final = 6
BARRIER_SET_STALL: Final = 2
"""Cycles until a barrier that an instruction sets can be waited for."""
OPERAND_BARRIER: Final = 5
"""Barrier that an instruction of added code releases when it has read its operands."""
ALL_BYTES: Final = 0xF
"""Byte mask of a ``MOV`` of a whole register."""
YIELD: Final = 109
"""Bit that is clear where other warps go first."""

BRA: Final = 0x947
BSSY: Final = 0x945
BSYNC: Final = 0x941
EXIT: Final = 0x94D
NOP: Final = 0x918
MOV: Final = 0x202
MOV_NUMBER: Final = 0x802
MOV_UNIFORM: Final = 0xC02
"""MOV of a uniform register into an ordinary one."""
CONTROL_FLOW: Final = range(0x140, 0x160)
"""Operations of the branch unit: branches, calls, exits, and barriers at which lanes reconverge."""

GUARD: Final = 12, 4
"""Fields as (lowest bit, width), for ``Word.field`` and ``Word.with_field``."""
DESTINATION: Final = 16, 8
SOURCE_A: Final = 24, 8
SOURCE_B: Final = 32, 8
IMMEDIATE: Final = 32, 32
CONVERGENCE_BARRIER: Final = 16, 4
BYTE_MASK: Final = 72, 4
SECOND_PREDICATE: Final = 87, 3
UNIFORM_OPERAND: Final = 91, 1
REUSE: Final = 122, 4
BSSY_DISTANCE: Final = 32, 32
"""Bytes from the instruction behind a ``BSSY`` to where lanes meet, signed."""


@dataclass(frozen=True, slots=True, order=True, init=False, eq=True)
class Word:
    """One instruction as a number of 128 bits.

    A kernel has thousands, and each is read a hundred times. So properties read their bits themselves: a call of
    ``field`` takes three times as long. Construction, comparison and hash are shorter than those of a dataclass.
    """

    bits: int

    def __init__(self, bits: int) -> None:
        _set_bits(self, bits)

    def __eq__(self, other: object) -> bool:
        return self.bits == other.bits if other.__class__ is Word else NotImplemented

    def __hash__(self) -> int:
        return hash(self.bits)

    def field(self, bit: int, width: int) -> int:
        """``width`` bits from bit ``bit`` on."""
        return self.bits >> bit & (1 << width) - 1

    def with_field(self, bit: int, width: int, value: int) -> Word:
        """Return the word with other bits there. Raises ValueError for a value that does not fit."""
        mask = (1 << width) - 1
        if not 0 <= value <= mask:
            raise ValueError(f"{value:#x} does not fit into {width} bits")
        return Word(self.bits & ~(mask << bit) | value << bit)

    @property
    def opcode(self) -> int:
        """Twelve bits: the operation in the low nine, the form of its second operand above."""
        return self.bits & 0xFFF

    @property
    def operation(self) -> int:
        """The operation, with any operands."""
        return self.bits & 0x1FF

    @property
    def form(self) -> int:
        """Kind of the operand of bits 63:32: 1 a register, 2 and 4 a number, 3 and 5 a constant, 6 and 7 uniform."""
        return self.bits >> 9 & 7

    @property
    def guard(self) -> int:
        """The predicate that lanes must have, 7 for none."""
        return self.bits >> 12 & 7

    @property
    def guard_negated(self) -> bool:
        """True if lanes must not have it."""
        return bool(self.bits >> 15 & 1)

    @property
    def is_unconditional(self) -> bool:
        """True if all active lanes take part."""
        return self.bits >> 12 & 0xF == PT

    @property
    def never_runs(self) -> bool:
        """True if its guard lets no lane execute it."""
        return self.bits >> 12 & 0xF == _NOT_PT

    def with_guard(self, guard: int, *, negated: bool = False) -> Word:
        """Return the word with another guard."""
        return self.with_field(*GUARD, guard | negated << 3)

    @property
    def rd(self) -> int:
        """The first register that is written, where the instruction writes one."""
        return self.bits >> 16 & 0xFF

    @property
    def ra(self) -> int:
        """The first register that is read."""
        return self.bits >> 24 & 0xFF

    @property
    def rb(self) -> int:
        """The second one, where the form has one."""
        return self.bits >> 32 & 0xFF

    @property
    def is_uniform_operand(self) -> bool:
        """True if an operand of an instruction of the ordinary path is a uniform register."""
        return bool(self.bits >> 91 & 1)

    @property
    def stall(self) -> int:
        """Cycles until the warp's next instruction may be issued."""
        return self.bits >> 105 & 0xF

    @property
    def write_barrier(self) -> int:
        """The barrier that is released when results are written, 7 for none."""
        return self.bits >> 110 & 7

    @property
    def read_barrier(self) -> int:
        """The barrier that is released when operands were read, 7 for none."""
        return self.bits >> 113 & 7

    @property
    def wait_mask(self) -> int:
        """The barriers that must be 0 before this is issued."""
        return self.bits >> 116 & 0x3F

    def with_stall(self, cycles: int) -> Word:
        """Return the word with other stall cycles, and no register kept for reuse, which holds for the next instruction
        only.
        """
        return self.with_field(105, 4, cycles).without_reuse()

    def without_reuse(self) -> Word:
        """Return the word with no register kept for reuse."""
        return self.with_field(*REUSE, 0)

    def with_write_barrier(self, barrier: int) -> Word:
        """Return the word with another barrier for its results."""
        return self.with_field(110, 3, barrier)

    def with_read_barrier(self, barrier: int) -> Word:
        """Return the word with another barrier for its operands."""
        return self.with_field(113, 3, barrier)

    def with_wait_mask(self, mask: int) -> Word:
        """Return the word with another mask of awaited barriers."""
        return self.with_field(116, 6, mask)


_set_bits: Final = Word.__dict__["bits"].__set__
"""Writes the number of a new word, which is constant from then on."""


def operation_of(opcode: int) -> int:
    """Return the operation of an opcode, with any operands."""
    return opcode & 0x1FF


@lru_cache(maxsize=16)
def words_of(code: bytes) -> tuple[Word, ...]:
    """Return the instructions of a code section. Raises ValueError for a length that is not a multiple of 16.

    The last sections are remembered: a kernel is cut out of its cubin, then each probe is put into it.
    """
    if len(code) % WORD_BYTES:
        raise ValueError(f"{len(code)} bytes of code are not a multiple of {WORD_BYTES}")
    return tuple(
        [Word(low_half | high_half << 64) for low_half, high_half in _HALVES.iter_unpack(code)]
    )  # a third faster than a generator


def code_of(words: Iterable[Word]) -> bytes:
    """Return the bytes of instructions."""
    return b"".join(word.bits.to_bytes(WORD_BYTES, "little") for word in words)


# ``BRA`` and ``EXIT``: the instructions that a graft is joined to a kernel with.
#
# The offset of a branch is a number of 4-byte units from the next instruction on, signed: 48 bits in 81:34, and from
# sm_90 on eight bits more below those, in 23:16. Bits 90:87 hold a second predicate, PT where there is none.

_UNIT: Final = 4
_OFFSET_AT: Final = 34
_OFFSET_BITS: Final = 48
_LOW_AT: Final = 16
_LOW_BITS: Final = 8
_SPLIT_FROM: Final = 90
"""The first architecture whose offset has bits in 23:16 as well."""
_SECOND_GUARD: Final = 87, 4
"""Second predicate and its negation."""
BRANCH_STALL: Final = 5
"""Cycles from a branch to the next instruction at least."""


BRANCH_CONDITION: Final = 32, 2
"""Field of a ``BRA`` that makes it a test of lanes, on sm_75 to sm_120: 1 ``.U``, 2 ``.DIV``, 3 ``.CONV``."""
_LANE_TESTS: Final = frozenset({2, 3})


def is_convergence_test(word: Word) -> bool:
    """Return whether a ``BRA`` asks if lanes of a mask have diverged, which only the compiler inserts."""
    return word.operation == operation_of(BRA) and word.field(*BRANCH_CONDITION) in _LANE_TESTS


def branch_word(arch: int, offset: int, target: int, template: Word | None = None) -> Word:
    """Return a branch at a byte ``offset`` to ``target``, both in the same section, for an architecture (90).

    The branch gets the guard and the wait mask of ``template``, of an ``EXIT`` also its second predicate.
    """
    units = (target - offset - WORD_BYTES) // _UNIT
    bits = _OFFSET_BITS + (_LOW_BITS if arch >= _SPLIT_FROM else 0)
    if not -(1 << bits - 1) <= units < 1 << bits - 1:
        raise ValueError(f"a branch from {offset:#x} to {target:#x} is too far")
    word = new_word(BRA, BRANCH_STALL).with_field(YIELD, 1, 1).with_field(*SECOND_PREDICATE, PT)
    if arch >= _SPLIT_FROM:
        word = word.with_field(_LOW_AT, _LOW_BITS, units & (1 << _LOW_BITS) - 1)
        units >>= _LOW_BITS
    word = word.with_field(_OFFSET_AT, _OFFSET_BITS, units & (1 << _OFFSET_BITS) - 1)
    if template is None:
        return word
    if template.operation == operation_of(EXIT):
        word = word.with_field(*_SECOND_GUARD, template.field(*_SECOND_GUARD))
    return word.with_field(*GUARD, template.field(*GUARD)).with_wait_mask(template.wait_mask)


def branch_target(arch: int, offset: int, word: Word) -> int:
    """Return the target of a ``BRA`` at a byte ``offset``."""
    units, bits = word.field(_OFFSET_AT, _OFFSET_BITS), _OFFSET_BITS
    if arch >= _SPLIT_FROM:
        units, bits = units << _LOW_BITS | word.field(_LOW_AT, _LOW_BITS), bits + _LOW_BITS
    if units >= 1 << bits - 1:
        units -= 1 << bits
    return offset + WORD_BYTES + units * _UNIT


def with_branch_to(arch: int, word: Word, offset: int, target: int) -> Word:
    """Return a branch at a byte ``offset`` with ``target`` as its new target."""
    branch = branch_word(arch, offset, target)
    fields = [(_OFFSET_AT, _OFFSET_BITS), *([(_LOW_AT, _LOW_BITS)] if arch >= _SPLIT_FROM else [])]
    for bit, width in fields:
        word = word.with_field(bit, width, branch.field(bit, width))
    return word


def with_moved_branch(arch: int, word: Word, offset: int, new_offset: int) -> Word:
    """Return a ``BRA`` for another byte offset, with the target that it had."""
    return with_branch_to(arch, word, new_offset, branch_target(arch, offset, word))


def without_guard(word: Word) -> Word:
    """Return an ``EXIT`` or a branch that all lanes take."""
    return word.with_guard(PT).with_field(*_SECOND_GUARD, PT)


def nop_word() -> Word:
    """Return an instruction that does nothing, as padding behind code."""
    return new_word(NOP, 0)


@lru_cache(maxsize=256)
def new_word(opcode: int, stall: int) -> Word:
    """Return an instruction for all active lanes, without barriers and operands."""
    word = Word(opcode).with_guard(PT).with_stall(stall)
    return word.with_write_barrier(NO_BARRIER).with_read_barrier(NO_BARRIER)


DEPBAR: Final = 0x11A
"""DEPBAR.LE: waits until a scoreboard barrier has at most a number of groups pending."""
DEPBAR_BARRIER: Final = 44, 3
DEPBAR_GROUPS: Final = 32, 12
"""The number, and a mask of other barriers that must be 0; before sm_90 ptxas waits so for a clock that S2UR reads."""

LDC: Final = 0x182
ULDC: Final = 0x0B9
LDCU: Final = 0x1AC
"""Loads into uniform registers, as ULDC; LDC loads into ordinary ones."""
CONSTANT_LOADS: Final = frozenset({LDC, ULDC, LDCU})

CONSTANT_FORMS: Final = frozenset({3, 5})
"""Values of ``Word.form``."""
CONSTANT_BANK: Final = 54, 5
CONSTANT_OFFSET: Final = 38, 16
_LDCU_OFFSET_FIELD: Final = 37, 17
_WIDTH_FIELD: Final = 73, 3
_LOADED_BYTES: Final = {5: 8, 6: 16}
_WORD_BYTES: Final = 4
_MAX_BYTES: Final = 8


def constant_bank(word: Word) -> int | None:
    """Return the bank that a word reads; None for one that reads no constant."""
    return word.bits >> 54 & 0x1F if word.bits >> 9 & 7 in CONSTANT_FORMS else None


def constant_offset(word: Word) -> int:
    """Return the byte offset in its bank."""
    return word.field(*_offset_field(word))


def with_constant_offset(word: Word, offset: int) -> Word:
    """Return the word with another constant as its operand."""
    return word.with_field(*_offset_field(word), offset)


def constant_bytes(word: Word) -> int:
    """Return the number of bytes it reads; of an instruction that computes with them, the most that it may."""
    return _LOADED_BYTES.get(word.field(*_WIDTH_FIELD), _WORD_BYTES) if word.operation in CONSTANT_LOADS else _MAX_BYTES


def is_indexed_constant(word: Word) -> bool:
    """Return whether a register says which constant is read."""
    if word.operation in CONSTANT_LOADS:
        return word.operation != ULDC and word.ra != RZ
    return word.is_uniform_operand


def _offset_field(word: Word) -> tuple[int, int]:
    return _LDCU_OFFSET_FIELD if word.operation == LDCU else CONSTANT_OFFSET
