"""Pages go on at the spot of the one before, going back returns to the very place, filters end where they began."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from tests.pages.measured_example import STRIDED, write_measured
from tests.ui.conftest import Stage, on_stage
from tests.ui.test_jumps import cursor_line, hint, screen_of, show
from tui_probe.draw.spot import Spot
from tui_probe.engine.toolchain import Tool
from tui_probe.ui.feed import Session
from tui_probe.ui.views.document import DocumentView

SASS = Path(__file__).parents[1] / "data" / "sass" / "strides"


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(traces=(write_measured(tmp_path / "dmat", "dmat").directory,))


def number(stage: Stage) -> str:
    """The first number of the line at the cursor."""
    return cursor_line(stage).removeprefix("▶").split()[0]


async def to_line(stage: Stage, words: str) -> None:
    """Move the cursor down to a line that contains these words."""
    for _ in range(200):
        if words in cursor_line(stage):
            return
        await stage.press("j")
    raise AssertionError(f"no line with {words}\n{stage.text}")


def test_a_spot_keeps_what_the_next_page_does_not_tell() -> None:
    before = Spot((12, 14), block=5, time=100.0)
    assert Spot((30,)).over(before) == Spot((30,), block=5, time=100.0)
    assert Spot(probed=40).over(before) == Spot(probed=40, block=5, time=100.0)
    assert Spot(sm=3).over(before) == Spot((12, 14), sm=3)
    assert Spot().over(before) == before
    assert not Spot()


def test_spots_share_code_where_one_is_a_line_of_the_other() -> None:
    assert Spot((12, 14)).shares_code(Spot((12,)))
    assert not Spot((12, 14)).shares_code(Spot((13, 15)))
    assert Spot((13, 12)).shares_code(Spot((12, 13))), "the first of one is some line of the other"
    assert not Spot().shares_code(Spot())
    assert not Spot((12,)).shares_code(Spot(probed=12))


async def test_source_ptx_diff_and_lines_show_the_same_line(session: Session) -> None:
    async with on_stage(session, (160, 40)) as stage:
        await stage.press("enter")
        await show(stage, "source")
        await to_line(stage, "▶   7 ")
        await show(stage, "ptx")
        assert "ld.global.f32 %f2" in cursor_line(stage)
        await show(stage, "diff")
        assert "ld.global.f32 %f2" in cursor_line(stage)
        await show(stage, "lines")
        assert f" {STRIDED} " in cursor_line(stage)
        await stage.press("j", "j")
        there = cursor_line(stage)
        await show(stage, "source")
        assert f"strides.cu:{number(stage)}" in there


async def test_a_page_that_shows_the_line_already_stays_where_it_is(session: Session) -> None:
    async with on_stage(session, (120, 40)) as stage:
        await stage.press("enter")
        await show(stage, "source")
        await to_line(stage, "▶   7 ")
        await show(stage, "ptx")
        await stage.press("j")
        assert "add.f32 %f3" in cursor_line(stage), "it came from the same line of source"
        await show(stage, "source")
        assert number(stage) == "7"
        await show(stage, "ptx")
        assert "add.f32 %f3" in cursor_line(stage)


async def test_a_line_of_which_a_page_knows_nothing_is_told_and_the_cursor_stays(session: Session) -> None:
    async with on_stage(session, (120, 40)) as stage:
        await stage.press("enter", "2", "slash", *"ret;", "enter", "escape")
        assert " ret;" in cursor_line(stage)
        await show(stage, "lines")
        line = cursor_line(stage)
        assert f"nothing was measured of PTX line {len(open_lines(stage)) - 2}" in hint(stage)
        assert "strides.cu:7" in line, "the first row"


def open_lines(stage: Stage) -> list[str]:
    view = screen_of(stage).opener.kept["ptx"]
    assert isinstance(view, DocumentView)
    return view.document.texts["pruned"]  # type: ignore[attr-defined, no-any-return]


async def test_another_text_keeps_the_line_or_says_that_it_is_not_there(session: Session) -> None:
    async with on_stage(session, (120, 40)) as stage:
        await stage.press("enter", "2", "slash", *"%clock64", "enter", "escape")
        inserted = number(stage).rstrip("+")
        await stage.press("v")
        assert "pruned.ptx" in stage.text
        assert f"line {inserted} of probed.ptx is the probe's: it does not exist in pruned.ptx" in hint(stage)
        await stage.press("v", "v")
        await to_line(stage, "ld.global.f32 %f2")
        await stage.press("v")
        assert cursor_line(stage).startswith(f"▶  {STRIDED} ")
        await stage.press("v")
        assert f"which line of original.ptx is PTX line {STRIDED} is not known" in hint(stage)


async def test_going_back_returns_to_the_very_place(session: Session) -> None:
    async with on_stage(session, (120, 24)) as stage:
        await stage.press("enter", "2", "v", "ampersand", *"global", "enter", "j", "l")
        left = stage.text.split("\n")[:-1]
        assert f" {STRIDED} " in cursor_line(stage)
        await stage.press("enter")
        assert screen_of(stage).current == "lines"
        await stage.press("j", "enter")
        assert screen_of(stage).current == "ptx"
        assert screen_of(stage).view.filter_text == "global", "its line passes the filter"
        await stage.press("v", "q", "q")  # the first ends the filter
        assert screen_of(stage).current == "lines"
        await stage.press("q")
        assert stage.text.split("\n")[:-1] == left


async def test_a_filter_that_ends_returns_to_the_line_it_was_set_on(session: Session) -> None:
    async with on_stage(session, (120, 24)) as stage:
        await stage.press("enter", "2", *["j"] * 30)
        before = stage.text.split("\n")[:-1]
        await stage.press("ampersand", *"st.global.f32 [%rd1]", "enter", "escape")
        assert stage.text.split("\n")[:-1] == before
        await stage.press("ampersand", *"no such words", "enter", "escape")
        assert stage.text.split("\n")[:-1] == before, "also where no line passed"
        await stage.press("ampersand", *"ld.global", "enter", "j", "escape")
        assert "ld.global.f32 %f2" in cursor_line(stage), "where it was moved it stays"


async def test_what_a_filter_hides_is_told_and_a_jump_ends_the_filter(session: Session) -> None:
    async with on_stage(session, (120, 40)) as stage:
        await stage.press("enter", "2", "ampersand", *"st.global", "enter")
        await show(stage, "lines")
        assert "ld.global.f32 %f2" in cursor_line(stage)
        await show(stage, "ptx")
        assert "“st.global” hides the line of the page before" in hint(stage)
        await show(stage, "lines")
        await stage.press("enter")
        assert "ld.global.f32 %f2" in cursor_line(stage)
        assert "only “" not in stage.text


@pytest.fixture
def machine_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """The same kernel with its machine code, which nvdisasm 13.0 printed."""
    directory = write_measured(tmp_path / "sectors").directory
    (folder,) = (directory / "kernel").iterdir()
    cubins = {side: lzma.decompress((SASS / f"{side}.bin.xz").read_bytes()) for side in ("pruned", "probed")}
    for side, content in cubins.items():
        (folder / f"{side}.bin").write_bytes(content)
        (folder / f"{side}.ptx").write_bytes((SASS / f"{side}.ptx").read_bytes())

    def told(_: Tool, cubin: Path) -> str:
        side = next(side for side, content in cubins.items() if content == cubin.read_bytes())
        return (SASS / f"{side}.txt").read_text()

    tool = Tool(Path("nvdisasm"), (13, 0), "13.0.0")
    monkeypatch.setattr("tui_probe.pages.machine_code.disassembler", lambda: tool)
    monkeypatch.setattr("tui_probe.pages.machine_code.disassemble", told)
    return Session(traces=(directory,))


async def test_machine_code_and_ptx_show_the_same_line(machine_code: Session) -> None:
    async with on_stage(machine_code, (200, 50)) as stage:
        await stage.press("enter", "4", "slash", *"LDG.E R6", "enter", "escape")
        first = screen_of(stage).view.here().ptx
        await stage.press("enter")
        assert screen_of(stage).current == "ptx"
        assert "ld.global.f32" in cursor_line(stage)
        await stage.press("j", "j", "j", "4")
        assert screen_of(stage).view.here().ptx != first
        await stage.press("2", "g", "4")
        assert "PTX line 1 has no SASS" in hint(stage)


async def test_machine_code_of_the_probe_leads_to_its_line_and_back(machine_code: Session) -> None:
    async with on_stage(machine_code, (200, 50)) as stage:
        await stage.press("enter", "4", "slash", *"MATCH", "enter", "escape")
        assert "of the probe gmem_sectors_by_line" in stage.text
        code = cursor_line(stage)
        await stage.press("enter")
        assert screen_of(stage).current == "ptx"
        assert "match.any.sync" in cursor_line(stage)
        await stage.press("3")
        assert "match.any.sync" in cursor_line(stage)
        await stage.press("4")
        assert cursor_line(stage) == code
