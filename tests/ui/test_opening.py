"""Text of a page that is being opened."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tui_probe.ui.screens import page_opening
from tui_probe.ui.screens.page_opening import NoView, Opening, PageSpec


def test_eta_is_hidden_when_progress_stalls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that takes longer than all before it would make the rest grow."""
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(page_opening, "time", SimpleNamespace(monotonic=lambda: clock.now))
    seen: dict[float, str] = {}

    def read(progress: object) -> NoView:
        assert callable(progress)
        for share, takes in ((0.25, 2.0), (0.5, 9.0)):
            clock.now += takes
            progress(share)
            seen[clock.now] = opening.progress_text
            clock.now += takes / 2
            seen[clock.now] = opening.progress_text
        clock.now += 30.0
        seen[clock.now] = opening.progress_text
        return NoView("done")

    opening = Opening(PageSpec("sass", "SASS", read))
    opening.open_view()
    assert list(seen.values()) == ["25%, 6 s left", "25%, 6 s left", "50%, 12 s left", "50%, 12 s left", "50%"]
