"""Names in full, where tables and titles cut them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.importers.files import real
from tests.ui.conftest import on_stage
from tests.ui.pages_stage import showing
from tui_probe.nsight.pages.opening import open_imported
from tui_probe.ui.screens.lists import NameScreen
from tui_probe.ui.session import Session

if TYPE_CHECKING:
    from pathlib import Path

    from tests.ui.synthetic import TraceWriter

WHOLE = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >"
LINKED = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_"


async def test_names_of_selected_kernel(trace: TraceWriter) -> None:
    async with on_stage(Session(traces=(trace.directory,)), (80, 24)) as stage:
        stage.live.table.select(1)
        for keys in ((), ("0", "v"), ("escape", "enter"), ("3",)):
            await stage.press(*keys, "i")
            assert isinstance(stage.app.screen, NameScreen)
            assert [name.startswith(WHOLE) for name in stage.app.screen.list.names] == [True, False]
            assert stage.app.screen.list.names[1] == LINKED
            assert "void at::native::vectorized_elementwise_kernel<4," in stage.inside
            await stage.press("escape")


@pytest.mark.parametrize("size", [(60, 16), (200, 50)], ids=str)
async def test_names_fit_and_scroll(trace: TraceWriter, size: tuple[int, int]) -> None:
    async with on_stage(Session(traces=(trace.directory,)), size) as stage:
        stage.app.push_screen(NameScreen([f"name{number} {'x' * 300}" for number in range(9)]))
        await stage.settle()
        assert all(len(line) <= size[0] for line in stage.inside.split("\n"))
        assert "name0" in stage.inside
        await stage.press(*["down"] * 60)
        assert "name8" in stage.inside
        await stage.press("up")
        assert isinstance(stage.app.screen, NameScreen)


async def test_they_are_copied(trace: TraceWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with on_stage(Session(traces=(trace.directory,)), (120, 40)) as stage:
        stage.live.table.select(1)
        await stage.press("i", "y")
        assert stage.app.screen is stage.live
        assert LINKED in stage.app.clipboard


async def test_names_of_imported_row(tmp_path: Path) -> None:
    async with showing(open_imported([real(tmp_path, "nsys/sample.sqlite")]), (80, 24)) as stage:
        await stage.until(lambda: "gemv2T" in stage.inside, "no page")
        await stage.press("i")
        assert "void gemv2T_kernel_val<int, int, double, double, double, double," in stage.inside
        await stage.press("escape", "7", "i")
        assert "all names are shown in full" in stage.inside
