"""Warp scheduling and tailing: how evenly blocks and warps run when they share an SM, and when they do not."""

from __future__ import annotations

from typing import Final

from tui_probe.evals.evaluation import Evaluation

from .answer import answer, collect
from .configurations import LIFETIMES, PROGRESS

EVALUATION: Final = Evaluation(
    name="warps",
    question="do equal blocks take equally long, and how do warps that share an SM fall behind each other?",
    probes=(LIFETIMES, PROGRESS),
    reading=(
        "All blocks do the same work. Blocks that have an SM to themselves (exclusive) compete for memory alone, those"
        " that share one (shared) for its warp schedulers, too. The spread is (most - least) / least of the elapsed"
        " cycles of blocks; the tail of the launch is as long as the slowest of them.",
        "Figures a and b are the distributions of elapsed cycles, exclusive and shared: a steep curve is a steady"
        " kernel, steps are groups of blocks with different luck. Figures c and d need a trace of warp progress"
        " (shared_acc: the shared blocks, with a record each time a warp has come around its loop). Figure c is the"
        " speed of each block over its own progress: lines that fan out are blocks that are served unequally, a rise at"
        " the end is what blocks gain when others are done. Figure d has a line for each warp, time to the right,"
        " iterations upwards; its zoom (d-zoom) is the end of the slowest warp.",
        "A trace is exclusive if no two of its blocks were on an SM at a time, no matter what it is called.",
    ),
    open=answer,
    collect=collect,
)
