"""A small model of how a GPU schedules blocks, which knows the cycles that the analysis has to find."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field


@dataclass
class SimulatedSM:
    """One SM: ``blocks`` are (start, end), in the order in which they were scheduled; totals are over all slots."""

    slots: int
    blocks: list[tuple[int, int]] = field(default_factory=list)
    running: int = 0
    scheduling: int = 0
    ramp: int = 0
    tail: int = 0

    def run(self, durations: list[int], gaps: list[int], ramps: list[int], clock: int) -> None:
        """Fill the slots one after another, ``ramps`` apart, then give each next block the slot free for longest.

        ``gaps`` are the cycles from the end of a block to the start of the one that takes its slot. Every slot is
        filled before any block ends (durations must be longer than all ramps together), and blocks start in order.
        """
        free: list[int] = []
        start = clock
        for duration, ramp in zip(durations[: self.slots], [0, *ramps], strict=False):
            start += ramp
            self.ramp += start - clock
            self._block(start, duration, free)
        for duration, gap in zip(durations[self.slots :], gaps, strict=False):
            freed = heapq.heappop(free)
            start = max(freed + gap, start)
            self.scheduling += start - freed
            self._block(start, duration, free)
        self.tail = sum(max(free) - end for end in free)

    def _block(self, start: int, duration: int, free: list[int]) -> None:
        self.blocks.append((start, start + duration))
        self.running += duration
        heapq.heappush(free, start + duration)


def schedule_by_heap(blocks: list[tuple[int, int]]) -> tuple[int, int, int, int, int]:
    """The definition of the analysis, word for word: (slots, running, scheduling, ramp, tail), totals over slots."""
    blocks = sorted(blocks)
    first = blocks[0][0]
    free: list[int] = []
    running = scheduling = ramp = 0
    for start, end in blocks:
        running += end - start
        if free and free[0] <= start:
            scheduling += start - heapq.heapreplace(free, end)
        else:
            ramp += start - first
            heapq.heappush(free, end)
    return len(free), running, scheduling, ramp, sum(max(free) - end for end in free)
