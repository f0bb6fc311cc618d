"""The timeline of streams: what is drawn, and what keys do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.importers.export import call, kernel, span, tables, write_export
from tui_probe.draw.spans import plain
from tui_probe.nsight.analysis.stream_times import covered_time
from tui_probe.nsight.importers.nsys import read_nsys
from tui_probe.nsight.pages.nsys_pages import gaps_page, kernels_page
from tui_probe.nsight.pages.nsys_profile import NsysSources, nsys_head
from tui_probe.nsight.pages.timeline import StreamTimeline


@pytest.fixture
def view(tmp_path: Path) -> StreamTimeline:
    """Two streams: a kernel of 1 µs, one of 2 µs 3 µs later, and one on the other stream."""
    kernels = [kernel(1000, 2000, 1), kernel(5000, 7000, 2, name=4), kernel(1500, 3000, 3, stream=8)]
    calls = [call(10, 12, 1), call(20, 22, 2), call(30, 32, 3)]
    ranges = [span(5, 40, "outer"), span(6, 15, "inner")]
    path = write_export(tmp_path / "x.sqlite", tables(kernels, calls, ranges))
    return StreamTimeline(NsysSources(read_nsys([path])))


def drawn(view: StreamTimeline, width: int = 72, height: int = 10, **options: bool) -> list[str]:
    return [plain(line) for line in view.draw(width, height, **options)]


def test_lanes_and_bars(view: StreamTimeline) -> None:
    lines = drawn(view)
    assert [line[:12].strip(" ▌") for line in lines[1:6]] == [
        "stream 7",
        "ranges 0",
        "ranges 1",
        "stream 8",
        "ranges 0",
    ]
    kernels, outer, inner, other = (line[12:] for line in lines[1:5])
    assert kernels == "┣f(int)━━┫" + " " * 30 + "┣g(int)━━━━━━━━━━━━┫"
    assert outer == "┣outer" + "━" * 53 + "┫"
    assert inner == "┣inner━━━┫"
    assert other.startswith("     ┣f(int)")
    assert len(lines) == 10


def test_ascii(view: StreamTimeline) -> None:
    assert all(line.isascii() for line in drawn(view, ascii_only=True))


def test_a_stream_with_more_kernels_than_cells_is_shaded(tmp_path: Path) -> None:
    kernels = [kernel(100 * i, 100 * i + 50, i) for i in range(1, 400)]
    path = write_export(tmp_path / "x.sqlite", tables(kernels, [], []))
    line = drawn(StreamTimeline(NsysSources(read_nsys([path]))))[1]
    assert set(line[12:]) <= set("▃▄▅")
    assert len(line) == 72


def test_the_cursor_tells_what_is_there(view: StreamTimeline) -> None:
    drawn(view)
    assert view.status() == ["f(int)", "from 1.00 µs", "1.00 µs"]
    assert view.press("next") is None
    assert view.status() == ["g(int)", "from 5.00 µs", "2.00 µs"]
    assert view.press("next") == "no later start in this row"
    view.press("left")
    assert view.status()[0] == "before the cursor: f(int)"
    view.press("down")
    assert view.status()[0] == "outer"
    for _ in range(3):
        view.press("down")
    assert view.lane is not None
    assert view.lane.label == "  ranges 0"


def test_times_are_those_of_the_other_pages(view: StreamTimeline) -> None:
    lines = drawn(view, 120)
    assert lines[0].endswith("5 lanes · 6.00 µs · times from the start of the capture")
    starts = [start for lane in view.record()["lanes"] if lane["kind"] == "kernels" for start in lane["start_ns"]]
    rows = kernels_page(view.sources).record()["kernels"]
    assert sorted(starts) == sorted(row["start_ns"] for row in rows) == [1000, 1500, 5000]
    assert [row[3] for row in view.cells()][1:3] == [1000, 5000]
    assert [line[:9].strip() for line in lines[-2:]] == ["time of", "capture"], "also where the head has no room"
    assert lines[-1].split()[:3] == ["capture", "1", "µs"], "the first kernel of the capture begins there, not at 0"


def test_times_are_distinct_far_from_the_start(tmp_path: Path) -> None:
    late = 5_000_000_000
    kernels = [kernel(late, late + 2000, 1), kernel(late + 5000, late + 6000, 2)]
    view = StreamTimeline(NsysSources(read_nsys([write_export(tmp_path / "x.sqlite", tables(kernels, [], []))])))
    lines = drawn(view, 100)
    assert view.press("next") is None
    assert view.status()[1] == "from 5.00000500 s"
    labels = lines[-1].split()[1::2]
    assert len(labels) == len(set(labels)) > 2


def test_range_lanes_long_after_first_kernel(tmp_path: Path) -> None:
    early = -(1 << 40)
    kernels = [kernel(early, early + 9, 1), kernel(30, 40, 2), kernel(50, 60, 3)]
    ranges = [span(10, 25, "a"), span(26, 40, "b")]
    path = write_export(tmp_path / "x.sqlite", tables(kernels, [call(20, 22, 2), call(30, 32, 3)], ranges))
    view = StreamTimeline(NsysSources(read_nsys([path])))
    assert [lane["start_ns"] for lane in view.record()["lanes"]] == [[early, 30, 50], [30, 50]]
    assert view.lanes[1].start.tolist() == [30 - early, 50 - early]


def test_only_what_a_search_means_is_drawn(tmp_path: Path) -> None:
    kernels = [kernel(1000, 2000, 1), kernel(5000, 7000, 2, name=4), kernel(1500, 3000, 3, stream=8)]
    calls = [call(10, 12, 1), call(20, 22, 2), call(30, 32, 3)]
    ranges = [span(5, 40, "outer"), span(6, 15, "inner")]
    report = read_nsys([write_export(tmp_path / "x.sqlite", tables(kernels, calls, ranges))])

    def found(search: str) -> StreamTimeline:
        return StreamTimeline(NsysSources(report, search))

    inner = found("inner")
    names = [lane["names"] for lane in inner.record()["lanes"]]
    assert names == [["f(int)"], ["inner"]], "a kernel within a range of that name, and the range"
    assert "“inner”: 1 of 3 kernels, 1 of 3 ranges" in drawn(inner, 120)[0]
    assert [lane["names"] for lane in found("g(int)").record()["lanes"]] == [["g(int)"]]
    nothing = found("nothing of that name")
    assert nothing.record()["lanes"] == []
    assert "0 of 3 kernels, 0 of 3 ranges" in drawn(nothing, 120)[0]
    assert [line.strip() for line in drawn(nothing, 120)[1:]] == ["nothing to show", *[""] * 8]


def test_counts_under_a_search_are_of_what_is_found(tmp_path: Path) -> None:
    kernels = [kernel(1000, 2000, 1), kernel(5000, 7000, 2, name=4), kernel(9000, 9500, 3)]
    calls = [call(10, 12, 1), call(20, 22, 2), call(30, 32, 3)]
    ranges = [span(5, 40, "outer"), span(6, 15, "inner"), span(50, 60, "host only")]
    report = read_nsys([write_export(tmp_path / "x.sqlite", tables(kernels, calls, ranges))])
    sources = NsysSources(report, "inner")
    assert dict(nsys_head(sources))["seen"] == (
        "1 of 3 kernels, 1 stream, 1 of 2 projected ranges, 1.00 µs, times from the start of the capture"
    )
    assert dict(nsys_head(NsysSources(report)))["seen"] == (
        "3 kernels, 1 stream, 2 projected ranges, 1 host-only range left out, 8.50 µs,"
        " times from the start of the capture"
    )
    assert gaps_page(sources).texts.findings[0] == "3.00 µs in 1 of 2 gaps next to matches"
    assert gaps_page(NsysSources(report)).texts.findings[0] == "5.00 µs in 2 gaps of all streams"


def test_zoom_pan_and_marks(view: StreamTimeline) -> None:
    drawn(view)
    assert view.press("zoom_out") == "zoom limit reached"
    view.press("next")
    assert view.press("mark") == "first mark set; the second mark shows the distance"
    view.press("zoom_in")
    lines = drawn(view)
    assert view.window.width == 3000
    assert "┣g(int)" in lines[1]
    view.press("start")
    assert view.press("mark") == "× to ×: 4.00 µs"
    view.press("fit")
    assert drawn(view)[1].endswith("┫")
    view.click(71, 1)
    assert view.status()[1] == "g(int)"
    assert view.press("no such command") is None


def test_a_click_in_a_narrow_page_goes_where_the_lanes_are_drawn(view: StreamTimeline) -> None:
    drawn(view, 16)
    view.click(15, 9)  # below the lanes
    assert (view.window.line, view.window.column(view.window.time)) == (0, 7)
    view.click(8, 2)
    assert (view.window.line, view.window.column(view.window.time)) == (1, 0)


def test_every_command_is_explained(view: StreamTimeline) -> None:
    drawn(view)
    for command, words in view.commands().items():
        assert words
        view.press(command)
        assert len(drawn(view, 40, 8)) == 8


def test_ranges_only(tmp_path: Path) -> None:
    path = write_export(tmp_path / "x.sqlite", tables([], [], [span(5, 40, "host")]))
    view = StreamTimeline(NsysSources(read_nsys([path])))
    assert len(drawn(view)) == 10
    assert view.status() == ["at 0 ns: nothing has started"]
    assert view.press("next") == "nothing to jump to"


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=8), st.lists(st.integers(-5, 80), max_size=6)
)
def test_time_covered(intervals: list[tuple[int, int]], times: list[int]) -> None:
    starts = np.array(sorted(start for start, _ in intervals), dtype=np.int64)
    ends = np.array(sorted(start + length for start, length in intervals), dtype=np.int64)
    by_hand = [sum(max(0, min(time, start + length) - start) for start, length in intervals) for time in times]
    assert covered_time(starts, ends, np.array(times, dtype=np.int64)).tolist() == by_hand
