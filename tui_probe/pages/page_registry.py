"""Registry of pages by name with how to read each, and the pages of a trace in each output format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw.char_budget import first_records
from tui_probe.draw.csv_table import csv_lines
from tui_probe.draw.spans import to_ascii
from tui_probe.draw.table import SCHEMA, SCHEMA_VERSION, as_json, as_markdown
from tui_probe.draw.view import no_progress
from tui_probe.errors import UsageError, did_you_mean
from tui_probe.pages.all_lines import line_page
from tui_probe.pages.event_log import log_content
from tui_probe.pages.findings_page import summary_content
from tui_probe.pages.graph_page import graph_page
from tui_probe.pages.launch_rows import launch_content
from tui_probe.pages.range_page import range_page
from tui_probe.pages.run_report import kernel_content
from tui_probe.pages.tree_page import tree_page
from tui_probe.pages.views import kind_of, kinds, names
from tui_probe.pages.views.results import results_content
from tui_probe.probekit.page_kinds import TracePage
from tui_probe.probekit.registry import all_probes
from tui_probe.verdicts.run_outcome import head_lines, head_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.draw.table_content import TableContent
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.page_kinds import Format, ViewKind
    from tui_probe.trace.model import Trace


_GENERAL_PAGES: Final = (
    TracePage(
        "kernels", lambda trace, _: kernel_content(trace),
        "Kernels", "all kernels: share of GPU time, status, and overhead of the probe",
    ),
    TracePage("summary", summary_content, "Summary", "findings of each kernel, and further questions"),
    TracePage(
        "launches", lambda trace, _: launch_content(trace), "Launches", "all launches, in the order of the log"
    ),
    TracePage("results", results_content, "Results", "values of every result"),
    TracePage("lines", line_page, "Lines", "lines of all kernels, sorted by waste and waiting time"),
    TracePage("ranges", lambda trace, _: range_page(trace), "Ranges", "NVTX ranges and the kernels in them"),
    TracePage(
        "sums", lambda trace, _: range_page(trace, merged_by_name=True),
        "Sums", "NVTX ranges merged by name: calls; total, mean and p99 kernel time; share",
    ),
    TracePage("tree", tree_page, "Tree", "where the GPU time goes: program, ranges, kernels, lines"),
    TracePage(
        "graphs", lambda trace, _: graph_page(trace),
        "Graphs", "CUDA graphs: nodes over time, number and duration of replays",
    ),
    TracePage(
        "events", lambda trace, _: log_content(trace),
        "event.log", "event.log: events of the hook, line by line", headed=False,
    ),
)  # fmt: skip


_LIVE_PAGES: Final[dict[str, tuple[str, ...]]] = {
    "recent": (
        "The newest traces. The column “found” shows limiter and utilization of the kernel with the most GPU time. If"
        " they are unknown, the column shows the kernel's first finding. “!” marks findings that cost time. “–” means"
        " that nothing was found, or that the run is still active. The text is computed once and saved in your state"
        " directory.",
        "“▶3” marks three runs of one command. The list shows the newest run; press c to see the older runs. Below"
        " the list are the findings of the selected run, and the changes since the previous run of the same command.",
    ),
    "form": (
        "The program to start, and its options. Paths in the command are completed: → accepts the suggestion after"
        " the cursor. The last line shows the equivalent command line.",
    ),
    "machine": (
        "The results of tui-probe doctor. “✘” marks a missing part, “!” marks a part that needs attention, and “○”"
        " marks an optional part.",
    ),
    "figures": (
        "Each value of A and B, and its change. “Better” is a change in the desired direction of the value; “worse”"
        " is a change in the other direction. “–” means not measured.",
    ),
    "kernels": (
        "One row per kernel, sorted by GPU time if launches were timed, else by first launch. 12 of 6 060, or 12/6.1k,"
        " means that 12 launches were probed. Registers and spills: without→with the probe; these columns are sorted"
        " by the difference. Slowdown is probed time divided by original time. “+” marks times of probed launches."
        " Press Enter to open the findings and all other pages of a kernel.",
        "The column “finding” shows the first finding of the newest result, or the reason why the kernel has no"
        " result. “!” marks findings that cost time. On narrow screens, columns disappear in this order: probe memory,"
        " time, spills, block, grid, trend, mode, p99, slowdown, registers, median, launches, limited by, share. Bars"
        " need 100 columns. The column “trend” shows the times of the last 8 timed launches, newest at the right; the"
        " longest time has a full bar.",
        "Skipped: the kernel cannot be probed, e.g. it has no PTX. Failed: the probe could not be inserted, and the"
        " original kernel ran. Excluded: not selected by --kernel, or named in --exclude. The page below shows the"
        " reason and advice.",
    ),
    "kernel": (
        "The selected kernel: whether it was probed, reason and advice, the overhead of the probe, and the launches."
        " Press Enter to open the findings.",
    ),
    "process": ("process.log of the selected kernel: how the kernel was pruned, probed and assembled.",),
    "events": (
        "event.log: one line per event of the hook driver, as it happens. “[exec]” marks launches, “[probe]” the"
        " preparation of kernels, “[mem]” allocations, “[mod]” loaded modules.",
    ),
    "stdout": ("Standard output of the program.",),
    "stderr": ("Standard error of the program.",),
    "results": (
        "The probe's values for each kernel, sorted by GPU time. A kernel with few results has one line per result."
        " A kernel with more results has one line per value, with minimum, median and maximum. If there are very many"
        " results, tui-probe reads only some of them, evenly spaced from the first to the last. tui-probe"
        " reads the results of a kernel again when their number has doubled, and at the end. Press Enter on a kernel"
        " to see single launches.",
    ),
    "gpu": (
        "The GPUs of the run. During the run, the page also shows load, memory, clocks and power of this machine's"
        " GPUs over the last minutes.",
    ),
}
"""Explanations of the home screen, of pages of the live screen, and of values of a comparison."""


def trace_pages() -> tuple[TracePage, ...]:
    """Return all of them; one name stands for one page, the first that has it."""
    probe_pages = {page.name: page for probe in all_probes() for page in probe.pages}
    general_pages = {page.name: page for page in _GENERAL_PAGES}
    return tuple(
        {**general_pages, **{name: page for name, page in probe_pages.items() if name not in general_pages}}.values()
    )


@dataclass(frozen=True, slots=True)
class PageEntry:
    """A page by its name, no matter what shows it: ``show``, ``report --page``, the screen.

    A name means one thing: a page of the trace and a page of a kernel share one if they show the same of more or less.
    """

    name: str
    of_trace: TracePage | None
    of_kernel: ViewKind | None

    @property
    def title(self) -> str:
        """Title of its tab."""
        return next((page.title for page in (self.of_kernel, self.of_trace) if page and page.title), self.name)

    @property
    def about(self) -> str:
        """Content of the page, in one line."""
        return next((page.description for page in (self.of_trace, self.of_kernel) if page and page.description), "")

    @property
    def explanation(self) -> tuple[str, ...]:
        """Explanation of the page, a paragraph each."""
        return self.of_kernel.explanation if self.of_kernel else ()

    @property
    def scope(self) -> str:
        """Subject of the page, in words: trace, kernel."""
        scopes = (("trace", self.of_trace), ("kernel", self.of_kernel))
        return ", ".join(word for word, page in scopes if page is not None)


def all_pages() -> tuple[PageEntry, ...]:
    """Return every page, those of a trace first."""
    trace_kinds = {page.name: page for page in trace_pages()}
    kernel_kinds = {kind.name: kind for kind in kinds()}
    return tuple(
        PageEntry(name, trace_kinds.get(name), kernel_kinds.get(name)) for name in {**trace_kinds, **kernel_kinds}
    )


def find_page(name: str) -> PageEntry | None:
    """Return the page of a name; None if there is none."""
    return next((page for page in all_pages() if page.name == name), None)


def require_page(name: str) -> PageEntry:
    """Return the page of a name. Raises UsageError that lists the names, the nearest one first."""
    page = find_page(name)
    if page is None:
        known_names = [entry.name for entry in all_pages()]
        raise UsageError(
            f"there is no page {name!r}{did_you_mean(name, known_names) or '.'} Pages: {', '.join(known_names)}"
        )
    return page


def explanation(name: str) -> tuple[str, ...]:
    """Explain how to read a page, a paragraph each; nothing of one that is not known."""
    return _LIVE_PAGES.get(name) or (kind_of(name).explanation if name in names() else ())


def report_lines(
    trace: Trace,
    page: str = "kernels",
    form: Format = "table",
    *,
    width: int = 100,
    ascii_only: bool = False,
    progress: Progress = no_progress,
) -> Iterator[str]:
    """Return the lines of one page; UsageError for one that there is not.

    Only tables are cut to ``width`` cells, and only text is turned into ASCII. ``progress`` is given how far the
    reading of results is.
    """
    kind = _trace_page(page)
    content = kind.open(trace, progress)
    if form == "json":
        return as_json({"page": page, **head_record(trace), **content.fields()}, page, content.records())
    if form == "csv":
        return csv_lines(content.cells())
    lines = _markdown(trace, content) if form == "md" else _text_lines(trace, content, width, headed=kind.headed)
    return map(to_ascii, lines) if ascii_only else lines


def report_document(
    trace: Trace, page: str, chars: int, progress: Progress = no_progress
) -> tuple[dict[str, Any], int]:
    """Return a page as a document with the rows that may fit into ``chars`` characters, and the number of other rows.

    Raises UsageError for a page that there is not.
    """
    content = _trace_page(page).open(trace, progress)
    records, omitted_count = first_records(content.records(), chars)
    head = {"schema": SCHEMA, "version": SCHEMA_VERSION, "page": page}
    return {**head, **head_record(trace), **content.fields(), page: records}, omitted_count


def page_names() -> tuple[str, ...]:
    """Return the pages of a trace: those of every trace, then those of probes."""
    return tuple(page.name for page in trace_pages())


def _trace_page(name: str) -> TracePage:
    match = next((page for page in trace_pages() if page.name == name), None)
    if match is None:
        raise UsageError(f"a trace has no page {name!r}; it has {', '.join(page_names())}")
    return match


def _markdown(trace: Trace, content: TableContent[Any]) -> Iterator[str]:
    yield "```text"
    yield from head_lines(trace)
    yield "```"
    yield ""
    yield from as_markdown(content.columns, content.rows)


def _text_lines(trace: Trace, content: TableContent[Any], width: int, *, headed: bool) -> Iterator[str]:
    yield from head_lines(trace, width) if headed else ()
    if content.report is None:
        yield from content.text(width)
        return
    yield from [""] if headed else ()
    yield from content.report(width)
