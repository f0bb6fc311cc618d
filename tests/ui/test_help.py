"""The page behind ``?``: it begins with how to read what is visible."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ui.conftest import golden_sizes, on_stage
from tests.ui.test_keys import PAGES
from tui_probe.draw.shorten import view_heading
from tui_probe.draw.spans import plain
from tui_probe.pages.explanations import explanation
from tui_probe.pages.views import kind_of, names
from tui_probe.ui import Appearance
from tui_probe.ui.keys import SCOPES, TABLE
from tui_probe.ui.live.feed import Session
from tui_probe.ui.screens.help import HelpScreen, key_lines

RECORDED = Path(__file__).parents[1] / "data" / "h200"


def blocks() -> Session:
    return Session(traces=(RECORDED / "attention_blocks",))


def test_every_view_and_every_page_is_explained() -> None:
    live = ("kernels", "kernel", "process", "events", "stdout", "stderr", "results", "gpu")
    assert all(explanation(name) for name in (*names(), *live))


def test_a_view_names_itself_in_words() -> None:
    assert view_heading("DMAT", kind_of("dmat").about) == "DMAT: memory accesses over time"
    assert view_heading("Timeline", kind_of("timeline").about) == "Timeline: blocks and warps on SMs over time"
    for name in names():
        assert len(view_heading(kind_of(name).title, kind_of(name).about)) <= 80


async def test_help_begins_with_visible_page() -> None:
    async with on_stage(blocks(), (100, 40)) as stage:
        stage.live.table.select(1)
        await stage.press("enter", "8", "question_mark")
        assert isinstance(stage.app.screen, HelpScreen)
        lines = stage.text.split("\n")
        assert lines[0].startswith(" Timeline: blocks and warps on SMs over time")
        assert lines[1].startswith(" One row per SM, per slot of an SM")
        assert "to the next start in the row" in stage.text  # what the key does here
        await stage.press("slash", *"next theme", "enter")
        assert next(key.text for key in TABLE if key.id == "theme") in stage.text
        await stage.press("escape", "q")
        assert stage.text.split("\n")[0].startswith(" #1 flash_attention")


async def test_keys_of_the_screen_come_before_those_of_others() -> None:
    async with on_stage(blocks(), (100, 40)) as stage:
        await stage.press("question_mark")
        assert isinstance(stage.app.screen, HelpScreen)
        titles = [line[0][0].strip() for line in stage.app.screen.view.lines if line and line[0][1] == "title"]
        titles = titles[titles.index("Everywhere") :]
        assert titles[1] == "Live screen"
        assert titles.index("In a log") < titles.index("Home screen")
        assert set(titles) == set(SCOPES.values())


def test_no_key_is_cut_on_a_narrow_terminal() -> None:
    lines = [plain(line) for line in key_lines(58)]
    assert max(map(len, lines)) <= 60
    text = " ".join(" ".join(line.split()) for line in lines)
    assert all(" ".join(key.text.split()) in text for key in TABLE)


@pytest.mark.parametrize("key", PAGES)
async def test_pages_of_the_live_screen_are_explained(key: str) -> None:
    async with on_stage(blocks(), (100, 40)) as stage:
        await stage.press(key, "question_mark")
        name = stage.live.current
        assert explanation(name)[0][:40] in stage.text


@pytest.mark.parametrize("ascii_only", [False, True], ids=["unicode", "ascii"])
async def test_help_golden(ascii_only: bool) -> None:
    async with on_stage(blocks(), (120, 40), Appearance(ascii_only=ascii_only)) as stage:
        stage.live.table.select(1)
        await stage.press("enter", "8", "question_mark")
        await golden_sizes("help", stage)
