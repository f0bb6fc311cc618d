"""Pages of help on the screen: from the page of keys, and from the palette."""

from __future__ import annotations

import shutil
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from tests.ui.conftest import on_stage
from tests.ui.terminal import ROOT, Terminal, on_screen
from tui_probe.draw.spans import plain
from tui_probe.help import topics
from tui_probe.help.document import page_lines
from tui_probe.ui import Appearance
from tui_probe.ui.commands import commands_of
from tui_probe.ui.help_text import help_page
from tui_probe.ui.screens.help import HelpScreen, TopicScreen

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.ui.session import Session


async def test_from_the_page_of_keys_and_back(session: Session) -> None:
    async with on_stage(session, (100, 30)) as stage:
        await stage.press("question_mark", "t", *"kernel.info", "backspace", "ctrl+u", *"kernel-info", "enter")
        assert isinstance(stage.app.screen, TopicScreen)
        assert "description of a probed kernel for the hook" in stage.text.split("\n")[0]
        assert "storage 0 marked record 24 cap 1" in stage.text
        await stage.press("t", *"glossary", "enter")
        assert "tui-probe help glossary" in stage.text
        await stage.press("q")
        assert isinstance(stage.app.screen, HelpScreen)
        await stage.press("q")
        assert stage.app.screen is stage.live


async def test_from_the_palette(session: Session) -> None:
    async with on_stage(session, (100, 30)) as stage:
        choices = [choice.label for choice in commands_of(stage.app, stage.live)]
        assert [label for label in choices if label.startswith("help: ")] == [f"help: {t.summary}" for t in topics()]
        await stage.press("colon", *"python-api", "enter")
        assert isinstance(stage.app.screen, TopicScreen)
        assert "tui-probe help python-api" in stage.text.split("\n")[0]
        await stage.press("escape")
        assert stage.app.screen is stage.live


async def test_from_part_to_part_and_in_search(session: Session) -> None:
    async with on_stage(session, (100, 30)) as stage:
        await stage.press("colon", *"help: event", "enter", "full_stop")
        assert "part 1 of 1" in stage.text
        assert "▌ A log" in stage.text
        await stage.press("c")
        assert "c does nothing on this page; the key works on density maps" in stage.text
        await stage.press("slash", *"spelled", "enter")
        await stage.until(lambda: "spelled like this" in stage.text, "the match")


async def test_topic_in_ascii(session: Session) -> None:
    async with on_stage(session, (80, 24), Appearance(ascii_only=True)) as stage:
        await stage.press("colon", *"help: keys", "enter")
        assert stage.text.isascii()


def test_lines_fit_every_width() -> None:
    for topic in topics():
        for cells in (40, 118):
            lines = page_lines(help_page(topic.name), cells)
            assert max(len(plain(line)) for line in lines) <= cells
            assert lines[0][0][1] == "title"


def test_byte_budgets(tmp_path: Path) -> None:
    """A page as those of a kernel, a step of the cursor as in any text, at 200×50."""
    shutil.copytree(ROOT / "tests" / "data" / "h200" / "demo", tmp_path / "trace")
    with Terminal(on_screen(tmp_path), (200, 50)) as terminal:
        terminal.wait("7 kernels")
        terminal.type("?t")
        terminal.wait("type to find")
        before = terminal.quiet(0.4, steady=True)
        terminal.type("event-log\r")
        terminal.wait("tui-probe help event-log")
        counts = [terminal.quiet(0.4, steady=True)]
        assert counts[0] - before <= 25_000, "page"
        for _ in range(3):
            terminal.type("j")
            counts.append(terminal.quiet(0.15, steady=True))
        assert median(after - before for before, after in pairwise(counts)) <= 500, counts
