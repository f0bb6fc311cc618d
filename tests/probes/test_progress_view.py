"""Warp progress of a kernel on the simulated GPU, one of whose warps goes thirty times as many rounds."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pytest

from tests.pages.timelines.drawing import after, golden_view, text_of
from tests.probes.running import result_of
from tests.probes.test_warp_progress import HEAD, TEXT
from tests.trace.make import TraceWriter, result_bytes
from tui_probe.draw.view import no_progress
from tui_probe.pages.view_output import csv_of_view
from tui_probe.pages.views import timeline
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probes.warp_progress import PROGRESS
from tui_probe.probes.warp_progress.view import ProgressView
from tui_probe.records.warp_pace import PACE, WARP
from tui_probe.trace.follow import open_trace

WARPS, BLOCK, PLANTED = 64, 64, 43
"""``PLANTED`` is the number of a warp in the launch: warp 1 of block 21."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> ViewSource:
    rounds = np.repeat(3 + np.arange(WARPS) % 3, 32).astype(np.uint32)
    rounds[PLANTED * 32 :][:32] = 90
    folder = tmp_path_factory.mktemp("progress")
    grid = (WARPS * 32 // BLOCK,)
    result = result_of(folder, "warp_progress", TEXT, rounds, grid=grid, block=(BLOCK,))
    writer = TraceWriter(folder / "t")
    writer.start(device="Simulated GPU", sms=4)
    kernel = writer.kernel(0, "rounds")
    maps = "".join(f"1,{section.slot_bytes}\n" for section in result.sections)
    (kernel / "kernel.info").write_text(f"rounds\n1\n{len(result.sections)}\n{maps}callback warp_progress\n")
    launch = writer.launch(0, (*grid, 1, 1), (BLOCK, 1, 1))
    writer.save(0, launch, result.path.read_bytes())
    writer.exit()
    trace = open_trace(writer.directory)
    return ViewSource(trace, trace.kernels[0])


@pytest.fixture
def view(source: ViewSource) -> ProgressView:
    assert PROGRESS.missing_reason(source) is None
    view = PROGRESS.open(source, no_progress)
    assert isinstance(view, ProgressView)
    text_of(view, (80, 24))
    return view


def test_the_worst_place_is_the_end_of_the_slowest_warp(view: ProgressView) -> None:
    after(view, "end", "worst")
    assert any("block 21 (21,0) warp 1" in words or "block 21 warp 1" in words for words in view.status())
    warps = view.paces.warps
    assert view.window.time == pytest.approx(warps.end[view.stragglers[0]], abs=view.window.width / view.window.cells)


def test_the_next_launch_keeps_window_cursor_and_unit(view: ProgressView, source: ViewSource) -> None:
    after(view, "worst", "zoom_in", "zoom_in")
    other = PROGRESS.open(source, no_progress)
    assert isinstance(other, ProgressView)
    other.take_over(view)
    text_of(other, (80, 24))
    assert (other.window.start, other.window.width) == (view.window.start, view.window.width)
    assert (other.window.time, other.in_time) == (view.window.time, view.in_time)


def write_known(directory: Path) -> ViewSource:
    """96 warps on four SMs whose clocks lie far apart: 40 to 43 iterations of 100 cycles, one of them of 250."""
    writer = TraceWriter(directory)
    writer.start(sms=4)
    kernel = writer.kernel(0, "attention")
    (kernel / "kernel.info").write_text("attention\n1\n3\n1,24\n1,1024\n1,4\ncallback warp_progress\n")
    number = np.arange(96)
    block, reached = number // 4, 40 + number % 4
    begun = 200 + 30 * block + 5000 * (block % 3)
    cycles = np.where(number == PLANTED, 250, 100)
    warps, pace = np.zeros(96, WARP), np.zeros((96, 128), PACE)
    warps["sm"] = block % 4
    warps["start"] = begun + warps["sm"].astype(np.uint64) * np.uint64(10**7)
    warps["time"] = 10**15 + begun * 1000 // 1980
    warps["elapsed"] = 150 + reached * cycles
    recorded = np.arange(128) < reached[:, np.newaxis]
    clock = warps["start"].astype(np.int64)[:, np.newaxis] + 50 + cycles[:, np.newaxis] * np.arange(128)
    pace["clock"], pace["line"] = np.where(recorded, clock, 0), np.where(recorded, 77, 0)
    maps = [(32, cycles.view(np.uint8).reshape(24, 4, -1)) for cycles in (warps, pace, reached.astype("<u4"))]
    about = [(1, WARP.itemsize, b"\xff" * 12), (2, PACE.itemsize, b""), (3, 4, b"")]
    content = result_bytes((24, 1, 1), (128, 1, 1), maps, about=about)
    writer.save(0, writer.launch(0, (24, 1, 1), (128, 1, 1)), content)
    trace = open_trace(directory)
    return ViewSource(trace, trace.kernels[0])


def test_goldens(tmp_path: Path) -> None:
    golden_view("progress", PROGRESS.open(write_known(tmp_path / "t"), no_progress))


def test_sms_are_aligned_by_the_timer_and_the_rate_is_measured(tmp_path: Path) -> None:
    view = PROGRESS.open(write_known(tmp_path / "t"), no_progress)
    assert isinstance(view, ProgressView)
    assert view.launch.clock_khz == pytest.approx(1_980_000, rel=1e-3)
    assert view.launch.clock_origin == "as measured"
    starts = view.paces.warps.start - view.paces.warps.start.min()
    known = 30 * view.paces.warps.block + 5000 * (view.paces.warps.block % 3)
    error = view.launch.timeline.clocks.error
    assert error is not None
    assert error < 20
    assert np.abs(starts - known).max() <= error + 1
    assert view.paces.time.max() == view.paces.warps.end.max()


def test_planted_warp_is_the_only_outlier(view: ProgressView) -> None:
    lines = text_of(view, (80, 24))
    assert "64 warps, vertical: iterations of the loop at line" in lines[0]
    assert f"at line {HEAD}" in lines[0]
    assert sum(line.count("!21.1") for line in lines) == 1
    assert "! 1 straggler" in lines[-2]
    marked = next(i for i, line in enumerate(lines) if "!21.1" in line)
    assert marked == 1, "it came farthest"


def test_lines_are_at_their_arrivals(view: ProgressView) -> None:
    paces = view.paces
    assert paces.arrivals[view.stragglers].tolist() == [90]
    assert sorted(set(paces.arrivals.tolist())) == [3, 4, 5, 90]
    for place in (0, 5, int(view.stragglers[0])):
        points = slice(int(paces.offsets[place]), int(paces.offsets[place + 1]))
        times = paces.time[points]
        assert (np.diff(times) >= 0).all()
        assert paces.counts_at(times[1:-1])[place] == pytest.approx(paces.count[points][1:-1])
    before = paces.counts_at(np.array([paces.warps.start.max() - 1.0]))
    assert np.isnan(before[paces.warps.start.argmax(), 0])


def test_to_the_straggler(view: ProgressView) -> None:
    after(view, "next")
    cell = view.window.width / view.window.cells
    assert view.window.time == pytest.approx(view.paces.warps.end[view.stragglers[0]], abs=cell)
    assert view.status()[-1].startswith("block 21 warp 1 on SM")
    assert "× the median" in view.status()[-1]
    assert "1 warp of 64 running" in view.status()


def test_zooming_computes_another_picture(view: ProgressView) -> None:
    picture = text_of(view, (80, 24))
    assert after(view, "zoom_in") != picture
    assert after(view, "zoom_out") == picture
    assert view.prepare(80, 24) is None


def test_every_line_is_in_the_picture(view: ProgressView) -> None:
    """Above each column are as many dots as lines pass there, each line once or more."""
    text_of(view, (80, 24))
    shown = view._picture
    assert shown is not None
    times = shown.begin + shown.width * (np.arange(shown.dots.shape[1]) + 0.5) / shown.dots.shape[1]
    alive = (~np.isnan(view.paces.counts_at(times))).sum(axis=0)
    assert (shown.dots.sum(axis=0) >= alive).all()
    assert ((shown.dots.sum(axis=0) > 0) == (alive > 0)).all()
    assert shown.has_straggler.any(axis=0).sum() > shown.dots.shape[1] / 2


def test_data(view: ProgressView) -> None:
    record = json.loads(json.dumps(view.record()))
    assert record["main_loop"] == HEAD
    assert record["warps"]["arrivals"][record["warps"]["stands_out"].index(True)] == 90
    rows = list(csv.DictReader(io.StringIO("\n".join(csv_of_view(view)))))
    assert [(row["block"], row["warp"]) for row in rows if row["stands_out"] == "true"] == [("21", "1")]
    assert len(rows) == WARPS


def test_a_picture_for_matplotlib(view: ProgressView) -> None:
    axes = MagicMock()
    view.plot(axes)
    assert axes.plot.call_count == WARPS
    times, counts = axes.plot.call_args.args
    assert counts[-1] == 90, "the one that stands out is drawn last"
    assert len(times) == len(counts)


def test_the_same_result_has_a_timeline(source: ViewSource) -> None:
    assert timeline.KIND.missing_reason(source) is None
    view = timeline.KIND.open(source, no_progress)
    assert isinstance(view, timeline.TimelineView)
    assert len(after(view, "level", "level", size=(120, 40))) == 40
    assert len(view.timeline.warps) == WARPS
    longest = int(view.timeline.warps.duration.argmax())
    assert (view.timeline.warps.block[longest], view.timeline.warps.warp[longest]) == (21, 1)


def test_another_probe_is_named(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t")
    writer.start()
    writer.kernel(0, "saxpy")
    trace = open_trace(writer.directory)
    assert PROGRESS.missing_reason(ViewSource(trace, trace.kernels[0])) == (
        "the kernel was probed with block_sched: run with -p warp_progress"
    )


def test_a_click_next_to_the_picture_moves_nothing(view: ProgressView) -> None:
    text_of(view, (80, 24))
    view.window.zoom(0.25)
    view.click(40, 5)
    before = (view.window.start, view.window.time)
    view.click(0, 5)
    assert (view.window.start, view.window.time) == before
    assert view.window.column(view.window.time) == 40 - (80 - view.window.cells)
