"""Code of a record at an instruction of a kernel: shorter than a snippet, in four registers and no predicate.

A record of lane 0::

    MOV     w, count            a uniform register, as base: the address of the warp's first record
    CS2R.32 v, CLOCK
    MOV     a, base
    VIMNMX  w, w, cap           behind the last record if the warp has saved all
    VOTEU.ANY u
    IMAD.WIDE a, w, 8, a
    MOV     w, line
    ULOP3   u, u, 1             does lane 0 take part?
    STG.64  [a], v              all lanes that are here store the same
    UIADD3  count, count, u
    NOP                         waits until the operands were read

Lanes without lane 0 store where the next record of lane 0 will be: a store of one warp to an address is behind the
earlier ones. If no instruction up to the next record names the four registers, this record waits for the operands, not
a NOP.

The record of a bulk copy has the same registers, and pieces of 8 bytes that go through one pair, one after another::

    MOV, CS2R.32, MOV, MOV, VIMNMX, IMAD.WIDE a, w, 16, a, MOV w, offset      as above
    STG.64 [a], v               clock and offset
    MOV v, first; MOV w, second uniform registers of the copy, when the store has read the pair
    STG.64 [a+8], v
    the same twice more         third, offset | 1; fourth, fifth: of a copy with more than two
    UIADD3  count, count, n     records, under the guard of the copy: a warp starts one copy for all its lanes

What a copy with a false guard stores is where the next record will be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.sass.inline_code import MarkValue
from tui_probe.sass.wait_probe import clock_word, uniform_plus_number, uniform_sum
from tui_probe.sass.words import DESTINATION, IMMEDIATE, SOURCE_A, YIELD, Word, new_word, nop_word

if TYPE_CHECKING:
    from collections.abc import Sequence

_VOTEU_ANY: Final = 0x886 | 0x038E0100 << 64
_VIMNMX: Final = 0x848 | 0x03FE0100 << 64
_ULOP3_AND: Final = 0x892 | 0x0F8EC03F << 64
_IMAD_WIDE: Final = 0x825 | 0x078E0000 << 64
_STG_64: Final = 0x386 | 0x0B00 << 64
"""Encodings without registers; ``VIMNMX`` is the smaller of two, ``IMAD.WIDE`` that of ``.U32``."""
_TO_PRODUCT, _TO_STORE, _TO_COUNT = 5, 5, 6
"""Cycles until a product, a store, and the next record, which reads the count, can read the result of another
instruction.
"""
_FIRST_YIELDING: Final = 3
"""Stall cycles from which ptxas mostly lets other warps issue first; with fewer it never does."""
_RECORD_BYTES: Final = 8
"""Bytes of a record of lane 0: clock and line."""
COPY_RECORD_BYTES: Final = 16
"""Bytes of a record of a bulk copy: clock, byte offset of the instruction, two values."""
_COPY_VALUES: Final = 2
"""Values of a bulk copy in its first record; the second one has the others."""
_PIECE_BYTES: Final = 8
"""Bytes of a store: one pair of registers."""
_TO_WAIT: Final = 2
"""Cycles until an instruction can wait for the scoreboard barrier of a store."""
_OFFSET_IN_STORE: Final = 40, 24
"""Bits of the number, in bytes, that ``STG`` adds to its address."""


@dataclass(frozen=True, slots=True)
class RecordRegisters:
    """Registers of the code for a record at one instruction: even numbers of two pairs, and uniform ones: both halves
    of the address of the warp's first record, the number of records, and one that holds nothing.
    """

    address: int
    value: int
    base: tuple[int, int]
    count: int
    step: int


@dataclass(frozen=True, slots=True)
class OperandWait:
    """The waits of a record: the scoreboard ``barrier`` of its operands, the mask of the barriers of earlier records
    that are waited for ``earlier_barriers`` it, and whether it waits for its own ``waits_itself`` it.
    """

    barrier: int
    earlier_barriers: int
    waits_itself: bool


def record_words(
    registers: RecordRegisters, line: int, cap: int, wait: OperandWait, arch: int, cycles_behind: int
) -> list[Word]:
    """Return the code for a record of 8 bytes, clock and ``line``, of up to ``cap`` in a warp. ``cycles_behind`` are
    those from the end of the code to the next record at least: this reads the count.

    Each result is read as many cycles later as in code of ptxas for sm_90: 4 or 5, and 6 from a uniform register.
    """
    word, until_count = registers.value + 1, max(1, _TO_COUNT - cycles_behind)
    vote = _word(_VOTEU_ANY, registers.step, stall=_TO_PRODUCT - 1)
    code = [
        *_begin_record(registers, cap, _RECORD_BYTES, [vote]),
        MarkValue(number=line).move(word).with_stall(1),
        _word(_ULOP3_AND, registers.step, registers.step, 1, stall=_TO_STORE - 1),
        _word(_STG_64, 0, registers.address, registers.value, stall=1).with_read_barrier(wait.barrier),
        uniform_sum(registers.count, registers.count, registers.step, arch).with_stall(until_count),
    ]
    return _finish_record(code, wait)


def _begin_record(
    registers: RecordRegisters, cap: int, record_bytes: int, product_delay: Sequence[Word] = ()
) -> list[Word]:
    """Return the code that reads the clock and computes the address of the next record.

    ``product_delay`` is code that runs until the product can read the record's number.
    """
    word, address = registers.value + 1, registers.address
    high_move, low_move = (MarkValue(uniform=registers.base[half]).move(address + half) for half in (1, 0))
    return [
        MarkValue(uniform=registers.count).move(word).with_stall(1),
        clock_word(registers.value, 1),
        high_move.with_stall(1),
        low_move.with_stall(1),
        _word(_VIMNMX, word, word, cap, stall=_TO_PRODUCT - sum(delay.stall for delay in product_delay)),
        *product_delay,
        _word(_IMAD_WIDE, address, word, record_bytes, address, stall=1),
    ]


def _finish_record(code: list[Word], wait: OperandWait) -> list[Word]:
    code = [word.with_field(YIELD, 1, int(word.stall < _FIRST_YIELDING)) for word in code]
    code[0] = code[0].with_wait_mask(wait.earlier_barriers)
    if wait.waits_itself:
        code.append(nop_word().with_stall(1).with_wait_mask(1 << wait.barrier))
    return code


def copy_record_words(
    registers: RecordRegisters, offset: int, values: Sequence[int], cap: int, wait: OperandWait, copy: Word, arch: int
) -> list[Word]:
    """Return the code for the record of a bulk copy at a byte ``offset``: one or two of 16 bytes, of up to ``cap`` in a
    warp. ``values`` are up to five uniform registers, ``copy`` is the instruction.
    """
    word, records = registers.value + 1, records_of_copy(len(values))
    uniform = [MarkValue(uniform=number) for number in values]
    code = [
        *_begin_record(registers, cap, COPY_RECORD_BYTES),
        MarkValue(number=offset).move(word).with_stall(_TO_STORE),
        _store_piece(registers, 0, wait),
    ]
    pieces = [uniform[:_COPY_VALUES]]
    if records > 1:
        pieces += [[uniform[_COPY_VALUES], MarkValue(number=offset | 1)], uniform[_COPY_VALUES + 1 :]]
    for number, piece in enumerate(filter(None, pieces), 1):
        moves = [value.move(registers.value + half).with_stall(1) for half, value in enumerate(piece)]
        moves[0] = moves[0].with_wait_mask(1 << wait.barrier)
        moves[-1] = moves[-1].with_stall(_TO_STORE)
        code += [*moves, _store_piece(registers, number, wait)]
    count_word = uniform_plus_number(registers.count, registers.count, records, arch).with_stall(_TO_COUNT)
    code.append(count_word.with_guard(copy.guard, negated=copy.guard_negated))
    return _finish_record(code, wait)


def records_of_copy(values: int) -> int:
    """Return the number of records of a bulk copy with that many values."""
    return 1 if values <= _COPY_VALUES else 2


def _store_piece(registers: RecordRegisters, number: int, wait: OperandWait) -> Word:
    """Return the store of a pair to the piece of a record."""
    store = _word(_STG_64, 0, registers.address, registers.value, stall=_TO_WAIT)
    return store.with_field(*_OFFSET_IN_STORE, number * _PIECE_BYTES).with_read_barrier(wait.barrier)


def _word(
    bits: int,
    destination: int,
    first_source: int = 0,
    second_source: int = 0,
    third_source: int | None = None,
    *,
    stall: int,
) -> Word:
    """Return an instruction with its registers; ``second_source`` may be a number."""
    word = new_word(0, stall)
    word = Word(word.bits | bits).with_field(*DESTINATION, destination).with_field(*SOURCE_A, first_source)
    word = word.with_field(*IMMEDIATE, second_source & 0xFFFFFFFF)
    return word if third_source is None else word.with_field(64, 8, third_source)
