"""The page of lines of all kernels on the live screen."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.pages.example import write_example
from tests.ui.conftest import golden_sizes, on_stage
from tui_probe.ui import Appearance
from tui_probe.ui.screens.help import HelpScreen
from tui_probe.ui.screens.kernel import KernelScreen
from tui_probe.ui.session import Session
from tui_probe.ui.views.table_views import GrowingView

RECORDED = Path(__file__).parents[1] / "data" / "h200" / "attention_sectors"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return Path(shutil.copytree(RECORDED, tmp_path / "attention"))


@pytest.mark.parametrize("ascii_only", [False, True], ids=["unicode", "ascii"])
async def test_the_screen(trace: Path, ascii_only: bool) -> None:
    async with on_stage(Session(traces=(trace,)), (120, 40), Appearance(ascii_only=ascii_only)) as stage:
        await stage.press("0", "a", "tab", "z")
        await golden_sizes("all-lines", stage)


async def test_enter_goes_to_the_line_in_the_code_and_q_comes_back(trace: Path) -> None:
    async with on_stage(Session(traces=(trace,)), (120, 40)) as stage:
        await stage.press("0", "a", "tab", "j")
        row = next(line for line in stage.inside.splitlines() if line.startswith("▌"))
        await stage.press("enter")
        assert isinstance(stage.app.screen, KernelScreen)
        assert stage.app.screen.current == "source"
        at_cursor = next(line for line in stage.inside.splitlines() if line.startswith("▌"))
        assert f"attention.py:{at_cursor[1:].split()[0]} " in row
        await stage.press("q")
        assert row in stage.inside.splitlines()


async def test_without_lines_it_has_no_tab_and_says_what_to_run(tmp_path: Path) -> None:
    write_example(tmp_path / "blocks")
    async with on_stage(Session(traces=(tmp_path / "blocks",)), (120, 40)) as stage:
        assert next(tab for tab in stage.live.page_tabs if tab.id == "all_lines").is_empty
        await stage.press("0", "a", "tab")
        assert "0 a (All lines)" in stage.text
        assert "No probe of this trace measures lines: run with -p" in stage.text


async def test_help_says_how_to_read_it(trace: Path) -> None:
    async with on_stage(Session(traces=(trace,)), (100, 40)) as stage:
        await stage.press("0", "a", "tab", "question_mark")
        assert isinstance(stage.app.screen, HelpScreen)
        assert "Every line that a probe measured" in stage.text


async def test_order_of_rows_is_kept_when_the_page_grows(trace: Path) -> None:
    async with on_stage(Session(traces=(trace,)), (120, 40)) as stage:
        await stage.press("0", "a", "tab", "s", "enter")
        view = stage.live.view
        assert isinstance(view, GrowingView)
        view._basis = ()
        await stage.refresh()
        assert view.sorted_column == "kernel"
