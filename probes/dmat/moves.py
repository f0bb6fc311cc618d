"""Commands on a picture of accesses, and the state that they move."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from tui_probe.draw import units

from .accesses import Selection
from .axes import MIN_ROW_BYTES, Window
from .frame import DOTS_ACROSS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.probekit.probe_results import ProbeResult

    from .access_map import AccessMap
    from .axes import AddressAxis
    from .frame import Colouring, Frame, FrameRequest, Painter
    from .readout import ReadOut

_ZOOM: Final = 0.5
"""Part of the window that remains visible after zooming in."""
_PAGE: Final = 0.5
"""Part of the window by which a page moves it."""
_LIMIT_REACHED: Final = "zoom limit reached"
COLOURINGS: Final[dict[Colouring, str]] = {
    "bands": "one colour per tensor or allocation, more dots for more accesses",
    "density": "one colour, heavier shades for more accesses",
    "sectors": "excessive sectors",
    "kinds": "loads and stores",
}


class PictureState(Protocol):
    """The window, the cursor, the choices, and the picture that is shown."""

    title: str
    probe_result: ProbeResult
    map: AccessMap
    space: AddressAxis
    painter: Painter
    window: Window
    time: float
    address: int
    end: float
    selection: Selection
    colouring: Colouring
    unit: str
    marks: list[tuple[float, int]]
    goes_to_worst: bool
    frame: Frame | None
    request: FrameRequest | None

    def known_units(self) -> list[str]:
        """The units that the axes can have."""

    def block_number(self, place: int) -> int:
        """The number in the grid of the block at a place among those that were measured."""

    def read_out(self, frame: Frame) -> ReadOut:
        """Cell under the cursor."""

    def selection_text(self) -> str:
        """The selection in words."""

    def busiest_warp(self) -> int:
        """The warp, counted through the grid, that made most accesses under the cursor; 0 where that is not known."""


if TYPE_CHECKING:
    Move = Callable[[PictureState], str | None]


def _move_in_time(cells: int) -> Move:
    """Move the cursor along the axis of time; at the edge the window moves by an eighth."""

    def move(view: PictureState) -> None:
        frame = view.frame
        if frame is None:
            return
        column = frame.column_at(view.time) + cells
        if not 0 <= column < frame.request.cells:
            _shift(view, cells * frame.request.cells / 8, 0)
            column = min(max(column - cells * frame.request.cells // 8, 0), frame.request.cells - 1)
            column = frame.column_at(view.time) if view.request is None else column
        view.time = _column_time(view, column)

    return move


def _column_time(view: PictureState, column: int) -> float:
    """The time in the middle of a column of the window; a dot is at least a cycle wide."""
    cells = 1 if view.frame is None else view.frame.request.cells
    return view.window.start + (column + 0.5) * max(view.window.cycles, _min_cycles(view)) / cells


def _min_cycles(view: PictureState) -> int:
    """The cycles that fill the picture where each column of dots is one cycle; 0 before there is a picture."""
    return 0 if view.frame is None else view.frame.request.cells * DOTS_ACROSS


def _move_in_memory(rows: int) -> Move:
    """Move the cursor along the axis of memory, likewise."""

    def move(view: PictureState) -> None:
        frame = view.frame
        if frame is None or not frame.grid.rows:
            return
        total_rows = sum(strip.rows for strip in frame.strips)
        row = frame.row_at(view.address) + rows
        if not 0 <= row < total_rows:
            _shift(view, 0, rows * (view.window.bottom - view.window.top) / 8)
            return
        first_byte, end_byte = frame.addresses(row)
        view.address = (first_byte + end_byte) // 2

    return move


def _shift(view: PictureState, cells: float, memory: float) -> None:
    """The window elsewhere, the cursor with it."""
    frame = view.frame
    old_window = view.window
    cycles = cells * old_window.cycles / (1 if frame is None else frame.request.cells)
    view.window = old_window.shifted(cycles, memory).clamped(view.end)
    view.time += view.window.start - old_window.start
    distance = view.window.top - old_window.top
    if distance:
        view.address = view.space.address(view.space.position(view.address) + distance)


def _page(cycles: int, memory: int) -> Move:
    """Move the window by half of its extent along an axis: 1 or -1, 0 for the other axis."""

    def move(view: PictureState) -> str | None:
        old_window, cells = view.window, 1 if view.frame is None else view.frame.request.cells
        _shift(view, cycles * _PAGE * cells, memory * _PAGE * (old_window.bottom - old_window.top))
        return None if view.window != old_window else "end of the picture"

    return move


def _zoom(factor: float) -> Move:
    def move(view: PictureState) -> str | None:
        if factor < 1 and view.window.cycles <= max(_min_cycles(view), 2):
            return _LIMIT_REACHED
        old_window = view.window
        view.window = old_window.zoomed(factor, view.time).clamped(view.end)
        return None if view.window != old_window else _LIMIT_REACHED

    return move


def _zoom_rows(factor: float) -> Move:
    def move(view: PictureState) -> str | None:
        frame = view.frame
        visible_bytes = 0 if frame is None else sum(strip.end - strip.start for strip in frame.strips)
        rows = 1 if frame is None else frame.request.rows
        if factor < 1 and visible_bytes <= rows * MIN_ROW_BYTES:
            return _LIMIT_REACHED
        old_window = view.window
        view.window = old_window.zoomed_rows(factor, view.space.position(view.address)).clamped(view.end)
        return None if view.window != old_window else _LIMIT_REACHED

    return move


def _show_all(view: PictureState) -> str | None:
    old_window, view.window = view.window, Window(0, view.end)
    return None if view.window != old_window else "the whole launch is shown"


def _go_to_start(view: PictureState) -> None:
    _go_to_time(view, 0.0)


def _go_to_end(view: PictureState) -> None:
    _go_to_time(view, view.end - 1.0)


def _go_to_time(view: PictureState, time: float) -> None:
    """Put the cursor at a time, in the middle of the window where that does not show it yet."""
    view.time = time
    if not view.window.start <= time < view.window.end:
        middle = view.window.cycles / 2
        view.window = view.window.shifted(time - view.window.start - middle, 0).clamped(view.end)


def _next_access(direction: int) -> Move:
    """Move the cursor to the next cell of its row that has accesses, 1 to the right, -1 to the left."""

    def move(view: PictureState) -> str | None:
        frame = view.frame
        if frame is None or not frame.grid.rows:
            return None
        column = frame.column_at(view.time)
        accessed_columns = np.flatnonzero(frame.cell_counts[frame.row_at(view.address)])
        columns_ahead = (
            accessed_columns[accessed_columns > column]
            if direction > 0
            else accessed_columns[accessed_columns < column][::-1]
        )
        if not len(columns_ahead):
            return "no further access in the visible part of this row"
        view.time = _column_time(view, int(columns_ahead[0]))
        return None

    return move


def _go_to_worst(view: PictureState) -> str:
    view.goes_to_worst, view.colouring = True, "sectors"
    return (
        "the cell with the highest number of excessive sectors"
        if view.painter.knows_kinds
        else "the cell with the highest number of sectors per request"
    )


def _set_mark(view: PictureState) -> str:
    cursor = (view.time, view.address)
    view.marks = [*view.marks, cursor] if len(view.marks) < 2 else [cursor]
    if len(view.marks) < 2:
        return "first mark set; the second mark shows the distance"
    (first_time, first_address), (second_time, second_address) = view.marks
    cycles, distance = round(abs(second_time - first_time)), abs(second_address - first_address)
    return f"{units.count(cycles)} cycles, {units.size(distance)} between the marks"


def _next_colouring(view: PictureState) -> str:
    colourings = [colouring for colouring in COLOURINGS if colouring != "kinds" or view.painter.knows_kinds]
    view.colouring = colourings[(colourings.index(view.colouring) + 1) % len(colourings)]
    return COLOURINGS[view.colouring]


def _next_level(view: PictureState) -> str:
    """The whole grid, the block that is seen most under the cursor, its warp."""
    per_block = view.map.accesses.start.shape[1]
    busiest = view.busiest_warp()
    block, warp = view.selection.block, view.selection.warp
    if block is None:
        block = busiest // per_block
    elif warp is None:
        warp = busiest % per_block if busiest // per_block == block else 0
    else:
        block = warp = None
    view.selection = replace(view.selection, block=block, warp=warp)
    return view.selection_text()


def _select_next(view: PictureState) -> str:
    """Select, for the whole grid, the next instruction, or all after the last; else the next block or warp."""
    blocks, per_block = view.map.accesses.start.shape
    block, warp = view.selection.block, view.selection.warp
    if block is None:
        lines = [None, *view.painter.recorded_lines]
        place = lines.index(view.selection.line) if view.selection.line in lines else 0
        view.selection = Selection(line=lines[(place + 1) % len(lines)])
    elif warp is None:
        view.selection = replace(view.selection, block=(block + 1) % blocks)
    else:
        block, warp = divmod((block * per_block + warp + 1) % (blocks * per_block), per_block)
        view.selection = replace(view.selection, block=block, warp=warp)
    return view.selection_text()


def _next_unit(view: PictureState) -> str:
    known_units = view.known_units()
    view.unit = known_units[(known_units.index(view.unit) + 1) % len(known_units)]
    return view.unit


MOVES: Final[dict[str, tuple[str, Move]]] = {
    "left": ("cursor left", _move_in_time(-1)),
    "right": ("cursor right", _move_in_time(1)),
    "up": ("cursor up", _move_in_memory(-1)),
    "down": ("cursor down", _move_in_memory(1)),
    "page_left": ("earlier", _page(-1, 0)),
    "page_right": ("later", _page(1, 0)),
    "page_up": ("lower addresses", _page(0, -1)),
    "page_down": ("higher addresses", _page(0, 1)),
    "zoom_in": ("zoom in on time at the cursor", _zoom(_ZOOM)),
    "zoom_out": ("zoom out on time", _zoom(1 / _ZOOM)),
    "zoom_in_rows": ("zoom in on memory at the cursor", _zoom_rows(_ZOOM)),
    "zoom_out_rows": ("zoom out on memory", _zoom_rows(1 / _ZOOM)),
    "fit": ("show the whole launch", _show_all),
    "start": ("go to the start of the launch", _go_to_start),
    "end": ("go to the end of the launch", _go_to_end),
    "next": ("go to the next access in this row", _next_access(1)),
    "previous": ("go to the previous access in this row", _next_access(-1)),
    "worst": ("go to the visible cell with the highest number of excessive sectors", _go_to_worst),
    "mark": ("set a mark; two marks show their distance in cycles and bytes", _set_mark),
    "colour": ("next colour scheme: bands, density, sectors, loads and stores", _next_colouring),
    "level": ("filter by block or warp under the cursor, or show the whole grid", _next_level),
    "select": ("select the next instruction, block or warp", _select_next),
    "unit": ("switch units: cycles or time, bytes or indices", _next_unit),
}
"""Commands by name: what each does, in words and to a picture."""
