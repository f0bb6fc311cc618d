"""Registers of lanes, predicates and convergence barriers that SASS words name, and their replacement.

What writes predicates names them in 83:81 and 86:84, PT where it writes none. Predicates of the uniform path are
written by that path's instructions and by few others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.sass.words import NO_BARRIER, PT, RZ

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tui_probe.sass.words import Word

_PREDICATE_RESULTS: Final = ((81, 3), (84, 3))
_PREDICATE_OPERAND: Final = 87
_UNIFORM_PATH: Final = range(0x80, 0x100)
_TO_UNIFORM: Final = frozenset({0x02F, 0x1C2, 0x1C3, 0x1C4})
_ALL_PREDICATES: Final = frozenset(range(PT))
_WRITES_ALL: Final = frozenset({0x0B4, 0x0B5})
"""UR2UP and its kin: which ones they write is in a mask."""
_BARRIER_PATH: Final = frozenset({0x141, 0x142, 0x145, 0x154, 0x155, 0x156, 0x157, 0x158})
"""BSYNC, BREAK, BSSY, and what moves convergence barriers to and from registers."""
_BARRIER_FIELDS: Final = ((16, 4), (24, 4), (32, 4))
_BARRIERS: Final = 16
_WRITES_NONE: Final = frozenset(
    {0x028, 0x029, 0x02B, 0x037, 0x03B, 0x03C, 0x03F, 0x100, 0x104, 0x105, 0x106, 0x107, 0x108, 0x109, 0x119, 0x182}
    | {0x183, 0x184, 0x1AE, 0x1C2, 0x1C3, 0x1C4, 0x185, 0x186, 0x187, 0x188, 0x18E, 0x1A6, 0x0B9, 0x1AC}
)
"""DMUL, DADD, DFMA, IMMA, LDSM, HMMA, DMMA, FLO, conversions, MUFU, POPC, S2R, loads other than of global memory,
stores: their results are behind a barrier and are not predicates, anything else is in those bits.
"""
_WITH_UNIFORM_RESULT: Final = frozenset({0x086, 0x090, 0x091, 0x092})
"""VOTEU, UIADD3, ULEA, ULOP3: those of snippets that may write a predicate of the uniform path."""
_WITH_CARRY: Final = frozenset({0x090, 0x091})
"""UIADD3, ULEA: they read one where ``.X`` says so."""
_CARRIES: Final = 74


def late_predicates(words: Iterable[Word]) -> int:
    """Return the mask of the scoreboard barriers that release predicates. Code that saves predicates must wait for
    them: a value that arrives later would be lost when the saved ones are restored.
    """
    mask = 0
    for word in words:
        writes_predicate = (
            any(word.field(*bits) != PT for bits in _PREDICATE_RESULTS) and word.operation not in _WRITES_NONE
        )
        if word.write_barrier != NO_BARRIER and writes_predicate:
            mask |= 1 << word.write_barrier
    return mask


def uniform_predicates(words: Iterable[Word]) -> frozenset[int]:
    """Return the predicates of the uniform path that a kernel may write, and so may need."""
    numbers: set[int] = set()
    for word in words:
        if word.operation in _WRITES_ALL:
            return _ALL_PREDICATES
        if word.operation in _UNIFORM_PATH or word.operation in _TO_UNIFORM:
            numbers.update(word.field(*bits) for bits in _PREDICATE_RESULTS)
    return frozenset(numbers - {PT})


def snippet_predicates(words: Iterable[Word]) -> list[int]:
    """Return the predicates of the uniform path that a snippet writes."""
    predicates = {
        word.field(*bits) for word in words if word.operation in _WITH_UNIFORM_RESULT for bits in _PREDICATE_RESULTS
    }
    return sorted(predicates - {PT})


def needs_uniform(word: Word) -> bool:
    """Return whether a word of a snippet writes or reads a predicate of the uniform path: of ULOP3 and VOTEU the second
    field is none.
    """
    if word.operation not in _WITH_UNIFORM_RESULT:
        return False
    result_fields = _PREDICATE_RESULTS if word.operation in _WITH_CARRY else _PREDICATE_RESULTS[:1]
    reads_carry = word.operation in _WITH_CARRY and bool(word.field(_CARRIES, 1))
    return reads_carry or any(word.field(*bits) != PT for bits in result_fields)


def with_barrier(word: Word, numbers: Mapping[int, int]) -> Word:
    """Return a word of a snippet with another convergence barrier."""
    if word.operation not in _BARRIER_PATH:
        return word
    return word.with_field(*_BARRIER_FIELDS[0], numbers[word.field(*_BARRIER_FIELDS[0])])


def with_uniform_predicates(word: Word, numbers: Mapping[int, int]) -> Word:
    """Return a word of a snippet with other predicates of the uniform path."""
    if word.operation in _WITH_UNIFORM_RESULT:
        for bits in _PREDICATE_RESULTS:
            number = word.field(*bits)
            word = word.with_field(*bits, numbers.get(number, number))
    if word.operation in _WITH_CARRY and word.field(_CARRIES, 1):
        number = word.field(_PREDICATE_OPERAND, 3)
        word = word.with_field(_PREDICATE_OPERAND, 3, numbers.get(number, number))
    return word


def used_barriers(words: Iterable[Word]) -> frozenset[int]:
    """Return the convergence barriers that may be in use."""
    return frozenset(word.field(*bits) for word in words if word.operation in _BARRIER_PATH for bits in _BARRIER_FIELDS)


def snippet_barriers(words: Iterable[Word]) -> list[int]:
    """Return the barriers at which the lanes of a snippet that has no other way of meeting meet again."""
    return sorted({word.field(*_BARRIER_FIELDS[0]) for word in words if word.operation in _BARRIER_PATH})


def free_barriers(words: Iterable[Word], count: int) -> list[int]:
    """Return ``count`` convergence barriers that a kernel does not use. Raises UnsupportedKernelError for too few."""
    used_numbers = used_barriers(words)
    free = [number for number in range(_BARRIERS - 1, -1, -1) if number not in used_numbers]
    if len(free) < count:
        raise UnsupportedKernelError(because("graft-convergence"))
    return free[:count]


# Registers of lanes that the instructions of snippets name, so that they can be given others.
#
# Of the instructions that ptxas makes of snippets it is known in which of the four fields they name a register; all
# others are refused. A register for two or four words is named by the first, so all move by a multiple of four.

_ALIGNMENT: Final = 4
"""Registers move by a multiple of this, since the first one of four must have a number that is a multiple of four."""

_RD, _RA, _RB, _RC = 16, 24, 32, 64
_REGISTER_FIELDS: Final[dict[int, tuple[int, ...]]] = {
    0x002: (_RD, _RB),  # MOV
    0x005: (_RD,),  # CS2R
    0x006: (_RD,),  # VOTE
    0x007: (_RD, _RA, _RB),  # SEL
    0x00C: (_RA, _RB),  # ISETP
    0x010: (_RD, _RA, _RB, _RC),  # IADD3
    0x011: (_RD, _RA, _RB, _RC),  # LEA
    0x012: (_RD, _RA, _RB, _RC),  # LOP3
    0x016: (_RD, _RA, _RB, _RC),  # PRMT
    0x019: (_RD, _RA, _RB, _RC),  # SHF
    0x01A: (_RD, _RA, _RB),  # SGXT
    0x01C: (),  # PLOP3
    0x01F: (_RA, _RB, _RC),  # PLOP3 of signs
    0x024: (_RD, _RA, _RB, _RC),  # IMAD
    0x025: (_RD, _RA, _RB, _RC),  # IMAD.WIDE
    0x027: (_RD, _RA, _RB, _RC),  # IMAD.HI
    0x031: (_RD, _RA, _RB, _RC),  # HFMA2
    0x035: (_RD, _RA, _RB, _RC),  # HFMA2.MMA
    0x036: (_RD, _RA, _RB),  # VIADD
    0x046: (_RD, _RA, _RB, _RC),  # VIADDMNMX
    0x048: (_RD, _RA, _RB),  # VIMNMX
    0x086: (),  # VOTEU
    0x100: (_RD, _RB),  # FLO
    0x109: (_RD, _RB),  # POPC
    0x118: (),  # NOP
    0x119: (_RD,),  # S2R
    0x11A: (),  # DEPBAR
    0x141: (),  # BSYNC
    0x145: (),  # BSSY
    0x147: (),  # BRA
    0x14D: (),  # EXIT
    0x180: (_RD, _RA),  # LD
    0x182: (_RD, _RA),  # LDC
    0x186: (_RA, _RB),  # STG
    0x189: (_RD, _RA, _RB),  # SHFL
    0x18E: (_RA, _RB),  # RED
    0x1A1: (_RD, _RA),  # MATCH
    0x1A8: (_RD, _RA, _RB),  # ATOMG
    0x1AA: (_RD, _RA),  # QSPC
    0x1AC: (),  # LDCU
    0x1C3: (),  # S2UR
    0x1C4: (_RA,),  # REDUX
}
_SINGLE_REGISTER_OPERATIONS: Final = frozenset({0x002, 0x006, 0x007, 0x010, 0x012, 0x100, 0x109, 0x119, 0x189, 0x1C4})
"""MOV, VOTE, SEL, IADD3, LOP3, FLO, POPC, S2R, SHFL, REDUX: what they name is never the first register of two."""
_REGISTER_FORM: Final = 1
_STG: Final = 0x186
_STORES: Final = frozenset({_STG, 0x18E, 0x1A8})
"""STG, RED, ATOMG: the stored operand is a register in all forms, which report the address."""
_STORE_SIZE_FIELD: Final = (73, 3)
_STORE_SIZE_128: Final = 6
_SHFL: Final = 0x189
_LANE_IN_REGISTER: Final = 2
"""Form of a ``SHFL`` whose lane is in a register and whose bounds are a number: the only one that is known."""
_SWAPPED_FORMS: Final = frozenset({2, 3, 7})
"""Forms whose bits 63:32 are the third operand, and whose field of the third is the second."""


def register_fields(word: Word) -> tuple[int, ...] | None:
    """Return the fields in which a word of a snippet names registers of lanes; None for an instruction that is not
    known.
    """
    operation = word.operation
    if operation in _UNIFORM_PATH:
        return ()
    fields = _REGISTER_FIELDS.get(operation)
    if fields is None:
        return None
    if operation == _SHFL:
        return fields if word.form == _LANE_IN_REGISTER else None
    if _RB in fields and word.form != _REGISTER_FORM and operation not in _STORES:
        fields = tuple(bit for bit in fields if bit != _RB)
        if word.form in _SWAPPED_FORMS and _RC not in fields:
            fields += (_RC,)
    return fields


def with_registers_moved(word: Word, shift: int) -> Word:
    """Return a word of a snippet with each register's number higher by ``shift``.

    Raises ValueError beyond the last register.
    """
    for bit in register_fields(word) or ():
        number = word.field(bit, 8)
        if number != RZ:
            if number + shift >= RZ:
                raise ValueError(f"there is no register {number + shift}")
            word = word.with_field(bit, 8, number + shift)
    return word


def registers_end(word: Word) -> int:
    """Return the number behind the last register that it may name, 0 for none."""
    numbers = [word.field(bit, 8) for bit in register_fields(word) or ()]
    return max((number + _registers_of_field(word) for number in numbers if number != RZ), default=0)


def _registers_of_field(word: Word) -> int:
    """Return how many registers from the named one on a word may use: of most operations a pair."""
    if word.operation == _STG and word.field(*_STORE_SIZE_FIELD) == _STORE_SIZE_128:
        return 4
    return 1 if word.operation in _SINGLE_REGISTER_OPERATIONS else 2


def align_register(number: int) -> int:
    """Return the first number from ``number`` on to which registers can be moved."""
    return -(-number // _ALIGNMENT) * _ALIGNMENT
