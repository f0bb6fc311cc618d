"""The threads behind the screen."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from tests.patience import HANG
from tui_probe.ui.background import Background

if TYPE_CHECKING:
    from collections.abc import Callable


def test_idle_waits_for_the_event_loop_to_handle_results() -> None:
    delivered: list[Callable[[], None]] = []
    results: list[int] = []
    background = Background("test", delivered.append)
    assert background.is_idle
    background.submit("key", lambda: 1, results.append)
    while not delivered:
        assert not background.is_idle
        time.sleep(0.001)
    assert not background.is_idle
    assert results == []
    delivered[0]()
    assert background.is_idle
    assert results == [1]
    background.close()


def test_prepared_jobs_run_in_order_behind_all_others() -> None:
    ran: list[str] = []
    begun, go_on, done = threading.Event(), threading.Event(), threading.Event()
    background = Background("test", lambda handle: handle())

    def first() -> None:
        begun.set()
        assert go_on.wait(HANG)
        ran.append("first")

    background.submit("first", first, lambda _: None)
    assert begun.wait(HANG)
    background.prepare([lambda: ran.append("prepared"), lambda: ran.append("prepared, too"), done.set])
    background.submit("second", lambda: ran.append("second"), lambda _: None)
    go_on.set()
    assert done.wait(HANG)
    assert ran == ["first", "second", "prepared", "prepared, too"]
    background.close()
