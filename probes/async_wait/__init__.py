"""Waits for asynchronous work: the cycles that warps spend where they wait for copies, mbarriers or wgmma."""

from __future__ import annotations

from typing import Final

from tui_probe.probekit.probe import Probe, Question

from .analysis import analyse
from .findings import findings
from .lines import LINES
from .metrics import METRICS
from .view import WAITS, notes

PROBES: Final = (
    Probe(
        name="async_wait",
        analyse=lambda of: analyse(of.result, of.sites, of.kernel.folder),
        metrics=METRICS,
        question=Question(
            "asynchronous work",
            "where do warps wait for copies or wgmma, how long?",
            45,
            r"\bmbarrier\.(try|test)_wait|\bcp\.async\.[a-z.]*wait_|\bwgmma\.wait_group",
        ),
        findings=findings,
        lines=LINES,
        views=(WAITS,),
        notes=notes,
    ),
)
