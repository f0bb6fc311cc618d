"""Accesses under the cursor: read from the records, as text, and as data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.spans import clip, width
from tui_probe.trace.kernel_files import Offset, short_position
from tui_probe.trace.launch_shape import SECTOR_BYTES

from .accesses import AccessPoint
from .boxes import MAX_POINTS, BoxDetail, repeats_text, shape_text
from .coalescing import sectors_by_request
from .density import each_part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from tui_probe.records.probed_sites import AccessLine

    from .access_map import AccessMap
    from .accesses import RecordPart, Selection
    from .axes import Band
    from .boxes import Boxes

_MAX_PARTS: Final = 8
"""Parts of a large result that are read again for what is under the cursor."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Cycles ``start`` to before ``end``, bytes ``start_address`` to before ``end_address``."""

    start: int
    end: int
    start_address: int
    end_address: int


@dataclass(frozen=True, slots=True)
class CellDetail:
    """The accesses of a cell: the first, how many each line and each warp made.

    ``sectors`` is the sum over accesses of the sectors of their requests, ``moved_sectors`` that of their shares of
    these. Lines and warps also count the sectors of bulk copies.
    """

    accesses: int
    first_access: AccessPoint | None
    lines: Counter[int]
    warps: Counter[int]
    sectors: float
    moved_sectors: float
    boxes: BoxDetail | None = None
    """Bulk copies with a part in the cell."""


def read_detail(
    source: AccessMap, selection: Selection, cell: Cell, progress: Callable[[float], None]
) -> CellDetail | None:
    """Return the detail of the accesses of a cell; None if too much of a large result would have to be read.

    ``progress`` may raise to stop it.
    """
    parts = source.parts(selection, cell.start, cell.end)
    if len(parts) > _MAX_PARTS:
        return None
    details = [
        detail for detail in each_part(parts, lambda part: _accesses_in_cell(part, cell), progress) if detail.accesses
    ]
    boxes = None if source.boxes is None else source.boxes.select(selection, cell.start, cell.end)
    copies = None if boxes is None else _boxes_in_cell(boxes, cell)
    if copies is not None:
        details.append(copies)
    return CellDetail(
        accesses=sum(detail.accesses for detail in details),
        first_access=min((detail.first_access for detail in details if detail.first_access is not None), default=None),
        lines=sum((detail.lines for detail in details), Counter()),
        warps=sum((detail.warps for detail in details), Counter()),
        sectors=sum(detail.sectors for detail in details),
        moved_sectors=sum(detail.moved_sectors for detail in details),
        boxes=None if copies is None else copies.boxes,
    )


def _boxes_in_cell(boxes: Boxes, cell: Cell) -> CellDetail | None:
    """Return the detail of the copies with a sector in a cell; None without any."""
    points, lowest_addresses = np.zeros(len(boxes.records)), np.full(len(boxes.records), cell.end_address, np.uint64)
    step = boxes.step(MAX_POINTS)
    for box, addresses in boxes.points(step):
        in_cell = (addresses >= cell.start_address) & (addresses < cell.end_address)
        points += np.bincount(box[in_cell], minlength=len(points))
        np.minimum.at(lowest_addresses, box[in_cell], addresses[in_cell])
    sectors = np.ceil(points * boxes.weights(step)).astype(np.int64)
    if not sectors.any():
        return None
    boxes_inside = np.flatnonzero(sectors)
    earliest = int(boxes_inside[boxes.times[boxes_inside].argmin()])
    first_access = AccessPoint(int(boxes.times[earliest]), int(lowest_addresses[earliest]))
    record = boxes.records[earliest]
    detail = BoxDetail(len(boxes_inside), int(sectors.sum()), first_access, shape_text(record), int(record["lanes"]))
    lines, warps = Counter[int](), Counter[int]()
    for number in boxes_inside.tolist():
        lines[int(boxes.records["line"][number])] += int(sectors[number])
        warps[int(boxes.warps[number])] += int(sectors[number])
    return CellDetail(0, first_access, lines, warps, 0.0, 0.0, detail)


def _accesses_in_cell(part: RecordPart, cell: Cell) -> CellDetail:
    detail = CellDetail(0, None, Counter(), Counter(), 0.0, 0.0)
    for piece in part.pieces():
        times = piece.times()
        in_time = np.flatnonzero((times >= cell.start) & (times < cell.end))
        if not len(in_time):
            continue
        times, addresses, warps = times[in_time], piece.addresses()[in_time], piece.warps()[in_time]
        in_cell = (addresses >= cell.start_address) & (addresses < cell.end_address)
        if not in_cell.any():
            continue
        sectors, lines = sectors_by_request(addresses, times, warps)[in_cell], piece.lines()
        shares = sectors / _request_sizes(warps, times)[in_cell]
        times, addresses = times[in_cell], addresses[in_cell]
        earliest = int(times.argmin())
        first_access = AccessPoint(int(times[earliest]), int(addresses[earliest]))
        detail = CellDetail(
            detail.accesses + len(times),
            first_access if detail.first_access is None else min(detail.first_access, first_access),
            detail.lines + _count_values(lines[in_time][in_cell] if lines is not None else times[:0]),
            detail.warps + _count_values(warps[in_cell]),
            detail.sectors + float(sectors.sum()),
            detail.moved_sectors + float(shares.sum()),
        )
    return detail


def _request_sizes(warps: NDArray[np.int64], times: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of accesses in the request of each access."""
    pairs = np.stack((warps, times.astype(np.int64)))
    _, request, counts = np.unique(pairs, axis=1, return_inverse=True, return_counts=True)
    lanes: NDArray[np.int64] = counts[request.reshape(-1)]
    return lanes


def _count_values(values: NDArray[Any]) -> Counter[int]:
    numbers, times = np.unique(values, return_counts=True)
    return Counter(dict(zip(numbers.tolist(), times.tolist(), strict=True)))


@dataclass(frozen=True, slots=True)
class ReadOut:
    """A cell: its band, its accesses, and, where they were looked at, what they are."""

    cell: Cell
    band: Band | None
    accesses: int
    is_exact: bool
    detail: CellDetail | None
    code: Mapping[int, AccessLine]
    warps_per_block: int
    blocks: range
    """The numbers of the blocks that were measured."""
    box_sectors: int = 0
    """Sectors of bulk copies in the cell, besides the accesses."""

    @property
    def address(self) -> int:
        """Address of the first access in the cell, else of the start of the cell."""
        first_access = None if self.detail is None else self.detail.first_access
        return self.cell.start_address if first_access is None else first_access.address

    @property
    def index(self) -> tuple[int, ...] | None:
        """Index of the element at that address, in a tensor that was named; else None."""
        if self.band is None or self.band.tensor is None:
            return None
        return self.band.tensor.index(self.address - self.band.origin)

    def record(self) -> dict[str, Any]:
        """The place of the cursor: bytes and cycles as in the axes, ``index`` of the element in the band's tensor."""
        index = self.index
        return {
            "band": None if self.band is None else self.band.name,
            "address": self.address,
            "index": None if index is None else list(index),
            "cycle": self.cell.start
            if self.detail is None or self.detail.first_access is None
            else self.detail.first_access.cycle,
            "accesses": self.accesses,
            "box_sectors": self.box_sectors,
        }

    def lines(self, cells: int, max_lines: int) -> list[str]:
        """Both in at most ``max_lines`` lines: where, then who, going on in the next line where one is full."""
        lines = [clip(" · ".join(self.position_texts()), cells)]
        for part in self.origin_texts():
            joined_line = f"{lines[-1]} · {part}"
            if len(lines) > 1 and (width(joined_line) <= cells or len(lines) == max_lines):
                lines[-1] = clip(joined_line, cells)
            else:
                lines.append(clip(part, cells))
        return lines

    def position_texts(self) -> Iterator[str]:
        """Position: band, offset, index and shape, address, cycles."""
        first_byte, last_byte = self.cell.start_address, self.cell.end_address - 1
        first_access = None if self.detail is None else self.detail.first_access
        if self.band is not None:
            index, tensor = self.index, self.band.tensor
            text = "" if index is None else f" [{', '.join(map(str, index))}]"
            text += "" if tensor is None or not tensor.shape else f" of {tensor.text}"
            yield f"{self.band.name} +{self.address - self.band.origin:#x}{text}"
        yield f"{self.address:#x}" if first_access is not None else f"{first_byte:#x} to {last_byte:#x}"
        if first_access is not None:
            yield f"cycle {units.count(first_access.cycle)}"
        else:
            yield f"cycles {units.count(self.cell.start)} to {units.count(self.cell.end - 1)}"
        prefix = "" if self.is_exact else "about "
        if self.accesses or not self.box_sectors:
            yield f"{prefix}{units.counted(self.accesses, 'access')}"
        if self.box_sectors:
            yield f"{prefix}{units.counted(self.box_sectors, 'sector')} of bulk copies"
        if (self.accesses or self.box_sectors) and self.detail is None:
            yield "zoom in for details"

    def origin_texts(self) -> Iterator[str]:
        """Origin, most important first: instruction, sectors per request, loads and stores, warps."""
        detail = self.detail
        if detail is None or not (detail.accesses or detail.boxes):
            return
        for line, count in detail.lines.most_common(1):
            other_count = len(detail.lines) - 1
            if detail.boxes is not None:
                yield self._copies(detail.boxes, line)
            yield self._instruction(line) + (
                f" ({count / detail.lines.total():.0%}) +{other_count}" if other_count else ""
            )
        used_share = self.used_share()
        share = "" if used_share is None else f", {used_share:.0%} used"
        if detail.accesses:
            yield f"{detail.sectors / detail.accesses:.1f} sectors per request{share}"
        kinds = self.kinds()
        if kinds is not None:
            yield ", ".join(units.counted(count, kind) for kind, count in kinds.items())
        block, warp = divmod(detail.warps.most_common(1)[0][0], self.warps_per_block)
        other_count = len(detail.warps) - 1
        yield f"block {self.blocks[block]} warp {warp}" + (f" +{other_count}" if other_count else "")

    def _copies(self, boxes: BoxDetail, line: int) -> str:
        """``2 bulk copies, box 64 B × 8``."""
        code = self.code.get(line)
        of_lanes = boxes.lanes > 1 and not (code is not None and isinstance(code.line, Offset))
        lanes = f" (lowest of {boxes.lanes} lanes)" if of_lanes else ""
        copies = f"{units.count(boxes.copies)} bulk {'copy' if boxes.copies == 1 else 'copies'}"
        return f"{copies}, box {boxes.shape}{lanes}{'' if code is None else repeats_text(code)}"

    def _instruction(self, line: int) -> str:
        """``ld.global.f32 PTX:84 matmul.cu:11``."""
        code = self.code.get(line)
        if code is None:
            return short_position(line)
        source = "" if code.source is None else f" {code.source.file.rpartition('/')[2]}:{code.source.line}"
        return f"{code.opcode} {short_position(code.line)}{source}"

    def used_share(self) -> float | None:
        """Return the share of requested bytes in the sectors that were moved.

        None where the PTX does not tell how much that is, and where lanes share addresses, so that it is more.
        """
        if self.detail is None or not self.detail.moved_sectors or self.detail.boxes is not None:
            return None
        requested_bytes = 0
        for line, count in self.detail.lines.items():
            code = self.code.get(line)
            if code is None or code.bytes is None:
                return None
            requested_bytes += count * code.bytes
        share = requested_bytes / (SECTOR_BYTES * self.detail.moved_sectors)
        return share if self.detail.lines and share <= 1 else None

    def kinds(self) -> dict[str, int] | None:
        """Accesses by kind; None where the records or the PTX do not tell."""
        if self.detail is None or not self.code or not self.detail.lines or self.detail.boxes is not None:
            return None
        counts: dict[str, int] = {}
        for line, count in self.detail.lines.items():
            code = self.code.get(line)
            kind = "access" if code is None else {"copy": "load"}.get(code.kind, code.kind)
            counts[kind] = counts.get(kind, 0) + count
        return dict(sorted(counts.items()))
