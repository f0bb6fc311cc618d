"""``!`` goes to the hotspot from any page of a kernel."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from tests.pages.timelines import planted
from tests.probes.dmat_example import STORE_C, write_dmat
from tests.recorded import unpacked
from tests.ui.conftest import golden_sizes, on_stage
from tests.ui.test_kernel_screen import screen_of
from tui_probe.draw.view import Spot
from tui_probe.pages.hotspot import Hotspot, PageSpot
from tui_probe.pages.views.timeline import TimelineView
from tui_probe.probes.dmat.view import Dmat
from tui_probe.ui import Appearance
from tui_probe.ui.screens.jumps import HotspotJump
from tui_probe.ui.session import Session
from tui_probe.ui.views.document_view import DocumentView
from tui_probe.ui.views.drawing import DrawingView

RECORDED = Path(__file__).parents[1] / "data" / "h200"

if TYPE_CHECKING:
    from tests.ui.conftest import Stage


@pytest.fixture
def accesses(tmp_path: Path) -> Session:
    """A kernel with a strided store, probed with dmat."""
    write_dmat(tmp_path / "dmat")
    return Session(traces=(tmp_path / "dmat",))


@pytest.fixture
def blocks(tmp_path: Path) -> Session:
    """A launch with a straggler and a tail, probed with block_sched."""
    planted.write_planted(tmp_path / "blocks")
    return Session(traces=(tmp_path / "blocks",))


def pointed_at(stage: Stage) -> int | None:
    """The line of PTX at the cursor."""
    view = screen_of(stage).view
    assert isinstance(view, DocumentView)
    spot = view.target()
    return spot.ptx[0] if spot is not None and spot.ptx else None


@pytest.mark.parametrize(
    ("is_flagged", "marked", "jumps"),
    [(False, "the most: 16 384 sectors", False), (False, "", True), (True, "the most: 16 384 sectors", True)],
)
def test_hotspot_jump_prefers_marked_line_to_unflagged_finding(is_flagged: bool, marked: str, jumps: bool) -> None:
    """A page with a marked line is left for a finding that costs something only."""
    view = SimpleNamespace(name="source", commands=dict, go_to_marked_line=lambda: marked)
    hotspot = Hotspot(worst=PageSpot("timeline", Spot(), "blocks: all take 100 cycles", is_flagged))
    said, opened = list[str](), list[str]()
    screen = SimpleNamespace(view=view, notice=said.append, jump_to=lambda page, _: opened.append(page))
    screen.analyses = SimpleNamespace(submit=lambda _key, _work, take: take(hotspot))
    HotspotJump(screen).go(SimpleNamespace())  # type: ignore[arg-type]
    assert (said, opened) == (([], ["timeline"]) if jumps else ([marked], []))


async def test_from_the_summary_to_the_line_and_back(accesses: Session) -> None:
    async with on_stage(accesses) as stage:
        await stage.press("enter", "exclamation_mark")
        assert screen_of(stage).current == "lines"
        assert pointed_at(stage) == STORE_C
        assert "uncoalesced: st.global.f32 PTX:16 stream.cu:11" in stage.text
        await stage.press("q")
        assert screen_of(stage).current == "summary"


async def test_code_shows_the_line(accesses: Session) -> None:
    async with on_stage(accesses) as stage:
        await stage.press("enter", "3", "exclamation_mark")
        assert screen_of(stage).current == "ptx"
        assert pointed_at(stage) == STORE_C


async def test_in_dmat_the_cursor_goes_to_the_wasted_sectors(accesses: Session) -> None:
    async with on_stage(accesses) as stage:
        await stage.press("enter")
        await screen_of(stage).run_action("page('dmat')")
        await stage.settle()
        await stage.press("exclamation_mark")
        view = screen_of(stage).view
        assert isinstance(view, DrawingView)
        assert isinstance(view.drawing, Dmat)
        assert view.drawing.ptx_line() == STORE_C
        assert "st.global.f32 PTX:16 stream.cu:11 · 32.0 sectors per request, 12% used" in stage.text


async def test_the_tail_then_the_straggler(blocks: Session) -> None:
    async with on_stage(blocks) as stage:
        await stage.press("enter", "exclamation_mark")
        assert screen_of(stage).current == "timeline"
        view = screen_of(stage).view
        assert isinstance(view, DrawingView)
        assert isinstance(view.drawing, TimelineView)
        assert f"block {planted.STRAGGLER}" in stage.text
        assert "tail: SMs go idle" in stage.text  # what it was sent for
        assert view.drawing.window.time == planted.END
        await stage.press("exclamation_mark")
        assert f"the longest block: block {planted.STRAGGLER} on SM" in stage.text
        assert view.drawing.window.time > planted.END
        await stage.press("q")
        assert screen_of(stage).current == "summary"


async def test_hotspot_without_flags_is_longest_block() -> None:
    async with on_stage(Session(traces=(RECORDED / "attention_blocks",))) as stage:
        stage.live.table.select(1)
        await stage.press("enter", "exclamation_mark")
        assert screen_of(stage).current == "timeline"
        assert "block 157 (13,9)" in stage.text  # of those visible the longest


async def test_the_cursor_is_on_the_sm_that_the_finding_names() -> None:
    async with on_stage(Session(traces=(RECORDED / "demo",)), (200, 50)) as stage:
        stage.live.table.select(1)
        await stage.press("enter", "exclamation_mark")
        state, message = stage.inside.split("\n")[-2:]
        assert "SM 127 ends last" in message
        assert state.startswith(" SM 127 slot ")


async def test_hotspot_block_is_named_on_narrow_terminal() -> None:
    async with on_stage(Session(traces=(RECORDED / "attention_blocks",)), (80, 24)) as stage:
        stage.live.table.select(1)
        await stage.press("enter", "exclamation_mark")
        state = stage.inside.split("\n")[-2]
        assert state.startswith(" SM "), state
        assert "block 157 (13,9)" in state
        assert " cycles" in state


async def test_unreadable_result_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "attention_blocks"
    shutil.copytree(RECORDED / "attention_blocks", folder)
    for result in (folder / "result").rglob("*.bin"):
        result.rename(result.with_name(f"{result.name}.xz"))
    async with on_stage(Session(traces=(folder,))) as stage:
        stage.live.table.select(1)
        await stage.press("enter", "exclamation_mark")
        assert "the result could not be read: result/" in stage.text.split("\n")[-1]
        assert "the file is compressed as" in stage.text.split("\n")[-1]


async def test_without_a_result_it_says_so(session: Session) -> None:
    async with on_stage(session) as stage:
        stage.live.table.select(3)  # not probed
        await stage.press("enter", "exclamation_mark")
        assert "the kernel was not probed, so there are no values; see page 1 for the reason" in stage.text
        assert "! worst" not in stage.text.split("\n")[-1]


@pytest.mark.parametrize("ascii_only", [False, True], ids=["unicode", "ascii"])
async def test_worst_golden(accesses: Session, ascii_only: bool) -> None:
    async with on_stage(accesses, (120, 40), Appearance(ascii_only=ascii_only)) as stage:
        await stage.press("enter")
        await screen_of(stage).run_action("page('dmat')")
        await stage.settle()
        await stage.press("exclamation_mark")
        await golden_sizes("worst", stage)


async def test_the_mark_of_the_figure_in_sight_where_nothing_stands_out() -> None:
    async with on_stage(Session(traces=(RECORDED / "attention_sectors",))) as stage:
        await stage.press("enter", "2", "exclamation_mark")
        assert "the most: 2 097 152 sectors, equal in 2 lines" in stage.text, "the first value in which lines differ"
        assert "row 17 of 35" in stage.text, "the heading is row 1, and line 31 of the file follows"
        await stage.press("u", "u", "u", "exclamation_mark")
        assert "the most: 2 097 152 sectors, equal in 2 lines" in stage.text, "16 sectors per request, all alike"
        await stage.press("3", "exclamation_mark")
        assert "the most: 491 520 sectors, equal in 8 lines" in stage.text
        assert pointed_at(stage) == 1079


async def test_hotspot_without_flags_is_line_with_most() -> None:
    async with on_stage(Session(traces=(RECORDED / "attention_sectors",))) as stage:
        await stage.press("enter", "exclamation_mark")
        assert screen_of(stage).current == "source"
        assert "row 17 of 35" in stage.text
        assert "the most: 2 097 152 sectors, equal in 2 lines" in stage.text.split("\n")[-1]
        await stage.press("q")
        assert screen_of(stage).current == "summary"
        await stage.press("6", "exclamation_mark")
        assert screen_of(stage).current == "lines", "the page has the line"
        assert "the most: 2 097 152 sectors, equal in 2 lines" in stage.text.split("\n")[-1]


@pytest.mark.parametrize("page", ["1", "2", "6"])
async def test_a_probe_that_tells_of_no_place_is_named_and_one_that_does(tmp_path: Path, page: str) -> None:
    async with on_stage(Session(traces=(unpacked(RECORDED / "demo_bytes", tmp_path),))) as stage:
        await stage.press("enter", page, "exclamation_mark")
        assert "-p gmem_bytes does not report lines or times; press R to run with -p " in stage.text.split("\n")[-1]
