"""A screen that lives for hours gives back memory that the C library keeps."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import TYPE_CHECKING

from tests.patience import HANG
from tests.trace.make import TraceWriter
from tui_probe.ui.live import feed as feed_module
from tui_probe.ui.live.feed import Feed
from tui_probe.ui.session import Session

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_free_memory_is_returned_periodically(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls: list[float] = []
    monkeypatch.setattr(feed_module, "RETURN_INTERVAL", 0.05)
    monkeypatch.setattr(feed_module, "return_free_memory", lambda: calls.append(time.monotonic()))
    writer = TraceWriter(tmp_path / "trace")
    writer.start()
    feed = Feed(Session(traces=(writer.directory,)), interval=0.01)
    feed.start()
    end = time.monotonic() + HANG
    while len(calls) < 3 and time.monotonic() < end:
        time.sleep(0.01)
    feed.stop()
    assert len(calls) >= 3
    assert min(after - before for before, after in pairwise(calls)) > 0.02


def test_c_library_without_malloc_trim_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_probe.ui.live.feed.ctypes.CDLL", lambda _name: object())
    feed_module.return_free_memory()
