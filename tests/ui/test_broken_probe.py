"""A bug in a probe's code is said on its pages; the screen continues."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.ui.conftest import on_stage
from tui_probe.probekit import registry
from tui_probe.probekit.guard import guard_probe
from tui_probe.ui.session import Session

BLOCKS = Path(__file__).parents[1] / "data" / "h200" / "attention_blocks"
BUG = "probe block_sched: ZeroDivisionError"


@pytest.fixture(autouse=True)
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        return 1 // 0

    probe = registry.probe_named("block_sched")
    assert probe is not None
    bad = guard_probe(replace(probe, analyse=fails, timeline=fails, values_of=None))
    monkeypatch.setattr(registry, "_user_probes", {"block_sched": bad})


async def test_the_screen_goes_on(tmp_path: Path) -> None:
    trace = Path(shutil.copytree(BLOCKS, tmp_path / "trace"))  # what others have read of it is remembered
    async with on_stage(Session(traces=(trace,)), (120, 40)) as stage:
        await stage.press("0", "r")
        assert BUG in stage.text
        stage.live.table.select(1)
        await stage.press("1", "enter")
        assert BUG in stage.text  # the summary
        await stage.press("7")
        assert BUG in stage.text  # the timeline
        await stage.press("1")
        assert "1 Sum" in stage.text
        assert stage.app.crash is None
