"""Trampolines: code around one instruction of a kernel, which then continues behind it.

A branch replaces the instruction, and waits for what that waits for. Behind the kernel's code::

    NOP                   until predicates that were written last can be read
    P2R  saved, PR        all seven: a snippet writes some, which ones only ptxas knows
    MOV  flag, 0; @P MOV flag, 1                 where a predicate describes the access
    BSSY B, end           only where a guard or a branch in the snippet parts lanes
    @!P BRA end           the lanes that the instruction is not for
    the snippet           its registers above those of the kernel, its marks replaced by moves; several run one after
                          the other, with all from BSSY to R2P for those in which lanes part
  end: BSYNC B            lanes reconverge. Without this a warp would stay in parts to the end of the kernel, and
                          uniform registers would be advanced once for each part
    R2P  PR, saved        waits for all that the snippet began
    the instruction       with its guard and barriers, without ``.reuse``, which holds for the next instruction only
    BRA  back

Invariants:

- All lanes that reach the instruction leave the trampoline together, so ``WARPSYNC``, ``BSYNC`` and votes of the kernel
  see the same lanes.
- Operands that ``.reuse`` of the instruction before keeps are in registers that the snippet never writes.
- A branch of the kernel to the instruction reaches the branch to the trampoline.
- Pending instructions of the kernel write registers of its own. A barrier that both use makes one wait longer, never
  shorter; the least used ones are taken.
- The guard of a bulk copy is a uniform predicate: ``PLOP3`` behind ``P2R`` copies it to one of lanes.
- Barriers that release predicates are waited for before predicates are saved: restoring would undo a later write.
- The kernel uses the uniform registers and predicates of the snippet nowhere.

A record of lane 0 has shorter code, in four registers and no predicate::

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

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.sass.bulk_copies import UNIFORM_COPIES
from tui_probe.sass.inline_code import FreeRegisters, InlineCode, MarkValue
from tui_probe.sass.wait_probe import clock_word, plus_number, uniform_sum
from tui_probe.sass.words import (
    ALL_BARRIERS,
    ALWAYS,
    BARRIER_COUNT,
    BRA,
    BSSY,
    BSYNC,
    CONVERGENCE_BARRIER,
    DESTINATION,
    GUARD,
    IMMEDIATE,
    NOP,
    RZ,
    SECOND_PREDICATE,
    SOURCE_A,
    WORD_BYTES,
    YIELD,
    Word,
    branch_word,
    new_word,
    nop_word,
    operation_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

PlacedSnippet: TypeAlias = "tuple[InlineCode, Mapping[int, MarkValue]]"
"""Code of a snippet, and the values of its marks."""

_P2R: Final = 0x803
_R2P: Final = 0x804
_RECONVERGENT: Final = 73
_RECONVERGENT_FROM: Final = 100
_PREDICATES: Final = 0x7F
_FROM_UNIFORM: Final = 0x81C
_UNIFORM_TEST: Final = 0x03F0F008
_TESTED: Final = 68
"""``PLOP3.LUT P0, PT, PT, PT, UP, 0x80, 0x0`` and the bits of UP's number."""
_TEST: Final = 0
"""The predicate of lanes that has a uniform predicate's value in a trampoline."""
_LANES: Final = 0x886 | 0x038E0100 << 64
_SMALLER: Final = 0x848 | 0x03FE0100 << 64
_AND: Final = 0x892 | 0x0F8EC03F << 64
_MULTIPLY_WIDE: Final = 0x825 | 0x078E0000 << 64
_STORE_PAIR: Final = 0x386 | 0x0B00 << 64
"""VOTEU of all lanes, VIMNMX, ULOP3, IMAD.WIDE.U32, STG of 64 bits."""
_TO_PRODUCT, _TO_STORE, _TO_COUNT = 5, 5, 6
"""Cycles until a product, a store, and the next record, which reads the count, can read the result of another
instruction.
"""
_FIRST_YIELDING: Final = 3
"""Stall cycles from which ptxas mostly lets other warps issue first; with fewer it never does."""
_RECORD_BYTES: Final = 8
COPY_RECORD_BYTES: Final = 16
_COPY_VALUES: Final = 2
"""Values of a bulk copy in its first record; the second one has the others."""
_PIECE_BYTES: Final = 8
_TO_WAIT: Final = 2
"""Cycles until an instruction can wait for the scoreboard barrier of a store."""
_OFFSET_IN_STORE: Final = 40, 24
_SETTLED_STALL: Final = 13
"""Cycles after which a predicate or a register that a fixed-latency instruction wrote can be read by any other."""


def trampoline(
    inline: Sequence[PlacedSnippet],
    displaced: Word,
    free: FreeRegisters,
    flag_predicate: int = ALWAYS,
    block_code: PlacedSnippet | None = None,
) -> list[Word]:
    """Return the code that runs before an instruction.

    ``flag_predicate`` is the predicate whose value the mark of the flag has. ``block_code`` is code for all lanes that
    come by, no matter what the instruction's guard says.
    """
    if not inline and block_code is None:
        return []
    code = [new_word(NOP, _SETTLED_STALL), _save_predicates(free)]
    test = uniform_guard_test(displaced)
    displaced = displaced if test is None else displaced.guarded(_TEST, negated=displaced.guard_negated)
    if flag_predicate != ALWAYS:
        code += [MarkValue(number=0).move(free.scratch + 1), MarkValue(number=1).move(free.scratch + 1)]
        code[-1] = code[-1].with_field(*GUARD, flag_predicate)
    emitted = _entry_words(block_code, free)
    code += emitted
    for number, snippets in enumerate(_snippets_together(inline)):
        if number:  # the next one has the same registers, and predicates that say where it runs
            code.append(_restore_predicates(free, _pending_barriers(emitted)))
            emitted = []
        code += [] if test is None else [test]
        body = [word for snippet, sources in snippets for word in snippet.placed(free, sources)]
        diverges = not displaced.is_unconditional or snippets[-1][0].diverges
        code += _converging(body, displaced, free) if diverges else body
        emitted = [*emitted, *body]
    code.append(_restore_predicates(free, _pending_barriers(emitted)))
    return code


def uniform_guard_test(word: Word) -> Word | None:
    """Return the instruction that copies the uniform predicate of a bulk copy's guard to predicate 0; None for another
    instruction and without a guard.
    """
    if word.is_unconditional or word.operation not in UNIFORM_COPIES:
        return None
    return new_word(_FROM_UNIFORM, _SETTLED_STALL).with_field(64, 32, _UNIFORM_TEST).with_field(_TESTED, 3, word.guard)


def _snippets_together(inline: Sequence[PlacedSnippet]) -> list[list[PlacedSnippet]]:
    """Group the snippets that run without reconvergence in between: one in which lanes diverge ends its group."""
    groups: list[list[PlacedSnippet]] = []
    for snippet in inline:
        if not groups or groups[-1][-1][0].diverges:
            groups.append([])
        groups[-1].append(snippet)
    return groups


def _converging(body: Sequence[Word], displaced: Word, free: FreeRegisters) -> list[Word]:
    """Run a body for the lanes that execute the displaced instruction; all lanes reconverge behind it."""
    guarded = [] if displaced.is_unconditional else [_skip_branch(free, displaced, len(body))]
    return [_begin_convergence(free, len(body) + len(guarded)), *guarded, *body, _end_convergence(free)]


def _entry_words(block_code: PlacedSnippet | None, free: FreeRegisters) -> list[Word]:
    if block_code is None:
        return []
    code, sources = block_code
    if code.diverges:
        raise UnsupportedKernelError(because("graft-snippet", what="a branch at the start of a basic block"))
    return code.placed(free, sources)


def opening_words(inline: InlineCode, free: FreeRegisters, sources: Mapping[int, MarkValue]) -> list[Word]:
    """Return the code that runs before the first instruction, where no predicate holds anything yet. Lanes that part
    meet again, and what it began is waited for: the next snippet has the same registers.
    """
    code = inline.placed(free, sources)
    if pending := _pending_barriers(code):
        code.append(new_word(NOP, _SETTLED_STALL).with_wait_mask(pending))
    return [_begin_convergence(free, len(code)), *code, _end_convergence(free)] if inline.diverges else code


def flag_value(free: FreeRegisters) -> MarkValue:
    """Return the value of the flag's mark."""
    return MarkValue(register=free.scratch + 1)


def least_used_barriers(words: Iterable[Word]) -> tuple[int, ...]:
    """Return, for each barrier of a snippet, the kernel's barrier that stands for it: the least used first."""
    uses = Counter(dict.fromkeys(range(BARRIER_COUNT), 0))
    for word in words:
        uses.update(barrier for barrier in (word.write_barrier, word.read_barrier) if barrier < BARRIER_COUNT)
    order = sorted(uses, key=lambda number: (uses[number], -number))
    # ptxas gives numbers from 0 on, and its operands wait for the last one here.
    return (*order[: BARRIER_COUNT - 1], order[0])


def _pending_barriers(words: Sequence[Word]) -> int:
    """Return the mask of scoreboard barriers pending at the end, less those that all lanes waited for."""
    mask, together = 0, True
    for word in words:
        if together:
            mask &= ~word.wait_mask
        together = together and word.operation != operation_of(BRA)
        mask |= 1 << word.write_barrier | 1 << word.read_barrier  # NO_BARRIER is above those of the mask
    return mask & ALL_BARRIERS


def _save_predicates(free: FreeRegisters) -> Word:
    word = (
        new_word(_P2R, _SETTLED_STALL)
        .with_field(*DESTINATION, free.scratch)
        .with_field(*SOURCE_A, RZ)
        .with_field(*IMMEDIATE, _PREDICATES)
    )
    return word.with_wait_mask(free.predicate_barriers)


def _restore_predicates(free: FreeRegisters, mask: int) -> Word:
    word = new_word(_R2P, _SETTLED_STALL).with_field(*SOURCE_A, free.scratch).with_field(*IMMEDIATE, _PREDICATES)
    return word.with_wait_mask(mask & ALL_BARRIERS)


def _begin_convergence(free: FreeRegisters, words: int) -> Word:
    word = (
        new_word(BSSY, 5).with_field(*CONVERGENCE_BARRIER, free.convergence).with_field(*IMMEDIATE, words * WORD_BYTES)
    )
    return _as_reconvergent(word.with_field(*SECOND_PREDICATE, ALWAYS), free.arch)


def _end_convergence(free: FreeRegisters) -> Word:
    word = new_word(BSYNC, 5).with_field(*CONVERGENCE_BARRIER, free.convergence).with_field(*SECOND_PREDICATE, ALWAYS)
    return _as_reconvergent(word, free.arch)


def _as_reconvergent(word: Word, arch: int) -> Word:
    return word.with_field(_RECONVERGENT, 1, int(arch >= _RECONVERGENT_FROM))


def _skip_branch(free: FreeRegisters, displaced: Word, words: int) -> Word:
    """Return the branch over the body for lanes that do not execute the instruction."""
    word = branch_word(free.arch, 0, (words + 1) * WORD_BYTES)
    return word.guarded(displaced.guard, negated=not displaced.guard_negated)


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
    that are waited for ``before`` it, and whether it waits for its own ``behind`` it.
    """

    barrier: int
    before: int
    behind: bool


def record_words(
    registers: RecordRegisters, line: int, cap: int, wait: OperandWait, arch: int, cycles_behind: int
) -> list[Word]:
    """Return the code for a record of 8 bytes, clock and ``line``, of up to ``cap`` in a warp. ``cycles_behind`` are
    those from the end of the code to the next record at least: this reads the count.

    Each result is read as many cycles later as in code of ptxas for sm_90: 4 or 5, and 6 from a uniform register.
    """
    word, until_count = registers.value + 1, max(1, _TO_COUNT - cycles_behind)
    *begin, smaller, multiplied = _begin_record(registers, cap, _RECORD_BYTES)
    code = [
        *begin,
        smaller.with_stall(1),
        _made(_LANES, registers.step, stall=_TO_PRODUCT - 1),
        multiplied,
        MarkValue(number=line).move(word).with_stall(1),
        _made(_AND, registers.step, registers.step, 1, stall=_TO_STORE - 1),
        _made(_STORE_PAIR, 0, registers.address, registers.value, stall=1).with_read_barrier(wait.barrier),
        uniform_sum(registers.count, registers.count, registers.step, arch).with_stall(until_count),
    ]
    return _finished_record(code, wait)


def _begin_record(registers: RecordRegisters, cap: int, record_bytes: int) -> list[Word]:
    """Return the code that reads the clock and computes the address of the next record."""
    word, address = registers.value + 1, registers.address
    high, low = (MarkValue(uniform=registers.base[half]).move(address + half) for half in (1, 0))
    return [
        MarkValue(uniform=registers.count).move(word).with_stall(1),
        clock_word(registers.value, 1),
        high.with_stall(1),
        low.with_stall(1),
        _made(_SMALLER, word, word, cap, stall=_TO_PRODUCT),
        _made(_MULTIPLY_WIDE, address, word, record_bytes, address, stall=1),
    ]


def _finished_record(code: list[Word], wait: OperandWait) -> list[Word]:
    code = [word.with_field(YIELD, 1, int(word.stall < _FIRST_YIELDING)) for word in code]
    code[0] = code[0].with_wait_mask(wait.before)
    if wait.behind:
        code.append(nop_word().with_stall(1).with_wait_mask(1 << wait.barrier))
    return code


def copy_record_words(
    registers: RecordRegisters, at: int, values: Sequence[int], cap: int, wait: OperandWait, copy: Word, arch: int
) -> list[Word]:
    """Return the code for the record of a bulk copy at byte offset ``at``: one or two of 16 bytes, of up to ``cap`` in
    a warp. ``values`` are up to five uniform registers, ``copy`` is the instruction.
    """
    word, records = registers.value + 1, records_of_copy(len(values))
    move = [MarkValue(uniform=number).move for number in values]
    code = [
        *_begin_record(registers, cap, COPY_RECORD_BYTES),
        MarkValue(number=at).move(word).with_stall(_TO_STORE),
        _store_piece(registers, 0, wait),
    ]
    pieces = [move[:_COPY_VALUES]]
    if records > 1:
        pieces += [[move[_COPY_VALUES], MarkValue(number=at | 1).move], move[_COPY_VALUES + 1 :]]
    for number, piece in enumerate(filter(None, pieces), 1):
        moved = [value(registers.value + half).with_stall(1) for half, value in enumerate(piece)]
        moved[0] = moved[0].with_wait_mask(1 << wait.barrier)
        moved[-1] = moved[-1].with_stall(_TO_STORE)
        code += [*moved, _store_piece(registers, number, wait)]
    counted = plus_number(registers.count, registers.count, records, arch).with_stall(_TO_COUNT)
    code.append(counted.guarded(copy.guard, negated=copy.guard_negated))
    return _finished_record(code, wait)


def records_of_copy(values: int) -> int:
    """Return the number of records of a bulk copy with that many values."""
    return 1 if values <= _COPY_VALUES else 2


def _store_piece(registers: RecordRegisters, number: int, wait: OperandWait) -> Word:
    """Return the store of a pair to the piece of a record."""
    stored = _made(_STORE_PAIR, 0, registers.address, registers.value, stall=_TO_WAIT)
    return stored.with_field(*_OFFSET_IN_STORE, number * _PIECE_BYTES).with_read_barrier(wait.barrier)


def _made(bits: int, to: int, source: int = 0, second: int = 0, third: int | None = None, *, stall: int) -> Word:
    """Return an instruction with its registers; ``second`` may be a number."""
    word = new_word(0, stall)
    word = Word(word.bits | bits).with_field(*DESTINATION, to).with_field(*SOURCE_A, source)
    word = word.with_field(*IMMEDIATE, second & 0xFFFFFFFF)
    return word if third is None else word.with_field(64, 8, third)
