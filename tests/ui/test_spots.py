"""Pages continue at the spot of the one before, going back returns to the very place, filters end where they began."""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np
import pytest

from tests.pages.measured_example import NEVER, STRIDED, write_measured
from tests.trace.make import TraceWriter, block_sched_result
from tests.ui.conftest import Stage, on_stage
from tests.ui.test_jumps import cursor_line, hint, screen_of, show
from tui_probe.draw.view import Spot
from tui_probe.toolchain import Tool
from tui_probe.ui.session import Session
from tui_probe.ui.views.document_view import DocumentView

SASS = Path(__file__).parents[1] / "data" / "sass" / "strides"


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(traces=(write_measured(tmp_path / "dmat", "dmat").directory,))


def number(stage: Stage) -> str:
    """The first number of the line at the cursor."""
    return cursor_line(stage).removeprefix("▌").split()[0]


async def to_line(stage: Stage, words: str) -> None:
    """Move the cursor down to a line that contains these words."""
    for _ in range(200):
        if words in cursor_line(stage):
            return
        await stage.press("j")
    raise AssertionError(f"no line with {words}\n{stage.inside}")


def test_a_spot_keeps_what_the_next_page_does_not_tell() -> None:
    before = Spot((12, 14), block=5, time=100.0)
    assert Spot((30,)).completed_from(before) == Spot((30,), block=5, time=100.0)
    assert Spot(probed_line=40).completed_from(before) == Spot(probed_line=40, block=5, time=100.0)
    assert Spot(sm=3).completed_from(before) == Spot((12, 14), sm=3)
    assert Spot().completed_from(before) == before
    assert not Spot()


def test_spots_share_code_where_one_is_a_line_of_the_other() -> None:
    assert Spot((12, 14)).shares_code(Spot((12,)))
    assert not Spot((12, 14)).shares_code(Spot((13, 15)))
    assert Spot((13, 12)).shares_code(Spot((12, 13))), "the first of one is some line of the other"
    assert not Spot().shares_code(Spot())
    assert not Spot((12,)).shares_code(Spot(probed_line=12))


async def test_source_ptx_diff_and_lines_show_the_same_line(session: Session) -> None:
    async with on_stage(session, (160, 40)) as stage:
        await stage.press("enter")
        await show(stage, "source")
        await to_line(stage, "▌   7 ")
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
        await to_line(stage, "▌   7 ")
        await show(stage, "ptx")
        await stage.press("j")
        assert "add.f32 %f3" in cursor_line(stage), "it came from the same line of source"
        await show(stage, "source")
        assert number(stage) == "7"
        await show(stage, "ptx")
        assert "add.f32 %f3" in cursor_line(stage)


async def test_unknown_line_is_reported_and_cursor_stays(session: Session) -> None:
    async with on_stage(session, (120, 40)) as stage:
        await stage.press("enter", "3", "slash", *"ret;", "enter", "escape")
        assert " ret;" in cursor_line(stage)
        await show(stage, "lines")
        line = cursor_line(stage)
        assert f"PTX line {len(open_lines(stage)) - 2} was not measured" in hint(stage)
        assert "strides.cu:7" in line, "the first row"


def open_lines(stage: Stage) -> list[str]:
    view = screen_of(stage).opener.views["ptx"]
    assert isinstance(view, DocumentView)
    return view.document.texts["pruned"]  # type: ignore[attr-defined, no-any-return]


async def test_another_text_keeps_the_line_or_says_that_it_is_not_there(session: Session) -> None:
    async with on_stage(session, (120, 40)) as stage:
        await stage.press("enter", "3", "slash", *"%clock64", "enter", "escape")
        inserted = number(stage).rstrip("+")
        await stage.press("v")
        assert "pruned.ptx" in stage.inside
        assert f"line {inserted} of probed.ptx is part of the probe and not in pruned.ptx" in hint(stage)
        await stage.press("v", "v")
        await to_line(stage, "ld.global.f32 %f2")
        await stage.press("v")
        assert cursor_line(stage).startswith(f"▌  {STRIDED} ")
        await stage.press("v")
        assert f"the position of PTX line {STRIDED} in original.ptx is unknown" in hint(stage)
        await stage.press("v")
        assert "probed.ptx" in stage.inside
        assert cursor_line(stage).startswith(f"▌  {STRIDED} "), "the line that the original text lacks"


async def test_going_back_returns_to_the_very_place(session: Session) -> None:
    async with on_stage(session, (120, 24)) as stage:
        await stage.press("enter", "3", "v", "ampersand", *"global", "enter", "j", "l")
        left = stage.inside.split("\n")[:-1]
        assert f" {STRIDED} " in cursor_line(stage)
        await stage.press("enter")
        assert screen_of(stage).current == "lines"
        await stage.press("j", "enter", "enter")
        assert screen_of(stage).current == "ptx"
        assert screen_of(stage).view.filter_text == "global", "its line passes the filter"
        await stage.press("v", "q", "q", "q")  # the first ends the filter
        assert screen_of(stage).current == "lines"
        await stage.press("q")
        assert stage.inside.split("\n")[:-1] == left


async def test_from_an_added_line_to_where_the_file_of_the_probe_says_so_and_back(session: Session) -> None:
    async with on_stage(session, (120, 40)) as stage:
        await stage.press("enter", "4", "slash", *"st.global.cs", "enter", "escape")
        line = cursor_line(stage)
        assert "p probe" in hint(stage)
        await stage.press("p")
        assert screen_of(stage).current == "probe"
        assert "[probe.access]" in cursor_line(stage)
        await stage.press("enter")
        assert screen_of(stage).current == "ptx"
        assert "ld.global.f32 %f1" in cursor_line(stage)
        await stage.press("q", "q")
        assert (screen_of(stage).current, cursor_line(stage)) == ("diff", line)
        await stage.press("slash", *"%tp__attempts_dmat, 0", "enter", "escape", "p")
        assert "[probe.entry]" in cursor_line(stage)


async def test_a_filter_that_ends_returns_to_the_line_it_was_set_on(session: Session) -> None:
    async with on_stage(session, (120, 24)) as stage:
        await stage.press("enter", "3", *["j"] * 30)
        before = stage.inside.split("\n")[:-1]
        await stage.press("ampersand", *"st.global.f32 [%rd1]", "enter", "escape")
        assert stage.inside.split("\n")[:-1] == before
        await stage.press("ampersand", *"no such words", "enter", "escape")
        assert stage.inside.split("\n")[:-1] == before, "also where no line passed"
        await stage.press("ampersand", *"ld.global", "enter", "j", "escape")
        assert "ld.global.f32 %f2" in cursor_line(stage), "where it was moved it stays"


async def test_hidden_line_is_reported_and_jump_ends_filter(session: Session) -> None:
    async with on_stage(session, (120, 40)) as stage:
        await stage.press("enter", "3", "ampersand", *"st.global", "enter")
        await show(stage, "lines")
        assert "ld.global.f32 %f2" in cursor_line(stage)
        await show(stage, "ptx")
        assert "the filter “st.global” hides this line" in hint(stage)
        await show(stage, "lines")
        await stage.press("enter", "enter")
        assert "ld.global.f32 %f2" in cursor_line(stage)
        assert "only “" not in stage.inside


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
    monkeypatch.setattr("tui_probe.pages.code.kernel_sass.find_disassembler", lambda: tool)
    monkeypatch.setattr("tui_probe.pages.code.kernel_sass.disassemble", told)
    return Session(traces=(directory,))


async def test_machine_code_and_ptx_show_the_same_line(machine_code: Session) -> None:
    async with on_stage(machine_code, (200, 50)) as stage:
        await stage.press("enter", "5", "slash", *"LDG.E R6", "enter", "escape")
        first = screen_of(stage).view.spot().ptx
        await stage.press("enter")
        assert screen_of(stage).current == "ptx"
        assert "ld.global.f32" in cursor_line(stage)
        await stage.press("j", "j", "j", "5")
        assert screen_of(stage).view.spot().ptx != first
        await stage.press("3", "g", "5")
        assert "PTX line 1 has no SASS" in hint(stage)


async def test_machine_code_of_the_probe_leads_to_its_line_and_back(machine_code: Session) -> None:
    async with on_stage(machine_code, (200, 50)) as stage:
        await stage.press("enter", "5", "slash", *"MATCH", "enter", "escape")
        assert "of the probe gmem_sectors_by_line" in stage.inside
        code = cursor_line(stage)
        await stage.press("enter")
        assert screen_of(stage).current == "ptx"
        assert "match.any.sync" in cursor_line(stage)
        await stage.press("4")
        assert "match.any.sync" in cursor_line(stage)
        await stage.press("5")
        assert cursor_line(stage) == code


LATE, LATE_SM, SMS, ROUNDS = 37, 37, 64, 3


@pytest.fixture
def blocks(tmp_path: Path) -> Session:
    """A launch on more SMs than the terminal has lines; while block 37 runs, others of its SM come and go."""
    writer = TraceWriter(tmp_path / "blocks")
    writer.start(sms=SMS)
    writer.kernel(0, "_Z7plantedPfi")
    block = np.arange(SMS * ROUNDS)
    sm, start = block % SMS, 5_000 + 100 * (block // SMS)
    elapsed = np.full(len(block), 100)
    elapsed[LATE] = 1000
    more = np.arange(20)
    sm, start = np.append(sm, np.full(20, LATE_SM)), np.append(start, 4_950 + 100 * more)
    result = block_sched_result(start, np.append(elapsed, np.full(20, 100)), sm, threads=64)
    writer.save(0, writer.launch(0, (len(sm), 1, 1), (64, 1, 1)), result)
    writer.exit()
    writer.run_json(probe="block_sched", driver={"path": "/sim/libcuda.so.1", "simulated": True})
    return Session(traces=(writer.directory,))


def state(stage: Stage) -> str:
    """The line that says what is seen of the page."""
    return stage.inside.split("\n")[-2]


async def test_the_worst_place_of_a_timeline_is_the_block_that_the_summary_names(blocks: Session) -> None:
    async with on_stage(blocks, (120, 30)) as stage:
        await stage.press("enter")
        assert f"slowest block   block {LATE} on SM {LATE_SM}" in stage.inside
        await show(stage, "timeline")
        await stage.press("exclamation_mark")
        assert f"SM {LATE_SM} slot" in state(stage)
        assert f"· block {LATE} ·" in state(stage)
        await stage.press("right")
        assert f"· block {LATE} ·" not in state(stage), "of those that run then the latest"


async def test_the_cursor_stays_on_its_sm_and_block_when_the_level_changes(blocks: Session) -> None:
    async with on_stage(blocks, (120, 30)) as stage:
        await stage.press("enter")
        await show(stage, "timeline")
        await stage.press("exclamation_mark", "v")
        assert f"SM {LATE_SM} slot" in state(stage)
        assert f"· block {LATE} ·" in state(stage)
        assert f"▌SM {LATE_SM}." in stage.inside
        await stage.press("v", "v")
        assert f"· block {LATE} ·" in state(stage)
        await stage.press("x")
        assert f"SM {LATE_SM} only" in stage.inside


async def test_the_block_of_a_timeline_is_kept_in_another_launch_page(blocks: Session) -> None:
    async with on_stage(blocks, (120, 30)) as stage:
        await stage.press("enter")
        await show(stage, "timeline")
        await stage.press("exclamation_mark")
        await show(stage, "summary")
        assert screen_of(stage).spot.block == LATE
        await show(stage, "timeline")
        assert f"· block {LATE} ·" in state(stage)


async def test_an_access_is_kept_from_the_code_and_back(session: Session) -> None:
    async with on_stage(session, (120, 40)) as stage:
        await stage.press("enter")
        await show(stage, "lines")
        await stage.press("j")
        (line,) = screen_of(stage).view.spot().ptx
        await show(stage, "dmat")
        assert f"PTX:{line} " in stage.inside
        await stage.press("enter")
        assert screen_of(stage).view.spot().ptx == (line,)
        await stage.press("q")
        block, time = screen_of(stage).view.spot().block, screen_of(stage).view.spot().time
        assert block is not None
        assert time is not None
        await show(stage, "ptx")
        assert screen_of(stage).spot == Spot((line,), None, *screen_of_run(stage))


def screen_of_run(stage: Stage) -> tuple[object, ...]:
    spot = screen_of(stage).opener.views["dmat"].spot()
    return spot.block, spot.warp, spot.sm, spot.time, spot.address


async def test_line_without_access_is_reported_and_picture_stays(session: Session) -> None:
    async with on_stage(session, (120, 40)) as stage:
        await stage.press("enter", "3", "slash", *"ret;", "enter", "escape")
        await show(stage, "dmat")
        assert "is not an access to global memory" in hint(stage)
        await show(stage, "ptx")
        await stage.press("v", "slash", *"st.global.f32 [%rd1]", "enter", "escape")
        await show(stage, "dmat")
        assert f"no access of PTX line {NEVER} was recorded at this position" in stage.inside


async def test_a_block_of_a_timeline_is_found_among_the_accesses(session: Session) -> None:
    async with on_stage(session, (120, 40)) as stage:
        await stage.press("enter")
        for block in (1, 0):
            await show(stage, "launches")
            screen_of(stage).spot = Spot(block=block)
            await show(stage, "dmat")
            assert screen_of(stage).view.spot().block == block
        await show(stage, "launches")
        screen_of(stage).spot = Spot(block=7)
        await show(stage, "dmat")
        assert "no access of block 7 was recorded" in hint(stage)


async def test_lines_without_cursor_are_scrolled_as_before_once_a_filter_ends(session: Session) -> None:
    async with on_stage(session, (80, 24)) as stage:
        await stage.press("tab", "j", "j", "j")
        before = stage.inside.split("\n")[:-1]
        await stage.press("ampersand", *"registers", "enter")
        assert stage.inside.split("\n")[:-1] != before
        await stage.press("escape")
        assert stage.inside.split("\n")[:-1] == before
