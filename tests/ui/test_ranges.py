"""The page of NVTX ranges on the live screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages.ranges import LINE, MS, ranges_trace
from tests.trace.make import EPOCH_NS, TraceWriter
from tests.ui.conftest import golden_sizes, on_stage
from tui_probe.ui import Appearance
from tui_probe.ui.screens.help import HelpScreen
from tui_probe.ui.screens.kernel import KernelScreen
from tui_probe.ui.session import Session


@pytest.fixture
def writer(tmp_path: Path) -> TraceWriter:
    return ranges_trace(tmp_path / "Nov21_101010_42", timed=True)


@pytest.mark.parametrize("ascii_only", [False, True], ids=["unicode", "ascii"])
async def test_the_screen(writer: TraceWriter, ascii_only: bool) -> None:
    writer.exit()
    async with on_stage(Session(traces=(writer.directory,)), (120, 40), Appearance(ascii_only=ascii_only)) as stage:
        await stage.press("0", "n", "tab")
        await golden_sizes("ranges", stage)
        await stage.press("z", "o")
        await golden_sizes("ranges-together", stage)


async def test_enter_goes_to_the_kernel_of_the_row_and_back(writer: TraceWriter) -> None:
    async with on_stage(Session(traces=(writer.directory,)), (120, 40)) as stage:
        await stage.press("0", "n", "tab", "slash", *"cublas", "enter", "enter")
        assert isinstance(stage.app.screen, KernelScreen)
        assert "#2 cublas_dgrad" in stage.text
        await stage.press("q")
        assert stage.live.view is stage.live.pages.ranges
        assert "backward" in stage.text
        await stage.press("escape", "G", "enter")
        assert isinstance(stage.app.screen, KernelScreen)
        assert "#1 relu(float*)" in stage.text


async def test_a_line_above_the_table_leads_nowhere(writer: TraceWriter) -> None:
    async with on_stage(Session(traces=(writer.directory,)), (120, 40)) as stage:
        await stage.press("0", "n", "tab", "g", "enter")
        assert "this line names no kernel" in stage.text


async def test_the_page_grows_with_the_trace_and_the_cursor_stays(writer: TraceWriter) -> None:
    async with on_stage(Session(traces=(writer.directory,)), (120, 40)) as stage:
        await stage.press("0", "n", "tab", "j", "j")
        here = stage.live.pages.ranges.cursor
        assert "eval" not in stage.text
        writer.launch(0)
        writer.lines(LINE.format(40, 0, 77, EPOCH_NS + 95 * MS, EPOCH_NS + 99 * MS, "16", "-", "eval"))
        await stage.refresh()
        await stage.press("z")
        assert "eval" in stage.text
        assert stage.live.pages.ranges.cursor == here


async def test_the_tab_comes_with_the_first_range(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "Nov21_101010_42")
    writer.start()
    writer.kernel(0, "f")
    writer.launch(0)
    async with on_stage(Session(traces=(writer.directory,)), (120, 40)) as stage:
        assert next(tab for tab in stage.live.page_tabs if tab.id == "ranges").is_empty
        writer.lines(LINE.format(1, 0, 77, EPOCH_NS, EPOCH_NS + MS, "0", "-", "step"))
        await stage.refresh()
        assert not next(tab for tab in stage.live.page_tabs if tab.id == "ranges").is_empty


async def test_help_says_how_to_read_it(writer: TraceWriter) -> None:
    async with on_stage(Session(traces=(writer.directory,)), (100, 40)) as stage:
        await stage.press("0", "n", "tab", "question_mark")
        assert isinstance(stage.app.screen, HelpScreen)
        assert "NVTX ranges of the program" in stage.text


async def test_a_range_leads_to_its_kernels_and_these_to_their_launches(writer: TraceWriter) -> None:
    async with on_stage(Session(traces=(writer.directory,)), (120, 40)) as stage:
        await stage.press("0", "n", "tab", "slash", *"forward", "enter")
        ranges = stage.live.pages.ranges
        here = ranges.cursor
        await stage.press("enter")
        titles, _, first, second = stage.inside.split("kernels, 5 launches")[1].split("\n")[2:6]
        assert titles.split() == ["share", "total", "launches", "probed", "median", "#", "kernel"]
        assert first.split()[:4] == ["▌", "73", "%", "4.00"], "gemm twice, in inner ranges"
        assert second.split()[:4] == ["27", "%", "1.50", "ms"]
        assert "only range forward" in stage.inside
        assert "2 kernels, 5 launches" in stage.inside, "those of inner ranges, too"
        await stage.press("enter")
        screen = stage.app.screen
        assert isinstance(screen, KernelScreen)
        assert screen.current == "launches"
        assert "#0 gemm" in stage.inside
        await stage.press("q")
        assert "only range forward" in stage.inside
        await stage.press("q")
        assert "2 kernels, 5 launches" not in stage.inside
        assert ranges.cursor == here, "the range that was entered"
        await stage.press("q", "q")
        assert stage.live.in_table


async def test_the_kernels_of_a_range_grow_with_the_trace(writer: TraceWriter) -> None:
    async with on_stage(Session(traces=(writer.directory,)), (120, 40)) as stage:
        await stage.press("0", "n", "tab", "enter")
        before = stage.text
        assert "only range step" in before
        writer.launch(0)
        writer.lines(LINE.format(40, 0, 77, EPOCH_NS + 95 * MS, EPOCH_NS + 99 * MS, "16", "-", "eval"))
        await stage.refresh()
        assert "only range step" in stage.text
        await stage.press("o")
        assert "only range" not in stage.text, "merged ranges are others"
