"""Warp progress: when each warp of a launch ran, and its pace through the loops of the kernel."""

from __future__ import annotations

from typing import Final

from tui_probe.analysis.warp_pace import stamped
from tui_probe.probekit.probe import Probe, Question, Stamps
from tui_probe.probekit.timelines.waits import timeline_waits

from .findings import findings
from .lines import LINES
from .metrics import METRICS
from .timeline import analyse, of_launch
from .view import PROGRESS

PROBES: Final = (
    Probe(
        name="warp_progress",
        analyse=analyse,
        metrics=METRICS,
        question=Question("stragglers", "which warps fall behind, and in which loop?", 20),
        answers=("schedule",),
        findings=findings,
        lines=LINES,
        timeline=of_launch,
        stamps=lambda of: Stamps(*stamped(of.result, of.clock_khz)),
        waits=lambda of, progress: timeline_waits(of_launch(of, progress)),
        views=(PROGRESS,),
    ),
)
