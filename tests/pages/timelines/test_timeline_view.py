"""The timeline of a launch in which everything is known, and of launches on an H200."""

from __future__ import annotations

import csv
import io
import json
import lzma
import re
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import MagicMock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pages.timelines import planted
from tests.pages.timelines.drawing import after, golden_view, read_timeline, text_of
from tests.trace.make import TraceWriter, block_sched_result
from tui_probe.draw.view import COMMANDS, Spot, no_progress
from tui_probe.pages.view_output import csv_of_view, view_lines
from tui_probe.pages.views.timeline import KIND, TimelineView
from tui_probe.pages.views.timeline_window import TIMELINE_MOVES
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.timelines.drawing import Window
from tui_probe.probekit.timelines.launch import LaunchTimeline
from tui_probe.probekit.timelines.rows import LengthGrades
from tui_probe.trace.follow import open_trace

if TYPE_CHECKING:
    from tui_probe.draw.spans import Line

RECORDED = Path(__file__).parents[2] / "data" / "h200"


def opened(source: ViewSource) -> TimelineView:
    view = KIND.open(source, no_progress)
    assert isinstance(view, TimelineView)
    text_of(view, (80, 24))
    return view


@pytest.fixture
def view(tmp_path: Path) -> TimelineView:
    return opened(planted.write_planted(tmp_path / "t"))


@pytest.fixture
def timed(tmp_path: Path) -> TimelineView:
    return opened(planted.write_planted(tmp_path / "timed", simulated=False))


@cache
def launch(name: str, kernel: int) -> LaunchTimeline:
    """Read once: views do not change it."""
    trace = open_trace(RECORDED / name)
    return read_timeline(ViewSource(trace, trace.kernels[kernel]))


def recorded(name: str, kernel: int) -> TimelineView:
    view = TimelineView(launch(name, kernel))
    text_of(view, (80, 24))
    return view


def above_axis(lines: list[str]) -> list[str]:
    """The rows of a picture: what is below the head and above the axis."""
    return lines[1 : next(place for place, line in enumerate(lines) if "▲" in line)]


def named_rows(lines: list[str]) -> list[str]:
    """The lines that begin with the name of a row."""
    return [line for line in lines if line[1:].startswith("SM ")]


def line_of(lines: list[str], label: str) -> str:
    (found,) = [line for line in lines if line[1:].startswith(f"{label} ")]
    return found


@pytest.mark.parametrize("level", ["SM", "slot", "warp"])
def test_goldens(view: TimelineView, level: str) -> None:
    while view.selection.level != level:
        view.press("level")
    golden_view(f"timeline-{level}", view)


@pytest.mark.parametrize(("name", "kernel"), [("demo", 6), ("torch_compile", 4)])
def test_goldens_of_an_h200(name: str, kernel: int) -> None:
    golden_view(f"timeline-{name}", recorded(name, kernel))


def test_the_idle_sm_is_an_empty_row(view: TimelineView) -> None:
    lines = text_of(view, (80, 24))
    assert line_of(lines, f"SM {planted.IDLE_SM}").split() == ["SM", str(planted.IDLE_SM), "–"]
    assert sum("–" in line for line in lines[1:-6]) == 1
    assert "50 blocks on 5 of 6 SMs" in lines[0]


def test_the_straggler_is_the_longest_bar_and_is_marked(view: TimelineView) -> None:
    lines = after(view, "level")
    bars = [line for line in above_axis(lines) if "┣" in line]
    longest = max((part for line in bars for part in line.split("┫")), key=lambda part: len(part.strip()))
    assert longest.strip().startswith(f"┣{planted.STRAGGLER}!══")
    row = next(line for line in lines if f"{planted.STRAGGLER}!" in line)
    assert row[1:].startswith(f"SM {planted.STRAGGLER_SM}.")
    assert "!" in row[: row.index("┣")]
    assert sum(line.count("!") for line in above_axis(lines)) == 2
    assert line_of(text_of(opened_again(view), (80, 24)), f"SM {planted.STRAGGLER_SM}").split()[2] == "!"


def test_colour_is_the_duration_against_the_median(view: TimelineView) -> None:
    """All blocks but the straggler take 1 000 cycles: neighbours have one colour."""
    shares = list(view_lines(view, 80, 24))
    assert roles_of(shares[1:3], "█") == {"hue0"}
    sm_4 = 1 + planted.STRAGGLER_SM * view.row_height
    assert roles_of(shares[sm_4 : sm_4 + view.row_height], "█") == {"hue0", "bad"}
    after(view, "level")
    bars = list(view_lines(view, 80, 24))
    assert roles_of(bars[1:12], "━") == {"hue0"}
    assert roles_of(bars[1:12], "═") == {"bad"}
    legend = "".join(text for text, _ in bars[14])
    assert "share" not in legend
    assert "┣━━┫ about 1 000 cycles, the median" in legend


def roles_of(lines: list[Line], sign: str) -> set[str]:
    return {role for line in lines for text, role in line if sign in text}


@given(st.lists(st.integers(0, 5000), max_size=30), st.integers(1, 2000), st.integers(1, 9))
def test_grades_follow_durations(cycles: list[int], median: int, far: int) -> None:
    grades = LengthGrades(median, median * (1.1 + far)).grades(np.array(cycles, dtype=np.int64))
    for each, grade in zip(cycles, grades.tolist(), strict=True):
        part = each / median
        assert grade == (3 if part > 1.1 + far else 2 if part >= 1.1 else 1 if part >= 0.9 else 0) or min(
            abs(part - edge) for edge in (0.9, 1.1, 1.1 + far)
        ) < 1e-6  # fmt: skip


def opened_again(view: TimelineView) -> TimelineView:
    while view.selection.level != "SM":
        view.press("level")
    return view


def test_the_tail_is_the_stragglers(view: TimelineView) -> None:
    assert (view.tail.start, view.tail.cycles, view.tail.last_sm) == (planted.END, planted.SPAN - planted.END, 4)
    assert view.tail.idle_share == pytest.approx(4 / 5)
    lines = text_of(view, (80, 24))
    assert "80% idle, 29.1% of SM time lost" in lines[-2]
    assert "SM 4 ends last" in lines[-2]
    axis = lines[-5]
    assert axis.index("T") == next(i for i in range(len(axis)) if window_time(view, i) >= planted.END - 1)


def window_time(view: TimelineView, cell: int) -> float:
    """The end of the cycles of a cell of an 80-column window."""
    left = 80 - view.window.cells
    return view.window.start + (cell - left + 1) * view.window.width / view.window.cells


def test_gaps_are_shown_and_reported(view: TimelineView) -> None:
    after(view, "level")
    for _ in range(2):
        view.press("next")
    assert f"gap before: {planted.GAP}" in view.status()
    assert view.window.time == 2 * (planted.CYCLES + planted.GAP)
    line = after(view, *["zoom_in"] * 5)[1]
    gap = line.partition("┫")[2].partition("┣")[0]
    assert set(gap) == {" "}
    assert len(gap) == pytest.approx(planted.GAP / view.window.width * view.window.cells, abs=1.5)


def test_reading_under_the_cursor(view: TimelineView) -> None:
    after(view, "level", "next")
    assert view.status()[:3] == ["SM 0 slot 0", "block 10", "1 060 to 2 060"]
    assert view.status()[-1] == "1 000 cycles"
    after(view, "level", "down")
    assert view.status()[:2] == ["SM 0 slot 0", "block 10 warp 1"]


def test_a_block_has_a_place_in_its_grid() -> None:
    view = recorded("demo", 4)  # 8 × 8 blocks
    after(view, "level")
    block = view.spot().block
    assert block is not None
    assert view.status()[1] == f"block {block} ({block % 8},{block // 8})"
    launch = view.launch
    assert replace(launch, grid=(4, 3, 2)).block_label(23) == "block 23 (3,2,1)"
    assert replace(launch, grid=(64, 1, 1)).block_label(23) == "block 23"


def test_cycles_of_a_simulated_gpu_are_no_time(view: TimelineView, timed: TimelineView) -> None:
    text = "\n".join(text_of(view, (80, 24)))
    assert "µs" not in text
    assert "simulated" in text
    assert "unit" not in view.commands()
    assert "8 240 cycles (4.16 µs)" in text_of(timed, (80, 24))[0]
    assert "µs" in after(timed, "unit")[-4]


def test_two_marks_measure(timed: TimelineView) -> None:
    assert timed.press("mark") == "first mark set; the second mark shows the distance"
    timed.press("next")
    assert timed.press("mark") == "× to ×: 1 060 cycles (535 ns)"
    assert timed.status()[-1] == "× to ×: 1 060 cycles (535 ns)"
    assert text_of(timed, (80, 24))[-5].count("×") == 1, "the cursor hides the second"


def test_the_worst_place_is_the_straggler_then_the_tail(view: TimelineView) -> None:
    after(view, "worst")
    assert f"block {planted.STRAGGLER}" in view.status()
    assert view.status()[0].startswith(f"SM {planted.STRAGGLER_SM} ")
    after(view, "worst")
    assert view.window.time == planted.END
    assert view.press("worst") == f"the longest block: block {planted.STRAGGLER} on SM {planted.STRAGGLER_SM}"
    after(view, "level", "level")  # the cursor stays on it
    assert f"block {planted.STRAGGLER} warp 0" in view.status()


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
def test_the_cursor_is_on_what_the_worst_place_names_where_rows_share_lines(size: tuple[int, int]) -> None:
    trace = open_trace(RECORDED / "attention_blocks")
    view = opened(ViewSource(trace, trace.kernels[1]))
    text_of(view, size)
    for _ in range(3):
        sm, block = named_place(view.press("worst"))
        text_of(view, size)
        assert view.status()[0].startswith(f"SM {sm} slot ")
        assert view.status()[1] == block


def named_place(words: str | None) -> tuple[str, str]:
    """The SM and the block that a message names."""
    match = re.search(r"(block \d+(?: \(.*?\))?) on SM (\d+)", words or "")
    assert match is not None, words
    return match[2], match[1]


def test_an_idle_sm_is_named_where_rows_share_lines(view: TimelineView) -> None:
    after(view, "zoom_out_rows", "zoom_out_rows")
    assert view.go_to(Spot(sm=planted.IDLE_SM))
    assert view.status()[:2] == [f"SM {planted.IDLE_SM}", "ran no block"]
    assert view.spot().sm == planted.IDLE_SM


def test_a_launch_of_like_blocks_has_no_worst_place(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t")
    writer.start()
    writer.kernel(0, "even")
    start, sm = np.full(4, 7_000), np.arange(4)
    writer.save(0, writer.launch(0, (4, 1, 1), (64, 1, 1)), block_sched_result(start, start * 0 + 90, sm, threads=64))
    trace = open_trace(writer.directory)
    view = opened(ViewSource(trace, trace.kernels[0], trace.launches[0]))
    text_of(view, (80, 24))
    assert "no stragglers" in str(view.press("worst"))


def test_the_next_launch_keeps_cursor_level_and_window(view: TimelineView, tmp_path: Path) -> None:
    after(view, "level", "down", "down", "down", "worst", "zoom_in", "zoom_in")
    other = TimelineView(read_timeline(planted.write_planted(tmp_path / "other")))
    other.take_over(view)
    lines = text_of(other, (80, 24))
    assert other.selection == view.selection
    assert (other.window.start, other.window.width) == (view.window.start, view.window.width)
    assert other.window.time == view.window.time
    assert other.status() == view.status()
    assert sum(line.startswith("▌") for line in lines) == 1


def test_the_cursor_is_kept_where_everything_is_in_sight(view: TimelineView, tmp_path: Path) -> None:
    after(view, "down", "down", "next")
    other = TimelineView(read_timeline(planted.write_planted(tmp_path / "other")))
    other.take_over(view)
    text_of(other, (80, 24))
    assert other.window.width == other.window.full_width
    assert other.status() == view.status()


def test_orders(view: TimelineView) -> None:
    lines = after(view, "order")
    names = [line[1:].split()[1] for line in named_rows(lines)]
    assert [names[0], names[-1]] == [str(planted.STRAGGLER_SM), "3"]
    assert "by finish" in lines[-1]


def test_single_sm(view: TimelineView) -> None:
    lines = after(view, "down", "select", "level")
    assert [line[1:].split()[1] for line in named_rows(lines)] == ["1.0", "1.1"]
    assert "SM 1 only" in "".join(lines)
    assert len(after(view, "select")[1].split()) > 0
    assert view.selection.sm is None


def test_every_command_is_known_and_draws(view: TimelineView) -> None:
    assert set(view.commands()) <= set(COMMANDS)
    for command in view.commands():
        after(view, command)
        for words in view.status():
            assert words


@pytest.mark.parametrize("command", ["next", "previous", "select", "order", "end"])
def test_a_key_may_come_before_new_rows_are_drawn(view: TimelineView, command: str) -> None:
    """Rows are made in the background: fewer of them may be there when a key comes than were drawn last."""
    after(view, "level", "level", *["down"] * 20)
    view.press("level")
    work = view.prepare(80, 24)
    assert work is not None
    work()
    view.press(command)
    assert view.status()
    assert len(text_of(view, (80, 24))) == 24


def test_many_rows_share_a_line_and_can_be_taken_apart() -> None:
    view = recorded("demo", 6)
    together = view.selection.rows_per_line
    assert together == -(-132 // 18)
    assert len(after(view, "zoom_in_rows")) == 24
    assert view.selection.rows_per_line == together // 2
    after(view, "zoom_in_rows", "zoom_in_rows")
    assert view.selection.rows_per_line == 1
    assert view.press("zoom_in_rows") is not None
    after(view, "fit")
    assert view.selection.rows_per_line == together


def test_a_click_puts_the_cursor_there(view: TimelineView) -> None:
    sm_4 = 1 + 4 * view.row_height
    view.click(79, sm_4 + view.row_height - 1)
    assert view.status()[0] == f"SM {planted.STRAGGLER_SM} slot 1"
    assert view.status()[1] == f"block {planted.STRAGGLER}"


def test_a_click_in_a_narrow_page_goes_where_the_rows_are_drawn() -> None:
    view = recorded("demo", 6)
    text_of(view, (12, 24))
    view.click(11, 2)
    assert text_of(view, (12, 24))[2].startswith("▌")
    assert view.window.column(view.window.time) == 11 - 12 // 2


def test_a_click_below_the_rows_stays_in_the_row(view: TimelineView) -> None:
    axis = next(place for place, line in enumerate(text_of(view, (80, 60))) if "▲" in line)
    assert axis < 50
    view.click(79, axis)
    assert (view.window.line, view.window.column(view.window.time)) == (0, view.window.cells - 1)


def test_data(view: TimelineView) -> None:
    record = json.loads(json.dumps(view.record()))
    assert record["idle_sms"] == [planted.IDLE_SM]
    assert record["tail"]["last_sm"] == planted.STRAGGLER_SM
    assert record["block_cycles"]["p100"] == planted.STRAGGLER_CYCLES
    rows = list(csv.DictReader(io.StringIO("\n".join(csv_of_view(view)))))
    assert len(rows) == 50
    longest = max(rows, key=lambda row: int(row["cycles"]))
    assert (longest["block"], longest["sm"], longest["warp"]) == (str(planted.STRAGGLER), "4", "")


def test_reason_for_missing_view_is_given(tmp_path: Path) -> None:
    trace = open_trace(RECORDED / "torch_compile")
    assert "no PTX in image" in (KIND.missing_reason(ViewSource(trace, trace.kernels[0])) or "")
    writer = TraceWriter(tmp_path / "t")
    writer.start()
    writer.kernel(0, "add")
    writer.launch(0, (2, 1, 1), (128, 1, 1))
    trace = open_trace(writer.directory)
    assert "has no result" in (KIND.missing_reason(ViewSource(trace, trace.kernels[0], trace.launches[0])) or "")


@pytest.mark.parametrize("size", [(20, 6), (40, 10), (300, 100)])
def test_any_size(view: TimelineView, size: tuple[int, int]) -> None:
    assert len(text_of(view, size)) == size[1]
    after(view, "level", "level", size=size)


def test_roles_are_few_and_runs_are_merged(view: TimelineView) -> None:
    for line in view_lines(view, 200, 50):
        assert all(a[1] != b[1] for a, b in pairwise(line))


def test_a_fill_of_an_h200_spends_its_time_on_scheduling(tmp_path: Path) -> None:
    """32 768 blocks: the first wave fills the slots, later blocks are over faster than others can be scheduled."""
    writer = TraceWriter(tmp_path / "t")
    writer.start()
    writer.kernel(0, "zero_fill")
    launch = writer.launch(0, (32768, 1, 1), (128, 1, 1))
    writer.save(0, launch, lzma.decompress((RECORDED / "zero_fill.bin.xz").read_bytes()))
    trace = open_trace(writer.directory)
    view = opened(ViewSource(trace, trace.kernels[0]))
    lines = text_of(view, (120, 40))[1:34]
    assert {line[15] for line in lines} == {"█"}
    assert set("".join(line[24:] for line in lines)) <= set("▁▂")
    assert "132 SMs on 8 clocks, aligned at the first block of each SM ±103 cycles" in "".join(text_of(view, (120, 40)))
    lines = after(view, "level", *["right"] * 60, *["zoom_in"] * 4, "next", size=(120, 40))
    assert any(line.count("┣") > 1 for line in lines)
    (gap,) = (int(part.removeprefix("gap before: ").replace(" ", "")) for part in view.status() if "gap before" in part)
    assert gap > view.timeline.blocks.duration.mean()


def test_another_launch_is_shown_in_the_same_way(tmp_path: Path, view: TimelineView) -> None:
    after(view, "level", "order", "zoom_in", "zoom_in", "right")
    other = opened(planted.write_planted(tmp_path / "other"))
    other.take_over(view)
    assert text_of(other, (80, 24)) == text_of(view, (80, 24))
    other = opened(planted.write_planted(tmp_path / "whole"))
    after(view, "fit")
    other.take_over(view)
    assert other.window.width == other.window.full_width


def test_a_picture_for_matplotlib(view: TimelineView) -> None:
    axes = MagicMock()
    view.plot(axes)
    (share,), how = axes.imshow.call_args
    assert share.shape[0] == planted.SMS
    assert (share[planted.IDLE_SM] == 0).all()
    assert share.max() == pytest.approx(1)
    assert how["extent"][:2] == (0, planted.SPAN)


@given(st.lists(st.sampled_from([*TIMELINE_MOVES, "click", "resize"]), max_size=25))
def test_nothing_that_is_pressed_breaks_the_picture(presses: list[str]) -> None:
    view = recorded("torch_compile", 6)
    size = (90, 20)
    for press in presses:
        size = (61, 12) if press == "resize" else size
        if press == "click":
            view.click(40, 3)
        view.press(press)
        lines = text_of(view, size)
        assert sum(line.startswith("▌") for line in named_rows(lines)) == 1
        assert sum(line.count("▲") for line in lines) == 1
        assert all(view.status())


@given(st.integers(100, 10**10), st.integers(10, 300), st.floats(0, 1), st.integers(0, 12))
def test_zooming_in_and_out_again_changes_nothing(span: int, cells: int, place: float, steps: int) -> None:
    window = Window(span, 40, cells)
    window.move_to(span * place)
    window.zoom(0.5)
    begin, width, time = window.start, window.width, window.time
    done = [window.zoom(0.5) for _ in range(steps)]
    while done and not done[-1]:
        done.pop()
    stopped = window.width <= cells
    if stopped:
        return
    for _ in done:
        window.zoom(2)
    assert (window.start, window.width, window.time) == pytest.approx((begin, width, time), abs=width * 1e-6)


@given(st.lists(st.sampled_from(["zoom", "out", "left", "right", "page", "back", "resize"]), max_size=30))
def test_the_cursor_is_always_in_view(moves: list[str]) -> None:
    window = Window(12_345, 7, 61, 4)
    acts = {
        "zoom": lambda: window.zoom(0.5), "out": lambda: window.zoom(2), "left": lambda: window.move(-7),
        "right": lambda: window.move(11), "page": lambda: window.move_pages(1), "back": lambda: window.move_pages(-1),
        "resize": lambda: window.resize(90, 3),
    }  # fmt: skip
    for move in moves:
        acts[move]()
        assert 0 <= window.column(window.time) < window.cells
        assert window.start >= 0
        assert window.end <= window.full_width + 1e-6
        assert window.edges()[-1] - window.edges()[0] == pytest.approx(window.width, abs=1)


def test_window_at_its_end_says_so(view: TimelineView) -> None:
    text_of(view, (100, 30))
    assert view.press("fit") == "the whole launch is shown"
    assert view.press("zoom_in") is None
    assert view.press("fit") is None
    view.press("end")
    view.press("page_right")
    assert view.press("page_right") == "end of the launch"
