"""What limits a kernel: what a launch asks of memory, tensor cores, arithmetic and issue, counted together."""

from __future__ import annotations

from typing import Final

from tui_probe.probekit.probe import Probe, Question

from .analysis import analyse
from .findings import findings
from .metrics import METRICS

PROBES: Final = (
    Probe(
        name="what_limits",
        analyse=lambda of: analyse(of.result),
        metrics=METRICS,
        question=Question("limit", "what limits the kernel: memory, arithmetic, latency?", 5, also="roofline bound"),
        answers=("bytes", "mix"),
        findings=findings,
    ),
)
