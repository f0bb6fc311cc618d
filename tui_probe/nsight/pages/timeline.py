"""Timeline of streams and NVTX ranges, with the lanes that it draws.

▁▂▃▄▅▆▇█   part of a cell's time in which a kernel ran on the stream; a blank is none
┣name━━┫   one kernel, or one range, where there is room
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.canvas import TIME, Canvas, draw_x_axis, shaded
from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import clip, pad, width
from tui_probe.draw.view import Drawing
from tui_probe.nsight.analysis.kernel_groups import search_names
from tui_probe.nsight.analysis.projection import range_columns
from tui_probe.nsight.analysis.stream_times import covered_time, positions_by_stream
from tui_probe.nsight.importers.nsys_model import UNKNOWN
from tui_probe.nsight.pages.cells import ProcessNames, nanoseconds, short_names
from tui_probe.nsight.pages.nsys_profile import TIME_ZERO_NOTE, found_text
from tui_probe.probekit.timelines.drawing import LEVELS, Window, draw_marks

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tui_probe.draw.spans import Line
    from tui_probe.nsight.analysis.projection import RangeColumns
    from tui_probe.nsight.importers.nsys_model import Kernels, NsysReport, ProjectedRange, Stream
    from tui_probe.nsight.pages.nsys_profile import NsysSources

Kind = Literal["kernels", "ranges"]
_NAME_CELLS: Final = 60
_FRAME_LINES: Final = 3
"""Lines that are not lanes: a head, the axis and its labels."""
_MIN_CELLS_PER_BAR: Final = 3
"""Cells per event from which on each is drawn as a bar; with fewer, the covered part of each cell is."""
_MAX_GUTTER: Final = 30
"""Cells of the labels of lanes at most."""
_HUES: Final = 6
"""Colours among which names and ranges are divided."""
_AXIS_LABEL: Final = ("time of", "capture")
"""Label next to the axis, however little room there is in the head."""
_EMPTY_TEXT: Final = "nothing to show"
_PLOT_CELLS: Final = 1200
"""Columns of a picture over the time of the window."""


@dataclass(frozen=True, slots=True)
class Lane:
    """Things one after another on a stream, by start: kernels, or ranges of one level. Times are ns from the first."""

    kind: Kind
    label: str
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    names: Sequence[str]
    codes: NDArray[np.int64]
    """The name of each, as a position in ``names``."""

    def __len__(self) -> int:
        return len(self.start)

    def covered_time(self, edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """Time between each two edges in which something ran; what overlaps counts twice."""
        return np.diff(covered_time(self.start, np.sort(self.end), edges))

    def name(self, index: int) -> str:
        return self.names[int(self.codes[index])]

    def short_name(self, index: int) -> str:
        """A name in few cells."""
        return shorten(self.name(index), _NAME_CELLS)

    @property
    def names_shown(self) -> list[str]:
        """The names of what is in the lane; ``names`` has others, too."""
        return [self.names[code] for code in np.unique(self.codes).tolist()]

    def starts_of(self, names: Collection[str]) -> list[int]:
        """Return the starts of the events with these names."""
        matching_codes = [code for code in np.unique(self.codes).tolist() if self.names[code] in names]
        event_starts: list[int] = self.start[np.isin(self.codes, matching_codes)].tolist()
        return event_starts

    def event_at(self, time: float) -> int | None:
        """Return the event that runs at a time, else the last one before it; None before the first."""
        index = int(np.searchsorted(self.start, time, side="right")) - 1
        return index if index >= 0 else None

    def next_start(self, time: float) -> int | None:
        """The first start after a time."""
        index = int(np.searchsorted(self.start, time, side="right"))
        return int(self.start[index]) if index < len(self) else None

    def previous_start(self, time: float) -> int | None:
        """The last start before a time."""
        index = int(np.searchsorted(self.start, time, side="left")) - 1
        return int(self.start[index]) if index >= 0 else None


def lanes_of(
    report: NsysReport, ranges: Sequence[ProjectedRange], matching: NDArray[np.bool_]
) -> tuple[list[Lane], int, int]:
    """The lanes of the kernels that are ``matching`` (one truth per kernel) and of ranges; when the first thing starts,
    and ns from there to the end of the last.
    """
    kernels = report.kernels
    positions = np.flatnonzero(matching).astype(np.int32)
    columns = range_columns(ranges)
    if not len(positions) and not len(columns):
        return [], 0, 1
    origin = int(min(part.min() for part in (kernels.start[positions[:1]], columns.start) if len(part)))
    end = int(max(part.max() for part in (kernels.end[positions], columns.end) if len(part)))
    kernels_by_queue, ranges_by_queue = (
        dict(positions_by_stream(kernels.queue[positions])),
        dict(positions_by_stream(columns.queue)),
    )
    unassigned_ranges = ranges_by_queue.pop(UNKNOWN, None)
    lanes: list[Lane] = []
    queues = sorted({*kernels_by_queue, *ranges_by_queue}, key=lambda queue: _lane_order(kernels, queue))
    labels = stream_labels([kernels.streams[queue] for queue in queues], report.files)
    for queue, label in zip(queues, labels, strict=True):
        if queue in kernels_by_queue:
            rows = positions[kernels_by_queue[queue]]
            times = (kernels.start[rows] - origin, kernels.end[rows] - origin)
            lanes.append(Lane("kernels", label, *times, kernels.names, kernels.name[rows]))
        lanes += _range_lanes(columns, ranges_by_queue.get(queue), origin)
    lanes += _range_lanes(columns, unassigned_ranges, origin)
    return lanes, origin, end - origin


def _lane_order(kernels: Kernels, queue: int) -> tuple[int, ...]:
    """Return the sort key of a lane: GPU, process on it, stream."""
    stream = kernels.streams[queue]
    return stream.device, stream.process, stream.context, stream.number


def stream_labels(streams: Sequence[Stream], files: Sequence[str] = ()) -> list[str]:
    """A name for each stream, with as much as tells it from the others: ``GPU 1 stream 7``, ``100 stream 7``."""
    devices = len({stream.device for stream in streams}) > 1
    processes = ProcessNames(files, streams)
    without_context = [stream._replace(context=UNKNOWN) for stream in streams]
    return [
        processes.label(stream)
        + (f"GPU {stream.device} " if devices else "")
        + f"stream {stream.number}"
        + (f" ctx {stream.context}" if without_context.count(stream._replace(context=UNKNOWN)) > 1 else "")
        for stream in streams
    ]


def _range_lanes(ranges: RangeColumns, positions: NDArray[np.int32] | None, origin: int) -> Iterator[Lane]:
    """Yield a lane per level of the ranges at some positions. ``ranges`` are by start."""
    if positions is None:
        return
    levels = ranges.level[positions]
    for level in np.unique(levels).tolist():
        level_positions = positions[levels == level]
        times = (ranges.start[level_positions] - origin, ranges.end[level_positions] - origin)
        yield Lane("ranges", f"  ranges {level}", *times, ranges.names, ranges.name[level_positions])


class _Match(NamedTuple):
    """A match of a search: its start in ns with its lane, and time and line of the cursor that was moved there.

    They differ at the very end, where the window has no time for the cursor.
    """

    position: tuple[float, int]
    cursor: tuple[float, int]


class StreamTimeline(Drawing):
    """Lanes over time with a cursor, of what is found. The window begins at ``origin``: ns from the start of the
    capture to the first thing that is drawn. What is reported are times from the start of the capture, as on other
    pages.
    """

    searches = True

    def __init__(self, sources: NsysSources) -> None:
        self.title = "Timeline of streams"
        self.sources = sources
        self.files = "  ".join(short_names(sources.report.files))
        matching = sources.matching
        self.lanes, self.origin, span = lanes_of(sources.report, sources.matching_ranges, matching)
        self.search_texts = _search_texts(sources, matching)
        self.window = Window(float(max(span, 1)), max(len(self.lanes), 1))
        self.marks: list[float] = []
        self._last_match: _Match | None = None
        self._gutter = min(2 + max((width(lane.label) for lane in self.lanes), default=0), _MAX_GUTTER)
        self._first_column = 0
        """Column of the first cell of time, as drawn last: a narrow page cuts the names of the lanes."""

    def draw(self, width: int, height: int, *, ascii_only: bool = False) -> list[Line]:
        canvas = Canvas(width, height)
        left = self._first_column = min(self._gutter, width // 2)
        self.window.resize(width - left, max(height - _FRAME_LINES, 1))
        self._draw_head(canvas)
        if not self.lanes:
            canvas.text(0, 1, _EMPTY_TEXT, "dim")
            return canvas.lines(ascii_only=ascii_only)
        edges = self.window.edges()
        for y, lane in enumerate(self.lanes[self.window.top : self.window.top + self.window.height]):
            line = self.window.top + y
            canvas.text(0, y + 1, "▌" if line == self.window.line else " ", "accent")
            canvas.text(1, y + 1, pad(lane.label, left - 2), "title" if line == self.window.line else "dim")
            self._draw_lane(canvas, left, y + 1, lane, edges)
        self._draw_axis(canvas, left, height - _FRAME_LINES + 1)
        return canvas.lines(ascii_only=ascii_only)

    def _draw_head(self, canvas: Canvas) -> None:
        totals = " · ".join([*self.search_texts, units.counted(len(self.lanes), "lane"), nanoseconds(self.window.span)])
        zero = f" · {TIME_ZERO_NOTE}"
        totals += zero if width(totals) + len(zero) <= canvas.width else ""
        canvas.text(0, 0, clip(self.files, max(canvas.width - width(totals) - 2, 0)), "title")
        canvas.text(max(canvas.width - width(totals), 0), 0, totals, "dim")

    def _draw_lane(self, canvas: Canvas, x: int, y: int, lane: Lane, edges: Any) -> None:
        visible = np.flatnonzero((lane.end > self.window.start) & (lane.start < self.window.end))
        if len(visible) * _MIN_CELLS_PER_BAR > self.window.cells:
            part = lane.covered_time(edges) / np.maximum(np.diff(edges), 1)
            top = len(LEVELS) - 1
            grade = np.where(part > 0, np.clip(np.ceil(part * top), 1, top), 0).astype(np.uint8)
            roles = np.array([canvas.role(""), *(canvas.role(f"ramp{i}") for i in range(8))], dtype=np.uint16)
            canvas.paint(x, y, shaded(grade, LEVELS)[np.newaxis], roles[grade][np.newaxis])
            return
        for index in visible.tolist():
            start = self.window.column(float(lane.start[index]))
            last_cell = max(self.window.column(float(lane.end[index]) - 1e-6), start)
            text, skip = _bar(lane.short_name(index), start, last_cell, self.window.cells)
            hue = index if lane.kind == "ranges" else int(lane.codes[index])
            canvas.text(x + skip, y, text, f"hue{hue % _HUES}")

    def _draw_axis(self, canvas: Canvas, x: int, y: int) -> None:
        begin, end = self.window.start + self.origin, self.window.end + self.origin
        draw_x_axis(canvas, x, y, self.window.cells, begin, end, TIME)
        for row, text in enumerate(_AXIS_LABEL):
            canvas.text(0, y + row, clip(text, x - 1), "dim")
        for mark in self.marks:
            draw_marks(canvas, x, y, self.window, {"×": mark})
        draw_marks(canvas, x, y, self.window, {"▲": self.window.time})

    def commands(self) -> Mapping[str, str]:
        return {name: text for name, (text, _) in _COMMANDS.items()}

    def press(self, command: str) -> str | None:
        move = _COMMANDS.get(command)
        return None if move is None else move[1](self)

    def click(self, column: int, row: int) -> None:
        if column >= self._first_column:
            self.window.move_to_cell(column - self._first_column)
        lane = self.window.top + row - 1
        if 1 <= row <= self.window.height and lane < len(self.lanes):
            self.window.move_lines(lane - self.window.line)

    def status(self) -> list[str]:
        """Return texts on the event under the cursor."""
        texts = [self.distance_text()] if len(self.marks) == 2 else []
        lane = self.lane
        index = None if lane is None else lane.event_at(self.window.time)
        if lane is None or index is None:
            return [*texts, f"at {self._time_text(self.window.time)}: nothing has started"]
        start, end = int(lane.start[index]), int(lane.end[index])
        prefix = "" if end > self.window.time else "before the cursor: "
        return [
            *texts,
            f"{prefix}{lane.short_name(index)}",
            f"from {self._time_text(start)}",
            f"{nanoseconds(end - start)}",
        ]

    def _time_text(self, time: float) -> str:
        """A time from the start of the capture, exact enough to be distinguished from that of the next cell."""
        time += self.origin
        step = 10.0 ** math.floor(math.log10(self.window.width / self.window.cells))
        return max(nanoseconds(time), TIME.label(time, step), key=len)

    @property
    def lane(self) -> Lane | None:
        """The lane of the cursor."""
        return self.lanes[min(self.window.line, len(self.lanes) - 1)] if self.lanes else None

    def mark(self) -> str:
        """Set a mark; the third one begins anew."""
        self.marks = [*self.marks, self.window.time] if len(self.marks) < 2 else [self.window.time]
        return self.distance_text() if len(self.marks) == 2 else "first mark set; the second mark shows the distance"

    def distance_text(self) -> str:
        return f"× to ×: {nanoseconds(abs(self.marks[1] - self.marks[0]))}"

    def step(self, *, forward: bool) -> str | None:
        """The cursor to the next or previous start in its lane."""
        lane = self.lane
        if lane is None:
            return "nothing to jump to"
        time = self.window.time
        start = lane.next_start(time) if forward else lane.previous_start(time)
        if start is None:
            return f"no {'later' if forward else 'earlier'} start in this row"
        self.window.move_to(float(start))
        return None

    def find(self, text: str, step: int) -> bool:
        """Find the next match by start, then by lane; ranges and kernels alike."""
        names = search_names({name for lane in self.lanes for name in lane.names_shown}, text)
        matches = sorted((start, line) for line, lane in enumerate(self.lanes) for start in lane.starts_of(names))
        if not matches:
            return False
        window = self.window
        position = (window.time, window.line)
        if self._last_match is not None and self._last_match.cursor == position:
            position = self._last_match.position
        index = bisect_right(matches, position) if step > 0 else bisect_left(matches, position) - 1
        time, line = matches[index % len(matches)]
        window.move_to(float(time))
        window.move_lines(line - window.line)
        self._last_match = _Match((time, line), (window.time, window.line))
        return True

    def record(self) -> dict[str, Any]:
        """The lanes in columns; ns from the start of the capture."""
        return {
            "page": "timeline",
            "lanes": [
                {
                    "kind": lane.kind,
                    "label": lane.label.strip(),
                    "names": [lane.name(i) for i in range(len(lane))],
                    "start_ns": (lane.start + self.origin).tolist(),
                    "end_ns": (lane.end + self.origin).tolist(),
                }
                for lane in self.lanes
            ],
        }

    def cells(self) -> Iterator[Sequence[object]]:
        """Yield a row per kernel and range."""
        yield "lane", "kind", "name", "start_ns", "end_ns"
        for lane in self.lanes:
            for i in range(len(lane)):
                start, end = int(lane.start[i]) + self.origin, int(lane.end[i]) + self.origin
                yield lane.label.strip(), lane.kind, lane.name(i), start, end

    def plot(self, axes: Any) -> None:
        """Plot a strip per lane, darker where something ran for more of the time."""
        edges = np.unique(np.linspace(self.window.start, self.window.end, _PLOT_CELLS).astype(np.int64))
        parts = [lane.covered_time(edges) / np.diff(edges) for lane in self.lanes] or [np.zeros(len(edges) - 1)]
        extent = ((edges[0] + self.origin) / 1e6, (edges[-1] + self.origin) / 1e6, len(parts), 0)
        axes.imshow(np.stack(parts).clip(0, 1), aspect="auto", cmap="Blues", interpolation="nearest", extent=extent)
        axes.set_yticks([i + 0.5 for i in range(len(self.lanes))], [lane.label for lane in self.lanes])
        axes.set_xlabel("ms")


def _search_texts(sources: NsysSources, matching: NDArray[np.bool_]) -> list[str]:
    """Return the share of the file that is drawn, under a search."""
    if not sources.search:
        return []
    kernels = found_text(sources, int(matching.sum()), len(matching), "kernel")
    ranges = found_text(sources, len(sources.matching_ranges), len(sources.projected), "range")
    return [f"“{sources.search}”: {kernels}, {ranges}"]


def _bar(label: str, left: int, right: int, cells: int) -> tuple[str, int]:
    """A bar from cell ``left`` to ``right`` as it is seen in a window of ``cells``, and where it begins there."""
    begin, end = max(left, 0), min(right, cells - 1)
    length = end - begin + 1
    if length <= 1:
        return "┃"[: max(length, 0)], begin
    head, tail = "┣" if left >= 0 else "━", "┫" if right < cells else "━"
    inner_cells = length - 2
    name = clip(label, inner_cells) if inner_cells > 2 else ""
    return head + name + "━" * (inner_cells - width(name)) + tail, begin


def _without_message(action: Callable[[Window], object]) -> Callable[[StreamTimeline], str | None]:
    def act(view: StreamTimeline) -> str | None:
        action(view.window)
        return None

    return act


def _zoom(factor: float) -> Callable[[StreamTimeline], str | None]:
    return lambda view: None if view.window.zoom(factor) else "zoom limit reached"


_COMMANDS: Final[dict[str, tuple[str, Callable[[StreamTimeline], str | None]]]] = {
    "left": ("cursor left", _without_message(lambda window: window.move(-1))),
    "right": ("cursor right", _without_message(lambda window: window.move(1))),
    "up": ("cursor up", _without_message(lambda window: window.move_lines(-1))),
    "down": ("cursor down", _without_message(lambda window: window.move_lines(1))),
    "page_left": ("window left", _without_message(lambda window: window.move_pages(-1))),
    "page_right": ("window right", _without_message(lambda window: window.move_pages(1))),
    "page_up": ("window up", _without_message(lambda window: window.move_lines(-window.height))),
    "page_down": ("window down", _without_message(lambda window: window.move_lines(window.height))),
    "zoom_in": ("zoom in at the cursor", _zoom(0.5)),
    "zoom_out": ("zoom out", _zoom(2.0)),
    "fit": ("show the whole recording", _without_message(lambda window: window.show_all())),
    "start": ("go to the start of the recording", _without_message(lambda window: window.move_to(0))),
    "end": ("go to the end of the recording", _without_message(lambda window: window.move_to(window.span))),
    "next": ("go to the next start of a kernel or range in this row", lambda view: view.step(forward=True)),
    "previous": ("go to the previous start of a kernel or range in this row", lambda view: view.step(forward=False)),
    "mark": ("set a mark; two marks show the time between them", lambda view: view.mark()),
}
