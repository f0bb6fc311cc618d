"""Pages of files of Nsight Compute: kernels, metrics, averages."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.shorten import cut_middle, shorten
from tui_probe.draw.table import Column, Row
from tui_probe.draw.table_content import PageTexts
from tui_probe.nsight.analysis.kernel_metrics import KernelMetrics, metrics_of
from tui_probe.nsight.analysis.launch_means import TIME_METRIC, Average, averages
from tui_probe.nsight.analysis.launch_selection import AUTOMATIC, IterationPlan, LaunchSelection, select_launches
from tui_probe.nsight.importers.ncu import COLD_CACHE_NOTE
from tui_probe.nsight.pages.cells import (
    cut_texts,
    nanoseconds,
    quantity,
    shape_columns,
    short_names,
    shorten_names,
    stem,
)
from tui_probe.nsight.pages.explanations import EXPLANATIONS
from tui_probe.pages.table_page import PagePart, TablePage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.nsight.importers.ncu_table import Extent, Metric, NcuLaunch, NcuTable

_METRIC_PART: Final = 1 / 4
"""Part of a table's width for a kernel next to its metrics."""


@dataclass(frozen=True, slots=True)
class NcuReport:
    """Imported files, and what the user says of the program."""

    table: NcuTable
    plan: IterationPlan = AUTOMATIC

    def choice(self) -> LaunchSelection:
        return select_launches(self.table, self.plan)

    @property
    def names(self) -> list[str]:
        """Names of the files, short ones where they tell them apart."""
        return short_names([file.name for file in self.table.files])


def file_head(report: NcuReport) -> list[tuple[str, str]]:
    """Return the names of the files and a summary of their content."""
    table = report.table
    kernels = len({launch.kernel for launch in table.launches})
    processes = len({(launch.file, launch.process) for launch in table.launches})
    contents = ", ".join(
        [
            units.counted(len(table.launches), "group" if table.is_summary else "launch"),
            units.counted(kernels, "kernel"),
            units.counted(len(table.metrics), "metric"),
            units.counted(processes, "process"),
        ]
    )
    return [("files", ", ".join(report.names)), ("seen", contents)]


def file_notes(report: NcuReport) -> Iterator[str]:
    """Yield the notes of the files."""
    for name, file in zip(report.names, report.table.files, strict=True):
        yield from (f"{name}: {note}" for note in file.notes)


@dataclass(frozen=True, slots=True)
class KernelRow:
    """A kernel of a file with one grid and block, and the outcome of its launches."""

    file: str
    metrics: KernelMetrics
    kept_launches: int | None
    reason: str


def kernels_page(report: NcuReport) -> TablePage[KernelRow]:
    """Return the page of kernels: number of launches, share of the time, and whether it is one of the iterations."""
    choice = report.choice()
    rows = sorted(_kernel_rows(report, choice), key=_sort_key)
    notes = [*_missing_notes(choice), *choice.notes, *_untimed_notes(rows), *file_notes(report)]
    texts = PageTexts(file_head(report), loop_lines(choice, report.names), notes, EXPLANATIONS["kernels"])
    extra = {"expected_missing": list(choice.missing_names)}
    shapes = [(row.file, row.metrics.shape) for row in rows]
    columns = shorten_names(
        shape_columns(file_columns(KERNEL_COLUMNS, report), shapes), (shape.kernel for _, shape in shapes)
    )
    return TablePage(
        "kernels", "Kernels", columns, rows, texts, extra, part_of_row=_metrics_of_row, part_page="metrics"
    )


def _sort_key(row: KernelRow) -> tuple[bool, float, float]:
    """Order: kept kernels first, by kept time, then by time of all launches; without times in order of launching."""
    return row.kept_launches == 0, -(row.metrics.counted_time or 0.0), -(row.metrics.total or 0.0)


def _untimed_notes(rows: Sequence[KernelRow]) -> Iterator[str]:
    """Yield a note on the files without times, and how to collect them."""
    timed_files = {row.file for row in rows if row.metrics.total is not None}
    files = list(dict.fromkeys(row.file for row in rows if row.file not in timed_files))
    if files:
        yield (
            f"{', '.join(files)}: launch times were not collected, so there are no shares and kernels are in launch"
            f" order; collect times with ncu --metrics {TIME_METRIC}, or --section SpeedOfLight"
        )


def _metrics_of_row(row: KernelRow) -> tuple[str, PagePart]:
    shape = row.metrics.shape
    return "metrics", PagePart("kernel", shape.kernel, key=(row.file, shape.grid, shape.block))


def file_columns(columns: tuple[Column[Row], ...], report: NcuReport) -> tuple[Column[Row], ...]:
    """The columns; the file's is in every table of several files, however narrow, and in no other."""
    if len(report.names) < 2:
        return tuple(replace(column, text=None) if column.key == "file" else column for column in columns)
    return tuple(replace(column, rank=0) if column.key == "file" else column for column in columns)


def _missing_notes(choice: LaunchSelection) -> Iterator[str]:
    for name in choice.missing_names:
        yield f"no kernel with “{name}” in its name was launched, so all totals exclude it"


def loop_lines(choice: LaunchSelection, names: Sequence[str]) -> list[str]:
    """Describe the repeated parts, one line each."""
    lines = []
    for loop in choice.loops:
        origin = "found in the launch sequence" if loop.is_detected else "as specified"
        per_iteration, times = round(len(loop.launches) / loop.times), units.counted(loop.times, "iteration")
        process = f", process {loop.process}" if loop.process is not None else ""
        lines.append(
            f"{names[loop.file]}{process}: {times} of {units.counted(per_iteration, 'launch')} each, {origin};"
            f" averages cover the last {units.counted(loop.runs, 'iteration')}"
        )
    for loop in choice.whole_processes:
        process = f", process {loop.process}" if loop.process is not None else ""
        lines.append(f"{names[loop.file]}{process}: {units.counted(len(loop.launches), 'launch')}, no warm-up removed")
    return lines


def _kernel_rows(report: NcuReport, choice: LaunchSelection) -> list[KernelRow]:
    outcomes: dict[tuple[int, object], list[Any]] = {}
    for outcome in choice.outcomes:
        outcomes.setdefault((outcome.file, outcome.shape), []).append(outcome)
    numbers = {file.name: number for number, file in enumerate(report.table.files)}
    rows = []
    for metrics in metrics_of(report.table, choice.measured_launches):
        number = numbers[metrics.origin]
        shape_outcomes = outcomes.get((number, metrics.shape), [])
        kept_launches = sum(outcome.kept_launches for outcome in shape_outcomes) if shape_outcomes else None
        reasons = dict.fromkeys(outcome.reason for outcome in shape_outcomes)
        reason = "; ".join(reasons) or "this summary has no individual launches"
        rows.append(KernelRow(report.names[number], metrics, kept_launches, reason))
    return rows


def _extent(value: Extent | None) -> str:
    return units.extent(value)


KERNEL_COLUMNS: Final[tuple[Column[KernelRow], ...]] = (
    Column("file", lambda r: r.file, "file", lambda r: stem(r.file),
           right=False, rank=3, narrow=16, shorten=cut_middle),
    Column("launches", lambda r: r.metrics.launches, "launches",
        lambda r: units.count(r.metrics.launches)),
    Column("kept", lambda r: r.kept_launches, "kept", lambda r: units.count(r.kept_launches)),
    Column("reason", lambda r: r.reason, "why", lambda r: r.reason, right=False, narrow=16),
    Column("total_ns", lambda r: r.metrics.total, "total",
        lambda r: nanoseconds(r.metrics.total), rank=3),
    Column(
        "kept_time_ns", lambda r: r.metrics.counted_time, "kept time",
        lambda r: nanoseconds(r.metrics.counted_time), rank=1
    ),
    Column("time_ns", lambda r: r.metrics.time, "mean", lambda r: nanoseconds(r.metrics.time), rank=2),
    Column("p99_ns", lambda r: r.metrics.p99, "p99", lambda r: nanoseconds(r.metrics.p99), rank=2),
    Column("share_of_time", lambda r: r.metrics.share, "share", lambda r: units.share(r.metrics.share)),
    Column("grid", lambda r: r.metrics.shape.grid, "grid",
        lambda r: _extent(r.metrics.shape.grid), rank=2),
    Column("block", lambda r: r.metrics.shape.block, "block",
        lambda r: _extent(r.metrics.shape.block), rank=2),
    Column(
        "kernel", lambda r: r.metrics.shape.kernel, "kernel", lambda r: r.metrics.shape.kernel, right=False,
        narrow=16, shorten=shorten,
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One value of one launch."""

    file: str
    launch: NcuLaunch
    metric: Metric
    value: float | str | None


class MetricRows:
    """The rows of a table, made as they are asked for."""

    def __init__(self, report: NcuReport) -> None:
        self._table = report.table
        self._names = report.names

    def __len__(self) -> int:
        return len(self._table)

    def __getitem__(self, row: int) -> MetricRow:
        table = self._table
        launch = table.launches[table.launch[row]]
        number = float(table.value[row])
        value = table.text(row) if np.isnan(number) else int(number) if number.is_integer() else number
        return MetricRow(self._names[launch.file], launch, table.metrics[table.metric[row]], value)

    def __iter__(self) -> Iterator[MetricRow]:
        return (self[row] for row in range(len(self)))


def metrics_page(report: NcuReport) -> TablePage[MetricRow]:
    """Everything that was measured, one row per value."""
    texts = PageTexts(file_head(report), (), [*file_notes(report), COLD_CACHE_NOTE], EXPLANATIONS["metrics"])
    rows: Any = MetricRows(report)
    columns = cut_texts(METRIC_COLUMNS, "metric", (metric.name for metric in report.table.metrics))
    names = (launch.kernel for launch in report.table.launches)
    columns = shorten_names(file_columns(columns, report), names, _METRIC_PART)
    return TablePage("metrics", "Metrics", columns, rows, texts, is_in_part=_is_in_part)


def _is_in_part(row: MetricRow, part: PagePart) -> bool:
    launch = row.launch
    return launch.kernel == part.name and (row.file, launch.grid, launch.block) == part.key


def _value(row: MetricRow) -> str:
    if row.value is None:
        return units.NOT_MEASURED
    if isinstance(row.value, str):
        return f"{row.value} {row.metric.unit}".rstrip()
    return quantity(float(row.value), row.metric.unit)


METRIC_COLUMNS: Final[tuple[Column[MetricRow], ...]] = (
    Column(
        "file", lambda r: r.file, "file", lambda r: stem(r.file), right=False, rank=6, narrow=16, shorten=cut_middle
    ),
    Column("launch", lambda r: r.launch.number, "#", lambda r: units.count(r.launch.number)),
    Column("process", lambda r: r.launch.process, "process", lambda r: str(r.launch.process or ""), rank=5),
    Column(
        "kernel",
        lambda r: r.launch.kernel,
        "kernel",
        lambda r: r.launch.kernel,
        right=False,
        narrow=12,
        shorten=shorten,
    ),
    Column("grid", lambda r: r.launch.grid, "grid", lambda r: _extent(r.launch.grid), rank=3),
    Column("block", lambda r: r.launch.block, "block", lambda r: _extent(r.launch.block), rank=4),
    Column("invocations", lambda r: r.launch.invocations),
    Column("metric", lambda r: r.metric.name, "metric", lambda r: r.metric.name, right=False, narrow=16),
    Column(
        "section", lambda r: r.metric.section, "section", lambda r: r.metric.section, right=False, rank=3, narrow=12
    ),
    Column("unit", lambda r: r.metric.unit),
    Column("value", lambda r: r.value, "value", _value, narrow=20),
)


@dataclass(frozen=True, slots=True)
class AverageRow:
    """One metric of one kernel of a file."""

    file: str
    average: Average


def averages_page(report: NcuReport) -> TablePage[AverageRow]:
    """Means over the measured launches of each kept kernel."""
    choice = report.choice()
    rows = [AverageRow(report.names[average.outcome.file], average) for average in averages(report.table, choice)]
    notes = [*choice.notes, COLD_CACHE_NOTE, *file_notes(report)]
    texts = PageTexts(file_head(report), loop_lines(choice, report.names), notes, EXPLANATIONS["averages"])
    title = "Averages over the measured launches"
    names = (row.average.outcome.shape.kernel for row in rows)
    shapes = ((row.file, row.average.outcome.shape) for row in rows)
    columns = shorten_names(shape_columns(file_columns(_average_columns(rows), report), shapes), names, _METRIC_PART)
    return TablePage("averages", title, columns, rows, texts)


def _average_columns(rows: Sequence[AverageRow]) -> tuple[Column[AverageRow], ...]:
    """The columns; those of section and process are in every table in which they tell two rows apart."""
    metrics = {row.average.metric for row in rows}
    has_sections = len({metric.name for metric in metrics}) < len({(metric.name, metric.section) for metric in metrics})
    has_processes = len({(row.file, row.average.outcome.process) for row in rows}) > len({row.file for row in rows})
    columns = []
    for column in cut_texts(AVERAGE_COLUMNS, "metric", (metric.name for metric in metrics)):
        if column.key == "section" and has_sections:
            column = replace(column, rank=0)
        elif column.key == "process" and has_processes:
            column = replace(column, title="process", text=lambda r: str(r.average.outcome.process or ""))
        columns.append(column)
    return tuple(columns)


def _quantity(row: AverageRow, value: float) -> str:
    return quantity(value, row.average.metric.unit)


AVERAGE_COLUMNS: Final[tuple[Column[AverageRow], ...]] = (
    Column("file", lambda r: r.file, "file", lambda r: stem(r.file),
           right=False, rank=6, narrow=16, shorten=cut_middle),
    Column("process", lambda r: r.average.outcome.process),
    Column(
        "kernel", lambda r: r.average.outcome.shape.kernel, "kernel", lambda r: r.average.outcome.shape.kernel,
        right=False, narrow=16, shorten=shorten,
    ),
    Column(
        "grid", lambda r: r.average.outcome.shape.grid, "grid",
        lambda r: units.extent(r.average.outcome.shape.grid), rank=4,
    ),
    Column(
        "block", lambda r: r.average.outcome.shape.block, "block",
        lambda r: units.extent(r.average.outcome.shape.block),
        rank=4,
    ),
    Column(
        "launches", lambda r: r.average.launches, "launches", lambda r: units.count(r.average.launches), rank=4
    ),
    Column("metric", lambda r: r.average.metric.name, "metric", lambda r: r.average.metric.name,
           right=False, narrow=24),
    Column(
        "section", lambda r: r.average.metric.section, "section", lambda r: r.average.metric.section,
        right=False, rank=5, narrow=12,
    ),
    Column("unit", lambda r: r.average.metric.unit),
    Column("mean", lambda r: r.average.mean, "mean", lambda r: _quantity(r, r.average.mean)),
    Column("least", lambda r: r.average.minimum, "min", lambda r: _quantity(r, r.average.minimum), rank=3),
    Column("most", lambda r: r.average.maximum, "max", lambda r: _quantity(r, r.average.maximum), rank=3),
)  # fmt: skip
