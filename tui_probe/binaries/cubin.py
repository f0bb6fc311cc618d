"""A cubin as kernels, symbols, relocations and calls between functions, over the sections that ``elf`` reads.

Cubins are 64-bit little-endian ELF files. A kernel ``k`` has its code in ``.text.k``, what the driver must know of it
in ``.nv.info.k``, and its parameters in ``.nv.constant0.k``. Both versions of the ABI are read: 7 (to CUDA 12) and 8.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.binaries.elf import SECTION_HEADER, NameTable, is_elf, read_header, read_sections
from tui_probe.errors import ImageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tui_probe.binaries.elf import Header, Section

SYMBOL: Final = struct.Struct("<IBBHQQ")
CODE_PREFIX: Final = ".text."
_CUDA_MACHINE: Final = 190
"""EM_CUDA."""
_ABI_OFFSET: Final = 8
"""Offset of the ABI's version in the header of an ELF file."""
_NEW_ABI: Final = 8
_SYMBOL_TABLE: Final = 2
"""SHT_SYMTAB."""
_REL: Final = 9
"""SHT_REL: relocations whose addend is in the place itself."""
_RELA: Final = 4
"""SHT_RELA: relocations with an addend."""
_REL_ENTRY: Final = struct.Struct("<QII")
_RELA_ENTRY: Final = struct.Struct("<QIIq")
_FUNCTION: Final = 2
"""STT_FUNC."""
_ENTRY_POINT: Final = 0x10
"""Flag in a symbol's ``other`` byte: a kernel, not a function that kernels call."""
_DAMAGED_TEXT: Final = "the cubin is corrupt or truncated: {}; extract or record the cubin again"
_MAX_SECTION_OVERLAP: Final = 4
"""Maximum average number of sections per byte of the file: from sm_100 on some (``.nv.merc``) share theirs."""


class Symbol(NamedTuple):
    """A symbol. ``section`` is 0 for one that is defined elsewhere."""

    number: int
    name: str
    kind: int
    binding: int
    other: int
    section: int
    value: int
    size: int

    @property
    def is_kernel(self) -> bool:
        """True if programs can launch it."""
        return self.kind == _FUNCTION and bool(self.other & _ENTRY_POINT) and bool(self.section)


class Relocation(NamedTuple):
    """One relocation: the loader writes a value of ``symbol`` at ``offset``. ``addend`` None: it is stored there."""

    offset: int
    kind: int
    symbol: int
    addend: int | None


@dataclass(frozen=True)
class Cubin:
    """A cubin and its tables. Everything is checked to lie within ``image`` when it is read."""

    image: bytes
    header: Header
    sections: tuple[Section, ...]

    @classmethod
    def read(cls, image: bytes) -> Cubin:
        """Read a cubin. Raises ImageError for what is not a cubin, is damaged or cut off."""
        header = read_header(image)
        if header.machine != _CUDA_MACHINE or header.section_size != SECTION_HEADER.size:
            raise ImageError(_DAMAGED_TEXT.format("not an ELF file for CUDA"))
        return cls(image, header, tuple(_checked_sections(image, header)))

    @cached_property
    def arch(self) -> int:
        """90 for sm_90 and for sm_90a."""
        flags = self.header.flags
        return flags >> 8 & 0xFF if self.is_new_abi else flags & 0xFF

    @property
    def is_new_abi(self) -> bool:
        """True if it is of version 8, not 7."""
        return self.header.ident[_ABI_OFFSET] >= _NEW_ABI

    def content(self, section: Section) -> bytes:
        """Return the bytes of a section in the file."""
        return self.image[section.offset : section.end]

    def find_section(self, name: str) -> Section | None:
        """Return the section of that name, None if there is none."""
        return next((section for section in self.sections if section.name == name), None)

    def section(self, name: str) -> Section:
        """Return the section of that name. Raises ImageError."""
        section = self.find_section(name)
        if section is None:
            raise ImageError(_DAMAGED_TEXT.format(f"no section {name}"))
        return section

    @cached_property
    def symbol_section(self) -> Section:
        """The symbol table. Raises ImageError."""
        for section in self.sections:
            if section.type == _SYMBOL_TABLE:
                return section
        raise ImageError(_DAMAGED_TEXT.format("no symbols"))

    @cached_property
    def symbols(self) -> tuple[Symbol, ...]:
        """All symbols by number. Raises ImageError."""
        table = self.symbol_section
        if table.link >= len(self.sections):
            raise ImageError(_DAMAGED_TEXT.format("symbols without names"))
        names, content = NameTable(self.content(self.sections[table.link])), self.content(table)
        complete = content[: len(content) // SYMBOL.size * SYMBOL.size]
        return tuple(
            Symbol(index, names.name_at(name).decode("latin-1"), info & 0xF, info >> 4, other, section, value, size)
            for index, (name, info, other, section, value, size) in enumerate(SYMBOL.iter_unpack(complete))
        )

    @cached_property
    def kernels(self) -> tuple[str, ...]:
        """The names of its kernels."""
        return tuple(symbol.name for symbol in self.symbols if symbol.is_kernel)

    def kernel_symbol(self, name: str) -> Symbol:
        """Return the symbol of a kernel. Raises ImageError."""
        for symbol in self.symbols:
            if symbol.name == name and symbol.is_kernel:
                return symbol
        raise ImageError(f"the cubin has no kernel {name}")

    def symbol(self, index: int) -> Symbol:
        """Return the symbol of that number. Raises ImageError."""
        if index >= len(self.symbols):
            raise ImageError(_DAMAGED_TEXT.format(f"no symbol {index}"))
        return self.symbols[index]

    def relocation_sections(self) -> Iterator[Section]:
        """Yield the sections that hold relocations; ``info`` of each is the number of the section that they are for."""
        for section in self.sections:
            if section.type in (_REL, _RELA) and section.name.startswith((".rel.", ".rela.")):
                yield section

    def relocations(self, section: Section) -> list[Relocation]:
        """Read the entries of one relocation section."""
        content = self.content(section)
        entry = _RELA_ENTRY if section.type == _RELA else _REL_ENTRY
        complete = content[: len(content) // entry.size * entry.size]
        return [
            Relocation(fields[0], fields[1], fields[2], fields[3] if len(fields) > 3 else None)
            for fields in entry.iter_unpack(complete)
        ]


def is_cubin(image: bytes) -> bool:
    """Return whether an image is a cubin, judged by its header."""
    return is_elf(image) and read_header(image).machine == _CUDA_MACHINE


def arch_of(image: bytes) -> int:
    """Return the architecture of a cubin, by its head only."""
    return Cubin(image, read_header(image), ()).arch


def relocation_bytes(relocations: list[Relocation]) -> bytes:
    """Return relocations as a section holds them."""
    return b"".join(
        _REL_ENTRY.pack(*relocation[:3]) if relocation.addend is None else _RELA_ENTRY.pack(*relocation)
        for relocation in relocations
    )


def _checked_sections(image: bytes, header: Header) -> Iterator[Section]:
    remaining_bytes = _MAX_SECTION_OVERLAP * len(image)
    for section in read_sections(image, header):
        remaining_bytes -= section.end - section.offset
        if remaining_bytes < 0:
            raise ImageError(_DAMAGED_TEXT.format("overlapping sections"))
        yield section


# The section ``.nv.callgraph`` holds pairs of u32 in groups. A pair with a mark as second number begins a group: direct
# calls (symbols of caller and callee), functions whose address is taken, or callers of function pointers. A pair of the
# last two groups has the symbol of the function, and the offset of its type in the string table of the symbols.

CALL_GRAPH_SECTION: Final = ".nv.callgraph"
CALL_PAIR: Final = struct.Struct("<II")
FIRST_MARK: Final = 0xFFFF0000
"""The least mark: a second number from here on begins a group of pairs."""
CALLS: Final = 0xFFFFFFFF
"""Mark of direct calls."""
ADDRESSED: Final = 0xFFFFFFFE
"""Mark of functions whose address is taken."""
CALLERS_BY_ADDRESS: Final = 0xFFFFFFFD
"""Mark of callers of function pointers."""


@dataclass(frozen=True, slots=True)
class CallGraph:
    """Calls between the functions of a cubin, by the numbers of their code sections."""

    calls: Mapping[int, frozenset[int]]
    """Symbols that a section calls directly, by the number of the section."""
    by_address: frozenset[int]
    """Sections that call function pointers."""
    has_addressed: bool
    """True if the address of a function of the cubin is taken."""

    @classmethod
    def from_cubin(cls, cubin: Cubin) -> CallGraph:
        """Read the call graph of a cubin, an empty one if it has none. Raises ImageError for an unknown symbol."""
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
    """Yield mark, caller and callee of each pair of the call graph; the mark is 0 before the first group."""
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
