"""What is known of an instruction that accesses memory, whatever it is."""

from __future__ import annotations

from dataclasses import dataclass

from tui_probe.sass.words import ALWAYS


@dataclass(frozen=True, slots=True)
class Address:
    """``register`` (a pair if ``wide``; RZ: none) + ``uniform`` (a pair) + ``offset``.

    One in ``shared`` memory has 32 bits: ``register`` << ``shift`` + ``uniform`` + ``offset``.
    """

    register: int
    wide: bool
    uniform: int | None
    offset: int
    shared: bool = False
    shift: int = 0


@dataclass(frozen=True, slots=True)
class Access:
    """An access of global or shared memory, or of a generic address. ``bytes`` are those of one lane.

    ``reads`` is the predicate, with bit 3 set where it is negated, of the lanes of a copy that read; the others fill
    with zeros. ``shortened``: the low bits of the address say how many of the bytes are not read.
    """

    operation: int
    address: Address
    bytes: int
    reads: int = ALWAYS
    shortened: bool = False
