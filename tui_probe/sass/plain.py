"""Snippets without uniform registers, for kernels that leave none.

What ptxas makes without optimisation uses them for one thing alone: a pair that goes with every access of global
memory, moved there from ordinary registers. The older form of these instructions, which has no such pair, does the
same. So the moves go, the accesses get that form, and branches of single lanes to the end become exits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.sass.branches import BRA, EXIT, branch_target, nop, unconditional
from tui_probe.sass.uniform import exact_fields
from tui_probe.sass.words import NO_BARRIER, WORD_BYTES, Word

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_TO_UNIFORM: Final = frozenset({0x0CA, 0x1C2})
"""R2UR, of newer and older architectures."""
_PLACES: Final = {0x181: 32, 0x186: 64}
"""LDG and STG, and where their pair is."""
_PLAIN_FORM: Final = 1
_PAIR: Final = 90, 2
"""Bits that say that there is a pair."""
_CONTROL_FLOW: Final = range(0x140, 0x160)


def plain(words: Sequence[Word], start: int, arch: int, *, leaves: bool) -> tuple[Word, ...]:
    """The same code without uniform registers. ``start`` is the byte offset of its first word where branches count.

    ``leaves``: lanes may leave before its end. Raises UnsupportedKernelError for code that needs such registers.
    """
    return tuple(_plain(words, start, arch, leaves=leaves))


def _plain(words: Sequence[Word], start: int, arch: int, *, leaves: bool) -> Iterator[Word]:
    end = start + len(words) * WORD_BYTES
    for index, word in enumerate(words):
        if word.operation in _TO_UNIFORM:
            yield nop().with_stall(word.stall).with_wait_mask(word.wait_mask)
        elif word.operation in _PLACES and word.is_uniform_operand:
            form = word.with_field(9, 3, _PLAIN_FORM).with_field(*_PAIR, 0)
            yield form.with_field(_PLACES[word.operation], 8, 0)
        elif word.opcode == BRA and leaves and branch_target(arch, start + index * WORD_BYTES, word) == end:
            yield _exit(word)
        elif word.operation in _CONTROL_FLOW or exact_fields(word) != ():
            raise UnsupportedKernelError(because("graft-snippet", what=f"the instruction {word.opcode:#05x}"))
        else:
            yield word


def _exit(word: Word) -> Word:
    """An exit of the lanes that a branch is for."""
    control = word.field(105, 21)
    made = unconditional(Word(EXIT)).with_write_barrier(NO_BARRIER).with_read_barrier(NO_BARRIER)
    return made.with_field(12, 4, word.field(12, 4)).with_field(105, 21, control)
