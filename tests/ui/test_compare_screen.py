"""The screen that compares: what it comes to, drawings in one scale, and all of it as files."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.pages.before_after import write_pair
from tests.recorded import H200, SIMULATED, unpacked
from tests.ui.conftest import Stage, on_stage
from tests.ui.fakes import Gate
from tests.ui.test_kernel_screen import let_run
from tui_probe.draw.spans import plain
from tui_probe.pages import paired_drawings
from tui_probe.pages.paired_drawings import PairedDrawings
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.ui.screens.compare import CompareRunsScreen, CompareScreen, SideScreen
from tui_probe.ui.screens.page_opening import OpeningView
from tui_probe.ui.session import Session
from tui_probe.ui.views.document_view import DocumentView
from tui_probe.ui.views.drawing import DrawingView


def screen_of(stage: Stage) -> CompareScreen:
    assert isinstance(stage.app.screen, CompareScreen)
    return stage.app.screen


async def test_two_kernels_of_a_run() -> None:
    async with on_stage(Session(traces=(H200 / "demo",)), (120, 40)) as stage:
        stage.live.table.select(4)
        await stage.press("C", "right_square_bracket", "C")
        lines = stage.inside.split("\n")
        assert lines[2].startswith(" the kernels differ, so there is no verdict: span cycles 6 957 → 1 618 (-76.7%)")
        running = next(line for line in lines if "running cycles" in line)
        assert running.split()[-5:] == ["618", "▼", "-5", "339", "-76.7%"]
        await stage.press("greater_than_sign")
        view = screen_of(stage).view
        assert isinstance(view, DrawingView)
        assert isinstance(view.drawing, PairedDrawings)
        assert view.drawing.baseline.cycles == view.drawing.candidate.cycles
        await stage.press("w", "q", "q")
        assert stage.app.screen is stage.live


async def test_a_mark_outlives_the_screen_of_its_trace(tmp_path: Path) -> None:
    """Of another trace that is opened, and of the same program run again."""
    before, after = write_pair(tmp_path)
    async with on_stage(Session(traces=(before,)), (120, 40)) as stage:
        stage.live.table.select(0)
        await stage.press("C")
        assert "marked #0 matmul" in stage.inside
    async with on_stage(Session(traces=(after,)), (120, 40)) as stage:
        stage.live.table.select(1)
        await stage.press("C")
        screen = screen_of(stage)
        assert "; B is faster: time 1.00 ms → 500 µs (-50.0%)" in stage.inside.split("\n")[2]
        assert (screen.baseline.trace.directory, screen.candidate.trace.directory) == (before, after)
        await stage.press("q", "C")
        assert "marked #1 matmul" in stage.inside, "a comparison takes the mark"


async def test_a_launch_stays_marked_too(tmp_path: Path) -> None:
    before, after = write_pair(tmp_path)
    async with on_stage(Session(traces=(before,)), (120, 40)) as stage:
        stage.live.table.select(3)
        await stage.press("enter", "left_curly_bracket", "C")
        assert "launch 12" in stage.inside
    async with on_stage(Session(traces=(after,)), (120, 40)) as stage:
        stage.live.table.select(3)
        await stage.press("C")
        launch = screen_of(stage).baseline.launch
        assert launch is not None
        assert launch.number == 12


async def test_the_same_index_of_another_trace_is_another_kernel(tmp_path: Path) -> None:
    before, after = write_pair(tmp_path)
    for trace in (before, after):
        async with on_stage(Session(traces=(trace,)), (120, 40)) as stage:
            stage.live.table.select(2)
            await stage.press("C")
            assert isinstance(stage.app.screen, CompareScreen) == (trace == after)


async def test_missing_marked_trace_is_reported(tmp_path: Path) -> None:
    before, after = write_pair(tmp_path)
    async with on_stage(Session(traces=(before,)), (120, 40)) as stage:
        await stage.press("C")
    shutil.rmtree(before)
    async with on_stage(Session(traces=(after,)), (120, 40)) as stage:
        await stage.press("C")
        assert "cannot read the marked kernel: " in stage.inside
        await stage.press("C")
        assert "marked #" in stage.inside


async def test_all_of_it_as_files(tmp_path: Path) -> None:
    trace = unpacked(SIMULATED / "block_sched", tmp_path)
    async with on_stage(Session(traces=(trace,)), (120, 40)) as stage:
        await stage.press("enter", "left_curly_bracket", "C", "right_curly_bracket", "C")
        screen_of(stage)
        for key in "tcjms":
            await stage.press("e", key)
        written = {path.suffix: path.read_text() for path in Path.cwd().glob("tui-probe-figures-*")}
        assert written.keys() == {".txt", ".csv", ".json", ".md", ".svg"}
        assert "span cycles" in written[".txt"]
        assert "span_cycles" in {row["figure"] for row in csv.DictReader(written[".csv"].splitlines())}
        assert json.loads(written[".json"])["data"]["verdict"]
        assert "| span cycles |" in written[".md"]
        assert ElementTree.fromstring(written[".svg"]).tag.endswith("svg")


async def test_page_without_comparison_reports_it(tmp_path: Path) -> None:
    trace = unpacked(SIMULATED / "block_sched", tmp_path)
    for result in trace.glob("result/*.bin"):
        result.write_bytes(b"cut")
    async with on_stage(Session(traces=(trace,)), (120, 40)) as stage:
        await stage.press("enter", "left_curly_bracket", "C", "right_curly_bracket", "C")
        assert "no result of either could be read" in stage.inside
        assert "span cycles" not in stage.inside
        await stage.press("greater_than_sign")
        assert "result" in stage.inside


async def compared(stage: Stage) -> CompareScreen:
    """Two kernels of a run on an H200, the second one faster."""
    stage.live.table.select(4)
    await stage.press("C", "right_square_bracket", "C")
    return screen_of(stage)


async def test_pages_have_numbers() -> None:
    async with on_stage(Session(traces=(H200 / "demo",)), (120, 40)) as stage:
        screen = await compared(stage)
        assert stage.inside.split("\n")[1] == " 1 Metrics  7 Timeline"
        await stage.press("7")
        assert screen.current == "timeline"
        assert isinstance(screen.view, DrawingView)
        await stage.press("1")
        assert isinstance(screen.view, DocumentView)
        await stage.press("2")
        assert "this screen has no page 2" in stage.inside
        await stage.press("less_than_sign")
        assert screen.current == screen.tabs[-1].id == "timeline"


async def test_the_worst_figure_and_the_worst_place_of_drawings() -> None:
    async with on_stage(Session(traces=(H200 / "demo",)), (120, 16)) as stage:
        stage.live.table.select(5)
        await stage.press("C", "left_square_bracket", "C")
        await stage.press("exclamation_mark")
        assert "the largest change: " in stage.inside.split("\n")[-1], "of different kernels neither is worse"
        await stage.press("7", "exclamation_mark")
        screen = screen_of(stage)
        assert isinstance(screen.view, DrawingView)
        assert "! worst" in stage.inside or "block" in stage.inside


async def test_line_without_target_reports_it() -> None:
    async with on_stage(Session(traces=(H200 / "demo",)), (120, 40)) as stage:
        screen = await compared(stage)
        await stage.press("g", "enter")
        assert "this line has no metric; press Enter on a table row to open its page" in stage.inside
        await stage.press("exclamation_mark")
        assert "the largest change: " in stage.inside, "B is better in every figure"
        assert screen.current == "figures"


async def test_reading_both_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate()
    kind = paired_drawings.kind_of("timeline")

    def slow(name: str, one: ViewSource, other: ViewSource, progress: object) -> PairedDrawings:
        assert callable(progress)
        progress(0.5)
        gate.wait()
        return paired_drawings.open_pair(name, one, other, progress)

    monkeypatch.setattr("tui_probe.ui.screens.compare.open_pair", slow)
    async with on_stage(Session(traces=(H200 / "demo",)), (120, 40)) as stage:
        screen = await compared(stage)
        gate.close()
        await stage.pilot.press("7")
        await let_run(stage)
        screen.tick()
        screen.tick()
        assert isinstance(screen.view, OpeningView)
        assert f"reading {kind.title}" in stage.inside
        assert "50%" in stage.inside
        await stage.pilot.press("escape")
        await let_run(stage)
        assert "stopped" in stage.inside
        gate.open.set()
        await stage.settle()
        assert stage.app.screen is screen
        assert "stopped" in stage.inside
        await stage.press("7")
        assert isinstance(screen.view, DrawingView)


async def to_row(stage: Stage, words: str) -> int:
    """Put the cursor on the row of a value; its line on the page."""
    view = stage.app.screen.view  # type: ignore[attr-defined]
    assert isinstance(view, DocumentView)
    await stage.press("slash", *words, "enter")
    assert words in plain(view.window.lines[view.cursor])
    return view.cursor


@pytest.mark.parametrize(
    ("label", "page", "title"),
    [
        ("running cycles", "blocks", "Blocks"),
        ("registers per thread", "diff", "Diff"),  # there is no machine code in this trace
        ("shared memory", "summary", "Summary"),
    ],
)
async def test_enter_leads_to_the_page_that_shows_the_figure_and_q_to_the_row(
    label: str, page: str, title: str
) -> None:
    async with on_stage(Session(traces=(H200 / "demo",)), (120, 40)) as stage:
        screen = await compared(stage)
        row = await to_row(stage, label)
        await stage.press("enter")
        side = stage.app.screen
        assert isinstance(side, SideScreen)
        assert (side.current, side.source) == (page, screen.candidate), "of B"
        assert f"{label} of B, on the page {title}" in stage.inside.split("\n")[-1]
        assert stage.inside.startswith(" B  #")
        await stage.press("q")
        assert stage.app.screen is screen
        assert isinstance(screen.view, DocumentView)
        assert screen.view.cursor == row


async def test_the_lines_of_both_sides_lead_to_their_kernels() -> None:
    async with on_stage(Session(traces=(H200 / "demo",)), (120, 40)) as stage:
        screen = await compared(stage)
        for letter, source in (("A", screen.baseline), ("B", screen.candidate)):
            await to_row(stage, f"{letter}  #")
            await stage.press("enter")
            side = stage.app.screen
            assert isinstance(side, SideScreen)
            assert (side.letter, side.source, side.current) == (letter, source, "summary")
            await stage.press("q", "escape")


async def test_a_figure_without_a_page_says_why(tmp_path: Path) -> None:
    before, after = write_pair(tmp_path)
    shutil.rmtree(after / "kernel")
    async with on_stage(Session(traces=(after,)), (120, 40)) as stage:
        stage.app.compare_runs(before, after)
        await stage.settle()
        await to_row(stage, "registers per thread")
        await stage.press("enter")
        assert isinstance(stage.app.screen, CompareRunsScreen)
        assert "B has no page for registers per thread: " in stage.inside.split("\n")[-1]


async def test_kernels_of_two_runs_lead_to_the_second_and_what_only_one_has_to_that(tmp_path: Path) -> None:
    before, after = write_pair(tmp_path)
    async with on_stage(Session(traces=(after,)), (120, 60)) as stage:
        stage.app.compare_runs(before, after)
        await stage.settle()
        runs = stage.app.screen
        for key, letter in ((None, "B"), ("only in A", "A")):
            if key is not None:
                await to_row(stage, key)
                await stage.press("down")
            await stage.press("enter")
            side = stage.app.screen
            assert isinstance(side, SideScreen)
            assert side.letter == letter
            assert side.source.trace.directory == (before if letter == "A" else after)
            await stage.press("q")
            assert stage.app.screen is runs
