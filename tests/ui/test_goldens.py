"""The whole screen as text."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.golden import golden
from tests.ui.conftest import golden_screen, golden_sizes, on_stage
from tui_probe.draw.palette import PALETTES
from tui_probe.ui import Appearance
from tui_probe.ui.keys import SCOPES, TABLE
from tui_probe.ui.session import Session

if TYPE_CHECKING:
    from pathlib import Path

    from tests.ui.synthetic import TraceWriter

PAGES = {"kernel": "1", "process": "2", "events": "3", "stdout": "4", "stderr": "5", "results": "6", "gpu": "7"}


@pytest.fixture
def finished(trace: TraceWriter) -> Session:
    """The example trace as a run left it."""
    trace.exit()
    record = {
        "version": 1,
        "command": ["./vector_add", "--size", "1048576"],
        "started": "2023-11-14T22:13:20+00:00",
        "ended": "2023-11-14T22:13:23+00:00",
        "exit_status": 0,
        "probe": "block_sched",
    }
    (trace.directory / "run.json").write_text(json.dumps(record))
    (trace.directory / "stdout.log").write_text("".join(f"step {i}: loss {1 / (i + 1):.4f}\n" for i in range(60)))
    (trace.directory / "stderr.log").write_text("warning: 日本語 and a café\n")
    return Session(traces=(trace.directory,))


def plain_paths(text: str, root: Path) -> str:
    """``text`` without the folder that a test happens to have."""
    return re.sub(re.escape(str(root)), "TRACES", text)


@pytest.mark.parametrize("ascii_only", [False, True], ids=["unicode", "ascii"])
async def test_the_screen(finished: Session, ascii_only: bool) -> None:
    async with on_stage(finished, (120, 40), Appearance(ascii_only=ascii_only)) as stage:
        await stage.press("3")
        await stage.refresh()  # the selection rests: its preview is read
        assert stage.text.isascii() == ascii_only
        await golden_sizes("screen", stage)


@pytest.mark.parametrize("page", PAGES)
async def test_each_page(finished: Session, page: str) -> None:
    async with on_stage(finished, (100, 36)) as stage:
        stage.live.table.select(5 if page in ("kernel", "process") else 0)
        await stage.press(PAGES[page])
        await stage.refresh()
        golden_screen("live", stage, page, text=plain_paths(stage.text, finished.traces[0].parent))


async def test_the_page_of_keys_names_every_key(finished: Session) -> None:
    async with on_stage(finished, (100, len(TABLE) + 2 * len(SCOPES) + 54)) as stage:
        await stage.press("question_mark")
        text = stage.text
        golden("help.txt", f"{text}\n", "every key")
        assert all(key.text in text for key in TABLE)


@pytest.mark.parametrize("palette", [name for name in PALETTES if name != "dark"])
async def test_all_palettes_say_the_same(finished: Session, palette: str) -> None:
    async with on_stage(finished, (120, 40), Appearance(palette=palette)) as stage:
        await stage.press("3")
        await stage.refresh()
        golden_screen("screen", stage)
