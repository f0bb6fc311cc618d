"""Memory of the live screen while a program launches for a long time.

    python -m tests.bench.live_memory [--minutes 10] [--rate 1000] [--kernels 50] [--page results]

The screen, without a terminal, sees a run of so many minutes with so many launches per second, half a second of it for
each frame, as fast as it can take them. Every tenth launch saves a result. A line for each sixth of the run: launches
so far, resident set, and by how much it grew for each launch of this part. What a frame costs, and not a launch, is
seen with a low rate.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.ui.conftest import Stage, on_stage
from tests.ui.synthetic import FakeTarget, TraceWriter
from tests.ui.test_soak import resident
from tui_probe.ui.feed import INTERVAL, Session
from tui_probe.ui.live_pages import TABS

if TYPE_CHECKING:
    from argparse import Namespace

PARTS = 6
RESULT_EACH = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--rate", type=int, default=1000, help="launches per second")
    parser.add_argument("--kernels", type=int, default=50)
    parser.add_argument("--page", choices=[tab.id for tab in TABS], default="results")
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(watch(parser.parse_args(), Path(name)))


async def watch(options: Namespace, folder: Path) -> None:
    """Show the run, a part after the other."""
    trace = TraceWriter(folder / "Nov21_101010_1", os.getpid(), "live_memory")
    for number in range(options.kernels):
        trace.kernel(f"kernel_{number}")
    content = trace.result(0, trace.launch(0)).read_bytes()
    frames = round(options.minutes * 60 / INTERVAL / PARTS)
    before, launched = 0, 0
    async with on_stage(Session(target=FakeTarget(folder, [trace.directory])), (200, 50)) as stage:
        stage.live.action_page(options.page)
        for part in range(PARTS):
            clock = time.perf_counter()
            for _ in range(frames):
                append(trace, options, content)
                await frame(stage)
            seconds = time.perf_counter() - clock
            gc.collect()
            memory = resident()
            growth = f", {(memory - before) / (trace.launches - launched):+.0f} bytes per launch" if part else ""
            seen = f"{(part + 1) * options.minutes / PARTS:5.1f} min, {trace.launches} launches"
            print(f"{seen}: {memory / 1e6:.0f} MB{growth}; {1000 * seconds / frames:.0f} ms per frame")
            before, launched = memory, trace.launches


def append(trace: TraceWriter, options: Namespace, content: bytes) -> None:
    """Half a second of the run."""
    lines: list[str] = []
    for _ in range(round(options.rate * INTERVAL)):
        launch = trace.launches
        kernel = launch * 7 % options.kernels
        lines += trace.launch_lines(kernel)
        if launch % RESULT_EACH == 0:
            name = f"{launch // 1_000_000 + 100}.{launch % 1_000_000:06d}.bin"
            (trace.directory / "result" / name).write_bytes(content)
            lines.append(f"[exec] save result/{name} size {len(content)} kernel {kernel} launch {launch}")
    trace.event(*lines)


async def frame(stage: Stage) -> None:
    """What the screen does twice a second."""
    stage.app.feed.poll()
    stage.live.tick()
    await stage.settle()


if __name__ == "__main__":
    main()
