"""``.nv.info`` sections: what the driver must know of a module, and of each kernel, in attributes.

An attribute is a format, a number, and a value: 16 bits of their own, or that many bytes behind them.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.errors import ImageError

if TYPE_CHECKING:
    from collections.abc import Iterable

_HEAD: Final = struct.Struct("<BBH")
_LAST_FORMAT: Final = 4
FLAG: Final = 1
"""The format of an attribute without a value: that it is there tells something, such as that ctaid.z is read."""
SIZED: Final = 4
"""The format of a value that lies behind the head."""
SHORT: Final = 3
"""The format of a value of 16 bits."""

EXTERNS: Final = 0x0F
"""u32 symbol of each function that is defined elsewhere."""
PARAMETER_BANK: Final = 0x0A
"""u32 symbol of the section with the parameters, u16 their offset in it, u16 their size."""
FRAME_SIZE: Final = 0x11
"""u32 symbol, u32 bytes."""
STACK_SIZE: Final = 0x12
"""u32 symbol, u32 bytes."""
PARAMETER: Final = 0x17
"""u32 0, u16 number, u16 offset, u32 size and what is known of it."""
LONG_PARAMETER: Final = 0x45
"""u32 0, u16 number, u16 offset, u32 size: of a kernel with more than 4096 bytes of them."""
PARAMETERS_SIZE: Final = 0x19
EXITS: Final = 0x1C
"""u32 offset of each EXIT."""
MOST_REGISTERS: Final = 0x1B
COOPERATIVE_INSTRUCTIONS: Final = 0x28
"""u32 offset of each instruction that works across a warp."""
MOST_STACK_SIZE: Final = 0x23
"""u32 symbol, u32 bytes."""
REGISTERS: Final = 0x2F
"""u32 symbol, u32 registers of a thread."""
WARP_WIDE_INSTRUCTIONS: Final = 0x31
"""u32 offset of each instruction that works across a warp."""
BRANCH_TARGETS: Final = 0x34
"""Indirect branches: u32 offset, u32 0, u32 count, u32 offset of each target."""
_BOUNDS: Final = frozenset({0x05, 0x10, 0x1E, 0x3D, 0x3F})
"""Threads of a block, at most or exactly; stack of calls; blocks of a cluster."""
_VERSIONS: Final = frozenset({0x36, 0x37, 0x66})
"""Of workarounds and of interfaces that the code was made for."""
_PLACES: Final = frozenset({0x1D, 0x25, 0x27, 0x29, 0x39, 0x44, 0x46, 0x47, 0x55, 0x57})
"""Byte offsets in the kernel's code, and what is told of the instructions there."""
SYMBOLLESS: Final = (
    _BOUNDS
    | _VERSIONS
    | _PLACES
    | {PARAMETER, LONG_PARAMETER, EXITS, COOPERATIVE_INSTRUCTIONS, WARP_WIDE_INSTRUCTIONS, BRANCH_TARGETS}
)
"""Attributes with a value behind their head that names no symbol."""


class Attribute(NamedTuple):
    """One attribute; ``value`` has 2 bytes unless the format is ``SIZED``."""

    format: int
    number: int
    value: bytes

    def words(self) -> list[int]:
        """The value as 32-bit numbers."""
        whole = self.value[: len(self.value) // 4 * 4]
        return [number for (number,) in struct.iter_unpack("<I", whole)]


def read_attributes(content: bytes) -> list[Attribute]:
    """The attributes of a section. Raises ImageError for one that is damaged."""
    attributes, at = [], 0
    while at < len(content):
        if at + _HEAD.size > len(content):
            raise ImageError("an .nv.info section of the cubin is cut off: capture it again")
        kind, number, value = _HEAD.unpack_from(content, at)
        if not 1 <= kind <= _LAST_FORMAT:
            raise ImageError(f"an .nv.info section of the cubin has an attribute of the unknown format {kind}")
        at += _HEAD.size
        if kind != SIZED:
            attributes.append(Attribute(kind, number, value.to_bytes(2, "little")))
            continue
        if at + value > len(content):
            raise ImageError("an .nv.info section of the cubin is cut off: capture it again")
        attributes.append(Attribute(kind, number, content[at : at + value]))
        at += value
    return attributes


def attribute_bytes(attributes: Iterable[Attribute]) -> bytes:
    """Attributes as a section holds them."""
    parts = []
    for kind, number, value in attributes:
        short = len(value) if kind == SIZED else int.from_bytes(value, "little")
        parts.append(_HEAD.pack(kind, number, short) + (value if kind == SIZED else b""))
    return b"".join(parts)


def of_words(number: int, *words: int) -> Attribute:
    """An attribute of 32-bit numbers."""
    return Attribute(SIZED, number, struct.pack(f"<{len(words)}I", *words))


def short(number: int, value: int) -> Attribute:
    """An attribute of 16 bits."""
    return Attribute(SHORT, number, value.to_bytes(2, "little"))
