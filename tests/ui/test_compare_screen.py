"""The screen that compares: what it comes to, drawings in one scale, and all of it as files."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from xml.etree import ElementTree

from tests.recorded import H200, SIMULATED, unpacked
from tests.ui.conftest import Stage, on_stage
from tui_probe.pages.beside import Beside
from tui_probe.ui.feed import Session
from tui_probe.ui.screens.compare import CompareScreen
from tui_probe.ui.views.drawing import DrawingView


def screen_of(stage: Stage) -> CompareScreen:
    assert isinstance(stage.app.screen, CompareScreen)
    return stage.app.screen


async def test_two_kernels_of_a_run() -> None:
    async with on_stage(Session(traces=(H200 / "demo",)), (120, 40)) as stage:
        stage.live.table.select(4)
        await stage.press("C", "right_square_bracket", "C")
        lines = stage.text.split("\n")
        assert lines[2].startswith(
            " B is faster: span cycles 6 957 → 1 618 (-76.7 %); better: registers per thread 32 → 15"
        )
        running = next(line for line in lines if "running cycles" in line)
        assert running.split()[-6:] == ["▼", "-5", "339", "-76.7", "%", "better"]
        await stage.press("tab")
        view = screen_of(stage).view
        assert isinstance(view, DrawingView)
        assert isinstance(view.drawing, Beside)
        assert view.drawing.one.cycles == view.drawing.other.cycles
        await stage.press("w", "q", "q")
        assert stage.app.screen is stage.live


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


async def test_what_has_nothing_to_compare_says_so(tmp_path: Path) -> None:
    trace = unpacked(SIMULATED / "block_sched", tmp_path)
    for result in trace.glob("result/*.bin"):
        result.write_bytes(b"cut")
    async with on_stage(Session(traces=(trace,)), (120, 40)) as stage:
        await stage.press("enter", "left_curly_bracket", "C", "right_curly_bracket", "C")
        assert "no figure got better or worse" in stage.text
        assert "span cycles" not in stage.text
        await stage.press("tab")
        assert "result" in stage.text
