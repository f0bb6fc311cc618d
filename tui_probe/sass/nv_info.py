"""Attributes of kernels in ``.nv.info`` sections, with the names that ``cuobjdump -elf`` prints.

An attribute has a format byte, a number byte and 16 bits: its value, or for ``SIZED_FORMAT`` the size in bytes of the
value that follows.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.errors import ImageError

if TYPE_CHECKING:
    from collections.abc import Iterable

_HEAD: Final = struct.Struct("<BBH")
_LAST_FORMAT: Final = 4
FLAG_FORMAT: Final = 1
"""EIFMT_NVAL: an attribute without a value. Its presence is the information, for example that ctaid.z is read."""
SIZED_FORMAT: Final = 4
"""EIFMT_SVAL: a value that follows, with its size in the 16 bits."""
SHORT_FORMAT: Final = 3
"""EIFMT_HVAL: a value of 16 bits."""

PARAMETER_BANK: Final = 0x0A
"""EIATTR_PARAM_CBANK: u32 symbol of the section with the parameters, u16 their offset in it, u16 their size."""
EXTERNS: Final = 0x0F
"""EIATTR_EXTERNS: u32 symbol of each function that is defined elsewhere."""
FRAME_SIZE: Final = 0x11
"""EIATTR_FRAME_SIZE: u32 symbol, u32 bytes."""
MIN_STACK_SIZE: Final = 0x12
"""EIATTR_MIN_STACK_SIZE: u32 symbol, u32 bytes."""
PARAMETER: Final = 0x17
"""EIATTR_KPARAM_INFO: u32 0, u16 number, u16 offset, u32 with the size in bits 31:18 and flags below."""
PARAMETERS_SIZE: Final = 0x19
"""EIATTR_CBANK_PARAM_SIZE: u16 bytes of all parameters."""
EXITS: Final = 0x1C
"""EIATTR_EXIT_INSTR_OFFSETS: u32 offset of each EXIT."""
MAX_STACK_SIZE: Final = 0x23
"""EIATTR_MAX_STACK_SIZE: u32 symbol, u32 bytes."""
COOPERATIVE_INSTRUCTIONS: Final = 0x28
"""EIATTR_COOP_GROUP_INSTR_OFFSETS: u32 offset of each instruction on a group of lanes, such as a shuffle."""
REGISTERS: Final = 0x2F
"""EIATTR_REGCOUNT: u32 symbol, u32 registers of a thread."""
WARP_WIDE_INSTRUCTIONS: Final = 0x31
"""EIATTR_INT_WARP_WIDE_INSTR_OFFSETS: u32 offset of each integer instruction on all lanes of a warp."""
BRANCH_TARGETS: Final = 0x34
"""EIATTR_INDIRECT_BRANCH_TARGETS: u32 offset of a branch, u32 0, u32 count, u32 offset of each target."""
MBARRIER_INSTRUCTIONS: Final = 0x39
"""EIATTR_MBARRIER_INSTR_OFFSETS: entries of ``_MBARRIER_WORDS`` u32, the first the offset of an instruction."""
LONG_PARAMETER: Final = 0x45
"""EIATTR_KPARAM_INFO_V2, of kernels with over 4096 bytes of parameters: u32 0, u16 number, u16 offset, u32 size."""
_BOUND_ATTRIBUTES: Final = frozenset({0x05, 0x10, 0x1E, 0x3D, 0x3F})
"""Limits: threads of a block (maximum, required), stack of calls, blocks of a cluster."""
_VERSION_ATTRIBUTES: Final = frozenset({0x36, 0x37, 0x66})
"""Hardware workarounds in the code, and versions of the interfaces that it needs."""
ADDRESS_ATTRIBUTES: Final = frozenset({0x1D, 0x25, 0x27, 0x29, MBARRIER_INSTRUCTIONS, 0x44, 0x46, 0x47, 0x55, 0x57})
"""Lists of byte offsets in the kernel's code, with facts about the instructions there."""
ATTRIBUTES_WITHOUT_SYMBOL: Final = (
    _BOUND_ATTRIBUTES
    | _VERSION_ATTRIBUTES
    | ADDRESS_ATTRIBUTES
    | {PARAMETER, LONG_PARAMETER, EXITS, COOPERATIVE_INSTRUCTIONS, WARP_WIDE_INSTRUCTIONS, BRANCH_TARGETS}
)
"""Attributes of ``SIZED_FORMAT`` whose value contains no symbol."""


class Attribute(NamedTuple):
    """One attribute; ``value`` has 2 bytes unless the format is ``SIZED_FORMAT``."""

    format: int
    number: int
    value: bytes

    def words(self) -> list[int]:
        """Return the value as 32-bit numbers."""
        complete = self.value[: len(self.value) // 4 * 4]
        return [number for (number,) in struct.iter_unpack("<I", complete)]


_MBARRIER_WORDS: Final = 4
"""Words of an entry of ``MBARRIER_INSTRUCTIONS``: the offset of the instruction, a register, an address, flags."""


def listed_offsets(attribute: Attribute) -> list[int]:
    """Return the offsets of instructions in an attribute that lists some."""
    numbers = attribute.words()
    has_entries = attribute.number == MBARRIER_INSTRUCTIONS and len(numbers) % _MBARRIER_WORDS == 0
    return numbers[::_MBARRIER_WORDS] if has_entries else numbers


def read_attributes(content: bytes) -> list[Attribute]:
    """Return the attributes of a section. Raises ImageError for one that is damaged."""
    attributes, offset = [], 0
    while offset < len(content):
        if offset + _HEAD.size > len(content):
            raise ImageError("an .nv.info section of the cubin is truncated: extract or record it again")
        format_, number, value = _HEAD.unpack_from(content, offset)
        if not 1 <= format_ <= _LAST_FORMAT:
            raise ImageError(f"an .nv.info section of the cubin has an attribute of the unknown format {format_}")
        offset += _HEAD.size
        if format_ != SIZED_FORMAT:
            attributes.append(Attribute(format_, number, value.to_bytes(2, "little")))
            continue
        if offset + value > len(content):
            raise ImageError("an .nv.info section of the cubin is truncated: extract or record it again")
        attributes.append(Attribute(format_, number, content[offset : offset + value]))
        offset += value
    return attributes


def attribute_bytes(attributes: Iterable[Attribute]) -> bytes:
    """Return the bytes of a section of attributes."""
    parts = []
    for format_, number, value in attributes:
        short_value = len(value) if format_ == SIZED_FORMAT else int.from_bytes(value, "little")
        parts.append(_HEAD.pack(format_, number, short_value) + (value if format_ == SIZED_FORMAT else b""))
    return b"".join(parts)


def words_attribute(number: int, *words: int) -> Attribute:
    """Return an attribute of 32-bit numbers."""
    return Attribute(SIZED_FORMAT, number, struct.pack(f"<{len(words)}I", *words))


def short_attribute(number: int, value: int) -> Attribute:
    """Return an attribute of 16 bits."""
    return Attribute(SHORT_FORMAT, number, value.to_bytes(2, "little"))
