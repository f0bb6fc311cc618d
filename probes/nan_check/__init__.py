"""NaNs and infinities that a launch stored to global memory: which was first, and what was not looked at."""

from __future__ import annotations

from typing import Final

from tui_probe.probekit.probe import Probe, Question

from .analysis import analyse
from .findings import findings
from .lines import LINES
from .metrics import METRICS

PROBES: Final = (
    Probe(
        name="nan_check",
        analyse=lambda of: analyse(of.result, of.kernel.folder),
        metrics=METRICS,
        question=Question("first NaN", "where does the first NaN come from?", 110, r"\.(b?f16|f32|f64)\b"),
        findings=findings,
        lines=LINES,
    ),
)
