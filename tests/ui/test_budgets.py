"""Bytes that the screen sends, on an emulated terminal: first paint, pages, cursor moves, and nothing while idle."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

import pytest

from tests.recorded import H200, unpacked
from tests.ui.emulated import on_emulated
from tui_probe.ui import Appearance
from tui_probe.ui.live.feed import Session

if TYPE_CHECKING:
    from pathlib import Path

PAGE = 25_000
BUDGETS = {
    "first paint": 60_000,
    "row of the table": 1_000,
    "line of PTX": 1_000,
    "line of source": 1_000,
    "idle": 0,
}


async def test_frames_keep_their_byte_budgets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: dict[str, int] = {}
    monkeypatch.setattr("tui_probe.ui.live.live_pages.REST", 3600.0)  # the selection does not rest
    trace = unpacked(H200 / "attention_sectors", tmp_path)
    async with on_emulated(Session(traces=(trace,)), (200, 50), Appearance(), monkeypatch) as (stage, terminal):
        await stage.refresh()
        sent["first paint"] = terminal.received

        async def measure(name: str, *keys: str) -> None:
            before = terminal.received
            await stage.press(*keys)
            sent[name] = terminal.received - before

        await stage.press("down")
        await measure("row of the table", "down")
        stage.live.table.select(1)
        await measure("PTX below the table", "3")
        await measure("screen of the kernel", "enter")
        await measure("page of PTX", "pagedown")
        await measure("line of PTX", "down")
        await measure("page of source", "2")
        await measure("line of source", "down")
        await measure("idle")
    over = {name: size for name, size in sent.items() if size > BUDGETS.get(name, PAGE)}
    assert not over, sent


async def test_pages_and_kernel_steps_keep_their_byte_budgets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = unpacked(H200 / "demo", tmp_path)
    async with on_emulated(Session(traces=(trace,)), (200, 50), Appearance(), monkeypatch) as (stage, terminal):
        await stage.press("j", "j", "j", "j")
        sent = {}
        for key in ("enter", *(key for page in "2367" for key in (page, "]", "["))):
            before = terminal.received
            await stage.press(key)
            sent[f"{len(sent)}: {key}"] = terminal.received - before
        assert all(0 < size <= PAGE for size in sent.values()), sent


@pytest.mark.parametrize(("page", "name"), [("3", "probed.ptx"), ("4", "changes")])
async def test_cursor_in_text_keeps_its_byte_budget(
    page: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line costs what changes of two gutters and the state line; with the half windows in between 1 KB on average."""
    trace = unpacked(H200 / "demo", tmp_path)
    async with on_emulated(Session(traces=(trace,)), (200, 50), Appearance(), monkeypatch) as (stage, terminal):
        await stage.press("j", "j", "j", "j", "enter", page)
        assert name in terminal.text
        sent = []
        for _ in range(30):
            before = terminal.received
            await stage.press("j")
            sent.append(terminal.received - before)
        assert min(sent) > 0
        assert median(sent) <= 300, sent
        assert sum(sent) / len(sent) <= 1000, sent
        assert terminal.text.count("▌") == 1
