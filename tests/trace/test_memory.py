"""What following a log keeps in memory, however long the program runs."""

from __future__ import annotations

import gc
import tracemalloc
from typing import TYPE_CHECKING

from tests.bench.long_trace import DEVICE, launched
from tests.trace.make import EPOCH_NS
from tui_probe.trace.follow import TraceFollower
from tui_probe.trace.launches import BLOCK

if TYPE_CHECKING:
    from pathlib import Path

KERNELS = 5


def test_it_does_not_grow_with_the_launches_that_have_lines(tmp_path: Path) -> None:
    """As much at twice as many launches: in memory each would take a hundred bytes."""
    log = tmp_path / "event.log"
    log.write_text(f"[init] pid 1\n[init] cmd 1 x\n[init] dl 0x26aa350\n[init] epoch {EPOCH_NS}\n{DEVICE}")
    follower = TraceFollower(tmp_path)
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
