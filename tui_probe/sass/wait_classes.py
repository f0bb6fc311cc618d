"""Classes of waits in machine code, by the instruction that a warp waits for, and instructions that wait themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.sass.operations import operation_name
from tui_probe.sass.words import DEPBAR, DEPBAR_BARRIER

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.sass.words import Word

OPERANDS: Final = "operands"
"""Class of a wait until an instruction, whichever it is, has read its operands (write after read)."""
WAIT_CLASSES: Final[dict[str, str]] = {
    "async": "cp.async group",
    "bulk": "bulk copy",
    "wgmma": "wgmma",
    "tcgen05": "tcgen05",
    "barrier": "barrier",
    "cluster": "cluster barrier",
    "mbarrier": "mbarrier",
    "global": "global memory",
    "generic": "generic memory",
    "local": "local memory",
    "texture": "texture",
    "fence": "memory fence",
    "shared": "shared memory",
    "constant": "constant memory",
    "tensor": "tensor core",
    "fp64": "fp64",
    "math": "special function",
    "shuffle": "shuffle",
    "register": "special register",
    "sleep": "sleep",
    "other": "other instruction",
    OPERANDS: "operands read",
}
"""Titles by key, those that usually take longest first."""
_CLASS_OF_OPERATION: Final = {
    name: key
    for key, names in {
        "async": "LDGSTS LDGDEPBAR",
        "bulk": "UTMALDG UTMASTG UTMAREDG UTMACMDFLUSH UTMACCTL UBLKCP UBLKRED",
        "wgmma": "HGMMA IGMMA BGMMA QGMMA",
        "tcgen05": "LDTM STTM UTCATOMSWS UTCBAR UTCIMMA",
        "barrier": "BAR B2R",
        "cluster": "UCGABAR",
        "mbarrier": "SYNCS ARRIVES",
        "global": "LDG STG ATOMG RED REDG LDGMC",
        "generic": "LD ST ATOM",
        "local": "LDL STL",
        "texture": "TEX TLD TLD4 SUST",
        "fence": "MEMBAR ERRBAR FENCE CCTL",
        "shared": "LDS STS LDSM STSM ATOMS STAS",
        "constant": "LDC ULDC LDCU",
        "tensor": "HMMA IMMA BMMA QMMA",
        "fp64": "DMUL DADD DSETP DFMA DMMA",
        "math": "MUFU F2F F2I I2F FRND FCHK FLO POPC BREV UFLO UPOPC",
        "shuffle": "SHFL VOTE MATCH REDUX CREDUX MOVM",
        "register": "S2R S2UR CS2R R2UR UGETNEXTWORKID BMOV",
        "sleep": "NANOSLEEP",
    }.items()
    for name in names.split()
}
_TEXTURES: Final = range(0x160, 0x178)
_TENSOR_MEMORY: Final = range(0x1E0, 0x1F0)
"""tcgen05 and tensor memory; some of their operations have no name here."""
_IN_ORDER: Final = {
    **dict.fromkeys(("LDS", "LDSM"), "shared"),
    "SHFL": "shuffle",
    **dict.fromkeys(("MUFU", "F2F", "F2I", "I2F", "FRND"), "math"),
}
"""Queues whose results arrive in order, so that ptxas gives only the last of several a scoreboard."""
_READ_AT_END: Final = frozenset({"MEMBAR", "ERRBAR", "FENCE", "UTMACMDFLUSH"})
"""Instructions without operands: their read scoreboard is released when they have ended."""
_WARPGROUP: Final = 0x1C5
_BAR, _BAR_MODE, _ARRIVES_ONLY = 0x11D, (77, 3), 1
_BAR_NUMBER_FORM, _BAR_NUMBER = 5, (54, 4)
_WARPGROUP_WAITS: Final = 80, 1
_UCGABAR, _UCGABAR_WAIT_FORM = 0x1C7, 6
_SYNCS, _PHASE_CHECK_FORM = 0x1A7, 2
_ALWAYS_WAIT: Final = {0x192: "fence", 0x1AB: "fence", 0x15D: "sleep"}
"""MEMBAR, ERRBAR, NANOSLEEP."""
_OF_NO_GROUP: Final = frozenset({"UTMALDG", "UTMACCTL"})
_GROUP_COUNT: Final = 38, 6
"""Bits of the count of DEPBAR."""
_DEPBAR_LIST: Final = 32, 6
_PRODUCT_GROUP_COUNT: Final = 72, 6
"""Bits of the count of WARPGROUP.DEPBAR."""
WARPGROUP_PRODUCTS: Final = frozenset({0x1F0, 0x1F1, 0x1F2, 0x1F3})
"""HGMMA, IGMMA, BGMMA, QGMMA."""
_PRODUCT_GROUP: Final = 84, 3
_FIRST_GROUP: Final = 0
"""Scoreboard ``gsb0``, which the last product of a group sets; the others name 7."""


def produced_class(word: Word, arch: int) -> str:
    """Return the class of a wait for this instruction's result."""
    if word.operation in _TEXTURES:
        return "texture"
    if word.operation in _TENSOR_MEMORY:
        return "tcgen05"
    return _CLASS_OF_OPERATION.get(operation_name(word, arch), "other")


def released_class(word: Word, arch: int) -> str:
    """Return the class of a wait for this instruction's read scoreboard."""
    return produced_class(word, arch) if operation_name(word, arch) in _READ_AT_END else OPERANDS


def in_order_queue(word: Word, arch: int) -> str | None:
    """Return the queue in which results arrive in order; None for an instruction of none."""
    return _IN_ORDER.get(operation_name(word, arch))


# Instructions that hold a warp without a wait mask.


def own_wait(word: Word) -> str | None:
    """Return the class of what an instruction waits for by itself; None for one that does not.

    A ``DEPBAR`` may wait for copies of threads or for bulk copies, which its producers say: it is ``async`` here.
    """
    if word.operation == DEPBAR:
        return "async"
    if word.operation == _WARPGROUP:
        return "wgmma" if word.field(*_WARPGROUP_WAITS) else None
    if word.operation == _BAR:
        return None if word.field(*_BAR_MODE) == _ARRIVES_ONLY else "barrier"
    if word.operation == _UCGABAR:
        return "cluster" if word.form == _UCGABAR_WAIT_FORM else None
    return _ALWAYS_WAIT.get(word.operation)


def barrier_number(word: Word) -> int | None:
    """Return the number of the barrier of a ``BAR``; None if it is in a register."""
    return word.field(*_BAR_NUMBER) if word.form == _BAR_NUMBER_FORM else None


def is_mbarrier_wait(word: Word) -> bool:
    """Return whether an instruction tests or waits for the phase of an mbarrier, ``SYNCS.PHASECHK``."""
    return word.operation == _SYNCS and word.form == _PHASE_CHECK_FORM


def is_mbarrier_arrival(word: Word) -> bool:
    """Return whether an instruction arrives at an mbarrier, ``SYNCS.ARRIVE``."""
    return word.operation == _SYNCS and word.form != _PHASE_CHECK_FORM


def pending_groups(word: Word) -> int:
    """Return the number of newest groups that a ``DEPBAR`` or ``WARPGROUP.DEPBAR`` leaves pending."""
    return word.field(*(_PRODUCT_GROUP_COUNT if word.operation == _WARPGROUP else _GROUP_COUNT))


def waits_for_all(word: Word, barrier: int) -> bool:
    """Return whether an instruction waits until nothing of a scoreboard is pending."""
    is_counted = word.operation == DEPBAR and word.field(*DEPBAR_BARRIER) == barrier and not pending_groups(word)
    return is_counted or bool(awaited_barriers(word) >> barrier & 1)


def awaited_barriers(word: Word) -> int:
    """Return the mask of scoreboards that must be 0; a ``DEPBAR`` has a list besides: ``DEPBAR.LE SB1, 0x0, {3,2}``."""
    return word.wait_mask | (word.field(*_DEPBAR_LIST) if word.operation == DEPBAR else 0)


def group_end(word: Word) -> Callable[[Word], bool] | None:
    """Return the test for instructions that end groups for which ``word`` waits; None if it counts no groups."""
    if word.operation == DEPBAR:
        barrier = word.field(*DEPBAR_BARRIER)
        return lambda candidate: barrier in (candidate.write_barrier, candidate.read_barrier)
    if word.operation == _WARPGROUP and own_wait(word):
        return lambda candidate: (
            candidate.operation in WARPGROUP_PRODUCTS and candidate.field(*_PRODUCT_GROUP) == _FIRST_GROUP
        )
    return None


def group_classes(word: Word) -> frozenset[str]:
    """Return the classes of instructions that make up the groups for which ``word`` waits."""
    return frozenset({"wgmma"}) if word.operation == _WARPGROUP else frozenset({"async", "bulk"})


def group_class(word: Word, arch: int) -> str:
    """Return the class of an instruction as one of a group: a load by TMA is of no group, its mbarrier counts it."""
    return OPERANDS if operation_name(word, arch) in _OF_NO_GROUP else produced_class(word, arch)


def completes_groups(wait: Word, predecessor: Word) -> bool:
    """Return whether all groups for which a ``DEPBAR`` waits are complete behind an earlier instruction."""
    return wait.operation == DEPBAR and waits_for_all(predecessor, wait.field(*DEPBAR_BARRIER))
