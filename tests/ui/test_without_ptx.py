"""The screen of a kernel that has machine code and no PTX."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages.test_without_ptx import told_machine_code, write_kernels
from tests.ui.conftest import golden_sizes, on_stage
from tui_probe.ui.session import Session


async def test_the_screen_leads_to_the_machine_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told_machine_code(monkeypatch)
    folder = write_kernels(tmp_path / "trace")
    async with on_stage(Session(traces=(folder,)), (120, 40)) as stage:
        await stage.press("enter")
        await stage.settle()
        await golden_sizes("without-ptx-summary", stage)
        await stage.press("5")
        await stage.settle()
        await golden_sizes("without-ptx-sass", stage)
