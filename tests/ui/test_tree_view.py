"""The tree below the table: Enter descends to the code of a line, h goes up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.recorded import H200, unpacked
from tests.ui.conftest import on_stage
from tests.ui.desk import TestDesk
from tui_probe.draw.spans import plain
from tui_probe.ui.screens.kernel import KernelScreen
from tui_probe.ui.session import Session
from tui_probe.ui.views.table_views import AllLinesView, TreeView

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("kind", [TreeView, AllLinesView])
def test_page_of_a_trace_that_is_not_read_yet_says_so(kind: type[TreeView] | type[AllLinesView]) -> None:
    view = kind(TestDesk(), "page")
    view.resize(80, 5)
    assert "reading the trace" in " ".join(plain(line) for line in view.draw(80, 5))


async def test_enter_descends_and_h_goes_up(tmp_path: Path) -> None:
    trace = unpacked(H200 / "attention_sectors", tmp_path)
    async with on_stage(Session(traces=(trace,)), (120, 40)) as stage:
        await stage.press("0", "t", "tab")
        tree = stage.live.pages.tree
        assert tree.node is not None
        assert tree.node.level == "program"
        await stage.press("enter")
        assert tree.node.level == "kernel"
        for _ in range(5):
            await stage.press(*([] if tree.node.inner else ["down"]))
        assert tree.node.inner
        kernel = tree.node.path
        assert "▸" in stage.text
        await stage.press("enter")
        assert tree.node.level == "line"
        await stage.press("h")
        assert tree.node.path == kernel
        await stage.press("l", "enter")
        screen = stage.app.screen
        assert isinstance(screen, KernelScreen)
        assert screen.current == "ptx"
        await stage.press("q")
        assert tree.node.level == "line", "its place is kept"
        await stage.press("h", "h", "h")
        assert tree.node.level == "program"
        await stage.press("h")
        assert "▾" not in stage.text, "the program is closed"
