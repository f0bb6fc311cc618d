"""Global memory requests and sectors, as hardware counters define them."""

from __future__ import annotations

from typing import Final

from tui_probe.probekit.probe import Probe, Question

from .analysis import analyse, analyse_lines
from .findings import findings, findings_by_line
from .lines import LINES
from .metrics import BY_LINE, METRICS
from .view import SECTORS, notes

PROBES: Final = (
    Probe(
        name="gmem_sectors",
        analyse=lambda of: analyse(of.result),
        metrics=METRICS,
        findings=findings,
        views=(SECTORS,),
        notes=notes,
    ),
    Probe(
        name="gmem_sectors_by_line",
        analyse=lambda of: analyse_lines(of.result, of.sites, of.kernel.folder),
        metrics=BY_LINE,
        question=Question(
            "coalescing",
            "which accesses are not coalesced?",
            10,
            r"\b(ld|st)\.[a-z.:]*global",
            "strided uncoalesced waste wasted traffic sectors lines",
        ),
        findings=findings_by_line,
        lines=LINES,
        views=(SECTORS,),
        notes=lambda found: notes(found.whole),
    ),
)
