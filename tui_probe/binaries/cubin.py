"""Read a cubin: its sections, symbols and relocations.

Cubins are 64-bit little-endian ELF files. A kernel ``k`` has its code in ``.text.k``, what the driver must know of it
in ``.nv.info.k``, and its parameters in ``.nv.constant0.k``. Both versions of the ABI are read: 7 (to CUDA 12) and 8.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.errors import ImageError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAGIC: Final = b"\x7fELF"
HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION_HEADER: Final = struct.Struct("<IIQQQQIIQQ")
SYMBOL: Final = struct.Struct("<IBBHQQ")
_NO_BYTES: Final = frozenset({8, 0x70000007, 0x70000009, 0x7000000A})
"""SHT_NOBITS, and the kinds of its own that CUDA has: global, local and shared memory without initial values."""
CODE_PREFIX: Final = ".text."
_CLASS_64_LITTLE: Final = b"\x02\x01"
_CUDA_MACHINE: Final = 190
_ABI_AT: Final = 8
_NEW_ABI: Final = 8
_SYMBOL_TABLE: Final = 2
_REL: Final = 9
_SHARED: Final = 16
"""Maximum number of names that may share one byte of a name table."""
_RELA: Final = 4
_REL_ENTRY: Final = struct.Struct("<QII")
_RELA_ENTRY: Final = struct.Struct("<QIIq")
_FUNCTION: Final = 2
_ENTRY_POINT: Final = 0x10
"""Of a symbol's ``other`` byte: a kernel, not a function that kernels call."""
_DAMAGED_TEXT: Final = "the cubin is damaged or cut off: {}; capture it again"
_MAX_NAME_OVERLAP: Final = 4
"""Maximum average number of sections per byte of the file: from sm_100 on some (``.nv.merc``) share theirs."""


class Header(NamedTuple):
    """The head of an ELF file."""

    ident: bytes
    type: int
    machine: int
    version: int
    entry: int
    segments_at: int
    sections_at: int
    flags: int
    size: int
    segment_size: int
    segments: int
    section_size: int
    sections: int
    names: int


class Section(NamedTuple):
    """A section's header, with its name and number."""

    number: int
    name: str
    name_at: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry_size: int

    @property
    def end(self) -> int:
        """End offset of its bytes in the file."""
        return self.offset + self.size if self.has_bytes else self.offset

    @property
    def has_bytes(self) -> bool:
        """True if its content is in the file; else it only has a size in memory."""
        return self.type not in _NO_BYTES


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
        """Raises ImageError for what is no cubin, is damaged or cut off."""
        if not image.startswith(MAGIC) or image[4:6] != _CLASS_64_LITTLE or len(image) < HEADER.size:
            raise ImageError("the image is no complete 64-bit little-endian ELF file")
        header = Header._make(HEADER.unpack_from(image))
        if header.machine != _CUDA_MACHINE or header.section_size != SECTION_HEADER.size:
            raise ImageError(_DAMAGED_TEXT.format("it is no ELF file for CUDA"))
        return cls(image, header, tuple(_sections(image, header)))

    @cached_property
    def arch(self) -> int:
        """90 for sm_90 and for sm_90a."""
        flags = self.header.flags
        return flags >> 8 & 0xFF if self.is_new_abi else flags & 0xFF

    @property
    def is_new_abi(self) -> bool:
        """True if it is of version 8, not 7."""
        return self.header.ident[_ABI_AT] >= _NEW_ABI

    def content(self, section: Section) -> bytes:
        """The bytes of a section in the file."""
        return self.image[section.offset : section.end]

    def find(self, name: str) -> Section | None:
        """The section of that name, None if there is none."""
        return next((section for section in self.sections if section.name == name), None)

    def section(self, name: str) -> Section:
        """The section of that name. Raises ImageError."""
        section = self.find(name)
        if section is None:
            raise ImageError(_DAMAGED_TEXT.format(f"it has no section {name}"))
        return section

    @cached_property
    def symbol_section(self) -> Section:
        """The symbol table. Raises ImageError."""
        for section in self.sections:
            if section.type == _SYMBOL_TABLE:
                return section
        raise ImageError(_DAMAGED_TEXT.format("it has no symbols"))

    @cached_property
    def symbols(self) -> tuple[Symbol, ...]:
        """All symbols by number. Raises ImageError."""
        table = self.symbol_section
        if table.link >= len(self.sections):
            raise ImageError(_DAMAGED_TEXT.format("its symbols have no names"))
        names, content = _NameTable(self.content(self.sections[table.link])), self.content(table)
        complete = content[: len(content) // SYMBOL.size * SYMBOL.size]
        return tuple(
            Symbol(index, names.at(name), info & 0xF, info >> 4, other, section, value, size)
            for index, (name, info, other, section, value, size) in enumerate(SYMBOL.iter_unpack(complete))
        )

    @cached_property
    def kernels(self) -> tuple[str, ...]:
        """The names of its kernels."""
        return tuple(symbol.name for symbol in self.symbols if symbol.is_kernel)

    def kernel_symbol(self, name: str) -> Symbol:
        """The symbol of a kernel. Raises ImageError."""
        for symbol in self.symbols:
            if symbol.name == name and symbol.is_kernel:
                return symbol
        raise ImageError(f"the cubin has no kernel {name}")

    def symbol(self, index: int) -> Symbol:
        """The symbol of that number. Raises ImageError."""
        if index >= len(self.symbols):
            raise ImageError(_DAMAGED_TEXT.format(f"it has no symbol {index}"))
        return self.symbols[index]

    def relocation_sections(self) -> Iterator[Section]:
        """The sections that hold relocations; ``info`` of each is the number of the section that they are for."""
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
    """Return whether an image is a cubin, as far as its head tells."""
    return (
        image.startswith(MAGIC)
        and image[4:6] == _CLASS_64_LITTLE
        and len(image) >= HEADER.size
        and Header._make(HEADER.unpack_from(image)).machine == _CUDA_MACHINE
    )


def arch_of(image: bytes) -> int:
    """The architecture of a cubin, by its head alone."""
    return Cubin(image, Header._make(HEADER.unpack_from(image)), ()).arch


def relocation_bytes(relocations: list[Relocation]) -> bytes:
    """Relocations as a section holds them."""
    return b"".join(
        _REL_ENTRY.pack(*relocation[:3]) if relocation.addend is None else _RELA_ENTRY.pack(*relocation)
        for relocation in relocations
    )


def _sections(image: bytes, header: Header) -> Iterator[Section]:
    end = header.sections_at + header.sections * SECTION_HEADER.size
    if end > len(image) or header.names >= max(header.sections, 1):
        raise ImageError(_DAMAGED_TEXT.format("its section table ends behind it"))
    table = list(SECTION_HEADER.iter_unpack(image[header.sections_at : end]))
    if not table:
        return
    names = _NameTable(image[table[header.names][4] :][: table[header.names][5]])
    left = _MAX_NAME_OVERLAP * len(image)
    for index, (name, *fields) in enumerate(table):
        section = Section(index, names.at(name), name, *fields)
        if section.end > len(image):
            raise ImageError(_DAMAGED_TEXT.format(f"its section {section.name} ends behind it"))
        left -= section.end - section.offset
        if left < 0:
            raise ImageError(_DAMAGED_TEXT.format("its sections lie over each other"))
        yield section


class _NameTable:
    """A table of names. Names may share their ends, so all of them may be longer than the table, but not by much."""

    def __init__(self, table: bytes) -> None:
        self._table = table
        self._left = _SHARED * len(table)

    def at(self, place: int) -> str:
        """The name that begins there. ImageError for more names than a table of that size can have."""
        end = self._table.find(b"\0", place)
        text = self._table[place : end if end >= 0 else len(self._table)]
        self._left -= len(text)
        if self._left < 0:
            raise ImageError(_DAMAGED_TEXT.format("its names do not end"))
        return text.decode("latin-1")
