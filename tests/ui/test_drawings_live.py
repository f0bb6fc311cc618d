"""Drawings below the kernel table: their keys act there, too, and a panel that is too low for one says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.recorded import H200, unpacked
from tests.ui.conftest import on_stage
from tui_probe.ui.session import Session

if TYPE_CHECKING:
    from pathlib import Path

    from tests.ui.conftest import Stage


@pytest.fixture
def blocks(tmp_path: Path) -> Session:
    """A trace with the blocks of a launch."""
    return Session(traces=(unpacked(H200 / "attention_blocks", tmp_path),))


def axis(stage: Stage) -> str:
    return next(line for line in stage.text.splitlines() if "cycles   " in line)


async def test_zoom_keys_act_on_the_focused_drawing(blocks: Session) -> None:
    async with on_stage(blocks, (100, 40)) as stage:
        await stage.press("7", "tab")
        before = axis(stage)
        await stage.press("w")
        assert axis(stage) != before
        await stage.press("s")
        assert axis(stage) == before


async def test_named_keys_of_a_drawing_are_those_that_act(blocks: Session) -> None:
    async with on_stage(blocks, (200, 40)) as stage:
        await stage.press("7", "tab")
        hints = stage.text.splitlines()[-1]
        assert "w zoom" in hints
        assert "v level" not in hints, "it filters kernels by status"


async def test_low_panel_says_how_many_lines_the_timeline_needs(blocks: Session) -> None:
    async with on_stage(blocks, (60, 15)) as stage:
        await stage.press("7")
        assert "this page needs 7 lines" in stage.text
        await stage.press("tab", "z")
        await stage.until(lambda: "cycles   " in stage.text, "the timeline is not drawn in full size")
