"""The pages about a whole trace: those of every trace, then those of probes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.pages.all_lines import LINE_COLUMNS, all_lines, kernel_lines
from tui_probe.pages.findings.report import FINDING_COLUMNS, finding_rows, summary_head, summary_lines
from tui_probe.pages.graph_page import COLUMNS as GRAPH_COLUMNS
from tui_probe.pages.graph_page import graph_lines, graph_report
from tui_probe.pages.kernel_report import KERNEL_COLUMNS, kernel_columns, kernel_head, kernel_table
from tui_probe.pages.launch_report import LAUNCH_COLUMNS, launch_lines, launch_rows
from tui_probe.pages.log_report import LOG_COLUMNS, log_rows
from tui_probe.pages.range_page import COLUMNS as RANGE_SUM_COLUMNS
from tui_probe.pages.range_page import range_sum_lines, range_sum_rows
from tui_probe.pages.range_report import RANGE_COLUMNS, range_lines, range_rows
from tui_probe.pages.results_report import FIGURE_COLUMNS, figure_rows, page_lines
from tui_probe.pages.time_columns import by_share
from tui_probe.probekit.kind import TracePage
from tui_probe.probekit.registry import all_probes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.trace.model import Trace


def _log_lines(trace: Trace, _: int) -> Iterator[str]:
    return (row.text for row in log_rows(trace))


_SHARED: Final = (
    TracePage(
        "kernels", kernel_table, KERNEL_COLUMNS, lambda trace: iter(by_share(trace.kernels)),
        "Kernels", "every kernel: its part of the GPU time, what became of it, and what the probe costs it",
        head=kernel_head, table=kernel_columns,
    ),
    TracePage(
        "summary", summary_lines, FINDING_COLUMNS, finding_rows,
        "Summary", "what was found in each kernel, and what to ask next", head=summary_head, tells=True,
    ),
    TracePage(
        "launches", launch_lines, LAUNCH_COLUMNS, launch_rows,
        "Launches", "every launch, in the order of the log",
    ),
    TracePage(
        "results", page_lines, FIGURE_COLUMNS, figure_rows,
        "Results", "what the probe measured, every result", tells=True,
    ),
    TracePage(
        "lines", all_lines, LINE_COLUMNS, kernel_lines,
        "Lines", "the lines of all kernels, those first that waste or wait most", tells=True,
    ),
    TracePage("ranges", range_lines, RANGE_COLUMNS, range_rows, "Ranges", "NVTX ranges and the kernels in them"),
    TracePage(
        "sums", range_sum_lines, RANGE_SUM_COLUMNS, range_sum_rows,
        "Sums", "NVTX ranges merged by name: calls, time in kernels in total, per call and p99, share",
    ),
    TracePage(
        "graphs", graph_report, GRAPH_COLUMNS, graph_lines,
        "Graphs", "CUDA graphs: their nodes over time, how often and how long they were replayed",
    ),
    TracePage(
        "events", _log_lines, LOG_COLUMNS, log_rows,
        "event.log", "event.log: what the hook saw and did, line by line", headed=False,
    ),
)  # fmt: skip


def trace_pages() -> tuple[TracePage, ...]:
    """All of them; one name stands for one page, the first that has it."""
    pages = {page.name: page for probe in all_probes() for page in probe.pages}
    shared = {page.name: page for page in _SHARED}
    return tuple({**shared, **{name: page for name, page in pages.items() if name not in shared}}.values())
