"""Report, data and screen of each page have the same cells: those of one object."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.bandwidth.made_up import measured
from tests.fixed_probes import fixed_probes
from tests.pages.before_after import write_pair
from tests.pages.example import write_example
from tests.pages.graphs import graphs_trace
from tests.pages.ranges import ranges_trace
from tests.pages.test_without_ptx import _told, write_kernels  # noqa: F401
from tests.recorded import H200, unpacked
from tests.ui.desk import TestDesk
from tui_probe.draw.spans import Line, plain
from tui_probe.draw.table import as_record, cell, in_tables
from tui_probe.draw.table_content import TableContent
from tui_probe.draw.view import Document, View, no_progress
from tui_probe.errors import TraceError
from tui_probe.pages.bandwidth_page import open_bandwidth
from tui_probe.pages.code.sass_text import SassLine
from tui_probe.pages.comparison import compare_traces
from tui_probe.pages.comparison_tables import OVERVIEW_COLUMNS
from tui_probe.pages.page_registry import find_page, page_names, report_lines
from tui_probe.pages.roofline_page import open_roofline
from tui_probe.pages.table_page import TablePage
from tui_probe.pages.trace_list import RUN_COLUMNS, ListedRun, RunPage
from tui_probe.pages.view_output import json_lines, text_lines, view_lines
from tui_probe.pages.views import kind_of
from tui_probe.pages.views.launches import Launches
from tui_probe.pages.views.original_sass import OriginalSassView
from tui_probe.pages.views.results import MetricRow
from tui_probe.pages.views.sass import SassView
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.result_tables import CountTable
from tui_probe.trace.follow import open_trace
from tui_probe.trace.locate import LOG
from tui_probe.trace.model import Trace
from tui_probe.trace.recent import TraceSummary
from tui_probe.ui.live.kernel_columns import COLUMNS as SCREEN_COLUMNS
from tui_probe.ui.views.log import LogFilter, LogReader
from tui_probe.ui.views.recent import RecentView
from tui_probe.verdicts.changes import CHANGE_COLUMNS
from tui_probe.verdicts.finding_summary import limiter_text
from tui_probe.verdicts.kernel_columns import FAILURE_MARK
from tui_probe.verdicts.kernel_snapshot import kernel_snapshot
from tui_probe.verdicts.roofline import Roof, RooflinePoint
from tui_probe.verdicts.run_verdict import RunVerdict

with fixed_probes():
    TRACE_PAGES = page_names()
KERNEL_PAGES = {
    "kernel launches": "launches",
    "kernel results": "results",
    "kernel sass": "sass",
    "unprobed sass": "sass",
}
"""Pages of one kernel that are tables, each with its name."""
PAGES = (*TRACE_PAGES, *KERNEL_PAGES, "runs", "compare")
WIDTH = 500
"""Cells in which no column of any page is cut or left out."""
SCREEN_LACKS = {
    "kernels": {"shared", "blocks", "reason"},
    "launches": {"kernel", "demangled"},
    "results": {"kernel", "demangled", "probe", "figure", "problem"},
    "summary": {"kernel", "demangled", "status", "probe", "ptx_line"},
    "blocks": {"kernel", "demangled", "launch", "ramp", "tail", "problem"},
    "events": {"line"},
}
"""Columns whose cells the screen has elsewhere: it is about one kernel, or has them as headings or as shares."""
VIEW_PER_ROW = ("blocks",)
"""Pages whose row is a whole view of the screen."""
TABLE_IN_REPORT = ("kernels", "launches")
"""Pages whose text has more than the table."""


def page_trace(page: str, folder: Path) -> Trace:
    """Return a trace that has rows for a page."""
    if page in ("ranges", "sums"):
        return open_trace(ranges_trace(folder / "trace", timed=True).directory)
    if page == "graphs":
        return open_trace(graphs_trace(folder / "trace").directory)
    if page == "lines":
        return open_trace(unpacked(H200 / "attention_sectors", folder))
    write_example(folder / "trace")
    return open_trace(folder / "trace")


def page_content(page: str, trace: Trace) -> TableContent[Any]:
    entry = find_page(page)
    assert entry is not None
    assert entry.of_trace is not None
    return entry.of_trace.open(trace, no_progress)


def screen_texts(page: str, trace: Trace, content: TableContent[Any]) -> list[str]:
    """Return what the screen shows of a page: the lines of its table, or a text for each view of a kernel or launch."""
    if isinstance(content, TablePage):
        return [plain(line) for line in content.lines(WIDTH)]
    if page == "kernels":
        return [*map(kernel_line, trace.kernels)]
    if page == "events":
        reader = LogReader(trace.directory / LOG)
        assert reader.page(0, 1, LogFilter()).total
        return [*reader.all_lines(LogFilter())]
    entry = find_page(page)
    assert entry is not None
    assert entry.of_kernel is not None
    opened: list[View] = []
    for source in sources(trace, launches=page == "blocks"):
        if not entry.of_kernel.missing_reason(source):
            with suppress(TraceError):  # the example has a damaged result
                opened.append(entry.of_kernel.open(source, no_progress))
    views = [view for view in opened if isinstance(view, Document)]
    if page in VIEW_PER_ROW:
        return [" ".join(plain(line) for line in view.lines(WIDTH)) for view in views]
    return [plain(line) for view in views for line in view.lines(WIDTH)]


def sources(trace: Trace, *, launches: bool) -> Iterator[ViewSource]:
    for kernel in trace.kernels:
        if launches:
            yield from (ViewSource(trace, kernel, trace.launches[int(row)]) for row in kernel.rows)
        else:
            yield ViewSource(trace, kernel)


def kernel_line(kernel: Any) -> str:
    row = replace(kernel_snapshot(kernel, kernel.trace.state.device), limiter=limiter_text(kernel))
    return "  ".join(column.cell(row) for column in SCREEN_COLUMNS)


def shown_cells(content: TableContent[Any], row: Any, lacking: Collection[str]) -> list[str]:
    """Return the measured cells of a row, without units and labels that the screen has in a column of their own."""
    shown = (cell(column, row) for column in in_tables(content.columns) if column.key not in lacking)
    texts = [text.removesuffix(FAILURE_MARK).removesuffix(" cycles").strip() for text in shown]
    parts = (part for text in texts for part in (text.split(": ", 1) if content.name == "summary" else [text]))
    return [part for part in parts if part not in ("", "–")]


def without_launch_word(texts: Iterable[str]) -> list[str]:
    """Return the cells as the table of results has them: its column is headed “launch”."""
    return [text.removeprefix("launch ") for text in texts]


def has_cells(text: str, cells: Iterable[str]) -> bool:
    return all(re.search(rf"(?<![^\s!]){re.escape(cell)}(?![^\s,;])", text) for cell in cells)


def is_hidden(row: Any) -> bool:
    """Return whether a row is one of data only: a metric that text and the screen leave out."""
    return isinstance(row, MetricRow) and row.metric_value is not None and not row.metric_value.is_shown


@dataclass
class ShownPage:
    """A page as it is shown: the cells of each row that the report and the screen must have, and its data."""

    data: object
    """Rows as JSON has them."""
    records: list[dict[str, Any]]
    """Rows as the columns give them."""
    report: list[str]
    screen: list[str]
    of_report: list[list[str]]
    of_screen: list[list[str]]


def trace_page(page: str, folder: Path) -> ShownPage:
    trace = page_trace(page, folder)
    content = page_content(page, trace)
    rows = [row for row in content.rows if not is_hidden(row)]
    in_report = content.report is None or page in TABLE_IN_REPORT
    return ShownPage(
        data=json.loads("\n".join(report_lines(trace, page, "json")))[page],
        records=[as_record(content.columns, row) for row in content.data_rows or content.rows],
        report=[*report_lines(trace, page, width=WIDTH)],
        screen=screen_texts(page, trace, content),
        of_report=[shown_cells(content, row, ()) for row in rows] if in_report else [],
        of_screen=[without_launch_word(shown_cells(content, row, SCREEN_LACKS.get(page, ()))) for row in rows],
    )


def kernel_page(page: str, folder: Path) -> ShownPage:
    """A page of one kernel: ``show`` prints the lines of the same document that the screen scrolls."""
    source = kernel_source(page, folder)
    view = kind_of(KERNEL_PAGES[page]).open(source, no_progress)
    assert isinstance(view, Launches | CountTable | SassView | OriginalSassView)
    if isinstance(view, SassView):
        view.text.is_folded = False
    content: TableContent[Any] = view.content
    rows = [*content.rows]
    cells = [document_cells(content, row) for row in rows]
    return ShownPage(
        data=json.loads("\n".join(json_lines(page, source, view)))["data"][content.name],
        records=[as_record(content.columns, row) for row in rows],
        report=[*text_lines(view_lines(view, WIDTH, None))],
        screen=[plain(line) for line in view.lines(WIDTH)],
        of_report=cells,
        of_screen=cells,
    )


def kernel_source(page: str, folder: Path) -> ViewSource:
    if not page.endswith("sass"):
        write_example(folder / "trace")
        trace = open_trace(folder / "trace")
        return ViewSource(trace, trace.kernels[0])
    trace = open_trace(write_kernels(folder / "trace"))
    return ViewSource(trace, trace.kernels[0 if page == "kernel sass" else 1])


def document_cells(content: TableContent[Any], row: Any) -> list[str]:
    """Code has its texts in its lines, and the rest of its cells at the cursor."""
    return [row.text] if isinstance(row, SassLine) else shown_cells(content, row, ())


def runs_page(folder: Path) -> ShownPage:
    """The list of runs: its times are dates in the report and ages on the screen, its findings sentences in both."""
    traces = [
        TraceSummary(
            folder / name, 1_700_000_000 + when, "python t.py", "block_sched", "NVIDIA H200", kernels, status=status
        )
        for name, when, kernels, status in (("second", 100, 8, -9), ("first", 0, 7, 0))
    ]
    # no other text has its state and kernels, as the change of the second run has those of the first
    traces.append(TraceSummary(folder / "other", 1_700_000_000, "python o.py", "dmat", "NVIDIA H100", 41, status=3))
    verdicts = {traces[0].directory: RunVerdict("matmul", "memory (L2) 83%", "memory (L2)", 0.62, 1.2)}
    page = RunPage(traces, verdicts)
    runs = [run for group in page.commands for run in group]
    recent = RecentView(TestDesk(), "recent", 1_700_000_200)
    recent.verdicts = verdicts
    recent.show(traces)
    recent.fold()
    screen = [plain(line) for run in runs for line in screen_of_run(recent, run)]
    in_row = [column for column in in_tables(RUN_COLUMNS) if column.key not in ("when", "verdict", "change")]
    cells = [[cell(column, run) for column in in_row] for run in runs]
    cells += [[text] for run in runs for text in (*run.sentences, str(run.brief.directory))]
    return ShownPage(
        data=[run for command in page.record()["commands"] for run in command["runs"]],
        records=[as_record(RUN_COLUMNS, run) for run in runs],
        report=[*page.lines(WIDTH)],
        screen=screen,
        of_report=cells,
        of_screen=cells,
    )


def screen_of_run(recent: RecentView, run: ListedRun) -> Sequence[Line]:
    """The home screen with a run selected."""
    recent.selected_directory = run.brief.directory
    return recent.draw(WIDTH, 20)


def compare_page(folder: Path) -> ShownPage:
    """A comparison: values that did not change are in sentences."""
    before, after = write_pair(folder)
    comparison = compare_traces(open_trace(before), open_trace(after), no_progress)
    lines = [plain(line) for line in comparison.lines(WIDTH)]
    changed = [row for row in comparison.content.rows if row.change]
    cells = [shown_cells(comparison.content, row, ()) for row in changed]
    overview = in_tables(OVERVIEW_COLUMNS)
    cells += [[text for column in overview if (text := cell(column, pair))] for pair in comparison.pairs]
    return ShownPage(
        data=json.loads(json.dumps(comparison.record()))["figures"],
        records=[as_record(CHANGE_COLUMNS, row) for row in comparison.rows],
        report=[*text_lines(view_lines(comparison, WIDTH, None))],
        screen=lines,
        of_report=cells,
        of_screen=cells,
    )


def shown_page(page: str, folder: Path) -> ShownPage:
    if page in KERNEL_PAGES:
        return kernel_page(page, folder)
    if page == "runs":
        return runs_page(folder)
    return compare_page(folder) if page == "compare" else trace_page(page, folder)


@pytest.mark.usefixtures("_told")
@pytest.mark.parametrize("page", PAGES)
def test_page_has_same_cells_in_report_data_and_screen(page: str, tmp_path: Path) -> None:
    shown = shown_page(page, tmp_path)
    assert shown.records
    assert shown.data == json.loads(json.dumps(shown.records))
    assert shown.of_screen
    for cells in shown.of_screen:
        assert any(has_cells(text, cells) for text in shown.screen), f"the screen lacks {cells}"
    for cells in shown.of_report:
        assert any(has_cells(line, cells) for line in shown.report), f"the report lacks {cells}"


POINTS = [RooflinePoint("attn", "flash_attention", 142.6e6, 17.2e9, 49.5e-6, None)]
DRAWN = {
    "bars": ("bandwidth", open_bandwidth(measured(), "bw.json")),
    "chart": ("roofline", open_roofline(POINTS, Roof(peak=989e12, bandwidth=4.6e12), "roofline")),
}
"""Drawings, with the table of the same values and the pages that have both."""


@pytest.mark.parametrize("drawing", DRAWN)
def test_drawing_has_cells_of_its_table(drawing: str) -> None:
    table, pages = DRAWN[drawing]
    views = {page.name: page.make() for page in pages.pages}
    rows = [*views[table].cells()]
    assert len(rows) > 1
    assert [*views[drawing].cells()] == rows
    assert views[drawing].record()[table] == views[table].record()[table]
