"""Whether blocks of a kernel in machine code may wait for one another.

A block learns what another one does by reading memory in an order that the hardware keeps: by a strong load, by an
atomic operation that returns what was there, or by any load behind a fence. Where there is nothing of the kind blocks
cannot wait, and run one after another as well as at once. Blocks of a cluster may: they start together, always.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.sass.operations import name_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tui_probe.sass.words import Word

_LOADS: Final = frozenset({"LD", "LDG"})
_ORDERING: Final = frozenset({"ATOM", "ATOMG", "LDGMC", "MEMBAR", "ERRBAR", "CCTL"})
_LEADS_AWAY: Final = frozenset({0x143, 0x14A, 0x14B, 0x153})
"""CALL.ABS, JMP, JMX, JMXU: code that is not looked at."""
_ORDER: Final = (77, 4)
_WEAK: Final = frozenset({0, 4})
"""Weak, and of memory that nobody writes. Strong loads are 5, 7 and 10 (block, GPU, system), of mapped devices 12: so
nvdisasm reads them for sm_80, sm_90, sm_100 and sm_120."""


def blocks_may_wait(words: Iterable[Word], arch: int) -> bool:
    """Whether anything in a kernel's code tells a block what others do; True for what is not known, too."""
    return any(_tells(word, arch) for word in words if not word.never_runs)


def _tells(word: Word, arch: int) -> bool:
    name = name_of(word, arch)
    if name in _LOADS:
        return word.field(*_ORDER) not in _WEAK
    return not name or name in _ORDERING or word.operation in _LEADS_AWAY
