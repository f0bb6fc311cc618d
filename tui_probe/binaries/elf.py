"""Sections of a 64-bit little-endian ELF file: enough for cubins and Linux programs.

Layout after the System V ABI, chapter 4. Sections may share bytes, as those of cubins for sm_100 and later do, so the
sizes of all together are not bounded: only what is asked for is copied.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.errors import ImageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAGIC: Final = b"\x7fELF"
CLASS_64_LITTLE: Final = b"\x02\x01"
HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION_HEADER: Final = struct.Struct("<IIQQQQIIQQ")
_WITHOUT_BYTES: Final = frozenset({8, 0x70000007, 0x70000009, 0x7000000A})
"""SHT_NOBITS, and the kinds of its own that CUDA has: global, local and shared memory without initial values."""
_COMPRESSED: Final = 0x800
"""SHF_COMPRESSED."""
_EXTENDED_INDEX: Final = 0xFFFF
"""SHN_XINDEX: the number is in another section, since it has more than 16 bits."""
_MAX_NAME_OVERLAP: Final = 16
"""Maximum number of names that may share one byte of a name table."""


class Header(NamedTuple):
    """The head of an ELF file."""

    ident: bytes
    type: int
    machine: int
    version: int
    entry: int
    segments_offset: int
    sections_offset: int
    flags: int
    size: int
    segment_size: int
    segment_count: int
    section_size: int
    section_count: int
    names_index: int


class Section(NamedTuple):
    """A section's header, with its name and number."""

    number: int
    name: str
    name_offset: int
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
        return self.type not in _WITHOUT_BYTES


class Sections(Mapping[str, bytes]):
    """The content of each section that has content, by its name; of several of one name the last.

    Raises as ``section_slices`` does.
    """

    def __init__(self, image: bytes) -> None:
        self._image = image
        self._slices = dict(section_slices(image))

    def __getitem__(self, name: str) -> bytes:
        return self._image[self._slices[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._slices)

    def __len__(self) -> int:
        return len(self._slices)

    def __contains__(self, name: object) -> bool:
        return name in self._slices


class NameTable:
    """A table of names. Names may share their ends, so all of them may be longer than the table, but not by much."""

    def __init__(self, table: bytes) -> None:
        self._table = table
        self._remaining_bytes = _MAX_NAME_OVERLAP * len(table)

    def name_at(self, offset: int) -> bytes:
        """Return the name that begins at an offset.

        Raises ImageError for more names than a table of that size can have.
        """
        end = self._table.find(b"\0", offset)
        text = self._table[offset : end if end >= 0 else len(self._table)]
        self._remaining_bytes -= len(text)
        if self._remaining_bytes < 0:
            raise ImageError("corrupt ELF image: a name is not terminated; extract or record the image again")
        return text


def is_elf(image: bytes) -> bool:
    """Return whether an image begins with the whole head of a 64-bit little-endian ELF file."""
    return image.startswith(MAGIC) and image[4:6] == CLASS_64_LITTLE and len(image) >= HEADER.size


def read_header(image: bytes) -> Header:
    """Return the head of the file. Raises ImageError for a file that is not a 64-bit little-endian ELF."""
    if not is_elf(image):
        raise ImageError("the image is not a complete 64-bit little-endian ELF file")
    return Header._make(HEADER.unpack_from(image))


def read_sections(image: bytes, header: Header) -> Iterator[Section]:
    """Yield all sections by number, the nameless first one among them, each checked to lie within the image.

    Raises ImageError for a file that is cut off or damaged.
    """
    table, entry_size = header.sections_offset, header.section_size
    if table == 0:
        return
    if entry_size < SECTION_HEADER.size:
        raise ImageError(f"corrupt ELF image: section headers of {entry_size} bytes are too short")
    null_section = Section(0, "", *_fields_at(image, table))
    count = header.section_count or null_section.size  # more sections than 16 bits count: the first header tells
    names_index = null_section.link if header.names_index == _EXTENDED_INDEX else header.names_index
    if table + count * entry_size > len(image):
        raise _cut_off_error("its section table")
    name_section = Section(names_index, "", *_fields_at(image, table + names_index * entry_size))
    names = NameTable(image[name_section.offset : _checked_end(image, name_section)])
    for number in range(count):  # cubins of libraries have thousands
        fields = SECTION_HEADER.unpack_from(image, table + number * entry_size)
        section = Section(number, names.name_at(fields[0]).decode("latin-1"), *fields)
        _checked_end(image, section)
        yield section


def section_slices(image: bytes) -> Iterator[tuple[str, slice]]:
    """Yield the name of each section that has content, in file order, and where in ``image`` the content is.

    Raises ImageError for a file that is cut off or is not a 64-bit little-endian ELF.
    """
    for section in read_sections(image, read_header(image)):
        if section.number and section.has_bytes and not section.flags & _COMPRESSED:
            yield section.name, slice(section.offset, section.end)


def wanted_section_slices(image: bytes, is_wanted: Callable[[str], object]) -> Iterator[tuple[str, slice]]:
    """Yield what ``section_slices`` does of the sections whose names are wanted, for those who read all of them.

    Raises ImageError where they share bytes: the reader's work would not be bounded by the size of the file.
    """
    remaining_bytes = len(image)
    for name, content_slice in section_slices(image):
        if is_wanted(name):
            remaining_bytes -= content_slice.stop - content_slice.start
            if remaining_bytes < 0:
                raise ImageError(f"sections {name} of the ELF image overlap: extract or record the image again")
            yield name, content_slice


def _fields_at(image: bytes, offset: int) -> tuple[int, ...]:
    if offset + SECTION_HEADER.size > len(image):
        raise _cut_off_error("its section table")
    return SECTION_HEADER.unpack_from(image, offset)


def _checked_end(image: bytes, section: Section) -> int:
    if section.end > len(image):
        raise _cut_off_error("a section")
    return section.end


def _cut_off_error(part: str) -> ImageError:
    return ImageError(f"ELF image truncated in {part}: extract or record the image again")
