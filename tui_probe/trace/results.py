"""Results: the records that a probe wrote during one launch, as arrays.

``result_file`` says how the files are laid out, ``map_records`` what may follow their maps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.errors import TraceError
from tui_probe.trace.map_records import read_map_records, read_reduced, read_sample, reduction_group
from tui_probe.trace.result_file import Maps, ResultFile, read_header, read_sections

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import DTypeLike, NDArray

    from tui_probe.trace.launch_shape import Header, Level, Section
    from tui_probe.trace.map_records import MapRecords, RecordKind, Reduced, ReductionGroup, Sample
    from tui_probe.trace.result_file import Dialect


_COUNT_UNKNOWN: Final = 0xFFFFFFFF
"""Number of records of a slot that ended without telling it."""


@dataclass(frozen=True, slots=True)
class Result:
    """A result file. ``maps[i]`` is a read-only u1 array of shape (measured blocks, slots per block, bytes per slot).

    All that reads a map raises TraceError where the file was cut short since it was opened.

    ``map_records`` is empty where the file has nothing but the bytes, as older ones do. ``sample`` is None where all
    blocks were measured; all arrays are of the ``blocks`` that were, in their order.
    """

    path: Path
    header: Header
    sections: tuple[Section, ...]
    maps: Maps
    dialect: Dialect
    map_records: tuple[MapRecords, ...] = ()
    sample: Sample | None = None

    @property
    def layout(self) -> str:
        """The maps as text: ``24 B per warp, 16 B per thread``."""
        return ", ".join(f"{section.slot_bytes} B per {section.level}" for section in self.sections) or "no map"

    @property
    def blocks(self) -> range:
        """The linear numbers of the blocks that were measured."""
        return range(self.header.blocks) if self.sample is None else self.sample.blocks

    @property
    def threads(self) -> int:
        """Threads of the blocks that were measured."""
        return len(self.blocks) * self.header.threads

    def attempts(self, index: int) -> NDArray[np.int64] | None:
        """Records that each slot of map ``index`` was to keep: int64, shape (blocks, slots per block).

        -1 where that is unknown, since a thread ended without a number. None if the file does not tell:
        a map with one record per slot, or a file of an older system.
        """
        if self._kind(index) != "counted":
            return None
        counts = self.maps[index + 1].view("<u4")[:, :, 0]
        return np.where(counts == _COUNT_UNKNOWN, np.int64(-1), counts.astype(np.int64))

    def record_counts(self, index: int) -> NDArray[np.int64] | None:
        """Records that each slot of map ``index`` holds, the first ones of ``records``; as ``attempts``, -1 unknown."""
        attempts = self.attempts(index)
        return None if attempts is None else np.minimum(attempts, self.capacity(index) or 0)

    def capacity(self, index: int) -> int | None:
        """Records that a slot of map ``index`` has room for; None if the file does not tell."""
        if self._kind(index) not in ("marked", "counted"):
            return None
        return self.sections[index].slot_bytes // self.map_records[index].record_bytes

    def written_mask(self, index: int) -> NDArray[np.bool_] | None:
        """Select the written records of map ``index``: shape (blocks, slots per block, records per slot).

        What was not is zeros. None if the file does not tell: sums, which begin with zero, and older files. Of a slot
        with an unknown number of attempts, a record that is not all zeros was written.
        """
        if self._kind(index) == "marked":
            bits = np.unpackbits(self.map_records[index].marks, bitorder="little")
            return (
                bits[: self.maps.shape(index)[0] * self.maps.shape(index)[1]].view(np.bool_).reshape(self._shape(index))
            )
        counts = self.record_counts(index)
        if counts is None:
            return None
        mask = np.arange(self._shape(index)[2]) < counts[:, :, np.newaxis]
        is_unknown = counts < 0
        if is_unknown.any():
            record = self.map_records[index].record_bytes
            slots = self.maps[index][is_unknown]
            mask[is_unknown] = slots.reshape(*slots.shape[:1], -1, record).any(axis=2)
        return mask

    def totals(self, index: int) -> tuple[int, int] | None:
        """(kept, attempts) of all slots of map ``index`` whose numbers are known; None as ``attempts``."""
        counts, attempts = self.record_counts(index), self.attempts(index)
        if counts is None or attempts is None:
            return None
        return int(counts[counts >= 0].sum()), int(attempts[attempts >= 0].sum())

    def record_bytes(self, index: int) -> int | None:
        """Bytes of a record of map ``index``; None without such a map."""
        return self.map_records[index].record_bytes if index < len(self.map_records) else None

    def sites(self, index: int, record: DTypeLike) -> NDArray[Any] | None:
        """The sums of each site of map ``index``: shape (sites,), dtype ``record``. None if it is not a map of sites.

        TraceError if its records are not as large as ``record``.
        """
        if self._kind(index) != "sites":
            return None
        dtype = self._checked_dtype(index, record, "has {} bytes per site")
        return self.map_records[index].marks.view(dtype)

    def reduced(self, index: int, record: DTypeLike) -> Reduced | None:
        """The reduced records of map ``index``, of dtype ``record``; None if all of its records are there.

        TraceError if what is left is not as large as ``record``.
        """
        if self._kind(index) != "reduced":
            return None
        dtype = self._checked_dtype(index, record, "was reduced to records of {} bytes")
        return read_reduced(self.map_records[index].marks, len(self.blocks), self.header.threads, dtype)

    def _checked_dtype(self, index: int, record: DTypeLike, words: str) -> np.dtype[Any]:
        """The type of what is left of map ``index``. TraceError, with these words, if that is of another size."""
        size, dtype = self.map_records[index].record_bytes, np.dtype(record)
        if size != dtype.itemsize:
            problem = f"{words.format(size)}, not {dtype.itemsize}"
            raise TraceError(f"{self.path}: map {index} {problem}; another probe wrote the file")
        return dtype

    def group(self, index: int) -> ReductionGroup | None:
        """Whose records became one in map ``index``; None if all of them are there."""
        if self._kind(index) != "reduced":
            return None
        records = self.map_records[index]
        location = f"{self.path}, map {index}"
        return reduction_group(location, len(self.blocks), self.header.threads, records.marks, records.record_bytes)

    def _kind(self, index: int) -> RecordKind:
        if not 0 <= index < len(self.maps):
            raise TraceError(f"{self.path}: no map {index}; maps in the file: {len(self.maps)}")
        return self.map_records[index].kind if self.map_records else "unknown"

    def _shape(self, index: int) -> tuple[int, int, int]:
        blocks, slots, _ = self.maps.shape(index)
        return blocks, slots, self.capacity(index) or 0

    def records(self, index: int, record: DTypeLike) -> NDArray[Any]:
        """Map ``index`` as records: shape (blocks, slots per block, records per slot), dtype ``record``, no copy.

        TraceError if the slots of the map do not hold a whole number of such records, and if it is reduced.
        """
        dtype, _ = self.form(index, record)
        return self.maps[index].view(dtype)

    def one_record(self, index: int, record: DTypeLike) -> NDArray[Any]:
        """The records of a map that has one per slot: shape (blocks, slots per block). TraceError for any other."""
        _, (_, _, count) = self.form(index, record)
        if count != 1:
            raise TraceError(
                f"{self.path}: map {index} has {count} records per slot, not one; another probe wrote the file"
            )
        return self.records(index, record)[:, :, 0]

    def some_records(self, index: int, record: DTypeLike, first: int, last: int) -> NDArray[Any]:
        """Return the records of blocks ``first`` to before ``last`` only: the file may be larger than memory."""
        dtype, _ = self.form(index, record)
        return self.maps.blocks(index, first, last).view(dtype)

    def form(self, index: int, record: DTypeLike) -> tuple[np.dtype[Any], tuple[int, int, int]]:
        """The dtype and the shape of ``records``, which are not read for that. Raises TraceError as they do."""
        if not 0 <= index < len(self.maps):
            raise TraceError(f"{self.path}: no map {index}; maps in the file: {len(self.maps)}")
        if self._kind(index) == "reduced":
            raise TraceError(
                f"{self.path}: the file has one record per {self.group(index)}; to save records per "
                f"{self.sections[index].level}, run with --detail"
            )
        dtype, (blocks, slots, size) = np.dtype(record), self.maps.shape(index)
        if dtype.itemsize == 0 or size % dtype.itemsize:
            raise TraceError(
                f"{self.path}: map {index} has {size} bytes per slot, not a whole number of records of "
                f"{dtype.itemsize} bytes; another probe wrote the file"
            )
        return dtype, (blocks, slots, size // dtype.itemsize)


def read_result(path: Path, levels: Sequence[Level] | None = None) -> Result:
    """Open a result file.

    ``levels`` says for each map whether a slot is a thread's or a warp's, as ``kernel.info`` does; older files need it
    where both are possible, others must agree with it. TraceError names the file and the offset of what is wrong:
    a file that is cut off, a grid or block without threads, sections outside the file or over each other.
    """
    data = ResultFile(path)
    header = read_header(path, data)
    sections, dialect = read_sections(path, data, header, levels)
    maps = Maps(data, header, sections)
    if dialect == "older":
        return Result(path, header, sections, maps, dialect)
    map_records, end = read_map_records(path, data, header, sections)
    sample = read_sample(path, data, end, header.blocks) if map_records else None
    launch_header = header if sample is None else header._replace(grid=sample.grid)
    return Result(path, launch_header, sections, maps, dialect, map_records, sample)
