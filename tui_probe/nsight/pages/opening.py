"""Pages of imported files by name: for the command line, and each made on first look for the screen.

Modules are imported where they are needed: those of one profiler's pages take as long to import as a file to read.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tui_probe.draw.printable import shell_word
from tui_probe.errors import ImportFileError
from tui_probe.nsight.analysis.launch_selection import AUTOMATIC, IterationPlan
from tui_probe.nsight.importers.file_kinds import are_chrome, code_file_advice, json_advice, json_file, tool_of
from tui_probe.nsight.importers.file_reading import first_bytes
from tui_probe.nsight.importers.nsys import read_nsys
from tui_probe.nsight.pages.critical_page import critical_page
from tui_probe.nsight.pages.explanations import EXPLANATIONS, NCU_PAGES
from tui_probe.nsight.pages.memory_pages import sectors_page, traffic_page
from tui_probe.nsight.pages.ncu_pages import NcuReport, averages_page, file_head, file_notes, kernels_page, metrics_page
from tui_probe.nsight.pages.source_page import lines_page, sass_page
from tui_probe.nsight.pages.trace_counters import metrics_of_traces
from tui_probe.probekit.measured import probe_option_for
from tui_probe.probekit.page_kinds import LazyPage, PageSet
from tui_probe.verdicts.bandwidth import read_bandwidth

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tui_probe.draw.view import View
    from tui_probe.nsight.analysis.critical import ExpectedTensor
    from tui_probe.nsight.importers.ncu_table import NcuTable
    from tui_probe.nsight.pages.explanations import NcuPage
    from tui_probe.pages.table_page import TablePage
    from tui_probe.trace.model import Trace


@dataclass(frozen=True, slots=True)
class NcuSources:
    """Sources of the pages: imported files, traces, and the plan of iterations that the user gives."""

    table: NcuTable | None
    traces: Sequence[Trace] = ()
    plan: IterationPlan = AUTOMATIC
    tensor: ExpectedTensor | None = None


def ncu_page(name: NcuPage, sources: NcuSources) -> TablePage[Any]:
    """Return a page. Raises ImportFileError if it needs files of ncu and there are none."""
    if name in ("sectors", "critical"):
        return _comparison_page(name, sources)
    if sources.table is None:
        raise ImportFileError(
            f"page {name} needs a file from ncu; only the pages 'sectors' and 'critical' also accept traces"
        )
    report = NcuReport(sources.table, sources.plan)
    if name == "traffic":
        return traffic_page(report)
    if name == "lines":
        return lines_page(report, sources.traces)
    if name == "sass":
        return sass_page(report, sources.traces)
    if name == "averages":
        return averages_page(report)
    return kernels_page(report) if name == "kernels" else metrics_page(report)


def _comparison_page(name: NcuPage, sources: NcuSources) -> TablePage[Any]:
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
            notes.append("one trace is from the simulated GPU: counts are exact, times are missing")
    probe_metrics = metrics_of_traces(sources.traces)
    if sources.traces and not probe_metrics:
        options = " or ".join(
            probe_option_for(quantity) for quantity in ("load sectors", "tensor operations", "fp32 instructions")
        )
        notes.append(
            f"the traces have no counts: run the program with {options}; some kernels cannot be probed (see tui-probe"
            " report TRACE)"
        )
    if name == "sectors":
        return sectors_page(sources.table, head, notes, probe_metrics, sources.tensor)
    return critical_page(sources.table, head, notes, probe_metrics, sources.tensor, sources.plan)


def open_imported(
    paths: Sequence[Path],
    plan: IterationPlan = AUTOMATIC,
    tensor: ExpectedTensor | None = None,
    traces: Sequence[Trace] = (),
) -> PageSet:
    """The pages about files of one profiler, or about a measurement of bandwidth. ImportFileError if they are neither;
    ``traces`` are of the same program.
    """
    title = ", ".join(path.name for path in paths)
    if are_chrome(paths):
        return PageSet(title, _nsys_pages(paths, traces))
    first_bytes(paths[0])  # raises an error for a file that is packed or cannot be read
    if _is_bandwidth(paths):
        from tui_probe.pages.bandwidth_page import open_bandwidth

        return open_bandwidth(read_bandwidth(paths[0]), title)
    if code := code_file_advice(paths[0]):
        raise ImportFileError(f"{paths[0]}: {code}")
    tool = tool_of(paths[0])
    if tool == "nsys":
        return PageSet(title, _nsys_pages(paths, traces))
    try:
        return PageSet(title, _ncu_pages(paths, plan, tensor, traces))
    except ImportFileError:
        if tool == "ncu":
            raise
        with suppress(ImportFileError):
            return PageSet(title, _nsys_pages(paths, traces))
        raise


def _is_bandwidth(paths: Sequence[Path]) -> bool:
    """Return whether this is one bandwidth result.

    Raises ImportFileError for other JSON, and for several files if one of them is JSON.
    """
    kinds = {path: file.kind for path in paths if (file := json_file(path)) is not None}
    for path, kind in kinds.items():
        if kind not in ("bandwidth", "chrome"):
            raise ImportFileError(f"{path}: {json_advice(path)}")
        if len(paths) > 1:
            problem = "a bandwidth result cannot be opened together with other files"
            if kind == "chrome":
                problem = "a Chrome trace cannot be opened with other kinds of files"
            raise ImportFileError(f"{path}: {problem}; use tui-probe open {shell_word(path)}")
    return bool(kinds)


def _title(page: str) -> str:
    return "SASS" if page == "sass" else page.title()


def _ncu_pages(
    paths: Sequence[Path], plan: IterationPlan, tensor: ExpectedTensor | None, traces: Sequence[Trace]
) -> list[LazyPage]:
    from tui_probe.nsight.importers.ncu import read_ncu

    sources = NcuSources(read_ncu(paths), traces, plan, tensor)
    return [LazyPage(name, _title(name), partial(_ncu_page, name, sources), EXPLANATIONS[name]) for name in NCU_PAGES]


def _ncu_page(name: NcuPage, sources: NcuSources) -> View:
    return _explained(ncu_page(name, sources))


def _nsys_pages(paths: Sequence[Path], traces: Sequence[Trace]) -> list[LazyPage]:
    from tui_probe.nsight.pages.nsys_pages import gaps_page, kernels_page, ranges_page, sums_page, totals_page
    from tui_probe.nsight.pages.nsys_profile import NsysSources

    sources = NsysSources(read_nsys(paths), traces=traces)

    def timeline() -> View:
        from tui_probe.nsight.pages.timeline import StreamTimeline

        return StreamTimeline(sources)

    makers: dict[str, Callable[[], View]] = {
        "totals": lambda: _explained(totals_page(sources)),
        "kernels": lambda: _explained(kernels_page(sources)),
        "ranges": lambda: _explained(ranges_page(sources)),
        "gaps": lambda: _explained(gaps_page(sources)),
        "timeline": timeline,
        "sums": lambda: _explained(sums_page(sources)),
    }
    return [LazyPage(name, name.title(), make, EXPLANATIONS[f"nsys {name}"]) for name, make in makers.items()]


def _explained(page: TablePage[Any]) -> TablePage[Any]:
    """A page ready to be shown, with how to read it at its end."""
    page.shows_explanation = True
    return page.prepare()
