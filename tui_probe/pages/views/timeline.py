"""Page ``timeline``: blocks and warps on SMs over time."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.canvas import CYCLES, TIME, Canvas, draw_x_axis, label_x_axis
from tui_probe.draw.shorten import draw_head, view_heading
from tui_probe.draw.spans import clip
from tui_probe.errors import TraceError
from tui_probe.pages.views.timeline_window import FRAME_LINES, TIMELINE_MOVES, ShownRows, commands
from tui_probe.probekit import probe_results
from tui_probe.probekit.measured import known_probe
from tui_probe.probekit.page_kinds import ViewKind
from tui_probe.probekit.probe_results import cycles_text
from tui_probe.probekit.probe_view import no_result_reason
from tui_probe.probekit.registry import probe_names_where
from tui_probe.probekit.timelines.drawing import draw_marks, draw_rows, length_legend, row_height
from tui_probe.probekit.timelines.rows import ORDER_LABELS, timeline_rows
from tui_probe.records.distribution import distribution

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.probekit.timelines.rows import TimelineRows

_CSV_COLUMNS: Final = ("sm", "slot", "block", "warp", "start", "end")
_PLOT_CELLS: Final = 1200
_PLOT_LABELS: Final = 40


class TimelineView(ShownRows):
    """One launch as it is drawn, moved about in, and given to others."""

    _time_column = 0
    """Column of the first cell of time, as drawn last: a narrow page cuts the names."""
    _row_range = range(0)
    """Lines of the page with rows, as drawn last."""

    def draw(self, width: int, height: int, *, ascii_only: bool = False) -> list[Line]:
        """Draw a head, the rows, an axis, the tail, and how well the clocks of the SMs are aligned."""
        canvas = Canvas(width, height)
        rows = self.rows
        if rows is None:
            canvas.text(0, 0, "being prepared", "dim")
            return canvas.lines(ascii_only=ascii_only)
        self._row_range = range(0)
        if height <= FRAME_LINES:
            canvas.text(0, 0, f"this page needs {FRAME_LINES + 1} lines: enlarge the panel or the terminal", "warn")
            return canvas.lines(ascii_only=ascii_only)
        self.follow(rows)
        time_column = self._time_column = min(self._gutter, width // 2)
        self.row_height = row_height(rows, height - FRAME_LINES)
        self.resize(width - time_column, (height - FRAME_LINES) // self.row_height)
        self._draw_head(canvas)
        lengths = self.lengths(rows.selection.level)
        drawn_signs = draw_rows(canvas, time_column, 1, rows, self.window, lengths, self.row_height)
        bottom = 1 + min(rows.lines, self.window.height) * self.row_height
        self._row_range = range(1, bottom)
        self._draw_axis(canvas, time_column, bottom)
        x = 0
        for text, role in length_legend(lengths, width, drawn_signs):
            canvas.text(x, bottom + 2, text, role)
            x += len(text)
        for i, sentence in enumerate((self._tail_text(), self._clock_text())):
            canvas.text(0, bottom + 3 + i, clip(sentence, width), "dim")
        return canvas.lines(ascii_only=ascii_only)

    def _draw_head(self, canvas: Canvas) -> None:
        sms = len(self.timeline.sms)
        totals = (
            f"{units.counted(len(self.timeline.blocks), 'block')} on {sms - len(self.timeline.idle_sms)} of "
            f"{units.counted(sms, 'SM')}, {cycles_text(self.timeline.span, self.launch.clock_khz)}"
        )
        draw_head(
            canvas,
            view_heading(KIND.title, KIND.description),
            self.launch.launch_label,
            self.launch.kernel_name,
            totals,
        )

    def _draw_axis(self, canvas: Canvas, x: int, y: int) -> None:
        start, end, unit = self.window.start, self.window.end, CYCLES
        if self.shows_time and self.launch.clock_khz:
            start, end, unit = (start * self._ns, end * self._ns, TIME)
        draw_x_axis(canvas, x, y, self.window.cells, start, end, unit)
        canvas.text(0, y + 1, "time" if unit is TIME else "cycles", "dim")
        marks = {"T": float(self.tail.start)} if self.tail is not None and self.tail.cycles else {}
        draw_marks(canvas, x, y, self.window, marks)
        for mark in self.marks:
            draw_marks(canvas, x, y, self.window, {"×": mark})
        draw_marks(canvas, x, y, self.window, {"▲": self.window.time})

    @property
    def _ns(self) -> float:
        """Nanoseconds per cycle at the device's clock."""
        return 1e6 / (self.launch.clock_khz or 1)

    def _tail_text(self) -> str:
        tail, span = self.tail, self.timeline.span
        text = "no tail: all SMs end at the same time"
        if tail is None:
            text = "tail unknown"
        elif tail.cycles:
            text = (
                f"T tail: last {units.count(tail.cycles)} cycles ({tail.cycles / span:.0%}), "
                f"{tail.idle_share:.0%} idle, {tail.lost_share:.1%} of SM time lost, SM {tail.last_sm} ends last"
            )
        return ", ".join([text, *self.launch.exclusion_notes()])

    def _clock_text(self) -> str:
        choice = self.selection if self.rows is None else self.rows.selection
        rows = f"{choice.level}s"
        rows += "" if choice.sm is None else f", SM {choice.sm} only"
        rows += "" if choice.order == "number" else f" {ORDER_LABELS[choice.order]}"
        parts = [rows, self.timeline.clocks.summary()]
        if self.launch.simulated:
            parts.append("simulated")
        return " · ".join(parts)

    def commands(self) -> Mapping[str, str]:
        return commands(self)

    def press(self, command: str) -> str | None:
        """Run a command; one that means nothing here does nothing."""
        move = TIMELINE_MOVES.get(command)
        return None if move is None or self.rows is None else move[1](self)

    def click(self, column: int, row: int) -> None:
        """Cursor to a cell; a click next to the rows moves it along time only."""
        if not self._row_range:
            return
        if column >= self._time_column:
            self.window.move_to_cell(column - self._time_column)
        if row in self._row_range:
            self.window.move_lines(
                self.window.top + (row - self._row_range.start) // self.row_height - self.window.line
            )

    def status(self) -> list[str]:
        """Texts about the cursor: SM, block, time, duration, and the gap before it."""
        rows = self.rows
        if rows is None:
            return []
        mark_parts = [self.mark_distance_text()] if len(self.marks) == 2 else []
        index = self.interval_at_cursor(rows)
        if index is None:
            return [self.place_text(rows), "ran no block", *mark_parts]
        intervals, khz = rows.intervals, self.launch.clock_khz
        start, end = int(intervals.start[index]), int(intervals.end[index])
        block_text = self.launch.block_label(int(intervals.block[index])) + (
            f" warp {intervals.warp[index]}" if intervals.warp[index] >= 0 else ""
        )
        parts = [f"SM {intervals.sm[index]} slot {intervals.slot[index]}", block_text]
        parts.append(f"{units.count(start)} to {units.count(end)}")
        gap = self._gap_before(rows, index)
        if gap is not None:
            parts.append(f"gap before: {units.count(gap)}")
        state_text = "" if start <= self.window.time < end else "not running at the cursor; duration "
        return [*parts, f"{state_text}{cycles_text(end - start, khz)}", *mark_parts]

    def pinned_parts(self) -> int:
        """Return the place, and which block or warp it is."""
        return 2

    def _gap_before(self, rows: TimelineRows, index: int) -> int | None:
        """Cycles between the interval that was in its slot before and this one. None for the first in its slot."""
        intervals = rows.intervals
        place = (intervals.sm, intervals.slot, intervals.warp)
        for i in range(index - 1, int(rows.offsets[np.searchsorted(rows.offsets, index, side="right") - 1]) - 1, -1):
            if all(values[i] == values[index] for values in place):
                return int(intervals.start[index] - intervals.end[i])
        return None

    def record(self) -> dict[str, Any]:
        """Return the launch, its tail and clocks, and its blocks in columns; cycles."""
        blocks = self.timeline.blocks
        lengths = distribution(blocks.duration)
        return {
            **self.launch.record(),
            "tail": None if self.tail is None else asdict(self.tail),
            "block_cycles": None if lengths is None else lengths.record(),
            "blocks": {name: getattr(blocks, name).tolist() for name in _CSV_COLUMNS if name != "warp"},
        }

    def cells(self) -> Iterator[Sequence[object]]:
        """Yield a row per block, or per warp if these are shown."""
        intervals = self.timeline.warps if self.selection.level == "warp" else self.timeline.blocks
        yield (*_CSV_COLUMNS, "cycles")
        for i in range(len(intervals)):
            warp = None if intervals.warp[i] < 0 else int(intervals.warp[i])
            start, end = int(intervals.start[i]), int(intervals.end[i])
            yield int(intervals.sm[i]), int(intervals.slot[i]), int(intervals.block[i]), warp, start, end, end - start

    def plot(self, axes: Any) -> None:
        """Plot every row as a strip, darker where more of its slots ran a block."""
        rows = self.rows or timeline_rows(self.timeline, self.selection, self.lengths(self.selection.level))
        edges = np.unique(np.linspace(self.window.start, self.window.end, _PLOT_CELLS).astype(np.int64))
        share = rows.busy_cycles.covered_cycles(0, rows.lines, edges).sum(axis=0) / (
            rows.capacity[:, np.newaxis].clip(1) * np.diff(edges)
        )
        axes.imshow(share, aspect="auto", cmap="Blues", vmin=0, vmax=1, interpolation="nearest",
                    extent=(edges[0], edges[-1], rows.lines, 0))  # fmt: skip
        if self.tail is not None:
            axes.axvline(self.tail.start, linestyle=":", label="tail")
        label_x_axis(axes, float(edges[0]), float(edges[-1]), CYCLES)
        axes.set_xlabel("cycles")
        lines = range(0, rows.lines, -(-rows.lines // _PLOT_LABELS))
        axes.set_yticks([line + 0.5 for line in lines], [rows.label(line).strip() for line in lines])


def _unavailable_reason(source: ViewSource) -> str | None:
    return no_result_reason(source, *KIND.probes)


def _open_view(source: ViewSource, progress: Progress) -> TimelineView:
    result = probe_results.read_result(source)
    read_timeline = known_probe(source.kernel).timeline
    if read_timeline is None:
        raise TraceError(f"{result.result.path}: -p {result.probe} records no times")
    return TimelineView(read_timeline(result, progress))


KIND: Final = ViewKind(
    "timeline",
    "Timeline",
    "blocks and warps on SMs over time: gaps, stragglers, idle SMs, the tail",
    _unavailable_reason,
    _open_view,
    explanation=(
        "One row per SM, per block slot of an SM, or per warp; time runs to the right. Height is the share of slots"
        " that run a block. With enough space, each block is a bar with its number. Colour and thickness of a bar show"
        " its duration relative to the median: below 0.9, about 1, above 1.1, or far longer. If several blocks share a"
        " cell, the block with most cycles sets the colour.",
        "“!” marks a block or warp that takes far longer than the others. “–” marks an SM without blocks. “T” marks"
        " the start of the tail: the last part of the launch, in which at least one SM is idle. A gap is the time"
        " until the next block starts in the same slot.",
        "Each SM has its own clock; the line below the axis shows how precisely these clocks are aligned.",
    ),
    order=30,
    short_title="Time",
    is_drawing=True,
    fed_by=lambda: probe_names_where(lambda probe: probe.timeline),
)
