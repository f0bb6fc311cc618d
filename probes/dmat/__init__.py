"""Memory accesses over time: which addresses, when, by whom, and which instruction does not coalesce.

The compact twin takes half the memory and names no instruction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.probekit.probe import Probe, Question, Stamps

from .accesses import COMPACT_NAME, accesses_of, began_ns
from .findings import findings, findings_of_compact
from .lines import LINES
from .metrics import METRICS, figures
from .table import summary
from .view import DMAT

if TYPE_CHECKING:
    from tui_probe.probekit.probe_results import ProbeResult

    from .table import AccessCount, AccessTable


def _analyse(of: ProbeResult) -> AccessTable | AccessCount:
    return summary(accesses_of(of), of.kernel.folder)


PROBES: Final = (
    Probe(
        name="dmat",
        analyse=_analyse,
        metrics=METRICS,
        question=Question("accesses", "which addresses, when, and by whom?", 90),
        answers=("coalescing",),
        findings=findings,
        lines=LINES,
        views=(DMAT,),
        figures=figures,
        stamps=lambda of: Stamps(began_ns(of.result)),
    ),
    Probe(
        name=COMPACT_NAME,
        analyse=_analyse,
        metrics=METRICS,
        answers=("accesses",),
        findings=findings_of_compact,
        views=(DMAT,),
        figures=figures,
    ),
)
