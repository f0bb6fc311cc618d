"""The preview of the selected kernel below the live table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.ui.conftest import on_stage
from tests.ui.synthetic import FakeTarget, TraceWriter
from tui_probe.pages.kernel_detail import (
    CHART_CELLS,
    CHART_COLUMNS,
    CHART_FRAME_ROWS,
    CHART_ROWS,
    chart_lines,
    preview_charts,
)
from tui_probe.trace.follow import open_trace
from tui_probe.ui import Appearance
from tui_probe.ui.layout import PREVIEW_ROWS, arrangement
from tui_probe.ui.live.preview import has_doubled
from tui_probe.ui.session import Session

if TYPE_CHECKING:
    from tests.ui.conftest import Stage


@pytest.fixture
def writer(tmp_path: Path) -> TraceWriter:
    """A kernel with a result, one with times, one with neither."""
    trace = TraceWriter(tmp_path / "trace")
    for name in ("recorded", "timed", "neither"):
        trace.kernel(name)
    trace.result(0, trace.launch(0), blocks=8)
    for number in range(20):
        trace.timed(1, trace.launch(1), 10_000 + 1_000 * (number % 10))
    return trace


def shown(stage: Stage) -> list[str]:
    """The lines of the preview."""
    return [line[1:-1].rstrip() for line in stage.live.preview_pane.text().split("\n")]


async def settle(stage: Stage) -> None:
    """The selection rests, then its charts come."""
    for _ in range(3):
        await stage.refresh()


def test_blocks_of_a_launch_over_time(writer: TraceWriter) -> None:
    """Four SMs run two blocks each of 1 000 cycles, 1 100 cycles apart."""
    trace = open_trace(writer.directory)
    (chart,) = preview_charts(trace, trace.kernels[0])
    assert chart.title == "launch 0 of #0: running blocks, up to 4 at a time"
    assert (chart.first_label, chart.last_label) == ("0", "2 100 cycles (1.06 µs)")
    assert len(chart.values) == CHART_COLUMNS
    assert chart.values[:57] == chart.values[-57:] == (4.0,) * 57
    assert 0.0 in chart.values[57:63]  # the gap between the first and the second


def test_how_times_are_spread(writer: TraceWriter) -> None:
    trace = open_trace(writer.directory)
    (chart,) = preview_charts(trace, trace.kernels[1])
    assert chart.title == "GPU time of #1: 20 launches timed"
    assert (chart.first_label, chart.last_label) == ("10.0 µs", "19.0 µs (longest 19.0 µs)")
    assert [value for value in chart.values if value is not None] == [2.0] * 10
    assert preview_charts(trace, trace.kernels[2]) == ()


def test_a_chart_has_its_lines(writer: TraceWriter) -> None:
    trace = open_trace(writer.directory)
    for index in (0, 1):
        (chart,) = preview_charts(trace, trace.kernels[index])
        lines = ["".join(text for text, _ in line) for line in chart_lines(chart, ascii_only=True)]
        assert len(lines) == CHART_ROWS + CHART_FRAME_ROWS
        assert all(len(line) <= CHART_CELLS for line in lines)
        assert "".join(lines[1:-1]).isascii()


def test_unreadable_result_keeps_times(writer: TraceWriter) -> None:
    trace = open_trace(writer.directory)
    path = trace.results.path(0)
    assert path is not None
    path.write_bytes(b"cut")
    assert preview_charts(trace, trace.kernels[0]) == ()


async def test_preview_follows_resting_selection(writer: TraceWriter) -> None:
    async with on_stage(Session(traces=(writer.directory,)), (200, 50)) as stage:
        stage.live.table.select(0)
        await settle(stage)
        assert shown(stage)[0].startswith(" launch 0 of #0: running blocks")
        stage.live.table.select(1)
        await stage.refresh()
        assert shown(stage)[0].startswith(" launch 0 of #0: running blocks")
        await settle(stage)
        assert shown(stage)[0] == " GPU time of #1: 20 launches timed"
        stage.live.table.select(2)
        await settle(stage)
        assert shown(stage)[0] == " #2: no times of blocks or launches to draw; press R to run -p block_sched"
        await stage.press("0", "v")  # where the page does not say so, the preview does
        assert shown(stage)[0] == " #2: no results yet, and too few timed launches"
        stage.live.table.select(0)
        await settle(stage)
        assert any("found in launch 0 by -p block_sched" in line for line in shown(stage))
        await stage.press("z")
        assert not stage.live.preview_pane.display


async def test_preview_is_redrawn_as_results_double_and_at_end(writer: TraceWriter) -> None:
    target = FakeTarget(writer.directory.parent, [writer.directory])
    async with on_stage(Session(target=target), (120, 40), Appearance(ascii_only=True)) as stage:
        stage.live.table.select(0)
        titles = []
        for _ in range(5):
            await settle(stage)
            titles.append(shown(stage)[0].split(":")[0])
            writer.result(0, writer.launch(0), blocks=8)
        assert titles == [f" launch {number} of #0" for number in (0, 21, 21, 23, 23)]
        target.status = 0
        await settle(stage)
        assert shown(stage)[0].startswith(" launch 25 of #0")


@pytest.mark.parametrize(
    ("now", "before", "again"),
    [((1, 0, True), (0, 0, True), True), ((3, 0, True), (2, 0, True), False), ((4, 0, True), (2, 0, True), True),
     ((3, 8, True), (3, 4, True), True), ((3, 0, False), (2, 0, True), True), ((3, 0, False), (3, 0, False), False)],
)  # fmt: skip
def test_when_it_is_drawn_again(now: tuple[int, int, bool], before: tuple[int, int, bool], again: bool) -> None:
    assert has_doubled(now, before) is again


@pytest.mark.parametrize(
    ("size", "rows"), [((80, 24), 0), ((120, 39), 0), ((99, 50), 0), ((100, 40), 5), ((200, 50), 5), ((300, 50), 5)]
)
def test_small_terminals_have_none(size: tuple[int, int], rows: int) -> None:
    arranged = arrangement(*size)
    assert arranged is not None
    assert arranged.preview == rows


@pytest.mark.parametrize(
    ("size", "kernels", "rows"),
    [((200, 50), 7, (9, 10)), ((200, 50), 8, (9, 10)), ((200, 50), 9, (14, 5)), ((120, 40), 5, (10, 5)),
     ((120, 40), 4, (5, 10)), ((80, 24), 0, (7, 0)), ((300, 50), 31, (150, 10)), ((300, 50), 32, (150, 5))],
)  # fmt: skip
def test_preview_takes_empty_table_rows(size: tuple[int, int], kernels: int, rows: tuple[int, int]) -> None:
    arranged = arrangement(*size, kernels, tall_preview=True)
    assert arranged is not None
    assert (arranged.table_cells, arranged.preview) == rows
    low = arrangement(*size, kernels)
    assert low is not None
    assert low.preview == min(arranged.preview, PREVIEW_ROWS)


@pytest.mark.parametrize(
    ("size", "kernels", "rows"),
    [((80, 24), 1, (2, 0)), ((80, 24), 0, (7, 0)), ((80, 24), 30, (7, 0)), ((120, 40), 1, (2, 10)),
     ((120, 40), 8, (9, 5)), ((300, 50), 1, (150, 10))],
)  # fmt: skip
def test_page_has_the_empty_rows_of_a_complete_table(
    size: tuple[int, int], kernels: int, rows: tuple[int, int]
) -> None:
    arranged = arrangement(*size, kernels, complete=True, tall_preview=True)
    assert arranged is not None
    assert (arranged.table_cells, arranged.preview) == rows


async def test_table_shrinks_to_its_kernels_when_the_run_ends(writer: TraceWriter) -> None:
    target = FakeTarget(writer.directory.parent, [writer.directory])
    async with on_stage(Session(target=target), (80, 24)) as stage:
        before = stage.live.pages.kernel_page.height
        target.status = 0
        await stage.refresh()
        shown_kernels = len(stage.live.table.shown_rows)
        assert stage.live.table.height == 1 + shown_kernels
        assert stage.live.pages.kernel_page.height == before + 7 - 1 - shown_kernels


async def test_preview_returns_rows_as_kernels_come(writer: TraceWriter) -> None:
    async with on_stage(Session(target=FakeTarget(writer.directory.parent, [writer.directory])), (120, 40)) as stage:
        stage.live.table.select(2)
        await settle(stage)
        assert len(shown(stage)) == 5, "there is no chart of this kernel"
        for kernel in (0, 2):
            stage.live.table.select(kernel)
            await settle(stage)
            assert len(shown(stage)) == 10, "the panes stay, also for a kernel without a chart"
        for number in range(5):
            writer.kernel(f"more{number}")
        await stage.refresh()
        assert len(shown(stage)) == 5
        assert "more4" in stage.inside


async def test_chart_without_findings_is_wide(writer: TraceWriter) -> None:
    async with on_stage(Session(traces=(writer.directory,)), (200, 50)) as stage:
        stage.live.table.select(0)
        await settle(stage)
        assert max(map(len, shown(stage))) == 1 + CHART_COLUMNS
        await stage.press("0", "v")
        await settle(stage)
        assert "17 500 cycles" not in shown(stage)[-1]
        assert shown(stage)[-1].index("cycles") < CHART_CELLS


async def test_on_a_small_terminal_nothing_is_read_for_it(writer: TraceWriter) -> None:
    async with on_stage(Session(traces=(writer.directory,)), (80, 24)) as stage:
        await settle(stage)
        assert not stage.live.preview_pane.display
        assert stage.live.preview.charts == ()
        await stage.resize(200, 50)
        await settle(stage)
        assert stage.live.preview.charts != ()


async def test_preview_has_lines_where_the_page_below_has_findings() -> None:
    trace = Path(__file__).parents[1] / "data" / "h200" / "attention_sectors"
    async with on_stage(Session(traces=(trace,)), (200, 50)) as stage:
        stage.live.table.select(1)
        await settle(stage)
        header, first, *_ = shown(stage)
        assert header == " lines by sectors, gmem_sectors_by_line"
        assert first == " ████      47%  attention.py:31  cp.async.cg.shared.global ×12  2 097 152"
