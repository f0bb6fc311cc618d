"""Hours of a live screen in seconds: memory, threads and queues stay as they are once all is warm."""

from __future__ import annotations

import ctypes
import gc
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from tests.ui.conftest import Stage, on_stage
from tui_probe.ui.widgets import lines

if TYPE_CHECKING:
    import pytest

    from tests.ui.synthetic import FakeTarget, TraceWriter
    from tui_probe.ui.session import Session

TICKS, ROUNDS = 2_000, 10
PAGES = (("1",), ("0", "v"), ("0", "o"), ("0", "r"), ("0", "g"))


def resident() -> int:
    """Bytes of memory that the process has now, without what the C library keeps for later."""
    ctypes.CDLL(None).malloc_trim(0)
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


def own_threads() -> int:
    """Threads outside the loop's pool, which grows to its bound when the machine is busy."""
    return sum(not thread.name.startswith("asyncio_") for thread in threading.enumerate())


async def one_round(stage: Stage, target: FakeTarget, trace: TraceWriter, page: tuple[str, ...]) -> None:
    """Two hundred frames of a page, while logs grow."""
    await stage.press(*page)
    for tick in range(TICKS // ROUNDS):
        if tick % 20 == 0:
            with target.stdout_path.open("a") as log:
                log.write(f"step {tick} {'.' * 100}\n" * 50)
            trace.event(*(line for kernel in range(3) for line in trace.launch_lines(kernel)))
            stage.app.feed.poll()
        stage.live.refresh_frame()
        if tick % 20 == 0:
            await stage.settle()
    await stage.settle()


async def test_thousands_of_frames_leave_nothing_behind(
    session: Session, target: FakeTarget, trace: TraceWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    for cached in ("_strip", "_finish_line"):  # they remember 2 048 lines, more than these frames have
        monkeypatch.setattr(lines, cached, getattr(lines, cached).__wrapped__)
    async with on_stage(session, (120, 40)) as stage:
        memory, objects, threads = [], [], []
        for number in range(ROUNDS):
            await one_round(stage, target, trace, PAGES[number % len(PAGES)])
            gc.collect()
            memory.append(resident())
            objects.append(len(gc.get_objects()))
            threads.append(own_threads())
        assert stage.app._message_queue.qsize() == stage.live._message_queue.qsize() == 0
    half = ROUNDS // 2
    assert max(threads[half:]) <= threads[half - 1], threads
    assert objects[-1] - objects[half - 1] < 750, objects  # 1 000 frames: not one object per frame
    assert memory[-1] - memory[half - 1] < 8 << 20, memory
