"""Instruction words: 128 bits from sm_70 on, with the fields that all instructions share.

Bits, low to high: opcode 11:0 (11:9 say what the second operand is), guard 15:12, Rd 23:16, Ra 31:24, Rb 39:32 or a
32-bit number 63:32, Rc 71:64, what is the instruction's own, then control: stall 108:105, yield 109, write barrier
112:110, read barrier 115:113, wait mask 121:116, reuse 125:122. No barrier is 7. Each barrier is a counter; an
instruction waits until those of its mask are 0.

Which fields an instruction uses is for those who know its opcode: see ``registers``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

WORD_BYTES: Final = 16
NO_BARRIER: Final = 7
ALL_BARRIERS: Final = 0x3F
ALWAYS: Final = 7
"""The guard PT: all active lanes."""
RZ: Final = 255
RESERVED: Final = 2
"""Registers that a kernel must have beyond the last one that it names; an instruction that names more is illegal."""
MOST_REGISTERS: Final = 255


@dataclass(frozen=True, slots=True, order=True)
class Word:
    """One instruction as a number of 128 bits."""

    bits: int

    def field(self, low: int, width: int) -> int:
        """``width`` bits from bit ``low`` on."""
        return self.bits >> low & (1 << width) - 1

    def with_field(self, low: int, width: int, value: int) -> Word:
        """The same word with other bits there. Raises ValueError for a value that does not fit."""
        mask = (1 << width) - 1
        if not 0 <= value <= mask:
            raise ValueError(f"{value:#x} does not fit into {width} bits")
        return Word(self.bits & ~(mask << low) | value << low)

    @property
    def opcode(self) -> int:
        """Twelve bits: the operation in the low nine, the form of its second operand above."""
        return self.field(0, 12)

    @property
    def operation(self) -> int:
        """The operation whatever its operands are."""
        return self.field(0, 9)

    @property
    def form(self) -> int:
        """What the operand of bits 63:32 is: 1 a register, 2 and 4 a number, 3 and 5 a constant, 6 and 7 uniform."""
        return self.field(9, 3)

    @property
    def guard(self) -> int:
        """The predicate that lanes must have, 7 for none."""
        return self.field(12, 3)

    @property
    def guard_negated(self) -> bool:
        """Whether lanes must not have it."""
        return bool(self.field(15, 1))

    @property
    def is_unconditional(self) -> bool:
        """Whether all active lanes take part."""
        return self.field(12, 4) == ALWAYS

    @property
    def never_runs(self) -> bool:
        """Whether its guard lets no lane execute it."""
        return self.guard == ALWAYS and self.guard_negated

    def guarded(self, guard: int, *, negated: bool = False) -> Word:
        """For other lanes."""
        return self.with_field(12, 4, guard | negated << 3)

    @property
    def rd(self) -> int:
        """The first register that is written, where the instruction writes one."""
        return self.field(16, 8)

    @property
    def ra(self) -> int:
        """The first register that is read."""
        return self.field(24, 8)

    @property
    def rb(self) -> int:
        """The second one, where the form has one."""
        return self.field(32, 8)

    @property
    def is_uniform_operand(self) -> bool:
        """Whether an operand of an instruction of the ordinary path is a uniform register."""
        return bool(self.field(91, 1))

    @property
    def stall(self) -> int:
        """Cycles until the warp's next instruction may be issued."""
        return self.field(105, 4)

    @property
    def write_barrier(self) -> int:
        """The barrier that is released when results are written, 7 for none."""
        return self.field(110, 3)

    @property
    def read_barrier(self) -> int:
        """The barrier that is released when operands were read, 7 for none."""
        return self.field(113, 3)

    @property
    def wait_mask(self) -> int:
        """The barriers that must be 0 before this is issued."""
        return self.field(116, 6)

    def with_stall(self, cycles: int) -> Word:
        """With another number of cycles, and no register kept for reuse, which holds for the next instruction alone."""
        return self.with_field(105, 4, cycles).with_field(122, 4, 0)

    def with_write_barrier(self, barrier: int) -> Word:
        """With another barrier for its results."""
        return self.with_field(110, 3, barrier)

    def with_read_barrier(self, barrier: int) -> Word:
        """With another barrier for its operands."""
        return self.with_field(113, 3, barrier)

    def with_wait_mask(self, mask: int) -> Word:
        """Waiting for other barriers."""
        return self.with_field(116, 6, mask)


def words_of(code: bytes) -> list[Word]:
    """The instructions of a code section. Raises ValueError for a length that is no multiple of 16."""
    if len(code) % WORD_BYTES:
        raise ValueError(f"{len(code)} bytes of code are no multiple of {WORD_BYTES}")
    return [Word(int.from_bytes(code[at : at + WORD_BYTES], "little")) for at in range(0, len(code), WORD_BYTES)]


def code_of(words: Iterable[Word]) -> bytes:
    """The bytes of instructions."""
    return b"".join(word.bits.to_bytes(WORD_BYTES, "little") for word in words)
