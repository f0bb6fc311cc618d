"""A kernel that is left and entered again has its pages as they were."""

from __future__ import annotations

import pytest

from tests.recorded import H200
from tests.turns import due
from tests.ui.conftest import Stage, on_stage
from tui_probe.ui.screens.kernel import KernelScreen
from tui_probe.ui.session import Session
from tui_probe.ui.views.drawing import DrawingView

MOVES = ("u", "r", "x", "W", "w", "w", "down", "down", "right", "v")
PLACE = slice(2, -1)
"""Lines of the screen with the page and the line below it."""


def lines(stage: Stage) -> list[str]:
    return stage.text.split("\n")[PLACE]


def kernel_screen(stage: Stage) -> KernelScreen:
    screen = stage.app.screen
    assert isinstance(screen, KernelScreen)
    return screen


@pytest.mark.parametrize("name", due(["demo", "dmat", "attention_progress", "attention_sectors"]))
async def test_every_page_is_as_it_was(name: str) -> None:
    async with on_stage(Session(traces=(H200 / name,)), (120, 40)) as stage:
        await stage.press("enter")
        pages = [tab.id for tab in kernel_screen(stage).tabs if not tab.is_empty]
        left = {}
        for page in pages:
            kernel_screen(stage).action_page(page)
            await stage.settle()
            await stage.press(*MOVES)
            left[page] = lines(stage)
        for page in pages:  # entered anew for each: other pages would tell it where to go
            kernel_screen(stage).leave()
            await stage.press("enter")
            kernel_screen(stage).action_page(page)
            await stage.settle()
            assert lines(stage) == left[page], page


async def test_the_timeline_keeps_its_window() -> None:
    async with on_stage(Session(traces=(H200 / "demo",)), (80, 24)) as stage:
        await stage.press("enter", "7")
        page = lines(stage)
        await stage.press("exclamation_mark", "W", "W", "w", "w", "m")
        left = lines(stage)
        await stage.press("q", "down", "enter", "7")
        assert "#1 coalesced_store" in stage.text
        await stage.press("q", "up", "enter", "7")
        assert lines(stage) == left != page
        await stage.resize(120, 40)
        view = kernel_screen(stage).view
        assert isinstance(view, DrawingView)
        assert "block 114" in " · ".join(view.status())
        await stage.press("f")
        assert "SM 0" in stage.text


async def test_a_filter_is_kept() -> None:
    async with on_stage(Session(traces=(H200 / "attention_sectors",)), (80, 24)) as stage:
        await stage.press("enter", "3", "ampersand", *"ld.global", "enter", "down", "1")
        await stage.press("q", "enter", "3")
        assert "only “ld.global”" in stage.text
        assert "row 2 of" in stage.text
