"""Memory accesses over time: which addresses, when, how densely, by whom, and how well they coalesce."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tui_probe.analysis.access_lines import access_lines
from tui_probe.draw import units
from tui_probe.draw.canvas import Canvas
from tui_probe.draw.heading import draw_head, named
from tui_probe.draw.spans import clip
from tui_probe.draw.spot import Spot
from tui_probe.draw.view import Cancelled, Drawing
from tui_probe.probekit import probe_results
from tui_probe.probekit.kept import sampled_words
from tui_probe.probekit.views import probe_view
from tui_probe.trace.allocations import read_launch_memory
from tui_probe.trace.offset import Offset, where
from tui_probe.trace.tensors import read_tensors

from . import data
from .access_map import read_map
from .accesses import Selection, accesses_of
from .frame import Frame, Painter, Patch, Wish
from .moves import COLOURINGS, MOVES
from .picture import draw_cells, draw_gutter, draw_time, gutter_of, legend
from .readout import ReadOut
from .sought import in_sight, shown_with, sought, why_not
from .space import Space
from .window import Window
from .words import EXPLANATION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tui_probe.analysis.access_lines import AccessLine
    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress, View
    from tui_probe.probekit.kind import Source
    from tui_probe.probekit.probe_results import ProbeResult

    from .access_map import AccessMap
    from .frame import Colouring, Detail
    from .sought import Sought

_AROUND: Final = 4
"""Lines around the picture, without those of what is under the cursor: a head, the axis, its labels, the legend."""
_WIDE: Final = 110
"""Cells from which on two lines hold what is under the cursor; else there are three."""
_SMALLEST: Final = (40, 10)
_DATA_SIZE: Final = (120, 40)
"""Columns and rows of data that are asked for before anything was drawn."""


class Dmat(Drawing):
    """One launch. ``prepare`` counts; what is pressed changes the window, the cursor and the choices."""

    window: Window
    time: float
    address: int
    """With ``time`` the place of the cursor."""
    selection: Selection
    colouring: Colouring
    unit: str
    marks: list[tuple[float, int]]
    seeking: bool
    """Whether the next picture is to have the cursor where most sectors are wasted."""
    nothing_wasted: bool
    """Whether there was no such place when it was looked for last."""
    frame: Frame | None
    """What is shown now; behind ``wish`` while it is being made."""
    wish: Wish | None
    gutter: int
    """Cells left of the picture."""

    def __init__(self, found: ProbeResult, source: AccessMap, code: Mapping[int, AccessLine]) -> None:
        self.found, self.map = found, source
        self.title = f"Memory accesses of {found.which} {found.name}"
        self.space = Space(source.bands)
        self.painter = Painter(source, self.space, code)
        self.end = float(source.end)
        """The cycle at which the axis of time ends."""
        self.window = Window(0, self.end)
        self.time, self.address = -1.0, 0
        self.selection, self.colouring = Selection(), "bands"
        self.unit = self.units_known()[0]
        self.marks = []
        self.seeking = self.nothing_wasted = False
        self.frame = self.wish = None
        self.gutter = 0
        self._detail: tuple[Wish, Patch, Detail | None] | None = None
        self._wanted: Sought | None = None
        """An access that the cursor is to go to."""
        self._sent: tuple[Patch, Selection] | None = None
        """What the cursor was sent to, and where that is: others may have more accesses there."""
        self.unfound = ""
        """Why the cursor did not go there."""

    # -- what is shown

    @property
    def cycles(self) -> float:
        return self.end

    def stretch(self, cycles: float) -> None:
        """An axis of time that reaches further than what was recorded."""
        self.end = max(self.end, cycles)
        self.window = Window(0, self.end)

    def units_known(self) -> list[str]:
        """The units that the axes can have."""
        known = ["cycles and bytes"]
        if self.cycles_per_ns is not None:
            known.append("time and bytes")
        if any(band.tensor is not None and band.tensor.element for band in self.map.bands):
            known.append("cycles and indices")
        return known

    @property
    def cycles_per_ns(self) -> float | None:
        """As the launch itself tells, else at the device's highest clock; None where cycles are no time."""
        khz = self.found.clock_khz
        return self.map.accesses.cycles_per_ns or (None if khz is None else khz / 1e6)

    def block_number(self, place: int) -> int:
        """The number in the grid of the block at a place among those that were measured."""
        return self.found.result.blocks[place]

    def whose(self) -> str:
        """The selection in words."""
        sample, block, warp = self.found.result.sample, self.selection.block, self.selection.warp
        words = "the whole grid" if sample is None else sampled_words(sample)
        if block is not None:
            words = f"block {self.block_number(block)}" + ("" if warp is None else f" warp {warp}")
        line = self.selection.line
        code = None if line is None else self.painter.code.get(line)
        return words if line is None else f"{'' if code is None else f'{code.opcode} '}{where(line)} of {words}"

    def seen_most(self) -> int:
        """The warp, counted through the grid, that made most accesses under the cursor; 0 where that is not known."""
        detail = None if self._detail is None else self._detail[2]
        return 0 if detail is None or not detail.warps else detail.warps.most_common(1)[0][0]

    def prepare(self, width: int, height: int) -> Callable[[], None] | None:
        """Count what is visible, then look at what is under the cursor."""
        if width < _SMALLEST[0] or height < _SMALLEST[1] or not self.map.bands:
            return None
        self.gutter = gutter_of(self.map.bands, width)
        rows = height - _AROUND - _told(width)
        wish = Wish(self.window, width - self.gutter - 1, rows, self.selection, self.colouring)
        self.wish = wish.counted
        if self.frame is None or self.frame.wish != self.wish:
            coarse = self.painter.coarse(self.wish)
            if coarse is not None:
                self.frame = coarse
                self._place_cursor(coarse)
        frame = self.frame
        if self.seeking:
            return lambda: self._seek(wish.counted)
        if self._wanted is not None:
            wanted = self._wanted
            return lambda: self._find(wish.counted, wanted)
        if frame is not None and frame.wish == self.wish and (frame.exact or self.painter.fine_enough(frame)):
            patch = self._patch(frame)
            return None if self._looked(patch) else lambda: self._look(wish.counted, patch)
        return lambda: self._paint(wish.counted)

    def _still(self, wish: Wish) -> Progress:
        """Stops the work for a picture that is no longer wanted."""

        def check(share: float) -> None:
            del share
            if self.wish != wish:
                raise Cancelled

        return check

    def _paint(self, wish: Wish) -> None:
        try:
            frame = self.painter.paint(wish, self._still(wish))
            self._place_cursor(frame)
            self.frame = frame
            self._look(wish, self._patch(frame))
        except Cancelled:
            return

    def _seek(self, wish: Wish) -> None:
        """The cursor to the cell that wastes most sectors, where there is one."""
        try:
            frame = self.painter.paint(wish, self._still(wish))
            worst = self.painter.worst(frame, self._still(wish))
            if worst is not None:
                self._point(frame, *worst)
            self.frame, self.seeking = frame, False
            self.nothing_wasted = worst is None
            self._look(wish, self._patch(frame))
        except Cancelled:
            return

    def _find(self, wish: Wish, wanted: Sought) -> None:
        """The cursor to an access that is looked for, where there is one."""
        try:
            access = self.painter.find(wanted.selection, wanted.time, self._still(wish))
        except Cancelled:
            return
        self._wanted = None
        self.unfound = "" if access is not None else wanted.words
        if access is not None:
            self.time, self.address = float(access[0]), access[1]
            self.window = in_sight(self.window, self.end, self.time, self.space.place(self.address))
        self.wish = replace(wish, window=self.window)
        self._paint(self.wish)
        if access is not None and self.frame is not None:
            self._sent = self._patch(self.frame), wanted.selection

    def _look(self, wish: Wish, patch: Patch) -> None:
        try:
            self._detail = (wish, patch, self.painter.look(wish, patch, self._still(wish)))
        except Cancelled:
            return

    def _looked(self, patch: Patch) -> bool:
        return self._detail is not None and self.wish is not None and self._detail[:2] == (self.wish, patch)

    def _place_cursor(self, frame: Frame) -> None:
        """On the first picture, to the cell with most accesses."""
        if self.time >= 0 or not frame.counts.size:
            return
        counts = frame.cell_counts
        self._point(frame, *divmod(int(counts.argmax()), counts.shape[1]))

    def _point(self, frame: Frame, row: int, column: int) -> None:
        start, end = frame.times(column)
        low, high = frame.addresses(row)
        self.time, self.address = (start + end) / 2, (low + high) // 2

    def _patch(self, frame: Frame) -> Patch:
        return Patch(*frame.times(frame.column_at(self.time)), *frame.addresses(frame.row_at(self.address)))

    def read_out(self, frame: Frame) -> ReadOut:
        """What is under the cursor."""
        row, column = frame.row_at(self.address), frame.column_at(self.time)
        spot = self._patch(frame)
        number = self.space.band_of(spot.low)
        return ReadOut(
            spot=spot,
            band=None if number is None else self.map.bands[number],
            accesses=int(frame.cell_counts[row, column]),
            exact=frame.exact,
            detail=self._detail[2] if self._detail is not None and self._looked(spot) else None,
            code=self.painter.code,
            warps_a_block=self.map.accesses.start.shape[1],
            blocks=self.found.result.blocks,
        )

    # -- as text

    def draw(self, width: int, height: int, *, ascii_only: bool = False) -> list[Line]:
        """A head, the picture, the axis of time, the legend, and what is under the cursor."""
        canvas = Canvas(width, height)
        frame = self.frame
        if width < _SMALLEST[0] or height < _SMALLEST[1]:
            canvas.text(0, 0, f"this needs {_SMALLEST[0]}×{_SMALLEST[1]} cells", "warn")
        elif not self.map.bands:
            canvas.text(0, 0, "no access to global memory was recorded", "dim")
        elif frame is None or frame.wish.cells + gutter_of(self.map.bands, width) + 1 > width:
            canvas.text(0, 0, "being prepared", "dim")
        else:
            self._draw(canvas, frame, ascii_only=ascii_only)
        return canvas.lines(ascii_only=ascii_only)

    def _draw(self, canvas: Canvas, frame: Frame, *, ascii_only: bool) -> None:
        gutter = gutter_of(self.map.bands, canvas.width)
        self._draw_head(canvas)
        draw_gutter(canvas, 1, gutter, frame, self.map.bands, in_index=self.unit == "cycles and indices")
        draw_cells(canvas, gutter, 1, frame, self.colouring, ascii_only=ascii_only)
        told = _told(canvas.width)
        bottom = canvas.height - _AROUND - told + 1
        draw_time(canvas, gutter, bottom, frame, self.cycles_per_ns if self.unit == "time and bytes" else None)
        self._draw_cursor(canvas, frame, gutter, bottom)
        words = f"{legend(frame, self.colouring, ascii_only=ascii_only)} · {self.whose()}"
        canvas.text(0, bottom + 2, clip(words, canvas.width), "dim")
        for line, words in enumerate(self.read_out(frame).lines(canvas.width, told)):
            canvas.text(0, bottom + 3 + line, words, "" if line else "soft")

    def _draw_head(self, canvas: Canvas) -> None:
        totals = self.totals()
        lost = self.map.accesses.made is not None and self.map.survey.kept < self.map.accesses.made
        what, role = named(DMAT.title, DMAT.about), "warn" if lost else "dim"
        draw_head(canvas, what, self.found.which, self.found.name, totals, role)

    def totals(self) -> str:
        """How many accesses there were, and how many of them were kept."""
        kept, made = self.map.survey.kept, self.map.accesses.made
        if made is None:
            return f"{units.counted(kept, 'access')} kept, total unknown"
        if kept < made:
            return f"kept {units.count(kept)} of {units.counted(made, 'access')}"
        return f"{units.counted(kept, 'access')}"

    def _draw_cursor(self, canvas: Canvas, frame: Frame, gutter: int, bottom: int) -> None:
        row = frame.row_at(self.address)
        at = 0
        for strip in frame.strips:
            if row < at + strip.rows:
                column, line = gutter + frame.column_at(self.time), 1 + strip.top + row - at
                canvas.text(gutter - 1, line, "▌", "accent")
                canvas.text(column, bottom, "▲", "accent")
                canvas.tint(column, line, 1, 1, "cursor")
                return
            at += strip.rows

    def commands(self) -> Mapping[str, str]:
        """All that mean something for this launch."""
        without = set() if len(self.units_known()) > 1 else {"unit"}
        if self.selection.block is None and not self.painter.knows_kinds:
            without.add("select")
        return {name: words for name, (words, _) in MOVES.items() if name not in without}

    def press(self, command: str) -> str | None:
        """Do one of the commands; one that means nothing here does nothing."""
        self.nothing_wasted, self.unfound = False, ""
        return MOVES[command][1](self) if command in MOVES and self.map.bands else None

    def click(self, column: int, row: int) -> None:
        """Cursor to a cell; beside the picture only along the axis that was hit."""
        frame = self.frame
        if frame is None or self.wish is None:
            return
        gutter = self.gutter
        if column >= gutter:
            self.time = (
                frame.grid.start + (column - gutter + 0.5) * (frame.grid.end - frame.grid.start) / frame.wish.cells
            )
        at = 0
        for strip in frame.strips:
            if strip.top <= row - 1 < strip.top + strip.rows:
                low, high = frame.addresses(at + row - 1 - strip.top)
                self.address = (low + high) // 2
            at += strip.rows

    def leads_to(self) -> str:
        """The code, where the records name it."""
        if not self.painter.knows_kinds:
            return ""
        return "sass" if any(isinstance(line, Offset) for line in self.painter.code) else "ptx"

    def here(self) -> Spot:
        """The access under the cursor: that of the block and instruction with most there, unless it was sent to one."""
        frame = self.frame
        detail = None if self._detail is None else self._detail[2]
        if frame is None or detail is None or not detail.warps:
            return Spot() if frame is None else Spot(time=self.time)
        block, warp = divmod(detail.warps.most_common(1)[0][0], self.map.accesses.start.shape[1])
        sent = self._sent[1] if self._sent is not None and self._sent[0] == self._patch(frame) else Selection()
        line = self.ptx_line() if sent.line is None else self.painter.code[sent.line].line
        if sent.block is not None and sent.block != block:
            block, warp = sent.block, 0
        told = Spot.of_line(line)
        return replace(told, block=self.block_number(block), warp=warp, time=self.time, address=self.address)

    def go_to(self, spot: Spot) -> bool:
        """To the access of its line and block that is nearest to its time; of no line and block to the time."""
        wanted, here = sought(self, spot) if self.map.bands else None, self.here()
        if wanted is None:
            return False
        same_line = wanted.selection.line is None or here.shares_code(spot)
        same_block = wanted.selection.block is None or here.block == spot.block
        if not (same_line and same_block):
            self._wanted, self.selection = wanted, shown_with(self.selection, wanted.selection)
        return True

    def lacks(self, spot: Spot) -> str:
        """Most lines touch no memory, and not all blocks are measured."""
        return why_not(self, spot)

    def nowhere(self) -> str:
        """Where nothing was accessed, and where the records name no instruction."""
        if not self.painter.knows_kinds:
            return "these records do not tell which instruction made them: -p dmat does"
        return "no access is here: . goes to the next one in this row, ! to the worst"

    def ptx_line(self) -> int | None:
        """The instruction with most accesses under the cursor."""
        detail = None if self._detail is None else self._detail[2]
        if detail is None or not detail.lines:
            return None
        line = detail.lines.most_common(1)[0][0]
        return self.painter.code[line].line if line in self.painter.code else line

    def status(self) -> list[str]:
        """How the picture is to be read: colouring, part of the launch, what is not exact."""
        parts = [COLOURINGS[self.colouring], self.whose()]
        share = self.window.cycles / self.end
        if share < 1:
            parts.append(f"{share:.2%} of the time")
        if self.frame is not None and not self.frame.exact:
            parts.append("coarse")
        if self.nothing_wasted:
            parts.append("no visible access wastes a sector")
        if self.unfound:
            parts.append(self.unfound)
        parts.append("simulated" if self.found.simulated else self.map.accesses.clocks.words())
        return parts

    def take_over(self, before: View) -> None:
        """Keep colouring and unit; and where the memory is of as many bands the window and the cursor, as shares."""
        if not isinstance(before, Dmat):
            return
        self.colouring = before.colouring
        if self.colouring == "kinds" and not self.painter.knows_kinds:
            self.colouring = "bands"
        if before.unit in self.units_known():
            self.unit = before.unit
        if len(before.map.bands) == len(self.map.bands):
            scale = self.end / before.end
            window = before.window
            self.window = Window(window.start * scale, window.end * scale, window.low, window.high)
            if before.time >= 0 and self.map.bands:
                self.time = before.time * scale
                self.address = self.space.address(before.space.place(before.address))

    # -- as data

    def _counted(self) -> Frame | None:
        """The frame that is shown; before anything was, one of everything."""
        if self.frame is None and self.map.bands:
            work = self.prepare(_DATA_SIZE[0] + 12, _DATA_SIZE[1] + _AROUND + _told(_DATA_SIZE[0] + 12))
            if work is not None:
                work()
        return self.frame

    def record(self) -> Mapping[str, Any]:
        """Axes, bands, and the accesses of each cell, row by row; sectors and kinds are None if not asked for."""
        return data.record(self, self._counted())

    def cells(self) -> Iterator[Sequence[object]]:
        """One row per cell that has accesses."""
        return data.cells(self, self._counted())

    def plot(self, axes: Any) -> None:
        """The bands one below the other, darker where accesses are denser."""
        frame = self._counted()
        if frame is not None:
            data.plot(self, frame, axes)


def _told(width: int) -> int:
    """Lines of what is under the cursor."""
    return 2 if width >= _WIDE else 3


def _open(source: Source, progress: Progress) -> View:
    progress(0.0)
    found = probe_results.read(source)
    memory = read_launch_memory(source.trace, found.launch)
    tensors = read_tensors(source.trace, None if found.launch is None else found.launch.time_ns)
    accesses = accesses_of(found, memory)
    folder = source.kernel.folder
    code = access_lines(folder) if folder is not None and not accesses.compact else {}
    return Dmat(found, read_map(accesses, memory, tensors, progress), code)


DMAT: Final = probe_view(
    "dmat",
    "DMAT",
    "memory accesses over time, as a density map of the address space, from -p dmat or dmat_compact",
    _open,
    explanation=EXPLANATION,
    order=10,
    drawn=True,
)
