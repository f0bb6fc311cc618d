"""Window and cursor of the timeline page, the rows in it, and the commands that move it: zoom, jump, group."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tui_probe.draw.view import Drawing, Spot
from tui_probe.probekit.probe_results import cycles_text
from tui_probe.probekit.record_counts import DETAIL_ADVICE
from tui_probe.probekit.timelines.drawing import Window, gutter_width
from tui_probe.probekit.timelines.rows import (
    ALL,
    LEVELS,
    ORDER_LABELS,
    ORDERS,
    RowSelection,
    length_grades,
    timeline_rows,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tui_probe.draw.view import View
    from tui_probe.probekit.timelines.launch import LaunchTimeline
    from tui_probe.probekit.timelines.rows import LengthGrades, RowLevel, TimelineRows
    from tui_probe.records.timeline import Tail

    Move = Callable[["ShownRows"], str | None]

FRAME_LINES: Final = 6
"""Lines that are not rows: a head, the axis and its labels, the legend, the tail, the clocks."""
_ZOOM: Final = 0.5
"""Width of the window after zooming in, as a part of the width before."""


class _SentCursor(NamedTuple):
    """The block or SM that the cursor was sent to, and where it was put: others may be there, too."""

    spot: Spot
    time: float
    """Cycles from the start of the launch."""
    line: int

    def is_at(self, time: float, line: int) -> bool:
        return (self.time, self.line) == (time, line)


class ShownRows(Drawing):
    """One launch. Rows are made in ``prepare``; what is pressed changes the window, the marks, or the rows wanted."""

    window: Window
    selection: RowSelection
    """The rows that are wanted; ``rows`` are those that there are."""
    rows: TimelineRows | None
    fits_all: bool
    """True if all rows have to fit, for any height."""
    marks: list[float]
    shows_time: bool
    row_height: int
    """Lines of the screen that a row takes."""

    def __init__(self, launch: LaunchTimeline) -> None:
        self.launch, self.timeline = launch, launch.timeline
        self.title = f"Timeline of {launch.launch_label} {launch.kernel_name}"
        self.tail = self.timeline.tail()
        self.selection = RowSelection()
        self.fits_all = True
        self.shows_time = False
        self.marks = []
        self.window = Window(self.timeline.span, 1)
        self.row_height = 1
        self.rows = None
        self._followed_rows: TimelineRows | None = None
        self._start_place: tuple[int, int, int] | None = None
        """SM, slot and warp of the row that the cursor begins on."""
        self._lines_above: int | None = None
        """Lines of the window above that row; None to have it in the middle."""
        self._sent_cursor: _SentCursor | None = None
        """None if the cursor was moved otherwise."""
        self._gutter = 0
        """Cells that the names of the rows need."""

    @cached_property
    def _warp_lengths(self) -> LengthGrades:
        return length_grades(self.timeline.warps.duration)

    @cached_property
    def _block_lengths(self) -> LengthGrades:
        return length_grades(self.timeline.blocks.duration)

    @property
    def shows_warps(self) -> bool:
        return self.selection.level == "warp"

    def lengths(self, level: RowLevel) -> LengthGrades:
        """Return the median of blocks, or of warps where these are shown, and beyond which cycles one stands out."""
        return self._warp_lengths if level == "warp" else self._block_lengths

    @property
    def cycles(self) -> float:
        return self.window.full_width

    def stretch(self, cycles: float) -> None:
        """Let the axis of time reach further than the launch took."""
        self.window.set_min_width(cycles)

    def prepare(self, width: int, height: int) -> Callable[[], None] | None:
        """Make the rows that are wanted; where all have to fit, as many share a line as it takes."""
        del width
        if self.fits_all:
            rows_per_line = -(-self.launch.row_count(self.selection) // max(height - FRAME_LINES, 1))
            self.selection = replace(self.selection, rows_per_line=rows_per_line)
        if self.rows is not None and self.rows.selection == self.selection:
            return None
        selection = self.selection

        def work() -> None:
            self.rows = timeline_rows(self.timeline, selection, self.lengths(selection.level))

        return work

    def cursor_line(self, rows: TimelineRows) -> int:
        """Return the line of the cursor, in rows that may have come after it was last drawn."""
        return min(self.window.line, rows.lines - 1)

    def follow(self, rows: TimelineRows) -> None:
        """Move the cursor to the same row among other rows, or to the first row of the same SM."""
        previous, self._followed_rows = self._followed_rows, rows
        if previous is rows:
            return
        self._gutter = gutter_width(rows)
        if previous is None:
            self.window.set_lines(
                rows.lines,
                0 if self._start_place is None else rows.line_of_place(*self._start_place),
                self._lines_above,
            )
            return
        place, spot = self._cursor_subject(previous)
        self.window.set_lines(rows.lines, rows.line_of_place(*place))
        self._sent_cursor = None if spot is None else _SentCursor(spot, self.window.time, self.window.line)

    def resize(self, cells: int, height: int) -> None:
        """Resize the window; the cursor stays on what it was sent to."""
        sent = self._sent_cursor
        was_at = sent is not None and sent.is_at(self.window.time, self.window.line)
        self.window.resize(cells, height)
        if sent is not None and was_at:
            self._sent_cursor = _SentCursor(sent.spot, self.window.time, self.window.line)

    def _cursor_subject(self, rows: TimelineRows) -> tuple[tuple[int, int, int], Spot | None]:
        """SM, slot and warp of what is under the cursor, where a line may hold several, and the block that it is."""
        index, sent = self.interval_at_cursor(rows), self._sent_spot(rows)
        if index is None:
            return self._cursor_place(rows), None if sent is None else replace(sent, block=None, warp=None)
        start, end = rows.intervals.start[index], rows.intervals.end[index]
        is_running = bool(start <= self.window.time < end)
        return rows.place_of_interval(index), self._spot_of(rows, index) if is_running else None

    def interval_at_cursor(self, rows: TimelineRows) -> int | None:
        """Return the interval under the cursor: the one that it was sent to, else the latest to start there."""
        index, sent = self.sent_interval(rows), self._sent_spot(rows)
        return (
            rows.interval_at(self.cursor_line(rows), self.window.time, sent.sm if sent else None)
            if index is None
            else index
        )

    def sent_interval(self, rows: TimelineRows) -> int | None:
        """Block that the cursor was sent to, if it was not moved since."""
        sent = self._sent_spot(rows)
        return (
            None
            if sent is None or sent.block is None
            else rows.find_interval(sent.block, sent.warp, self.cursor_line(rows))
        )

    def _sent_spot(self, rows: TimelineRows) -> Spot | None:
        """Interval that the cursor was sent to, if it was not moved since."""
        sent = self._sent_cursor
        return sent.spot if sent is not None and sent.is_at(self.window.time, self.cursor_line(rows)) else None

    def _cursor_place(self, rows: TimelineRows) -> tuple[int, int, int]:
        """SM, slot and warp of the row that the cursor was sent to, else of the first one of its line."""
        sent = self._sent_spot(rows)
        return rows.place_of_line(self.cursor_line(rows)) if sent is None or sent.sm is None else (sent.sm, ALL, ALL)

    def place_text(self, rows: TimelineRows) -> str:
        """Return the name of the SM that the cursor was sent to, else of the line, which may stand for several."""
        sent = self._sent_spot(rows)
        return rows.label(self.cursor_line(rows)) if sent is None or sent.sm is None else f"SM {sent.sm}"

    def point_to(self, rows: TimelineRows, index: int, time: float | None = None) -> None:
        """Move the cursor to an interval, at a time of it if one is given."""
        self.window.move_to(rows.visible_time(index) if time is None else time)
        self._send_cursor(rows.line_of_interval(index), self._spot_of(rows, index))

    def _send_cursor(self, line: int, spot: Spot) -> None:
        self.window.move_lines(line - self.window.line)
        self._sent_cursor = _SentCursor(spot, self.window.time, self.window.line)

    def _spot_of(self, rows: TimelineRows, index: int) -> Spot:
        intervals = rows.intervals
        warp = int(intervals.warp[index])
        return Spot(block=int(intervals.block[index]), warp=None if warp < 0 else warp, sm=int(intervals.sm[index]))

    def spot(self) -> Spot:
        """Return the block that is under the cursor, and when."""
        rows = self.rows
        if rows is None:
            return Spot()
        index = self.interval_at_cursor(rows)
        if index is None:
            return Spot(sm=self._cursor_place(rows)[0], time=self.window.time)
        return replace(self._spot_of(rows, index), time=self.window.time)

    def go_to(self, spot: Spot) -> bool:
        """Move to the block, at the time if it runs then; without a block to the time, in the row of the SM."""
        rows = self.rows
        if rows is None or not spot.in_run:
            return False
        self.follow(rows)
        if spot.block is not None:
            index = rows.find_interval(spot.block, spot.warp)
            if index is None:
                return False
            start, end = int(rows.intervals.start[index]), int(rows.intervals.end[index])
            running_times = (time for time in (spot.time, self.window.time) if time is not None and start <= time < end)
            if self.interval_at_cursor(rows) != index or spot.time is not None:
                self.point_to(rows, index, next(running_times, None))
            return True
        if spot.time is not None:
            self.window.move_to(spot.time)
        if spot.sm is not None:
            self._send_cursor(rows.line_of_place(spot.sm, ALL, ALL), Spot(sm=spot.sm))
        return True

    def missing_reason(self, spot: Spot) -> str:
        """Return why a block is not shown: rows of one SM only are shown, or it was not measured."""
        if spot.block is None or self.rows is None:
            return ""
        if self.selection.sm is not None and bool((self.timeline.blocks.block == spot.block).any()):
            return f"block {spot.block} did not run on SM {self.selection.sm}; press x to show all SMs"
        return f"block {spot.block} was not recorded"

    def mark_distance_text(self) -> str:
        """Return the time between the two marks as text."""
        return f"× to ×: {cycles_text(abs(self.marks[1] - self.marks[0]), self.launch.clock_khz)}"

    def choices(self) -> Mapping[str, Any]:
        """Level, order, unit, SM, marks, the window, and the cursor with the row and the block that it is on."""
        return {
            "rows": self.selection,
            "fitting": self.fits_all,
            "in_time": self.shows_time,
            "marks": tuple(self.marks),
            "window": replace(self.window),
            "at": self._start_place if self.rows is None else self._cursor_subject(self.rows)[0],
            "sent": self._sent_cursor,
        }

    def choose(self, choices: Mapping[str, Any]) -> None:
        """Restore all choices that this launch has."""
        self.selection, self.fits_all = choices["rows"], choices["fitting"]
        if self.selection.level == "warp" and not self.timeline.has_warps:
            self.selection = replace(self.selection, level="slot")
        if self.selection.sm is not None and self.selection.sm not in self.timeline.sms:
            self.selection = replace(self.selection, sm=None)
        self.shows_time = choices["in_time"] and self.launch.clock_khz is not None
        self.marks = [mark for mark in choices["marks"] if mark <= self.timeline.span]
        self.window.take_over(choices["window"])
        self._start_place, self._sent_cursor = choices["at"], choices["sent"]
        self._lines_above = choices["window"].line - choices["window"].top
        self._followed_rows = None

    def take_over(self, previous: View) -> None:
        """Take over the window, without the marks: they measure that launch."""
        super().take_over(previous)
        self.marks = []


def commands(view: ShownRows) -> dict[str, str]:
    """Commands that mean something now, and what they do."""
    unavailable = {"unit"} if view.launch.clock_khz is None else set()
    return {name: words for name, (words, _) in TIMELINE_MOVES.items() if name not in unavailable}


def _move_along(cells: int) -> Move:
    return lambda view: view.window.move(cells)


def _move_across(lines: int) -> Move:
    return lambda view: view.window.move_lines(lines)


def _page_time(pages: int) -> Move:
    return lambda view: _move_window(view, lambda: view.window.move_pages(pages), "end of the launch")


def _move_window(view: ShownRows, move: Callable[[], None], notice: str) -> str | None:
    """Move the window; return ``notice`` if it is where it was."""
    window = view.window
    previous = (window.start, window.width, window.top, window.time)
    move()
    return None if (window.start, window.width, window.top, window.time) != previous else notice


def _page_rows(pages: int) -> Move:
    return lambda view: view.window.move_lines(pages * view.window.height)


def _zoom(factor: float) -> Move:
    return lambda view: None if view.window.zoom(factor) else "zoom limit reached"


def _set_rows_per_line(view: ShownRows, rows_per_line: int) -> str | None:
    view.fits_all = False
    if rows_per_line < 1:
        return "each row already has its own line; press v for a level with more rows"
    view.selection = replace(view.selection, rows_per_line=rows_per_line)
    return None


def _fit_window(view: ShownRows) -> str | None:
    is_fitting, view.fits_all = view.fits_all, True
    notice = _move_window(view, view.window.show_all, "the whole launch is shown")
    return notice if is_fitting else None


def _go_to_next(view: ShownRows) -> str | None:
    rows, window = view.rows, view.window
    start = None if rows is None else rows.next_start(view.cursor_line(rows), window.time)
    if start is None:
        return "no later start in this row"
    window.move_to(start)
    return None


def _go_to_previous(view: ShownRows) -> str | None:
    rows, window = view.rows, view.window
    start = None if rows is None else rows.previous_start(view.cursor_line(rows), window.time)
    if start is None:
        return "no earlier start in this row"
    window.move_to(start)
    return None


def _go_to_longest(view: ShownRows) -> str:
    """Go to the longest block or warp, from there to the start of the tail, on the block that ends last."""
    rows = view.rows
    longest, last_end = (None, None) if rows is None else (rows.longest_interval(), _last_end(rows, view.tail))
    if (
        rows is not None
        and longest is not None
        and (last_end is None or not _is_at_longest(view, rows, longest, last_end))
    ):
        view.point_to(rows, longest)
        noun = "warp" if rows.selection.level == "warp" else "block"
        return f"the longest {noun}: {_interval_name(view, rows, longest)}"
    if rows is None or last_end is None:
        return "no stragglers and no tail: all rows take equally long and end at the same time"
    view.point_to(rows, last_end[0], last_end[1])
    return f"the start of the tail: {_interval_name(view, rows, last_end[0])} ends last"


def _last_end(rows: TimelineRows, tail: Tail | None) -> tuple[int, float] | None:
    """Return the row that ends last, and when in the tail it runs first; None without a tail, or if it is not a row."""
    index = rows.find_interval(tail.last_block) if tail is not None and tail.cycles else None
    if tail is None or index is None:
        return None
    return index, float(max(tail.start, int(rows.intervals.start[index])))


def _is_at_longest(view: ShownRows, rows: TimelineRows, longest: int, last_end: tuple[int, float]) -> bool:
    """Return whether the cursor is at the longest block because it was sent there. The block that ends last may be
    the same, at another time.
    """
    return view.sent_interval(rows) == longest and last_end != (longest, view.window.time)


def _interval_name(view: ShownRows, rows: TimelineRows, index: int) -> str:
    """Return ``block 37 on SM 12``; of a warp that, too."""
    intervals = rows.intervals
    warp = f" warp {intervals.warp[index]}" if intervals.warp[index] >= 0 else ""
    return f"{view.launch.block_label(int(intervals.block[index]))}{warp} on SM {intervals.sm[index]}"


def _set_mark(view: ShownRows) -> str | None:
    view.marks = [*view.marks, view.window.time] if len(view.marks) < 2 else [view.window.time]
    return view.mark_distance_text() if len(view.marks) == 2 else "first mark set; the second mark shows the distance"


def _choose_level(view: ShownRows) -> str:
    level = LEVELS[(LEVELS.index(view.selection.level) + 1) % len(LEVELS)]
    has_no_warps = level == "warp" and not view.launch.timeline.has_warps
    level = LEVELS[0] if has_no_warps else level
    view.selection, view.fits_all = replace(view.selection, level=level, rows_per_line=1), level == LEVELS[0]
    return f"one row per {level}" + (f"; to see warps, {DETAIL_ADVICE}" if has_no_warps else "")


def _choose_order(view: ShownRows) -> str:
    order = ORDERS[(ORDERS.index(view.selection.order) + 1) % len(ORDERS)]
    view.selection = replace(view.selection, order=order)
    return f"rows {ORDER_LABELS[order]}"


def _toggle_sm(view: ShownRows) -> str:
    rows = view.rows
    if view.selection.sm is not None or rows is None:
        view.selection, view.fits_all = replace(view.selection, sm=None), view.selection.level == LEVELS[0]
        return "all SMs"
    line = view.cursor_line(rows)
    index = view.interval_at_cursor(rows)
    sm = rows.place_of_line(line)[0] if index is None else rows.place_of_interval(index)[0]
    view.selection, view.fits_all = replace(view.selection, sm=sm), True
    return f"SM {sm} only"


def _toggle_unit(view: ShownRows) -> str:
    if view.launch.clock_khz is None:
        return "cycles only: the clock rate is unknown"
    view.shows_time = not view.shows_time
    return f"time at {view.launch.clock_khz / 1e6:.2f} GHz, {view.launch.clock_origin}" if view.shows_time else "cycles"


TIMELINE_MOVES: Final[dict[str, tuple[str, Move]]] = {
    "left": ("cursor left", _move_along(-1)),
    "right": ("cursor right", _move_along(1)),
    "up": ("cursor up", _move_across(-1)),
    "down": ("cursor down", _move_across(1)),
    "page_left": ("window left", _page_time(-1)),
    "page_right": ("window right", _page_time(1)),
    "page_up": ("window up", _page_rows(-1)),
    "page_down": ("window down", _page_rows(1)),
    "zoom_in": ("zoom in at the cursor", _zoom(_ZOOM)),
    "zoom_out": ("zoom out", _zoom(1 / _ZOOM)),
    "zoom_in_rows": ("fewer rows per line", lambda view: _set_rows_per_line(view, view.selection.rows_per_line // 2)),
    "zoom_out_rows": ("more rows per line", lambda view: _set_rows_per_line(view, view.selection.rows_per_line * 2)),
    "fit": ("show the whole launch", _fit_window),
    "start": ("go to the start of the launch", lambda view: view.window.move_to(0)),
    "end": ("go to the end of the launch", lambda view: view.window.move_to(view.window.span)),
    "next": ("go to the next start of a block or warp in this row", _go_to_next),
    "previous": ("go to the previous start of a block or warp in this row", _go_to_previous),
    "worst": ("go to the longest block, then to the tail", _go_to_longest),
    "mark": ("set a mark; two marks show the time between them", _set_mark),
    "level": ("one row per SM, slot or warp", _choose_level),
    "order": ("sort rows by number, finish or start", _choose_order),
    "select": ("show this SM only, or all SMs", _toggle_sm),
    "unit": ("switch between cycles and time", _toggle_unit),
}
"""Commands by name: what each does, in words and to a timeline."""
