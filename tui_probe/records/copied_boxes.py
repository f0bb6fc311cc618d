"""Boxes of recorded bulk copies: which bytes each moves, from its coordinates and the tensor map in a parameter.

A kernel in SASS whose warps have few registers records what an instruction has in uniform registers, 16 bytes each::

    clock   offset       first   second     coordinates, or the halves of the address
    third   offset | 1   fourth  fifth      of copies of more than two dimensions, or the size in units of 16 bytes

``sites.json`` tells which parameter has the tensor map of the instruction, event.log the bytes of the parameters of the
launch and the maps that the program made. A map has the same content, and so the same SHA-1, in both.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from tui_probe.errors import TraceError
from tui_probe.trace.device_memory import parameter_values, read_parameters, read_tensor_maps
from tui_probe.trace.launch_shape import SECTOR_BYTES
from tui_probe.trace.sites import read_sites

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tui_probe.trace.event_types import TensorMapMade
    from tui_probe.trace.launches import Launch
    from tui_probe.trace.results import Result
    from tui_probe.trace.run import Run
    from tui_probe.trace.sites import SiteCopy

Place: TypeAlias = "tuple[int, int]"
"""Number of a kernel parameter, and an offset in bytes there."""
_MAPS: Final[WeakKeyDictionary[Run, dict[tuple[int, frozenset[Place]], dict[int, Mapping[Place, TensorMapMade]]]]] = (
    WeakKeyDictionary()
)
"""Tensor maps of the launches of each kernel of a trace, by the launch's number."""
DIMENSIONS: Final = range(1, 5)
BOX: Final = np.dtype(
    [
        ("start", "<u8"),
        *((f"stride{dimension}", "<u8") for dimension in DIMENSIONS),
        ("clock", "<u4"),
        ("line", "<u4"),
        ("row", "<u4"),
        *((f"count{dimension}", "<u4") for dimension in DIMENSIONS),
        ("lanes", "<u4"),
    ]
)
"""A copy: ``start`` is the first byte inside the tensor, 0 if the box is not known, ``row`` the bytes of a row there;
``count`` rows per dimension are ``stride`` bytes apart.
"""
RECORD: Final = np.dtype([("clock", "<u4"), ("line", "<u4"), ("first", "<u4"), ("second", "<u4")])
ONLY_COPIES_TEXT: Final = "only bulk copies are recorded, because warps of this kernel have too few registers"
LOST_COPIES_TEXT: Final = "some warps made more bulk copies than fit in the records of a warp"
_SECOND_RECORD: Final = 1
"""Bit of the offset in the second record of a copy; offsets are multiples of 16."""
_BATCH_RECORDS: Final = 1 << 20
"""Records that are read at a time, with those of warps that copy nothing."""
_SIZE_UNIT, _SIZE_MASK = 16, 0xFFFF
_MAP_BYTES: Final = 128
_ELEMENT_BYTES: Final = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4)
"""Bytes by number of CUtensorMapDataType; others are packed."""
_HALF_SECTOR: Final = 16


@dataclass(frozen=True, slots=True)
class BulkCopies:
    """The recorded copies of a launch, those of a warp in order. ``boxes`` have type ``BOX``, ``warps`` (i8) count
    through the measured blocks, ``is_load`` is a mask. ``total`` is the number of copies of the launch, None if some
    have no record. ``warps_missing`` warps ended without the number of their copies.
    """

    boxes: NDArray[Any]
    warps: NDArray[np.int64]
    is_load: NDArray[np.bool_]
    total: int | None
    warps_missing: int

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Mask of the copies whose box is known."""
        mask: NDArray[np.bool_] = self.boxes["start"] != 0
        return mask

    def sum(self, values: NDArray[np.int64], *, loads: bool) -> int | None:
        """Add up values of the loads or stores of known boxes; None if some copies have no record."""
        mask = self.is_known & (self.is_load == loads)
        return None if self.total is None else int(values[mask].sum())

    def unknown_count(self, *, loads: bool) -> int:
        """The number of loads or stores whose box is not known."""
        return int(np.count_nonzero(~self.is_known & (self.is_load == loads)))


def row_counts(boxes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the rows of each box (i8)."""
    counts = [boxes[f"count{dimension}"].astype(np.int64) for dimension in DIMENSIONS]
    is_known: NDArray[np.bool_] = boxes["row"] > 0
    return np.where(is_known, np.prod(counts, axis=0), 0)


def byte_counts(boxes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the bytes of each box (i8)."""
    sizes: NDArray[np.int64] = row_counts(boxes) * boxes["row"]
    return sizes


def sector_counts(boxes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the 32-byte sectors that the rows of each box touch (i8).

    Strides are multiples of 16 bytes, so rows begin at two places within sectors. Of a dimension with an odd multiple,
    the surplus of those that begin as the first one is 1 or 0.
    """
    rows, surplus = row_counts(boxes), np.ones(len(boxes), np.int64)
    for dimension in DIMENSIONS:
        count: NDArray[np.uint32] = boxes[f"count{dimension}"]
        is_odd = boxes[f"stride{dimension}"] % SECTOR_BYTES == _HALF_SECTOR
        surplus *= np.where(is_odd, count % 2, count)
    aligned_rows = (rows + np.where(rows > 0, surplus, 0)) // 2
    first_offset = (boxes["start"] % SECTOR_BYTES).astype(np.int64)
    row: NDArray[np.int64] = boxes["row"].astype(np.int64)
    row_sectors = [
        (offset + row + SECTOR_BYTES - 1) // SECTOR_BYTES for offset in (first_offset, first_offset ^ _HALF_SECTOR)
    ]
    return aligned_rows * row_sectors[0] + (rows - aligned_rows) * row_sectors[1]


def copies_text(*, has_all: bool) -> str:
    """Return why nothing else is recorded, and if some copies have no record, why their sums are unknown."""
    return ONLY_COPIES_TEXT if has_all else f"{ONLY_COPIES_TEXT}; {LOST_COPIES_TEXT}"


def copies_map_index(result: Result) -> int | None:
    """Return the number of the map with records of bulk copies; None for a result without one."""
    for index, section in enumerate(result.sections):
        if (
            section.level == "warp"
            and result.record_bytes(index) == RECORD.itemsize
            and result.attempts(index) is not None
        ):
            return index
    return None


def read_copies(result: Result, folder: Path | None, trace: Run, launch: Launch | None) -> BulkCopies | None:
    """The bulk copies of a launch; None for a result that does not record them by themselves. ``folder`` is that of the
    probed kernel. Raises TraceError.
    """
    if (index := copies_map_index(result)) is None:
        return None
    sites = copy_sites(folder)
    places = frozenset(site.map for site in sites.values() if site.map is not None)
    maps = _maps_of_launch(trace, launch, places) if launch is not None and places else {}
    return boxes_of_records(result, index, sites, maps)


def _maps_of_launch(trace: Run, launch: Launch, places: frozenset[Place]) -> Mapping[Place, TensorMapMade]:
    """Return the tensor maps at these places of a launch's parameters. The log is read once for all launches of the
    kernel that it has by then.
    """
    if launch.number is None:
        return {}
    by_launch = _MAPS.setdefault(trace, {}).setdefault((launch.kernel, places), {})
    if launch.number not in by_launch:
        maps_by_hash = read_tensor_maps(trace)
        for number, text in read_parameters(trace, launch.kernel, lambda _: None).items():
            by_launch[number] = _maps_in(parameter_values(text), maps_by_hash, places)
    return by_launch.setdefault(launch.number, {})


def copy_sites(folder: Path | None) -> dict[int, SiteCopy]:
    """The bulk copies with records, by the offset of the instruction. Raises TraceError."""
    probes = (read_sites(folder) or ()) if folder is not None else ()
    return {site.instruction.line: site.copy for probe in probes for site in probe.sites if site.copy is not None}


def _maps_in(
    values: Sequence[int | bytes], maps_by_hash: Mapping[str, TensorMapMade], places: frozenset[Place]
) -> dict[Place, TensorMapMade]:
    """Return the tensor maps at these places of the parameters: numbers and offsets."""
    maps = {}
    for number, offset in places:
        value = values[number] if number < len(values) else 0
        content = value[offset : offset + _MAP_BYTES] if isinstance(value, bytes) else b""
        tensor_map = maps_by_hash.get(hashlib.sha1(content).hexdigest())
        if tensor_map is not None:
            maps[number, offset] = tensor_map
    return maps


def boxes_of_records(
    result: Result, index: int, sites: Mapping[int, SiteCopy], maps: Mapping[Place, TensorMapMade]
) -> BulkCopies:
    """The copies of map ``index``. Raises TraceError for records of other instructions."""
    attempts, saved_counts = result.attempts(index), result.record_counts(index)
    assert attempts is not None
    assert saved_counts is not None
    batches = list(_records_in_batches(result, index, np.maximum(saved_counts, 0)))
    records, warps = (np.concatenate(pieces) for pieces in zip(*batches, strict=True))
    lines = records["line"] & ~np.uint32(_SECOND_RECORD)
    if unknown := set(np.unique(lines).tolist()) - sites.keys():
        raise TraceError(
            f"{result.path}: a record names the instruction at {min(unknown):#x}, which is not a bulk copy"
        )
    has_two_records = np.isin(lines, [offset for offset, site in sites.items() if site.records > 1])
    is_first = (records["line"] & _SECOND_RECORD) == 0
    is_followed = np.zeros(len(records), np.bool_)
    is_followed[:-1] = (warps[1:] == warps[:-1]) & (records["line"][1:] == (lines[:-1] | _SECOND_RECORD))
    first_records = np.flatnonzero(is_first & (~has_two_records | is_followed))
    second_records = np.where(has_two_records[first_records], first_records + 1, first_records)
    coordinates = [records[name][first_records] for name in ("first", "second")]
    coordinates += [records[name][second_records] for name in ("clock", "first", "second")]
    boxes, is_load = np.zeros(len(first_records), BOX), np.zeros(len(first_records), np.bool_)
    boxes["clock"], boxes["line"], boxes["lanes"] = records["clock"][first_records], lines[first_records], 1
    for line, site in sites.items():
        of_site = lines[first_records] == line
        is_load[of_site] = site.is_load
        boxes[of_site] = _with_box(boxes[of_site], site, [values[of_site] for values in coordinates], maps)
    is_complete = bool((attempts >= 0).all() and (attempts == saved_counts).all())
    return BulkCopies(
        boxes,
        warps[first_records],
        is_load,
        len(first_records) if is_complete else None,
        int(np.count_nonzero(attempts < 0)),
    )


def _records_in_batches(
    result: Result, index: int, saved_counts: NDArray[np.int64]
) -> Iterator[tuple[NDArray[Any], NDArray[np.int64]]]:
    """Yield the records of some blocks at a time, warp by warp, and the warp of each."""
    blocks, warps, cap = result.form(index, RECORD)[1]
    step = max(_BATCH_RECORDS // max(warps * cap, 1), 1)
    for begin in range(0, blocks, step):
        records = result.some_records(index, RECORD, begin, min(begin + step, blocks))
        is_saved = np.arange(cap) < saved_counts[begin : begin + step, :, np.newaxis]
        block, warp, _ = np.nonzero(is_saved)
        yield records[is_saved], (begin + block) * warps + warp


def _with_box(
    boxes: NDArray[Any],
    site: SiteCopy,
    coordinates: Sequence[NDArray[np.uint32]],
    maps: Mapping[Place, TensorMapMade],
) -> NDArray[Any]:
    """Return the records of copies of one instruction with their boxes."""
    for dimension in DIMENSIONS:
        boxes[f"count{dimension}"] = 1
    if site.is_sized:
        boxes["start"] = coordinates[0] | coordinates[1].astype(np.uint64) << np.uint64(32)
        boxes["row"] = (coordinates[2] & _SIZE_MASK) * np.uint32(_SIZE_UNIT)
        return boxes
    tensor_map = None if site.map is None else maps.get(site.map)
    if tensor_map is None or not _has_plain_boxes(tensor_map) or len(tensor_map.sizes) != site.dimensions:
        return boxes
    assert tensor_map.box is not None
    assert tensor_map.element_type is not None
    size = _ELEMENT_BYTES[tensor_map.element_type]
    start = np.full(len(boxes), tensor_map.address, np.int64)
    for dimension, stride in enumerate((size, *tensor_map.strides)):
        corner = coordinates[dimension].view(np.int32).astype(np.int64)
        begin = np.maximum(corner, 0)
        count = np.maximum(np.minimum(corner + tensor_map.box[dimension], tensor_map.sizes[dimension]) - begin, 0)
        start += begin * stride
        if dimension:
            boxes[f"stride{dimension}"], boxes[f"count{dimension}"] = stride, count
        else:
            boxes["row"] = count * size
    boxes["start"] = start
    return boxes


def _has_plain_boxes(tensor_map: TensorMapMade) -> bool:
    """Return whether the boxes of a map are tiles of whole elements side by side."""
    is_sized = tensor_map.element_type is not None and 0 <= tensor_map.element_type < len(_ELEMENT_BYTES)
    is_tile = tensor_map.box is not None and len(tensor_map.box) == len(tensor_map.sizes) == len(tensor_map.strides) + 1
    return is_sized and is_tile and not tensor_map.interleave and all(step == 1 for step in tensor_map.steps)
