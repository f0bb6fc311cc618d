"""Commands of the timeline page: move, zoom, jump, group rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from tui_probe.probekit.record_counts import DETAIL_ADVICE
from tui_probe.probekit.timelines.rows import LEVELS, ORDER_WORDS, ORDERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.probekit.timelines.drawing import Window
    from tui_probe.probekit.timelines.launch import LaunchTimeline
    from tui_probe.probekit.timelines.rows import RowSelection, TimelineRows
    from tui_probe.records.timeline import Tail

if TYPE_CHECKING:
    Move = Callable[["Moved"], str | None]

_ZOOM: Final = 0.5


class Moved(Protocol):
    """State of a timeline that commands move."""

    launch: LaunchTimeline
    window: Window
    choice: RowSelection
    rows: TimelineRows | None
    fitting: bool
    marks: list[float]
    in_time: bool
    tail: Tail | None

    def line(self, rows: TimelineRows) -> int:
        """The line of the cursor."""

    def under(self, rows: TimelineRows) -> int | None:
        """The interval under the cursor."""

    def sent_to(self, rows: TimelineRows) -> int | None:
        """The interval that the cursor was sent to, if it was not moved since."""

    def point(self, rows: TimelineRows, index: int, time: float | None = None) -> None:
        """The cursor to an interval."""

    def measured(self) -> str:
        """Text of the interval between the two marks."""


def commands(view: Moved) -> dict[str, str]:
    """Commands that mean something now, and what they do."""
    without = {"unit"} if view.launch.clock_khz is None else set()
    return {name: words for name, (words, _) in TIMELINE_MOVES.items() if name not in without}


def _along(cells: int) -> Move:
    return lambda view: view.window.move(cells)


def _across(lines: int) -> Move:
    return lambda view: view.window.move_lines(lines)


def _page_along(pages: int) -> Move:
    return lambda view: view.window.page(pages)


def _page_across(pages: int) -> Move:
    return lambda view: view.window.move_lines(pages * view.window.height)


def _zoom(factor: float) -> Move:
    return lambda view: None if view.window.zoom(factor) else "zoom limit reached"


def _set_rows_per_line(view: Moved, together: int) -> str | None:
    view.fitting = False
    if together < 1:
        return "each row already has its own line; a finer level has more rows"
    view.choice = replace(view.choice, together=together)
    return None


def _fit(view: Moved) -> None:
    view.window.fit()
    view.fitting = True


def _next(view: Moved) -> str | None:
    rows, window = view.rows, view.window
    start = None if rows is None else rows.next_start(view.line(rows), window.time)
    if start is None:
        return "no later start in this row"
    window.to(start)
    return None


def _previous(view: Moved) -> str | None:
    rows, window = view.rows, view.window
    start = None if rows is None else rows.previous_start(view.line(rows), window.time)
    if start is None:
        return "no earlier start in this row"
    window.to(start)
    return None


def _go_to_longest(view: Moved) -> str:
    """The longest block or warp; from there on the start of the tail, on the block that ends last."""
    rows = view.rows
    longest, last = (None, None) if rows is None else (rows.longest(), _go_to_last(rows, view.tail))
    if rows is not None and longest is not None and (last is None or not _at_longest(view, rows, longest, last)):
        view.point(rows, longest)
        return (
            f"the longest {'warp' if rows.choice.level == 'warp' else 'block'}: {_interval_name(view, rows, longest)}"
        )
    if rows is None or last is None:
        return "no stragglers and no tail: all take equally long and end at the same time"
    view.point(rows, last[0], last[1])
    return f"the start of the tail: {_interval_name(view, rows, last[0])} ends last"


def _go_to_last(rows: TimelineRows, tail: Tail | None) -> tuple[int, float] | None:
    """Return the row that ends last, and when in the tail it runs first; None without a tail, or if it is not a row."""
    index = rows.find(tail.last_block) if tail is not None and tail.cycles else None
    if tail is None or index is None:
        return None
    return index, float(max(tail.start, int(rows.intervals.start[index])))


def _at_longest(view: Moved, rows: TimelineRows, longest: int, last: tuple[int, float]) -> bool:
    """Return whether the cursor is at the longest block because it was sent there. The block that ends last may be
    the same, at another time.
    """
    return view.sent_to(rows) == longest and last != (longest, view.window.time)


def _interval_name(view: Moved, rows: TimelineRows, index: int) -> str:
    """``block 37 on SM 12``; of a warp that, too."""
    intervals = rows.intervals
    warp = f" warp {intervals.warp[index]}" if intervals.warp[index] >= 0 else ""
    return f"{view.launch.block_words(int(intervals.block[index]))}{warp} on SM {intervals.sm[index]}"


def _mark(view: Moved) -> str | None:
    view.marks = [*view.marks, view.window.time] if len(view.marks) < 2 else [view.window.time]
    return view.measured() if len(view.marks) == 2 else "first mark set; the second mark shows the distance"


def _level(view: Moved) -> str:
    level = LEVELS[(LEVELS.index(view.choice.level) + 1) % len(LEVELS)]
    unknown = level == "warp" and not view.launch.timeline.has_warps
    level = LEVELS[0] if unknown else level
    view.choice, view.fitting = replace(view.choice, level=level, together=1), level == LEVELS[0]
    return f"one row per {level}" + (f"; to see warps, {DETAIL_ADVICE}" if unknown else "")


def _order(view: Moved) -> str:
    order = ORDERS[(ORDERS.index(view.choice.order) + 1) % len(ORDERS)]
    view.choice = replace(view.choice, order=order)
    return f"rows {ORDER_WORDS[order]}"


def _select(view: Moved) -> str:
    rows = view.rows
    if view.choice.sm is not None or rows is None:
        view.choice, view.fitting = replace(view.choice, sm=None), view.choice.level == LEVELS[0]
        return "all SMs"
    line = view.line(rows)
    index = view.under(rows)
    sm = rows.place(line)[0] if index is None else rows.place_of(index)[0]
    view.choice, view.fitting = replace(view.choice, sm=sm), True
    return f"SM {sm} only"


def _unit(view: Moved) -> str:
    if view.launch.clock_khz is None:
        return "cycles only: the clock rate is unknown"
    view.in_time = not view.in_time
    return f"time at {view.launch.clock_khz / 1e6:.2f} GHz, {view.launch.clock_words}" if view.in_time else "cycles"


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
    "zoom_in_rows": ("fewer rows per line", lambda view: _set_rows_per_line(view, view.choice.together // 2)),
    "zoom_out_rows": ("more rows per line", lambda view: _set_rows_per_line(view, view.choice.together * 2)),
    "fit": ("show the whole launch", _fit),
    "start": ("start of the launch", lambda view: view.window.to(0)),
    "end": ("end of the launch", lambda view: view.window.to(view.window.span)),
    "next": ("next start in the row", _next),
    "previous": ("previous start in the row", _previous),
    "worst": ("longest block, then the tail", _go_to_longest),
    "mark": ("set a mark; two marks show the time between them", _mark),
    "level": ("one row per SM, slot or warp", _level),
    "order": ("sort rows by number, finish or start", _order),
    "select": ("show this SM only, or all SMs", _select),
    "unit": ("switch between cycles and time", _unit),
}
"""Commands by name: what each does, in words and to a timeline."""
