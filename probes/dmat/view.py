"""Memory accesses over time: which addresses, when, how densely, by whom, and how well they coalesce."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.canvas import Canvas
from tui_probe.draw.shorten import draw_head
from tui_probe.draw.spans import clip
from tui_probe.draw.view import Spot
from tui_probe.probekit import probe_results
from tui_probe.records.probed_sites import access_lines
from tui_probe.trace.device_memory import read_launch_memory
from tui_probe.trace.kernel_files import code_page
from tui_probe.trace.tensors import read_tensors

from . import picture
from .access_map import read_map
from .accesses import Selection, accesses_of
from .axes import Window
from .boxes import UNKNOWN_SIZE_TEXT
from .moves import COLOURINGS, MOVES
from .picture import draw_cells, draw_gutter, draw_time, gutter_of, legend
from .visible_accesses import (
    LINES_AROUND,
    MIN_SIZE,
    VisibleAccesses,
    access_target,
    lines_below,
    no_record_reason,
    selection_with,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.page_kinds import ViewSource

    from .frame import Frame

_DATA_SIZE: Final = (120, 40)
"""Columns and rows of data that are asked for before anything was drawn."""
_DATA_GUTTER: Final = 12
_PICTURE_TOP: Final = 1
"""The first line of the picture: a head is above it."""


class Dmat(VisibleAccesses):
    """One launch as it is drawn, moved about in, and given to others; what is pressed changes window and choices."""

    # -- as text

    def draw(self, width: int, height: int, *, ascii_only: bool = False) -> list[Line]:
        """A head, the picture, the axis of time, the legend, and what is under the cursor."""
        canvas = Canvas(width, height)
        frame = self.frame
        if width < MIN_SIZE[0] or height < MIN_SIZE[1]:
            canvas.text(0, 0, f"this page needs {MIN_SIZE[0]}×{MIN_SIZE[1]} cells", "warn")
        elif not self.map.bands:
            canvas.text(0, 0, "no access to global memory was recorded", "dim")
        elif frame is None or frame.request.cells + gutter_of(self.map, width) + 1 > width:
            canvas.text(0, 0, "being prepared", "dim")
        else:
            self._draw(canvas, frame, ascii_only=ascii_only)
        return canvas.lines(ascii_only=ascii_only)

    def _draw(self, canvas: Canvas, frame: Frame, *, ascii_only: bool) -> None:
        gutter = gutter_of(self.map, canvas.width)
        self._draw_head(canvas)
        draw_gutter(canvas, _PICTURE_TOP, gutter, frame, self.map, in_index=self.unit == "cycles and indices")
        draw_cells(canvas, gutter, _PICTURE_TOP, frame, self.colouring, ascii_only=ascii_only)
        text_lines = lines_below(canvas.width)
        bottom = canvas.height - LINES_AROUND - text_lines + 1
        draw_time(canvas, gutter, bottom, frame, self.cycles_per_ns if self.unit == "time and bytes" else None)
        self._draw_cursor(canvas, frame, gutter, bottom)
        text = f"{legend(frame, self.colouring, ascii_only=ascii_only)} · {self.selection_text()}"
        canvas.text(0, bottom + 2, clip(text, canvas.width), "dim")
        for line, text in enumerate(self.read_out(frame).lines(canvas.width, text_lines)):
            canvas.text(0, bottom + 3 + line, text, "" if line else "soft")

    def _draw_head(self, canvas: Canvas) -> None:
        totals = self.totals()
        boxes = self.map.boxes
        total = self.map.accesses.total_accesses
        lacks_accesses = total is not None and self.map.survey.record_count < total
        lacks_copies = boxes is not None and boxes.total_copies is not None and len(boxes.records) < boxes.total_copies
        role = "warn" if lacks_accesses or lacks_copies else "dim"
        draw_head(canvas, self.heading, self.probe_result.launch_label, self.probe_result.kernel_name, totals, role)

    def totals(self) -> str:
        """Return the numbers of all and of recorded accesses, and of bulk copies."""
        boxes = self.map.boxes
        return self._access_totals() + ("" if boxes is None else f", {boxes.text}")

    def _access_totals(self) -> str:
        record_count, total = self.map.survey.record_count, self.map.accesses.total_accesses
        if not self.map.accesses.are_recorded:
            return "loads and stores not recorded"
        if total is None:
            return f"{units.counted(record_count, 'access')} kept, total unknown"
        if record_count < total:
            return f"kept {units.count(record_count)} of {units.counted(total, 'access')}"
        return f"{units.counted(record_count, 'access')}"

    def _draw_cursor(self, canvas: Canvas, frame: Frame, gutter: int, bottom: int) -> None:
        line = frame.line_of(frame.row_at(self.address))
        if line is None:
            return
        column, line = gutter + frame.column_at(self.time), _PICTURE_TOP + line
        canvas.text(gutter - 1, line, "▌", "accent")
        canvas.text(column, bottom, "▲", "accent")
        canvas.tint(column, line, 1, 1, "cursor")

    def commands(self) -> Mapping[str, str]:
        """Return the commands that apply to this launch, and their descriptions."""
        inapplicable = set() if len(self.known_units()) > 1 else {"unit"}
        if self.selection.block is None and not self.painter.knows_kinds:
            inapplicable.add("select")
        return {name: description for name, (description, _) in MOVES.items() if name not in inapplicable}

    def press(self, command: str) -> str | None:
        """Run a command; ignore one that does not apply here."""
        self.has_no_excess, self.not_found_reason = False, ""
        return MOVES[command][1](self) if command in MOVES and self.map.bands else None

    def click(self, column: int, row: int) -> None:
        """Cursor to a cell; next to the picture only along the axis that was hit."""
        frame = self.frame
        if frame is None or self.request is None:
            return
        gutter = self.gutter
        if column >= gutter:
            self.time = (
                frame.grid.start + (column - gutter + 0.5) * (frame.grid.end - frame.grid.start) / frame.request.cells
            )
        row_of_cells = frame.row_in(row - _PICTURE_TOP)
        if row_of_cells is not None:
            first_byte, end_byte = frame.addresses(row_of_cells)
            self.address = (first_byte + end_byte) // 2

    def target_view(self) -> str:
        """Return the code view that the records name, "sass" or "ptx"; "" if they name none."""
        if not self.painter.knows_kinds:
            return ""
        return code_page(self.painter.code)

    def spot(self) -> Spot:
        """Return the access under the cursor: the one that the cursor was sent to, else of the most frequent block."""
        frame, detail = self.frame, self.detail
        if frame is None or detail is None or not detail.warps:
            return Spot() if frame is None else Spot(time=self.time)
        block, warp = divmod(detail.warps.most_common(1)[0][0], self.map.accesses.start.shape[1])
        target = self._cursor_target
        target_selection = (
            target.selection if target is not None and target.cell == self._cursor_cell(frame) else Selection()
        )
        line = self.ptx_line() if target_selection.line is None else self.painter.code[target_selection.line].line
        if target_selection.block is not None and target_selection.block != block:
            block, warp = target_selection.block, 0
        spot = Spot.of_line(line)
        return replace(spot, block=self.block_number(block), warp=warp, time=self.time, address=self.address)

    def go_to(self, spot: Spot) -> bool:
        """Send the cursor to the access of the spot's line and block nearest to its time. Return False if it names
        neither.
        """
        target, current = access_target(self, spot) if self.map.bands else None, self.spot()
        if target is None:
            return False
        same_line = target.selection.line is None or current.shares_code(spot)
        same_block = target.selection.block is None or current.block == spot.block
        if not (same_line and same_block):
            self._access_target, self.selection = target, selection_with(self.selection, target.selection)
        return True

    def missing_reason(self, spot: Spot) -> str:
        """Return why no access of ``spot`` was recorded."""
        return no_record_reason(self, spot)

    def no_target_reason(self) -> str:
        """Return why the cursor's cell leads to no other view."""
        if not self.painter.knows_kinds:
            return "these records do not name the instructions: run with -p dmat"
        return "no access here; press . for the next access in this row, or ! for the worst access"

    def ptx_line(self) -> int | None:
        """Return the PTX line with most accesses under the cursor."""
        detail = self.detail
        if detail is None or not detail.lines:
            return None
        line = detail.lines.most_common(1)[0][0]
        return self.painter.code[line].line if line in self.painter.code else line

    def status(self) -> list[str]:
        """Notes on reading the picture: colouring, part of the launch, inexact values."""
        parts = [COLOURINGS[self.colouring], self.selection_text()]
        share = self.window.cycles / self.end
        if share < 1:
            parts.append(f"{share:.2%} of the time")
        if self.frame is not None and not self.frame.is_exact:
            parts.append("coarse")
        if self.has_no_excess:
            parts.append("no visible access has excessive sectors")
        if self.map.boxes is not None and self.map.boxes.unsized_copies:
            parts.append(UNKNOWN_SIZE_TEXT)
        if self.not_found_reason:
            parts.append(self.not_found_reason)
        parts.append("simulated" if self.probe_result.simulated else self.map.accesses.clocks.summary())
        return parts

    def choices(self) -> Mapping[str, Any]:
        """Return colouring, unit, window and cursor; ``own`` only applies to the same result."""
        position = self.space.position(self.address) if self.time >= 0 and self.map.bands else None
        return {
            "colouring": self.colouring,
            "unit": self.unit,
            "bands": len(self.map.bands),
            "end": self.end,
            "window": self.window,
            "cursor": (self.time, position),
            "result": self.probe_result.result.path,
            "own": (self.address, self.selection, self._cursor_target, tuple(self.marks)),
        }

    def choose(self, choices: Mapping[str, Any]) -> None:
        """Restore colouring and unit; with as many bands also window and cursor, as shares; of the same launch all."""
        self.colouring = choices["colouring"]
        if self.colouring == "kinds" and not self.painter.knows_kinds:
            self.colouring = "bands"
        if choices["unit"] in self.known_units():
            self.unit = choices["unit"]
        if choices["bands"] == len(self.map.bands):
            self._restore_window(choices["window"], choices["cursor"], self.end / choices["end"])
        if choices["result"] == self.probe_result.result.path:
            self.address, self.selection, self._cursor_target, marks = choices["own"]
            self.marks = list(marks)

    def _restore_window(self, window: Window, cursor: tuple[float, float | None], scale: float) -> None:
        """Restore window and cursor of another launch; ``scale`` converts its cycles."""
        time, position = cursor
        self.window = Window(window.start * scale, window.end * scale, window.top, window.bottom)
        if position is not None:
            self.time, self.address = time * scale, self.space.address(position)

    # -- as data

    def _counted_frame(self) -> Frame | None:
        """Return the shown frame; before the first one, a frame of everything."""
        if self.frame is None and self.map.bands:
            width = _DATA_SIZE[0] + _DATA_GUTTER
            work = self.prepare(width, _DATA_SIZE[1] + LINES_AROUND + lines_below(width))
            if work is not None:
                work()
        return self.frame

    def record(self) -> Mapping[str, Any]:
        """Axes, bands, and the accesses of each cell, row by row; sectors and kinds are None if not asked for."""
        return picture.record(self, self._counted_frame())

    def cells(self) -> Iterator[Sequence[object]]:
        """One row per cell that has accesses."""
        return picture.cells(self, self._counted_frame())

    def plot(self, axes: Any) -> None:
        """The bands one below the other, darker where accesses are denser."""
        frame = self._counted_frame()
        if frame is not None:
            picture.plot(self, frame, axes)


def open_view(source: ViewSource, progress: Progress, heading: str) -> Dmat:
    """Read the accesses of a launch."""
    progress(0.0)
    result = probe_results.read_result(source)
    memory = read_launch_memory(source.trace, result.launch)
    tensors = read_tensors(source.trace, None if result.launch is None else result.launch.time_ns)
    accesses = accesses_of(result, memory)
    folder = source.kernel.folder
    code = access_lines(folder) if folder is not None and not accesses.is_compact else {}
    return Dmat(result, read_map(accesses, memory, tensors, progress), code, heading)
