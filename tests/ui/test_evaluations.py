"""Evaluations on the screen: chosen in the palette, of the traces that are open, a page for each value."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evals.schedules import write_two_slots
from tests.recorded import H200
from tests.ui.conftest import Stage, on_stage
from tests.ui.pages_stage import showing
from tui_probe.evals.answer import answer_pages
from tui_probe.evals.evaluation import evaluate, evaluation_names
from tui_probe.ui.screens.ready_pages import EvaluationScreen
from tui_probe.ui.session import Session


async def shows(stage: Stage, words: str) -> None:
    await stage.until(lambda: words in stage.text, words)


async def test_an_evaluation_of_the_open_trace(tmp_path: Path) -> None:
    session = Session(traces=(write_two_slots(tmp_path / "two_slots"),))
    async with on_stage(session, (110, 40)) as stage:
        await stage.press("colon", *"choose an evaluation of", "enter")
        await shows(stage, "Evaluations:")
        assert all(name in stage.text for name in evaluation_names())
        await stage.press(*"scheduling", "enter")
        await shows(stage, "No.block:5 Running:208 Scheduling:10(cycle)")
        assert isinstance(stage.app.screen, EvaluationScreen)
        assert "scheduling  two_slots" in stage.text
        await stage.press("greater_than_sign")
        await shows(stage, "cycles per slot: █ running")
        await stage.press("q")
        assert stage.app.screen is stage.live


async def test_missing_data_names_command_to_run() -> None:
    async with on_stage(Session(traces=(H200 / "dmat",)), (110, 40)) as stage:
        await stage.press("colon", *"choose an evaluation of", "enter")
        await shows(stage, "Evaluations:")
        await stage.press(*"scheduling", "enter")
        await shows(stage, "tui-probe eval scheduling --run")
        assert "was probed with dmat" in stage.text


@pytest.mark.parametrize("ascii_only", [False, True], ids=["unicode", "ascii"])
async def test_an_answer_and_its_figures_are_pages(tmp_path: Path, ascii_only: bool) -> None:
    answer = evaluate("scheduling", write_two_slots(tmp_path / "two_slots"))
    async with showing(answer_pages(answer), (100, 40), ascii_only=ascii_only) as stage:
        assert "block schedules" in stage.text
        await stage.press("greater_than_sign", "greater_than_sign")
        assert "scheduling cycles per slot" in stage.text
        before = stage.text
        await stage.press("w")
        assert stage.text != before
        assert not ascii_only or stage.text.isascii()
