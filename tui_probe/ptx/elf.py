"""The sections of a 64-bit little-endian ELF file, by name. Enough for cubins and Linux programs.

Layout after the System V ABI, chapter 4.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.errors import ImageError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAGIC: Final = b"\x7fELF"
_CLASS_64_LITTLE: Final = b"\x02\x01"
_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_NO_BITS: Final = 8
_COMPRESSED: Final = 0x800
_EXTENDED_INDEX: Final = 0xFFFF


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


def sections(image: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each section that has content, in file order.

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
    first = _section(image, table)
    count = count or first.size  # more sections than 16 bits count: the first header tells
    names_index = first.link if names_index == _EXTENDED_INDEX else names_index
    if table + count * entry_size > len(image):
        raise ImageError("the ELF image is cut off before the end of its section table: capture it again")
    names = _content(image, _section(image, table + names_index * entry_size))
    for index in range(1, count):
        section = _section(image, table + index * entry_size)
        if section.type != _NO_BITS and not section.flags & _COMPRESSED:
            name = names[section.name : names.find(b"\0", section.name)]
            yield name.decode("latin-1"), _content(image, section)


def _section(image: bytes, offset: int) -> _Section:
    if offset + _SECTION.size > len(image):
        raise ImageError("the ELF image is cut off before the end of its section table: capture it again")
    return _Section._make(_SECTION.unpack_from(image, offset))


def _content(image: bytes, section: _Section) -> bytes:
    if section.offset + section.size > len(image):
        raise ImageError("the ELF image is cut off before the end of a section: capture it again")
    return image[section.offset : section.offset + section.size]
