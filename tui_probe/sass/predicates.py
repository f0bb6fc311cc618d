"""Predicates and convergence barriers of a kernel, which code between its instructions must leave as they are.

What writes predicates names them in 83:81 and 86:84, PT where it writes none. Predicates of the uniform path are
written by that path's instructions and by few others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.sass.words import ALWAYS, NO_BARRIER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tui_probe.sass.words import Word

_WRITTEN: Final = ((81, 3), (84, 3))
_READ: Final = 87
_UNIFORM_PATH: Final = range(0x80, 0x100)
_TO_UNIFORM: Final = frozenset({0x02F, 0x1C2, 0x1C3, 0x1C4})
_ALL: Final = frozenset(range(ALWAYS))
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
stores: their results are behind a barrier and are no predicates, whatever else lies in those bits.
"""
_WITH_UNIFORM_RESULT: Final = frozenset({0x086, 0x090, 0x091, 0x092})
"""VOTEU, UIADD3, ULEA, ULOP3: those of snippets that may write a predicate of the uniform path."""
_WITH_CARRY: Final = frozenset({0x090, 0x091})
"""UIADD3, ULEA: they read one where ``.X`` says so."""
_CARRIES: Final = 74


def late_predicates(words: Iterable[Word]) -> int:
    """The barriers behind which predicates are written. Who keeps predicates must wait for them: else what comes back
    later is the value from before.
    """
    mask = 0
    for word in words:
        written = any(word.field(*at) != ALWAYS for at in _WRITTEN) and word.operation not in _WRITES_NONE
        if word.write_barrier != NO_BARRIER and written:
            mask |= 1 << word.write_barrier
    return mask


def uniform_predicates(words: Iterable[Word]) -> frozenset[int]:
    """The predicates of the uniform path that a kernel may write, and so may need."""
    found: set[int] = set()
    for word in words:
        if word.operation in _WRITES_ALL:
            return _ALL
        if word.operation in _UNIFORM_PATH or word.operation in _TO_UNIFORM:
            found.update(word.field(*at) for at in _WRITTEN)
    return frozenset(found - {ALWAYS})


def of_snippet(words: Iterable[Word]) -> list[int]:
    """The predicates of the uniform path that a snippet writes."""
    found = {word.field(*at) for word in words if word.operation in _WITH_UNIFORM_RESULT for at in _WRITTEN}
    return sorted(found - {ALWAYS})


def needs_uniform(word: Word) -> bool:
    """Whether a word of a snippet writes or reads a predicate of the uniform path: of ULOP3 and VOTEU the second field
    is none.
    """
    if word.operation not in _WITH_UNIFORM_RESULT:
        return False
    written = _WRITTEN if word.operation in _WITH_CARRY else _WRITTEN[:1]
    reads = word.operation in _WITH_CARRY and bool(word.field(_CARRIES, 1))
    return reads or any(word.field(*at) != ALWAYS for at in written)


def meeting_at(word: Word, numbers: Mapping[int, int]) -> Word:
    """A word of a snippet with another convergence barrier."""
    if word.operation not in _BARRIER_PATH:
        return word
    return word.with_field(*_BARRIER_FIELDS[0], numbers[word.field(*_BARRIER_FIELDS[0])])


def renamed(word: Word, numbers: Mapping[int, int]) -> Word:
    """A word of a snippet with other predicates of the uniform path."""
    if word.operation in _WITH_UNIFORM_RESULT:
        for at in _WRITTEN:
            number = word.field(*at)
            word = word.with_field(*at, numbers.get(number, number))
    if word.operation in _WITH_CARRY and word.field(_CARRIES, 1):
        number = word.field(_READ, 3)
        word = word.with_field(_READ, 3, numbers.get(number, number))
    return word


def barriers(words: Iterable[Word]) -> frozenset[int]:
    """The convergence barriers that may be in use."""
    return frozenset(word.field(*at) for word in words if word.operation in _BARRIER_PATH for at in _BARRIER_FIELDS)


def met_at(words: Iterable[Word]) -> list[int]:
    """Those at which the lanes of a snippet that has no other way of meeting meet again."""
    return sorted({word.field(*_BARRIER_FIELDS[0]) for word in words if word.operation in _BARRIER_PATH})


def free_barriers(words: Iterable[Word], count: int) -> list[int]:
    """Convergence barriers that a kernel does not use. Raises UnsupportedKernelError if there are not as many."""
    used = barriers(words)
    free = [number for number in range(_BARRIERS - 1, -1, -1) if number not in used]
    if len(free) < count:
        raise UnsupportedKernelError(because("graft-convergence"))
    return free[:count]
