"""Pages of files of Nsight Systems: kernels, projected ranges and gaps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import Column, Row
from tui_probe.draw.table_content import PageTexts
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.nsight.analysis.projection import range_columns
from tui_probe.nsight.analysis.stream_times import (
    GAP_CAUSE_TEXTS,
    GAP_CAUSES,
    Gap,
    GapCause,
    Gaps,
    gaps,
)
from tui_probe.nsight.analysis.totals import KernelTotal, RangeSum, kernel_totals, range_sums
from tui_probe.nsight.importers.nsys_model import KernelSum, ProjectedRange, distinct_rows, system_id
from tui_probe.nsight.pages.cells import ProcessNames, cut_texts, moment, nanoseconds, shorten_names, show_moments
from tui_probe.nsight.pages.explanations import EXPLANATIONS
from tui_probe.nsight.pages.nsys_profile import NsysSources, found_text, nsys_head
from tui_probe.nsight.pages.nsys_rows import (
    GAP_VALUES,
    KERNEL_VALUES,
    GapBatch,
    NsysKernelRow,
    RowsOnDemand,
    count_few_blocks,
    in_batches,
    kernel_rows,
    known_number,
)
from tui_probe.pages.table_page import PagePart, TablePage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from tui_probe.nsight.importers.nsys_model import Kernels, Stream

MAX_TEXT_ROWS: Final = 10_000
"""Rows of a page in text: more are for programs, which read CSV or JSON."""
_MAX_INDENT: Final = 16
"""Levels of ranges that are indented."""
SUM_COLUMNS: Final[tuple[Column[KernelSum], ...]] = (
    Column("launches", lambda r: r.launches, "launches", lambda r: units.count(r.launches)),
    Column("total_ns", lambda r: r.total, "total", lambda r: nanoseconds(r.total)),
    Column("median_ns", lambda r: r.median, "median", lambda r: nanoseconds(r.median)),
    Column("least_ns", lambda r: r.minimum, "min", lambda r: nanoseconds(r.minimum), rank=1),
    Column("most_ns", lambda r: r.maximum, "max", lambda r: nanoseconds(r.maximum), rank=1),
    Column("kernel", lambda r: r.name, "kernel", lambda r: r.name, right=False, narrow=20, shorten=shorten),
    Column("mean_ns", lambda r: r.mean, "mean", lambda r: nanoseconds(r.mean), rank=1),
    Column("grid", lambda r: r.grid, "grid", lambda r: units.extent(r.grid), rank=2),
    Column("block", lambda r: r.block, "block", lambda r: units.extent(r.block), rank=2),
)
TOTAL_COLUMNS: Final[tuple[Column[TotalRow], ...]] = (
    Column("share", lambda r: r.total.share, "share", lambda r: units.share(r.total.share)),
    Column("total_ns", lambda r: r.total.total, "total", lambda r: nanoseconds(r.total.total)),
    Column("launches", lambda r: r.total.launches, "launches", lambda r: units.count(r.total.launches)),
    Column("mean_ns", lambda r: r.total.mean, "mean", lambda r: nanoseconds(round(r.total.mean))),
    Column("median_ns", lambda r: r.total.median, "median", lambda r: nanoseconds(round(r.total.median)), rank=2),
    Column("p99_ns", lambda r: r.total.p99, "p99", lambda r: nanoseconds(r.total.p99), rank=1),
    Column("most_ns", lambda r: r.total.maximum, "max", lambda r: nanoseconds(r.total.maximum), rank=3),
    Column("kernel", lambda r: r.name, "kernel", lambda r: r.name, right=False, narrow=20, shorten=shorten),
)
RANGE_SUM_COLUMNS: Final[tuple[Column[RangeSum], ...]] = (
    Column("share", lambda r: r.share, "share", lambda r: units.share(r.share)),
    Column("total_ns", lambda r: r.total, "in kernels", lambda r: nanoseconds(r.total)),
    Column("calls", lambda r: r.calls, "calls", lambda r: units.count(r.calls)),
    Column("mean_ns", lambda r: r.mean, "mean", lambda r: nanoseconds(r.mean)),
    Column("p99_ns", lambda r: r.p99, "p99", lambda r: nanoseconds(r.p99), rank=1),
    Column("kernels", lambda r: r.kernels, "kernels", lambda r: units.count(r.kernels)),
    Column("graphs", lambda r: r.graphs, "graphs", lambda r: units.count(r.graphs), rank=1),
    Column("range", lambda r: r.name, "range", lambda r: r.name, right=False, narrow=20),
)
_SHORT_CAUSES: Final[dict[GapCause, str]] = {"copy": "copy", "host": "launched late", "other": "waited"}
"""Causes in a column; the lines above the table have them in full."""


def kernels_page(sources: NsysSources) -> TablePage[Any]:
    """Return the page of every kernel on every stream, or of sums if a file has no more."""
    report = sources.report
    if not len(report.kernels) and report.sums:
        return _kernel_sums_page(sources)
    positions = np.flatnonzero(sources.matching)
    rows: Any = kernel_rows(sources, positions)
    few_count = count_few_blocks(sources, positions)
    findings = (
        [f"{units.count(few_count)} of {units.counted(len(rows), 'kernel')} with fewer blocks than SMs"]
        if few_count
        else []
    )
    findings += [_traced_text(rows)] if sources.traces else []
    texts = PageTexts(nsys_head(sources), findings, report.notes, EXPLANATIONS["nsys kernels"])
    opener = _kernel_in_trace if sources.traces else None
    return TablePage(
        "kernels",
        "Kernels",
        _kernel_columns(sources),
        rows,
        texts,
        _search_record(sources),
        kernel_of_row=opener,
        page_of_part=_part_maker(kernels_page, sources),
        text_rows=MAX_TEXT_ROWS,
    )


def _kernel_sums_page(sources: NsysSources) -> TablePage[Any]:
    """Return the page of a file that has sums over the launches of each kernel only."""
    report = sources.report
    sums = [total for total in report.sums if sources.search.lower() in total.name.lower()]
    texts = PageTexts(nsys_head(sources), (), report.notes, EXPLANATIONS["nsys kernels"])
    columns = shorten_names(SUM_COLUMNS, (total.name for total in sums))
    return TablePage("kernels", "Kernels", columns, sums, texts, _search_record(sources))


def _kernel_columns(sources: NsysSources) -> Sequence[Column[Any]]:
    """Return the columns that the files have something for."""
    report = sources.report
    columns_of_files = [column for column in NSYS_KERNEL_COLUMNS if column.key != "probed" or sources.traces]
    columns_of_files = in_batches(columns_of_files, KERNEL_VALUES)
    columns = shorten_names(by_process(columns_of_files, sources, lambda row: row.stream_place), report.kernels.names)
    columns = show_moments(columns, report.kernels.start)
    return columns if report.ranges is None else cut_texts(columns, "range", report.ranges.names)


def by_process(
    columns: Sequence[Column[Row]], sources: NsysSources, stream_of: Callable[[Row], Stream | None]
) -> list[Column[Row]]:
    """Show process and GPU columns only if there are several; add a file column if there are several files.

    Tables show the file only if ids of the system do not distinguish processes.
    """
    report = sources.report
    names = ProcessNames(report.files, report.kernels.streams)
    has_one_gpu = len({stream.device for stream in report.kernels.streams}) < 2 and len(report.devices) < 2
    hidden_keys = {*(() if names.has_several else ("process",)), *(("device",) if has_one_gpu else ())}
    shown_columns = [replace(column, text=None) if column.key in hidden_keys else column for column in columns]
    if len(report.files) > 1 and names.has_several:

        def file(row: Row) -> str | None:
            return names.file(stream_of(row))

        text = (lambda row: file(row) or "") if names.has_files else None
        shown_columns.append(Column("file", file, "file", text, right=False, narrow=12, shorten=names.cut_file))
    return shown_columns


def _with_graphs(columns: Sequence[Column[Row]], sources: NsysSources) -> list[Column[Row]]:
    """Hide the column of graph executions in tables of files that have none."""
    has_graphs = bool(sources.report.kernels.is_graph.any())
    return [column if has_graphs or column.key != "graphs" else replace(column, text=None) for column in columns]


def _search_record(sources: NsysSources) -> dict[str, Any]:
    """Return the search and the ranges that it matches."""
    return {"search": sources.search, "ranges_meant": sources.matching_range_names} if sources.search else {}


def _part_maker(
    page: Callable[[NsysSources], TablePage[Any]], sources: NsysSources
) -> Callable[[PagePart | None], TablePage[Any]]:
    """Return a function that makes the page of a part of the profile."""
    return lambda part: page(sources.limited_to(part))


def _traced_text(rows: Iterable[NsysKernelRow]) -> str:
    """Return a text with the number of kernels that are in the traces."""
    is_traced = [row.traced_kernel is not None for row in rows]
    return f"{units.count(sum(is_traced))} of {units.counted(len(is_traced), 'kernel')} found in the traces"


def _kernel_in_trace(row: NsysKernelRow) -> tuple[Path, int] | None:
    kernel = row.traced_kernel
    return None if kernel is None else (kernel.trace.directory, kernel.index)


def _few_blocks_text(row: NsysKernelRow) -> str:
    return "few blocks" if row.has_few_blocks else ""


NSYS_KERNEL_COLUMNS: Final[tuple[Column[NsysKernelRow], ...]] = (
    Column("number", lambda r: r.number, "#", lambda r: units.count(r.number), rank=2),
    Column("start_ns", lambda r: r.start, "start", lambda r: moment(r.start)),
    Column("duration_ns", lambda r: r.duration, "time", lambda r: nanoseconds(r.duration)),
    Column("device", lambda r: r.device, "GPU", lambda r: units.count(r.device), rank=6),
    Column("stream", lambda r: r.stream, "stream", lambda r: units.count(r.stream), rank=1),
    Column("grid", lambda r: r.grid, "grid", lambda r: units.extent(r.grid)),
    Column("block", lambda r: r.block, "block", lambda r: units.extent(r.block), rank=1),
    Column("blocks", lambda r: r.blocks),
    Column("few_blocks", lambda r: r.has_few_blocks, "", _few_blocks_text, right=False, rank=1),
    Column("registers", lambda r: r.registers, "regs", lambda r: units.count(r.registers), rank=4),
    Column("shared_bytes", lambda r: r.shared_size, "shared", lambda r: units.size(r.shared_size), rank=5),
    Column("range", lambda r: r.range, "range", lambda r: r.range or "", right=False, rank=3, narrow=12),
    Column("kernel", lambda r: r.name, "kernel", lambda r: r.name, right=False, narrow=20, shorten=shorten),
    Column("probed", lambda r: r.trace_label, "probed", lambda r: r.trace_label or "", right=False, rank=3, narrow=12),
    Column("process", lambda r: r.process, "process", lambda r: _id_text(r.process), rank=2),
    Column("context", lambda r: r.context),
    Column("graph", lambda r: known_number(r.graph)),
)


@dataclass(frozen=True, slots=True)
class TotalRow:
    """All launches of one kernel."""

    name: str
    total: KernelTotal


def totals_page(sources: NsysSources) -> TablePage[Any]:
    """Return the page of kernels by total time; of sums if a file has no more."""
    report = sources.report
    if not len(report.kernels) and report.sums:
        return kernels_page(sources)
    matching = sources.matching
    kernels = report.kernels
    rows = [
        TotalRow(kernels.names[total.code], total)
        for total in kernel_totals(kernels.name[matching], kernels.duration[matching])
    ]
    texts = PageTexts(nsys_head(sources, timed=False), (), report.notes, EXPLANATIONS["nsys totals"])
    return TablePage(
        "totals",
        "Kernels by time",
        shorten_names(TOTAL_COLUMNS, kernels.names),
        rows,
        texts,
        _search_record(sources),
        part_of_row=_launches,
        page_of_part=_part_maker(totals_page, sources),
    )


def _launches(row: TotalRow) -> tuple[str, PagePart]:
    return "kernels", PagePart("kernel", row.name)


def _range_columns(sources: NsysSources) -> Sequence[Column[ProjectedRange]]:
    """Return the columns; range names are shortened so that no two look equal."""
    ranges = range_columns(sources.projected)
    columns = _with_graphs(by_process(RANGE_COLUMNS, sources, lambda row: row.stream), sources)
    names, _ = distinct_rows((ranges.level, ranges.name))
    texts = (_indented(ranges.names[code], level) for level, code in names)
    return show_moments(cut_texts(columns, "range", texts), ranges.start)


def _indented(name: str, level: int) -> str:
    return "  " * min(level, _MAX_INDENT) + name


def ranges_page(sources: NsysSources) -> TablePage[ProjectedRange]:
    """Return the page of NVTX ranges projected onto streams."""
    rows = sources.matching_ranges
    texts = PageTexts(nsys_head(sources), (), sources.report.notes, EXPLANATIONS["nsys ranges"])
    return TablePage(
        "ranges",
        "NVTX ranges on streams",
        _range_columns(sources),
        rows,
        texts,
        _search_record(sources),
        part_of_row=_select_range if len(sources.report.kernels) else None,  # sums only are of no range
        part_page="totals",
        text_rows=MAX_TEXT_ROWS,
    )


def _select_range(row: ProjectedRange) -> tuple[str, PagePart]:
    return "totals", PagePart(
        "range", row.name, row.start, row.end, None if row.stream is None else row.stream.number, row
    )


def _busy_share(row: ProjectedRange) -> float | None:
    return row.busy / row.duration if row.busy is not None and row.duration else None


def _stream_field(row: ProjectedRange, field: str) -> int | None:
    """Return a number of the range's stream; None if unknown."""
    return None if row.stream is None else known_number(getattr(row.stream, field))


def _id_text(value: int | None) -> str:
    """Format a process id: it is a name, without groups of digits."""
    return NOT_MEASURED if value is None else str(value)


def _host_duration(row: ProjectedRange) -> int | None:
    """Return the host's time in the range; None if unknown."""
    return None if row.host_start is None or row.host_end is None else row.host_end - row.host_start


RANGE_COLUMNS: Final[tuple[Column[ProjectedRange], ...]] = (
    Column("range", lambda r: r.name, "range", lambda r: _indented(r.name, r.level), right=False, narrow=20),
    Column("level", lambda r: r.level),
    Column(
        "device", lambda r: _stream_field(r, "device"), "GPU", lambda r: units.count(_stream_field(r, "device")), rank=4
    ),
    Column(
        "stream",
        lambda r: _stream_field(r, "number"),
        "stream",
        lambda r: units.count(_stream_field(r, "number")),
        rank=2,
    ),
    Column("start_ns", lambda r: r.start, "start", lambda r: moment(r.start)),
    Column("duration_ns", lambda r: r.duration, "time", lambda r: nanoseconds(r.duration)),
    Column("kernels", lambda r: r.kernels, "kernels", lambda r: units.count(r.kernels)),
    Column("kernel_time_ns", lambda r: r.busy, "in kernels", lambda r: nanoseconds(r.busy), rank=1),
    Column("busy", _busy_share, "busy", lambda r: units.share(_busy_share(r)), rank=1),
    Column("host_start_ns", lambda r: r.host_start),
    Column("host_duration_ns", _host_duration, "on host", lambda r: nanoseconds(_host_duration(r)), rank=3),
    Column("process", lambda r: r.process, "process", lambda r: _id_text(r.process), rank=3),
    Column("context", lambda r: _stream_field(r, "context")),
    Column("graphs", lambda r: r.graphs, "graphs", lambda r: units.count(r.graphs), rank=1),
)


def sums_page(sources: NsysSources) -> TablePage[RangeSum]:
    """Return the page of ranges summed by name, that with most time in kernels first."""
    report = sources.report
    ranges = range_columns(sources.matching_ranges)
    shown_names = {ranges.names[code] for code in np.unique(ranges.name).tolist()}
    all_sums = range_sums(report.kernels, report.ranges, sources.projected)
    texts = PageTexts(nsys_head(sources, timed=False), (), report.notes, EXPLANATIONS["nsys sums"])
    return TablePage(
        "sums",
        "NVTX ranges by name",
        cut_texts(_with_graphs(RANGE_SUM_COLUMNS, sources), "range", shown_names),
        [total for total in all_sums if total.name in shown_names],
        texts,
        _search_record(sources),
        part_of_row=_select_name if len(report.kernels) else None,
        part_page="totals",
    )


def _select_name(row: RangeSum) -> tuple[str, PagePart]:
    return "totals", PagePart("range", row.name, key=row.name)


@dataclass(frozen=True, slots=True)
class GapRow:
    """A gap and the kernels around it."""

    gap: Gap
    stream: Stream
    previous_name: str
    next_name: str


def _gap_rows(shown: Gaps, kernels: Kernels) -> RowsOnDemand[GapRow]:
    """Return gaps as rows of a table."""

    def make(begin: int, end: int) -> list[GapRow]:
        gaps = [*shown.select(slice(begin, end))]
        befores, afters = (
            [kernels.names[code] for code in kernels.name[[getattr(gap, side) for gap in gaps]].tolist()]
            for side in ("previous_kernel", "next_kernel")
        )
        places = (kernels.streams[gap.queue] for gap in gaps)
        return [GapRow(*row) for row in zip(gaps, places, befores, afters, strict=True)]

    def batch(begin: int, end: int) -> GapBatch:
        return GapBatch(kernels, shown.select(slice(begin, end)), lambda: make(begin, end))

    return RowsOnDemand(len(shown), make, batch)


def gaps_page(sources: NsysSources) -> TablePage[GapRow]:
    """Return the page of gaps of streams between kernels, the longest first."""
    report, matching = sources.report, sources.matching
    all_gaps = gaps(report.kernels, report.copies)
    shown_gaps = (
        all_gaps.select(matching[all_gaps.previous_kernel] | matching[all_gaps.next_kernel])
        if sources.is_filtered
        else all_gaps
    )
    rows: Any = _gap_rows(shown_gaps, report.kernels)
    scope = "next to matches" if sources.is_filtered else "of all streams"
    idle_time = nanoseconds(int(shown_gaps.length.sum()))
    findings = [f"{idle_time} in {found_text(sources, len(shown_gaps), len(all_gaps), 'gap')} {scope}"]
    for cause, reason in GAP_CAUSE_TEXTS.items():
        lengths = shown_gaps.length[shown_gaps.cause == GAP_CAUSES.index(cause)]
        if len(lengths):
            findings.append(f"  {reason}: {nanoseconds(int(lengths.sum()))} in {units.counted(len(lengths), 'gap')}")
    texts = PageTexts(nsys_head(sources), findings if len(shown_gaps) else (), report.notes, EXPLANATIONS["nsys gaps"])
    page_of_part = _part_maker(gaps_page, sources)
    columns = in_batches(GAP_COLUMNS, GAP_VALUES)
    return TablePage(
        "gaps",
        "Gaps between kernels",
        show_moments(
            shorten_names(by_process(columns, sources, lambda row: row.stream), report.kernels.names), shown_gaps.start
        ),
        rows,
        texts,
        _search_record(sources),
        page_of_part=page_of_part,
        text_rows=MAX_TEXT_ROWS,
    )


GAP_COLUMNS: Final[tuple[Column[GapRow], ...]] = (
    Column("start_ns", lambda r: r.gap.start, "start", lambda r: moment(r.gap.start)),
    Column("length_ns", lambda r: r.gap.length, "gap", lambda r: nanoseconds(r.gap.length)),
    Column("device", lambda r: r.stream.device, "GPU", lambda r: units.count(r.stream.device), rank=4),
    Column(
        "stream",
        lambda r: known_number(r.stream.number),
        "stream",
        lambda r: units.count(known_number(r.stream.number)),
        rank=2,
    ),
    Column("launched_late_ns", lambda r: r.gap.delay),
    Column("why", lambda r: r.gap.cause),
    Column(
        "reason",
        title="why",
        text=lambda r: _SHORT_CAUSES[r.gap.cause] if r.gap.cause else "",
        right=False,
        rank=1,
    ),
    Column("after_kernel", lambda r: r.gap.previous_kernel),
    Column(
        "after_name",
        lambda r: r.previous_name,
        "after",
        lambda r: r.previous_name,
        right=False,
        narrow=16,
        shorten=shorten,
    ),
    Column("before_kernel", lambda r: r.gap.next_kernel),
    Column(
        "before_name", lambda r: r.next_name, "before", lambda r: r.next_name, right=False, narrow=16, shorten=shorten
    ),
    Column(
        "process",
        lambda r: system_id(r.stream.process),
        "process",
        lambda r: _id_text(system_id(r.stream.process)),
        rank=3,
    ),
    Column("context", lambda r: known_number(r.stream.context)),
)
