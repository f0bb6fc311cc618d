"""Metrics of the kernels that count, averaged over their measured launches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.shorten import apart, cut_middle, shorten
from tui_probe.draw.table import Column
from tui_probe.nsight.analysis.averages import Average, averages
from tui_probe.nsight.importers.ncu import COLD_CACHE
from tui_probe.nsight.pages.explanations import EXPLANATIONS
from tui_probe.nsight.pages.figures import quantity, stem
from tui_probe.nsight.pages.names import by_shape, names_told_apart
from tui_probe.nsight.pages.ncu_pages import by_file, file_head, file_notes, loop_lines
from tui_probe.pages.table_page import TablePage, Words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.nsight.pages.ncu_pages import NcuReport


@dataclass(frozen=True, slots=True)
class AverageRow:
    """One metric of one kernel of a file."""

    file: str
    average: Average


def averages_page(report: NcuReport) -> TablePage[AverageRow]:
    """Means over the measured launches of each kept kernel."""
    choice = report.choice()
    rows = [AverageRow(report.names[each.fate.file], each) for each in averages(report.table, choice)]
    notes = [*choice.notes, COLD_CACHE, *file_notes(report)]
    words = Words(file_head(report), loop_lines(choice, report.names), notes, EXPLANATIONS["averages"])
    title = "Averages over the measured launches"
    names = (row.average.fate.shape.kernel for row in rows)
    shapes = ((row.file, row.average.fate.shape) for row in rows)
    columns = names_told_apart(by_shape(by_file(_of_these(rows), report), shapes), names)
    return TablePage("averages", title, columns, rows, words)


def _of_these(rows: Sequence[AverageRow]) -> tuple[Column[AverageRow], ...]:
    """The columns, of which those of section and process are in every table in which they tell two rows apart."""
    metrics = {row.average.metric for row in rows}
    sections = len({metric.name for metric in metrics}) < len({(metric.name, metric.section) for metric in metrics})
    processes = len({(row.file, row.average.fate.process) for row in rows}) > len({row.file for row in rows})
    names = apart(metric.name for metric in metrics)
    columns = []
    for column in AVERAGE_COLUMNS:
        if column.key == "metric":
            column = replace(column, shorten=names)
        elif column.key == "section" and sections:
            column = replace(column, rank=0)
        elif column.key == "process" and processes:
            column = replace(column, title="process", text=lambda r: str(r.average.fate.process or ""))
        columns.append(column)
    return tuple(columns)


def _quantity(row: AverageRow, value: float) -> str:
    return quantity(value, row.average.metric.unit)


AVERAGE_COLUMNS: Final[tuple[Column[AverageRow], ...]] = (
    Column("file", lambda r: r.file, "file", lambda r: stem(r.file), False, rank=6, narrow=16, shorten=cut_middle),
    Column("process", lambda r: r.average.fate.process),
    Column(
        "kernel", lambda r: r.average.fate.shape.kernel, "kernel", lambda r: r.average.fate.shape.kernel, False,
        narrow=16, shorten=shorten,
    ),
    Column(
        "grid", lambda r: r.average.fate.shape.grid, "grid", lambda r: units.extent(r.average.fate.shape.grid), rank=3
    ),
    Column(
        "block", lambda r: r.average.fate.shape.block, "block", lambda r: units.extent(r.average.fate.shape.block),
        rank=4,
    ),
    Column(
        "launches", lambda r: r.average.launches, "launches", lambda r: units.count(r.average.launches), rank=2
    ),
    Column("metric", lambda r: r.average.metric.name, "metric", lambda r: r.average.metric.name, False, narrow=24),
    Column(
        "section", lambda r: r.average.metric.section, "section", lambda r: r.average.metric.section, False, rank=5,
        narrow=12,
    ),
    Column("unit", lambda r: r.average.metric.unit),
    Column("mean", lambda r: r.average.mean, "mean", lambda r: _quantity(r, r.average.mean)),
    Column("least", lambda r: r.average.least, "least", lambda r: _quantity(r, r.average.least), rank=1),
    Column("most", lambda r: r.average.most, "most", lambda r: _quantity(r, r.average.most), rank=1),
)  # fmt: skip
