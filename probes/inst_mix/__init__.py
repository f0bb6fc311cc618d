"""Instruction mix: PTX instructions that the warps of a launch executed, by class."""

from __future__ import annotations

from typing import Final

from tui_probe.probekit.probe import Probe, Question

from .analysis import analyse, analyse_lines
from .findings import findings, findings_by_line
from .lines import LINES
from .metrics import BY_LINE, METRICS

PROBES: Final = (
    Probe(
        name="inst_mix",
        analyse=lambda of: analyse(of.result),
        metrics=METRICS,
        question=Question("mix", "which kinds of instructions, of which type?", 100),
        findings=findings,
    ),
    Probe(
        name="inst_mix_by_line",
        analyse=lambda of: analyse_lines(of.result, of.sites, of.kernel.folder),
        metrics=BY_LINE,
        answers=("mix",),
        findings=findings_by_line,
        lines=LINES,
    ),
)
