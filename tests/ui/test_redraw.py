"""After any key, partial updates leave the terminal as a full redraw would."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from textual.geometry import Region

from tests.recorded import H200, SIMULATED, unpacked
from tests.ui.emulated import on_emulated
from tui_probe.ui import Appearance, keys
from tui_probe.ui.session import Session
from tui_probe.ui.widgets.pane import Pane

if TYPE_CHECKING:
    from pathlib import Path

STEPS = 40
AT_RANDOM = [name for key in keys.TABLE for name in key.keys if key.id not in ("quit", "interrupt")]
OFTEN = ["enter", "tab", "pagedown", *"12367892367"]
"""To the pages on which there is something to move about in."""


@pytest.mark.parametrize(("seed", "size"), [(1, (80, 24)), (2, (120, 40)), (3, (80, 24))])
async def test_any_keys(seed: int, size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = unpacked(SIMULATED / "block_sched" if seed == 3 else H200 / "demo", tmp_path)
    choose = random.Random(seed).choice
    appearance = Appearance(ascii_only=seed != 2)
    async with on_emulated(Session(traces=(trace,)), size, appearance, monkeypatch) as (stage, terminal):
        pressed = []
        for _ in range(STEPS):
            pressed.append(choose(choose((AT_RANDOM, OFTEN))))
            await stage.press(pressed[-1])
            await stage.until(lambda: terminal.text == stage.text, f"after {pressed}:\n{terminal.text}")
        assert len(set(terminal.text)) > 10


async def test_a_page_that_is_left_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages with many lines, then with few, and back; the kernel screen over the table."""
    trace = unpacked(SIMULATED / "block_sched", tmp_path)
    async with on_emulated(Session(traces=(trace,)), (100, 30), Appearance(), monkeypatch) as (stage, terminal):
        for key in (
            "enter",
            *"314385",
            "pagedown",
            *"719",
            "question_mark",
            "q",
            "q",
            "0",
            "v",
            "enter",
            "7",
            "w",
            "S",
            "q",
        ):
            await stage.press(key)
            await stage.until(lambda: terminal.text == stage.text, f"after {key}:\n{terminal.text}")


async def test_the_table_shows_the_kernel_that_was_stepped_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows change while the screen of the kernel is in front of it."""
    trace = unpacked(H200 / "demo", tmp_path)
    async with on_emulated(Session(traces=(trace,)), (80, 24), Appearance(), monkeypatch) as (stage, terminal):
        await stage.press("home", "enter", "right_square_bracket", "right_square_bracket", "q")
        await stage.until(lambda: "▌2 " in terminal.text, f"the third kernel is marked:\n{terminal.text}")
        assert terminal.text == stage.text


async def test_full_redraw_is_not_sent_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that changed as the screen was drawn whole do not come once more with the next row that changes."""
    trace = unpacked(H200 / "demo", tmp_path)
    async with on_emulated(Session(traces=(trace,)), (120, 40), Appearance(), monkeypatch) as (stage, terminal):
        pane = stage.app.screen.query(Pane).first()
        pane.refresh(*(Region(0, row, 100, 1) for row in range(5)))
        stage.app.screen.refresh()
        await stage.settle()
        before = terminal.received
        pane.refresh(Region(2, 3, 6, 1))
        await stage.settle()
        assert 0 < terminal.received - before < 60
