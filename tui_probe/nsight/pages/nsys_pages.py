"""The pages about files of Nsight Systems: kernels, projected ranges and gaps."""

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
from tui_probe.nsight.analysis.range_sums import RangeSum, range_sums
from tui_probe.nsight.analysis.stream_times import (
    GAP_CAUSE_TEXTS,
    GAP_CAUSES,
    Gap,
    GapCause,
    Gaps,
    KernelTotal,
    gaps,
    kernel_totals,
)
from tui_probe.nsight.importers.nsys_model import UNKNOWN, KernelSum, ProjectedRange, distinct_rows, system_id
from tui_probe.nsight.pages.cells import ProcessNames, cut_texts, moment, nanoseconds, shorten_names, show_moments
from tui_probe.nsight.pages.explanations import EXPLANATIONS
from tui_probe.nsight.pages.nsys_profile import (
    NsysKernelRow,
    NsysSources,
    RowsOnDemand,
    few_blocks,
    found_text,
    kernel_rows,
    nsys_head,
    ranges_searched,
)
from tui_probe.nsight.pages.row_batches import GAP_VALUES, KERNEL_VALUES, GapBatch, in_batches
from tui_probe.pages.table_page import Only, TablePage

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
    Column("least_ns", lambda r: r.least, "least", lambda r: nanoseconds(r.least), rank=1),
    Column("most_ns", lambda r: r.most, "most", lambda r: nanoseconds(r.most), rank=1),
    Column("kernel", lambda r: r.name, "kernel", lambda r: r.name, False, narrow=20, shorten=shorten),
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
    Column("most_ns", lambda r: r.total.most, "most", lambda r: nanoseconds(r.total.most), rank=3),
    Column("kernel", lambda r: r.name, "kernel", lambda r: r.name, False, narrow=20, shorten=shorten),
)
RANGE_SUM_COLUMNS: Final[tuple[Column[RangeSum], ...]] = (
    Column("share", lambda r: r.share, "share", lambda r: units.share(r.share)),
    Column("total_ns", lambda r: r.total, "in kernels", lambda r: nanoseconds(r.total)),
    Column("calls", lambda r: r.calls, "calls", lambda r: units.count(r.calls)),
    Column("mean_ns", lambda r: r.mean, "mean", lambda r: nanoseconds(r.mean)),
    Column("p99_ns", lambda r: r.p99, "p99", lambda r: nanoseconds(r.p99), rank=1),
    Column("kernels", lambda r: r.kernels, "kernels", lambda r: units.count(r.kernels)),
    Column("graphs", lambda r: r.graphs, "graphs", lambda r: units.count(r.graphs), rank=1),
    Column("range", lambda r: r.name, "range", lambda r: r.name, False, narrow=20),
)
_SHORT_CAUSES: Final[dict[GapCause, str]] = {"copy": "copy", "host": "launched late", "other": "waited"}
"""Causes in a column; the lines above the table have them in full."""


def kernels_page(sources: NsysSources) -> TablePage[Any]:
    """Every kernel on every stream, or sums where a file has no more."""
    report = sources.report
    if not len(report.kernels) and report.sums:
        sums = [total for total in report.sums if sources.search.lower() in total.name.lower()]
        texts = PageTexts(nsys_head(sources), (), report.notes, EXPLANATIONS["nsys kernels"])
        return TablePage(
            "kernels",
            "Kernels",
            shorten_names(SUM_COLUMNS, (total.name for total in sums)),
            sums,
            texts,
            _searched(sources),
        )
    positions = np.flatnonzero(sources.found)
    rows: Any = kernel_rows(sources, positions)
    few = few_blocks(sources, positions)
    findings = [f"{units.count(few)} of {units.counted(len(rows), 'kernel')} with fewer blocks than SMs"] if few else []
    shown = [column for column in NSYS_KERNEL_COLUMNS if column.key != "probed" or sources.traces]
    shown = in_batches(shown, KERNEL_VALUES)
    columns = shorten_names(by_process(shown, sources, lambda row: row.at), report.kernels.names)
    columns = show_moments(columns, report.kernels.start)
    if report.ranges is not None:
        columns = cut_texts(columns, "range", report.ranges.names)
    findings += [_traced(rows)] if sources.traces else []
    texts = PageTexts(nsys_head(sources), findings, report.notes, EXPLANATIONS["nsys kernels"])
    opens = _place if sources.traces else None
    return TablePage(
        "kernels",
        "Kernels",
        columns,
        rows,
        texts,
        _searched(sources),
        opens=opens,
        left=_left(kernels_page, sources),
        text_rows=MAX_TEXT_ROWS,
    )


def by_process(
    columns: Sequence[Column[Row]], sources: NsysSources, stream_of: Callable[[Row], Stream | None]
) -> list[Column[Row]]:
    """The columns, with those of process and GPU in tables of several only, and with the file of a process if there
    are several files: in tables if ids of the system do not distinguish processes.
    """
    report = sources.report
    names = ProcessNames(report.files, report.kernels.streams)
    one_gpu = len({stream.device for stream in report.kernels.streams}) < 2 and len(report.devices) < 2
    left_out = {*(() if names.several else ("process",)), *(("device",) if one_gpu else ())}
    shown = [replace(column, text=None) if column.key in left_out else column for column in columns]
    if len(report.files) > 1 and names.several:
        text = (lambda row: names.file(stream_of(row)) or "") if names.by_file else None
        value: Callable[[Row], str | None] = lambda row: names.file(stream_of(row))  # noqa: E731
        shown.append(Column("file", value, "file", text, False, narrow=12, shorten=names.cut))
    return shown


def _with_graphs(columns: Sequence[Column[Row]], sources: NsysSources) -> list[Column[Row]]:
    """The columns; that of graph executions is only in tables of files that have some."""
    several = bool(sources.report.kernels.is_graph.any())
    return [column if several or column.key != "graphs" else replace(column, text=None) for column in columns]


def _searched(sources: NsysSources) -> dict[str, Any]:
    """Return the search and the ranges that it matches."""
    return {"search": sources.search, "ranges_meant": ranges_searched(sources)} if sources.search else {}


def _left(
    page: Callable[[NsysSources], TablePage[Any]], sources: NsysSources
) -> Callable[[Only | None], TablePage[Any]]:
    """The page of a part of the profile."""
    return lambda only: page(sources.filtered(only))


def _traced(rows: Iterable[NsysKernelRow]) -> str:
    """Return a text with the number of kernels that are in the traces."""
    traced = [row.traced is not None for row in rows]
    return f"{units.count(sum(traced))} of {units.counted(len(traced), 'kernel')} in the traces"


def _place(row: NsysKernelRow) -> tuple[Path, int] | None:
    kernel = row.traced
    return None if kernel is None else (kernel.trace.directory, kernel.index)


def _few(row: NsysKernelRow) -> str:
    return "few blocks" if row.few_blocks else ""


NSYS_KERNEL_COLUMNS: Final[tuple[Column[NsysKernelRow], ...]] = (
    Column("number", lambda r: r.number, "#", lambda r: units.count(r.number), rank=2),
    Column("start_ns", lambda r: r.start, "start", lambda r: moment(r.start)),
    Column("duration_ns", lambda r: r.duration, "time", lambda r: nanoseconds(r.duration)),
    Column("device", lambda r: r.device, "GPU", lambda r: units.count(r.device), rank=6),
    Column("stream", lambda r: r.stream, "stream", lambda r: units.count(r.stream), rank=1),
    Column("grid", lambda r: r.grid, "grid", lambda r: units.extent(r.grid)),
    Column("block", lambda r: r.block, "block", lambda r: units.extent(r.block), rank=1),
    Column("blocks", lambda r: r.blocks),
    Column("few_blocks", lambda r: r.few_blocks, "", _few, False, rank=1),
    Column("registers", lambda r: r.registers, "regs", lambda r: units.count(r.registers), rank=4),
    Column("shared_bytes", lambda r: r.shared, "shared", lambda r: units.size(r.shared), rank=5),
    Column("range", lambda r: r.range, "range", lambda r: r.range or "", False, rank=3, narrow=12),
    Column("kernel", lambda r: r.name, "kernel", lambda r: r.name, False, narrow=20, shorten=shorten),
    Column("probed", lambda r: r.probed, "probed", lambda r: r.probed or "", False, rank=3, narrow=12),
    Column("process", lambda r: r.process, "process", lambda r: _id(r.process), rank=2),
    Column("context", lambda r: r.context),
    Column("graph", lambda r: _known(r.graph)),
)


@dataclass(frozen=True, slots=True)
class TotalRow:
    """All launches of one kernel."""

    name: str
    total: KernelTotal


def totals_page(sources: NsysSources) -> TablePage[Any]:
    """Every kernel once, the one that takes most time first; sums where a file has no more."""
    report = sources.report
    if not len(report.kernels) and report.sums:
        return kernels_page(sources)
    meant = sources.found
    kernels = report.kernels
    rows = [
        TotalRow(kernels.names[total.code], total)
        for total in kernel_totals(kernels.name[meant], kernels.duration[meant])
    ]
    texts = PageTexts(nsys_head(sources, timed=False), (), report.notes, EXPLANATIONS["nsys totals"])
    return TablePage(
        "totals",
        "Kernels by time",
        shorten_names(TOTAL_COLUMNS, kernels.names),
        rows,
        texts,
        _searched(sources),
        narrows=_launches,
        left=_left(totals_page, sources),
    )


def _launches(row: TotalRow) -> tuple[str, Only]:
    return "kernels", Only("kernel", row.name)


def _range_columns(sources: NsysSources) -> Sequence[Column[ProjectedRange]]:
    """The columns; that of the name cuts no two names alike."""
    shown = range_columns(sources.projected)
    columns = _with_graphs(by_process(RANGE_COLUMNS, sources, lambda row: row.stream), sources)
    names, _ = distinct_rows((shown.level, shown.name))
    texts = (_indented(shown.names[code], level) for level, code in names)
    return show_moments(cut_texts(columns, "range", texts), shown.start)


def _indented(name: str, level: int) -> str:
    return "  " * min(level, _MAX_INDENT) + name


def ranges_page(sources: NsysSources) -> TablePage[ProjectedRange]:
    """NVTX ranges as streams saw them."""
    rows = sources.ranges_found
    texts = PageTexts(nsys_head(sources), (), sources.report.notes, EXPLANATIONS["nsys ranges"])
    return TablePage(
        "ranges",
        "NVTX ranges on streams",
        _range_columns(sources),
        rows,
        texts,
        _searched(sources),
        narrows=_inside if len(sources.report.kernels) else None,  # sums only are of no range
        leads="totals",
        text_rows=MAX_TEXT_ROWS,
    )


def _inside(row: ProjectedRange) -> tuple[str, Only]:
    return "totals", Only("range", row.name, row.start, row.end, None if row.stream is None else row.stream.number, row)


def _busy(each: ProjectedRange) -> float | None:
    return each.busy / each.duration if each.busy is not None and each.duration else None


def _of(each: ProjectedRange, field: str) -> int | None:
    """A number of the range's stream, None where it is not known."""
    return None if each.stream is None else _known(getattr(each.stream, field))


def _known(value: int) -> int | None:
    return None if value == UNKNOWN else value


def _id(value: int | None) -> str:
    """A process in a table: its number is a name, without groups of digits."""
    return NOT_MEASURED if value is None else str(value)


def _host(each: ProjectedRange) -> int | None:
    """Time of the host in the range."""
    return None if each.host_start is None or each.host_end is None else each.host_end - each.host_start


RANGE_COLUMNS: Final[tuple[Column[ProjectedRange], ...]] = (
    Column("range", lambda r: r.name, "range", lambda r: _indented(r.name, r.level), False, narrow=20),
    Column("level", lambda r: r.level),
    Column("device", lambda r: _of(r, "device"), "GPU", lambda r: units.count(_of(r, "device")), rank=4),
    Column("stream", lambda r: _of(r, "number"), "stream", lambda r: units.count(_of(r, "number")), rank=2),
    Column("start_ns", lambda r: r.start, "start", lambda r: moment(r.start)),
    Column("duration_ns", lambda r: r.duration, "time", lambda r: nanoseconds(r.duration)),
    Column("kernels", lambda r: r.kernels, "kernels", lambda r: units.count(r.kernels)),
    Column("kernel_time_ns", lambda r: r.busy, "in kernels", lambda r: nanoseconds(r.busy), rank=1),
    Column("busy", _busy, "busy", lambda r: units.share(_busy(r)), rank=1),
    Column("host_start_ns", lambda r: r.host_start),
    Column("host_duration_ns", _host, "on host", lambda r: nanoseconds(_host(r)), rank=3),
    Column("process", lambda r: r.process, "process", lambda r: _id(r.process), rank=3),
    Column("context", lambda r: _of(r, "context")),
    Column("graphs", lambda r: r.graphs, "graphs", lambda r: units.count(r.graphs), rank=1),
)


def sums_page(sources: NsysSources) -> TablePage[RangeSum]:
    """Ranges summed by name, that with most time in kernels first."""
    report = sources.report
    shown = range_columns(sources.ranges_found)
    shown_names = {shown.names[code] for code in np.unique(shown.name).tolist()}
    every = range_sums(report.kernels, report.ranges, sources.projected)
    texts = PageTexts(nsys_head(sources, timed=False), (), report.notes, EXPLANATIONS["nsys sums"])
    return TablePage(
        "sums",
        "NVTX ranges by name",
        cut_texts(_with_graphs(RANGE_SUM_COLUMNS, sources), "range", shown_names),
        [total for total in every if total.name in shown_names],
        texts,
        _searched(sources),
        narrows=_of_name if len(report.kernels) else None,
        leads="totals",
    )


def _of_name(row: RangeSum) -> tuple[str, Only]:
    return "totals", Only("range", row.name, key=row.name)


@dataclass(frozen=True, slots=True)
class GapRow:
    """A gap and the kernels around it."""

    gap: Gap
    at: Stream
    before_name: str
    after_name: str


def _gap_rows(found: Gaps, kernels: Kernels) -> RowsOnDemand[GapRow]:
    """Gaps as rows of a table."""

    def some(begin: int, end: int) -> list[GapRow]:
        gaps = [*found.chosen(slice(begin, end))]
        befores, afters = (
            [kernels.names[code] for code in kernels.name[[getattr(gap, side) for gap in gaps]].tolist()]
            for side in ("before", "after")
        )
        places = (kernels.streams[gap.queue] for gap in gaps)
        return [GapRow(*row) for row in zip(gaps, places, befores, afters, strict=True)]

    def batch(begin: int, end: int) -> GapBatch:
        return GapBatch(kernels, found.chosen(slice(begin, end)), lambda: some(begin, end))

    return RowsOnDemand(len(found), some, batch)


def gaps_page(sources: NsysSources) -> TablePage[GapRow]:
    """The gaps of streams between kernels, the longest first."""
    report, meant = sources.report, sources.found
    every = gaps(report.kernels, report.copies)
    shown = every.chosen(meant[every.before] | meant[every.after]) if sources.counts_part else every
    rows: Any = _gap_rows(shown, report.kernels)
    where = "next to what is found" if sources.counts_part else "of all streams"
    idle = nanoseconds(int(shown.length.sum()))
    findings = [f"{idle} in {found_text(sources, len(shown), len(every), 'gap')} {where}"]
    for why, reason in GAP_CAUSE_TEXTS.items():
        lengths = shown.length[shown.why == GAP_CAUSES.index(why)]
        if len(lengths):
            findings.append(f"  {reason}: {nanoseconds(int(lengths.sum()))} in {units.counted(len(lengths), 'gap')}")
    texts = PageTexts(nsys_head(sources), findings if len(shown) else (), report.notes, EXPLANATIONS["nsys gaps"])
    left = _left(gaps_page, sources)
    columns = in_batches(GAP_COLUMNS, GAP_VALUES)
    return TablePage(
        "gaps",
        "Gaps between kernels",
        show_moments(
            shorten_names(by_process(columns, sources, lambda row: row.at), report.kernels.names), shown.start
        ),
        rows,
        texts,
        _searched(sources),
        left=left,
        text_rows=MAX_TEXT_ROWS,
    )


GAP_COLUMNS: Final[tuple[Column[GapRow], ...]] = (
    Column("start_ns", lambda r: r.gap.start, "start", lambda r: moment(r.gap.start)),
    Column("length_ns", lambda r: r.gap.length, "gap", lambda r: nanoseconds(r.gap.length)),
    Column("device", lambda r: r.at.device, "GPU", lambda r: units.count(r.at.device), rank=4),
    Column("stream", lambda r: _known(r.at.number), "stream", lambda r: units.count(_known(r.at.number)), rank=2),
    Column("launched_late_ns", lambda r: r.gap.late),
    Column("why", lambda r: r.gap.why),
    Column(
        "reason",
        title="why",
        text=lambda r: _SHORT_CAUSES[r.gap.why] if r.gap.why else "",
        right=False,
        rank=1,
    ),
    Column("after_kernel", lambda r: r.gap.before),
    Column("after_name", lambda r: r.before_name, "after", lambda r: r.before_name, False, narrow=16, shorten=shorten),
    Column("before_kernel", lambda r: r.gap.after),
    Column("before_name", lambda r: r.after_name, "before", lambda r: r.after_name, False, narrow=16, shorten=shorten),
    Column("process", lambda r: system_id(r.at.process), "process", lambda r: _id(system_id(r.at.process)), rank=3),
    Column("context", lambda r: _known(r.at.context)),
)
