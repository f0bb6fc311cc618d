"""Progress through the program: where the warps of a launch spent their time."""

from __future__ import annotations

from typing import Final

from tui_probe.analysis.warp_pace import stamped
from tui_probe.probekit.probe import Probe, Question, Stamps

from .analysis import analyse
from .findings import findings
from .lines import LINES
from .metrics import METRICS

PROBES: Final = (
    Probe(
        name="program_progress",
        analyse=lambda of: analyse(of.result, of.clock_khz, of.kernel.folder),
        metrics=METRICS,
        question=Question("hot code", "which part of the code takes the time?", 30),
        findings=findings,
        lines=LINES,
        stamps=lambda of: Stamps(*stamped(of.result, of.clock_khz)),
    ),
)
