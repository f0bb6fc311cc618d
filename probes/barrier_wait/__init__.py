"""Barrier waits: the cycles that warps spend at barriers, for each warp or each barrier."""

from __future__ import annotations

from typing import Final

from tui_probe.probekit.probe import Probe, Question

from .analysis import analyse, analyse_lines
from .findings import findings, findings_by_line
from .lines import LINES
from .metrics import BY_LINE, METRICS
from .waits import waits

PROBES: Final = (
    Probe(
        name="barrier_wait",
        analyse=lambda of: analyse(of.result),
        metrics=METRICS,
        findings=findings,
        waits=waits,
    ),
    Probe(
        name="barrier_wait_by_line",
        analyse=lambda of: analyse_lines(of.result, of.sites, of.kernel.folder),
        metrics=BY_LINE,
        question=Question("barriers", "at which barrier do warps wait, how long?", 40, r"\b(bar|barrier)\."),
        findings=findings_by_line,
        lines=LINES,
    ),
)
