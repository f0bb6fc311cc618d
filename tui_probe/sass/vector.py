"""Registers of lanes that the instructions of snippets name, so that they can be given others.

Of the instructions that ptxas makes of snippets it is known in which of the four fields they name a register; all
others are refused. A register for two or four words is named by the first, so all move by a multiple of four.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.sass.words import RZ

if TYPE_CHECKING:
    from tui_probe.sass.words import Word

ALIGNED: Final = 4
"""Registers move by a multiple of this."""

_RD, _RA, _RB, _RC = 16, 24, 32, 64
_FIELDS: Final[dict[int, tuple[int, ...]]] = {
    0x002: (_RD, _RB),  # MOV
    0x005: (_RD,),  # CS2R
    0x006: (_RD,),  # VOTE
    0x007: (_RD, _RA, _RB),  # SEL
    0x00C: (_RA, _RB),  # ISETP
    0x010: (_RD, _RA, _RB, _RC),  # IADD3
    0x011: (_RD, _RA, _RB, _RC),  # LEA
    0x012: (_RD, _RA, _RB, _RC),  # LOP3
    0x019: (_RD, _RA, _RB, _RC),  # SHF
    0x01C: (),  # PLOP3
    0x024: (_RD, _RA, _RB, _RC),  # IMAD
    0x025: (_RD, _RA, _RB, _RC),  # IMAD.WIDE
    0x027: (_RD, _RA, _RB, _RC),  # IMAD.HI
    0x031: (_RD, _RA, _RB, _RC),  # HFMA2
    0x035: (_RD, _RA, _RB, _RC),  # HFMA2.MMA
    0x036: (_RD, _RA, _RB),  # VIADD
    0x086: (),  # VOTEU
    0x109: (_RD, _RB),  # POPC
    0x118: (),  # NOP
    0x119: (_RD,),  # S2R
    0x141: (),  # BSYNC
    0x145: (),  # BSSY
    0x147: (),  # BRA
    0x14D: (),  # EXIT
    0x182: (_RD, _RA),  # LDC
    0x186: (_RA, _RB),  # STG
    0x18E: (_RA, _RB),  # RED
    0x1A1: (_RD, _RA),  # MATCH
    0x1AA: (_RD, _RA),  # QSPC
    0x1AC: (),  # LDCU
    0x1C3: (),  # S2UR
    0x1C4: (_RA,),  # REDUX
}
_OF_ONE: Final = frozenset({0x002, 0x006, 0x007, 0x010, 0x012, 0x109, 0x119, 0x1C4})
"""MOV, VOTE, SEL, IADD3, LOP3, POPC, S2R, REDUX: what they name is never the first register of two."""
_UNIFORM_PATH: Final = range(0x80, 0x100)
_REGISTER_FORM: Final = 1
_STG: Final = 0x186
_STORES: Final = frozenset({_STG, 0x18E})
"""What they store is a register in all forms, which tell of the address."""
_SIZE: Final = (73, 3)
_OF_FOUR: Final = 6
_SWAPPED: Final = frozenset({2, 3, 7})
"""Forms whose bits 63:32 are the third operand, and whose field of the third is the second."""


def fields(word: Word) -> tuple[int, ...] | None:
    """Where a word of a snippet names registers of lanes; None for an instruction that is not known."""
    operation = word.operation
    if operation in _UNIFORM_PATH:
        return ()
    found = _FIELDS.get(operation)
    if found is None:
        return None
    if _RB in found and word.form != _REGISTER_FORM and operation not in _STORES:
        found = tuple(at for at in found if at != _RB)
        if word.form in _SWAPPED and _RC not in found:
            found += (_RC,)
    return found


def moved(word: Word, by: int) -> Word:
    """A word of a snippet with each register's number higher by ``by``. Raises ValueError beyond the last register."""
    for at in fields(word) or ():
        number = word.field(at, 8)
        if number != RZ:
            if number + by >= RZ:
                raise ValueError(f"there is no register {number + by}")
            word = word.with_field(at, 8, number + by)
    return word


def end(word: Word) -> int:
    """The number behind the last register that it may name, 0 for none: of most operations the first of two."""
    words = 4 if word.operation == _STG and word.field(*_SIZE) == _OF_FOUR else 1 if word.operation in _OF_ONE else 2
    return max((number + words for at in fields(word) or () if (number := word.field(at, 8)) != RZ), default=0)
