"""Sections of a 64-bit little-endian ELF file, by name: enough for cubins and Linux programs.

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
_CLASS_64_LITTLE: Final = b"\x02\x01"
_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_NO_BITS: Final = 8
_COMPRESSED: Final = 0x800
_EXTENDED_INDEX: Final = 0xFFFF
_SHARED: Final = 16
"""Maximum number of names that may share one byte of a name table."""


class _Section(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry_size: int


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


def wanted_section_slices(image: bytes, is_wanted: Callable[[str], object]) -> Iterator[tuple[str, slice]]:
    """Yield what ``section_slices`` does of the sections whose names are wanted, for those who read all of them.

    Raises ImageError where they share bytes: the reader's work would not be bounded by the size of the file.
    """
    left = len(image)
    for name, place in section_slices(image):
        if is_wanted(name):
            left -= place.stop - place.start
            if left < 0:
                raise ImageError(f"sections {name} of the ELF image overlap: it is damaged; capture it again")
            yield name, place


def section_slices(image: bytes) -> Iterator[tuple[str, slice]]:
    """Yield the name of each section that has content, in file order, and where in ``image`` the content is.

    Raises ImageError for a file that is cut off or is no 64-bit little-endian ELF.
    """
    if not image.startswith(MAGIC) or image[4:6] != _CLASS_64_LITTLE or len(image) < _HEADER.size:
        raise ImageError("the image is no complete 64-bit little-endian ELF file")
    fields = _HEADER.unpack_from(image)
    table, entry_size, count, names_index = fields[6], fields[11], fields[12], fields[13]
    if table == 0:
        return
    if entry_size < _SECTION.size:
        raise ImageError(f"the ELF image has section headers of {entry_size} bytes: it is damaged")
    first = _section_at(image, table)
    count = count or first.size  # more sections than 16 bits count: the first header tells
    names_index = first.link if names_index == _EXTENDED_INDEX else names_index
    if table + count * entry_size > len(image):
        raise ImageError("the ELF image is cut off before the end of its section table: capture it again")
    names = NameTable(image[_section_slice(image, _section_at(image, table + names_index * entry_size))])
    for index in range(1, count):
        section = _section_at(image, table + index * entry_size)
        if section.type != _NO_BITS and not section.flags & _COMPRESSED:
            yield names.at(section.name).decode("latin-1"), _section_slice(image, section)


class NameTable:
    """A table of names. Names may share their ends, so all of them may be longer than the table, but not by much."""

    def __init__(self, table: bytes) -> None:
        self._table = table
        self._left = _SHARED * len(table)

    def at(self, place: int) -> bytes:
        """The name that begins there. ImageError for more names than a table of that size can have."""
        end = self._table.find(b"\0", place)
        text = self._table[place : end if end >= 0 else len(self._table)]
        self._left -= len(text)
        if self._left < 0:
            raise ImageError("names in the ELF image do not end: it is damaged; capture it again")
        return text


def _section_at(image: bytes, offset: int) -> _Section:
    if offset + _SECTION.size > len(image):
        raise ImageError("the ELF image is cut off before the end of its section table: capture it again")
    return _Section._make(_SECTION.unpack_from(image, offset))


def _section_slice(image: bytes, section: _Section) -> slice:
    if section.offset + section.size > len(image):
        raise ImageError("the ELF image is cut off before the end of a section: capture it again")
    return slice(section.offset, section.offset + section.size)
