"""Parts of a result file behind its maps: the records of each map, reduced maps, and the blocks that were measured.

All numbers are little-endian, and each part begins at the next multiple of 8.

**Records of maps**, unless there is nothing to say: eight bytes ``records\\1``; a map ``u32 kind, u32 bytes per
record, u64 bytes of marks``; the marks of each map. Kinds:

    0  nothing is known
    1  one record per slot, and one bit per slot (the lowest of a byte first) that tells whether it was written
    2  several records per slot, whose number is in the next map. Records of a warp are in the order in which they were
       saved by lane 0, then by lanes that came without it
    3  that next map: one u32 per slot, the number of records that were to be saved (those that fit are kept);
       4294967295 where the thread or the warp's lane 0 ended without telling
    4  a map whose warps have slots of 0 bytes: in place of marks there is a record for each site, an instruction that
       the probe was at, with the sums of all warps; ``kernel.info`` tells the lines of the sites, in order
    5  a reduced map: instead of the records of all slots, one for each group of them. Slots have 0 bytes; the marks are
       ``u32 group, u32 0``, group 1 for the threads of a warp, 2 for a block, 3 for the launch; a record for each
       group; a bit for each, the lowest of a byte first, that tells whether any slot of the group was saved; another,
       whether its records differ in a field that is the same as a rule; ``u64 missing``, the slots that were not saved
       in groups where another was. ``kernel.info`` says what the fields are made of,
       ``probe_model.probe.ReducedField`` what that means

**Sampled blocks**, if a run measured only some blocks: eight bytes ``sampled\\1``; u32 ``gridDim.xyz, first, step,
count``: the blocks first, first + step, … by their linear number. The grid in the header of such a file is a row of
these blocks only, so that all else is read as in any other file.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from tui_probe.errors import TraceError
from tui_probe.trace.launch_shape import WARP_SIZE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tui_probe.trace.launch_shape import Dim3, Header, Section
    from tui_probe.trace.result_file import ResultFile

_ALIGNMENT: Final = 8
"""Bytes of which each part begins at a multiple."""
_RECORDS_MAGIC: Final = b"records\1"
_DESCRIPTION: Final = struct.Struct("<IIQ")
_COUNT_BYTES: Final = 4
_MAX_RECORD_BYTES: Final = 1 << 30
"""Bytes of a record above which the file is taken for damaged."""

RecordKind = Literal["unknown", "marked", "counted", "counts", "sites", "reduced"]
_KINDS: Final[tuple[RecordKind, ...]] = ("unknown", "marked", "counted", "counts", "sites", "reduced")

ReductionGroup = Literal["warp", "block", "launch"]
_GROUPS: Final[dict[int, ReductionGroup]] = {1: "warp", 2: "block", 3: "launch"}
_GROUP_BYTES: Final = 8
"""Bytes of the group, in front of the records of a reduced map."""
_MISSING_BYTES: Final = 8
"""Bytes of the number of missing slots, behind these records."""

_SAMPLE_MAGIC: Final = b"sampled\1"
_SAMPLE: Final = struct.Struct("<6I")


@dataclass(frozen=True, slots=True)
class MapRecords:
    """Records about a map, by its kind.

    ``marked`` slots tell whether they were written; of ``counted`` ones the next map, whose kind is ``counts``, tells
    how many records were to be saved. ``marks`` has one bit per slot; of ``sites`` it is their records, of ``reduced``
    maps all that is left of them.
    """

    kind: RecordKind
    record_bytes: int
    marks: NDArray[np.uint8]


def read_map_records(
    path: Path, data: ResultFile, header: Header, sections: tuple[Section, ...]
) -> tuple[tuple[MapRecords, ...], int]:
    """Read the records behind the last map, () if they are not ours, and their end. TraceError for impossible ones."""
    end = max((section.offset + section.size(header) for section in sections), default=0)
    offset = -(-end // _ALIGNMENT) * _ALIGNMENT
    if data.head(offset, len(_RECORDS_MAGIC)) != _RECORDS_MAGIC:
        return (), end
    offset += len(_RECORDS_MAGIC)
    marks_at = offset + len(sections) * _DESCRIPTION.size
    if len(data) < marks_at:
        raise TraceError(
            f"{path}, offset {offset}: the description of {len(sections)} maps ends at {len(data)};"
            " the file is truncated"
        )
    records = []
    for index, section in enumerate(sections):
        kind, record, size = data.unpack(_DESCRIPTION, offset + index * _DESCRIPTION.size)
        is_record = 0 < record <= _MAX_RECORD_BYTES and not section.slot_bytes % record
        if kind >= len(_KINDS) or not is_record or marks_at + size > len(data):
            raise TraceError(
                f"{path}, offset {offset + index * _DESCRIPTION.size}: the description of the map has values that no"
                " map can have"
            )
        records.append(MapRecords(_KINDS[kind], record, data.part(marks_at, size)))
        marks_at += size
    for index, map_records in enumerate(records):
        _check_map_records(
            f"{path}, map {index}", header, map_records, sections[index], records[index + 1 :], sections[index + 1 :]
        )
    return tuple(records), marks_at


def _check_map_records(
    location: str,
    header: Header,
    records: MapRecords,
    section: Section,
    following: Sequence[MapRecords],
    sections: Sequence[Section],
) -> None:
    """TraceError if marks or counts are not those of a map's slots. ``following`` maps are in ``sections``."""
    slots = header.blocks * header.slots(section.level)
    if records.kind == "marked" and len(records.marks) * 8 < slots:
        raise TraceError(f"{location}: {len(records.marks)} bytes of marks are too few for {slots} slots")
    if records.kind == "marked" and section.slot_bytes != records.record_bytes:
        raise TraceError(
            f"{location}: a map with marks has {section.slot_bytes // records.record_bytes} records per slot, not one"
        )
    if records.kind == "counted" and not (
        following and following[0].kind == "counts" and sections[0].level == section.level
    ):
        raise TraceError(f"{location}: the counts of the map are missing")
    if records.kind == "sites" and (section.slot_bytes or len(records.marks) % records.record_bytes):
        raise TraceError(
            f"{location}: the map of sites is invalid: {len(records.marks)} bytes, {records.record_bytes} per record,"
            f" {section.slot_bytes} per slot"
        )
    if records.kind == "reduced":
        if section.slot_bytes:
            raise TraceError(f"{location}: {section.slot_bytes} bytes per slot, but a reduced map has no slots")
        reduction_group(location, header.blocks, header.threads, records.marks, records.record_bytes)
    if records.kind == "counts" and section.slot_bytes != _COUNT_BYTES:
        raise TraceError(f"{location}: a count has {section.slot_bytes} bytes, not {_COUNT_BYTES}")


@dataclass(frozen=True, slots=True)
class Reduced:
    """Reduced records of a map: ``records`` of shape (blocks, groups per block), of a launch (1, 1).

    Of the same shape: whether any slot of a group was ``saved``, and whether its records are ``mixed``: not the same
    where they should be.
    """

    group: ReductionGroup
    records: NDArray[Any]
    saved: NDArray[np.bool_]
    mixed: NDArray[np.bool_]
    missing_slots: int
    """Slots that were not saved, in groups in which another was."""


def _shape(blocks: int, threads: int, group: ReductionGroup) -> tuple[int, int]:
    if group == "launch":
        return 1, 1
    return blocks, 1 if group == "block" else -(-threads // WARP_SIZE)


def reduction_group(location: str, blocks: int, threads: int, marks: NDArray[np.uint8], record: int) -> ReductionGroup:
    """Whose records became one. TraceError if the ``marks`` are not those of a reduced map.

    ``blocks`` were measured, of that many ``threads``; what is left of a group takes ``record`` bytes.
    """
    group = _GROUPS.get(int(marks[:4].view("<u4")[0])) if len(marks) >= _GROUP_BYTES else None
    if group is None:
        raise TraceError(f"{location}: the reduced map has a damaged header ({len(marks)} bytes)")
    groups = prod(_shape(blocks, threads, group))
    if len(marks) != _GROUP_BYTES + groups * record + 2 * -(-groups // 8) + _MISSING_BYTES:
        raise TraceError(
            f"{location}: has {len(marks)} bytes, but needs {groups} records (one per {group}) of {record} bytes"
        )
    return group


def read_reduced(marks: NDArray[np.uint8], blocks: int, threads: int, record: np.dtype[Any]) -> Reduced:
    """The reduced map in ``marks`` that :func:`reduction_group` has looked at, with records of that size."""
    group = _GROUPS[int(marks[:4].view("<u4")[0])]
    shape = _shape(blocks, threads, group)
    groups = prod(shape)
    saved_offset = _GROUP_BYTES + groups * record.itemsize
    bits = -(-groups // 8)
    saved, mixed = (
        np.unpackbits(marks[begin : begin + bits], bitorder="little")[:groups].view(np.bool_).reshape(shape)
        for begin in (saved_offset, saved_offset + bits)
    )
    records = marks[_GROUP_BYTES:saved_offset].view(record).reshape(shape)
    return Reduced(group, records, saved, mixed, int(marks[-_MISSING_BYTES:].view("<u8")[0]))


@dataclass(frozen=True, slots=True)
class Sample:
    """The grid that was launched, and the linear numbers of the blocks of it that were measured.

    ``resident``: these are the blocks that were on the GPU, and others near them that had ended; nothing was sampled.
    """

    grid: Dim3
    blocks: range
    resident: bool = False


def read_sample(path: Path, data: ResultFile, end: int, measured_blocks: int) -> Sample | None:
    """Read the sample behind ``end``; None if all blocks were measured.

    TraceError if it cannot be true of a file with ``measured_blocks`` blocks.
    """
    offset = -(-end // _ALIGNMENT) * _ALIGNMENT
    if data.head(offset, len(_SAMPLE_MAGIC)) != _SAMPLE_MAGIC:
        return None
    if len(data) < offset + len(_SAMPLE_MAGIC) + _SAMPLE.size:
        raise TraceError(f"{path}, offset {offset}: the description of the block sample is truncated")
    x, y, z, first_block, step, count = data.unpack(_SAMPLE, offset + len(_SAMPLE_MAGIC))
    if count != measured_blocks or not step or first_block + (count - 1) * step >= x * y * z:
        raise TraceError(
            f"{path}, offset {offset}: not a result file: the sample (blocks {first_block} to"
            f" {first_block + (count - 1) * step}, step {step}) does not fit the grid {x}×{y}×{z}, or the file has"
            f" {measured_blocks} blocks, not {count}"
        )
    return Sample((x, y, z), range(first_block, first_block + count * step, step))
