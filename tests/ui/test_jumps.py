"""From a row of Lines to its PTX, from there back to the table, from an access to its instruction; and back again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.pages.measured_example import STRIDED, write_measured
from tests.ui.conftest import Stage, on_stage
from tui_probe.draw.view import Spot
from tui_probe.ui.screens.kernel import KernelScreen
from tui_probe.ui.session import Session
from tui_probe.ui.views.document_view import DocumentView

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """A kernel with one record per access: PTX, Lines and DMAT all have something to show."""
    return Session(traces=(write_measured(tmp_path / "dmat", "dmat").directory,))


def screen_of(stage: Stage) -> KernelScreen:
    assert isinstance(stage.app.screen, KernelScreen)
    return stage.app.screen


async def show(stage: Stage, page: str) -> None:
    await screen_of(stage).run_action(f"page({page!r})")
    await stage.settle()


def cursor_line(stage: Stage) -> str:
    (line,) = [line for line in stage.inside.split("\n") if line.startswith("▌")]
    return line


def hint(stage: Stage) -> str:
    return stage.inside.split("\n")[-1]


async def test_from_a_row_to_the_code_and_back(session: Session) -> None:
    async with on_stage(session, (120, 40)) as stage:
        await stage.press("enter")
        await show(stage, "lines")
        assert "Enter Source" in hint(stage)
        assert "strides.cu:7" in cursor_line(stage)  # the most sectors
        await stage.press("enter")
        assert screen_of(stage).current == "source"
        assert cursor_line(stage).startswith("▌   7 ")
        assert "112 ████!" in cursor_line(stage)
        await stage.press("enter")
        assert screen_of(stage).current == "ptx"
        assert "ld.global.f32 %f2" in cursor_line(stage)
        assert "Enter Lines" in hint(stage)
        await stage.press("q", "q")
        assert screen_of(stage).current == "lines"
        assert "strides.cu:7" in cursor_line(stage)
        await stage.press("q")
        assert stage.app.screen is stage.live


async def test_from_the_code_to_the_table_and_on(session: Session) -> None:
    async with on_stage(session, (120, 40)) as stage:
        await stage.press("enter", "3", "v", "full_stop", "full_stop", "enter")
        assert screen_of(stage).current == "lines"
        assert f" {STRIDED} " in cursor_line(stage)
        await stage.press("j")
        assert "st.global.v2.f32" in cursor_line(stage)
        await stage.press("enter")
        assert screen_of(stage).current == "source"
        await stage.press("q")
        assert "st.global.v2.f32" in cursor_line(stage)
        assert screen_of(stage).current == "lines"
        await stage.press("q")
        assert screen_of(stage).current == "ptx"
        assert cursor_line(stage).startswith(f"▌  {STRIDED} ")  # as it was left, in the same text
        await stage.press("escape")
        assert stage.app.screen is stage.live


async def test_from_the_difference_to_the_whole_text(session: Session) -> None:
    async with on_stage(session, (120, 40)) as stage:
        await stage.press("enter", "4", "slash", *"%f2, [", "enter")  # the prompt takes the first
        assert screen_of(stage).current == "diff"
        await stage.press("enter")
        assert screen_of(stage).current == "ptx"
        assert "ld.global.f32 %f2" in cursor_line(stage)
        await stage.press("q")
        assert screen_of(stage).current == "diff"


async def test_from_an_access_to_its_instruction(session: Session) -> None:
    async with on_stage(session, (120, 40)) as stage:
        await stage.press("enter")
        await show(stage, "dmat")
        assert "Enter PTX" in hint(stage)
        read_out = next(line for line in stage.inside.split("\n") if "PTX:" in line)
        await stage.press("enter")
        assert screen_of(stage).current == "ptx"
        line = int(read_out.partition("PTX:")[2].split()[0])
        view = screen_of(stage).view
        assert isinstance(view, DocumentView)
        assert view.target() == Spot.of_line(line)
        await stage.press("q")
        assert read_out in stage.inside


async def test_a_line_of_which_nothing_was_measured_says_so(session: Session) -> None:
    async with on_stage(session, (120, 40)) as stage:
        await stage.press("enter", "3", "enter")
        assert screen_of(stage).current == "ptx"
        assert "this line was not measured; press . for the next measured line" in hint(stage)


async def test_an_inserted_line_leads_nowhere(session: Session) -> None:
    async with on_stage(session, (120, 40)) as stage:
        await stage.press("enter", "3", "slash", *"%clock64", "enter", "enter")
        assert screen_of(stage).current == "ptx"
        assert "this line is part of the probe" in hint(stage)


async def test_a_page_chosen_by_number_ends_the_way_back(session: Session) -> None:
    async with on_stage(session, (120, 40)) as stage:
        await stage.press("enter")
        await show(stage, "lines")
        await stage.press("enter", "1", "q")
        assert stage.app.screen is stage.live


async def test_enter_is_not_offered_without_target(session: Session) -> None:
    async with on_stage(session, (120, 40)) as stage:
        await stage.press("enter", "1")
        assert "Enter" not in hint(stage)
        await stage.press("enter")
        assert "no lines to follow" in hint(stage)


async def test_from_an_added_line_to_that_line_of_the_probed_text_and_back(session: Session) -> None:
    async with on_stage(session, (80, 40)) as stage:
        await stage.press("enter", "4")
        for _ in range(40):
            await stage.press("j")
            if "of the probe dmat" in stage.inside:
                break
        added = cursor_line(stage)
        assert " + " in added
        number = added.partition("+")[0].split()[-1]
        await stage.press("enter")
        assert screen_of(stage).current == "ptx"
        assert " ▸ " in cursor_line(stage)
        assert "of the probe dmat" in stage.inside
        assert cursor_line(stage).removeprefix("▌").split()[0] == f"{number}+"
        await stage.press("q")
        assert (screen_of(stage).current, cursor_line(stage)) == ("diff", added)


async def test_pages_go_on_at_the_line_that_one_was_on(session: Session) -> None:
    async with on_stage(session, (120, 40)) as stage:
        await stage.press("enter")
        await show(stage, "lines")
        await stage.press("j")
        line = cursor_line(stage)
        where = next(word for word in line.split() if "strides.cu:" in word)
        await show(stage, "source")
        assert cursor_line(stage).removeprefix("▌").split()[0] == where.partition(":")[2]
        await show(stage, "summary")
        await show(stage, "ptx")
        await stage.press("g")
        await show(stage, "lines")
        assert cursor_line(stage) == line, "the first line is of nothing that was measured"
