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

AROUND: Final = 6
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
    choice: RowSelection
    """The rows that are wanted; ``rows`` are those that there are."""
    rows: TimelineRows | None
    fitting: bool
    """True if all rows have to fit, for any height."""
    marks: list[float]
    in_time: bool
    row_height: int
    """Lines of the screen that a row takes."""

    def __init__(self, launch: LaunchTimeline) -> None:
        self.launch, self.timeline = launch, launch.timeline
        self.title = f"Timeline of {launch.launch_label} {launch.kernel_name}"
        self.tail = self.timeline.tail()
        self.choice = RowSelection()
        self.fitting = True
        self.in_time = False
        self.marks = []
        self.window = Window(self.timeline.span, 1)
        self.row_height = 1
        self.rows = None
        self._shown: TimelineRows | None = None
        self._at: tuple[int, int, int] | None = None
        """SM, slot and warp of the row that the cursor begins on."""
        self._above: int | None = None
        """Lines of the window above that row; None to have it in the middle."""
        self._sent: _SentCursor | None = None
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
    def of_warps(self) -> bool:
        return self.choice.level == "warp"

    def lengths(self, level: RowLevel) -> LengthGrades:
        """The median of blocks, or of warps where these are shown, and beyond which cycles one stands out."""
        return self._warp_lengths if level == "warp" else self._block_lengths

    @property
    def cycles(self) -> float:
        return self.window.full_width

    def stretch(self, cycles: float) -> None:
        """An axis of time that reaches further than the launch took."""
        self.window.set_min_width(cycles)

    def prepare(self, width: int, height: int) -> Callable[[], None] | None:
        """Make the rows that are wanted; where all have to fit, as many share a line as it takes."""
        del width
        if self.fitting:
            together = -(-self.launch.row_count(self.choice) // max(height - AROUND, 1))
            self.choice = replace(self.choice, rows_per_line=together)
        if self.rows is not None and self.rows.selection == self.choice:
            return None
        wanted = self.choice

        def work() -> None:
            self.rows = timeline_rows(self.timeline, wanted, self.lengths(wanted.level))

        return work

    def line(self, rows: TimelineRows) -> int:
        """The line of the cursor, in rows that may have come after it was last drawn."""
        return min(self.window.line, rows.lines - 1)

    def follow(self, rows: TimelineRows) -> None:
        """Other rows are shown than before: the cursor goes to the same, or to the first that is of the same SM."""
        before, self._shown = self._shown, rows
        if before is rows:
            return
        self._gutter = gutter_width(rows)
        if before is None:
            self.window.set_lines(rows.lines, 0 if self._at is None else rows.line_of_place(*self._at), self._above)
            return
        at, sent = self._subject(before)
        self.window.set_lines(rows.lines, rows.line_of_place(*at))
        self._sent = None if sent is None else _SentCursor(sent, self.window.time, self.window.line)

    def resize(self, cells: int, height: int) -> None:
        """Another size of the window may move the cursor a little: it stays on what it was sent to."""
        sent = self._sent
        was_at = sent is not None and sent.is_at(self.window.time, self.window.line)
        self.window.resize(cells, height)
        if sent is not None and was_at:
            self._sent = _SentCursor(sent.spot, self.window.time, self.window.line)

    def _subject(self, rows: TimelineRows) -> tuple[tuple[int, int, int], Spot | None]:
        """SM, slot and warp of what is under the cursor, where a line may hold several, and the block that it is."""
        index, sent = self.under(rows), self._sent_spot(rows)
        if index is None:
            return self._place(rows), None if sent is None else replace(sent, block=None, warp=None)
        start, end = rows.intervals.start[index], rows.intervals.end[index]
        running = bool(start <= self.window.time < end)
        return rows.place_of_interval(index), self._spot_of(rows, index) if running else None

    def under(self, rows: TimelineRows) -> int | None:
        """The interval under the cursor: the one that it was sent to, else the latest to start there."""
        index, sent = self.sent_to(rows), self._sent_spot(rows)
        return (
            rows.interval_at(self.line(rows), self.window.time, sent.sm if sent else None) if index is None else index
        )

    def sent_to(self, rows: TimelineRows) -> int | None:
        """Block that the cursor was sent to, if it was not moved since."""
        sent = self._sent_spot(rows)
        return (
            None if sent is None or sent.block is None else rows.find_interval(sent.block, sent.warp, self.line(rows))
        )

    def _sent_spot(self, rows: TimelineRows) -> Spot | None:
        """Interval that the cursor was sent to, if it was not moved since."""
        sent = self._sent
        return sent.spot if sent is not None and sent.is_at(self.window.time, self.line(rows)) else None

    def _place(self, rows: TimelineRows) -> tuple[int, int, int]:
        """SM, slot and warp of the row that the cursor was sent to, else of the first one of its line."""
        sent = self._sent_spot(rows)
        return rows.place_of_line(self.line(rows)) if sent is None or sent.sm is None else (sent.sm, ALL, ALL)

    def place_words(self, rows: TimelineRows) -> str:
        """The name of the SM that the cursor was sent to, else of the line, which may stand for several."""
        sent = self._sent_spot(rows)
        return rows.label(self.line(rows)) if sent is None or sent.sm is None else f"SM {sent.sm}"

    def point(self, rows: TimelineRows, index: int, time: float | None = None) -> None:
        """The cursor to an interval, at a time of it if one is given."""
        self.window.move_to(rows.visible_time(index) if time is None else time)
        self._send(rows.line_of_interval(index), self._spot_of(rows, index))

    def _send(self, line: int, spot: Spot) -> None:
        self.window.move_lines(line - self.window.line)
        self._sent = _SentCursor(spot, self.window.time, self.window.line)

    def _spot_of(self, rows: TimelineRows, index: int) -> Spot:
        intervals = rows.intervals
        warp = int(intervals.warp[index])
        return Spot(block=int(intervals.block[index]), warp=None if warp < 0 else warp, sm=int(intervals.sm[index]))

    def spot(self) -> Spot:
        """The block that is under the cursor, and when."""
        rows = self.rows
        if rows is None:
            return Spot()
        index = self.under(rows)
        if index is None:
            return Spot(sm=self._place(rows)[0], time=self.window.time)
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
            now = (time for time in (spot.time, self.window.time) if time is not None and start <= time < end)
            if self.under(rows) != index or spot.time is not None:
                self.point(rows, index, next(now, None))
            return True
        if spot.time is not None:
            self.window.move_to(spot.time)
        if spot.sm is not None:
            self._send(rows.line_of_place(spot.sm, ALL, ALL), Spot(sm=spot.sm))
        return True

    def missing_reason(self, spot: Spot) -> str:
        """Rows of one SM only may be shown, and not all blocks were measured."""
        if spot.block is None or self.rows is None:
            return ""
        if self.choice.sm is not None and bool((self.timeline.blocks.block == spot.block).any()):
            return f"block {spot.block} did not run on SM {self.choice.sm}; press x to show all SMs"
        return f"block {spot.block} was not recorded"

    def measured(self) -> str:
        """Text of the interval between the two marks."""
        return f"× to ×: {cycles_text(abs(self.marks[1] - self.marks[0]), self.launch.clock_khz)}"

    def choices(self) -> Mapping[str, Any]:
        """Level, order, unit, SM, marks, the window, and the cursor with the row and the block that it is on."""
        return {
            "rows": self.choice,
            "fitting": self.fitting,
            "in_time": self.in_time,
            "marks": tuple(self.marks),
            "window": replace(self.window),
            "at": self._at if self.rows is None else self._subject(self.rows)[0],
            "sent": self._sent,
        }

    def choose(self, choices: Mapping[str, Any]) -> None:
        """All that this launch has; the window where that was not everything."""
        self.choice, self.fitting = choices["rows"], choices["fitting"]
        if self.choice.level == "warp" and not self.timeline.has_warps:
            self.choice = replace(self.choice, level="slot")
        if self.choice.sm is not None and self.choice.sm not in self.timeline.sms:
            self.choice = replace(self.choice, sm=None)
        self.in_time = choices["in_time"] and self.launch.clock_khz is not None
        self.marks = [mark for mark in choices["marks"] if mark <= self.timeline.span]
        self.window.take_over(choices["window"])
        self._at, self._sent = choices["at"], choices["sent"]
        self._above = choices["window"].line - choices["window"].top
        self._shown = None

    def take_over(self, before: View) -> None:
        """Take over the window, without the marks: they measure that launch."""
        super().take_over(before)
        self.marks = []


def commands(view: ShownRows) -> dict[str, str]:
    """Commands that mean something now, and what they do."""
    without = {"unit"} if view.launch.clock_khz is None else set()
    return {name: words for name, (words, _) in TIMELINE_MOVES.items() if name not in without}


def _along(cells: int) -> Move:
    return lambda view: view.window.move(cells)


def _across(lines: int) -> Move:
    return lambda view: view.window.move_lines(lines)


def _page_along(pages: int) -> Move:
    return lambda view: _moved_window(view, lambda: view.window.move_pages(pages), "end of the launch")


def _moved_window(view: ShownRows, move: Callable[[], None], otherwise: str) -> str | None:
    """Move the window; return ``otherwise`` if it is where it was."""
    window = view.window
    before = (window.start, window.width, window.top, window.time)
    move()
    return None if (window.start, window.width, window.top, window.time) != before else otherwise


def _page_across(pages: int) -> Move:
    return lambda view: view.window.move_lines(pages * view.window.height)


def _zoom(factor: float) -> Move:
    return lambda view: None if view.window.zoom(factor) else "zoom limit reached"


def _set_rows_per_line(view: ShownRows, together: int) -> str | None:
    view.fitting = False
    if together < 1:
        return "each row already has its own line; press v for a level with more rows"
    view.choice = replace(view.choice, rows_per_line=together)
    return None


def _fit(view: ShownRows) -> str | None:
    is_fitting, view.fitting = view.fitting, True
    notice = _moved_window(view, view.window.show_all, "the whole launch is shown")
    return notice if is_fitting else None


def _next(view: ShownRows) -> str | None:
    rows, window = view.rows, view.window
    start = None if rows is None else rows.next_start(view.line(rows), window.time)
    if start is None:
        return "no later start in this row"
    window.move_to(start)
    return None


def _previous(view: ShownRows) -> str | None:
    rows, window = view.rows, view.window
    start = None if rows is None else rows.previous_start(view.line(rows), window.time)
    if start is None:
        return "no earlier start in this row"
    window.move_to(start)
    return None


def _go_to_longest(view: ShownRows) -> str:
    """The longest block or warp; from there on the start of the tail, on the block that ends last."""
    rows = view.rows
    longest, last = (None, None) if rows is None else (rows.longest_interval(), _go_to_last(rows, view.tail))
    if rows is not None and longest is not None and (last is None or not _at_longest(view, rows, longest, last)):
        view.point(rows, longest)
        noun = "warp" if rows.selection.level == "warp" else "block"
        return f"the longest {noun}: {_interval_name(view, rows, longest)}"
    if rows is None or last is None:
        return "no stragglers and no tail: all rows take equally long and end at the same time"
    view.point(rows, last[0], last[1])
    return f"the start of the tail: {_interval_name(view, rows, last[0])} ends last"


def _go_to_last(rows: TimelineRows, tail: Tail | None) -> tuple[int, float] | None:
    """Return the row that ends last, and when in the tail it runs first; None without a tail, or if it is not a row."""
    index = rows.find_interval(tail.last_block) if tail is not None and tail.cycles else None
    if tail is None or index is None:
        return None
    return index, float(max(tail.start, int(rows.intervals.start[index])))


def _at_longest(view: ShownRows, rows: TimelineRows, longest: int, last: tuple[int, float]) -> bool:
    """Return whether the cursor is at the longest block because it was sent there. The block that ends last may be
    the same, at another time.
    """
    return view.sent_to(rows) == longest and last != (longest, view.window.time)


def _interval_name(view: ShownRows, rows: TimelineRows, index: int) -> str:
    """``block 37 on SM 12``; of a warp that, too."""
    intervals = rows.intervals
    warp = f" warp {intervals.warp[index]}" if intervals.warp[index] >= 0 else ""
    return f"{view.launch.block_label(int(intervals.block[index]))}{warp} on SM {intervals.sm[index]}"


def _mark(view: ShownRows) -> str | None:
    view.marks = [*view.marks, view.window.time] if len(view.marks) < 2 else [view.window.time]
    return view.measured() if len(view.marks) == 2 else "first mark set; the second mark shows the distance"


def _level(view: ShownRows) -> str:
    level = LEVELS[(LEVELS.index(view.choice.level) + 1) % len(LEVELS)]
    unknown = level == "warp" and not view.launch.timeline.has_warps
    level = LEVELS[0] if unknown else level
    view.choice, view.fitting = replace(view.choice, level=level, rows_per_line=1), level == LEVELS[0]
    return f"one row per {level}" + (f"; to see warps, {DETAIL_ADVICE}" if unknown else "")


def _order(view: ShownRows) -> str:
    order = ORDERS[(ORDERS.index(view.choice.order) + 1) % len(ORDERS)]
    view.choice = replace(view.choice, order=order)
    return f"rows {ORDER_LABELS[order]}"


def _select(view: ShownRows) -> str:
    rows = view.rows
    if view.choice.sm is not None or rows is None:
        view.choice, view.fitting = replace(view.choice, sm=None), view.choice.level == LEVELS[0]
        return "all SMs"
    line = view.line(rows)
    index = view.under(rows)
    sm = rows.place_of_line(line)[0] if index is None else rows.place_of_interval(index)[0]
    view.choice, view.fitting = replace(view.choice, sm=sm), True
    return f"SM {sm} only"


def _unit(view: ShownRows) -> str:
    if view.launch.clock_khz is None:
        return "cycles only: the clock rate is unknown"
    view.in_time = not view.in_time
    return f"time at {view.launch.clock_khz / 1e6:.2f} GHz, {view.launch.clock_origin}" if view.in_time else "cycles"


TIMELINE_MOVES: Final[dict[str, tuple[str, Move]]] = {
    "left": ("cursor left", _along(-1)),
    "right": ("cursor right", _along(1)),
    "up": ("cursor up", _across(-1)),
    "down": ("cursor down", _across(1)),
    "page_left": ("window left", _page_along(-1)),
    "page_right": ("window right", _page_along(1)),
    "page_up": ("window up", _page_across(-1)),
    "page_down": ("window down", _page_across(1)),
    "zoom_in": ("zoom in at the cursor", _zoom(_ZOOM)),
    "zoom_out": ("zoom out", _zoom(1 / _ZOOM)),
    "zoom_in_rows": ("fewer rows per line", lambda view: _set_rows_per_line(view, view.choice.rows_per_line // 2)),
    "zoom_out_rows": ("more rows per line", lambda view: _set_rows_per_line(view, view.choice.rows_per_line * 2)),
    "fit": ("show the whole launch", _fit),
    "start": ("go to the start of the launch", lambda view: view.window.move_to(0)),
    "end": ("go to the end of the launch", lambda view: view.window.move_to(view.window.span)),
    "next": ("go to the next start of a block or warp in this row", _next),
    "previous": ("go to the previous start of a block or warp in this row", _previous),
    "worst": ("go to the longest block, then to the tail", _go_to_longest),
    "mark": ("set a mark; two marks show the time between them", _mark),
    "level": ("one row per SM, slot or warp", _level),
    "order": ("sort rows by number, finish or start", _order),
    "select": ("show this SM only, or all SMs", _select),
    "unit": ("switch between cycles and time", _unit),
}
"""Commands by name: what each does, in words and to a timeline."""
