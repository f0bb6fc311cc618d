"""The screen of a kernel that has machine code and no PTX."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages.test_without_ptx import told_machine_code, write_kernels
from tests.ui.conftest import golden_screen, on_stage
from tui_probe.ui.feed import Session


@pytest.mark.parametrize("size", [(80, 24), (200, 50)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_screen_leads_to_the_machine_code(
    tmp_path: Path, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    told_machine_code(monkeypatch)
    folder = write_kernels(tmp_path / "trace")
    async with on_stage(Session(traces=(folder,)), size=size) as stage:
        await stage.press("enter")
        await stage.settle()
        golden_screen("without-ptx-summary", stage)
        await stage.press("4")
        await stage.settle()
        golden_screen("without-ptx-sass", stage)
