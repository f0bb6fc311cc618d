"""Shared memory bank conflicts: the passes that loads and stores need."""

from __future__ import annotations

from typing import Final

from tui_probe.probekit.probe import Probe, Question

from .analysis import analyse, analyse_lines
from .findings import findings, findings_by_line
from .lines import LINES
from .metrics import BY_LINE, METRICS

PROBES: Final = (
    Probe(name="smem_conflicts", analyse=lambda of: analyse(of.result), metrics=METRICS, findings=findings),
    Probe(
        name="smem_conflicts_by_line",
        analyse=lambda of: analyse_lines(of.result, of.sites, of.kernel.folder),
        metrics=BY_LINE,
        question=Question(
            "bank conflicts", "which accesses conflict in shared memory?", 50, r"\b(ld|st)\.[a-z.:]*shared"
        ),
        findings=findings_by_line,
        lines=LINES,
    ),
)
