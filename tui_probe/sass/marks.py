"""Marks in a snippet's SASS: accesses to shared memory that a graft replaces with moves.

An access to address ``MARK_STEP * number`` is mark ``number``. Snippets themselves never use shared memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tui_probe.sass.words import Word

LOAD_MARK: Final = 0x184
"""LDS."""
STORE_MARK: Final = 0x188
"""STS."""
MARK_STEP: Final = 0x1000
"""Bytes between the addresses of two marks; the lowest number is 1."""
_ADDRESS_OFFSET: Final = 40, 24


def is_mark(word: Word) -> bool:
    """Return whether an instruction of a snippet is a mark."""
    return word.operation in (LOAD_MARK, STORE_MARK)


def mark_number(word: Word) -> int:
    """Return the number of a mark."""
    return word.field(*_ADDRESS_OFFSET) // MARK_STEP
