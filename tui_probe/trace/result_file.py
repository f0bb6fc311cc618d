"""Bytes of a result file and the blocks behind its maps: record counts, reductions, sampled blocks.

So it is not mapped into memory: reading a page of a mapped file that is no longer there kills the process. A small file
is read once, whole; of a larger one what is asked for, when it is asked for.
"""

from __future__ import annotations

import os
import shlex
import struct
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Final, Literal, overload

import numpy as np

from tui_probe.errors import TraceError
from tui_probe.trace.launch_shape import WARP_SIZE
from tui_probe.trace.plain_file import plain_descriptor, read_into

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tui_probe.trace.launch_shape import Dim3, Header, Section

# Reduced maps of a result file: instead of the records of all slots, one for each group of them.
#
# A reduced map (kind 5 of ``result_about``) has slots of 0 bytes; its marks are ``u32 group, u32 0``, group 1 for the
# threads of a warp, 2 for a block, 3 for the launch; a record for each group; a bit for each, the lowest of a byte
# first, that tells whether any slot of the group was saved; another, whether its records differ in a field that is
# the same as a rule; ``u64 missing``, the slots that were not saved in groups where another was. ``kernel.info`` says
# what the fields are made of, ``probe_model.probe.ReducedField`` what that means.

ReductionGroup = Literal["warp", "block", "launch"]
_GROUPS: Final[dict[int, ReductionGroup]] = {1: "warp", 2: "block", 3: "launch"}
_HEAD: Final = 8
_MISSING: Final = 8
"""Bytes."""
SMALL_FILE: Final = 8 << 20
"""Bytes of a file that is read once."""


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
    missing: int
    """Slots that were not saved, in groups in which another was."""


def _shape(blocks: int, threads: int, group: ReductionGroup) -> tuple[int, int]:
    if group == "launch":
        return 1, 1
    return blocks, 1 if group == "block" else -(-threads // WARP_SIZE)


def reduction_group(where: str, blocks: int, threads: int, marks: NDArray[np.uint8], record: int) -> ReductionGroup:
    """Whose records became one. TraceError if the ``marks`` are not those of a reduced map.

    ``blocks`` were measured, of that many ``threads``; what is left of a group takes ``record`` bytes.
    """
    group = _GROUPS.get(int(marks[:4].view("<u4")[0])) if len(marks) >= _HEAD else None
    if group is None:
        raise TraceError(f"{where}: the reduced map has a damaged header ({len(marks)} bytes)")
    groups = prod(_shape(blocks, threads, group))
    if len(marks) != _HEAD + groups * record + 2 * -(-groups // 8) + _MISSING:
        raise TraceError(
            f"{where}: has {len(marks)} bytes, but needs {groups} records (one per {group}) of {record} bytes"
        )
    return group


def read_reduced(marks: NDArray[np.uint8], blocks: int, threads: int, record: np.dtype[Any]) -> Reduced:
    """The reduced map in ``marks`` that :func:`reduction_group` has looked at, with records of that size."""
    group = _GROUPS[int(marks[:4].view("<u4")[0])]
    shape = _shape(blocks, threads, group)
    groups = prod(shape)
    at = _HEAD + groups * record.itemsize
    bits = -(-groups // 8)
    saved, mixed = (
        np.unpackbits(marks[begin : begin + bits], bitorder="little")[:groups].view(np.bool_).reshape(shape)
        for begin in (at, at + bits)
    )
    records = marks[_HEAD:at].view(record).reshape(shape)
    return Reduced(group, records, saved, mixed, int(marks[-_MISSING:].view("<u8")[0]))


class ResultFile:
    """A file as it was when it was opened: ``size`` bytes. It stays open while it is in use, if it is not small."""

    def __init__(self, path: Path) -> None:
        """TraceError if there is no such file, or if it cannot be read."""
        self.path = path
        try:
            descriptor = plain_descriptor(path)
        except FileNotFoundError as error:
            raise TraceError(f"{path}: {_missing_file_advice(path)}") from error
        except (OSError, ValueError) as error:
            raise TraceError(f"{path}: not readable: {getattr(error, 'strerror', None) or error}") from error
        self._close = weakref.finalize(self, os.close, descriptor)
        self._descriptor = descriptor
        self._whole: NDArray[np.uint8] | None = None
        self.size = os.fstat(descriptor).st_size
        if self.size <= SMALL_FILE:
            self._whole = self._read(0, self.size)
            self._close()

    def __len__(self) -> int:
        return self.size

    def part(self, at: int, size: int) -> NDArray[np.uint8]:
        """``size`` bytes from ``at`` on, which are in it: u1, read-only. TraceError if they are there no more."""
        return self._read(at, size) if self._whole is None else self._whole[at : at + size]

    def head(self, at: int, size: int) -> bytes:
        """Return bytes of the file, fewer at its end."""
        return self.part(at, max(min(size, self.size - at), 0)).tobytes()

    def unpack(self, form: struct.Struct, at: int) -> tuple[Any, ...]:
        """The numbers from ``at`` on, which are in it."""
        return form.unpack(self.part(at, form.size).data)

    def _read(self, at: int, size: int) -> NDArray[np.uint8]:
        try:
            buffer, done = np.empty(size, np.uint8), 0
            while done < size and (count := read_into(self._descriptor, buffer.data[done:], at + done)):
                done += count
        except OSError as error:
            raise TraceError(f"{self.path}: not readable: {error.strerror}") from error
        except MemoryError as error:
            raise TraceError(f"{self.path}: not enough memory for {size} bytes") from error
        if done < size:
            raise TraceError(f"{self.path}: truncated at byte {at + done} while open; open the file again")
        buffer.flags.writeable = False
        return buffer


def _missing_file_advice(path: Path) -> str:
    """Advice on a file that is no longer there."""
    return compressed_result_advice(path) or "the file no longer exists; run again, or pass another trace"


def compressed_result_advice(path: Path) -> str:
    """Advice on a result that the trace has only compressed, with the command that unpacks all of them; "" else."""
    packed = path.with_name(f"{path.name}.xz")
    if path.is_file() or not packed.is_file():
        return ""
    return (
        f"the file is compressed as {packed.name}; unpack all results with xz -d {shlex.quote(str(path.parent))}/*.xz"
    )


class Maps(Sequence["NDArray[np.uint8]"]):
    """The maps of a file: read-only u1 arrays of shape (measured blocks, slots per block, bytes per slot).

    Each is read when it is asked for, and kept for as long as anybody has it.
    """

    def __init__(self, file: ResultFile, header: Header, sections: Sequence[Section]) -> None:
        self._file, self._header, self._sections = file, header, sections
        self._read: weakref.WeakValueDictionary[int, NDArray[np.uint8]] = weakref.WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._sections)

    def shape(self, index: int) -> tuple[int, int, int]:
        """The shape of a map, which is not read for that."""
        section = self._sections[index]
        return self._header.blocks, self._header.slots(section.level), section.slot_bytes

    @overload
    def __getitem__(self, index: int) -> NDArray[np.uint8]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[NDArray[np.uint8]]: ...
    def __getitem__(self, index: int | slice) -> NDArray[np.uint8] | Sequence[NDArray[np.uint8]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        raw = self._read.get(index)
        if raw is None:
            shape = self.shape(index)
            raw = self._file.part(self._sections[index].offset, shape[0] * shape[1] * shape[2])
            self._read[index] = raw
        return raw.reshape(self.shape(index))

    def blocks(self, index: int, first: int, last: int) -> NDArray[np.uint8]:
        """A map's blocks from ``first`` to before ``last``, read anew: shape (last - first, slots, bytes)."""
        _, slots, size = self.shape(index)
        raw = self._file.part(self._sections[index].offset + first * slots * size, (last - first) * slots * size)
        return raw.reshape(last - first, slots, size)


# Description of maps in a result file besides their bytes: number of records, and slots that were written.
#
# Behind the last map, at the next multiple of 8, files of tui-probe say more of each map unless there is nothing to
# say: eight bytes ``records\1``; a map ``u32 kind, u32 bytes per record, u64 bytes of marks``; the marks of each map.
# Kinds: 0 nothing is known; 1 one record per slot, and one bit per slot (the lowest of a byte first) that tells
# whether it was written; 2 several records per slot, whose number is in the next map; 3 that next map: one u32 per
# slot, the number of records that were to be saved (those that fit are kept); 4294967295 where the thread or
# the warp's lane 0 ended without telling. Records of a warp are in the order in which they were saved by lane 0, then
# by lanes that came without it. 4 is a map whose warps have slots of 0 bytes: in place of marks there is a record for
# each site, an instruction that the probe was at, with the sums of all warps; ``kernel.info`` tells the lines of the
# sites, in order. 5 is a map that was reduced to fewer records: see ``result_reduced``.

_ABOUT_MAGIC: Final = b"records\1"
_ABOUT: Final = struct.Struct("<IIQ")
_ABOUT_ALIGNMENT: Final = 8
_COUNT_BYTES: Final = 4

RecordKind = Literal["unknown", "marked", "counted", "counts", "sites", "reduced"]
_MOST_RECORD_BYTES: Final = 1 << 30
_KINDS: Final[tuple[RecordKind, ...]] = ("unknown", "marked", "counted", "counts", "sites", "reduced")


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
    at = -(-end // _ABOUT_ALIGNMENT) * _ABOUT_ALIGNMENT
    if data.head(at, len(_ABOUT_MAGIC)) != _ABOUT_MAGIC:
        return (), end
    at += len(_ABOUT_MAGIC)
    marks_at = at + len(sections) * _ABOUT.size
    if len(data) < marks_at:
        raise TraceError(
            f"{path}, offset {at}: the description of {len(sections)} maps ends at {len(data)}; the file is truncated"
        )
    records = []
    for index, section in enumerate(sections):
        kind, record, size = data.unpack(_ABOUT, at + index * _ABOUT.size)
        is_record = 0 < record <= _MOST_RECORD_BYTES and not section.slot_bytes % record
        if kind >= len(_KINDS) or not is_record or marks_at + size > len(data):
            raise TraceError(
                f"{path}, offset {at + index * _ABOUT.size}: the description of the map has values that no map can have"
            )
        records.append(MapRecords(_KINDS[kind], record, data.part(marks_at, size)))
        marks_at += size
    for index, about in enumerate(records):
        _check_map_records(
            f"{path}, map {index}", header, about, sections[index], records[index + 1 :], sections[index + 1 :]
        )
    return tuple(records), marks_at


def _check_map_records(
    where: str,
    header: Header,
    about: MapRecords,
    section: Section,
    following: Sequence[MapRecords],
    sections: Sequence[Section],
) -> None:
    """TraceError if marks or counts are not those of a map's slots. ``following`` maps are in ``sections``."""
    slots = header.blocks * header.slots(section.level)
    if about.kind == "marked" and len(about.marks) * 8 < slots:
        raise TraceError(f"{where}: {len(about.marks)} bytes of marks are too few for {slots} slots")
    if about.kind == "marked" and section.slot_bytes != about.record_bytes:
        raise TraceError(
            f"{where}: a map with marks has {section.slot_bytes // about.record_bytes} records per slot, not one"
        )
    if about.kind == "counted" and not (
        following and following[0].kind == "counts" and sections[0].level == section.level
    ):
        raise TraceError(f"{where}: the counts of the map are missing")
    if about.kind == "sites" and (section.slot_bytes or len(about.marks) % about.record_bytes):
        raise TraceError(
            f"{where}: the map of sites is invalid: {len(about.marks)} bytes, {about.record_bytes} per record,"
            f" {section.slot_bytes} per slot"
        )
    if about.kind == "reduced":
        if section.slot_bytes:
            raise TraceError(f"{where}: {section.slot_bytes} bytes per slot, but a reduced map has no slots")
        reduction_group(where, header.blocks, header.threads, about.marks, about.record_bytes)
    if about.kind == "counts" and section.slot_bytes != _COUNT_BYTES:
        raise TraceError(f"{where}: a count has {section.slot_bytes} bytes, not {_COUNT_BYTES}")


# Blocks of a result file, if a run measured only a sample of them.
#
# The grid in the header of such a file is a row of the measured blocks only, in the order of their numbers, so that
# all else is read as in any other file. Behind the description of the maps, at the next multiple of 8, is which
# blocks of which grid these are: eight bytes ``sampled\1``; u32 ``gridDim.xyz, first, step, count``: the blocks
# first, first + step, … by their linear number.

_MAGIC: Final = b"sampled\1"
_SAMPLE: Final = struct.Struct("<6I")
_ALIGNMENT: Final = 8


@dataclass(frozen=True, slots=True)
class Sample:
    """The grid that was launched, and the linear numbers of the blocks of it that were measured.

    ``resident``: these are the blocks that were on the GPU, and others near them that had ended; nothing was sampled.
    """

    grid: Dim3
    blocks: range
    resident: bool = False


def read_sample(path: Path, data: ResultFile, end: int, measured: int) -> Sample | None:
    """Read the sample behind ``end``; None if all blocks were measured.

    TraceError if it cannot be true of a file with ``measured`` blocks.
    """
    at = -(-end // _ALIGNMENT) * _ALIGNMENT
    if data.head(at, len(_MAGIC)) != _MAGIC:
        return None
    if len(data) < at + len(_MAGIC) + _SAMPLE.size:
        raise TraceError(f"{path}, offset {at}: the description of the block sample is truncated")
    x, y, z, first, step, count = data.unpack(_SAMPLE, at + len(_MAGIC))
    if count != measured or not step or first + (count - 1) * step >= x * y * z:
        raise TraceError(
            f"{path}, offset {at}: not a result file: the sample (blocks {first} to {first + (count - 1) * step},"
            f" step {step}) does not fit the grid {x}×{y}×{z}, or the file has {measured} blocks, not {count}"
        )
    return Sample((x, y, z), range(first, first + count * step, step))
