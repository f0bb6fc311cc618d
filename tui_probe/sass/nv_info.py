"""Attributes of kernels in ``.nv.info`` sections, and calls between functions in ``.nv.callgraph``.

An attribute is a format, a number, and a value: 16 bits of their own, or that many bytes behind them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.errors import ImageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tui_probe.binaries.cubin import Cubin

_HEAD: Final = struct.Struct("<BBH")
_LAST_FORMAT: Final = 4
FLAG_FORMAT: Final = 1
"""The format of an attribute without a value: that it is there tells something, such as that ctaid.z is read."""
SIZED_FORMAT: Final = 4
"""The format of a value that lies behind the head."""
SHORT_FORMAT: Final = 3
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
COOPERATIVE_INSTRUCTIONS: Final = 0x28
"""u32 offset of each instruction that works across a warp."""
MAX_STACK_SIZE: Final = 0x23
"""u32 symbol, u32 bytes."""
REGISTERS: Final = 0x2F
"""u32 symbol, u32 registers of a thread."""
WARP_WIDE_INSTRUCTIONS: Final = 0x31
"""u32 offset of each instruction that works across a warp."""
MBARRIER_INSTRUCTIONS: Final = 0x39
"""u32 offset of each instruction that works on an mbarrier, and what the file records about it."""
BRANCH_TARGETS: Final = 0x34
"""Indirect branches: u32 offset, u32 0, u32 count, u32 offset of each target."""
_BOUND_ATTRIBUTES: Final = frozenset({0x05, 0x10, 0x1E, 0x3D, 0x3F})
"""Threads of a block, at most or exactly; stack of calls; blocks of a cluster."""
_VERSION_ATTRIBUTES: Final = frozenset({0x36, 0x37, 0x66})
"""Attributes of workarounds and of interfaces that the code was made for."""
ADDRESS_ATTRIBUTES: Final = frozenset({0x1D, 0x25, 0x27, 0x29, MBARRIER_INSTRUCTIONS, 0x44, 0x46, 0x47, 0x55, 0x57})
"""Byte offsets in the kernel's code, and what the file records about the instructions there."""
ATTRIBUTES_WITHOUT_SYMBOL: Final = (
    _BOUND_ATTRIBUTES
    | _VERSION_ATTRIBUTES
    | ADDRESS_ATTRIBUTES
    | {PARAMETER, LONG_PARAMETER, EXITS, COOPERATIVE_INSTRUCTIONS, WARP_WIDE_INSTRUCTIONS, BRANCH_TARGETS}
)
"""Attributes with a value behind their head that names no symbol."""


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
        kind, number, value = _HEAD.unpack_from(content, offset)
        if not 1 <= kind <= _LAST_FORMAT:
            raise ImageError(f"an .nv.info section of the cubin has an attribute of the unknown format {kind}")
        offset += _HEAD.size
        if kind != SIZED_FORMAT:
            attributes.append(Attribute(kind, number, value.to_bytes(2, "little")))
            continue
        if offset + value > len(content):
            raise ImageError("an .nv.info section of the cubin is truncated: extract or record it again")
        attributes.append(Attribute(kind, number, content[offset : offset + value]))
        offset += value
    return attributes


def attribute_bytes(attributes: Iterable[Attribute]) -> bytes:
    """Return the bytes of a section of attributes."""
    parts = []
    for kind, number, value in attributes:
        short_value = len(value) if kind == SIZED_FORMAT else int.from_bytes(value, "little")
        parts.append(_HEAD.pack(kind, number, short_value) + (value if kind == SIZED_FORMAT else b""))
    return b"".join(parts)


def words_attribute(number: int, *words: int) -> Attribute:
    """Return an attribute of 32-bit numbers."""
    return Attribute(SIZED_FORMAT, number, struct.pack(f"<{len(words)}I", *words))


def short_attribute(number: int, value: int) -> Attribute:
    """Return an attribute of 16 bits."""
    return Attribute(SHORT_FORMAT, number, value.to_bytes(2, "little"))


# Calls between functions of a cubin, from its section ``.nv.callgraph``.
#
# It holds pairs of numbers in groups, each behind a pair whose second number is the group's mark: calls by name, as
# pairs of symbols; functions whose address is taken, and callers by an address, both with the place of the type of
# function that it is among the names of symbols.

CALL_GRAPH_SECTION: Final = ".nv.callgraph"
CALL_PAIR: Final = struct.Struct("<II")
FIRST_MARK: Final = 0xFFFF0000
"""Second numbers of a pair from here on are not symbols, but begin a group of pairs."""
CALLS: Final = 0xFFFFFFFF
ADDRESSED: Final = 0xFFFFFFFE
CALLERS_BY_ADDRESS: Final = 0xFFFFFFFD


@dataclass(frozen=True, slots=True)
class CallGraph:
    """Calls by number of the code section: symbols that it calls by name, and sections that call by an address.

    ``has_addressed``: whether the module has functions that are called by their address.
    """

    calls: Mapping[int, frozenset[int]]
    by_address: frozenset[int]
    has_addressed: bool

    @classmethod
    def from_cubin(cls, cubin: Cubin) -> CallGraph:
        """Read the table of a cubin, empty if it has none. Raises ImageError for symbols that are not there."""
        calls: dict[int, set[int]] = {}
        by_address: set[int] = set()
        has_addressed = False
        for mark, caller, callee in grouped_calls(cubin):
            if mark == CALLS:
                calls.setdefault(cubin.symbol(caller).section, set()).add(callee)
            elif mark == CALLERS_BY_ADDRESS:
                by_address.add(cubin.symbol(caller).section)
            has_addressed |= mark == ADDRESSED
        return cls(
            {caller: frozenset(callees) for caller, callees in calls.items()}, frozenset(by_address), has_addressed
        )


def grouped_calls(cubin: Cubin) -> Iterator[tuple[int, int, int]]:
    """Yield the pairs of a call graph, each behind the mark of its group, 0 for one before the first mark."""
    section = cubin.find_section(CALL_GRAPH_SECTION)
    mark = 0
    for caller, callee in read_pairs(cubin.content(section)) if section else ():
        if callee >= FIRST_MARK:
            mark = callee
        else:
            yield mark, caller, callee


def read_pairs(content: bytes) -> list[tuple[int, int]]:
    """Return the pairs of numbers in a section."""
    return list(CALL_PAIR.iter_unpack(content[: len(content) // CALL_PAIR.size * CALL_PAIR.size]))
