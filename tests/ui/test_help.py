"""The page behind ``?``: it begins with how to read what is visible."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ui.conftest import Stage, golden_sizes, on_stage
from tests.ui.test_keys import PAGES
from tui_probe.draw.shorten import view_heading
from tui_probe.draw.spans import plain
from tui_probe.pages.page_registry import explanation
from tui_probe.pages.views import kind_of, names
from tui_probe.ui import Appearance
from tui_probe.ui.keys import SCOPES, TABLE, command_of, in_scope, key_sign
from tui_probe.ui.screens.help import HelpScreen, key_lines
from tui_probe.ui.session import Session

RECORDED = Path(__file__).parents[1] / "data" / "h200"


def blocks() -> Session:
    return Session(traces=(RECORDED / "attention_blocks",))


def test_every_view_and_every_page_is_explained() -> None:
    live = ("kernels", "kernel", "process", "events", "stdout", "stderr", "results", "gpu")
    assert all(explanation(name) for name in (*names(), *live))


def test_a_view_names_itself_in_words() -> None:
    assert view_heading("DMAT", kind_of("dmat").description) == "DMAT: memory accesses by time and address"
    assert view_heading("Timeline", kind_of("timeline").description) == "Timeline: blocks and warps on SMs over time"
    for name in names():
        assert len(view_heading(kind_of(name).title, kind_of(name).description)) <= 80


def help_text(stage: Stage) -> str:
    """All that the page of keys says."""
    assert isinstance(stage.app.screen, HelpScreen)
    return "\n".join(plain(line) for line in stage.app.screen.view.lines)


async def test_help_begins_with_one_page_of_keys_then_explains_the_visible_page() -> None:
    async with on_stage(blocks(), (100, 40)) as stage:
        stage.live.table.select(1)
        await stage.press("enter", "7", "question_mark")
        first_line = stage.text.split("\n")[0]
        assert " Keys " in first_line
        assert "below: Timeline, every key" in first_line
        first, _, below = help_text(stage).partition("Below: how to read this page")
        assert first.count("\n") <= 22, "a page at 80x24"
        assert "1 Summary 2 Source" in " ".join(first.split())
        assert "Ctrl-Q quit" in " ".join(first.split())
        assert "One row per SM, per block slot of an SM" in below
        assert "next start of a block or warp in this row" in below  # what the key does here
        await stage.press("slash", *"next theme", "enter")
        assert next(key.text for key in TABLE if key.id == "theme") in stage.text
        await stage.press("escape", "q")
        assert stage.text.split("\n")[0].startswith(" #1 flash_attention")


async def test_overview_names_only_keys_of_the_page_that_act_there() -> None:
    async with on_stage(blocks(), (100, 40)) as stage:
        stage.live.table.select(1)
        await stage.press("enter")
        for page in "13579":
            await stage.press(page)
            view = stage.app.screen.view  # type: ignore[attr-defined]
            acting = [key for key in in_scope("drawing") if key.footer and command_of(key) in view.commands()]
            await stage.press("question_mark")
            overview = help_text(stage).partition("Below: how to read this page")[0]
            _, _, of_page = overview.partition(" On this page\n")
            named = " ".join(of_page.partition(" Everywhere")[0].split())
            assert named == " ".join(f"{key_sign(key.keys[0])} {key.footer}" for key in acting), page
            await stage.press("q")
            for key in acting:
                if command_of(key) not in view.commands():
                    continue  # another level or text has other keys
                await stage.press(key.keys[0])
                assert "does nothing" not in stage.text, (page, key.id)


async def test_keys_of_the_screen_come_before_those_of_others() -> None:
    async with on_stage(blocks(), (100, 40)) as stage:
        await stage.press("question_mark")
        assert isinstance(stage.app.screen, HelpScreen)
        titles = [line[0][0].strip() for line in stage.app.screen.view.lines if line and line[0][1] == "title"]
        assert titles[0] == "Pages"
        titles = titles[titles.index("Everywhere", titles.index("Everywhere") + 1) :]
        assert titles[1] == "Pages"
        assert titles.index("Live screen") < titles.index("Home screen")
        assert titles.index("In a log") < titles.index("Home screen")
        assert set(titles) == set(SCOPES.values())


def test_no_key_is_cut_on_a_narrow_terminal() -> None:
    lines = [plain(line) for line in key_lines(58)]
    assert max(map(len, lines)) <= 60
    text = " ".join(" ".join(line.split()) for line in lines)
    assert all(" ".join(key.text.split()) in text for key in TABLE)


async def test_pages_of_the_live_screen_are_explained() -> None:
    async with on_stage(blocks(), (100, 40)) as stage:
        stage.live.table.select(1)
        for key in PAGES:
            await stage.press(key, "tab", "question_mark")
            name = stage.live.current
            assert " ".join(explanation(name)[0].split())[:40] in " ".join(help_text(stage).split()), key
            await stage.press("q", "shift+tab")


@pytest.mark.parametrize("ascii_only", [False, True], ids=["unicode", "ascii"])
async def test_help_golden(ascii_only: bool) -> None:
    async with on_stage(blocks(), (120, 40), Appearance(ascii_only=ascii_only)) as stage:
        stage.live.table.select(1)
        await stage.press("enter", "7", "question_mark")
        await golden_sizes("help", stage)
