"""Page ``results``: every metric of every result in the report, and a table of the launches of a kernel.

Of a custom probe there are its values: the histogram of each field of a map, and the slots with the largest values.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.printable import printable, shell_word
from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import command_lines, hang_line, pad
from tui_probe.draw.table import Column
from tui_probe.draw.table_content import RemadeRows, TableContent
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.draw.view import Document, no_progress, with_progress
from tui_probe.errors import TraceError
from tui_probe.pages.unprobed_kernels import NO_MATCH_NOTE, no_match_lines
from tui_probe.probekit import probe_results
from tui_probe.probekit.custom_probe import FieldValues, custom_maps, field_values
from tui_probe.probekit.measured import (
    UNKNOWN_PROBE,
    AnalysedResult,
    analyse_results,
    known_probe,
    metric_text,
    probe_name,
)
from tui_probe.probekit.page_kinds import ViewKind
from tui_probe.probekit.probe_view import unknown_probe_advice
from tui_probe.probekit.registry import probe_named
from tui_probe.probekit.result_tables import (
    CountTable,
    distribution_row,
    distribution_titles,
    kernel_result_lines,
    result_lines,
)
from tui_probe.records.distribution import distribution
from tui_probe.verdicts.kernel_columns import by_time_share

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.metric import MetricValue
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.trace.model import KernelFacts, ProbedKernel, Trace

_MAX_BAR_CELLS: Final = 40
"""Cells of the longest bar of a histogram."""
MAX_LISTED: Final = 2
"""Results of a kernel that have a line each in the report of a run."""
MAX_ANALYSED: Final = 12
"""Results of a kernel that are read for the spread of its values there."""


def field_lines(values: FieldValues, launch_text: str, width: int) -> Iterator[Line]:
    yield ((f" {values.map}.{values.field} of {launch_text}", "title"),)
    spread = distribution(values.values.astype(np.float64))
    if spread is not None:
        yield ((" ", ""), *distribution_titles(f"{units.counted(len(values.values), 'value')}"))
        yield ((" ", ""), *distribution_row("", spread, _short_text))
    rows = values.histogram()
    largest_count = max(number for *_, number in rows)
    cells = min(_MAX_BAR_CELLS, max(width - 34, 4))
    for lower_bound, upper_bound, number in rows:
        bar = "█" * round(cells * number / largest_count) or ("▏" if number else "")
        yield (
            (f" {_short_text(lower_bound):>8} – {_short_text(upper_bound):<8} ", "dim"),
            (f"{units.count(number):>8} ", ""),
            (bar, "accent"),
        )
    titles = (("block", 10), (values.level, 10), ("value", 14))
    yield ((" " + "".join(pad(title, cells, right=True) for title, cells in titles), "head"),)
    for block, slot, value in values.largest_values:
        yield ((f" {block:>10}{slot:>10}{units.count(value):>14}", ""),)


def _short_text(value: float) -> str:
    """Format a value in up to 8 characters."""
    return units.count(round(value)) if abs(value) < 1e6 else f"{value:.3g}"


class MetricRow(NamedTuple):
    """One value of one result; no value where the result has a problem."""

    result: AnalysedResult
    metric_value: MetricValue | None


def run_results_lines(trace: Trace, cells: int, seconds: float | None = None) -> Iterator[str]:
    """The kernels with most GPU time first, and under each the spread of what was measured. Nothing without results.

    In a run with several probes, those with findings of their own are left to the page of results.

    Reading ends after that many ``seconds``: the kernels that are left are counted.
    """
    with_results, explained = _kernels_with_results(trace), set[str]()
    kernels = [
        kernel for kernel in with_results if not kernel.kernel.named_probes or known_probe(kernel).findings is None
    ]
    page = f"tui-probe report {shell_word(trace.directory)} --page results"
    deadline = None if seconds is None else time.monotonic() + seconds
    for index, kernel in enumerate(kernels):
        if deadline is not None and time.monotonic() > deadline:
            yield f"for {units.counted(len(kernels) - index, 'more kernel')}: {page}"
            return
        yield from _kernel_heading(kernel, cells, explained)
        yield from result_lines(trace, kernel, cells, MAX_LISTED, MAX_ANALYSED)
    if len(kernels) < len(with_results):
        yield from command_lines("every value of every launch:", page, cells)


def results_content(trace: Trace, progress: Progress = no_progress) -> TableContent[MetricRow]:
    """Return the page of all metrics of all results."""
    return TableContent(
        "results",
        "Results",
        METRIC_COLUMNS,
        RemadeRows(partial(metric_rows, trace, progress)),
        report=partial(results_page_lines, trace, progress=progress),
    )


def results_page_lines(trace: Trace, cells: int, progress: Progress = no_progress) -> Iterator[str]:
    """Yield the page as text, or how to get one: the kernels, and what was measured of each."""
    kernels, explained = _kernels_with_results(trace), set[str]()
    unmatched = no_match_lines(trace, cells)
    if not kernels and not unmatched:
        yield "No kernel has results: run a program with a probe (tui-probe run)."
    for kernel in with_progress(kernels, progress):
        yield from _kernel_heading(kernel, cells, explained)
        yield from kernel_result_lines(trace, kernel, cells, len(kernels))
    if unmatched:
        yield from ([""] if kernels else [])
        yield NO_MATCH_NOTE
        yield from (part for line in unmatched for part in hang_line(f"  {line}", cells))


def kernel_results_lines(trace: Trace, kernel: KernelFacts, cells: int, kernels: int) -> Iterator[str]:
    """Results of each probe of one of that many ``kernels``, under its name. Nothing without results."""
    for probed_kernel in kernel.by_probe():
        if probed_kernel.result_rows:
            yield from _kernel_heading(probed_kernel, cells, set())
            yield from kernel_result_lines(trace, probed_kernel, cells, kernels)


def _kernels_with_results(trace: Trace) -> list[ProbedKernel]:
    """Return the kernels that have results, once for each probe; those with most GPU time first.

    One in which a probe of one's own matched nothing is not among them: it is reported with all others of which that
    holds.
    """
    kernels = chain.from_iterable(kernel.by_probe() for kernel in by_time_share(trace.kernels))
    return [
        kernel
        for kernel in kernels
        if kernel.result_rows and not (kernel.matched_nothing and known_probe(kernel) is UNKNOWN_PROBE)
    ]


def _kernel_heading(kernel: KernelFacts, cells: int, explained: set[str]) -> Iterator[str]:
    """Yield the kernel and its probe; and how to read the lines of a probe that is not ``explained`` yet."""
    name = printable(probe_name(kernel))
    yield from hang_line(f"#{kernel.index} {shorten(printable(kernel.demangled), cells - 24)}  {name}", cells)
    probe = probe_named(name)
    if probe is not None and probe.line_caption not in explained | {""}:
        explained.add(probe.line_caption)
        yield from hang_line(f"  {probe.line_caption}", cells)


def metric_rows(trace: Trace, progress: Progress = no_progress) -> Iterator[MetricRow]:
    """Yield every value of every result."""
    for kernel in with_progress(trace.kernels, progress):
        for result in analyse_results(trace, kernel):
            if result.analysis is None:
                yield MetricRow(result, None)
            else:
                yield from (MetricRow(result, metric_value) for metric_value in result.metric_values)


METRIC_COLUMNS: Final[tuple[Column[MetricRow], ...]] = (
    Column("kernel", lambda r: r.result.kernel.index, "#", lambda r: str(r.result.kernel.index)),
    Column("name", lambda r: r.result.kernel.name),
    Column(
        "demangled",
        lambda r: r.result.kernel.demangled,
        "kernel",
        lambda r: r.result.kernel.demangled,
        right=False,
        narrow=16,
        shorten=shorten,
    ),
    Column(
        "launch",
        lambda r: r.result.launch.number if r.result.launch else None,
        "launch",
        lambda r: r.result.label,
        right=False,
    ),
    Column("result", lambda r: f"result/{r.result.file}"),
    Column("probe", lambda r: _probe_key(r), "probe", lambda r: _probe_key(r), right=False),
    Column(
        "figure",
        lambda r: r.metric_value.key if r.metric_value else None,
        "metric",
        lambda r: _metric_label(r),
        right=False,
    ),
    Column("value", lambda r: r.metric_value.value if r.metric_value else None, "value", lambda r: _value_text(r)),
    Column("unit", lambda r: r.metric_value.unit or None if r.metric_value else None),
    Column("blocks", lambda r: r.result.blocks),
    Column("blocks_measured", lambda r: r.result.blocks_measured),
    Column("threads_missing", lambda r: r.result.threads_missing),
    Column("simulated", lambda r: r.result.kernel.trace.state.simulated),
    Column("problem", lambda r: r.result.problem, "problem", lambda r: r.result.problem or "", right=False),
)
"""One row per value: ``value`` is null where a value was not measured; ``unit`` is null for plain counts.

Sums are of the ``blocks_measured``, which are fewer than ``blocks`` where a sample was taken.
"""


def _probe_key(row: MetricRow) -> str:
    return probe_name(row.result.kernel)


def _metric_label(row: MetricRow) -> str:
    return row.metric_value.label if row.metric_value else ""


def _value_text(row: MetricRow) -> str:
    return metric_text(row.metric_value) if row.metric_value else NOT_MEASURED


class CustomResults(CountTable):
    """The table of launches, and below it what the newest, or the one at hand, recorded."""

    def __init__(self, source: ViewSource, progress: Progress, notes: Sequence[str]) -> None:
        super().__init__(source, "Results", progress, notes)
        self.values: list[FieldValues] = []
        try:
            result = probe_results.read_result(source)
            kernel = result.kernel
            maps = () if kernel.matched_nothing else custom_maps(kernel.trace.directory, kernel.probe)
            self.values = list(field_values(result.result, maps))
            self.launch_text = result.launch_label
        except (TraceError, OSError):
            self.launch_text = ""

    def lines(self, width: int) -> Sequence[Line]:
        """Return the table, then a section for each field."""
        lines = [*super().lines(width)]
        for values in self.values:
            lines += [(), *field_lines(values, self.launch_text, width)]
        return lines

    def record(self) -> dict[str, Any]:
        """Return the JSON record with the values of each field."""
        return {**super().record(), "values": [values.record() for values in self.values]}


def _no_results_reason(source: ViewSource) -> str | None:
    kernel, launch = source.kernel, source.launch
    if kernel.status in ("skipped", "failed", "excluded"):
        return f"the kernel was not probed: {kernel.reason or kernel.status}"
    if launch is not None and launch.result is None:
        return f"launch {launch.number} has no result: {launch.reason or 'it was not saved'}"
    return None if kernel.result_rows else f"no result was saved{' yet' if kernel.trace.state.is_running else ''}"


class ProbeTables(Document):
    """Results of several probes, a table for each."""

    def __init__(self, tables: Sequence[tuple[str, CountTable]]) -> None:
        self.title = tables[0][1].title
        self.tables = tables

    def lines(self, width: int) -> Sequence[Line]:
        """Return the tables, the name of its probe above each."""
        lines: list[Line] = []
        for probe, table in self.tables:
            lines += [*([()] if lines else []), ((f"-p {printable(probe)}", "head"),), *table.lines(width)]
        return lines

    def sortable(self) -> Mapping[str, str]:
        return {key: title for _, table in self.tables for key, title in table.sortable().items()}

    @property
    def sorted_column(self) -> str:
        return next((table.sorted_column for _, table in self.tables if table.sorted_column), "")

    def sort_by(self, key: str) -> None:
        """Sort the tables that have the column."""
        for _, table in self.tables:
            if key in table.sortable():
                table.sort_by(key)

    def choices(self) -> Mapping[str, Any]:
        return {probe: table.choices() for probe, table in self.tables}

    def choose(self, choices: Mapping[str, Any]) -> None:
        for probe, table in self.tables:
            if probe in choices:
                table.choose(choices[probe])

    def record(self) -> dict[str, Any]:
        """Return the JSON record of every launch with all values, by probe."""
        return {"probes": [{"probe": probe, **table.record()} for probe, table in self.tables]}

    def cells(self) -> Iterator[Sequence[object]]:
        """Yield a row per launch; values that its probe does not have are None."""
        rows = [dict(zip(keys, row, strict=True)) for _, table in self.tables for keys, row in _table_rows(table)]
        columns = list(dict.fromkeys(key for row in rows for key in row))
        yield columns
        for row in rows:
            yield [row.get(key) for key in columns]


def _table_rows(table: CountTable) -> Iterator[tuple[Sequence[Any], Sequence[object]]]:
    keys, *rows = table.cells()
    return ((keys, row) for row in rows)


def _open_results(source: ViewSource, progress: Progress) -> CountTable | ProbeTables:
    probed_kernels = [kernel for kernel in source.kernel.by_probe() if kernel.probe and kernel.result_rows]
    if source.launch is None and len(probed_kernels) > 1:
        return ProbeTables(
            [(kernel.probe or "", _open_table(replace(source, kernel=kernel), progress)) for kernel in probed_kernels]
        )
    return _open_table(source, progress)


def _open_table(source: ViewSource, progress: Progress) -> CountTable:
    notes = [note for kernel in source.kernel.by_probe() if (note := unknown_probe_advice(kernel)) is not None]
    if known_probe(source.kernel) is UNKNOWN_PROBE:
        return CustomResults(source, progress, notes)
    return CountTable(source, "Results", progress, notes)


KIND: Final = ViewKind(
    "results",
    "Results",
    "values of each launch, for any probe",
    _no_results_reason,
    _open_results,
    explanation=(
        "One row per launch, one column per value. If the probe is not installed, each map has its own columns: the"
        " number of records, and the minimum, median and maximum of each field. If the probe adds up a field, the"
        " column has the sum instead. Below the table are the values of one launch: their distribution, and the warps"
        " or threads with the largest values.",
    ),
    order=95,
    short_title="Res",
    grows=True,
)
