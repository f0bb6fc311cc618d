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
        return self.type not in _WITHOUT_BYTES


class Sections(Mapping[str, bytes]):
    """The content of each section that has content, by its name; of several of one name the last.

    Raises as ``section_slices`` does.
    """

    def __init__(self, image: bytes) -> None:
        self._image = image
        self._places = dict(section_slices(image))

    def __getitem__(self, name: str) -> bytes:
        return self._image[self._places[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places


class NameTable:
    """A table of names. Names may share their ends, so all of them may be longer than the table, but not by much."""

    def __init__(self, table: bytes) -> None:
        self._table = table
        self._left = _MAX_NAME_OVERLAP * len(table)

    def at(self, place: int) -> bytes:
        """The name that begins there. ImageError for more names than a table of that size can have."""
        end = self._table.find(b"\0", place)
        text = self._table[place : end if end >= 0 else len(self._table)]
        self._left -= len(text)
        if self._left < 0:
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
    table, entry_size = header.sections_at, header.section_size
    if table == 0:
        return
    if entry_size < SECTION_HEADER.size:
        raise ImageError(f"corrupt ELF image: section headers of {entry_size} bytes are too short")
    first = Section(0, "", *_fields_at(image, table))
    count = header.sections or first.size  # more sections than 16 bits count: the first header tells
    names_index = first.link if header.names == _EXTENDED_INDEX else header.names
    if table + count * entry_size > len(image):
        raise _cut_off_error("its section table")
    named = Section(names_index, "", *_fields_at(image, table + names_index * entry_size))
    names = NameTable(image[named.offset : _checked_end(image, named)])
    for number in range(count):  # cubins of libraries have thousands
        fields = SECTION_HEADER.unpack_from(image, table + number * entry_size)
        section = Section(number, names.at(fields[0]).decode("latin-1"), *fields)
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
    left = len(image)
    for name, place in section_slices(image):
        if is_wanted(name):
            left -= place.stop - place.start
            if left < 0:
                raise ImageError(f"sections {name} of the ELF image overlap: extract or record the image again")
            yield name, place


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
