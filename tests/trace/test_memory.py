"""Memory of a reader that follows a log, however long the program runs."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tests.bench.long_trace import DEVICE, launched
from tests.trace.make import EPOCH_NS
from tui_probe.trace.follow import TraceFollower
from tui_probe.trace.launches import BLOCK
from tui_probe.trace.unprobed import BLOCK as BLOCK_OF_LINES

if TYPE_CHECKING:
    from pathlib import Path

KERNELS = 5
HEAD = f"[init] pid 1\n[init] cmd 1 x\n[init] dl 0x26aa350\n[init] epoch {EPOCH_NS}\n{DEVICE}"


def test_memory_does_not_grow_with_launch_lines(tmp_path: Path) -> None:
    """As much at twice as many launches: in memory each would take a hundred bytes."""
    log = tmp_path / "event.log"
    log.write_text(HEAD)
    follower = TraceFollower(tmp_path)
    gc.freeze()  # what other tests have left need not be looked at again
    taken, count = [], 0
    for _ in range(3):
        with log.open("a") as file:
            file.writelines(launched(number % KERNELS, number, 64) for number in range(count, count + BLOCK))
        count += BLOCK
        follower.poll()
        gc.collect()
        if not taken:
            tracemalloc.start()
        taken.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    launches = follower.trace.launches
    assert launches.column("number").tolist() == list(range(count))
    assert [launches[row].kernel for row in (0, 7, 2 * BLOCK, count - 1)] == [
        row % KERNELS for row in (0, 7, 2 * BLOCK, count - 1)
    ]
    assert follower.trace.kernels[2].rows[:3] == [2, 7, 12]
    assert follower.trace.kernels[2].launches == len(range(2, count, KERNELS))
    assert taken[2] - taken[1] < BLOCK, taken


def taken_by(follower: TraceFollower, log: Path, lines: Iterator[str], looks: int) -> list[int]:
    """Bytes of memory that each look at the log but the first has added; it grows by as many lines before each.

    What the second one adds has the lists of the first one in it, which grew.
    """
    written, taken = list(lines), []
    per_look = len(written) // looks
    gc.freeze()  # what other tests have left need not be looked at again
    for look in range(looks):
        with log.open("a") as file:
            file.writelines(written[look * per_look : (look + 1) * per_look])
        follower.poll()
        gc.collect()
        if not taken:  # a reader takes four times as long while its memory is traced
            tracemalloc.start()
        taken.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    return taken


def test_times_of_launches_take_twenty_bytes_each(tmp_path: Path) -> None:
    """Numbers of launches, weights and times are short: as numbers of eight bytes they take more than forty."""
    log = tmp_path / "event.log"
    log.write_text(HEAD)
    count, looks = 6_000, 4
    lines = (
        f"[time] launch {100_000 + 33 * number} kernel {number % KERNELS} key {number % KERNELS} original"
        f" ns {2000 + number} for {20 + number % 200} host {400_000 + number}\n"
        for number in range(count)
    )
    follower = TraceFollower(tmp_path)
    taken = taken_by(follower, log, lines, looks)
    assert [len(follower.trace.kernels[kernel].samples) for kernel in range(KERNELS)] == [count // KERNELS] * KERNELS
    assert taken[-1] - taken[1] < 20 * count * (looks - 2) / looks, taken


def test_memory_does_not_grow_with_packed_lines(tmp_path: Path) -> None:
    """As much at twice as many lines, which a long run writes for as long as it launches."""
    log = tmp_path / "event.log"
    log.write_text(HEAD)
    looks, per_look = 3, BLOCK_OF_LINES
    lines = (f"[passed] {100 * number} {EPOCH_NS + number} 7 3x100\n" for number in range(looks * per_look))
    follower = TraceFollower(tmp_path)
    taken = taken_by(follower, log, lines, looks)
    passed = follower.trace.unprobed
    assert (passed.segments, len(passed)) == (looks * per_look, 100 * looks * per_look)
    assert [line[0] for line in passed.lines()] == [100 * number for number in range(looks * per_look)]
    assert taken[-1] - taken[1] < 8 * per_look, taken
