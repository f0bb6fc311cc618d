"""Operands that are still being read when a warp reaches an instruction.

A store does not wait until its operands were read, and where the code behind it writes none of them, ptxas gives it no
barrier that tells when. Code grafted behind it does write them: so such stores get a barrier, for which it waits.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from tui_probe.sass.words import NO_BARRIER, WORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.sass.words import Word

_READERS: Final = frozenset(
    {0x044, 0x185, 0x186, 0x187, 0x188, 0x18A, 0x18B, 0x18C, 0x18D, 0x18E, 0x194, 0x195, 0x19C, 0x19D, 0x19E}
    | {0x1A1, 0x1A2, 0x1A3, 0x1A6, 0x1A8, 0x1A9, 0x1AE, 0x1BD, 0x1BE}
)
"""STSM, ST, STG, STL, STS, ATOM, ATOMS, RED, SUATOM, SUST, SURED, ATOMG, LDGSTS, STAS, REDAS."""
_BARRIERS: Final = 6


def with_read_barriers(words: Sequence[Word]) -> dict[int, Word]:
    """The instructions that get a barrier for their operands, by byte offset, with it: the one that is used least."""
    open_ = [
        index
        for index, word in enumerate(words)
        if word.operation in _READERS and word.read_barrier == NO_BARRIER and word.write_barrier == NO_BARRIER
    ]
    uses = Counter(dict.fromkeys(range(_BARRIERS), 0))
    uses.update(word.write_barrier for word in words if word.write_barrier < _BARRIERS)
    uses.update(word.read_barrier for word in words if word.read_barrier < _BARRIERS)
    barrier = min(uses, key=lambda number: (uses[number], -number))
    return {index * WORD_BYTES: words[index].with_read_barrier(barrier) for index in open_}
