"""Build a cubin from some sections and symbols of another, all renumbered.

What is identified by number is identified by the new one: sections in headers and symbols, symbols in relocations, in
the attributes of ``.nv.info``, in ``.nv.callgraph`` and in ``.nv.prototype``, and names by their places in tables of
names.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tui_probe.binaries.cubin import (
    CALL_GRAPH_SECTION,
    CALL_PAIR,
    CALLERS_BY_ADDRESS,
    CALLS,
    CODE_PREFIX,
    FIRST_MARK,
    SYMBOL,
    Cubin,
    read_pairs,
    relocation_bytes,
)
from tui_probe.binaries.elf import HEADER, SECTION_HEADER
from tui_probe.errors import ProbeError
from tui_probe.sass.layout import MAX_STEP, SEGMENT
from tui_probe.sass.nv_info import (
    ATTRIBUTES_WITHOUT_SYMBOL,
    EXTERNS,
    FRAME_SIZE,
    MAX_STACK_SIZE,
    MIN_STACK_SIZE,
    PARAMETER_BANK,
    REGISTERS,
    SIZED_FORMAT,
    attribute_bytes,
    read_attributes,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tui_probe.binaries.cubin import Relocation
    from tui_probe.binaries.elf import Section
    from tui_probe.sass.nv_info import Attribute

PROTOTYPES: Final = ".nv.prototype"
INFO: Final = ".nv.info"
_WORD: Final = struct.Struct("<I")
_SYMBOL_ATTRIBUTES: Final = frozenset({FRAME_SIZE, MIN_STACK_SIZE, MAX_STACK_SIZE, REGISTERS, PARAMETER_BANK})
"""Attributes whose first word is the number of a symbol."""
INFO_LINK: Final = 0x40
"""The flag of a section whose ``info`` is the number of the section that it belongs to."""
_RELOCATIONS: Final = (4, 9)
_TOP_BYTE: Final = 24
_SYMBOL_OF_CODE: Final = (1 << _TOP_BYTE) - 1
_DEVICE_NOTE: Final = ".note.nv.cuinfo"
_FIRST_SPECIAL: Final = 0xFF00
"""Section numbers from here on stand for no section."""
_TABLE_ALIGN: Final = 8
_ALLOCATED: Final = 2


class KeptWholeError(ProbeError):
    """The cubin refers to something whose needs are not known, or whose references cannot be renumbered."""


@dataclass(slots=True)
class _NameTable:
    """A table of names, as it grows."""

    content: bytearray = field(default_factory=lambda: bytearray(1))
    _offsets: dict[str, int] = field(default_factory=lambda: {"": 0})

    def add(self, name: str) -> int:
        if name not in self._offsets:
            self._offsets[name] = len(self.content)
            self.content += name.encode("latin-1") + b"\0"
        return self._offsets[name]


@dataclass(frozen=True)
class Excerpt:
    """Selected parts of a cubin: ``sections`` and ``symbols`` by number, in order, the nameless first of each among
    them.

    ``contents`` are other ones of sections; ``relocations`` those that sections of relocations shall have, in the old
    numbers, all by default.
    """

    cubin: Cubin
    sections: tuple[int, ...]
    symbols: tuple[int, ...]
    contents: Mapping[int, bytes]
    relocations: Mapping[int, list[Relocation]]

    def image(self) -> bytes:
        """Return the file. Raises KeptWholeError where a number stands for something that was not taken."""
        return _ExcerptWriter(self).image()


class _ExcerptWriter:
    def __init__(self, excerpt: Excerpt) -> None:
        self._excerpt = excerpt
        self._cubin = excerpt.cubin
        self._sections = {number: index for index, number in enumerate(excerpt.sections)}
        self._symbols = {number: index for index, number in enumerate(excerpt.symbols)}
        self._names, self._section_names = _NameTable(), _NameTable()
        self._offsets: dict[int, int] = {}

    def image(self) -> bytes:
        cubin, header = self._cubin, self._cubin.header
        sections = [cubin.sections[number] for number in self._excerpt.sections]
        contents = {section.number: self._content(section) for section in sections if section.has_bytes}
        contents |= self._tables(sections)
        image = bytearray(HEADER.size)
        for section in sections:
            self._offsets[section.number] = _append_content(
                image, section.align, contents.get(section.number, b""), section
            )
        headers = b"".join(self._header(section, contents.get(section.number)) for section in sections)
        sections_at = _pad(image, _TABLE_ALIGN)
        image += headers
        segments_at = len(image)
        segments = self._segments(sections, contents, segments_at)
        image += b"".join(segments)
        names = self._section(header.names_index, "the file's head")
        new_header = header._replace(
            segments_offset=segments_at, sections_offset=sections_at, section_count=len(sections), names_index=names
        )
        HEADER.pack_into(image, 0, *new_header._replace(segment_count=len(segments), flags=self._flags()))
        return bytes(image)

    def _flags(self) -> int:
        """Return the flags of the file. Their top byte is the number of the section that reports its device."""
        flags = self._cubin.header.flags
        top = flags >> _TOP_BYTE
        if not self._cubin.is_new_abi or not top:
            return flags
        if top >= len(self._cubin.sections) or self._cubin.sections[top].name != _DEVICE_NOTE:
            raise KeptWholeError("the file has unknown flags")
        return flags & (1 << _TOP_BYTE) - 1 | self._section(top, "the file's head") << _TOP_BYTE

    def _section(self, number: int, referrer: str) -> int:
        if number in self._sections:
            return self._sections[number]
        if number >= _FIRST_SPECIAL:
            return number
        raise KeptWholeError(f"{referrer} names a section that the kernel does not need")

    def _symbol(self, number: int, referrer: str) -> int:
        if number not in self._symbols:
            raise KeptWholeError(f"{referrer} names a symbol that the kernel does not need")
        return self._symbols[number]

    def _content(self, section: Section) -> bytes:
        """Return the bytes of a section, in the new numbers; those of tables of names come later."""
        content = self._excerpt.contents.get(section.number)
        content = self._cubin.content(section) if content is None else content
        if section.name == INFO:
            return attribute_bytes(self._attributes(content, section.name, of_module=True))
        if section.name.startswith(INFO + "."):
            return attribute_bytes(self._attributes(content, section.name, of_module=False))
        if section.type in _RELOCATIONS:
            relocations = self._excerpt.relocations.get(section.number)
            relocations = self._cubin.relocations(section) if relocations is None else relocations
            return relocation_bytes(
                [
                    relocation._replace(symbol=self._symbol(relocation.symbol, section.name))
                    for relocation in relocations
                ]
            )
        if section.name == CALL_GRAPH_SECTION:
            return b"".join(self._pairs(content))
        if section.name == PROTOTYPES:
            return b"".join(self._prototypes(content))
        return content

    def _tables(self, sections: list[Section]) -> dict[int, bytes]:
        """Return the symbols and both tables of names, which the other contents have added to."""
        cubin = self._cubin
        symbols = cubin.symbol_section
        if symbols.link == cubin.header.names_index:
            raise KeptWholeError("sections and symbols share a string table")
        raw = cubin.content(symbols)
        entries = []
        for number in self._excerpt.symbols:
            _, info, visibility, section, value, size = SYMBOL.unpack_from(raw, number * SYMBOL.size)
            symbol = cubin.symbols[number]
            place = self._section(section, f"symbol {symbol.name}")
            entries.append(SYMBOL.pack(self._names.add(symbol.name), info, visibility, place, value, size))
        for section in sections:
            self._section_names.add(section.name)
        return {
            symbols.number: b"".join(entries),
            symbols.link: bytes(self._names.content),
            cubin.header.names_index: bytes(self._section_names.content),
        }

    def _attributes(self, content: bytes, referrer: str, *, of_module: bool) -> Iterable[Attribute]:
        """Return the attributes of a section; of the module's those for symbols that were taken."""
        for attribute in read_attributes(content):
            if attribute.format != SIZED_FORMAT or attribute.number in ATTRIBUTES_WITHOUT_SYMBOL:
                yield attribute
            elif attribute.number == EXTERNS:
                numbers = (self._symbol(number, referrer) for number in attribute.words())
                yield attribute._replace(value=b"".join(map(_WORD.pack, numbers)))
            elif attribute.number not in _SYMBOL_ATTRIBUTES or len(attribute.value) < _WORD.size:
                raise KeptWholeError(f"{referrer} has unknown attribute {attribute.number:#04x}")
            elif not of_module or attribute.words()[0] in self._symbols:
                symbol = self._symbol(attribute.words()[0], referrer)
                yield attribute._replace(value=_WORD.pack(symbol) + attribute.value[_WORD.size :])

    def _pairs(self, content: bytes) -> Iterable[bytes]:
        """Yield the marks of the groups of the call graph, and its entries about calls by functions that were taken.

        Functions that others may call by their address are not told of: a program finds those of the original.
        """
        mark = CALLS
        for function, callee in read_pairs(content):
            if callee >= FIRST_MARK:
                mark = callee
                yield CALL_PAIR.pack(function, callee)
            elif function in self._symbols and mark == CALLS:
                yield CALL_PAIR.pack(self._symbols[function], self._symbol(callee, CALL_GRAPH_SECTION))
            elif function in self._symbols and mark == CALLERS_BY_ADDRESS:
                yield CALL_PAIR.pack(self._symbols[function], self._copy_name(callee, CALL_GRAPH_SECTION))

    def _prototypes(self, content: bytes) -> Iterable[bytes]:
        """Symbols, each with the place of its prototype among the names."""
        for symbol, place in read_pairs(content):
            if symbol in self._symbols:
                yield CALL_PAIR.pack(self._symbols[symbol], self._copy_name(place, PROTOTYPES))

    def _copy_name(self, offset: int, referrer: str) -> int:
        """Return the new place among the names of what ``referrer`` names by its place there."""
        names = self._cubin.content(self._cubin.sections[self._cubin.symbol_section.link])
        end = names.find(b"\0", offset)
        if end < 0:
            raise KeptWholeError(f"{referrer} names a missing prototype")
        return self._names.add(names[offset:end].decode("latin-1"))

    def _header(self, section: Section, content: bytes | None) -> bytes:
        new_header = section._replace(
            name_offset=self._section_names.add(section.name),
            offset=self._offsets[section.number],
            size=section.size if content is None else len(content),
            link=self._section(section.link, section.name),
            info=self._info(section),
        )
        return SECTION_HEADER.pack(new_header.name_offset, *new_header[3:])

    def _info(self, section: Section) -> int:
        """Return the ``info`` that a section's header holds besides: the number of a section, of a symbol, or of
        symbols.
        """
        if section.name.startswith(CODE_PREFIX):
            return section.info & ~_SYMBOL_OF_CODE | self._symbol(section.info & _SYMBOL_OF_CODE, section.name)
        if section.number == self._cubin.symbol_section.number:
            return sum(number < section.info for number in self._symbols)
        if section.flags & INFO_LINK or section.type in _RELOCATIONS:
            return self._section(section.info, section.name)
        if section.info:
            raise KeptWholeError(f"section {section.name} has an unknown header")
        return 0

    def _segments(self, taken_sections: list[Section], contents: Mapping[int, bytes], table_at: int) -> list[bytes]:
        """Return the program headers: the contents of each that were taken."""
        header, image = self._cubin.header, self._cubin.image
        if header.segment_count and header.segment_size != SEGMENT.size:
            raise KeptWholeError(f"the file has program headers of {header.segment_size} bytes")
        if header.segments_offset + header.segment_count * SEGMENT.size > len(image):
            raise KeptWholeError("the program headers are truncated")
        program_headers = [
            SEGMENT.unpack_from(image, header.segments_offset + index * SEGMENT.size)
            for index in range(header.segment_count)
        ]
        members = [
            None
            if offset == header.segments_offset
            else [section for section in taken_sections if _is_in_segment(section, offset, in_file, in_memory)]
            for _, _, offset, _, _, in_file, in_memory, _ in program_headers
        ]
        count = sum(member is None or bool(member) for member in members)
        segments = []
        for (kind, flags, _, address, physical, _, _, align), members_of_segment in zip(
            program_headers, members, strict=True
        ):
            if members_of_segment is None:
                size = count * SEGMENT.size
                segments.append(SEGMENT.pack(kind, flags, table_at, address, physical, size, size, align))
            elif members_of_segment:
                place = _extent(members_of_segment, self._offsets, contents)
                segments.append(SEGMENT.pack(kind, flags, place[0], address, physical, *place[1:], align))
        return segments


def _pad(image: bytearray, align: int) -> int:
    """Return the aligned start of something added at the end."""
    image += bytes(-len(image) % max(align, 1))
    return len(image)


def _append_content(image: bytearray, align: int, content: bytes, section: Section) -> int:
    if not section.number:
        return 0
    if align > MAX_STEP:
        raise KeptWholeError(f"section {section.name} is aligned to {align} bytes, which is not supported")
    offset = _pad(image, align)
    image += content
    return offset


def _is_in_segment(section: Section, offset: int, in_file: int, in_memory: int) -> bool:
    """Return whether a section is part of what a program header reports."""
    if not section.flags & _ALLOCATED:
        return False
    if not section.has_bytes:
        return in_memory > in_file and offset <= section.offset <= offset + in_file
    return offset <= section.offset < section.end <= offset + in_file


def _extent(sections: list[Section], offsets: Mapping[int, int], contents: Mapping[int, bytes]) -> tuple[int, int, int]:
    """Return the start of sections in the file, their bytes there, and those in memory."""
    start = offsets[sections[0].number]
    end = in_memory = 0
    for section in sections:
        if not section.has_bytes:
            end = max(end, offsets[section.number] - start)
            in_memory = max(in_memory, end)
            in_memory += -in_memory % max(section.align, 1) + section.size
        else:
            end = offsets[section.number] + len(contents[section.number]) - start
    return start, end, max(end, in_memory)
