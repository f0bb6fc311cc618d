"""Every page of the screens of a kernel and of a comparison, in each size, Unicode and ASCII: one start a form."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recorded import SIMULATED, unpacked
from tests.ui.conftest import golden_sizes, on_stage
from tui_probe.ui import Appearance
from tui_probe.ui.screens.compare import CompareScreen
from tui_probe.ui.screens.kernel import KernelScreen
from tui_probe.ui.session import Session

LIVE = {"results": "6", "gpu": "7"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.mark.parametrize("ascii_only", [False, True], ids=["unicode", "ascii"])
async def test_every_page(ascii_only: bool, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    trace = unpacked(SIMULATED / "block_sched", Path())
    async with on_stage(Session(traces=(trace,)), (120, 40), Appearance(ascii_only=ascii_only)) as stage:
        for name, key in LIVE.items():
            await stage.press(key)
            for _ in range(2):  # the chart comes, then the preview grows
                await stage.refresh()
            await golden_sizes(f"pages/live-{name}", stage)
        await stage.press("q", "enter")
        kernel = stage.app.screen
        assert isinstance(kernel, KernelScreen)
        for tab in [tab for tab in kernel.tabs if not tab.is_empty]:
            await kernel.run_action(f"page('{tab.id}')")
            await stage.settle()
            await golden_sizes(f"pages/{tab.id}", stage)
        await stage.press("left_curly_bracket", "C", "right_curly_bracket", "C")
        comparison = stage.app.screen
        assert isinstance(comparison, CompareScreen)
        for tab in comparison.tabs:
            comparison.action_page(tab.id)
            await stage.settle()
            await golden_sizes(f"pages/compare-{tab.id}", stage)
