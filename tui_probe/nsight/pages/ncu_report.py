"""A page about files of Nsight Compute, traces of ours, or both, by its name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tui_probe.errors import ImportFileError
from tui_probe.nsight.analysis.chosen_launches import FIND_OUT, Plan
from tui_probe.nsight.pages.averages_page import averages_page
from tui_probe.nsight.pages.critical_page import critical_page
from tui_probe.nsight.pages.from_traces import figures_of_traces
from tui_probe.nsight.pages.ncu_pages import NcuReport, file_head, file_notes, kernels_page, metrics_page
from tui_probe.nsight.pages.sectors_page import sectors_page
from tui_probe.nsight.pages.source_page import lines_page, sass_page
from tui_probe.nsight.pages.traffic_page import traffic_page
from tui_probe.probekit.quantities import measured_with

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.nsight.analysis.sectors import Tensor
    from tui_probe.nsight.importers.ncu_table import NcuTable
    from tui_probe.nsight.pages.choices import NcuPage
    from tui_probe.pages.table_page import TablePage
    from tui_probe.trace.model import Trace


@dataclass(frozen=True, slots=True)
class Sources:
    """What there is to show: imported files, traces, and what the user says of the program."""

    table: NcuTable | None
    traces: Sequence[Trace] = ()
    plan: Plan = FIND_OUT
    tensor: Tensor | None = None


def ncu_page(name: NcuPage, sources: Sources) -> TablePage[Any]:
    """One page. ImportFileError if it needs files of ncu and there are none."""
    if name in ("sectors", "critical"):
        return _compared(name, sources)
    if sources.table is None:
        raise ImportFileError(f"page {name} is about files of ncu: name one (sectors and critical take traces too)")
    report = NcuReport(sources.table, sources.plan)
    if name == "traffic":
        return traffic_page(report)
    if name == "lines":
        return lines_page(report, sources.traces)
    if name == "sass":
        return sass_page(report)
    if name == "averages":
        return averages_page(report)
    return kernels_page(report) if name == "kernels" else metrics_page(report)


def _compared(name: NcuPage, sources: Sources) -> TablePage[Any]:
    """The pages that show what ncu and the probes say side by side."""
    head: list[tuple[str, str]] = []
    notes: list[str] = []
    if sources.table is not None:
        report = NcuReport(sources.table, sources.plan)
        head += file_head(report)
        notes += file_notes(report)
    if sources.traces:
        head.append(("traces", ", ".join(str(trace.directory) for trace in sources.traces)))
        if any(trace.state.simulated for trace in sources.traces):
            notes.append("a trace is of the simulated GPU: its counts are exact, and it has no times")
    probed = figures_of_traces(sources.traces)
    if sources.traces and not probed:
        wanted = " or ".join(measured_with(each) for each in ("load sectors", "tensor operations", "fp32 instructions"))
        notes.append(
            f"the traces hold no counts: run the program with {wanted}; kernels without PTX cannot be probed (tui-probe"
            " report TRACE tells which)"
        )
    if name == "sectors":
        return sectors_page(sources.table, head, notes, probed, sources.tensor)
    return critical_page(sources.table, head, notes, probed, sources.tensor, sources.plan)
