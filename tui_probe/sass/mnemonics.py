"""The names of the instructions that probes are put at, as nvdisasm writes them up to the size of an access."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.sass import accesses, matrices
from tui_probe.sass.atomics import ATOM, ATOMG, RED, atomic_of

if TYPE_CHECKING:
    from tui_probe.sass.words import Word

_NAMES: Final = {
    accesses.LD: "LD",
    accesses.LDG: "LDG",
    accesses.LDS: "LDS",
    accesses.ST: "ST",
    accesses.STG: "STG",
    accesses.STS: "STS",
    accesses.LDGSTS: "LDGSTS",
    **dict.fromkeys(ATOM, "ATOM"),
    **dict.fromkeys(ATOMG, "ATOMG"),
    **dict.fromkeys(RED, "REDG"),
    **matrices.NAMES,
}
_GLOBAL_FROM: Final = 90
_WIDE: Final = {8: ".64", 16: ".128"}
_NARROW: Final = {1: ".8", 2: ".16"}


def mnemonic(word: Word, arch: int) -> str:
    """``LDG.64``, ``HMMA``; ``0x98f`` for what has no name here."""
    name = _NAMES.get(word.operation)
    if name is None:
        return f"{word.opcode:#05x}"
    if word.operation in RED and arch < _GLOBAL_FROM:
        name = "RED"
    access = accesses.access_of(word, arch) or atomic_of(word, arch)
    return name + ("" if access is None else (_WIDE | _NARROW).get(access.bytes, ""))
