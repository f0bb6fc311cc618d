"""Keys on the pages of a kernel whose waits were measured on an H200."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.recorded import H200, unpacked
from tests.ui.conftest import on_stage
from tests.ui.test_kernel_screen import document, screen_of
from tui_probe.ui.session import Session

if TYPE_CHECKING:
    from pathlib import Path

    from tests.ui.conftest import Stage

WAIT, PRODUCER, NEXT = 0x1260, 0x10A0, 0x3090
"""Offsets of the longest wait of attention, of its producer, and of the next measured wait."""
SIZES = ((80, 24), (200, 50))


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One copy for all tests, which read it: the listing of its code is parsed once."""
    return unpacked(H200 / "stalls_attention", tmp_path_factory.mktemp("stalls"))


@pytest.fixture
def stalls(trace: Path) -> Session:
    return Session(traces=(trace,))


def offset_at_cursor(stage: Stage) -> int | None:
    view = document(stage)
    return view.document.ptx_line(view.cursor, view.width)


@pytest.mark.parametrize("size", SIZES)
async def test_sass_begins_at_the_longest_wait_and_leads_to_its_producer(
    stalls: Session, size: tuple[int, int]
) -> None:
    async with on_stage(stalls, size) as stage:
        stage.live.table.select(1)
        await stage.press("enter", "5")
        assert offset_at_cursor(stage) == WAIT
        assert "13%" in stage.text
        assert "─ waits for wgmma: HGMMA attention.py:32 · " in stage.text
        await stage.press("enter")
        assert offset_at_cursor(stage) == PRODUCER
        assert "─ WARPGROUP attention.py:32 waits for this instruction · " in stage.text
        await stage.press("enter")
        assert offset_at_cursor(stage) == WAIT
        assert screen_of(stage).current == "sass"


@pytest.mark.parametrize("size", SIZES)
async def test_sass_has_keys_for_the_next_and_the_longest_wait(stalls: Session, size: tuple[int, int]) -> None:
    async with on_stage(stalls, size) as stage:
        stage.live.table.select(1)
        await stage.press("enter", "5", "full_stop")
        assert offset_at_cursor(stage) == NEXT
        assert "measured instruction 11 of 24" in stage.text
        await stage.press("enter")  # a barrier
        assert offset_at_cursor(stage) == NEXT
        assert "the producer of this wait is not known" in stage.text
        await stage.press("exclamation_mark")
        assert offset_at_cursor(stage) == WAIT
        assert "longest wait: attention.py:32" in stage.text
        await stage.press("v", "full_stop")
        assert offset_at_cursor(stage) == NEXT
        await stage.press("exclamation_mark")
        assert offset_at_cursor(stage) == WAIT


@pytest.mark.parametrize("size", SIZES)
async def test_hotspot_of_the_summary_is_the_longest_wait(stalls: Session, size: tuple[int, int]) -> None:
    """The finding says which blocks were sampled."""
    async with on_stage(stalls, size) as stage:
        stage.live.table.select(1)
        await stage.press("enter", "exclamation_mark")
        assert screen_of(stage).current == "stalls"
        assert offset_at_cursor(stage) == WAIT
        await stage.press("enter")
        assert screen_of(stage).current == "sass"
        assert offset_at_cursor(stage) == WAIT


@pytest.mark.parametrize("size", SIZES)
async def test_stalls_has_keys_for_the_next_and_the_longest_wait(stalls: Session, size: tuple[int, int]) -> None:
    """As on SASS; here the order is that of the waits."""
    async with on_stage(stalls, size) as stage:
        stage.live.table.select(1)
        await stage.press("enter", "exclamation_mark", "full_stop")
        assert screen_of(stage).current == "stalls"
        assert offset_at_cursor(stage) == NEXT
        assert "wait 2 of 24" in stage.text
        await stage.press("comma")
        assert offset_at_cursor(stage) == WAIT
        assert "wait 1 of 24" in stage.text


@pytest.mark.parametrize("size", SIZES)
async def test_source_leads_from_the_hotspot_to_the_wait(stalls: Session, size: tuple[int, int]) -> None:
    async with on_stage(stalls, size) as stage:
        stage.live.table.select(1)
        await stage.press("enter", "2", "exclamation_mark")
        assert "longest wait: attention.py:32" in stage.text
        assert "13%" in stage.text
        await stage.press("enter")
        assert screen_of(stage).current == "sass"
        assert offset_at_cursor(stage) == WAIT


@pytest.mark.parametrize("size", SIZES)
async def test_ptx_leads_from_the_hotspot_to_the_wait(stalls: Session, size: tuple[int, int]) -> None:
    async with on_stage(stalls, size) as stage:
        stage.live.table.select(1)
        await stage.press("enter", "3", "exclamation_mark")
        assert "wgmma.wait_group.sync.aligned" in stage.text
        assert offset_at_cursor(stage) == WAIT
        await stage.press("full_stop")
        assert offset_at_cursor(stage) == NEXT
        await stage.press("exclamation_mark", "enter")
        assert screen_of(stage).current == "sass"
        assert offset_at_cursor(stage) == WAIT
