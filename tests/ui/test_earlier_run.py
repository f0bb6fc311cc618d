"""A run that has ended offers to be compared with the run of the same command before it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.recorded import H200
from tests.ui.conftest import on_stage
from tui_probe.ui.screens.compare import CompareRunsScreen
from tui_probe.ui.session import OpenTrace, Session

WORDS = "R: compare with the previous run"


def runs(folder: Path, *names: str) -> list[Path]:
    """Runs of one command, one after another."""
    traces = [folder / name for name in names]
    for number, trace in enumerate(traces):
        shutil.copytree(H200 / "demo", trace)
        record = json.loads((trace / "run.json").read_text())
        (trace / "run.json").write_text(json.dumps(record | {"cwd": str(folder)}))
        os.utime(trace / "event.log", (1000 + number, 1000 + number))
    return traces


async def test_two_keys_compare_with_the_run_before(tmp_path: Path) -> None:
    first, second = runs(tmp_path, "first", "second")
    async with on_stage(Session(traces=(second,)), (120, 40)) as stage:
        await stage.refresh()
        assert WORDS in stage.text.split("\n")[-2]
        await stage.press("R")
        assert "▌1 compare" in stage.text
        assert "what changed since the previous run?" in stage.text
        assert "with first, 1970-01-01; does not run the program" in stage.text
        await stage.press("enter")
        screen = stage.app.screen
        assert isinstance(screen, CompareRunsScreen)
        assert (screen.baseline, screen.candidate) == (first, second)
        await stage.press("q")
        assert stage.app.screen is stage.live


async def test_previous_run_is_opened_from_the_list_of_r(tmp_path: Path) -> None:
    """Also one with another probe: it is the way back from the run of a question."""
    first, second = runs(tmp_path, "first", "second")
    record = json.loads((first / "run.json").read_text())
    (first / "run.json").write_text(json.dumps(record | {"probe": "dmat"}))
    os.utime(first / "event.log", (1000, 1000))
    session = Session(traces=(second,))
    async with on_stage(session, (120, 40)) as stage:
        await stage.press("R", *"open the previous")
        assert "▌" in stage.text
        await stage.pilot.press("enter")
    assert session.next_request == OpenTrace(first)


async def test_previous_run_is_offered_on_kernel_screen(tmp_path: Path) -> None:
    _, second = runs(tmp_path, "first", "second")
    async with on_stage(Session(traces=(second,)), (80, 24)) as stage:
        await stage.press("enter")
        kernel = stage.app.screen
        await stage.press("R", "enter")
        assert isinstance(stage.app.screen, CompareRunsScreen)
        await stage.press("q")
        assert stage.app.screen is kernel
        stage.app.screen.action_page("dmat")  # type: ignore[attr-defined]
        await stage.settle()
        await stage.press("R")
        assert "▌1 -p dmat " in stage.text, "what this page lacks comes before it"


@pytest.mark.parametrize("names", [("only",), ("second", "first")])
async def test_without_an_earlier_run_nothing_is_offered(tmp_path: Path, names: tuple[str, ...]) -> None:
    last = runs(tmp_path, *names)[0]
    async with on_stage(Session(traces=(last,)), (120, 40)) as stage:
        await stage.refresh()
        assert "previous run" not in stage.text
        await stage.press("R", *"compare")
        assert "no entry contains these words" in stage.text


async def test_previous_run_is_offered_without_rerun(tmp_path: Path) -> None:
    _, second = runs(tmp_path, "first", "second")
    record = json.loads((second / "run.json").read_text())
    (second / "run.json").write_text(json.dumps(record | {"cwd": "/no/such/folder"}))
    async with on_stage(Session(traces=(second,)), (120, 40)) as stage:
        await stage.press("R")
        assert "show the command; its directory is on another machine" in stage.text
        await stage.press("enter")
        assert isinstance(stage.app.screen, CompareRunsScreen)
