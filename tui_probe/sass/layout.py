"""Lay out a cubin anew with sections of other sizes.

Where a section grows, everything behind it moves by a multiple of every alignment in the file, so that nothing else has
to be known of what is there.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.binaries.elf import HEADER, SECTION_HEADER
from tui_probe.errors import ImageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tui_probe.binaries.cubin import Cubin
    from tui_probe.binaries.elf import Section

SEGMENT: Final = struct.Struct("<IIQQQQQQ")
_MIN_STEP: Final = 128
MAX_STEP: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class _Growth:
    """Bytes inserted at ``offset``, the end of section ``section``; what lies behind moves by ``step``."""

    section: int
    offset: int
    content: bytes
    step: int


def lay_out(
    cubin: Cubin,
    contents: Mapping[int, bytes],
    infos: Mapping[int, int] | None = None,
    section_count: int | None = None,
) -> bytes:
    """Return the file with other ``contents`` of some sections, by number, and other ``infos`` of their headers.

    The first ``section_count`` sections stay in the table, all by default. Raises ImageError where sections overlap.
    """
    growths = _growths(cubin, contents)
    image = _grown_image(cubin, contents, growths)
    count = cubin.header.section_count if section_count is None else section_count
    header = cubin.header._replace(
        segments_offset=_moved_start(growths, cubin.header.segments_offset),
        sections_offset=_moved_start(growths, cubin.header.sections_offset),
        section_count=count,
    )
    HEADER.pack_into(image, 0, *header)
    for section in cubin.sections[:count]:
        entry_offset = header.sections_offset + section.number * SECTION_HEADER.size
        moved_section = section._replace(
            offset=_moved_start([growth for growth in growths if growth.section != section.number], section.offset),
            size=len(contents.get(section.number, b"")) if section.number in contents else section.size,
            info=(infos or {}).get(section.number, section.info),
        )
        SECTION_HEADER.pack_into(image, entry_offset, moved_section.name_offset, *moved_section[3:])
    _move_segments(cubin, growths, image, header.segments_offset)
    return bytes(image)


def _grown_image(cubin: Cubin, contents: Mapping[int, bytes], growths: Sequence[_Growth]) -> bytearray:
    """Return the file with the contents and the growths in it; its headers are the old ones."""
    image = bytearray(cubin.image)
    for index, content in contents.items():
        section = cubin.sections[index]
        image[section.offset : section.offset + min(len(content), section.size)] = content[: section.size]
    pieces: list[bytes | bytearray] = []
    end = 0
    for growth in growths:
        pieces += [image[end : growth.offset], growth.content.ljust(growth.step, b"\0")]
        end = growth.offset
    return bytearray(b"".join([*pieces, image[end:]]))


def _growths(cubin: Cubin, contents: Mapping[int, bytes]) -> list[_Growth]:
    """Return the positions at which bytes are inserted, in the order of the file."""
    aligns = [section.align for section in cubin.sections if section.align]
    step = max([_MIN_STEP, *aligns])
    if step > MAX_STEP or any(step % align for align in aligns):
        raise ImageError(f"the cubin aligns a section to {step} bytes, which is not supported")
    growths = []
    for index, content in contents.items():
        section = cubin.sections[index]
        if not section.has_bytes:
            raise ImageError(f"section {section.name} of the cubin has no content")
        added_bytes = content[section.size :]
        if added_bytes:
            _refuse_overlap(cubin, section)
            growths.append(_Growth(index, section.end, added_bytes, -(-len(added_bytes) // step) * step))
    return sorted(growths, key=lambda growth: growth.offset)


def _refuse_overlap(cubin: Cubin, grown_section: Section) -> None:
    header = cubin.header
    tables = [
        (0, HEADER.size),
        (header.sections_offset, header.sections_offset + header.section_count * SECTION_HEADER.size),
        (header.segments_offset, header.segments_offset + header.segment_count * SEGMENT.size),
    ]
    other_ranges = [
        (candidate.offset, candidate.end) for candidate in cubin.sections if candidate.number != grown_section.number
    ]
    if any(start < grown_section.end < end for start, end in [*tables, *other_ranges]):
        raise ImageError(f"section {grown_section.name} of the cubin overlaps another section, which is not supported")


def _moved_start(growths: list[_Growth], position: int) -> int:
    """Return the new start of the data that began at a position."""
    return position + sum(growth.step for growth in growths if growth.offset <= position)


def _moved_end(growths: list[_Growth], position: int) -> int:
    """Return the new end of the data that ended at a position."""
    shift = sum(growth.step for growth in growths if growth.offset < position)
    return position + shift + sum(len(growth.content) for growth in growths if growth.offset == position)


def _move_segments(cubin: Cubin, growths: list[_Growth], image: bytearray, table: int) -> None:
    header = cubin.header
    if header.segment_count and header.segment_size != SEGMENT.size:
        raise ImageError(f"the cubin has program headers of {header.segment_size} bytes, so it is corrupt")
    for index in range(header.segment_count):
        entry_offset = table + index * SEGMENT.size
        if entry_offset + SEGMENT.size > len(image):
            raise ImageError("cubin truncated in its program headers: extract or record it again")
        kind, flags, offset, address, physical, in_file, in_memory, align = SEGMENT.unpack_from(image, entry_offset)
        start = _moved_start(growths, offset)
        size = _moved_end(growths, offset + in_file) - start if in_file else 0
        SEGMENT.pack_into(
            image, entry_offset, kind, flags, start, address, physical, size, in_memory + size - in_file, align
        )
