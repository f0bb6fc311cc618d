"""Counts of accesses for one picture; computed on a worker, as it may take seconds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from tui_probe.draw.view import no_progress

from .accesses import AccessPoint, Selection
from .axes import row_edges
from .boxes import MAX_POINTS, kind_of, raster_boxes
from .coalescing import excessive_shares, ideal_lane_sectors, moved_shares, sectors_of_requests
from .density import Grid, each_part, raster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tui_probe.records.probed_sites import AccessLine

    from .access_map import AccessMap
    from .accesses import RecordPart
    from .axes import AddressAxis, Strip, Window
    from .boxes import Boxes

Colouring = Literal["bands", "density", "sectors", "kinds"]
DOTS_DOWN, DOTS_ACROSS = 4, 2
"""Dots of a cell, as Braille has them."""
_LOADS: Final = ("load", "copy", "atomic")
_STORES: Final = ("store", "atomic")
_MIN_WASTE: Final = 1e-6
"""Wasted sectors that are more than what adding up shares leaves."""
_MAX_RECORDS_PER_KEY: Final = 1 << 20
"""Records that are read while a key waits."""
_QUICK_POINTS: Final = 1 << 17
"""Sectors of boxes that are placed while a key waits."""


@dataclass(frozen=True, slots=True)
class FrameRequest:
    """A picture: ``cells`` × ``rows`` of a window. ``sectors`` and ``kinds`` need more counting than the others."""

    window: Window
    cells: int
    rows: int
    selection: Selection
    colouring: Colouring

    @property
    def for_counting(self) -> FrameRequest:
        """Request with bands, unless its colouring changes what is counted."""
        return self if self.colouring in ("sectors", "kinds") else replace(self, colouring="bands")


@dataclass(frozen=True, slots=True)
class Frame:
    """``counts`` has shape (rows of dots, columns of dots); the others are of cells, shape (rows, cells), as asked for.

    ``is_exact`` is False for one made from fine counts, in which an access may be in a neighbouring cell. A 32-byte
    sector of a bulk copy counts as one access.
    """

    request: FrameRequest
    strips: tuple[Strip, ...]
    grid: Grid
    counts: NDArray[np.int64]
    is_exact: bool
    sectors: NDArray[np.float64] | None = None
    """Mean sectors of the requests that the accesses of a cell are part of; nan without any."""
    excessive_shares: NDArray[np.float64] | None = None
    """The share of the sectors moved by the accesses of a cell that no one asked for; nan where that is not known."""
    loads: NDArray[np.int64] | None = None
    stores: NDArray[np.int64] | None = None
    boxes: NDArray[np.int64] | None = None
    """Sectors of bulk copies among the counts; None for a kernel without any."""

    @property
    def cell_counts(self) -> NDArray[np.int64]:
        """Accesses of each cell."""
        counts: NDArray[np.int64] = _by_cell(self.counts)
        return counts

    @property
    def strip_rows(self) -> Iterator[tuple[Strip, range]]:
        """The strips, each with its rows of cells, counted without the rows between bands."""
        first_row = 0
        for strip in self.strips:
            yield strip, range(first_row, first_row + strip.rows)
            first_row += strip.rows

    def line_of(self, row: int) -> int | None:
        """The line of the picture in which a row is drawn, counted with the rows between bands; None if in none."""
        return next((strip.top + row - rows.start for strip, rows in self.strip_rows if row in rows), None)

    def row_in(self, line: int) -> int | None:
        """The row that is drawn in a line of the picture; None between bands."""
        places = ((rows, line - strip.top) for strip, rows in self.strip_rows)
        return next((rows[place] for rows, place in places if 0 <= place < len(rows)), None)

    def times(self, column: int) -> tuple[int, int]:
        """The first cycle of a cell's column, and one past its last."""
        edges = self.grid.column_edges()
        return int(edges[column * DOTS_ACROSS]), int(edges[(column + 1) * DOTS_ACROSS])

    def addresses(self, row: int) -> tuple[int, int]:
        """The first byte of a row, counted without the rows between bands, and one past its last."""
        return int(self.grid.row_starts[row * DOTS_DOWN]), int(self.grid.row_ends[(row + 1) * DOTS_DOWN - 1])

    def column_at(self, time: float) -> int:
        """The column of a time, the nearest one of a time out of sight."""
        share = (time - self.grid.start) / (self.grid.end - self.grid.start)
        return min(max(int(share * self.request.cells), 0), self.request.cells - 1)

    def row_at(self, address: int) -> int:
        """The row of an address, counted as in ``addresses``, the nearest one of an address out of sight."""
        if not self.grid.rows:
            return 0
        row = int(np.searchsorted(self.grid.row_starts, np.uint64(address), side="right")) - 1
        return min(max(row, 0), self.grid.rows - 1) // DOTS_DOWN


def _by_cell(dots: NDArray[Any]) -> NDArray[Any]:
    rows, columns = dots.shape[0] // DOTS_DOWN, dots.shape[1] // DOTS_ACROSS
    sums: NDArray[Any] = dots.reshape(rows, DOTS_DOWN, columns, DOTS_ACROSS).sum(axis=(1, 3))
    return sums


class Painter:
    """Makes frames of one launch. ``code`` tells what the lines of its PTX do."""

    def __init__(self, source: AccessMap, space: AddressAxis, code: Mapping[int, AccessLine]) -> None:
        self.map, self.space, self.code = source, space, code
        self._is_load, self._is_store = self._kind_by_line(_LOADS), self._kind_by_line(_STORES)
        self._lane_sectors = ideal_lane_sectors(code)

    def _kind_by_line(self, kinds: tuple[str, ...]) -> NDArray[np.bool_]:
        """Return, by line, whether it is of one of the kinds."""
        is_kind = np.zeros(max(self.code, default=0) + 2, dtype=np.bool_)
        is_kind[[line for line, code in self.code.items() if kind_of(code) in kinds]] = True
        return is_kind

    @property
    def knows_kinds(self) -> bool:
        """True if loads and stores are distinguishable."""
        return bool(self.code) and not self.map.accesses.is_compact

    @cached_property
    def recorded_lines(self) -> list[int]:
        """The lines of the instructions that made the records; where reading all takes long, those that may have."""
        accesses = self.map.accesses
        if not self.knows_kinds:
            return []
        if accesses.records.size > _MAX_RECORDS_PER_KEY:
            return sorted(line for line, access in self.code.items() if "global" in access.spaces)
        numbers: set[int] = set()
        for part in accesses.parts():
            lines = part.lines()
            numbers.update([] if lines is None else np.flatnonzero(np.bincount(lines)).tolist())
        if self.map.boxes is not None:
            numbers.update(np.unique(self.map.boxes.records["line"]).tolist())
        return [self.code[line].line if line in self.code else line for line in sorted(numbers)]

    def _outline(self, request: FrameRequest) -> tuple[tuple[Strip, ...], Grid]:
        strips = tuple(self.space.strips(request.window.top, request.window.bottom, request.rows))
        row_starts, row_ends = row_edges(strips, DOTS_DOWN)
        start = int(request.window.start)
        columns = request.cells * DOTS_ACROSS
        return strips, Grid(start, max(round(request.window.end), start + columns), columns, row_starts, row_ends)

    def coarse_frame(self, request: FrameRequest) -> Frame | None:
        """Return the picture from fine counts of a window without reading records; None if it has none."""
        if (
            self.map.fine_counts is None
            or request.selection != Selection()
            or request.for_counting.colouring != "bands"
        ):
            return None
        strips, grid = self._outline(request)
        counts, boxes = self.map.fine_counts.resampled(grid), self._boxes(request, grid)
        if boxes is None:
            return Frame(request.for_counting, strips, grid, counts, is_exact=False)
        dots = raster_boxes(boxes, grid, no_progress, _QUICK_POINTS)
        return Frame(request.for_counting, strips, grid, counts + dots, is_exact=False, boxes=_by_cell(dots))

    def _boxes(self, request: FrameRequest, grid: Grid) -> Boxes | None:
        """Return the bulk copies of a picture; None for a kernel without any."""
        return None if self.map.boxes is None else self.map.boxes.select(request.selection, grid.start, grid.end)

    def is_fine_enough(self, frame: Frame) -> bool:
        """Return True if a coarse frame shows as much as is visible."""
        return self.map.fine_counts is not None and self.map.fine_counts.is_fine_enough(frame.grid)

    def paint(self, request: FrameRequest, progress: Callable[[float], None]) -> Frame:
        """Count the accesses of a window. ``progress`` may raise to stop it."""
        strips, grid = self._outline(request)
        parts = self.map.parts(request.selection, grid.start, grid.end)
        counts, boxes = raster(parts, grid, progress), self._boxes(request, grid)
        dots = None if boxes is None else raster_boxes(boxes, grid, progress)
        frame = Frame(
            request.for_counting,
            strips,
            grid,
            counts if dots is None else counts + dots,
            is_exact=boxes is None or boxes.step(MAX_POINTS) == 1,
            boxes=None if dots is None else _by_cell(dots),
        )
        if request.colouring == "sectors":
            return self._with_sectors(frame, parts, progress)
        if request.colouring == "kinds":
            loads, stores = (
                self._count_kind(parts, boxes, grid, kinds, progress) for kinds in (self._is_load, self._is_store)
            )
            return replace(frame, loads=loads, stores=stores)
        return frame

    def _count_kind(
        self,
        parts: Sequence[RecordPart],
        boxes: Boxes | None,
        grid: Grid,
        kinds: NDArray[np.bool_],
        progress: Callable[[float], None],
    ) -> NDArray[np.int64]:
        """Count the accesses and sectors of bulk copies in each cell whose lines ``kinds`` selects."""
        counts = raster(parts, grid, progress, partial(_kind_mask, kinds))
        if boxes is not None:
            line: NDArray[np.uint32] = boxes.records["line"]
            is_kind = kinds[np.minimum(line, len(kinds) - 1)]
            counts = counts + raster_boxes(boxes.subset(is_kind), grid, progress)
        return _by_cell(counts)

    def _with_sectors(self, frame: Frame, parts: Sequence[RecordPart], progress: Callable[[float], None]) -> Frame:
        """Sectors per request, and where the records name instructions, how many of them are wasted.

        Bulk copies make no requests, and waste none of the sectors that they move.
        """
        sums = _by_cell(raster(parts, frame.grid, progress, sectors_of_requests))
        box_sectors = 0 if frame.boxes is None else frame.boxes
        accesses = frame.cell_counts - box_sectors
        with np.errstate(invalid="ignore", divide="ignore"):
            frame = replace(frame, sectors=np.where(accesses > 0, sums / accesses, np.nan))
            if not self.knows_kinds:
                return frame
            weights = (partial(excessive_shares, lane_sectors=self._lane_sectors), moved_shares)
            excess, moved_sectors = (_by_cell(raster(parts, frame.grid, progress, weigh)) for weigh in weights)
            moved_sectors = moved_sectors + box_sectors
            return replace(frame, excessive_shares=np.where(moved_sectors > 0, excess / moved_sectors, np.nan))

    def worst(self, frame: Frame, progress: Callable[[float], None]) -> tuple[int, int] | None:
        """The row and column of the cell that wastes most sectors; None if none wastes any.

        Where the records do not name instructions, it is the one with most sectors per request.
        """
        parts = self.map.parts(frame.request.selection, frame.grid.start, frame.grid.end)
        weigh = partial(excessive_shares, lane_sectors=self._lane_sectors) if self.knows_kinds else sectors_of_requests
        excess = _by_cell(raster(parts, frame.grid, progress, weigh))
        if not self.knows_kinds:
            excess = excess / np.maximum(frame.cell_counts, 1)
        row, column = divmod(int(excess.argmax()), excess.shape[1])
        return (row, column) if excess[row, column] > _MIN_WASTE else None

    def find(self, selection: Selection, cycle: float | None, progress: Callable[[float], None]) -> AccessPoint | None:
        """The access of a selection that is nearest to a cycle, else the first one; None where there is none."""
        parts = self.map.parts(selection, 0, self.map.end)
        candidates = [
            candidate
            for candidate in each_part(parts, partial(_nearest_access, cycle=cycle or 0.0), progress)
            if candidate is not None
        ]
        if self.map.boxes is not None:
            boxes = self.map.boxes.select(selection, 0, self.map.end)
            boxes = boxes.subset(boxes.rows > 0)
            candidates += map(AccessPoint, boxes.times.tolist(), boxes.records["start"].tolist())
        return min(candidates, default=None, key=lambda access: abs(access.cycle - (cycle or 0.0)))


def _nearest_access(part: RecordPart, cycle: float) -> AccessPoint | None:
    """The access of a part that is nearest to a cycle."""
    best: AccessPoint | None = None
    for piece in part.pieces():
        times = piece.times().astype(np.int64)
        if not len(times):
            continue
        number = int(np.abs(times - cycle).argmin())
        if best is None or abs(times[number] - cycle) < abs(best.cycle - cycle):
            best = AccessPoint(int(times[number]), int(piece.addresses()[number]))
    return best


def _kind_mask(kinds: NDArray[np.bool_], part: RecordPart) -> NDArray[np.bool_]:
    """Return the mask of records whose lines ``kinds`` selects."""
    lines = part.lines()
    if lines is None:
        return np.zeros(part.record_count, dtype=np.bool_)
    return kinds[np.minimum(lines, len(kinds) - 1)]
