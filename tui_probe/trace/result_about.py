"""What a result file tells of its maps besides their bytes: how many records there were, which slots were written.

Behind the last map, at the next multiple of 8, files of ours say more of each map unless there is nothing to say:
eight bytes ``records\\1``; a map ``u32 kind, u32 bytes per record, u64 bytes of marks``; the marks of each map.
Kinds: 0 nothing is known; 1 one record per slot, and one bit per slot (the lowest of a byte first) that tells whether
it was written; 2 several records per slot, whose number is in the next map; 3 that next map: one u32 per slot, the
number of records that were to be saved, of which those that fit are kept; 4294967295 where the thread or the warp's
lane 0 ended without telling. Records of a warp are in the order in which they were saved by lane 0, then by lanes that
came without it.
4 is a map whose warps have slots of 0 bytes: in place of marks there is a record for each site, an instruction that the
probe was at, with the sums of all warps; ``kernel.info`` tells the lines of the sites, in order.
5 is a map that was reduced to fewer records: see ``result_reduced``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from tui_probe.errors import TraceError
from tui_probe.trace.result_reduced import group_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from tui_probe.trace.result_file import ResultFile
    from tui_probe.trace.result_layout import Header, Section

_ABOUT_MAGIC: Final = b"records\1"
_ABOUT: Final = struct.Struct("<IIQ")
_ABOUT_ALIGNMENT: Final = 8
_COUNT_BYTES: Final = 4

Kind = Literal["unknown", "marked", "counted", "counts", "sites", "reduced"]
_MOST_RECORD_BYTES: Final = 1 << 30
_KINDS: Final[tuple[Kind, ...]] = ("unknown", "marked", "counted", "counts", "sites", "reduced")


@dataclass(frozen=True, slots=True)
class About:
    """What is known of a map: ``marked`` slots tell whether they were written; of ``counted`` ones the next map, whose
    kind is ``counts``, tells how many records were to be saved. ``marks`` has one bit per slot; of ``sites`` it is
    their records, of ``reduced`` maps all that is left of them.
    """

    kind: Kind
    record_bytes: int
    marks: NDArray[np.uint8]


def read_about(
    path: Path, data: ResultFile, header: Header, sections: tuple[Section, ...]
) -> tuple[tuple[About, ...], int]:
    """What stands behind the last map, () if that is not ours, and where it ends. TraceError if it cannot be true."""
    end = max((section.offset + section.size(header) for section in sections), default=0)
    at = -(-end // _ABOUT_ALIGNMENT) * _ABOUT_ALIGNMENT
    if data.head(at, len(_ABOUT_MAGIC)) != _ABOUT_MAGIC:
        return (), end
    at += len(_ABOUT_MAGIC)
    marks_at = at + len(sections) * _ABOUT.size
    if len(data) < marks_at:
        raise TraceError(
            f"{path}, offset {at}: what is said of {len(sections)} maps ends at {len(data)}: it was cut off"
        )
    found = []
    for index, section in enumerate(sections):
        kind, record, size = data.unpack(_ABOUT, at + index * _ABOUT.size)
        is_record = 0 < record <= _MOST_RECORD_BYTES and not section.slot_bytes % record
        if kind >= len(_KINDS) or not is_record or marks_at + size > len(data):
            raise TraceError(f"{path}, offset {at + index * _ABOUT.size}: not what a map of its size can be")
        found.append(About(_KINDS[kind], record, data.part(marks_at, size)))
        marks_at += size
    for index, about in enumerate(found):
        _check_about(f"{path}, map {index}", header, about, sections[index], found[index + 1 :], sections[index + 1 :])
    return tuple(found), marks_at


def _check_about(
    where: str,
    header: Header,
    about: About,
    section: Section,
    following: Sequence[About],
    sections: Sequence[Section],
) -> None:
    """TraceError if marks or counts are not those of a map's slots. ``following`` maps are in ``sections``."""
    slots = header.blocks * header.slots(section.level)
    if about.kind == "marked" and len(about.marks) * 8 < slots:
        raise TraceError(f"{where}: {len(about.marks)} bytes of marks for {slots} slots")
    if about.kind == "marked" and section.slot_bytes != about.record_bytes:
        raise TraceError(f"{where}: marks for slots of {section.slot_bytes // about.record_bytes} records")
    if about.kind == "counted" and not (
        following and following[0].kind == "counts" and sections[0].level == section.level
    ):
        raise TraceError(f"{where}: its counts are missing")
    if about.kind == "sites" and (section.slot_bytes or len(about.marks) % about.record_bytes):
        raise TraceError(f"{where}: {len(about.marks)} bytes of sites with {about.record_bytes} each")
    if about.kind == "reduced":
        if section.slot_bytes:
            raise TraceError(f"{where}: {section.slot_bytes} bytes per slot of a reduced map, which has none")
        group_of(where, header.blocks, header.threads, about.marks, about.record_bytes)
    if about.kind == "counts" and section.slot_bytes != _COUNT_BYTES:
        raise TraceError(f"{where}: counts of {section.slot_bytes} bytes")
