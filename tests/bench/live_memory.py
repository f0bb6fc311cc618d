"""Memory of the live screen while a program launches for a long time.

    python -m tests.bench.live_memory [--minutes 60] [--rate 1000] [--kernels 50] [--page results] [--reader]

The screen, without a terminal, sees a run of that many minutes with that many launches per second, each with lines of
its own in the log, half a second of it for each frame, as fast as it can take them. Every tenth launch saves a result.
A line for each sixth of the run: launches so far, resident set, and by how much it grew for each launch of this part.
What a frame costs, and not a launch, is seen with a low rate. ``--reader``: only the reader that follows the trace,
without the screen, a minute of the run at a time.

Ends with status 1 where the last half of the run took more than half a byte per launch.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.ui.conftest import Stage, on_stage
from tests.ui.synthetic import FakeTarget, TraceWriter
from tests.ui.test_soak import resident
from tui_probe.trace.follow import TraceFollower
from tui_probe.ui.live.feed import INTERVAL
from tui_probe.ui.live.live_pages import RUN_TABS
from tui_probe.ui.session import Session

if TYPE_CHECKING:
    from argparse import Namespace

Sample = tuple[int, int]
"""Launches, and bytes of memory."""
PARTS = 6
RESULT_EACH = 10
MOST_FILES = 2000
"""Files that are made for the results: the default budget of a run. The log names all."""
MOST_PER_LAUNCH = 0.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rate", type=int, default=1000, help="launches per second")
    parser.add_argument("--kernels", type=int, default=50)
    parser.add_argument("--page", choices=[tab.id for tab in RUN_TABS], default="results")
    parser.add_argument("--reader", action="store_true", help="what follows the trace alone")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        own = Path("/proc/self/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
        trace = TraceWriter(folder / "Nov21_101010_1", os.getpid(), own)
        for number in range(options.kernels):
            trace.kernel(f"kernel_{number}")
        content = trace.result(0, trace.launch(0)).read_bytes()
        memory = read(trace, options, content) if options.reader else asyncio.run(watch(trace, options, content))
    half = PARTS // 2
    growth = (memory[-1][1] - memory[half - 1][1]) / (memory[-1][0] - memory[half - 1][0])
    print(f"last half: {growth:+.2f} bytes per launch, of at most {MOST_PER_LAUNCH}")
    sys.exit(growth > MOST_PER_LAUNCH)


async def watch(trace: TraceWriter, options: Namespace, content: bytes) -> list[Sample]:
    """Show the run, a part after the other."""
    frames = round(options.minutes * 60 / INTERVAL / PARTS)
    samples: list[Sample] = []
    async with on_stage(Session(target=FakeTarget(trace.directory.parent, [trace.directory])), (200, 50)) as stage:
        stage.live.action_page(options.page)
        for _ in range(PARTS):
            clock = time.perf_counter()
            for _ in range(frames):
                append(trace, options, content, INTERVAL)
                await frame(stage)
            tell(samples, trace, options, f"{1000 * (time.perf_counter() - clock) / frames:.0f} ms per frame")
    return samples


def read(trace: TraceWriter, options: Namespace, content: bytes) -> list[Sample]:
    """Follow the run, a part after the other."""
    follower = TraceFollower(trace.directory)
    samples: list[Sample] = []
    looks = max(1, round(options.minutes / PARTS))
    for _ in range(PARTS):
        seconds = 0.0
        for _ in range(looks):
            append(trace, options, content, options.minutes * 60 / PARTS / looks)
            clock = time.perf_counter()
            follower.poll()
            seconds += time.perf_counter() - clock
        tell(samples, trace, options, f"{seconds:.2f} s of reading")
    return samples


def tell(found: list[Sample], trace: TraceWriter, options: Namespace, took: str) -> None:
    """Note launches and memory at the end of a part, and print them."""
    gc.collect()
    found.append((trace.launches, resident()))
    launches, memory = found[-1]
    before = found[-2] if len(found) > 1 else None
    growth = f", {(memory - before[1]) / (launches - before[0]):+.2f} bytes per launch" if before else ""
    seen = f"{len(found) * options.minutes / PARTS:5.1f} min, {launches} launches"
    print(f"{seen}: {memory / 1e6:.0f} MB{growth}; {took}")


def append(trace: TraceWriter, options: Namespace, content: bytes, seconds: float) -> None:
    """A part of the run."""
    lines: list[str] = []
    for _ in range(round(options.rate * seconds)):
        launch = trace.launches
        kernel = launch * 7 % options.kernels
        lines += trace.launch_lines(kernel)
        if launch % RESULT_EACH == 0:
            name = f"{launch // 1_000_000 + 100}.{launch % 1_000_000:06d}.bin"
            if launch < RESULT_EACH * MOST_FILES:
                (trace.directory / "result" / name).write_bytes(content)
            lines.append(f"[exec] save result/{name} size {len(content)} kernel {kernel} launch {launch}")
    trace.event(*lines)


async def frame(stage: Stage) -> None:
    """Do the work of one live frame, as the screen does twice a second."""
    stage.app.feed.poll()
    stage.live.refresh_frame()
    await stage.settle()


if __name__ == "__main__":
    main()
