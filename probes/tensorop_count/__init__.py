"""Tensor core operations: matrix instructions executed in a launch, and the multiply-adds in them."""

from __future__ import annotations

from typing import Final

from tui_probe.probekit.probe import Probe, Question

from .analysis import analyse, analyse_lines
from .findings import findings, findings_by_line
from .lines import LINES
from .metrics import BY_LINE, METRICS

PROBES: Final = (
    Probe(
        name="tensorop_count",
        analyse=lambda of: analyse(of.result),
        metrics=METRICS,
        answers=("tensor cores",),
        findings=findings,
    ),
    Probe(
        name="tensorop_count_by_line",
        analyse=lambda of: analyse_lines(of.result, of.sites, of.kernel.folder),
        metrics=BY_LINE,
        question=Question("tensor cores", "how much do the tensor cores do, and where?", 60, r"mma"),
        findings=findings_by_line,
        lines=LINES,
    ),
)
