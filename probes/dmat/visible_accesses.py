"""The window on the accesses of a launch, its cursor, and the access that another page points to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.draw.view import Cancelled, Drawing
from tui_probe.probekit.record_counts import sampled_blocks_text
from tui_probe.trace.kernel_files import long_position, short_position

from .accesses import Selection
from .axes import AddressAxis, Window
from .frame import Frame, FrameRequest, Painter
from .picture import gutter_of
from .readout import Cell, ReadOut, read_detail

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tui_probe.draw.view import Progress, Spot
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.records.probed_sites import AccessLine

    from .access_map import AccessMap
    from .frame import Colouring
    from .moves import PictureState
    from .readout import CellDetail

LINES_AROUND: Final = 4
"""Lines around the picture, without those of what is under the cursor: a head, the axis, its labels, the legend."""
_WIDE_CELLS: Final = 110
"""Cells from which on two lines hold what is under the cursor; else there are three."""
MIN_SIZE: Final = (40, 10)
"""Cells and lines that a picture needs."""


@dataclass(frozen=True, slots=True)
class AccessTarget:
    """Selection of an access, and the cycle that it is nearest to; None for the first one."""

    selection: Selection
    time: float | None

    @property
    def words(self) -> str:
        """Message for a search without a result: ``no access of PTX line 28 was recorded``."""
        line = self.selection.line
        return f"no access{'' if line is None else f' of {long_position(line)}'} was recorded at this position"


def access_target(view: PictureState, spot: Spot) -> AccessTarget | None:
    """Return the block and line of a spot as a search for an access; None if this result has neither."""
    line = next((line for ptx in spot.ptx if (line := _recorded_line(view, ptx)) is not None), None)
    blocks = view.probe_result.result.blocks
    block = blocks.index(spot.block) if spot.block is not None and spot.block in blocks else None
    if line is None and block is None:
        return None
    return AccessTarget(Selection(block, None, line), spot.time)


def _recorded_line(view: PictureState, ptx: int) -> int | None:
    """Return the records' key for a line of pruned.ptx: the line, or the number of a SASS instruction."""
    if not view.painter.knows_kinds:
        return None
    return next((line for line, code in view.painter.code.items() if code.line == ptx), None)


def no_record_reason(view: PictureState, spot: Spot) -> str:
    """Return why no access of ``spot`` was recorded; "" if it names no line and no block."""
    if spot.ptx and view.painter.knows_kinds:
        return f"{long_position(spot.ptx[0])} is not an access to global memory"
    return "" if spot.block is None else f"no access of block {spot.block} was recorded"


def selection_with(selection: Selection, target: Selection) -> Selection:
    """Return ``selection`` without the parts that exclude what is wanted."""
    if target.block is not None and selection.block not in (None, target.block):
        selection = replace(selection, block=None, warp=None)
    return replace(selection, line=None) if selection.line != target.line else selection


def show_position(window: Window, end: float, time: float, position: float) -> Window:
    """Return the window moved to show a cycle and a position on the axis of memory."""
    if not window.start <= time < window.end:
        window = window.shifted(time - (window.start + window.end) / 2, 0)
    if not window.top <= position < window.bottom:
        window = window.shifted(0, position - (window.top + window.bottom) / 2)
    return window.clamped(end)


def lines_below(width: int) -> int:
    """Return the number of lines about the cell under the cursor."""
    return 2 if width >= _WIDE_CELLS else 3


class _CellRead(NamedTuple):
    """The cell under the cursor as read for a picture; ``detail`` is None if that would have taken too long."""

    request: FrameRequest
    cell: Cell
    detail: CellDetail | None


class _CursorTarget(NamedTuple):
    """The access that the cursor was sent to, and the position that it has; other positions may have more of it."""

    cell: Cell
    selection: Selection


class VisibleAccesses(Drawing):
    """Accesses of one launch. ``prepare`` returns work that makes a picture in the background and then shows it."""

    window: Window
    time: float
    address: int
    """Address of the cursor, which is at ``time``."""
    selection: Selection
    colouring: Colouring
    unit: str
    marks: list[tuple[float, int]]
    goes_to_worst: bool
    """True if the next picture places the cursor at the most wasted sectors."""
    has_no_excess: bool
    """True if the last search found no such position."""
    frame: Frame | None
    """Picture on the screen; older than ``request`` while the next one is made."""
    request: FrameRequest | None
    gutter: int
    """Cells left of the picture."""

    def __init__(self, result: ProbeResult, source: AccessMap, code: Mapping[int, AccessLine], heading: str) -> None:
        self.probe_result, self.map, self.heading = result, source, heading
        self.title = f"Memory accesses of {result.launch_label} {result.kernel_name}"
        self.space = AddressAxis(source.bands)
        self.painter = Painter(source, self.space, code)
        self.end = float(source.end)
        """The cycle at which the axis of time ends."""
        self.window = Window(0, self.end)
        self.time, self.address = -1.0, 0
        self.selection, self.colouring = Selection(), "bands"
        self.unit = self.known_units()[0]
        self.marks = []
        self.goes_to_worst = self.has_no_excess = False
        self.frame = self.request = None
        self.gutter = 0
        self._cell_read: _CellRead | None = None
        self._access_target: AccessTarget | None = None
        """Access to which the next picture moves the cursor."""
        self._cursor_target: _CursorTarget | None = None
        self.not_found_reason = ""
        """Reason why the cursor did not move there."""

    # -- what it is

    @property
    def cycles(self) -> float:
        return self.end

    def stretch(self, cycles: float) -> None:
        """Extend the axis of time beyond what was recorded."""
        self.end = max(self.end, cycles)
        self.window = Window(0, self.end)

    def known_units(self) -> list[str]:
        """Return the units that the axes can have."""
        units = ["cycles and bytes"]
        if self.cycles_per_ns is not None:
            units.append("time and bytes")
        if any(band.tensor is not None and band.tensor.element for band in self.map.bands):
            units.append("cycles and indices")
        return units

    @property
    def cycles_per_ns(self) -> float | None:
        """Cycles per ns of the launch, else at the device's highest clock; None if cycles are not time."""
        khz = self.probe_result.clock_khz
        return self.map.accesses.cycles_per_ns or (None if khz is None else khz / 1e6)

    def block_number(self, place: int) -> int:
        """Return the number in the grid of a measured block, by its position among these."""
        return self.probe_result.result.blocks[place]

    def selection_text(self) -> str:
        """Describe the selection."""
        sample, block, warp = self.probe_result.result.sample, self.selection.block, self.selection.warp
        text = "the whole grid" if sample is None else sampled_blocks_text(sample)
        if block is not None:
            text = f"block {self.block_number(block)}" + ("" if warp is None else f" warp {warp}")
        line = self.selection.line
        code = None if line is None else self.painter.code.get(line)
        return text if line is None else f"{'' if code is None else f'{code.opcode} '}{short_position(line)} of {text}"

    @property
    def detail(self) -> CellDetail | None:
        """The accesses that were read last under the cursor; None if none were."""
        return None if self._cell_read is None else self._cell_read.detail

    def busiest_warp(self) -> int:
        """Return the warp, counted through the grid, with most accesses under the cursor; 0 if unknown."""
        detail = self.detail
        return 0 if detail is None or not detail.warps else detail.warps.most_common(1)[0][0]

    # -- made aside

    def prepare(self, width: int, height: int) -> Callable[[], None] | None:
        """Return the work that counts what is visible and reads the cell under the cursor; None if there is none."""
        if width < MIN_SIZE[0] or height < MIN_SIZE[1] or not self.map.bands:
            return None
        self.gutter = gutter_of(self.map, width)
        rows = height - LINES_AROUND - lines_below(width)
        request = FrameRequest(self.window, width - self.gutter - 1, rows, self.selection, self.colouring)
        self.request = request.for_counting
        if self.frame is None or self.frame.request != self.request:
            coarse_frame = self.painter.coarse_frame(self.request)
            if coarse_frame is not None:
                self.frame = coarse_frame
                self._place_cursor(coarse_frame)
        frame = self.frame
        if self.goes_to_worst:
            return lambda: self._go_to_worst(request.for_counting)
        if self._access_target is not None:
            target = self._access_target
            return lambda: self._go_to_access(request.for_counting, target)
        if (
            frame is not None
            and frame.request == self.request
            and (frame.is_exact or self.painter.is_fine_enough(frame))
        ):
            cell = self._cursor_cell(frame)
            return None if self._has_detail(cell) else lambda: self._read_detail(request.for_counting, cell)
        return lambda: self._paint(request.for_counting)

    def _outdated_check(self, request: FrameRequest) -> Progress:
        """Return a progress function that raises Cancelled once another picture is requested."""

        def check(share: float) -> None:
            del share
            if self.request != request:
                raise Cancelled

        return check

    def _paint(self, request: FrameRequest) -> None:
        try:
            frame = self.painter.paint(request, self._outdated_check(request))
            self._place_cursor(frame)
            self.frame = frame
            self._read_detail(request, self._cursor_cell(frame))
        except Cancelled:
            return

    def _go_to_worst(self, request: FrameRequest) -> None:
        """Move the cursor to the cell that wastes most sectors, if any does."""
        try:
            frame = self.painter.paint(request, self._outdated_check(request))
            worst = self.painter.worst(frame, self._outdated_check(request))
            if worst is not None:
                self._set_cursor(frame, *worst)
            self.frame, self.goes_to_worst = frame, False
            self.has_no_excess = worst is None
            self._read_detail(request, self._cursor_cell(frame))
        except Cancelled:
            return

    def _go_to_access(self, request: FrameRequest, target: AccessTarget) -> None:
        """Move the cursor to the wanted access, if it was recorded."""
        try:
            access = self.painter.find(target.selection, target.time, self._outdated_check(request))
        except Cancelled:
            return
        self._access_target = None
        self.not_found_reason = "" if access is not None else target.words
        if access is not None:
            self.time, self.address = float(access.cycle), access.address
            self.window = show_position(self.window, self.end, self.time, self.space.position(self.address))
        self.request = replace(request, window=self.window)
        self._paint(self.request)
        if access is not None and self.frame is not None:
            self._cursor_target = _CursorTarget(self._cursor_cell(self.frame), target.selection)

    def _read_detail(self, request: FrameRequest, cell: Cell) -> None:
        try:
            detail = read_detail(self.map, request.selection, cell, self._outdated_check(request))
        except Cancelled:
            return
        self._cell_read = _CellRead(request, cell, detail)

    def _has_detail(self, cell: Cell) -> bool:
        """Return whether the cell that was read last is this one of the picture on the screen."""
        cell_read = self._cell_read
        return cell_read is not None and (cell_read.request, cell_read.cell) == (self.request, cell)

    def _place_cursor(self, frame: Frame) -> None:
        """Place the cursor of the first picture at the cell with most accesses."""
        if self.time >= 0 or not frame.counts.size:
            return
        counts = frame.cell_counts
        self._set_cursor(frame, *divmod(int(counts.argmax()), counts.shape[1]))

    def _set_cursor(self, frame: Frame, row: int, column: int) -> None:
        start, end = frame.times(column)
        first_byte, end_byte = frame.addresses(row)
        self.time, self.address = (start + end) / 2, (first_byte + end_byte) // 2

    def _cursor_cell(self, frame: Frame) -> Cell:
        return Cell(*frame.times(frame.column_at(self.time)), *frame.addresses(frame.row_at(self.address)))

    def read_out(self, frame: Frame) -> ReadOut:
        """Return the cell under the cursor."""
        row, column = frame.row_at(self.address), frame.column_at(self.time)
        cell = self._cursor_cell(frame)
        number = self.space.band_of(cell.start_address)
        box_sectors = 0 if frame.boxes is None else int(frame.boxes[row, column])
        return ReadOut(
            cell=cell,
            band=None if number is None else self.map.bands[number],
            accesses=int(frame.cell_counts[row, column]) - box_sectors,
            is_exact=frame.is_exact,
            detail=self.detail if self._has_detail(cell) else None,
            code=self.painter.code,
            warps_per_block=self.map.accesses.start.shape[1],
            blocks=self.probe_result.result.blocks,
            box_sectors=box_sectors,
        )
