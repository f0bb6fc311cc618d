"""Boxes of bulk copies: which bytes the copies of a launch moved, and when.

A record is one copy. It has the rows of its box that are inside the tensor: the first byte, bytes per row, and for four
dimensions the number of rows and the bytes from one to the next. A copy to several blocks of a cluster (multicast) and
a reduction have one record. Pictures count a copy as the 32-byte sectors that its rows touch, at the clock of the copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.errors import TraceError
from tui_probe.records.copied_boxes import BOX, DIMENSIONS, byte_counts, row_counts
from tui_probe.trace.launch_shape import SECTOR_BYTES

from .density import CellIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from tui_probe.records.copied_boxes import BulkCopies
    from tui_probe.records.probed_sites import AccessLine

    from .accesses import Accesses, AccessPoint, Selection
    from .density import Grid

MAX_POINTS: Final = 2 << 20
"""Sectors of a picture that are placed one by one; of more, some stand for those that follow them."""
_PIECE_POINTS: Final = 1 << 18
_PIECE_RECORDS: Final = 1 << 20
"""Records that are read at a time, with those of warps that copy nothing."""
UNKNOWN_SIZE_TEXT: Final = "not drawn: bulk copies of unknown size (im2col, gathers, element strides, packed types)"
_MAX_SECTORS: Final = 1 << 32
"""Sectors of a box: more than a copy can move."""
_SASS_COPIES: Final = ("UTMA", "UBLK")
_SASS_REDUCTIONS: Final = frozenset({"UTMAREDG", "UBLKRED"})
_SASS_STORES: Final = _SASS_REDUCTIONS | {"UTMASTG"}
_MAX_ADDRESS: Final = 1 << 57
"""End of GPU addresses."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """Copies of a launch: ``records`` with their ``times`` on the common axis (i8) and ``warps`` of the grid (i8)."""

    records: NDArray[Any]
    times: NDArray[np.int64]
    warps: NDArray[np.int64]
    total_copies: int | None
    """Copies that were recorded or found no room; None if the result does not tell."""
    warps_per_block: int

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Mask of the boxes whose size is known."""
        mask: NDArray[np.bool_] = self.records["start"] != 0
        return mask

    @property
    def unsized_copies(self) -> int:
        """Copies whose box is not known."""
        return int(np.count_nonzero(~self.is_known))

    @property
    def text(self) -> str:
        """``18 bulk copies``, ``kept 64 of 100 bulk copies``, ``total unknown``."""
        recorded = len(self.records)
        if self.total_copies is None:
            return f"{units.count(recorded)} bulk copies kept, total unknown"
        if recorded < self.total_copies:
            return f"kept {units.count(recorded)} of {units.count(self.total_copies)} bulk copies"
        return f"{units.count(recorded)} bulk {'copy' if recorded == 1 else 'copies'}"

    @property
    def rows(self) -> NDArray[np.int64]:
        """Rows of each box."""
        return row_counts(self.records)

    @property
    def bytes(self) -> NDArray[np.int64]:
        """Bytes of each box."""
        return byte_counts(self.records)

    @property
    def is_even(self) -> NDArray[np.bool_]:
        """Mask of the boxes whose rows all begin at the same place within a sector."""
        strides = [
            (self.records[f"stride{dimension}"] % SECTOR_BYTES == 0) | (self.records[f"count{dimension}"] == 1)
            for dimension in DIMENSIONS
        ]
        mask: NDArray[np.bool_] = np.all(strides, axis=0)
        return mask

    @property
    def row_sectors(self) -> NDArray[np.int64]:
        """Sectors that a row of each box touches, at most for rows that begin at different places within a sector."""
        start_offset = np.where(self.is_even, self.records["start"] % SECTOR_BYTES, SECTOR_BYTES - 1).astype(np.int64)
        row: NDArray[np.uint32] = self.records["row"]
        return (start_offset + row + SECTOR_BYTES - 1) // SECTOR_BYTES

    @property
    def sector_counts(self) -> NDArray[np.int64]:
        """Sectors that the rows of each box touch, counted as ``row_sectors``."""
        return self.rows * self.row_sectors

    def record(self) -> dict[str, int | None]:
        """Copies that were kept and made, those of unknown size, and bytes of all others."""
        return {
            "kept": len(self.records),
            "copies": self.total_copies,
            "unknown": self.unsized_copies,
            "bytes": int(self.bytes.sum()),
        }

    def spans(self) -> NDArray[np.uint64]:
        """The memory from the first to the last byte of each box: shape (boxes, 2), u8, from to before."""
        records = self.records[self.rows > 0]
        start: NDArray[np.uint64] = records["start"]
        row: NDArray[np.uint64] = records["row"].astype(np.uint64)
        end = start + row
        for dimension in DIMENSIONS:
            count: NDArray[np.uint64] = records[f"count{dimension}"].astype(np.uint64)
            stride: NDArray[np.uint64] = records[f"stride{dimension}"].astype(np.uint64)
            end = end + (count - np.uint64(1)) * stride
        return np.stack((start, end), axis=1)

    def subset(self, mask: NDArray[Any]) -> Boxes:
        """The boxes that a mask or numbers select."""
        return Boxes(self.records[mask], self.times[mask], self.warps[mask], self.total_copies, self.warps_per_block)

    def select(self, selection: Selection, start: float, end: float) -> Boxes:
        """The boxes of a selection from cycle ``start`` to before ``end``."""
        mask = (self.times >= start) & (self.times < end)
        if selection.block is not None:
            block, warp = np.divmod(self.warps, self.warps_per_block)
            mask &= block == selection.block
            mask &= (selection.warp is None) | (warp == selection.warp)
        if selection.line is not None:
            mask &= self.records["line"] == selection.line
        return self.subset(mask)

    def step(self, max_points: int) -> int:
        """Sectors that one point stands for if there are about ``max_points`` points: 1 unless there are very many."""
        return max(-(-int(self.sector_counts.sum()) // max_points), 1)

    def weights(self, step: int) -> NDArray[np.float64]:
        """Sectors that one point of each box stands for, at most ``step``."""
        sector_counts = self.sector_counts
        return sector_counts / np.maximum(-(-sector_counts // step), 1)

    def points(self, step: int = 1) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint64]]]:
        """Yield the number of the box, and the first byte inside a sector, of one in ``step`` sectors of each box."""
        row_sectors = self.row_sectors
        sector_counts = self.rows * row_sectors
        counts = -(-sector_counts // step)
        box_ends = np.cumsum(counts)
        total = int(box_ends[-1]) if len(box_ends) else 0
        for first_point in range(0, total, _PIECE_POINTS):
            numbers = np.arange(first_point, min(first_point + _PIECE_POINTS, total), dtype=np.int64)
            box = np.searchsorted(box_ends, numbers, side="right")
            sector_numbers = (numbers - box_ends[box] + counts[box]) * sector_counts[box] // counts[box]
            addresses, is_inside = _sector_of(self.records[box], *np.divmod(sector_numbers, row_sectors[box]))
            yield box[is_inside], addresses[is_inside]

    def sectors(self) -> NDArray[np.int64]:
        """Sectors that the rows of each box touch, exactly unless very many rows begin at different places in them."""
        counts = self.sector_counts
        uneven = np.flatnonzero(~self.is_even & (counts > 0))
        uneven_boxes = self.subset(uneven)
        step, sums = uneven_boxes.step(MAX_POINTS), np.zeros(len(uneven))
        for box, _ in uneven_boxes.points(step):
            sums += np.bincount(box, minlength=len(uneven))
        counts[uneven] = np.rint(sums * uneven_boxes.weights(step))
        return counts


def _sector_of(
    boxes: NDArray[Any], rows: NDArray[np.int64], sector: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """The first byte in a sector of a row of each box, and whether the row reaches that sector."""
    start: NDArray[np.uint64] = boxes["start"].copy()
    row: NDArray[np.uint64] = boxes["row"].astype(np.uint64)
    for dimension in DIMENSIONS:
        rows, position = np.divmod(rows, boxes[f"count{dimension}"].astype(np.int64))
        stride: NDArray[np.uint64] = boxes[f"stride{dimension}"]
        start += position.astype(np.uint64) * stride
    address = (start & ~np.uint64(SECTOR_BYTES - 1)) + sector.astype(np.uint64) * np.uint64(SECTOR_BYTES)
    return np.maximum(address, start), address < start + row


def read_boxes(accesses: Accesses) -> Boxes | None:
    """The copies of a result; None for kernels without such copies.

    Raises TraceError for a box that no copy can move.
    """
    if accesses.copies is not None:
        return _boxes_of_copies(accesses, accesses.copies)
    result = accesses.result
    index = next((i for i in range(len(result.sections)) if result.record_bytes(i) == BOX.itemsize), None)
    if index is None:
        return None
    attempts = result.attempts(index)
    blocks, warps = accesses.start.shape
    slots = max(result.form(index, BOX)[1][2] * warps, 1)
    step = max(_PIECE_RECORDS // slots, 1)
    pieces = [_read_piece(accesses, index, block, min(block + step, blocks)) for block in range(0, blocks, step)]
    records, times, numbers = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    total_copies = None if attempts is None or (attempts < 0).any() else int(attempts.sum())
    boxes = Boxes(records, times, numbers, total_copies, warps)
    row_bytes: NDArray[np.uint32] = records["row"]
    sectors = (row_bytes / SECTOR_BYTES + 2) * (row_bytes > 0)
    end_addresses: NDArray[np.float64] = records["start"].astype(float)
    for dimension in DIMENSIONS:
        count: NDArray[np.float64] = records[f"count{dimension}"].astype(float)
        stride: NDArray[np.float64] = records[f"stride{dimension}"].astype(float)
        sectors, end_addresses = sectors * count, end_addresses + count * stride
    if (sectors > _MAX_SECTORS).any() or (end_addresses > _MAX_ADDRESS).any():
        raise TraceError(f"{result.path} is damaged: it has a bulk copy that no GPU can make")
    return boxes


def _boxes_of_copies(accesses: Accesses, copies: BulkCopies) -> Boxes:
    """The boxes of a result that records bulk copies only."""
    start, entry = (values.reshape(-1)[copies.warps] for values in (accesses.start, accesses.entry))
    times = (copies.boxes["clock"] - start.astype(np.uint32)).astype(np.int64)
    if accesses.has_long_warps:
        has_wrapped = np.zeros(len(times), np.int64)
        has_wrapped[1:] = (times[1:] < times[:-1]) & (copies.warps[1:] == copies.warps[:-1])
        wraps = np.cumsum(has_wrapped)
        _, first_records, warp_index = np.unique(copies.warps, return_index=True, return_inverse=True)
        times += (wraps - wraps[first_records][warp_index]) << 32
    return Boxes(copies.boxes, times + entry, copies.warps, copies.total, accesses.start.shape[1])


def _read_piece(
    accesses: Accesses, index: int, first_block: int, end_block: int
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
    """The records of some blocks, with their times and warps; those of a warp are in the order in which it copied."""
    slots = accesses.result.some_records(index, BOX, first_block, end_block)
    is_written = slots["lanes"] > 0
    start = accesses.start[first_block:end_block, :, np.newaxis]
    elapsed = slots["clock"] - start.astype(np.uint32)
    times = elapsed.astype(np.int64)
    if accesses.has_long_warps:
        times += np.cumsum(np.diff(times, axis=2, prepend=0) < 0, axis=2) << 32
    times += accesses.entry[first_block:end_block, :, np.newaxis]
    warps = accesses.start.shape[1]
    numbers = (np.arange(first_block, end_block)[:, np.newaxis] * warps + np.arange(warps))[:, :, np.newaxis]
    return slots[is_written], times[is_written], np.broadcast_to(numbers, slots.shape)[is_written]


def raster_boxes(
    boxes: Boxes, grid: Grid, progress: Callable[[float], None], max_points: int = MAX_POINTS
) -> NDArray[np.int64]:
    """Count the sectors of boxes in each cell of ``grid``, placing about ``max_points``: shape (rows, columns), i8."""
    index, step = CellIndex(grid), boxes.step(max_points)
    total, weights = np.zeros(index.cells), boxes.weights(step)
    for box, addresses in boxes.points(step) if grid.rows else ():
        total += np.bincount(index.cell_numbers(addresses, boxes.times[box]), weights[box], index.cells)
        progress(0.0)
    return np.rint(total).astype(np.int64).reshape(grid.rows + 1, index.stride)[:-1, :-1]


@dataclass(frozen=True, slots=True)
class BoxDetail:
    """Copies with a part in some cell: the sectors there, and the box of the first one."""

    copies: int
    sectors: int
    first_access: AccessPoint
    shape: str
    lanes: int
    """Lanes that started the first copy together; its box is that of the lowest one."""


def shape_text(record: Any) -> str:
    """``64 B × 8``: bytes of a row, and rows by dimension."""
    counts = [int(record[f"count{dimension}"]) for dimension in DIMENSIONS]
    while counts and counts[-1] == 1:
        counts.pop()
    return " × ".join([units.size(int(record["row"])), *map(units.count, counts)])


def kind_of(code: AccessLine) -> str:
    """``load``, ``store``, ``atomic`` or ``copy``; bulk copies are loads or stores."""
    name, *parts = code.opcode.split(".")
    if "bulk" in parts:
        return "store" if "bulk_group" in parts else "load"
    if name.startswith(_SASS_COPIES):
        return "store" if name in _SASS_STORES or parts[:2] == ["G", "S"] else "load"
    return code.kind


def repeats_text(code: AccessLine) -> str:
    """``, multicast counted once``; "" for a copy that is neither a multicast nor a reduction."""
    parts = {part.partition("::")[0] for part in code.opcode.split(".")}
    kinds = (("multicast", {"multicast", "MULTICAST"}), ("reduction", {"reduce", *_SASS_REDUCTIONS}))
    names = [name for name, of_kind in kinds if of_kind & parts]
    return f", {' and '.join(names)} counted once" if names else ""
