"""Kernels whose blocks may wait for one another, recognised by their SASS; ``ptx/waiting.py`` does so by their PTX.

A block observes another one by reading memory in an order that the hardware keeps: by a strong load, by an atomic
operation that returns the old value, or by any load behind a fence. Without any of these, blocks cannot wait, and run
one after another as well as at the same time. Blocks of a cluster may wait: they always start together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.sass.operations import operation_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tui_probe.sass.words import Word

_LOAD_OPERATIONS: Final = frozenset({"LD", "LDG"})
_ORDERING_OPERATIONS: Final = frozenset({"ATOM", "ATOMG", "LDGMC", "MEMBAR", "ERRBAR", "CCTL"})
_LEADS_AWAY: Final = frozenset({0x143, 0x14A, 0x14B, 0x153})
"""CALL.ABS, JMP, JMX, JMXU: they lead to code that is not searched."""
_ORDER_FIELD: Final = (77, 4)
_WEAK_ORDER: Final = frozenset({0, 4})
"""Weak, and of memory that no one writes. Strong loads are 5, 7 and 10 (block, GPU, system), of mapped devices 12: so
nvdisasm reads them for sm_80, sm_90, sm_100 and sm_120.
"""


def blocks_may_wait(words: Iterable[Word], arch: int) -> bool:
    """Return whether any instruction of a kernel lets a block observe others. An unknown instruction counts as one."""
    return any(_may_signal(word, arch) for word in words if not word.never_runs)


def is_strong_load(word: Word, arch: int) -> bool:
    """Return whether a load sees what others store: one that is volatile, relaxed or acquires."""
    return operation_name(word, arch) in _LOAD_OPERATIONS and word.field(*_ORDER_FIELD) not in _WEAK_ORDER


def _may_signal(word: Word, arch: int) -> bool:
    name = operation_name(word, arch)
    if name in _LOAD_OPERATIONS:
        return is_strong_load(word, arch)
    return not name or name in _ORDERING_OPERATIONS or word.operation in _LEADS_AWAY
