"""Puts pages that were opened from files on a headless terminal."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.ui.conftest import Stage, golden_sizes, no_gpu
from tui_probe.probekit.page_kinds import PageSet
from tui_probe.ui import Appearance
from tui_probe.ui.app import ProbeApp
from tui_probe.ui.session import Session

SIZE = (120, 40)


@asynccontextmanager
async def showing(
    imported: PageSet, size: tuple[int, int], *, ascii_only: bool = False, traces: Sequence[Path] = ()
) -> AsyncIterator[Stage]:
    """The application, showing these pages; ``traces`` are those that they lead to."""
    session = Session(imported=imported, traces=tuple(traces))
    app = ProbeApp(session, Appearance(ascii_only=ascii_only), gpu=no_gpu())
    app.feed.start = lambda: None  # type: ignore[method-assign]
    async with app.run_test(size=size) as pilot:
        stage = Stage(app, pilot, None)
        await (stage.refresh() if traces else stage.settle())
        yield stage


async def check_pages(stage: Stage, name: str, keys: dict[str, str]) -> None:
    """Compare each page, which a key shows, with its golden."""
    for page, key in keys.items():
        await stage.press(*(("0", key) if key.isalpha() else key))
        await golden_sizes(f"{name}-{page}", stage)
