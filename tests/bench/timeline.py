"""Cost of a frame of the timeline, at a hundred thousand and at ten million blocks.

    python -m tests.bench.timeline [--blocks 100000 10000000] [--size 200x50] [--frames 15]

A launch of 132 SMs with 16 slots each is made up; its frame is drawn again and again, each time zoomed or moved, as by
a key. Ratios are to adding up the same starts and ends with NumPy, in the same process. *making* is the work that is
done once off the screen's loop: slots, and the rows of a level. All are times of the processor, so that what else runs
on the machine counts little.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from tui_probe.pages.views.timeline import TimelineView
from tui_probe.probekit.timelines.launch import LaunchTimeline
from tui_probe.records.sm_clocks import clock_domains
from tui_probe.records.timeline import timeline

SMS, SLOTS = 132, 16
KEYS = ("zoom_in", "right", "page_right", "zoom_in", "page_left", "down", "zoom_out", "zoom_out", "left", "up")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, nargs="+", default=[100_000, 10_000_000])
    parser.add_argument("--size", type=size, default=(200, 50), metavar="WxH")
    parser.add_argument("--frames", type=int, default=15)
    options = parser.parse_args()
    print(f"{'blocks':>12}{'rows':>8}{'frame ms':>11}{'worst ms':>11}{'sum ms':>9}{'ratio':>8}{'making s':>11}")
    for blocks in options.blocks:
        for words in measure(blocks, options.size, options.frames):
            print(words, flush=True)


def size(text: str) -> tuple[int, int]:
    width, _, height = text.partition("x")
    return int(width), int(height)


def measure(blocks: int, window: tuple[int, int], frames: int) -> Iterator[str]:
    """A line for the rows of SMs, and one for those of slots."""
    columns = made_up(blocks)
    begun = time.process_time()
    launch = timeline(*columns, clock_domains, device_sms=SMS)
    view = TimelineView(LaunchTimeline(launch, "launch 0 of #0", "made up", False, 1_980_000))
    making = time.process_time() - begun
    del columns
    starts, ends = view.timeline.blocks.start, view.timeline.blocks.end
    baseline = statistics.median(taken(lambda: starts.sum() + ends.sum()) for _ in range(5)) * 1e3
    for level in ("SM", "slot"):
        if view.selection.level != level:
            view.press("level")
        making += taken(lambda: prepare(view, window))
        view.draw(*window)
        times = []
        for i in range(frames):
            view.press(KEYS[i % len(KEYS)])
            assert view.prepare(*window) is None
            times.append(taken(lambda: view.draw(*window)) * 1e3)
        frame = statistics.median(times)
        yield (
            f"{blocks:>12}{level:>8}{frame:>11.2f}{max(times):>11.2f}{baseline:>9.2f}{frame / baseline:>8.2f}"
            f"{making:>11.2f}"
        )
        making = 0.0


def prepare(view: TimelineView, window: tuple[int, int]) -> None:
    work = view.prepare(*window)
    if work is not None:
        work()


def taken(call: Callable[[], object]) -> float:
    begun = time.process_time()
    call()
    return time.process_time() - begun


def made_up(blocks: int) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint32]]:
    """Starts, cycles and SMs, as ``timeline`` takes them, of blocks of 500 to 1500 cycles, 20 to 80 apart."""
    random = np.random.default_rng(1)
    slots = SMS * SLOTS
    rounds = -(-blocks // slots)
    elapsed = random.integers(500, 1500, (rounds, slots))
    start = np.cumsum(elapsed + random.integers(20, 80, (rounds, slots)), axis=0) - elapsed
    sm = np.tile(np.arange(SMS), SLOTS)
    start += 10**7 * (sm % 8) + 1000
    return (
        start.astype(np.uint64).reshape(-1, 1)[:blocks],
        elapsed.astype(np.uint32).reshape(-1, 1)[:blocks],
        np.broadcast_to(sm, start.shape).astype(np.uint32).reshape(-1, 1)[:blocks],
    )


if __name__ == "__main__":
    main()
