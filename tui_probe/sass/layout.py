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
    """Bytes inserted at ``at``, the end of section ``section``; what lies behind moves by ``step``."""

    section: int
    at: int
    added: bytes
    step: int


def lay_out(
    cubin: Cubin, contents: Mapping[int, bytes], infos: Mapping[int, int] | None = None, kept: int | None = None
) -> bytes:
    """The file with other ``contents`` of some sections, by number, and other ``infos`` of their headers.

    Of its sections the first ``kept`` stay in the table, all by default. Raises ImageError where sections overlap.
    """
    growths = _growths(cubin, contents)
    out = _grown_image(cubin, contents, growths)
    count = cubin.header.sections if kept is None else kept
    header = cubin.header._replace(
        segments_at=_moved_start(growths, cubin.header.segments_at),
        sections_at=_moved_start(growths, cubin.header.sections_at),
        sections=count,
    )
    HEADER.pack_into(out, 0, *header)
    for section in cubin.sections[:count]:
        at = header.sections_at + section.number * SECTION_HEADER.size
        moved = section._replace(
            offset=_moved_start([growth for growth in growths if growth.section != section.number], section.offset),
            size=len(contents.get(section.number, b"")) if section.number in contents else section.size,
            info=(infos or {}).get(section.number, section.info),
        )
        SECTION_HEADER.pack_into(out, at, moved.name_at, *moved[3:])
    _move_segments(cubin, growths, out, header.segments_at)
    return bytes(out)


def _grown_image(cubin: Cubin, contents: Mapping[int, bytes], growths: Sequence[_Growth]) -> bytearray:
    """Return the file with the contents and the growths in it; its headers are the old ones."""
    image = bytearray(cubin.image)
    for index, content in contents.items():
        section = cubin.sections[index]
        image[section.offset : section.offset + min(len(content), section.size)] = content[: section.size]
    pieces: list[bytes | bytearray] = []
    done = 0
    for growth in growths:
        pieces += [image[done : growth.at], growth.added.ljust(growth.step, b"\0")]
        done = growth.at
    return bytearray(b"".join([*pieces, image[done:]]))


def _growths(cubin: Cubin, contents: Mapping[int, bytes]) -> list[_Growth]:
    """Positions at which bytes are inserted, in the order of the file."""
    aligns = [section.align for section in cubin.sections if section.align]
    step = max([_MIN_STEP, *aligns])
    if step > MAX_STEP or any(step % align for align in aligns):
        raise ImageError(f"the cubin aligns a section to {step} bytes, which is not supported")
    growths = []
    for index, content in contents.items():
        section = cubin.sections[index]
        if not section.has_bytes:
            raise ImageError(f"section {section.name} of the cubin has no content")
        added = content[section.size :]
        if added:
            _refuse_overlap(cubin, section)
            growths.append(_Growth(index, section.end, added, -(-len(added) // step) * step))
    return sorted(growths, key=lambda growth: growth.at)


def _refuse_overlap(cubin: Cubin, grown: Section) -> None:
    header = cubin.header
    tables = [
        (0, HEADER.size),
        (header.sections_at, header.sections_at + header.sections * SECTION_HEADER.size),
        (header.segments_at, header.segments_at + header.segments * SEGMENT.size),
    ]
    others = [(section.offset, section.end) for section in cubin.sections if section.number != grown.number]
    if any(start < grown.end < end for start, end in [*tables, *others]):
        raise ImageError(f"section {grown.name} of the cubin overlaps another section, which is not supported")


def _moved_start(growths: list[_Growth], position: int) -> int:
    """New start of what began at a position."""
    return position + sum(growth.step for growth in growths if growth.at <= position)


def _moved_end(growths: list[_Growth], position: int) -> int:
    """New end of what ended at a position."""
    before = sum(growth.step for growth in growths if growth.at < position)
    return position + before + sum(len(growth.added) for growth in growths if growth.at == position)


def _move_segments(cubin: Cubin, growths: list[_Growth], out: bytearray, table: int) -> None:
    header = cubin.header
    if header.segments and header.segment_size != SEGMENT.size:
        raise ImageError(f"the cubin has program headers of {header.segment_size} bytes, so it is corrupt")
    for index in range(header.segments):
        at = table + index * SEGMENT.size
        if at + SEGMENT.size > len(out):
            raise ImageError("cubin truncated in its program headers: extract or record it again")
        kind, flags, offset, address, physical, in_file, in_memory, align = SEGMENT.unpack_from(out, at)
        start = _moved_start(growths, offset)
        size = _moved_end(growths, offset + in_file) - start if in_file else 0
        SEGMENT.pack_into(out, at, kind, flags, start, address, physical, size, in_memory + size - in_file, align)
