"""Report, data and screen of each page have the same cells: those of one object."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.bandwidth.made_up import measured
from tests.fixed_probes import fixed_probes
from tests.pages.example import write_example
from tests.pages.graphs import graphs_trace
from tests.pages.ranges import ranges_trace
from tests.recorded import H200, unpacked
from tui_probe.draw.spans import plain
from tui_probe.draw.table import as_record, cell, in_tables
from tui_probe.draw.table_content import TableContent
from tui_probe.draw.view import Document, View, no_progress
from tui_probe.errors import TraceError
from tui_probe.pages.bandwidth_page import open_bandwidth
from tui_probe.pages.page_registry import find_page, page_names, report_lines
from tui_probe.pages.roofline_page import open_roofline
from tui_probe.pages.table_page import TablePage
from tui_probe.pages.views.results import MetricRow
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.trace.follow import open_trace
from tui_probe.trace.locate import LOG
from tui_probe.trace.model import Trace
from tui_probe.ui.live.kernel_columns import COLUMNS as SCREEN_COLUMNS
from tui_probe.ui.views.log import LogFilter, LogReader
from tui_probe.verdicts.kernel_columns import FAILURE_MARK
from tui_probe.verdicts.kernel_snapshot import kernel_snapshot
from tui_probe.verdicts.roofline import Roof, RooflinePoint

with fixed_probes():
    PAGES = page_names()
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
        if not entry.of_kernel.missing(source):
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
    row = kernel_snapshot(kernel, kernel.trace.state.device)
    return "  ".join(column.cell(row) for column in SCREEN_COLUMNS)


def shown_cells(content: TableContent[Any], row: Any, lacking: Collection[str]) -> list[str]:
    """Return the measured cells of a row, without units and labels that the screen has in a column of their own."""
    shown = (cell(column, row) for column in in_tables(content.columns) if column.key not in lacking)
    texts = [text.removesuffix(FAILURE_MARK).removesuffix(" cycles").strip() for text in shown]
    parts = (part for text in texts for part in (text.split(": ", 1) if content.name == "summary" else [text]))
    return [part for part in parts if part not in ("", "–")]


def has_cells(text: str, cells: Iterable[str]) -> bool:
    return all(re.search(rf"(?<![^\s!]){re.escape(cell)}(?![^\s,;])", text) for cell in cells)


def is_hidden(row: Any) -> bool:
    """Return whether a row is one of data alone: a metric that text and the screen leave out."""
    return isinstance(row, MetricRow) and row.figure is not None and not row.figure.shown


@pytest.mark.parametrize("page", PAGES)
def test_page_has_same_cells_in_report_data_and_screen(page: str, tmp_path: Path) -> None:
    trace = page_trace(page, tmp_path)
    content = page_content(page, trace)
    rows = [*content.rows]
    assert rows
    records = [as_record(content.columns, row) for row in content.data_rows or rows]
    assert json.loads("\n".join(report_lines(trace, page, "json")))[page] == json.loads(json.dumps(records))
    report = [*report_lines(trace, page, width=WIDTH)]
    screen = screen_texts(page, trace, content)
    for row in rows:
        if is_hidden(row):
            continue
        cells = shown_cells(content, row, SCREEN_LACKS.get(page, ()))
        assert any(has_cells(text, cells) for text in screen), f"the screen lacks {cells}"
        if content.report is None or page in TABLE_IN_REPORT:
            cells = shown_cells(content, row, ())
            assert any(has_cells(line, cells) for line in report), f"the report lacks {cells}"


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
