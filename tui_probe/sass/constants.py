"""Constants as operands: the bank and the offset in it that an instruction reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.sass.words import RZ

if TYPE_CHECKING:
    from tui_probe.sass.words import Word

LDC: Final = 0x182
ULDC: Final = 0x0B9
LDCU: Final = 0x1AC
LOADS: Final = frozenset({LDC, ULDC, LDCU})

_FORMS: Final = frozenset({3, 5})
_BANK: Final = 54, 5
_OFFSET: Final = 38, 16
_OFFSET_OF_LDCU: Final = 37, 17
_WIDTH: Final = 73, 3
_LOADED_BYTES: Final = {5: 8, 6: 16}
_WORD_BYTES: Final = 4
_MOST_BYTES: Final = 8


def bank_of(word: Word) -> int | None:
    """The bank that a word reads; None for one that reads no constant."""
    return word.field(*_BANK) if word.form in _FORMS else None


def offset_of(word: Word) -> int:
    """The byte offset in its bank."""
    return word.field(*_place(word))


def with_offset(word: Word, offset: int) -> Word:
    """The same word, reading another constant."""
    return word.with_field(*_place(word), offset)


def bytes_read(word: Word) -> int:
    """How many bytes it reads; of an instruction that computes with them, the most that it may."""
    return _LOADED_BYTES.get(word.field(*_WIDTH), _WORD_BYTES) if word.operation in LOADS else _MOST_BYTES


def is_indexed(word: Word) -> bool:
    """Whether a register says which constant is read."""
    if word.operation in LOADS:
        return word.operation != ULDC and word.ra != RZ
    return word.is_uniform_operand


def _place(word: Word) -> tuple[int, int]:
    return _OFFSET_OF_LDCU if word.operation == LDCU else _OFFSET
