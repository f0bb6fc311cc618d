"""Global memory bytes: what the threads of a launch loaded and stored, by the way it went."""

from __future__ import annotations

from typing import Final

from tui_probe.probekit.probe import Probe, Question

from .analysis import analyse, analyse_lines
from .findings import findings, findings_by_line
from .lines import LINES
from .metrics import BY_LINE, METRICS
from .view import MEMORY, notes

PROBES: Final = (
    Probe(
        name="gmem_bytes",
        analyse=lambda of: analyse(of.result),
        metrics=METRICS,
        question=Question("bytes", "how many bytes does it move?", 80),
        findings=findings,
        views=(MEMORY,),
        notes=notes,
    ),
    Probe(
        name="gmem_bytes_by_line",
        analyse=lambda of: analyse_lines(of.result, of.sites, of.kernel.folder),
        metrics=BY_LINE,
        answers=("bytes",),
        findings=findings_by_line,
        lines=LINES,
        views=(MEMORY,),
        notes=lambda found: notes(found.whole),
    ),
)
