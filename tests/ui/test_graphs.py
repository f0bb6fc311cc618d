"""The page of CUDA graphs on the live screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages.graphs import graphs_trace, replays
from tests.trace.make import TraceWriter
from tests.ui.conftest import golden_sizes, on_stage
from tui_probe.ui import Appearance
from tui_probe.ui.screens.help import HelpScreen
from tui_probe.ui.screens.kernel import KernelScreen
from tui_probe.ui.session import Session


@pytest.fixture
def writer(tmp_path: Path) -> TraceWriter:
    return graphs_trace(tmp_path / "Nov21_101010_42")


@pytest.mark.parametrize("ascii_only", [False, True], ids=["unicode", "ascii"])
async def test_the_screen(writer: TraceWriter, ascii_only: bool) -> None:
    replays(writer)
    writer.exit()
    async with on_stage(Session(traces=(writer.directory,)), (120, 40), Appearance(ascii_only=ascii_only)) as stage:
        await stage.press("0", "h", "tab", "z")
        await golden_sizes("graphs", stage)


async def test_enter_goes_to_the_kernel_of_the_node(writer: TraceWriter) -> None:
    async with on_stage(Session(traces=(writer.directory,)), (120, 40)) as stage:
        await stage.press("0", "h", "tab", "enter")
        assert "this line names no kernel" in stage.text
        await stage.press("j", "j", "enter")
        assert isinstance(stage.app.screen, KernelScreen)
        assert "#1 relu(float*)" in stage.text


async def test_the_page_grows_with_the_trace(writer: TraceWriter) -> None:
    async with on_stage(Session(traces=(writer.directory,)), (120, 40)) as stage:
        await stage.press("0", "h", "tab")
        assert "2 graphs, 0 replays" in stage.text
        replays(writer)
        await stage.refresh()
        assert "2 graphs, 1 001 replays, 2 probed" in stage.text


async def test_help_says_how_to_read_it(writer: TraceWriter) -> None:
    async with on_stage(Session(traces=(writer.directory,)), (100, 40)) as stage:
        await stage.press("0", "h", "tab", "question_mark")
        assert isinstance(stage.app.screen, HelpScreen)
        assert "All CUDA graphs" in stage.text
