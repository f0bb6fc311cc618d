"""The threads behind the screen."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tui_probe.ui.background import Background

if TYPE_CHECKING:
    from collections.abc import Callable


def test_idle_waits_for_the_event_loop_to_handle_results() -> None:
    delivered: list[Callable[[], None]] = []
    results: list[int] = []
    background = Background("test", delivered.append)
    assert background.idle
    background.submit("key", lambda: 1, results.append)
    while not delivered:
        assert not background.idle
        time.sleep(0.001)
    assert not background.idle
    assert results == []
    delivered[0]()
    assert background.idle
    assert results == [1]
    background.close()
