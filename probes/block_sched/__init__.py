"""Block scheduling: how long the block slots of each SM ran a block, and how long they waited for the next one."""

from __future__ import annotations

from typing import Final

from tui_probe.probekit.probe import Probe, Question
from tui_probe.probekit.timelines.waits import timeline_waits

from .analysis import analyse
from .findings import findings
from .metrics import METRICS
from .report import REPORT
from .timeline import of_launch
from .view import BLOCKS
from .words import schedule_line

PROBES: Final = (
    Probe(
        name="block_sched",
        analyse=lambda of: analyse(of.result),
        metrics=METRICS,
        question=Question("schedule", "where does the time go: blocks, gaps, a tail?", 0),
        findings=findings,
        timeline=of_launch,
        waits=lambda of, progress: timeline_waits(of_launch(of, progress)),
        views=(BLOCKS,),
        pages=(REPORT,),
        line=schedule_line,
        line_about="running and scheduling (a slot empty between two blocks): means over SMs",
    ),
)
