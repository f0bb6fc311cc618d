"""Bytes that the screen sends, on an emulated terminal: first paint, pages, cursor moves, and nothing while idle."""

from __future__ import annotations

import random
from statistics import median
from typing import TYPE_CHECKING

import pytest

from tests.recorded import H200, unpacked
from tests.ui.emulated import Emulated, on_emulated
from tests.ui.synthetic import FakeTarget, TraceWriter
from tui_probe.ui import Appearance
from tui_probe.ui.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.ui.conftest import Stage

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
    monkeypatch.setattr("tui_probe.ui.live.live_pages.REST_SECONDS", 3600.0)  # the selection does not rest
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


async def rest(stage: Stage) -> None:
    """Draw frames until what belongs to a selection that rests has come."""
    for _ in range(3):
        await stage.refresh()


async def sent_at_rest(stage: Stage, terminal: Emulated) -> int:
    """Bytes of all that is new."""
    before = terminal.received
    await rest(stage)
    return terminal.received - before


async def sent_by_keys(stage: Stage, terminal: Emulated, *keys: str) -> int:
    before = terminal.received
    await stage.press(*keys)
    return terminal.received - before


async def sent_while_idle(stage: Stage, terminal: Emulated, seconds: int) -> int:
    """Bytes of two frames per second of a program that does nothing but run."""
    assert stage.target is not None
    before = terminal.received
    for _ in range(2 * seconds):
        stage.target.started -= 0.5
        await stage.refresh()
    return terminal.received - before


async def test_a_running_program_keeps_its_byte_budgets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """60 kernels without times at 200×50."""
    trace = TraceWriter(tmp_path / "trace")
    for number in range(60):
        trace.kernel(f"triton_poi_fused_kernel_number_{number}", registers=(20, 24))
    session = Session(target=FakeTarget(tmp_path, [trace.directory]))
    async with on_emulated(session, (200, 50), Appearance(), monkeypatch) as (stage, terminal):
        await stage.refresh()
        assert "60 kernels" in terminal.text
        assert terminal.received <= 60_000, "first paint"

        await stage.press("0", "g")
        await stage.refresh()
        assert await sent_while_idle(stage, terminal, 3) <= 300, "3 s idle"

        for kernel in range(3):
            trace.launch(kernel)
        assert 0 < await sent_at_rest(stage, terminal) <= 2000, "3 rows changed"
        assert "3 launches" in terminal.text

        for key in "jjk":
            assert 0 < await sent_by_keys(stage, terminal, key) <= 1000, "cursor move"

        await stage.press("1")
        assert "registers/thread" in terminal.text
        for _ in range(2):
            assert 0 < await sent_by_keys(stage, terminal, "]") <= 25_000, "kernel step"

        await stage.press("0", "v")
        assert "following" in terminal.text
        for _ in range(2):
            for kernel in range(10):
                trace.launch(kernel)
            assert 0 < await sent_at_rest(stage, terminal) <= 12_000, "log tail"
            assert f"{trace.launches} launches" in terminal.text


@pytest.mark.parametrize("size", [(200, 50), (80, 24)], ids=str)
async def test_kernels_with_times_keep_their_byte_budgets(
    size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shares, medians, trends and order change with every launch: cells that stay the same are not sent."""
    trace, chance = TraceWriter(tmp_path / "trace"), random.Random(1)
    for number in range(20):
        trace.kernel(f"triton_poi_fused_kernel_number_{number}")

    def launch(kernels: Iterable[int], times: int = 1, factor: int = 1) -> None:
        for kernel in kernels:
            for _ in range(times):
                number = trace.launch(kernel)
                trace.timed(kernel, number, round(10_000 * factor * (kernel + 1) * chance.uniform(0.8, 1.4)))

    launch(range(20), 30)
    session = Session(target=FakeTarget(tmp_path, [trace.directory]))
    async with on_emulated(session, size, Appearance(), monkeypatch) as (stage, terminal):
        await rest(stage)
        assert f"{trace.launches} launches" in terminal.text
        assert ("GPU time of #19: 30 launches timed" in terminal.text) is (size == (200, 50))
        assert terminal.received <= 60_000, "first paint"

        async def tick(kernels: Iterable[int], factor: int = 1) -> int:
            launch(kernels, factor=factor)
            sent = await sent_at_rest(stage, terminal)
            assert f"{trace.launches} launches" in terminal.text
            return sent

        few, all_rows = [await tick((3, 4, 5)) for _ in range(3)], [await tick(range(20)) for _ in range(3)]
        moved = [await tick((kernel,), 1000) for kernel in (3, 4, 5)]
        assert max(few) <= 2000, f"3 rows changed: {few}"
        assert max(all_rows) <= 2000, f"20 rows changed: {all_rows}"
        assert max(moved) <= 3000, f"all shares and the order changed: {moved}"
        assert await sent_while_idle(stage, terminal, 10) <= 1000, "10 s idle"


async def test_the_preview_keeps_its_byte_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it is sent while the selection moves, then some lines that others are not sent again with."""
    trace = unpacked(H200 / "demo", tmp_path)
    async with on_emulated(Session(traces=(trace,)), (200, 50), Appearance(), monkeypatch) as (stage, terminal):
        await rest(stage)
        await stage.press("0", "g", "j", "k")
        await rest(stage)  # all that the first preview brings with it has come
        assert "of #4: running blocks" in terminal.text
        sent = []
        for number in (6, 5, 3, 0, 1, 2):  # by their share of the GPU time
            moved = await sent_by_keys(stage, terminal, "j")
            assert f"of #{number}: running blocks" not in terminal.text
            sent.append(moved + await sent_at_rest(stage, terminal))
            assert f"of #{number}: running blocks" in terminal.text
        assert max(sent) <= 2500, sent

        moved = await sent_by_keys(stage, terminal, *"kkkkk")
        assert "of #2: running blocks" in terminal.text
        assert moved + await sent_at_rest(stage, terminal) <= 5000, "five moves, one preview"
        assert "of #6: running blocks" in terminal.text
