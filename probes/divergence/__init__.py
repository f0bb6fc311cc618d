"""Divergence: how many lanes of a warp are active at its branches and its accesses to memory."""

from __future__ import annotations

from typing import Final

from tui_probe.probekit.probe import Probe, Question

from .analysis import analyse, analyse_lines
from .findings import findings, findings_by_line
from .lines import LINES
from .metrics import BY_LINE, METRICS

PROBES: Final = (
    Probe(name="divergence", analyse=lambda of: analyse(of.result), metrics=METRICS, findings=findings),
    Probe(
        name="divergence_by_line",
        analyse=lambda of: analyse_lines(of.result, of.sites, of.kernel.folder),
        metrics=BY_LINE,
        question=Question("divergence", "where are lanes of a warp idle?", 70, r"@|\bbra\b"),
        findings=findings_by_line,
        lines=LINES,
    ),
)
