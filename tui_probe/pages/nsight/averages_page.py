"""Metrics of the kernels that count, averaged over their measured launches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.analysis.averages import Average, averages
from tui_probe.draw import units
from tui_probe.draw.shorten import cut_middle, shorten
from tui_probe.draw.table import Column
from tui_probe.importers.ncu import COLD_CACHE
from tui_probe.pages.nsight.explanations import EXPLANATIONS
from tui_probe.pages.nsight.figures import quantity, stem
from tui_probe.pages.nsight.names import names_told_apart
from tui_probe.pages.nsight.ncu_pages import by_file, file_head, file_notes, loop_lines
from tui_probe.pages.nsight.page import TablePage, Words

if TYPE_CHECKING:
    from tui_probe.pages.nsight.ncu_pages import NcuReport


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
    columns = names_told_apart(by_file(AVERAGE_COLUMNS, report), names)
    return TablePage("averages", title, columns, rows, words)


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
