"""Progress of each warp over time: one line per warp, time to the right, iterations upwards."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.canvas import CYCLES, TIME, Canvas, draw_x_axis, label_x_axis
from tui_probe.draw.shorten import draw_head
from tui_probe.draw.spans import clip, pad
from tui_probe.draw.view import Drawing, Spot
from tui_probe.probekit import probe_results
from tui_probe.probekit.probe_results import cycles_text
from tui_probe.probekit.timelines.drawing import Window, draw_marks
from tui_probe.records.distribution import distribution

from .warp_timeline import draw_picture, pace_lines, pace_picture, warp_timeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.records.timeline import Intervals

    from .warp_timeline import PacePicture, WarpTimeline

_LINES_AROUND: Final = 5
"""Lines that are not the picture: a head, the axis and its labels, the warps, the clocks."""
_MAX_WARPS: Final = 4096
"""Warps with a line; of more, that many are taken at even distances, and those that stand out."""
_NAMED_STRAGGLERS: Final = 3
_COLUMNS: Final = ("block", "warp", "sm", "start", "end", "arrivals", "stands_out")


class ProgressView(Drawing):
    """One launch. Pictures are computed in ``prepare``; what is pressed moves the window and the cursor."""

    def __init__(self, source: WarpTimeline, heading: str) -> None:
        self.launch = launch = source.launch
        self.progress = source.progress
        self.heading = heading
        self.title = f"Warp progress of {launch.launch_label} {launch.kernel_name}"
        warps = launch.timeline.warps
        stragglers = _stragglers(source)
        drawn_warps = _drawn_warps(len(warps), stragglers)
        self.paces = pace_lines(source.progress, warps.take(drawn_warps))
        self.is_straggler = np.isin(drawn_warps, stragglers)
        self.stragglers = np.searchsorted(drawn_warps, stragglers)
        """Places of the stragglers among the warps that are drawn, the longest first."""
        self.top = max(int(self.paces.count.max()), 1)
        self.lengths = distribution(warps.duration)
        self.window = Window(launch.timeline.span, 1)
        self.in_time = False
        self.pointed: int | None = None
        self._picture: PacePicture | None = None

    @property
    def _gutter(self) -> int:
        return len(units.count(self.top)) + 2

    @property
    def shows_warps(self) -> bool:
        return True

    @property
    def cycles(self) -> float:
        return self.window.full_width

    def stretch(self, cycles: float) -> None:
        """An axis of time that reaches further than the launch took."""
        self.window.set_min_width(cycles)

    def prepare(self, width: int, height: int) -> Callable[[], None] | None:
        """Put the lines into a picture of the window, unless that is the last one."""
        window = self.window
        window.resize(max(width - self._gutter, 1), max(height - _LINES_AROUND, 1))
        window_range, size = (window.start, window.width), (window.cells, window.height)
        picture = self._picture
        if (
            picture is not None
            and (picture.begin, picture.width) == window_range
            and picture.dots.shape == (size[1] * 4, size[0] * 2)
        ):
            return None

        def work() -> None:
            self._picture = pace_picture(self.paces, self.is_straggler, self.top, window_range, *size)

        return work

    def draw(self, width: int, height: int, *, ascii_only: bool = False) -> list[Line]:
        """A head, the lines, an axis, how much warps differ, and how well clocks are aligned."""
        canvas = Canvas(width, height)
        gutter, rows = self._gutter, max(height - _LINES_AROUND, 1)
        self._draw_head(canvas)
        if self._picture is not None:
            draw_picture(canvas, gutter, 1, self._picture, ascii_only=ascii_only)
        canvas.text(0, 1, pad(units.count(self.top), gutter - 1, right=True), "dim")
        canvas.text(0, rows, pad("0", gutter - 1, right=True), "dim")
        self._draw_stragglers(canvas, gutter, rows)
        self._draw_axis(canvas, gutter, rows + 1)
        for i, text in enumerate((self._spread_text(), self._clock_text())):
            canvas.text(0, rows + 3 + i, clip(text, width), "dim")
        return canvas.lines(ascii_only=ascii_only)

    def _draw_head(self, canvas: Canvas) -> None:
        line = self.paces.line
        loop = (
            "no loop: each warp is a line from its start to its end"
            if line is None
            else f"vertical: iterations of the loop at line {line}"
        )
        totals = f"{units.counted(len(self.launch.timeline.warps), 'warp')}, {loop}"
        draw_head(canvas, self.heading, self.launch.launch_label, self.launch.kernel_name, totals)

    def _draw_stragglers(self, canvas: Canvas, x: int, rows: int) -> None:
        """``!block.warp`` at the end of those that stand out most."""
        for place in self.stragglers[:_NAMED_STRAGGLERS].tolist():
            warps = self.paces.warps
            column = self.window.column(float(warps.end[place]))
            text = f"!{warps.block[place]}.{warps.warp[place]}"
            row = rows - round(self.paces.arrivals[place] / self.top * (rows - 1))
            if 0 <= column <= self.window.cells:
                canvas.text(x + min(column, self.window.cells - len(text)), row, text, "bad")

    def _draw_axis(self, canvas: Canvas, x: int, y: int) -> None:
        start, end, unit = self.window.start, self.window.end, CYCLES
        if self.in_time and self.launch.clock_khz:
            start, end, unit = (start * 1e6 / self.launch.clock_khz, end * 1e6 / self.launch.clock_khz, TIME)
        draw_x_axis(canvas, x, y, self.window.cells, start, end, unit)
        canvas.text(0, y + 1, "time" if unit is TIME else "cycles", "dim")
        draw_marks(canvas, x, y, self.window, {"▲": self.window.time})

    def _spread_text(self) -> str:
        lengths = self.lengths
        if lengths is None:
            return ""
        spread = "" if lengths.spread is None else f", spread {lengths.spread:.0%} (p1–p99)"
        stragglers = "no stragglers"
        if len(self.stragglers):
            stragglers = f"! {units.counted(len(self.stragglers), 'straggler')}"
        return f"median {cycles_text(lengths.median, self.launch.clock_khz)}{spread}, {stragglers}"

    def _clock_text(self) -> str:
        parts = [self.launch.timeline.clocks.summary()]
        if len(self.paces.warps) < len(self.launch.timeline.warps):
            parts.append(f"{units.counted(len(self.paces.warps), 'warp')} drawn")
        if self.paces.cut_warps:
            parts.append(f"{units.counted(self.paces.cut_warps, 'warp')} had more iterations than were recorded")
        parts += self.launch.exclusion_notes()
        return " · ".join([*parts, *(["simulated"] if self.launch.simulated else [])])

    def commands(self) -> Mapping[str, str]:
        return {name: text for name, (text, _) in _MOVES.items() if name != "unit" or self.launch.clock_khz}

    def press(self, command: str) -> str | None:
        """Run a command; one that means nothing here does nothing."""
        move = _MOVES.get(command)
        return None if move is None else move[1](self)

    def click(self, column: int, row: int) -> None:
        """Cursor to a time; a click next to the picture means none."""
        del row
        if column >= self._gutter:
            self.window.move_to_cell(column - self._gutter)

    def point(self, step: int) -> str | None:
        """Move to the end of the next flagged warp."""
        if not len(self.stragglers):
            return "no stragglers"
        self.pointed = 0 if self.pointed is None else (self.pointed + step) % len(self.stragglers)
        self.window.move_to(float(self.paces.warps.end[self.stragglers[self.pointed]]))
        return None

    def spot(self) -> Spot:
        """The time, and the warp that was pointed at."""
        if self.pointed is None:
            return Spot(time=self.window.time)
        warps, place = self.paces.warps, self.stragglers[self.pointed]
        return Spot(block=int(warps.block[place]), warp=int(warps.warp[place]), time=self.window.time)

    def go_to(self, spot: Spot) -> bool:
        """Move to the end of a flagged warp, else to the time, else to where the block ends."""
        warps, time = self.paces.warps, spot.time
        if spot.block is not None:
            at_spot = (warps.block == spot.block) & ((warps.warp == spot.warp) | (spot.warp is None))
            flagged = np.flatnonzero(at_spot[self.stragglers])
            if len(flagged):
                self.pointed = int(flagged[0])
                self.window.move_to(float(warps.end[self.stragglers[self.pointed]]))
                return True
            if time is None and at_spot.any():
                time = float(warps.end[at_spot].max())
        if time is None:
            return False
        self.pointed = None
        self.window.move_to(time)
        return True

    def status(self) -> list[str]:
        """Return the state at the cursor: how many warps run, their progress, and the warp that was pointed at."""
        parts = [f"at {units.count(round(self.window.time))}"]
        values = self.paces.counts_at(np.array([self.window.time]))[:, 0]
        values = values[~np.isnan(values)]
        parts.append(f"{units.counted(len(values), 'warp')} of {units.count(len(self.paces.warps))} running")
        if len(values):
            min_count, median, max_count = np.percentile(values, (0, 50, 100))
            parts.append(f"iterations {min_count:.1f} to {max_count:.1f}, median {median:.1f}")
        if self.pointed is not None:
            parts.append(self._straggler_text(int(self.stragglers[self.pointed])))
        return parts

    def _straggler_text(self, place: int) -> str:
        warps, lengths = self.paces.warps, self.lengths
        length = int(warps.duration[place])
        times = f", {length / lengths.median:.1f}× the median" if lengths and lengths.median else ""
        warp_text = (
            f"{self.launch.block_label(int(warps.block[place]))} warp {warps.warp[place]} on SM {warps.sm[place]}"
        )
        return f"{warp_text}: {cycles_text(length, self.launch.clock_khz)}{times}"

    def choices(self) -> Mapping[str, Any]:
        """Unit, window and cursor, and whether that is on a warp that stands out."""
        return {"in_time": self.in_time, "window": replace(self.window), "pointed": self.pointed is not None}

    def choose(self, choices: Mapping[str, Any]) -> None:
        """All that this launch has; the window where that was not everything."""
        self.in_time = choices["in_time"] and self.launch.clock_khz is not None
        self.window.take_over(choices["window"])
        ending = np.flatnonzero(self.paces.warps.end[self.stragglers] == self.window.time)
        self.pointed = int(ending[0]) if choices["pointed"] and len(ending) else None

    def record(self) -> dict[str, Any]:
        """The launch, its loops, how long warps lived (cycles), and the warps in columns."""
        rows = list(zip(*self._rows(), strict=True))
        return {
            **self.launch.record(),
            "main_loop": self.paces.line,
            "loops": [
                {"line": loop.line, "warps": loop.warps, "iterations": loop.iterations,
                 "cycles_per_iteration": loop.cycles_per_iteration}
                for loop in self.progress.loops
            ],
            "warp_cycles": None if self.lengths is None else self.lengths.record(),
            "warps": dict(zip(_COLUMNS, map(list, rows), strict=True)),
        }  # fmt: skip

    def cells(self) -> Iterator[Sequence[object]]:
        """One row per warp that is drawn."""
        yield _COLUMNS
        yield from self._rows()

    def _rows(self) -> Iterator[Sequence[object]]:
        warps: Intervals = self.paces.warps
        columns = (warps.block, warps.warp, warps.sm, warps.start, warps.end, self.paces.arrivals, self.is_straggler)
        return zip(*(column.tolist() for column in columns), strict=True)

    def plot(self, axes: Any) -> None:
        """One line per warp; those that stand out on top."""
        paces = self.paces
        for place in np.argsort(self.is_straggler, kind="stable").tolist():
            points = slice(int(paces.offsets[place]), int(paces.offsets[place + 1]))
            look = {"color": "C3"} if self.is_straggler[place] else {"color": "C0", "alpha": 0.3}
            axes.plot(paces.time[points], paces.count[points], linewidth=0.8, **look)
        axes.set_xlim(self.window.start, self.window.end)
        label_x_axis(axes, float(self.window.start), float(self.window.end), CYCLES)
        axes.set_xlabel("cycles")
        axes.set_ylabel("iterations of the main loop")


def _stragglers(source: WarpTimeline) -> NDArray[np.int64]:
    """Places of the stragglers among the warps of the timeline, the longest first."""
    timeline = source.launch.timeline
    warp_numbers = timeline.warps.block * timeline.warps_per_block + timeline.warps.warp
    order = np.argsort(warp_numbers)
    stragglers, sample = source.progress.stragglers(), timeline.sample
    if sample is not None:
        stragglers[:, 0] = sample.blocks.start + sample.blocks.step * stragglers[:, 0]
    straggler_numbers = stragglers[:, 0] * timeline.warps_per_block + stragglers[:, 1]
    positions = np.searchsorted(warp_numbers[order], straggler_numbers).clip(max=max(len(warp_numbers) - 1, 0))
    places: NDArray[np.int64] = order[positions[warp_numbers[order][positions] == straggler_numbers]]
    return places


def _drawn_warps(count: int, stragglers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ascending places of the warps that are drawn."""
    if count <= _MAX_WARPS:
        return np.arange(count)
    return np.union1d(np.linspace(0, count - 1, _MAX_WARPS).astype(np.int64), stragglers[:_MAX_WARPS])


def _switch_unit(view: ProgressView) -> str:
    view.in_time = not view.in_time and view.launch.clock_khz is not None
    return f"time, by {view.launch.clock_origin}" if view.in_time else "cycles"


def _zoom(view: ProgressView, factor: float) -> str | None:
    return None if view.window.zoom(factor) else "zoom limit reached"


def _go_to_worst(view: ProgressView) -> str | None:
    """The end of the warp that stands out most, else of the longest one."""
    view.pointed = None
    if len(view.stragglers):
        return view.point(1)
    warps = view.paces.warps
    if not len(warps) or warps.duration.max() == warps.duration.min():
        return "no stragglers: all warps take equally long"
    longest_warp = int(warps.duration.argmax())
    view.window.move_to(float(warps.end[longest_warp]))
    return (
        f"no stragglers; the longest warp, block {warps.block[longest_warp]} warp {warps.warp[longest_warp]}, ends here"
    )


_MOVES: Final[dict[str, tuple[str, Callable[[ProgressView], str | None]]]] = {
    "left": ("cursor left", lambda view: view.window.move(-1)),
    "right": ("cursor right", lambda view: view.window.move(1)),
    "page_left": ("window left", lambda view: view.window.move_pages(-1)),
    "page_right": ("window right", lambda view: view.window.move_pages(1)),
    "zoom_in": ("zoom in at the cursor", lambda view: _zoom(view, 0.5)),
    "zoom_out": ("zoom out", lambda view: _zoom(view, 2)),
    "fit": ("show the whole launch", lambda view: view.window.show_all()),
    "start": ("go to the start of the launch", lambda view: view.window.move_to(0)),
    "end": ("go to the end of the launch", lambda view: view.window.move_to(view.window.span)),
    "next": ("go to the next straggler", lambda view: view.point(1)),
    "previous": ("go to the previous straggler", lambda view: view.point(-1)),
    "worst": ("go to the end of the slowest warp", _go_to_worst),
    "unit": ("switch between cycles and time", _switch_unit),
}


def open_view(source: ViewSource, progress: Progress, heading: str) -> ProgressView:
    """Read the warps of a launch."""
    return ProgressView(warp_timeline(probe_results.read_result(source), progress), heading)
