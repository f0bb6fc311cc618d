"""A launch in which everything is known: an idle SM, a straggler, the tail that it makes, and every gap."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.trace.make import TraceWriter, block_sched_result
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.trace.follow import open_trace

SMS, IDLE_SM, SLOTS, ROUNDS = 6, 3, 2, 5
CYCLES, GAP, STRAGGLER, STRAGGLER_CYCLES, STRAGGLER_SM = 1000, 60, 48, 4000, 4
"""A block takes ``CYCLES`` and the next follows ``GAP`` later; block ``STRAGGLER``, the last of a slot, takes more."""
SPAN = (ROUNDS - 1) * (CYCLES + GAP) + STRAGGLER_CYCLES
END = ROUNDS * (CYCLES + GAP) - GAP
"""The time at which all SMs but one are done."""


def schedule() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Starts, cycles and SMs of blocks, dealt to the slots of the SMs in turn."""
    busy = [sm for sm in range(SMS) if sm != IDLE_SM]
    count = len(busy) * SLOTS * ROUNDS
    block = np.arange(count)
    sm = np.array(busy)[block % len(busy)]
    start = 5_000 + (block // (len(busy) * SLOTS)) * (CYCLES + GAP)
    elapsed = np.where((block == STRAGGLER), STRAGGLER_CYCLES, CYCLES)
    return start, elapsed, sm


def write_planted(directory: Path, *, simulated: bool = True) -> ViewSource:
    """A trace of one launch of one kernel."""
    writer = TraceWriter(directory)
    writer.start(device="Simulated GPU" if simulated else "NVIDIA H100 80GB HBM3", sms=SMS)
    writer.kernel(0, "_Z7plantedPfi")
    start, elapsed, sm = schedule()
    launch = writer.launch(0, (len(start), 1, 1), (64, 1, 1))
    writer.save(0, launch, block_sched_result(start, elapsed, sm, threads=64))
    writer.exit()
    trace = open_trace(directory)
    return ViewSource(trace, trace.kernels[0], trace.launches[0])
