"""Analysis of the stores: a metric, a finding, a table of its own."""

from __future__ import annotations

from collections.abc import Iterator

from tui_probe.probekit.finding import Finding
from tui_probe.probekit.metric import Metric
from tui_probe.probekit.probe import Probe, Question
from tui_probe.probekit.probe_results import ProbeResult
from tui_probe.probekit.result_tables import count_kind
from tui_probe.records.counter_sums import CounterSums, sum_records

from .records import RECORD


def findings(probe_result: ProbeResult, analysis: CounterSums) -> Iterator[Finding]:
    """Stores per thread."""
    stored = analysis.totals["stored"]
    summary = f"{stored} by {probe_result.result.threads} threads"
    yield Finding("stores", "stores", summary, "stores", stands_out=True, values={"stored": stored})


PROBES = (
    Probe(
        name="store_count",
        analyse=lambda probe_result: sum_records(probe_result.result, RECORD, "store_count"),
        metrics=(Metric("stored", "stores", better="lower", read=lambda analysis: analysis.totals["stored"]),),
        question=Question("stores", "how many stores are there?", 5, r"st\.global"),
        findings=findings,
        views=(count_kind("stores", "Stores", "stores of each launch", ("Stores that threads executed.",), 1),),
        notes=lambda analysis: [f"{analysis.totals['stored']} stores in all"],
    ),
)
